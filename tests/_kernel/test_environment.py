"""Test where keys come from, and what is said of a file that cannot be read."""

from pathlib import Path

import pytest

from bakeoff._kernel.environment import read_environment
from bakeoff.errors import UsageError


def test_the_environment_wins_over_env_local_and_that_over_env(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=1\nB=1\nC=1$X\n")
    (tmp_path / ".env.local").write_text("A=2\nB=2\n")
    assert read_environment(tmp_path, {"A": "3"}) == {"A": "3", "B": "2", "C": "1$X"}


def test_a_file_that_is_not_text_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"KEY=\xff\xfe\x00")
    with pytest.raises(UsageError, match=r"\.env is not UTF-8 text; save it as such, or move it away"):
        read_environment(tmp_path, {})


def test_a_file_that_cannot_be_read_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / ".env.local").symlink_to("/proc/self/mem")  # not even root reads its first page
    with pytest.raises(UsageError, match=r"\.env\.local cannot be read: .*; make it readable, or move it away"):
        read_environment(tmp_path, {})


def test_a_folder_that_has_been_deleted_has_no_such_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert read_environment(base={"A": "1"}) == {"A": "1"}
