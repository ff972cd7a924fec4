"""Fixtures for files of a run."""

from pathlib import Path

import pytest

from bakeoff.record import Record
from bakeoff.storage.journal import JournalWriter
from bakeoff.storage.redaction import Redactor

NO_SECRETS = Redactor({})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def write(path: Path, *records: Record, redactor: Redactor = NO_SECRETS) -> None:
    """Write the records to a journal."""
    with JournalWriter(path, redactor) as journal:
        for record in records:
            journal.append_record(record)
