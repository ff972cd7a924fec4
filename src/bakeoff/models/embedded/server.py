"""One llama.cpp server per user, machine and weights: started by the first run that wants it, gone with the last."""

import asyncio
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bakeoff._kernel.files import PRIVATE
from bakeoff._kernel.threads import call
from bakeoff.errors import InfraError, UsageError
from bakeoff.models.embedded.launch import Files, Launch, Running, runtime_folder
from bakeoff.models.embedded.locks import is_held, lock_file, locked, take
from bakeoff.models.embedded.weights import KNOWN, Progress, Say, check_name, is_here, location, pull, weights_path

_USUAL_CONTEXT = 4096  # of weights that we know nothing about: memory for it grows with the model
_MOST_SLOTS = 4
_POLL_SECONDS = 0.02
_LOG_LINES = 12
# How often an OpenMP thread looks before it sleeps. The default suits a machine that does nothing else: there this
# costs a fifth of the speed. On a busy one the threads would spin for each other's turn, and be ten times slower.
_SPIN = {"GOMP_SPINCOUNT": "1000"}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the model is to be asked, with any client of the OpenAI API."""

    base_url: str
    api_key: str = field(repr=False)
    model_name: str
    supports_tools: bool


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _not_shown(done: int, total: int | None) -> None:
    """Nobody asked to see the progress."""


def _processors() -> int:
    """Those that we may use, which in a container are fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _usual_slots() -> int:
    return min(_MOST_SLOTS, _processors())


@dataclass(frozen=True, slots=True)
class EmbeddedServer:
    """The resource: `model` is a known name such as `smollm2`, or the path of a `.gguf` file."""

    model: str
    slots: int = field(default_factory=_usual_slots)  # requests that are answered at the same time
    context: int | None = None  # tokens per request, the answer included
    start_seconds: float = 120.0
    say: Say = _tell
    progress: Progress = _not_shown

    @property
    def key(self) -> str:
        return f"llama:{location(self.model)}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Endpoint]:
        """Pull the weights if they are missing, start the server if none runs, and keep it while this is open."""
        check_ready(self.model)
        await call(self._pull_if_missing)
        launch = self._launch()
        files = Files(runtime_folder(), launch.id)
        with lock_file(files.users) as lease:
            while not take(lease, shared=True):  # noqa: ASYNC110 - the kernel sends no event
                await asyncio.sleep(_POLL_SECONDS)  # the former server is on its way out
            yield await self._connect(launch, files)

    async def ensure_alive(self) -> Endpoint:
        """Inside `open`: the endpoint again, after starting the server anew if it has died.

        The new one has the address and the key of the old one unless another program has taken the port.
        """
        launch = self._launch()
        return await self._connect(launch, Files(runtime_folder(), launch.id))

    async def _connect(self, launch: Launch, files: Files) -> Endpoint:
        running = await call(connect, launch, files, self.start_seconds)
        return Endpoint(running.base_url, running.api_key, launch.model_name, running.supports_tools)

    def _pull_if_missing(self) -> None:
        if self.model in KNOWN and not is_here(self.model):
            self.say(f"the weights of {self.model} are not here yet: pulling them, this once")
            pull(self.model, progress=self.progress, say=self.say)

    def _launch(self) -> Launch:
        path = weights_path(self.model)
        known = KNOWN.get(self.model)
        return Launch(
            weights=str(path),
            model_name=self.model if known else path.stem,
            slots=self.slots,
            context=self.context or (known.context if known else _USUAL_CONTEXT),
            threads=_processors(),
            template=known.template if known else None,
            changed=path.stat().st_mtime_ns,
        )


def check_ready(model: str) -> None:
    """Raise UsageError where the model can never run, before anything is downloaded."""
    check_name(model)
    if importlib.util.find_spec("xllamacpp") is None:
        raise UsageError(f"the embedded model {model} needs llama.cpp: pip install 'bakeoff[local]'")


def connect(launch: Launch, files: Files, seconds: float) -> Running:
    """The running server, started if there is none. The caller holds the users' lock, so it cannot end meanwhile."""
    with locked(files.start):
        deadline = time.monotonic() + seconds
        while is_held(files.alive):
            running = files.read_word()
            if running is not None:
                return running
            # Whoever started it was killed before it was ready, or it is still closing down.
            if time.monotonic() > deadline:
                raise _no_start(launch, files, f"was not ready after {seconds:g} s")
            time.sleep(_POLL_SECONDS)
        _start(launch, files, seconds)
        running = files.read_word()
    if running is None:
        raise _no_start(launch, files, "left as soon as it was ready")
    return running


def _start(launch: Launch, files: Files, seconds: float) -> None:
    command = [sys.executable, "-P", "-m", "bakeoff.models.embedded.serve", launch.to_json(), str(files.folder)]
    log = os.open(files.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, PRIVATE)
    try:
        starter = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=files.folder,
            env={**_SPIN, **os.environ},
            start_new_session=True,  # Ctrl-C is for the run, which may still need its answers
        )
    finally:
        os.close(log)
    try:
        code = starter.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(starter.pid, signal.SIGKILL)
        starter.wait()
        raise _no_start(launch, files, f"was not ready after {seconds:g} s") from None
    if code:
        raise _no_start(launch, files, f"ended with {code} before it was ready")


def _no_start(launch: Launch, files: Files, what: str) -> InfraError:
    return InfraError(f"the llama.cpp server for {launch.weights} {what}; the end of {files.log}:\n{_tail(files.log)}")


def _tail(log: Path) -> str:
    try:
        with log.open(encoding="utf-8", errors="replace") as lines:
            return "".join(deque(lines, maxlen=_LOG_LINES)).rstrip() or "(it is empty)"
    except FileNotFoundError:
        return "(there is none)"
