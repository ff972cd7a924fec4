"""Installing the Node toolchain: once, whole or not at all, and with a word on what is missing."""

import asyncio
import json
import os
import stat
from pathlib import Path

import pytest

from bakeoff.errors import InfraError
from bakeoff.toolchains.install import VITEST_SOURCES, install_vitest, vitest_folder

NPM = """#!/bin/sh
echo called >> "$BAKEOFF_CACHE/calls"
mkdir -p node_modules/some
echo 1 > node_modules/some/file.js
"""


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A search path of our own, with a Node that builds nothing and an npm that installs one file."""
    folder = tmp_path / "programs"
    folder.mkdir()
    program(folder, "node", '#!/bin/sh\n[ "$1" = --version ] && echo v22.12.0\nexit 0\n')
    program(folder, "npm", NPM)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/sbin{os.pathsep}/sbin{os.pathsep}/bin")
    monkeypatch.setenv("BAKEOFF_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    return folder


async def test_two_at_once_install_once_and_tell_once(programs: Path, tmp_path: Path) -> None:
    lines: list[str] = []
    first, second = await asyncio.gather(install_vitest(lines.append), install_vitest(lines.append))
    assert first == second == vitest_folder("v22.12.0")
    assert (first / "node_modules" / "some" / "file.js").is_file()
    assert (tmp_path / "cache" / "calls").read_text() == "called\n"
    assert len(lines) == 1
    assert str(first) in lines[0]
    assert await install_vitest(lines.append) == first
    assert len(lines) == 1


async def test_a_failed_installation_leaves_nothing_and_says_why(programs: Path, tmp_path: Path) -> None:
    program(programs, "npm", "#!/bin/sh\necho 'network unreachable' >&2\nexit 1\n")
    with pytest.raises(InfraError, match=r"`npm ci` failed; can the package registry be reached\? network unreachable"):
        await install_vitest(print)
    assert [path.suffix for path in (tmp_path / "cache" / "toolchains").iterdir()] == [".lock"]


async def test_the_next_installation_removes_what_a_killed_one_left(programs: Path) -> None:
    target = vitest_folder("v22.12.0")
    left = target.with_name(f".{target.name}-killed")
    (left / "node_modules").mkdir(parents=True)
    left.chmod(0o555)
    assert await install_vitest(print) == target
    assert not left.exists()


async def test_an_old_node_is_named_with_the_way_out(programs: Path) -> None:
    program(programs, "node", "#!/bin/sh\necho v18.20.1\n")
    with pytest.raises(InfraError, match=r"Node v18\.20\.1, which is too old: install Node\.js 20\.19 or newer"):
        await install_vitest(print)


@pytest.mark.parametrize("missing", ["node", "npm"])
async def test_a_missing_program_is_named(programs: Path, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    (programs / missing).unlink()
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(InfraError, match=f"`{missing}` is not installed"):
        await install_vitest(print)


def test_every_version_is_pinned() -> None:
    pinned = json.loads((VITEST_SOURCES / "package.json").read_text())["dependencies"]
    assert {"svelte", "react", "react-dom", "vue", "vite", "vitest", "jsdom", "playwright"} <= pinned.keys()
    assert all(version[0].isdigit() and "x" not in version for version in pinned.values())
    assert pinned["svelte"].startswith("5.")
    assert pinned["vitest"].startswith("4.")
