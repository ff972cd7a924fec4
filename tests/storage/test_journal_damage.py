"""Damage in a journal is reported with its line, and everything else is still read."""

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bakeoff.errors import RunFolderError
from bakeoff.record import Phase, Record, Transcript, Usage
from bakeoff.storage.journal import (
    Entry,
    JournalMark,
    JournalWriter,
    read_journal,
    read_journal_backwards,
    record_at,
)
from bakeoff.storage.journal_lines import Damage
from bakeoff.storage.redaction import Redactor

from .conftest import write


def test_a_torn_last_line_is_passed_over_and_dropped_by_the_next_writer(
    path: Path, make_record: Callable[..., Record]
) -> None:
    write(path, make_record())
    whole = path.read_bytes()
    for cut in range(1, len(whole)):
        path.write_bytes(whole + whole[:cut])
        assert list(read_journal(path)) == [make_record()]
        assert list(read_journal_backwards(path)) == [make_record()]
    write(path, make_record(round=1))
    assert list(read_journal(path)) == [make_record(), make_record(round=1)]


@pytest.mark.parametrize("size", [1, 65_535, 65_536, 65_537, 200_000])
def test_a_torn_line_of_any_length_is_dropped(size: int, path: Path, make_record: Callable[..., Record]) -> None:
    path.write_bytes(b"x" * size)
    write(path)
    assert path.read_bytes() == b""
    write(path, make_record())
    path.write_bytes(path.read_bytes() + b"x" * size)
    write(path)
    assert list(read_journal(path)) == [make_record()]


def test_damage_in_the_middle_is_reported_with_its_line_and_the_rest_is_read(
    path: Path, make_record: Callable[..., Record]
) -> None:
    write(path, *(make_record(round=number) for number in range(6)))
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = b"\0\0\0\n"
    lines[2] = lines[2][:40] + b"\n"
    lines[3] = b'{"v":1,"type":"poem"}\n'
    lines[4] = b"[]\n"
    path.write_bytes(b"".join(lines))
    entries = list(read_journal(path))
    assert [entry for entry in entries if isinstance(entry, Record)] == [make_record(), make_record(round=5)]
    damage = [entry for entry in entries if isinstance(entry, Damage)]
    assert [entry.line for entry in damage] == [2, 3, 4, 5, 4]  # the poem also has no checksum
    assert damage[2].reason == "ValueError: unknown type 'poem'"
    assert not any(entry.newer for entry in damage)


@pytest.mark.parametrize(
    "line",
    [
        {"type": "record", "v": 1, "record": {"case": "c"}},
        {"type": "record", "v": 1, "blobs": [[["no", "where"], "0" * 64]], "record": {}},
        {"type": "record", "v": 1, "blobs": [[[], "0" * 64]], "record": {}},
        {"type": "record", "v": 1, "blobs": 7, "record": {}},
        {"type": "usage", "v": 1},
        {"type": "usage", "v": 1, "total": {"input": "many"}, "usage": {}, "trial": "t"},
        {"type": "start"},
        {"type": "start", "v": None},
        {"type": "start", "v": "one"},
        7,
        None,
    ],
)
def test_any_odd_line_is_damage_and_never_an_error(line: object, path: Path) -> None:
    path.write_text(json.dumps(line) + "\n")
    (entry,) = read_journal(path)
    assert isinstance(entry, Damage)
    assert entry.line == 1


def test_a_record_that_is_gone_is_said_so(path: Path) -> None:
    path.write_bytes(b"{}\n")
    with pytest.raises(RunFolderError, match="there is no record at byte 0 any more"):
        record_at(path, 0)


@pytest.mark.parametrize("step", [*range(1, 60), 100, 257, 1000, 4096, 1 << 20])
@pytest.mark.parametrize("torn", [b"", b'{"type":"rec'])
def test_backwards_is_forwards_reversed_whatever_the_chunks(
    step: int, torn: bytes, path: Path, make_record: Callable[..., Record]
) -> None:
    write(path, *(make_record(round=number, case="c" * number) for number in range(12)))
    path.write_bytes(path.read_bytes() + torn)
    assert list(read_journal_backwards(path, step)) == list(read_journal(path))[::-1]


@given(st.lists(st.sampled_from([b"", b"\n", b"7\n", b"ab", b"{}\n"]), max_size=12), st.integers(1, 9))
def test_backwards_sees_the_same_lines_in_any_file(pieces: list[bytes], step: int) -> None:
    def without_places(entries: Iterator[Entry]) -> list[object]:
        return [entry.reason if isinstance(entry, Damage) else entry for entry in entries]

    with TemporaryDirectory() as folder:
        path = Path(folder) / "journal.jsonl"
        path.write_bytes(b"".join(pieces))
        assert without_places(read_journal_backwards(path, step)) == without_places(read_journal(path))[::-1]


def test_a_version_that_is_no_number_is_damage_and_not_the_end_of_reading(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"v":1e400}\n{"type":"end","v":1}\n')
    damage, mark = read_journal(path)
    assert isinstance(damage, Damage)
    assert isinstance(mark, JournalMark)


def test_a_very_long_line_is_read_backwards_in_time_that_grows_with_its_length_only(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"type":"start","v":1}\n{"type":"end","v":1,"why":"' + b"x" * (8 << 20) + b'"}\n{"torn')
    started = time.process_time()
    kinds = [entry.kind for entry in read_journal_backwards(path, step=1024) if isinstance(entry, JournalMark)]
    assert kinds == ["end", "start"]
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    "absurd",
    [
        {"spent": Usage(cost=1e308)},
        {"spent": Usage(input=-(10**30))},
        {"attempt": Phase(seconds=1e308)},
        {"attempt": Phase(seconds=1.0, waited=-1e16)},
        {"transcript": Transcript(usage=Usage(output=10**16))},
    ],
)
def test_numbers_that_nobody_can_have_measured_are_damage(
    path: Path, make_record: Callable[..., Record], absurd: dict[str, Any]
) -> None:
    with JournalWriter(path, Redactor({})) as journal:
        journal.append_record(make_record(case="fine", spent=Usage(cost=3.0, input=10**9)))
        journal.append_record(make_record(case="absurd", **absurd))
        journal.append_record(make_record(case="absurd and long", artefacts={"x": "y" * 50_000}, **absurd))
    fine, *damaged = read_journal(path)
    assert isinstance(fine, Record)
    assert [isinstance(one, Damage) and "too large to be a measurement" in one.reason for one in damaged] == [
        True,
        True,
    ]


def test_spending_that_nobody_can_have_measured_is_damage(path: Path) -> None:
    with JournalWriter(path, Redactor({})) as journal:
        journal.append("usage", total={"cost": 1e308}, trial="t", usage={"cost": 1.0})
    [entry] = read_journal(path)
    assert isinstance(entry, Damage)


def test_a_blob_that_is_a_pipe_is_damage_and_not_waited_for(path: Path, make_record: Callable[..., Record]) -> None:
    with JournalWriter(path, Redactor({})) as journal:
        journal.append_record(make_record(artefacts={"x": "y" * 50_000}))
    [blob] = [file for file in (path.parent / "blobs").rglob("*") if file.is_file()]
    blob.unlink()
    os.mkfifo(blob)
    [entry] = read_journal(path)
    assert isinstance(entry, Damage)
    assert "it is not a file" in entry.reason
