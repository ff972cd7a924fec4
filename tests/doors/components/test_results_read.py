"""Result files of every form become records, and records the same file again."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from bakeoff.doors.components.results.model import ComponentsResult, ContentBlock, StepResult, read_step
from bakeoff.doors.components.results.read import (
    ResultFileReader,
    parse_result,
    plan_of,
    read_result,
    records_of,
)
from bakeoff.errors import RunFolderError
from bakeoff.record import Part, Reasoning, Record, Text, ToolCall
from bakeoff.report.compare.comparison import compare_sources
from bakeoff.report.leaderboard import rank_sources
from bakeoff.report.readers import Source, open_source
from bakeoff.report.render.html.run_page import write_source_page
from bakeoff.report.summary import summarise
from bakeoff.storage.journal import JournalWriter
from bakeoff.storage.redaction import Redactor
from bakeoff.storage.run_folder import RunFolder
from bakeoff.verdict import Verdict

DATA = Path(__file__).parent / "data"
FORMS = ["seed", "without-totals", "without-transport", "unverified", "single-test", "single-test-bare"]


def source_of(path: Path) -> Source:
    return open_source(path, (ResultFileReader(),))


def read_again(path: Path) -> Any:
    """The file as it was understood, as other programs see it."""
    return json.loads(read_result(path).to_json())


def expected_of(form: str) -> Any:
    """Return what stands in the file, in the form that is written today."""
    raw = json.loads((DATA / f"{form}.json").read_text())
    if "steps" in raw:
        test = {"testName": "legacy", "prompt": "", "verification": None}
        raw = {
            "tests": [{**test, "steps": raw["steps"], "resultWriteContent": raw["resultWriteContent"]}],
            "metadata": raw.get("metadata")
            or {
                **dict.fromkeys(("mcpServerUrl", "mcpTransportType", "timestamp")),
                "mcpEnabled": False,
                "model": "unknown",
            },
        }
    return raw


def as_run(source: Source, folder: Path) -> RunFolder:
    run = RunFolder(folder)
    run.write_plan(source.plan, Redactor({}))
    with JournalWriter(run.journal_file, Redactor({})) as journal:
        for record in source.records():
            journal.append_record(record)
    return run


@pytest.mark.parametrize("form", FORMS)
def test_a_file_is_read_in_every_field(form: str) -> None:
    assert read_again(DATA / f"{form}.json") == expected_of(form)


@pytest.mark.parametrize("form", FORMS)
def test_what_was_read_survives_a_run_folder(form: str, tmp_path: Path) -> None:
    source = source_of(DATA / f"{form}.json")
    run = as_run(source, tmp_path / "run")
    kept = {record.case: record for record in run.latest_records(run.read_plan())}
    assert kept == {record.case: record for record in source.records()}


@pytest.mark.parametrize("form", FORMS)
def test_what_was_read_has_a_page(form: str, tmp_path: Path) -> None:
    page = write_source_page(source_of(DATA / f"{form}.json"), tmp_path / "page.html")
    subject = source_of(DATA / f"{form}.json").plan.subjects[0].name
    assert subject in page.read_text()


def test_no_copy_of_the_file_is_kept_beside_the_records() -> None:
    source = source_of(DATA / "seed.json")
    first, *_ = source.records()
    kept = first.model_dump_json() + source.plan.model_dump_json()
    for once in ("State first, then a handler.", "3 of 4 failed", "# Counter Component Task"):
        assert kept.count(once) == 1


def test_steps_become_parts_in_which_a_call_holds_its_result() -> None:
    first, _ = source_of(DATA / "seed.json").records()
    assert first.transcript is not None
    reasoning, text, call = first.transcript.steps[0].parts
    assert isinstance(reasoning, Reasoning)
    assert isinstance(text, Text)
    assert isinstance(call, ToolCall)
    assert (call.name, call.id) == ("TestComponent", "call_1")
    assert isinstance(call.result, dict)
    assert call.result["passed"] == 1
    assert first.transcript.steps[0].finish_reason == "tool_call"
    usage = first.transcript.usage
    assert (usage.requests, usage.input, usage.output, usage.cache_read, usage.reasoning) == (2, 2000, 1000, 1000, 120)
    assert first.artefacts["Component.svelte"].startswith("<script>let n = $state(0)")


def test_verdicts_and_scores_follow_from_the_verification() -> None:
    passed, invalid = source_of(DATA / "seed.json").records()
    assert (passed.verdict, passed.value) == (Verdict.PASS, 1.0)
    assert (invalid.verdict, invalid.value) == (Verdict.FAIL, 0.0)
    [half] = source_of(DATA / "without-transport.json").records()
    assert (half.verdict, half.value) == (Verdict.FAIL, 0.5)


VERIFIED: dict[str, Any] = {"testName": "a", "passed": False, "numTests": 4, "numPassed": 3, "numFailed": 1}


def verified(**more: Any) -> Record:
    """The record of a file with one test that was verified like this."""
    step = {"content": [{"type": "text", "text": "x"}], "finishReason": "stop"}
    test = {"testName": "a", "steps": [step], "resultWriteContent": "x", "verification": {**VERIFIED, **more}}
    result = parse_result(json.dumps({"tests": [test]}).encode(), "a.json")
    [record] = records_of(result, plan_of(result, "a"))
    return record


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"failedTests": [{"fullName": "t0", "errorMessage": "boom"}]}, "3 of 4 tests passed; t0: boom"),
        ({}, "3 of 4 tests passed"),
        ({"error": "it did not compile"}, "3 of 4 tests passed; it did not compile"),
        (
            {"passed": True, "validationFailed": True, "validation": {"valid": False, "errors": ["no rune"]}},
            "the validator refused it; no rune",
        ),
        ({"passed": True, "numPassed": 4, "numFailed": 0}, ""),
    ],
)
def test_the_reason_is_what_the_verification_tells(more: dict[str, Any], reason: str) -> None:
    record = verified(**more)
    assert record.scores[0].reason == reason
    assert (record.verdict is Verdict.PASS) == (not reason)


def test_more_passed_tests_than_tests_are_refused() -> None:
    with pytest.raises(RunFolderError, match="numPassed is 7, more than numTests, which is 4"):
        verified(numPassed=7)


def test_a_control_stays_one_in_its_file() -> None:
    raw = {"tests": [], "metadata": {}, "bakeoff": {"version": "1", "subject": "nop", "kind": "nop"}}
    plan = plan_of(parse_result(json.dumps(raw).encode(), "nop.json"), "nop")
    assert summarise(plan, []).subjects[0].control
    raw["bakeoff"] = {"version": "1", "subject": "nop", "kind": "agent"}
    assert not summarise(plan_of(parse_result(json.dumps(raw).encode(), "nop.json"), "nop"), []).subjects[0].control


def test_who_handed_nothing_in_failed_and_what_nobody_graded_is_not_scored() -> None:
    silent, ungraded = source_of(DATA / "unverified.json").records()
    assert (silent.verdict, silent.value) == (Verdict.FAIL, 0.0)
    assert (ungraded.verdict, ungraded.value) == (Verdict.GRADER, None)


def test_the_cost_of_a_file_is_shown_as_it_stands_there() -> None:
    source = source_of(DATA / "seed.json")
    [subject] = summarise(source.plan, source.records()).subjects
    assert subject.spent.cost == 0.0183
    without = source_of(DATA / "without-totals.json")
    [subject] = summarise(without.plan, without.records()).subjects
    assert subject.spent.cost is None


def test_totals_that_contradict_the_steps_are_left_as_they_are(tmp_path: Path) -> None:
    raw = expected_of("seed")
    raw["metadata"]["unitTestTotals"] = {"total": 70, "passed": 1, "failed": 2, "score": 99.5}
    raw["metadata"]["totalCost"]["totalCost"] = 123.456
    file = tmp_path / "result.json"
    file.write_text(json.dumps(raw))
    assert read_again(file) == raw
    assert sum(record.spent.cost or 0 for record in source_of(file).records()) == pytest.approx(123.456, rel=1e-12)


def test_older_files_are_read_with_negative_costs_and_without_a_score(tmp_path: Path) -> None:
    raw = expected_of("seed")
    raw["metadata"]["totalCost"] |= {"inputCost": -0.003, "totalCost": -0.001, "inputTokens": -1000}
    raw["metadata"]["unitTestTotals"] = {"total": 8, "passed": 5, "failed": 3}
    file = tmp_path / "result.json"
    file.write_text(json.dumps(raw))
    assert read_again(file) == raw
    source = source_of(file)
    assert summarise(source.plan, source.records()).subjects[0].spent.cost == pytest.approx(-0.001)


def test_with_and_without_a_server_are_two_subjects() -> None:
    names = [source_of(DATA / f"{form}.json").plan.subjects[0].name for form in ("without-totals", "without-transport")]
    assert names == ["openai/gpt-5", "openai/gpt-5 + npx -y @sveltejs/mcp"]


def test_two_files_are_compared_suite_by_suite() -> None:
    report = compare_sources(source_of(DATA / "without-totals.json"), source_of(DATA / "without-transport.json"))
    [pair] = report.pairs
    assert pair.by_id_alone
    assert [(case.case, case.difference) for case in pair.cases] == [("hello-world", -0.5)]


def test_files_are_ranked_together() -> None:
    board = rank_sources([source_of(DATA / f"{form}.json") for form in ("without-totals", "without-transport")])
    assert [entry.summary.subject for entry in board.entries] == ["openai/gpt-5", "openai/gpt-5 + npx -y @sveltejs/mcp"]
    assert board.entries[0].model == "openai/gpt-5"


def test_a_file_without_a_time_has_the_one_in_its_name(tmp_path: Path) -> None:
    file = tmp_path / "result-2024-09-01-10-20-30.json"
    file.write_bytes((DATA / "single-test-bare.json").read_bytes())
    assert read_result(file).metadata.timestamp == "2024-09-01T10:20:30.000Z"
    [record] = source_of(file).records()
    assert record.started == 1725186030.0


def test_results_in_a_strange_order_or_without_a_call_become_calls() -> None:
    content: list[Any] = [
        {"type": "tool-result", "toolCallId": "z", "toolName": "late", "output": 1},
        {"type": "tool-call", "toolCallId": "a", "toolName": "t", "input": {"n": 1}},
        {"type": "tool-result", "toolCallId": "a", "toolName": "t", "output": None},
        {"type": "text", "text": "between"},
        {"type": "tool-call", "toolCallId": "b", "toolName": "t", "input": {"n": 2}},
        {"type": "tool-call", "toolCallId": "b", "toolName": "t", "input": {"n": 3}},
        {"type": "tool-result", "toolCallId": "b", "toolName": "t", "input": {"n": 3}, "output": {}},
    ]
    assert parts_of(content) == (
        ToolCall(name="late", id="z", result=1),
        ToolCall(name="t", id="a", arguments={"n": 1}),
        Text(text="between"),
        ToolCall(name="t", id="b", arguments={"n": 2}),
        ToolCall(name="t", id="b", arguments={"n": 3}, result={}),
    )


def test_a_tool_that_threw_has_an_error_and_blocks_of_an_unknown_kind_are_passed_over() -> None:
    call = {"type": "tool-call", "toolCallId": "a", "toolName": "t", "input": {}}
    source = {"type": "source", "sourceType": "url", "url": "https://example.org"}
    error = {**call, "type": "tool-error", "error": "no such file"}
    assert parts_of([source, call, error]) == (ToolCall(name="t", id="a", arguments={}, error="no such file"),)


def parts_of(content: list[Any]) -> tuple[Part, ...]:
    return read_step(StepResult.model_validate({"content": content})).parts


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_recognised_by_its_first_bytes(form: str) -> None:
    assert ResultFileReader().recognises(DATA / f"{form}.json")


@pytest.mark.parametrize("content", ["", "[]", '{"plan": 1}', '{"metadata": {"other": 1}}', "not json"])
def test_other_json_is_left_to_other_readers(content: str, tmp_path: Path) -> None:
    file = tmp_path / "table.json"
    file.write_text(content)
    assert not ResultFileReader().recognises(file)
    assert not ResultFileReader().recognises(tmp_path)


def changed(*place: str | int, to: Any) -> bytes:
    """The seed's example with one value changed."""
    raw = expected_of("seed")
    *parents, last = place
    target = raw
    for key in parents:
        target = target[key]
    target[last] = to
    return json.dumps(raw).encode()


DEEP = "[" * 5000 + "]" * 5000
USAGE = ("tests", 0, "steps", 0, "usage", "inputTokens")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "EOF"),
        ((DATA / "seed.json").read_bytes()[:1000], "EOF while parsing"),
        (b'{"tests": [' + DEEP.encode() + b"]}", "recursion limit exceeded"),
        (b'{"tests": {}}', r"tests: .*list"),
        (b'{"metadata": {}}', "tests: is missing"),
        (b"[1, 2]", "object"),
        (b"\xff\xfe{}", "line 1 column 1"),
        (changed("tests", 0, "testName", to=5), r"tests\[0\]\.testName: has to be a text \(got 5\)"),
        (changed("tests", 0, "testName", to="a\x1b[31m"), r"tests\[0\]\.testName: .*not a name"),
        (changed("tests", 1, "testName", to="counter"), "tests: testName 'counter' is used more than once"),
        (changed(*USAGE, to="1000"), r"tests\[0\]\.steps\[0\]\.usage\.inputTokens: .*whole number \(got '1000'\)"),
        (changed(*USAGE, to=-1), r"usage\.inputTokens: .*at least 0"),
        (changed(*USAGE, to=10**300), r"usage\.inputTokens: .*(less than|at most)"),
        (changed(*USAGE, to=float("nan")), r"usage\.inputTokens"),
        (changed("tests", 0, "verification", "passed", to="yes"), r"verification\.passed: .*true or false"),
        (changed("tests", 0, "verification", "duration", to=float("inf")), r"verification\.duration"),
        (changed("tests", 0, "steps", 0, "content", 0, "text", to=[]), r"content\[0\]\.text: .*text"),
        (changed("tests", 0, "steps", 0, "content", 2, "input", to=float("nan")), "too large|finite"),
        (changed("tests", 0, "steps", 0, "response", to={"n": [float("inf")]}), r"response\.n: .*too large"),
        (changed("metadata", "model", to="x" * 600), r"metadata\.model: .*500"),
        (changed("metadata", "model", to=""), r"metadata\.model: '' is not a name"),
        (changed("metadata", "timestamp", to="yesterday"), r"metadata\.timestamp: 'yesterday' is not a time"),
        (changed("metadata", "timestamp", to="0001-01-01T00:00:00+23:00"), r"metadata\.timestamp: .* is not a time"),
        (changed("metadata", "mcpTransportType", to="pigeon"), r"metadata\.mcpTransportType: .*'HTTP' or 'StdIO'"),
        (changed("metadata", "totalCost", "totalCost", to="free"), r"metadata\.totalCost\.totalCost: .*number"),
        (changed("metadata", "cacheSimulation", "more", to=float("inf")), r"metadata\.cacheSimulation\.more"),
        (changed("bakeoff", to={"round": 0}), r"bakeoff\."),
        (b'{"steps": [{"content": 5}]}', r"file: steps\[0\]\.content: "),
    ],
)
def test_a_hostile_file_is_refused_with_its_name_and_the_place(data: bytes, words: str, tmp_path: Path) -> None:
    file = tmp_path / "result-2024-12-07-14-30-45.json"
    file.write_bytes(data)
    with pytest.raises(RunFolderError, match=words) as refused:
        _ = source_of(file).plan
    assert str(refused.value).startswith(f"{file} is not a readable result file: ")
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 700


def test_numbers_that_json_has_and_nobody_can_keep_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_bytes(changed("tests", 0, "steps", 0, "response", to={"n": 12345}).replace(b"12345", b"1e999"))
    with pytest.raises(RunFolderError, match=r"response\.n: a number is too large"):
        list(source_of(file).records())


def test_a_file_beyond_all_measure_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    with file.open("wb") as opened:
        opened.write(b'{"tests": [')
        opened.truncate(300 * 1024**2)
    with pytest.raises(RunFolderError, match=r"result\.json has 300 MiB; at most 256 are read"):
        _ = source_of(file).plan


def test_a_file_without_tests_is_read_and_shown(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_text('{"tests": [], "metadata": {"model": "m"}}')
    assert read_again(file) == {"tests": [], "metadata": {"model": "m"}}
    page = write_source_page(source_of(file), tmp_path / "page.html")
    assert "(no tests)" in page.read_text()


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"cut \ud83d", "cut \ufffd"),
        (r"\uDE00 back to front \uD83D\u0041", "\ufffd back to front \ufffdA"),
        (r"whole \ud83d\ude00", "whole \U0001f600"),
        (r"a path \\ud800", "a path \\ud800"),
    ],
)
def test_half_of_a_character_is_replaced(written: str, read: str, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_text('{"tests": [{"testName": "t", "prompt": "' + written + '"}], "metadata": {"model": "m"}}')
    assert read_result(file).tests[0].prompt == read


@pytest.mark.parametrize(
    "step",
    [
        {"content": [], "finishReason": "tool_call", "usage": None, "warnings": None, "response": None},
        {"content": [], "finishReason": "content_filter", "usage": {"inputTokens": 3, "cachedInputTokens": None}},
        {"content": [], "finishReason": "", "usage": {}, "warnings": [], "response": {}},
        {"content": []},
        {"finishReason": "stop", "usage": {"totalTokens": 0}},
    ],
)
def test_a_step_has_neither_more_nor_less_than_it_had(step: Any, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    raw = {"tests": [{"testName": "t", "steps": [step]}], "metadata": {"model": "m"}}
    file.write_text(json.dumps(raw))
    assert read_again(file) == raw


def test_metadata_has_neither_more_nor_less_than_it_had(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    cost = {"inputCost": 1, "outputCost": 0, "totalCost": 1, "inputTokens": 5, "outputTokens": 0}
    cached = {"simulatedCostWithCache": 1, "cacheHits": 0, "cacheWriteTokens": 0, "note": "guessed", "more": [None]}
    about = {"mcpEnabled": True, "model": "m", "pricingKey": None, "totalCost": cost, "cacheSimulation": cached}
    test = {"testName": "t", "prompt": "p"}
    file.write_text(json.dumps({"tests": [{**test, "stars": 5}], "metadata": about, "more": True}))
    assert read_again(file) == {"tests": [test], "metadata": about}
    del about["model"]
    file.write_text(json.dumps({"tests": [test], "metadata": about}))
    assert read_again(file) == {"tests": [test], "metadata": about}


def test_the_file_is_valid_against_its_own_model() -> None:
    assert isinstance(read_result(DATA / "seed.json"), ComponentsResult)


@pytest.mark.parametrize("kind", [[1], {"a": 1}, 3])
def test_a_block_whose_type_is_no_text_is_refused(kind: object) -> None:
    with pytest.raises(ValidationError):
        ContentBlock.model_validate({"type": kind})
