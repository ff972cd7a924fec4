"""Keep the tokens of logins at MCP servers in one file that only its owner can read."""

import fcntl
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from bakeoff._kernel.files import MAX_FILE_SIZE, PRIVATE, open_file, write_atomically
from bakeoff.errors import UsageError


class Login(BaseModel):
    """The tokens for one server, and what is needed to refresh them. The parts have the forms of OAuth."""

    model_config = ConfigDict(frozen=True)

    tokens: dict[str, Any]
    expires_at: float | None = None
    client: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    resource: dict[str, Any] | None = None


class _Logins(BaseModel):
    logins: dict[str, Login] = {}


def token_file() -> Path:
    """Return the place of the file: BAKEOFF_MCP_TOKENS, or in the user's folder of settings."""
    if given := os.environ.get("BAKEOFF_MCP_TOKENS"):
        return Path(given)
    settings = os.environ.get("XDG_CONFIG_HOME")
    return (Path(settings) if settings else Path.home() / ".config") / "bakeoff" / "mcp-tokens.json"


class TokenStore:
    """The logins by the addresses of their servers."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file or token_file()

    def get(self, url: str) -> Login | None:
        return self._read().logins.get(url)

    def put(self, url: str, login: Login) -> None:
        with self._locked():
            self._write({**self._read().logins, url: login})

    def remove(self, url: str) -> bool:
        """Forget a login. Return whether there was one."""
        with self._locked():
            logins = self._read().logins
            if url not in logins:
                return False
            self._write({name: login for name, login in logins.items() if name != url})
            return True

    def _read(self) -> _Logins:
        try:
            with open_file(self.file) as opened:
                if stat.S_IMODE(os.fstat(opened.fileno()).st_mode) & 0o077:
                    raise UsageError(f"{self.file} holds tokens and others can read it: `chmod 600 {self.file}`")
                return _Logins.model_validate_json(opened.read(MAX_FILE_SIZE))
        except FileNotFoundError:
            return _Logins()
        except ValidationError as error:
            raise UsageError(f"{self.file} is damaged: delete it, and log in again") from error
        except OSError as error:
            raise UsageError(f"{self.file} cannot be read: {error.strerror}") from error

    def _write(self, logins: Mapping[str, Login]) -> None:
        write_atomically(self.file, _Logins(logins=dict(logins)).model_dump_json(indent=1).encode(), PRIVATE)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one process at a time change the file: several may refresh their tokens."""
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self.file.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        except OSError as error:
            raise UsageError(f"{self.file} cannot be written: {error.strerror}") from error
