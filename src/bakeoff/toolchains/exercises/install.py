"""What TypeScript exercises are tested with: installed once into the cache, read-only, for every trial of every run."""

import asyncio
import platform
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from bakeoff.cache import cache_folder
from bakeoff.frozen import fingerprint
from bakeoff.toolchains.node import (
    _QUIET,
    INSTALL_SECONDS,
    _make_read_only,
    _node_version,
    _only_one,
    _output,
    _remove,
    find_node,
)

SOURCES = Path(__file__).with_name("javascript")


async def install_exercise_toolchain(say: Callable[[str], None]) -> Path:
    """The toolchain's folder. Whoever comes first installs it, the others wait; what is there is only looked up."""
    node, npm = find_node()
    folder = _folder(await _node_version(node))
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    async with _only_one(folder.with_suffix(".lock")):
        if not folder.is_dir():
            say(f"Installing Jest and Babel into {folder} (once, about a minute) …")
            await _install(npm, folder)
    return folder


def _folder(node_version: str) -> Path:
    """One folder for each content of ours and each Node."""
    contents = {path.name: path.read_text(encoding="utf-8") for path in sorted(SOURCES.iterdir()) if path.is_file()}
    key = fingerprint(contents, node_version, platform.system(), platform.machine())
    return cache_folder() / "toolchains" / f"jest-{key[:16]}"


async def _install(npm: str, folder: Path) -> None:
    """Beside its place and then renamed: nobody sees half of it."""
    beside = Path(tempfile.mkdtemp(prefix=".jest-", dir=folder.parent))
    try:
        shutil.copytree(SOURCES, beside, dirs_exist_ok=True)
        await _output([npm, "install", *_QUIET], beside, seconds=INSTALL_SECONDS)
        await asyncio.to_thread(_make_read_only, beside)
        beside.rename(folder)
    except BaseException:
        _remove(beside)
        raise
