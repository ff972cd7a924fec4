"""The Node toolchain: installed once into the cache folder, from the package.json that is shipped beside this file."""

import platform
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from bakeoff._kernel.cache import cache_folder
from bakeoff._kernel.model import fingerprint
from bakeoff.errors import InfraError
from bakeoff.toolchains.installing import NPM_INSTALL, install_once, output_of

SOURCES = Path(__file__).with_name("javascript")
OLDEST_NODE = (20, 19)
# The bundle's cache is made and used under the same flags, or V8 refuses it. Many short lives on few cores: helpers of
# the garbage collector would only stand in line.
WORKER_FLAGS = ("--max-old-space-size=512", "--single-threaded-gc")
_GET_NODE = "install Node.js 20.19 or newer (https://nodejs.org), or run only suites that need no Node"


async def install_node_toolchain(say: Callable[[str], None]) -> Path:
    """The toolchain's folder; what is there is only looked up."""
    node, npm = find_node()
    folder = toolchain_folder(await node_version(node))

    async def fill(beside: Path) -> None:
        shutil.copytree(SOURCES, beside, dirs_exist_ok=True)
        await output_of([npm, *NPM_INSTALL], beside)
        await output_of([node, *WORKER_FLAGS, "build.mjs"], beside)

    return await install_once(
        folder, fill, lambda: say(f"Installing Svelte, Vite and Vitest into {folder} (once, about a minute) …")
    )


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


async def node_version(node: str) -> str:
    """As Node writes it; `InfraError` where it is too old."""
    said = (await output_of([node, "--version"], Path("/"), seconds=30.0)).strip()
    found = re.fullmatch(r"v(\d+)\.(\d+)\.\d+\S*", said)
    if found is None:
        raise InfraError(f"{node} says of its version: {said[:100]!r}; {_GET_NODE}", permanent=True)
    if (int(found[1]), int(found[2])) < OLDEST_NODE:
        raise InfraError(f"{node} is Node {said}, which is too old: {_GET_NODE}", permanent=True)
    return said
