"""A crash leaves the old file or the new one."""

import os
import stat
from pathlib import Path

import pytest

from bakeoff._kernel.files import write_atomically
from bakeoff.report.output_files import refuse_unwritable, replace_file


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "new" / "file"
    write_atomically(target, b"one")
    write_atomically(target, b"two", 0o644)
    assert (target.read_bytes(), target.stat().st_mode & 0o777) == (b"two", 0o644)
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path / "folder", b"three")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder", "new"]


@pytest.mark.parametrize("name", ["pipe", "link"])
def test_a_pipe_or_device_is_written_to_and_never_replaced(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        refuse_unwritable("--output", tmp_path / name)
        write_atomically(tmp_path / name, b"a")
        with replace_file(tmp_path / name) as path:
            path.write_bytes(b"b")
        assert os.read(reader, 10) == b"ab"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert (tmp_path / "link").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe"]
