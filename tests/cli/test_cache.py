"""`bakeoff cache` shows and clears what can be made again, and nothing else."""

import json
from pathlib import Path

import pytest

from bakeoff._kernel.environment import cache_folder

from ..warm_bakeoff import Bakeoff


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("BAKEOFF_CACHE", str(folder))
    assert cache_folder() == folder
    for name in ("models/a.gguf", "toolchains/node/deep/b.js", "mine/kept.txt"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_bytes(b"x" * 1000)
    return folder


def test_the_size_of_each_part_is_shown(bakeoff: Bakeoff, cache: Path) -> None:
    told = json.loads(bakeoff("cache", "size", "--json").stdout)
    assert (told["folder"], told["bytes"]) == (str(cache), 2000)
    assert {part["part"]: part["files"] for part in told["parts"] if part["files"]} == {"models": 1, "toolchains": 1}
    shown = bakeoff("cache", "size").stdout
    assert "toolchains" in shown
    assert str(cache) in shown


def test_only_the_parts_that_are_named_are_cleared_and_nothing_that_is_not_ours(
    bakeoff: Bakeoff, cache: Path, tmp_path: Path
) -> None:
    (cache / "toolchains" / "node").chmod(0o500)
    asked = bakeoff("cache", "clear", "toolchains")
    assert asked.returncode == 2
    assert "add --yes" in asked.stderr
    assert bakeoff("cache", "clear", "toolchains", "--yes").returncode == 0
    assert sorted(path.name for path in cache.iterdir()) == ["mine", "models"]
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").touch()
    (cache / "gateway").symlink_to(tmp_path / "elsewhere")
    assert bakeoff("cache", "clear", "-y").returncode == 0
    assert [path.name for path in cache.iterdir()] == ["mine"]
    assert (tmp_path / "elsewhere" / "file").exists(), "a link is not followed"
    again = bakeoff("cache", "clear", "-y")
    assert (again.returncode, "nothing to clear" in again.stderr) == (0, True)


def test_a_part_that_is_unknown_is_refused_with_those_that_exist(bakeoff: Bakeoff, cache: Path) -> None:
    done = bakeoff("cache", "clear", "../mine", "--yes")
    assert done.returncode == 2
    assert "choose from models, toolchains" in done.stderr
    assert (cache / "mine" / "kept.txt").exists()
