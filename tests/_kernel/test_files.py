"""A crash leaves the old file or the new one."""

from pathlib import Path

import pytest

from bakeoff._kernel.files import write_atomically


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "new" / "file"
    write_atomically(target, b"one")
    write_atomically(target, b"two", 0o644)
    assert (target.read_bytes(), target.stat().st_mode & 0o777) == (b"two", 0o644)
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path / "folder", b"three")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder", "new"]
