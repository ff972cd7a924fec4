"""Calling `bakeoff …` as a person does, from a process that has made its imports already."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

PROGRAM = Path(sys.executable).with_name("bakeoff")
_FORKING = Path(__file__).with_name("forking_bakeoff.py")
# What Python reads before it runs a line of ours: a fork would not notice a change.
_READ_AT_START = ("PYTHON", "LC_", "LANG")


class Bakeoff(Protocol):
    """Calls `bakeoff …` where the test is; named words are added to the environment."""

    def __call__(self, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]": ...


class WarmBakeoff:
    """Starts its process at the first call, and is to be closed."""

    def __init__(self) -> None:
        self._connection, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process: subprocess.Popen[bytes] | None = None
        self._at_start = _read_at_start(os.environ)

    def run(
        self, *words: str, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 240
    ) -> "subprocess.CompletedProcess[str]":
        """As `subprocess.run` of the installed command, with nothing to read and all that it wrote."""
        command = [str(PROGRAM), *words]
        env = dict(os.environ if env is None else env)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            if _read_at_start(env) == self._at_start:
                code = self._fork(command, cwd, env, timeout, (out.fileno(), err.fileno()))
            else:
                code = subprocess.run(
                    command,
                    cwd=cwd,
                    env=env,
                    timeout=timeout,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    check=False,
                ).returncode
            written = [_text(file.fileno()) for file in (out, err)]
        return subprocess.CompletedProcess(command, code, *written)

    def _fork(
        self, command: list[str], cwd: Path, env: dict[str, str], timeout: float, streams: tuple[int, int]
    ) -> int:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, str(_FORKING), str(self._theirs.fileno())],
                pass_fds=[self._theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
            self._theirs.close()
        request = json.dumps([command, str(cwd), env]).encode()
        self._connection.settimeout(None)
        with Path(os.devnull).open("rb") as nothing:
            socket.send_fds(self._connection, [request], [nothing.fileno(), *streams])
        process = json.loads(self._connection.recv(100))
        self._connection.settimeout(timeout)
        try:
            code: int = json.loads(self._connection.recv(100))
        except TimeoutError:
            os.kill(process, signal.SIGKILL)
            self._connection.settimeout(None)
            self._connection.recv(100)
            raise subprocess.TimeoutExpired(command, timeout) from None
        return code

    def close(self) -> None:
        self._connection.close()
        self._theirs.close()
        if self._process is not None:
            self._process.wait()


def _read_at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: env[name] for name in env if name.startswith(_READ_AT_START) and name != "PYTHONIOENCODING"}


def _text(file: int) -> str:
    size = os.fstat(file).st_size
    # As text streams do, `\r\n` is one end of a line.
    return os.pread(file, size, 0).decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
