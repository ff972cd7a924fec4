"""Logs come from elsewhere: whatever is in them, there is a run or an error message, and nothing else happens."""

import json
import math
import random
import resource
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bakeoff.errors import BakeoffError, RunFolderError, UsageError
from bakeoff.logs.inspect_logs import Archive
from bakeoff.logs.reader import Choices, ForeignLogReader, Scale, import_log
from bakeoff.logs.trials import outer_keys
from bakeoff.record import Record
from bakeoff.report.readers import Source, open_source

from ..warm_bakeoff import Bakeoff
from .fixtures import ALL, LOGS, Logged

HOSTILE: list[Any] = [
    *(None, [], {}, "", "\ud800\x1b[31m\x00", -1, 10**30, 1e308, math.nan, math.inf, True),
    *([[]], {"a": {"b": [1]}}, [None, "x", {}], {"type": "text", "text": None}),
]  # fmt: skip
Json = dict[str, Any]


def read(path: Path, format_: str | None = None, **choices: Any) -> list[Record]:
    return list(Source(path, ForeignLogReader(Choices(format=format_, **choices))).records())


def archive(path: Path, *samples: Json, **members: bytes) -> Path:
    """Write an archive as Inspect does, with these samples."""
    header = {"version": 2, "eval": {"task": "t", "model": "m", "created": "2026-01-01T00:00:00+00:00"}}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("header.json", members.pop("header.json", json.dumps(header).encode()))
        for number, sample in enumerate(samples):
            file.writestr(f"samples/{number}_epoch_1.json", json.dumps({"id": number, "epoch": 1, **sample}))
        for name, data in members.items():
            file.writestr(name, data)
    return path


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    inside = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    for key, item in inside:
        yield from places(item, (*place, key))


def changed(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = changed(copy[place[0]], place[1:], new)
    return copy


def refusal(path: Path, format_: str) -> str | None:
    """Return the error message of a log that cannot be read. Every other exception is a bug."""
    try:
        read(path, format_)
    except BakeoffError as error:
        return str(error)
    return None


@pytest.mark.parametrize("logged", [each for each in ALL if each.path.suffix == ".json"], ids=lambda each: each.file)
def test_a_wrong_value_anywhere_gives_a_run_or_a_sentence(logged: Logged, tmp_path: Path) -> None:
    whole, chance = json.loads(logged.path.read_text()), random.Random(21)
    everywhere = list(places(whole))
    log = tmp_path / "log.json"
    for _ in range(50):
        place, new = chance.choice(everywhere), chance.choice(HOSTILE)
        log.write_text(json.dumps(changed(whole, place, new)))
        if told := refusal(log, logged.format):
            assert str(log) in told, (place, new)
            assert "\x1b" not in told
            assert "Error:" not in told, "a sentence, not the name of an exception"


def test_a_torn_or_changed_archive_gives_a_run_or_a_sentence(tmp_path: Path) -> None:
    whole, chance = (LOGS / "inspect.eval").read_bytes(), random.Random(21)
    log = tmp_path / "log.eval"
    for _ in range(80):
        data = bytearray(whole)
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        log.write_bytes(data if chance.random() < 0.6 else data[: chance.randrange(len(data))])
        assert str(log) in (refusal(log, "inspect") or str(log))


def test_a_wrong_value_is_named_with_file_and_place(tmp_path: Path) -> None:
    log = archive(tmp_path / "log.eval", {"model_usage": {"m": {"input_tokens": 10**30}}})
    with pytest.raises(RunFolderError, match=r"log\.eval: samples/0_epoch_1\.json: model_usage\.m\.input_tokens: "):
        read(log)
    log = tmp_path / "promptfoo.jsonl"
    shutil.copy(LOGS / "promptfoo.jsonl", log)
    with log.open("a") as file:
        file.write('{"promptIdx": \n')
    with pytest.raises(RunFolderError, match=r"promptfoo\.jsonl:17 is not readable JSON"):
        read(log)


def test_a_zip_bomb_is_refused_while_it_is_unpacked(tmp_path: Path) -> None:
    log = archive(tmp_path / "log.eval")
    with (
        zipfile.ZipFile(log, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as file,
        file.open("samples/bomb_epoch_1.json", "w") as member,
    ):
        for _ in range(130):
            member.write(b" " * (1 << 20))
    assert log.stat().st_size < 1_000_000
    with pytest.raises(RunFolderError, match=r"samples/bomb_epoch_1\.json is larger than 128 MB"):
        read(log)


def test_an_archive_of_many_small_bombs_is_refused_as_a_whole(tmp_path: Path) -> None:
    samples = {f"samples/{number}_epoch_1.json": b'{"id": 0}' + b" " * (1 << 20) for number in range(40)}
    with zipfile.ZipFile(tmp_path / "many.eval", "w", zipfile.ZIP_BZIP2) as file:
        for name, data in samples.items():
            file.writestr(name, data)
    with (
        Archive(tmp_path / "many.eval", most_unpacked=1 << 20) as many,
        pytest.raises(RunFolderError, match="1,000 times as large as the archive"),
    ):
        list(map(many.read_json, many.names))


def test_names_that_lead_out_of_a_folder_are_only_names(tmp_path: Path) -> None:
    sample = {"id": "../../../out", "input": "x", "scores": {"s": {"value": "C"}}}
    log = archive(tmp_path / "log.eval", **{"samples/../../../../out_epoch_1.json": json.dumps(sample).encode()})
    run = import_log(log, tmp_path / "a" / "b" / "results", Choices()).folder
    assert [record.case for record in run.latest_records(run.read_plan())] == ["../../../out"]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a", "log.eval"]


def test_links_in_a_folder_of_logs_are_not_followed(tmp_path: Path) -> None:
    job = tmp_path / "job"
    shutil.copytree(LOGS / "harbor-job" / "hello-world__0000001", job / "one")
    secret = tmp_path / "secret"
    shutil.copytree(LOGS / "harbor-job" / "hello-world__0000002", secret)
    (job / "two").symlink_to(secret)
    (job / "one" / "agent" / "trajectory.json").unlink()
    (job / "one" / "agent" / "trajectory.json").symlink_to(secret / "agent" / "trajectory.json")
    [record] = read(job)
    assert record.transcript is not None
    assert not record.transcript.steps


@pytest.mark.parametrize("deep", ['{"a":', "["], ids=["objects", "lists"])
def test_json_that_is_nested_too_deeply_is_refused(tmp_path: Path, deep: str) -> None:
    closing = "}" if deep.startswith("{") else "]"
    for depth in (1_000, 200_000):
        inner = f"{deep * depth}{'1' if closing == '}' else ''}{closing * depth}"
        log = archive(tmp_path / "log.eval", **{"samples/deep.json": f'{{"id": 1, "metadata": {inner}}}'.encode()})
        with pytest.raises(RunFolderError, match=r"samples/deep\.json is not readable JSON: .* levels deep"):
            read(log)


def test_values_that_are_no_numbers_from_0_to_1_are_unscored_and_unknown_numbers_stay_unknown(tmp_path: Path) -> None:
    values = [math.nan, math.inf, "seven", None, [1], "C", 0.5, True, "0.25"]
    samples = [{"scores": {"s": {"value": value}}, "total_time": math.inf} for value in values]
    records = read(archive(tmp_path / "log.eval", *samples))
    assert [record.value for record in records] == [None] * 5 + [1.0, 0.5, 1.0, 0.25]
    assert all(record.verdict == "grader" for record in records[:5])
    assert {record.attempt for record in records} == {None}
    assert {record.spent.cost for record in records} == {None}


@pytest.mark.parametrize(
    ("value", "words", "reason"),
    [
        ("pass", "well said", "pass is no number: well said"),
        ("c", "", "c is no number"),
        ("", "", "an empty text is no number"),
        (None, "", "the log has no value"),
        (math.nan, "", "NaN is no number"),
        ("nan", "", "NaN is no number"),
        ([1, 0], "", "[1, 0] is no number"),
    ],
)
def test_an_unscored_value_says_why_also_beside_the_words_of_the_log(
    value: object, words: str, reason: str, tmp_path: Path, bakeoff: Bakeoff
) -> None:
    log = archive(tmp_path / "log.eval", {"scores": {"s": {"value": value, "explanation": words}}})
    [record] = read(log)
    assert (record.verdict, record.scores[0].value, record.scores[0].reason) == ("grader", None, reason)
    bakeoff("import", str(log), "--results", str(tmp_path / "results"))
    shown = bakeoff("runs", "show", "--results", str(tmp_path / "results"))
    assert f"s: {reason}" in shown.stdout


def test_a_sample_without_an_id_is_named_with_its_place(tmp_path: Path) -> None:
    log = archive(tmp_path / "log.eval", {"id": None, "scores": {"s": {"value": 1}}})
    with pytest.raises(RunFolderError, match=r"samples/0_epoch_1\.json: id"):
        read(log)


def test_epochs_of_one_id_are_rounds_and_each_has_its_own_score(tmp_path: Path) -> None:
    samples = [
        {"id": "same", "epoch": epoch, "scores": {"s": {"value": value}}} for epoch, value in ((1, "C"), (2, "I"))
    ]
    records = read(archive(tmp_path / "log.eval", *samples))
    assert [(record.case, record.round, record.value) for record in records] == [("same", 0, 1.0), ("same", 1, 0.0)]


@pytest.mark.parametrize("scale", [(), (Scale(worst=0, best=10),)], ids=["no scale", "a scale"])
def test_a_number_with_hundreds_of_digits_is_refused_with_every_scale(tmp_path: Path, scale: tuple[Scale, ...]) -> None:
    log = archive(tmp_path / "log.eval", {"scores": {"s": {"value": 10**400}}})
    with pytest.raises(UsageError, match=r"log\.eval: scorer 's' has the value a huge number"):
        read(log, scales=scale)


def test_a_judge_that_used_more_than_all_together_leaves_the_subject_its_usage(tmp_path: Path) -> None:
    usage = {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11}
    more = {"input_tokens": 90, "output_tokens": 9, "total_tokens": 99}
    sample = {"output": {"completion": "a"}, "model_usage": {"m": usage}, "role_usage": {"grader": more}}
    [record] = read(archive(tmp_path / "log.eval", {**sample, "scores": {"s": {"value": 1}}}))
    assert record.transcript is not None
    assert (record.transcript.usage.input, record.judging.input, record.spent.input) == (10, 90, 100)


@pytest.mark.parametrize("end", ["", "\\", '"'])
def test_a_string_without_an_end_is_looked_at_once(end: str) -> None:
    head = b'{"' + b'\\"' * 30_000 + end.encode()  # read again from each of its quotes, this takes minutes
    assert outer_keys(head) == (set(), set())


def test_control_characters_and_markup_reach_neither_terminal_nor_page(bakeoff: Bakeoff, tmp_path: Path) -> None:
    evil = "\x1b[2J\x00<img src=x onerror=alert(1)></script><script>alert(1)</script>\u202e"
    message = {"role": "assistant", "content": evil}
    sample = {
        "id": evil,
        "input": evil,
        "target": evil,
        "messages": [message],
        "output": {"completion": evil},
        "scores": {evil: {"value": "I", "explanation": evil}},
        "metadata": {evil: evil},
    }
    log = archive(tmp_path / "log.eval", sample, {"error": {"message": evil, "traceback": evil}})
    assert bakeoff("import", str(log)).returncode == 0
    for command in (("runs", "show"), ("leaderboard",), ("report", "--no-open"), ("export", "--format", "markdown")):
        done = bakeoff(*command)
        assert done.returncode == 0, done.stderr
        assert "\x1b" not in done.stdout + done.stderr
    [page] = (tmp_path / "results").glob("runs/*/report.html")
    text = page.read_text()
    assert "<img src=x" not in text
    assert "<script>alert(1)" not in text


def test_secrets_of_the_environment_are_redacted_in_logs_too(bakeoff: Bakeoff, tmp_path: Path) -> None:
    secret = "sk-live-0123456789abcdefghij"
    sample = {"id": f"case {secret}", "input": secret, "output": {"completion": f"it is {secret}"}}
    log = archive(tmp_path / "log.eval", {**sample, "scores": {"s": {"value": "C", "explanation": secret}}})
    (tmp_path / ".env").write_text(f"ACME_API_KEY={secret}\n")
    assert bakeoff("import", str(log)).returncode == 0
    assert bakeoff("report", str(log), "-o", "direct.html", "--no-open").returncode == 0
    assert bakeoff("report", "latest", "--no-open").returncode == 0
    assert "1/1" in bakeoff("runs", "show", "latest").stdout, "the redacted plan still fits its records"
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path not in (log, tmp_path / ".env")]
    assert len(written) >= 4
    assert not [path for path in written if secret.encode() in path.read_bytes()]


def test_the_same_sample_twice_is_an_error_and_leaves_no_run(tmp_path: Path) -> None:
    log = archive(tmp_path / "log.eval", {"id": "same"}, {"id": "same"})
    with pytest.raises(RunFolderError, match="round 1 of case 'same' with subject 'm' occurs more than once"):
        import_log(log, tmp_path / "results", Choices())
    assert not list((tmp_path / "results" / "runs").iterdir())


def test_a_run_that_cannot_be_written_is_named_with_the_reason_and_leaves_no_folder(tmp_path: Path) -> None:
    log = archive(tmp_path / "log.eval", {"id": "one"})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with pytest.raises(RunFolderError, match=r"seal\.json cannot be written: File too large"):
            import_log(log, tmp_path / "results", Choices())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list((tmp_path / "results" / "runs").iterdir())


def _nothing(path: Path) -> None:
    path.write_bytes(b"")


def _text(path: Path) -> None:
    path.write_text("no log at all")


def _other_json(path: Path) -> None:
    path.write_text('{"eval_id": 1}')


def _other_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("word/document.xml", "x")


@pytest.mark.parametrize("write", [_nothing, _text, _other_json, _other_zip, Path.mkdir, lambda path: None])
def test_an_unknown_file_is_refused_with_the_list_of_known_formats(
    write: Callable[[Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "some.log"
    write(path)
    for attempt in (lambda: import_log(path, tmp_path / "results", Choices()), lambda: open_source(path)):
        with pytest.raises(UsageError, match=r"some\.log (is not a|does not exist)") as caught:
            attempt()
        for name in ("inspect", "harbor", "atif", "promptfoo", "deepeval", "pydantic-evals", "swebench"):
            assert name in str(caught.value)


def test_format_overrides_what_the_content_looks_like(bakeoff: Bakeoff) -> None:
    done = bakeoff("import", str(LOGS / "deepeval.json"), "--format", "promptfoo")
    assert done.returncode == 2
    assert "deepeval.json: results: is missing" in done.stderr
    near = bakeoff("import", str(LOGS / "deepeval.json"), "--format", "promptfo")
    assert near.returncode == 2
