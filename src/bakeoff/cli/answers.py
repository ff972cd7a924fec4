"""Keep the answers to the questions of `bakeoff run`, to offer them the next time in the same project.

Secrets are never kept.
"""

import os
import shlex
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import ConfigDict, Field, PositiveInt, ValidationError
from pydantic.types import StringConstraints

from bakeoff._kernel.files import open_file, write_atomically
from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff.doors.components.plan import JOINED, ComponentsRequest
from bakeoff.errors import UsageError
from bakeoff.storage.redaction import Redactor, known_secrets, secrets_in

if TYPE_CHECKING:
    from bakeoff.mcp.servers import ServerSpec

_LARGEST = 64 * 1024
# The answers are shown on the screen, and anybody may have edited the file: no control characters.
_Shown = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]

Say = Callable[[str], None]


class LastAnswers(FrozenModel):
    """The answers for the last run; None or empty where there are none."""

    model_config = ConfigDict(extra="ignore")  # a newer version may have written more

    models: tuple[_Shown, ...] = Field(default=(), max_length=100)
    pricing: bool | None = None
    mcp: tuple[_Shown, ...] = Field(default=(), max_length=20)
    test_tool: bool | None = None
    jobs: PositiveInt | None = None


def answers_file() -> Path:
    """Return the path of the file of this project, in the user's configuration folder. It need not exist."""
    base = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    # The XDG specification says to ignore relative paths.
    folder = (base if base.is_absolute() else Path.home() / ".config") / "bakeoff"
    return folder / f"answers-{fingerprint(str(Path.cwd()))[:16]}.json"


def recall(say: Say) -> LastAnswers:
    """Return the last answers. A file that cannot be read counts as none; the next answers replace it."""
    path = answers_file()
    try:
        with open_file(path) as file:
            return LastAnswers.model_validate_json(file.read(_LARGEST))
    except FileNotFoundError:
        return LastAnswers()
    except (OSError, ValidationError):
        say(f"{path} cannot be read: the last answers are ignored")
        return LastAnswers()


def remember(request: ComponentsRequest, jobs: int, say: Say) -> None:
    """Keep the answers without their secrets."""
    remembered = LastAnswers(
        models=request.models,
        pricing=request.pricing,
        mcp=tuple(_without_secrets(request.mcp)),
        test_tool=request.test_tool,
        jobs=jobs,
    )
    try:
        write_atomically(answers_file(), remembered.model_dump_json(indent=2).encode())
    except OSError as error:
        say(f"the answers cannot be saved in {answers_file().parent}: {error.strerror or error}")


def _without_secrets(axis: Iterable[str]) -> Iterator[str]:
    """Yield each entry without the secrets in its URLs; leave out entries with a secret in a command."""
    for entry in axis:
        servers = [_harmless(text.strip()) for text in entry.split(JOINED.strip())] if entry != "none" else ["none"]
        kept = [server for server in servers if server is not None]
        if len(kept) == len(servers):
            yield JOINED.join(kept)


def _harmless(text: str) -> str | None:
    from bakeoff.mcp.servers import parse_mcp_option, shown_url  # takes a second to load

    try:
        spec = parse_mcp_option(text)
    except UsageError:
        return None
    if spec is None or text in ("http", "stdio"):
        return text
    if spec.url is not None:
        return f"http:{shown_url(spec.url)}"
    return None if _has_secret(spec) else text


def _has_secret(spec: "ServerSpec") -> bool:
    from bakeoff.mcp.servers import shown_url

    words = [spec.command or "", *spec.args]
    known = Redactor(known_secrets())
    if known.finds(shlex.join(words).encode()) or any("://" in word and shown_url(word) != word for word in words):
        return True
    return bool(secrets_in(dict(_named_values(words)))) or any("bearer" in word.lower() for word in words)


def _named_values(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of words that look like `NAME=value`, `--name=value` or `--name value`."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if equals or word.startswith("-"):
            yield name.lstrip("-"), value if equals else following
