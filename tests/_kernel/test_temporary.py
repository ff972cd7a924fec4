"""Temporary folders of processes that were killed."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bakeoff._kernel.temporary import sweep_folders, temporary_folder

HOLDER = """
import sys
from bakeoff._kernel.temporary import temporary_folder
with temporary_folder("bakeoff-test-") as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


def started(*argv: str, tmp: Path) -> "subprocess.Popen[str]":
    pipe, env = subprocess.PIPE, {**os.environ, "TMPDIR": str(tmp)}
    return subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=env)


def let_be_old(folder: Path) -> None:
    for path in folder.iterdir():
        os.utime(path, (0, 0))


def test_the_folder_of_a_killed_process_is_removed_by_the_next_one_and_others_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "bakeoff-test-of-somebody").mkdir()
    with (
        started(sys.executable, "-c", HOLDER, tmp=tmp_path) as killed,
        started(sys.executable, "-c", HOLDER, tmp=tmp_path) as living,
    ):
        assert killed.stdout is not None
        assert living.stdout is not None
        left, used = (Path(process.stdout.readline().strip()) for process in (killed, living) if process.stdout)
        killed.kill()
        killed.wait()
        with temporary_folder("bakeoff-test-"):
            assert left.exists(), "it is new, and its lock might not be there yet"
        let_be_old(tmp_path)
        sweep_folders.cache_clear()
        with temporary_folder("bakeoff-test-") as ours:
            assert {path.name for path in tmp_path.iterdir()} == {"bakeoff-test-of-somebody", used.name, ours.name}
    assert not ours.exists()


def test_pages_of_a_killed_viewer_are_removed_by_the_next_one(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    view = (sys.executable, "-m", "bakeoff", "view", "--no-open", "--results", str(tmp_path / "results"))
    with started(*view, tmp=tmp) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline().startswith("http://")
        killed.kill()
    [left] = tmp.iterdir()
    let_be_old(tmp)
    with started(*view, tmp=tmp) as second:
        assert second.stdout is not None
        assert second.stdout.readline().startswith("http://")
        assert not left.exists()
        second.kill()


@pytest.mark.journey
def test_files_for_the_workers_of_a_killed_pytest_are_removed_by_the_next_one(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import time\n\ndef test_it():\n    time.sleep(300)\n")
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    pytest_ = (sys.executable, "-m", "pytest", "-n", "1", "--rootdir", str(tmp_path), str(tmp_path / "test_it.py"))
    with started(*pytest_, tmp=tmp) as killed:
        while not (left := list(tmp.glob("bakeoff-*"))):
            assert killed.poll() is None
            time.sleep(0.05)
        killed.kill()
    let_be_old(tmp)
    (tmp_path / "test_it.py").write_text("def test_it():\n    pass\n")
    with started(*pytest_, tmp=tmp) as second:
        second.communicate()
    assert not any(path.exists() for path in left)
