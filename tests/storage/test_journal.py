"""The journal: everything that is written is read back equal."""

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.record import Failure, Phase, Reasoning, Record, Score, Step, Text, ToolCall, Transcript, Usage
from bakeoff.storage.journal import (
    JournalMark,
    JournalWriter,
    SpentTokens,
    read_journal,
    read_journal_backwards,
    read_journal_with_places,
    record_at,
)
from bakeoff.storage.journal_lines import Damage, Totals, seal_line

from .conftest import NO_SECRETS, write

END = b',"n":1,"crc":"01234567"}\n'
DATA = Path(__file__).with_name("data")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
long_texts = st.builds(
    lambda text, times: text * times, st.text('aé"\\\n𝄞', min_size=1, max_size=9), st.integers(900, 3000)
)
numbers = st.floats(0, 1e9, allow_nan=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts | long_texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
free = st.dictionaries(texts, json_values, max_size=2)
usages = st.builds(Usage, requests=st.integers(0, 9), input=st.integers(0, 9**9), cost=st.none() | numbers)
failures = st.builds(
    Failure,
    kind=st.sampled_from(["subject", "timeout", "budget", "infra", "grader"]),
    type=texts,
    message=texts | long_texts,
    detail=texts,
)
phases = st.none() | st.builds(Phase, seconds=numbers, failure=st.none() | failures)
parts = (
    st.builds(Text, text=texts)
    | st.builds(Reasoning, text=texts)
    | st.builds(ToolCall, name=texts, arguments=json_values, result=json_values, error=st.none() | texts)
)
steps = st.builds(Step, parts=st.lists(parts, max_size=3).map(tuple), usage=usages, finish_reason=st.none() | texts)
transcripts = st.builds(
    Transcript, output=json_values, steps=st.lists(steps, max_size=2).map(tuple), usage=usages, metadata=free
)
scores = st.builds(
    Score,
    name=texts,
    value=st.none() | st.floats(0, 1),
    reason=texts | long_texts,
    metadata=free,
    failure=st.none() | failures,
)
records = st.builds(
    Record,
    case=texts,
    subject=texts,
    round=st.integers(0, 9),
    attempt_key=texts,
    score_key=texts,
    started=numbers,
    tries=st.integers(0, 3),
    bound=st.booleans(),
    threshold=st.none() | st.floats(0, 1),
    prepare=phases,
    attempt=phases,
    score=phases,
    transcript=st.none() | transcripts,
    artefacts=st.dictionaries(texts, texts | long_texts, max_size=2),
    refused=st.dictionaries(texts, texts, max_size=2),
    scores=st.lists(scores, max_size=2).map(tuple),
    spent=usages,
)


@settings(deadline=None)
@given(st.lists(records, max_size=3))
def test_records_come_back_equal(written: list[Record]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "journal.jsonl"
        write(path, *written)
        assert list(read_journal(path)) == written
        assert list(read_journal_backwards(path)) == written[::-1]
        assert [record_at(path, place) for place, _ in read_journal_with_places(path)] == written


def test_every_kind_of_entry_comes_back(path: Path, make_record: Callable[..., Record]) -> None:
    usage, total = Usage(input=1), Usage(input=3, cost=0.5)
    with JournalWriter(path, NO_SECRETS) as journal:
        journal.append("start", time=1.0)
        fields = {"usage": usage.model_dump(exclude_defaults=True), "total": total.model_dump(exclude_defaults=True)}
        journal.append("usage", trial="t", **fields)
        journal.append_record(make_record())
        journal.append("end", reason="finished")
    assert list(read_journal(path)) == [
        JournalMark("start", {"type": "start", "v": 2, "time": 1.0}),
        SpentTokens(total, "t", usage),
        make_record(),
        JournalMark("end", {"type": "end", "v": 2, "reason": "finished"}),
    ]


async def test_a_commit_makes_it_durable_before_the_end(path: Path, make_record: Callable[..., Record]) -> None:
    with JournalWriter(path, NO_SECRETS) as journal:
        journal.append_record(make_record())
        assert list(read_journal(path)) == []
        await journal.commit()
        await journal.commit()
        assert list(read_journal(path)) == [make_record()]


def test_files_of_a_run_are_for_their_owner_alone(path: Path, make_record: Callable[..., Record]) -> None:
    write(path, make_record(transcript=Transcript(output="x" * 50_000)))
    files = [path, *(file for file in (path.parent / "blobs").rglob("*") if file.is_file())]
    assert len(files) == 2
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


# --- blobs --------------------------------------------------------------------------------------------------------


def test_a_long_text_is_stored_once_beside_the_journal(path: Path, make_record: Callable[..., Record]) -> None:
    text = "long " * 10_000
    one = make_record(transcript=Transcript(output={"a": [1, text]}), artefacts={"a.txt": text})
    write(path, one, one.model_copy(update={"round": 1}))
    assert list(read_journal(path)) == [one, one.model_copy(update={"round": 1})]
    blobs = [file for file in (path.parent / "blobs").rglob("*") if file.is_file()]
    assert [file.read_text() for file in blobs] == [text]
    assert path.stat().st_size < 2000


def test_output_that_looks_like_a_reference_stays_itself(path: Path, make_record: Callable[..., Record]) -> None:
    digest = "0" * 64
    output = {"blobs": [[["transcript", "output"], digest]], "record": {}, "type": "record", "v": 99, "": ["", digest]}
    record = make_record(
        transcript=Transcript(output=output, metadata={"long": "x" * 20_000}), refused={"blobs": digest}
    )
    write(path, record)
    assert list(read_journal(path)) == [record]


def blob_of(path: Path) -> Path:
    (blob,) = (file for file in (path.parent / "blobs").rglob("*") if file.is_file())
    return blob


def test_a_missing_and_a_damaged_blob_are_reported_with_the_line(
    path: Path, make_record: Callable[..., Record]
) -> None:
    write(path, make_record(), make_record(transcript=Transcript(output="x" * 50_000)))
    blob = blob_of(path)
    blob.write_text("something else")
    first, second = read_journal(path)
    assert (first, second) == (
        make_record(),
        Damage(2, f"RunFolderError: blob {blob.name} is damaged: its content has another hash"),
    )
    blob.unlink()
    assert list(read_journal(path))[1] == Damage(
        2, f"RunFolderError: blob {blob.name} cannot be read: No such file or directory"
    )


def test_a_reference_cannot_name_a_file_elsewhere(path: Path, make_record: Callable[..., Record]) -> None:
    write(path, make_record(transcript=Transcript(output="x" * 50_000)))
    name = blob_of(path).name
    body = path.read_bytes().replace(name.encode(), b"../" * 20 + b"etc/passwd")[: -len(END)]
    path.write_bytes(seal_line(body, 1, Totals()))
    (entry,) = read_journal(path)
    assert isinstance(entry, Damage)
    assert "is not the digest of a blob" in entry.reason


# --- what a subject may say ---------------------------------------------------------------------------------------


def test_lone_surrogates_are_escaped_and_the_rest_is_kept(path: Path, make_record: Callable[..., Record]) -> None:
    bad = "a\ud800b"
    record = make_record(
        transcript=Transcript(output={bad: [bad, 1]}, usage=Usage(input=3)),
        artefacts={bad: bad},
        scores=(Score(name="x", value=0.5, reason=bad, failure=Failure(kind="grader", type="E", message=bad)),),
        attempt=Phase(seconds=1.0, failure=Failure(kind="infra", type="E", message=bad, detail=bad)),
    )
    write(path, record)
    (read,) = read_journal(path)
    assert isinstance(read, Record)
    assert read.transcript == Transcript(output={r"a\ud800b": [r"a\ud800b", 1]}, usage=Usage(input=3))
    assert read.artefacts == {r"a\ud800b": r"a\ud800b"}
    assert (read.verdict, read.scores[0].value) == (record.verdict, 0.5)


@pytest.mark.parametrize("long", [0, 20_000])
@pytest.mark.parametrize("depth", [90, 150, 190, *range(194, 202), 230, 250])
def test_output_nested_to_any_depth_leaves_a_readable_record(
    depth: int, long: int, path: Path, make_record: Callable[..., Record]
) -> None:
    output: object = 1
    for _ in range(depth):
        output = [output]
    score = Score(name="x", value=1.0, reason="r")
    record = make_record(
        transcript=Transcript(output={"deep": output, "long": "x" * long}, usage=Usage(input=3)), scores=(score,)
    )
    write(path, record)
    (read,) = read_journal(path)
    assert isinstance(read, Record)
    assert (read.verdict, read.value, read.attempt) == (record.verdict, record.value, record.attempt)
    assert read.transcript is not None
    assert read.transcript.usage == Usage(input=3)
    assert read == record or "not stored" in read.transcript.metadata


def test_a_number_too_long_to_be_read_back_leaves_a_readable_record(
    path: Path, make_record: Callable[..., Record]
) -> None:
    failure = Failure(kind="timeout", type="E", message="m", detail="d")
    record = make_record(
        transcript=Transcript(output=10**5000),
        scores=(Score(name="x", value=1.0),),
        prepare=Phase(seconds=1.0),
        attempt=Phase(seconds=2.0, failure=failure),
    )
    write(path, record)
    (read,) = read_journal(path)
    assert isinstance(read, Record)
    assert (read.verdict, read.value, read.seconds) == (record.verdict, record.value, record.seconds)


@pytest.mark.parametrize("output", ["\u2028\u2029\x85\r\n\x0b\x1e", "\0", "\x7f\x1b[0m"])
def test_line_separators_inside_output_do_not_end_a_line(
    output: str, path: Path, make_record: Callable[..., Record]
) -> None:
    record = make_record(transcript=Transcript(output=output))
    write(path, record, record)
    assert list(read_journal(path)) == [record, record]
    assert path.read_bytes().count(b"\n") == 2


# --- schema -------------------------------------------------------------------------------------------------------


def test_a_line_of_a_newer_bakeoff_is_reported_with_a_clear_reason(path: Path) -> None:
    path.write_text('{"type":"record","v":3,"record":{}}\n')
    reason = "schema 3 is newer than 2, the newest this bakeoff knows: upgrade bakeoff to read it"
    assert list(read_journal(path)) == [Damage(1, reason, newer=True)]


def test_a_journal_of_schema_1_can_always_be_read() -> None:
    entries = list(read_journal(DATA / "journal-v1.jsonl"))
    kinds = ["JournalMark", "SpentTokens", "Record", "Record", "Record", "JournalMark"]
    assert [type(entry).__name__ for entry in entries] == kinds
    expected = json.loads((DATA / "journal-v1.expected.json").read_text())
    found = [entry for entry in entries if isinstance(entry, Record)]
    assert found == [Record.model_validate(item) for item in expected["records"]]
    assert [record.verdict for record in found] == ["pass", "timeout", "fail"]
    assert isinstance(entries[1], SpentTokens)
    assert entries[1].total == Usage.model_validate(expected["total"])
    assert (found[0].transcript or Transcript()).output == 'long \n"é"\n' * 3000


def test_todays_lines_are_written_as_in_the_sample_of_their_schema(path: Path) -> None:
    """A change of what is written needs a new schema number and a new sample."""
    found = [entry for entry in read_journal(DATA / "journal-v1.jsonl") if isinstance(entry, Record)]
    with JournalWriter(path, NO_SECRETS) as journal:
        for record in found:
            journal.append_record(record)
        journal.append("end", reason="finished", time=1763190000.5)
    assert path.read_bytes().splitlines() == (DATA / "journal-v2.jsonl").read_bytes().splitlines()


def test_a_journal_of_schema_2_can_always_be_read() -> None:
    expected = json.loads((DATA / "journal-v1.expected.json").read_text())
    *records, end = read_journal(DATA / "journal-v2.jsonl")
    assert records == [Record.model_validate(item) for item in expected["records"]]
    assert isinstance(end, JournalMark)
