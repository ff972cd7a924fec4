"""What TypeScript exercises are tested with: installed once into the cache, read-only, for every trial of every run."""

import platform
import shutil
from collections.abc import Callable
from pathlib import Path

from bakeoff._kernel.cache import cache_folder
from bakeoff._kernel.model import fingerprint
from bakeoff.toolchains.installing import NPM_INSTALL, install_once, output_of
from bakeoff.toolchains.node import SOURCES as WORKER_SOURCES
from bakeoff.toolchains.node import find_node, node_version

SOURCES = Path(__file__).with_name("javascript")
SHARED = tuple(WORKER_SOURCES / name for name in ("host.cjs", "builtins.mjs", "beyond.mjs"))


async def install_exercise_toolchain(say: Callable[[str], None]) -> Path:
    """The toolchain's folder; what is there is only looked up."""
    node, npm = find_node()
    folder = _folder(await node_version(node))

    async def fill(beside: Path) -> None:
        for path in _files():
            shutil.copy(path, beside)
        await output_of([npm, *NPM_INSTALL], beside)

    return await install_once(
        folder, fill, lambda: say(f"Installing Jest and Babel into {folder} (once, about a minute) …")
    )


def _folder(node_version: str) -> Path:
    """One folder for each content of ours and each Node."""
    contents = {path.name: path.read_text(encoding="utf-8") for path in _files()}
    key = fingerprint(contents, node_version, platform.system(), platform.machine())
    return cache_folder() / "toolchains" / f"jest-{key[:16]}"


def _files() -> list[Path]:
    return [*sorted(path for path in SOURCES.iterdir() if path.is_file()), *SHARED]
