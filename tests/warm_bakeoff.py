"""Call `bakeoff …`, or a Python script, in a fork of a process that has made its imports already."""

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
    """Start the process on the first call; the caller closes it.

    `environment` is what the process starts with. A command that asks for other settings of the interpreter is started
    as a process of its own.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._connection, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process: subprocess.Popen[bytes] | None = None
        self._environment = dict(os.environ if environment is None else environment)
        self._at_start = _read_at_start(self._environment)

    def run(
        self, *words: str, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 240
    ) -> "subprocess.CompletedProcess[str]":
        """Run the installed command as `subprocess.run` would, with no input, and capture its output."""
        command = [str(PROGRAM), *words]
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            code = self._run(command, command, cwd, env, timeout, (out.fileno(), err.fileno()))
            return subprocess.CompletedProcess(command, code, _text(out.fileno()), _text(err.fileno()))

    def run_merged(self, *words: str, cwd: Path, env: Mapping[str, str], timeout: float = 240) -> tuple[int, str]:
        """Run `bakeoff …` or `script.py …`, and return its exit code with both streams as a terminal shows them."""
        cold = [sys.executable, *words] if words[0].endswith(".py") else [str(PROGRAM), *words[1:]]
        warm = list(words) if words[0].endswith(".py") else cold
        with tempfile.TemporaryFile() as out:
            code = self._run(cold, warm, cwd, env, timeout, (out.fileno(), out.fileno()))
            return code, _text(out.fileno())

    def _run(
        self,
        cold: list[str],
        warm: list[str],
        cwd: Path,
        env: Mapping[str, str] | None,
        timeout: float,
        streams: tuple[int, int],
    ) -> int:
        env = dict(os.environ if env is None else env)
        if _read_at_start(env) == self._at_start:
            return self._fork(warm, cwd, env, timeout, streams)
        out, err = streams
        done = subprocess.run(
            cold, cwd=cwd, env=env, timeout=timeout, stdin=subprocess.DEVNULL, stdout=out, stderr=err, check=False
        )
        return done.returncode

    def _fork(
        self, command: list[str], cwd: Path, env: dict[str, str], timeout: float, streams: tuple[int, int]
    ) -> int:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, str(_FORKING), str(self._theirs.fileno())],
                pass_fds=[self._theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=self._environment,
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
