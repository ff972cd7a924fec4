"""Call `bakeoff …`, or a Python script, in a fork of a process that has made its imports already."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pytest

PROGRAM = Path(sys.executable).with_name("bakeoff")
_FORKING = Path(__file__).with_name("forking_bakeoff.py")
# What Python reads before it runs a line of ours: a fork would not notice a change.
_READ_AT_START = ("PYTHON", "LC_", "LANG")


class Bakeoff(Protocol):
    """Calls `bakeoff …` where the test is; named words are added to the environment."""

    def __call__(self, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]": ...


def of_no_person() -> dict[str, str]:
    """This process's environment with our programs first, and no settings of the person's."""
    # Coverage is left out, too: an example shows that a page is right, and runs no line that no test runs.
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("BAKEOFF_", "COVERAGE_", "PYTEST_"))
    }
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    plain = {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "120", "LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"}
    # A plugin that is here for our own tests, and takes half a second to say nothing.
    return {**kept, **plain, "PATH": path, "PYTEST_ADDOPTS": "-p no:hypothesispytest"}


# What the interpreters start with that commands and the examples of the docs run in.
ENVIRONMENTS = {"commands": lambda: dict(os.environ), "examples": of_no_person}


class WarmServer:
    """The process that makes the imports when it is first called; whoever starts it closes it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="bakeoff-warm-")
        self.address = str(Path(self._folder.name) / "socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(self.address)
            listener.listen()
            self._process = subprocess.Popen(
                [sys.executable, str(_FORKING), str(listener.fileno())],
                pass_fds=[listener.fileno()],
                stdin=subprocess.PIPE,  # its end is the end of the process
                stdout=subprocess.DEVNULL,
                env=dict(environment),
            )

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()


_SERVERS = pytest.StashKey[dict[str, WarmServer]]()


def addresses_for_workers(config: pytest.Config) -> dict[str, str]:
    """Start the servers that all workers of a test run share; `close_servers` ends them."""
    if _SERVERS not in config.stash:
        config.stash[_SERVERS] = {name: WarmServer(make()) for name, make in ENVIRONMENTS.items()}
    return {name: server.address for name, server in config.stash[_SERVERS].items()}


def close_servers(config: pytest.Config) -> None:
    for server in config.stash.get(_SERVERS, {}).values():
        server.close()


@contextmanager
def warm_bakeoff_of(config: pytest.Config, name: str) -> Iterator["WarmBakeoff"]:
    """Bakeoff with its imports made, in one of the ENVIRONMENTS."""
    shared: dict[str, str] | None = getattr(config, "workerinput", {}).get("warm_servers")
    own = None if shared else WarmServer(ENVIRONMENTS[name]())
    warm = WarmBakeoff(own.address if own else (shared or {})[name], ENVIRONMENTS[name]())
    yield warm
    warm.close()
    if own:
        own.close()


class WarmBakeoff:
    """Call the server on the first command; the caller closes it.

    `environment` is what the server was started with. A command that asks for other settings of the interpreter is
    started as a process of its own. `processor_seconds` adds up what all forks have used.
    """

    processor_seconds = 0.0

    def __init__(self, address: str, environment: Mapping[str, str]) -> None:
        self._address = address
        self._connection: socket.socket | None = None
        self._at_start = _read_at_start(environment)

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
        if self._connection is None:
            self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._connection.connect(self._address)
        request = json.dumps([command, str(cwd), env]).encode()
        self._connection.settimeout(None)
        with Path(os.devnull).open("rb") as nothing:
            socket.send_fds(self._connection, [request], [nothing.fileno(), *streams])
        process = json.loads(self._connection.recv(100))
        self._connection.settimeout(timeout)
        try:
            code, seconds = json.loads(self._connection.recv(100))
        except TimeoutError:
            os.kill(process, signal.SIGKILL)
            self._connection.settimeout(None)
            self._connection.recv(100)
            raise subprocess.TimeoutExpired(command, timeout) from None
        WarmBakeoff.processor_seconds += seconds
        return int(code)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


def _read_at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: env[name] for name in env if name.startswith(_READ_AT_START) and name != "PYTHONIOENCODING"}


def _text(file: int) -> str:
    size = os.fstat(file).st_size
    # As text streams do, `\r\n` is one end of a line.
    return os.pread(file, size, 0).decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
