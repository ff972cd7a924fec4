"""A signature finds every changed, added or removed byte, and says whose key it is of."""

from pathlib import Path

import pytest

from bakeoff.errors import RunFolderError, UsageError
from bakeoff.storage.journal import JournalWriter
from bakeoff.storage.run_folder import RunFolder
from bakeoff.storage.signature import (
    changes_since,
    make_key,
    public_file,
    read_private_key,
    read_public_key,
    read_signature,
    sign_run,
)

from .conftest import NO_SECRETS
from .damage import make_run


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return make_run(tmp_path / "run")


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    make_key(tmp_path / "key")
    return tmp_path / "key"


def changes(run: RunFolder) -> list[str]:
    signed = read_signature(run)
    assert signed is not None
    return list(changes_since(run, signed))


def test_a_signed_run_is_unchanged_until_any_of_its_files_is_not(run: RunFolder, key_file: Path) -> None:
    run.labels_file.write_bytes(b"{}\n")
    signed = sign_run(run, read_private_key(key_file))
    assert changes(run) == []
    assert read_public_key(public_file(key_file)) == signed.public_bytes
    files = sorted(file for file in run.path.rglob("*") if file.is_file() and file != run.signature_file)
    assert len(files) == len(signed.files) >= 5
    for file in files:
        name, data = file.relative_to(run.path).as_posix(), file.read_bytes()
        file.write_bytes(bytes([data[0] ^ 1]) + data[1:])
        assert changes(run) == [f"{name} was changed"]
        file.unlink()
        assert changes(run) == [f"{name} was removed"]
        file.write_bytes(data)
    (run.path / "blobs" / "more").write_bytes(b"")
    assert changes(run) == ["blobs/more was added"]


def test_a_link_in_place_of_a_file_with_the_same_content_is_a_change(run: RunFolder, key_file: Path) -> None:
    sign_run(run, read_private_key(key_file))
    copy = run.path.parent / "copy"
    run.plan_file.rename(copy)
    run.plan_file.symlink_to(copy)
    assert changes(run) == ["plan.json was changed"]


@pytest.mark.parametrize("part", ["time", "files", "signature", "public_key"])
def test_a_changed_signature_file_is_noticed(run: RunFolder, key_file: Path, part: str) -> None:
    signed = sign_run(run, read_private_key(key_file))
    other = {"time": 1.0, "files": {}, "signature": "AAAA", "public_key": "AAAA"}[part]
    run.signature_file.write_text(signed.model_copy(update={part: other}).model_dump_json())
    assert changes(run) == ["signature.json itself was changed: its signature does not fit its content"]


def test_resuming_makes_it_stale(run: RunFolder, key_file: Path) -> None:
    sign_run(run, read_private_key(key_file))
    with JournalWriter(run.journal_file, NO_SECRETS) as journal:
        journal.append("start", time=1.0)
        journal.append("end", reason="finished")
    assert changes(run) == ["journal.jsonl was changed", "seal.json was changed"]


def test_a_run_that_is_being_written_or_damaged_cannot_be_signed(run: RunFolder, key_file: Path) -> None:
    key = read_private_key(key_file)
    with (
        JournalWriter(run.journal_file, NO_SECRETS),
        pytest.raises(RunFolderError, match="another process is writing"),
    ):
        sign_run(run, key)
    run.journal_file.write_bytes(b"")
    with pytest.raises(RunFolderError, match="repair it first"):
        sign_run(run, key)
    run.journal_file.unlink()
    with pytest.raises(RunFolderError, match="nothing to sign"):
        sign_run(run, key)


def test_keys_are_private_and_never_replaced(key_file: Path, tmp_path: Path) -> None:
    assert key_file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(UsageError, match="exists already"):
        make_key(key_file)
    key_file.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        read_private_key(key_file)
    (tmp_path / "text").write_text("no key")
    with pytest.raises(UsageError, match="is not a key"):
        read_public_key(tmp_path / "text")
    with pytest.raises(UsageError, match="cannot be read"):
        read_private_key(tmp_path / "missing")
