"""Run one llama.cpp server per user, machine and weights, from the first run to the last."""

import asyncio
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from bakeoff._kernel.environment import usable_cores
from bakeoff._kernel.files import PRIVATE, lock_file
from bakeoff._kernel.threads import call
from bakeoff.errors import InfraError, UsageError
from bakeoff.models.embedded.launch import (
    EmbeddedEndpoint,
    Files,
    ServerLaunch,
    is_held,
    locked,
    opened_lock,
    runtime_folder,
)
from bakeoff.models.embedded.weights import KNOWN, Progress, Say, check_name, is_here, location, pull, weights_path

_DEFAULT_CONTEXT = 4096  # for unknown weights, whose memory use may be large
_MAX_SLOTS = 4
_POLL_SECONDS = 0.02
_LOG_LINES = 12
# How often an OpenMP thread polls before it sleeps. The default is a fifth faster when idle,
# but ten times slower on a busy machine, because the threads spin while they wait for each other.
_SPIN = {"GOMP_SPINCOUNT": "1000"}
# Variables that the server gets: no keys, only those for Python, libraries and hardware.
_PASSED_ON = {"PATH", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME"}
_PASSED_ON_PREFIXES = ("LC_", "GOMP_", "OMP_", "KMP_", "GGML_", "CUDA_", "HIP_", "ROCR_", "HSA_", "VK_", "COVERAGE_")


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")


@dataclass(frozen=True, slots=True)
class EmbeddedServer:
    """The resource of an embedded model: a name such as `smollm2`, or a path of a `.gguf` file."""

    model: str
    slots: int = field(default_factory=lambda: min(_MAX_SLOTS, usable_cores()))  # requests at the same time
    context: int | None = None  # tokens per request, the answer included
    start_seconds: float = 120.0
    say: Say = _tell
    progress: Progress = lambda *_: None

    @property
    def key(self) -> str:
        """Return the key of the resource."""
        return f"llama:{location(self.model)}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[EmbeddedEndpoint]:
        """Download missing weights, start the server if needed, and keep it during the block."""
        check_name(self.model)
        if importlib.util.find_spec("xllamacpp") is None:
            raise UsageError(f"the embedded model {self.model} needs llama.cpp: pip install 'bakeoff[local]'")
        if self.model in KNOWN and not is_here(self.model):
            self.say(f"the weights of {self.model} are missing: downloading them once")
            await call(partial(pull, self.model, progress=self.progress, say=self.say))
        launch = self._launch()
        files = Files(runtime_folder(), launch.id)
        with opened_lock(files.users) as lease:
            while not lock_file(lease, files.users, shared=True):  # noqa: ASYNC110 - the kernel sends no event
                await asyncio.sleep(_POLL_SECONDS)  # the previous server is shutting down
            yield await call(connect, launch, files, self.start_seconds)

    async def ensure_alive(self) -> EmbeddedEndpoint:
        """Return the endpoint. If the server died, restart it first. Call this inside `open`.

        The new server keeps address and key, unless another program has taken the port.
        """
        launch = self._launch()
        endpoint: EmbeddedEndpoint = await call(connect, launch, Files(runtime_folder(), launch.id), self.start_seconds)
        return endpoint

    def _launch(self) -> ServerLaunch:
        path = weights_path(self.model)
        known = KNOWN.get(self.model)
        return ServerLaunch(
            weights=str(path),
            model_name=self.model if known else path.stem,
            slots=self.slots,
            context=self.context or (known.context if known else _DEFAULT_CONTEXT),
            threads=usable_cores(),
            template=known.template if known else None,
            changed=path.stat().st_mtime_ns,
        )


def connect(launch: ServerLaunch, files: Files, seconds: float) -> EmbeddedEndpoint:
    """Return the running server, or start one. The caller must hold a user's lock.

    Block for about `seconds` at most, even if another process starts the server. If it is not ready
    by then, raise `InfraError` with the end of its log.
    """
    with locked(files.start):
        deadline = time.monotonic() + seconds
        while is_held(files.alive):
            running = files.read_state()
            if running is not None:
                return running
            # It is still shutting down, or its starter was killed before it was ready.
            if time.monotonic() > deadline:
                raise _no_start(launch, files, f"was not ready after {seconds:g} s")
            time.sleep(_POLL_SECONDS)
        _start(launch, files, seconds)
        running = files.read_state()
    if running is None:
        raise _no_start(launch, files, "ended as soon as it was ready")
    return running


def _start(launch: ServerLaunch, files: Files, seconds: float) -> None:
    command = [sys.executable, "-P", "-m", "bakeoff.models.embedded.serve", launch.to_json(), str(files.folder)]
    log = os.open(files.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, PRIVATE)
    passed = {
        name: value for name, value in os.environ.items() if name in _PASSED_ON or name.startswith(_PASSED_ON_PREFIXES)
    }
    try:
        starter = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=files.folder,
            env={**_SPIN, **passed},
            start_new_session=True,  # Ctrl-C stops the run, which may still need answers
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


def _no_start(launch: ServerLaunch, files: Files, what: str) -> InfraError:
    log = files.log.read_text("utf-8", errors="replace") if files.log.exists() else ""
    tail = "\n".join(log.rstrip().splitlines()[-_LOG_LINES:]) or "(it is empty or missing)"
    return InfraError(f"the llama.cpp server for {launch.weights} {what}; the end of {files.log}:\n{tail}")
