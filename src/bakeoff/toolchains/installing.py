"""Installing into the cache: whoever comes first does it, the others wait, and nobody ever sees half of it."""

import asyncio
import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from bakeoff.errors import InfraError

Say = Callable[[str], None]
"""Where an installation is told of."""

INSTALL_SECONDS = 600.0
NPM_INSTALL = (
    *("install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"),
    "--omit=dev",
)
_LOCK_PAUSE = 0.2
_TAIL = 1000


def quiet(_line: str) -> None:
    """Where nobody is to be told."""


async def install_once(folder: Path, fill: Callable[[Path], Awaitable[None]], announce: Callable[[], None]) -> Path:
    """The folder, read-only; if it is not there yet, `fill` is given an empty one that then takes its name."""
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    async with _only_one(folder.with_suffix(".lock")):
        if not folder.is_dir():
            announce()
            await _install(folder, fill)
    return folder


async def _install(folder: Path, fill: Callable[[Path], Awaitable[None]]) -> None:
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        await fill(beside)
        await asyncio.to_thread(_make_read_only, beside)
        beside.rename(folder)
    except BaseException:
        _remove(beside)
        raise


def _remove(folder: Path) -> None:
    subprocess.run(["chmod", "-R", "u+w", "--", folder], check=False, capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)


def _make_read_only(folder: Path) -> None:
    """Where a candidate runs as us, the toolchain is at least not open to a stray write; others may read it."""
    subprocess.run(["chmod", "-R", "a+rX,a-w", "--", folder], check=True, capture_output=True)


async def output_of(argv: list[str], cwd: Path, *, seconds: float = INSTALL_SECONDS) -> str:
    """What a program of the user's prints; `InfraError` where it fails or takes too long."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(seconds):
            out, err = await process.communicate()
    except TimeoutError as problem:
        raise InfraError(f"`{_shown(argv)}` took longer than {seconds:.0f} s", permanent=True) from problem
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        words = err.decode(errors="replace").strip()[-_TAIL:]
        raise InfraError(f"`{_shown(argv)}` failed, is the package registry in reach? {words}", permanent=True)
    return out.decode(errors="replace")


def _shown(argv: list[str]) -> str:
    return " ".join([Path(argv[0]).name, *argv[1:2]])


@contextlib.asynccontextmanager
async def _only_one(lock: Path) -> AsyncIterator[None]:
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(_LOCK_PAUSE)  # not in a thread, which a cancellation would leave waiting
        yield
    finally:
        os.close(descriptor)
