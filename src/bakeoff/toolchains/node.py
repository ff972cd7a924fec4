"""The Node toolchain: installed once into the cache folder, from the package.json that is shipped beside this file."""

import asyncio
import contextlib
import fcntl
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from bakeoff.cache import cache_folder
from bakeoff.errors import InfraError
from bakeoff.frozen import fingerprint

SOURCES = Path(__file__).with_name("javascript")
OLDEST_NODE = (20, 19)
INSTALL_SECONDS = 600.0
# The bundle's cache is made and used under the same flags, or V8 refuses it. Many short lives on few cores: helpers of
# the garbage collector would only stand in line.
WORKER_FLAGS = ("--max-old-space-size=512", "--single-threaded-gc")
_LOCK_PAUSE = 0.2
_QUIET = ("--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--omit=dev")
_TAIL = 1000
_GET_NODE = "install Node.js 20.19 or newer (https://nodejs.org), or run only suites that need no Node"


async def install_node_toolchain(say: Callable[[str], None]) -> Path:
    """The toolchain's folder. Whoever comes first installs it, the others wait; what is there is only looked up."""
    node, npm = find_node()
    version = await _node_version(node)
    folder = toolchain_folder(version)
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    async with _only_one(folder.with_suffix(".lock")):
        if not folder.is_dir():
            say(f"Installing Svelte, Vite and Vitest into {folder} (once, about a minute) …")
            await _install(node, npm, folder)
    return folder


def find_node() -> tuple[str, str]:
    """The programs, or a word on what to install."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None:
        raise InfraError(
            f"`node` is not installed, and component suites are tested with it: {_GET_NODE}", permanent=True
        )
    if npm is None:
        raise InfraError(f"`npm` is not installed beside {node}, and the toolchain comes through it", permanent=True)
    return node, npm


def toolchain_folder(node_version: str) -> Path:
    """One folder for each content of ours and each Node: neither an old toolchain nor an old cache is ever used."""
    contents = {path.name: path.read_text(encoding="utf-8") for path in sorted(SOURCES.iterdir()) if path.is_file()}
    key = fingerprint(contents, WORKER_FLAGS, node_version, platform.system(), platform.machine())
    return cache_folder() / "toolchains" / f"node-{key[:16]}"


async def _node_version(node: str) -> str:
    said = (await _output([node, "--version"], Path("/"), seconds=30.0)).strip()
    found = re.fullmatch(r"v(\d+)\.(\d+)\.\d+\S*", said)
    if found is None:
        raise InfraError(f"{node} says of its version: {said[:100]!r}; {_GET_NODE}", permanent=True)
    if (int(found[1]), int(found[2])) < OLDEST_NODE:
        raise InfraError(f"{node} is Node {said}, which is too old: {_GET_NODE}", permanent=True)
    return said


async def _install(node: str, npm: str, folder: Path) -> None:
    """Beside its place and then renamed: nobody sees half of it."""
    beside = Path(tempfile.mkdtemp(prefix=".node-", dir=folder.parent))
    try:
        shutil.copytree(SOURCES, beside, dirs_exist_ok=True)
        await _output([npm, "install", *_QUIET], beside, seconds=INSTALL_SECONDS)
        await _output([node, *WORKER_FLAGS, "build.mjs"], beside, seconds=INSTALL_SECONDS)
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


async def _output(argv: list[str], cwd: Path, *, seconds: float) -> str:
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
