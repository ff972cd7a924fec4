"""Install Node packages for Vitest and Jest into the cache folder, and find pytest.

The first process that needs an installation makes it. The others wait until it is complete.
"""

import asyncio
import contextlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path

from bakeoff._kernel.environment import cache_folder
from bakeoff._kernel.files import lock_file
from bakeoff._kernel.model import fingerprint
from bakeoff.errors import InfraError
from bakeoff.protocols import Command, Sandbox
from bakeoff.sandbox import open_place

Say = Callable[[str], None]
"""Tells the user about an installation."""

VITEST_SOURCES = Path(__file__).with_name("javascript")
JEST_SOURCES = Path(__file__).with_name("javascript_jest")
INSTALL_SECONDS = 600.0
# V8 refuses a code cache made with other flags. Workers are short-lived and
# cores are few, so helper threads of the garbage collector would only wait.
WORKER_FLAGS = ("--max-old-space-size=512", "--single-threaded-gc")

_SHARED_SCRIPTS = tuple(VITEST_SOURCES / name for name in ("compiling.cjs", "host.cjs", "modules.cjs"))
_OLDEST_NODE = (20, 19)
_GET_NODE = "install Node.js 20.19 or newer (https://nodejs.org), or run only suites that need no Node"
# Install exactly the packages in the lock file, which names no registry.
_NPM_INSTALL = ("ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--omit=dev")
_PYTEST_PACKAGES = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging")
_LOCK_PAUSE = 0.2
_TAIL = 1000


def quiet(_line: str) -> None:
    """Ignore a message."""


async def install_vitest(say: Say = quiet) -> Path:
    """Return the folder of the Vitest toolchain. Install it if it is missing."""
    return await _install_packages(
        "node", _files(VITEST_SOURCES), "Svelte, React, Vue and Vitest", say, build="build.mjs"
    )


async def install_jest(say: Say = quiet) -> Path:
    """Return the folder of the Jest toolchain. Install it if it is missing."""
    return await _install_packages("jest", [*_files(JEST_SOURCES), *_SHARED_SCRIPTS], "Jest and Babel", say)


def vitest_folder(node_version: str) -> Path:
    """Return the folder of the Vitest installation for a version of Node."""
    return _folder("node", _files(VITEST_SOURCES), node_version)


async def _install_packages(name: str, sources: list[Path], what: str, say: Say, build: str | None = None) -> Path:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None:
        raise InfraError(f"`node` is not installed, and these tests run on it: {_GET_NODE}", permanent=True)
    if npm is None:
        raise InfraError(f"`npm` is not installed beside {node}, and it installs the toolchain", permanent=True)
    printed = (await output_of([node, "--version"], Path("/"), seconds=30.0)).strip()
    _read_version(printed, node)
    folder = _folder(name, sources, printed)

    async def fill(beside: Path) -> None:
        for path in sources:
            shutil.copy(path, beside)
        await output_of([npm, *_NPM_INSTALL], beside)
        if build:
            await output_of([node, *WORKER_FLAGS, build], beside)

    return await install_once(folder, fill, f"Installing {what} into {folder} (once, about a minute) …", say)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file())


def _folder(name: str, sources: Iterable[Path], node_version: str) -> Path:
    """Return a folder name that depends on our files and on Node, so that it is never outdated."""
    contents = {path.name: path.read_text(encoding="utf-8") for path in sources}
    key = fingerprint(contents, WORKER_FLAGS, node_version, platform.system(), platform.machine())
    return cache_folder() / "toolchains" / f"{name}-{key[:16]}"


def _read_version(printed: str, node: str) -> tuple[int, int]:
    found = re.fullmatch(r"v(\d+)\.(\d+)\.\d+\S*", printed)
    if found is None:
        raise InfraError(f"{node} --version printed {printed[:100]!r}: {_GET_NODE}", permanent=True)
    version = int(found[1]), int(found[2])
    if version < _OLDEST_NODE:
        raise InfraError(f"{node} is Node {printed}, which is too old: {_GET_NODE}", permanent=True)
    return version


async def permission_flags(sandbox: Sandbox) -> tuple[str, ...]:
    """Return the flags for a sandbox's Node that forbid processes, threads and addons.

    Node then needs further flags for all files to read or write. Containers have their own Node.
    """
    async with open_place() as place:
        done = await sandbox.run(Command(("node", "--version"), place, 30.0))
    printed = (done.stdout or done.stderr).decode(errors="replace").strip()
    version = _read_version(printed, f"node in the {sandbox.name} sandbox")
    stable = version >= (23, 5) or (22, 13) <= version < (23, 0)
    network = ("--allow-net",) if version >= (25, 0) else ()  # the sandbox limits the network
    return "--permission" if stable else "--experimental-permission", "--disable-warning=ExperimentalWarning", *network


def python_in(sandbox: Sandbox) -> str:
    """Return the Python to use in a sandbox: this one or, in a container, its own."""
    return "python3" if sandbox.name == "docker" else sys.executable


def pytest_folders() -> tuple[Path, ...]:
    """Return the folders of pytest and its dependencies, each once.

    Raise a permanent `InfraError` if a package is not installed beside Bakeoff.
    """
    folders = []
    for name in _PYTEST_PACKAGES:
        found = importlib.util.find_spec(name)
        if found is None or found.origin is None:
            raise InfraError(
                f"`{name}` is not installed beside Bakeoff, and Python tests run with pytest: `pip install pytest`",
                permanent=True,
            )
        folders.append(Path(found.origin).parents[1])
    return tuple(dict.fromkeys(folders))


async def install_once(folder: Path, fill: Callable[[Path], Awaitable[None]], note: str = "", say: Say = quiet) -> Path:
    """Return the folder, read-only. If it is missing, `fill` first makes its content.

    Before an installation, `say` is called with `note`.
    """
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    async with _locked(folder.with_suffix(".lock")):
        if folder.is_dir():
            return folder
        say(note)
        for remains in folder.parent.glob(f".{folder.name}-*"):  # left by a killed process
            await asyncio.to_thread(_remove, remains)
        beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            await fill(beside)
            # Protect the toolchain from candidates that run as our own user.
            await asyncio.to_thread(_chmod, beside, "a+rX,a-w", check=True)
            beside.rename(folder)
        except BaseException:
            _remove(beside)
            raise
    return folder


def _remove(folder: Path) -> None:
    _chmod(folder, "u+w", check=False)
    shutil.rmtree(folder, ignore_errors=True)


def _chmod(folder: Path, mode: str, *, check: bool) -> None:
    subprocess.run(["chmod", "-R", mode, "--", folder], check=check, capture_output=True)


async def output_of(argv: list[str], cwd: Path, *, seconds: float = INSTALL_SECONDS) -> str:
    """Return the output of a user's program. Raise `InfraError` if it fails or takes too long."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    shown = " ".join([Path(argv[0]).name, *argv[1:2]])
    try:
        async with asyncio.timeout(seconds):
            out, err = await process.communicate()
    except TimeoutError as problem:
        raise InfraError(f"`{shown}` took longer than {seconds:.0f} s", permanent=True) from problem
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        words = err.decode(errors="replace").strip()[-_TAIL:]
        raise InfraError(f"`{shown}` failed; can the package registry be reached? {words}", permanent=True)
    return out.decode(errors="replace")


@contextlib.asynccontextmanager
async def _locked(lock: Path) -> AsyncIterator[None]:
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while not lock_file(descriptor, lock):  # noqa: ASYNC110 - another process holds it
            await asyncio.sleep(_LOCK_PAUSE)  # not in a thread, which could not be cancelled
        yield
    finally:
        os.close(descriptor)
