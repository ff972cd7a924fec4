"""The scorers that ship, by tables."""

import asyncio
import re
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from bakeoff._kernel.threads import call
from bakeoff.engine.registry import default_registry
from bakeoff.errors import GraderError
from bakeoff.plan import Case, Limits, ScorerSpec
from bakeoff.protocols import Sandbox, ScoreInput, Workspace
from bakeoff.record import Record, Score, Transcript
from bakeoff.sandbox import choose_sandbox
from bakeoff.sandbox.places import graded_files, open_workspace
from bakeoff.scorers import Regex, function_scorer
from bakeoff.storage.journal import JournalWriter
from bakeoff.storage.redaction import Redactor
from bakeoff.toolchains.command_reports import read_junit


def no_workspace() -> AbstractAsyncContextManager[Workspace]:
    raise AssertionError("this scorer needs no workspace")


async def score(kind: str, output: JsonValue, expected: JsonValue, **options: JsonValue) -> Score:
    scorer = default_registry().scorers[kind](ScorerSpec(kind=kind, options=options))
    given = ScoreInput(Case(id="c", prompt="?", expected=expected), Transcript(output=output), {}, no_workspace)
    scored = await call(scorer, given)
    assert isinstance(scored, Score)
    assert scored.name == scorer.name
    return scored


# --- text ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "output", "expected", "options", "value"),
    [
        ("exact", "yes", "yes", {}, 1.0),
        ("exact", " yes\n", "yes", {}, 1.0),
        ("exact", " yes\n", "yes", {"strip": False}, 0.0),
        ("exact", "Yes", "yes", {}, 0.0),
        ("exact", "STRASSE", "straße", {"ignore_case": True}, 1.0),
        ("exact", "yes and no", "yes", {}, 0.0),
        ("exact", None, "yes", {}, 0.0),
        ("exact", None, "", {}, 1.0),
        ("exact", 3, "3", {}, 1.0),
        ("exact", {"a": 1}, {"a": 1}, {}, 1.0),
        ("exact", "anything", None, {}, None),
        ("contains", "yes and no", "yes", {}, 1.0),
        ("contains", "no", "yes", {}, 0.0),
        ("contains", "a b", ["a", "b", "c", "d"], {}, 0.5),
        ("contains", "YES", "yes", {"ignore_case": True}, 1.0),
        ("contains", None, "yes", {}, 0.0),
        ("contains", "anything", None, {}, None),
        ("contains", "yes", " yes ", {}, 1.0),
        ("contains", "yes", " yes ", {"strip": False}, 0.0),
        ("regex", "order 66", r"\d{2}", {}, 1.0),
        ("regex", "order", r"\d", {}, 0.0),
        ("regex", "ORDER", "order", {"ignore_case": True}, 1.0),
        ("regex", "x", "ignored", {"pattern": "^x$"}, 1.0),
        ("regex", "x", None, {"pattern": "^y$"}, 0.0),
        ("regex", "X", None, {"pattern": "x", "ignore_case": True}, 1.0),
        ("regex", "anything", None, {}, None),
    ],
)
async def test_text_is_compared(
    kind: str, output: JsonValue, expected: JsonValue, options: dict[str, Any], value: float | None
) -> None:
    scored = await score(kind, output, expected, **options)
    assert scored.value == value
    assert bool(scored.reason) is (value != 1.0)


@pytest.mark.parametrize("expected", ["", "  ", [], ["a", ""]])
async def test_an_expectation_that_everything_fulfils_is_the_graders_fault(expected: JsonValue) -> None:
    with pytest.raises(GraderError, match="case 'c': every output contains an empty text"):
        await score("contains", "a", expected)


async def test_a_pattern_of_a_case_that_is_none_is_the_graders_fault() -> None:
    with pytest.raises(GraderError, match=r"case 'c': expected '\(' is not a regular expression: missing \)"):
        await score("regex", "a", "(")


async def test_output_made_for_a_weak_pattern_holds_nobody_up() -> None:
    searching = asyncio.ensure_future(score("regex", "a" * 60 + "b", r"^(a|a)*$"))
    for _ in range(10):  # the loop goes on meanwhile
        await asyncio.sleep(0.01)
    assert not searching.done()
    searching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await searching


async def test_a_search_that_takes_too_long_scores_0_with_the_reason() -> None:
    scorer = Regex(re.compile("^(a|a)*$"), seconds=0.1)
    scored = await scorer(ScoreInput(Case(id="c", prompt="?"), Transcript(output="a" * 60 + "b"), {}, no_workspace))
    assert (scored.value, scored.reason) == (0.0, "the search for '^(a|a)*$' was stopped after 0.1 s")


# --- JSON ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "expected", "match", "value", "reason"),
    [
        ('{"a": 1, "b": [1, 2]}', {"b": [1, 2], "a": 1}, "equal", 1.0, ""),
        ({"a": 1}, {"a": 1}, "equal", 1.0, ""),
        ("1.0", 1, "equal", 1.0, ""),
        ("true", 1, "equal", 0.0, "$ is True, not 1"),
        ("1", True, "equal", 0.0, "$ is 1, not True"),
        ('"1"', 1, "equal", 0.0, "$ is '1', not 1"),
        ("null", [], "equal", 0.0, "$ is None, not []"),
        ('{"a": 1, "x": 2}', {"a": 1}, "equal", 0.0, "$.x is not expected"),
        ('{"a": 1, "x": 2}', {"a": 1}, "subset", 1.0, ""),
        ('{"a": {"b": [{"c": 1, "x": 2}]}}', {"a": {"b": [{"c": 1}]}}, "subset", 1.0, ""),
        ('{"a": {"b": [{"c": 1}]}}', {"a": {"b": [{"c": 2}]}}, "subset", 0.0, "$.a.b[0].c is 1, not 2"),
        ("{}", {"a": 1}, "subset", 0.0, "$.a is missing"),
        ("[1, 2]", [2, 1], "equal", 0.0, "$[0] is 1, not 2"),
        ("[1, 2, 3]", [1, 2], "subset", 0.0, "$ has 3 items, not 2"),
        ("[[1]]", [{"a": 1}], "equal", 0.0, "$[0] is [1], not {'a': 1}"),
    ],
)
async def test_json_is_compared(output: JsonValue, expected: JsonValue, match: str, value: float, reason: str) -> None:
    scored = await score("json", output, expected, match=match)
    assert (scored.value, scored.reason) == (value, reason)


@pytest.mark.parametrize(
    ("output", "value", "fenced"),
    [
        ('Here you are:\n```json\n{"a": 1}\n```\nEnjoy!', 1.0, True),
        ('```\n{"a": 1}\n```', 1.0, True),
        ('```json\n{"a": 2}\n```\n```json\n{"a": 1}\n```', 0.0, True),
        ('```json\n{"a": 1}', 0.0, False),
        ('```python\n{"a": 1}\n```', 0.0, False),
        ("```json\n\n```", 0.0, False),
        ("", 0.0, False),
        ("[" * 100_000, 0.0, False),
    ],
)
async def test_json_is_taken_out_of_a_code_fence(output: str, value: float, fenced: bool) -> None:
    scored = await score("json", output, {"a": 1})
    assert (scored.value, scored.metadata) == (value, {"fenced": True} if fenced else {})
    assert value or "$" in scored.reason or "the output is not JSON" in scored.reason


async def test_json_without_an_expectation_is_silent() -> None:
    assert (await score("json", "{}", None)).value is None


async def test_output_made_to_be_slow_to_read_is_not() -> None:
    started = time.process_time()
    assert (await score("json", "```\nx" * 200_000, {"a": 1})).value == 0.0
    assert time.process_time() - started < 20


# --- function -----------------------------------------------------------------------------------------------------


def half(given: ScoreInput) -> float:
    return 0.5


async def full(given: ScoreInput) -> bool:
    return given.transcript.output == "x"


async def test_a_function_of_the_users_scores_under_its_own_name() -> None:
    given = ScoreInput(Case(id="c", prompt="?"), Transcript(output="x"), {}, no_workspace)
    scorers = [default_registry().scorers["function"](function_scorer(function)) for function in (half, full)]
    assert [(scorer.name, await call(scorer, given)) for scorer in scorers] == [("half", 0.5), ("full", True)]


# --- command ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["process", "bwrap"])
def sandbox(request: pytest.FixtureRequest, needs_program: Callable[[str], str]) -> Sandbox:
    if request.param == "bwrap":
        needs_program("bwrap")
    return choose_sandbox(request.param)


Grade = Callable[..., Any]


@pytest.fixture
def grade(sandbox: Sandbox) -> Grade:
    """Run a shell script as the command, or another one, over what the subject handed in."""

    async def grade(script: str, *, argv: list[str] | None = None, solution: str = "", **options: Any) -> Score:
        case = Case(id="c", prompt="?", hidden={"test.sh": script})
        artefacts = {"solution.sh": solution}

        def pristine() -> AbstractAsyncContextManager[Workspace]:
            return open_workspace(sandbox, graded_files(case, artefacts), Limits())

        spec = ScorerSpec(kind="command", options={"argv": argv or ["sh", "test.sh"], **options})
        scored = await call(
            default_registry().scorers["command"](spec), ScoreInput(case, Transcript(), artefacts, pristine)
        )
        assert isinstance(scored, Score)
        return scored

    return grade


@pytest.mark.parametrize(
    ("script", "value", "reason"),
    [
        ("exit 0", 1.0, ""),
        ("echo fine; exit 0", 1.0, ""),
        ("echo one; echo two; echo; exit 3", 0.0, "exit code 3: two"),
        ("exit 1", 0.0, "exit code 1: no output"),
        ("kill -9 $$", 0.0, "exit code -9: no output"),
        ("printf '\\377\\n' >&2; exit 2", 0.0, "exit code 2: \ufffd"),
        (". ./solution.sh", 0.0, "exit code 127: no output"),
    ],
)
async def test_the_exit_code_decides(script: str, value: float, reason: str, grade: Grade) -> None:
    scored = await grade(script, solution="exit 127")
    assert (scored.value, scored.reason) == (value, reason)


async def test_a_program_that_is_not_there_is_the_graders_fault(grade: Grade) -> None:
    with pytest.raises(GraderError, match="'no-such-program' was not found"):
        await grade("", argv=["no-such-program"])


async def test_a_program_that_the_subject_did_not_hand_in_is_its_own_fault(grade: Grade) -> None:
    assert (await grade("", argv=["./handed-in"])).value == 0.0


@pytest.mark.parametrize(
    ("script", "options", "stop"),
    [("sleep 60", {"seconds": 0.3}, "timeout"), ("yes", {}, "output")],
)
async def test_a_limit_ends_the_command_and_the_score_is_0(
    script: str, options: dict[str, Any], stop: str, grade: Grade
) -> None:
    scored = await grade(script, **options)
    assert (scored.value, scored.reason, scored.metadata["stop"]) == (0.0, f"ended by the {stop} limit", stop)
    assert len(str(scored.metadata["output"])) <= 2000


async def test_a_case_without_hidden_files_is_not_scored() -> None:
    scored = await score("command", "x", None, argv=["true"])
    assert (scored.value, scored.reason) == (None, "the case has no hidden files to grade with")


def report(*tests: str) -> str:
    return f"<testsuites><testsuite>{''.join(tests)}</testsuite></testsuites>"


GOOD, ALSO = '<testcase classname="T" name="a"/>', '<testcase classname="T" name="b"/>'
FAILED = '<testcase classname="T" name="b"><failure message="no"/></testcase>'
ERROR = '<testcase classname="T" name="b"><error/></testcase>'
SKIPPED = '<testcase classname="T" name="b"><skipped/></testcase>'
LAUGHS = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><testsuite><testcase name="&b;"/></testsuite>'


@pytest.mark.parametrize(
    ("xml", "exit_code", "value", "reason"),
    [
        (report(GOOD, ALSO), 0, 1.0, ""),
        (report(GOOD, FAILED), 1, 0.5, "not passed: T::b"),
        (report(GOOD, ERROR), 1, 0.5, "not passed: T::b"),
        (report(GOOD, SKIPPED), 0, 0.5, "not passed: T::b"),
        (report(GOOD, FAILED), 0, 0.5, "not passed: T::b"),
        (report(GOOD, ALSO), 1, 0.0, "every test is reported as passed, but the exit code is 1"),
        (report(GOOD), 0, 0.0, "other tests were reported than T::a, T::b"),
        (report(GOOD, ALSO, ALSO), 0, 0.0, "other tests were reported than T::a, T::b"),
        (report(GOOD, '<testcase classname="T" name="c"/>'), 0, 0.0, "other tests were reported than T::a, T::b"),
        (report(), 0, 0.0, "other tests were reported than T::a, T::b"),
        (LAUGHS, 0, 0.0, "report.xml is not a JUnit report: it declares entities"),
        ("all tests passed", 0, 0.0, "report.xml is not a JUnit report: syntax error: line 1, column 0"),
        ("", 0, 0.0, "report.xml is not a JUnit report: no element found: line 1, column 0"),
        (None, 0, 0.0, "no report.xml was written; exit code 0: no output"),
    ],
)
async def test_a_junit_report_decides_but_is_not_believed_blindly(
    xml: str | None, exit_code: int, value: float, reason: str, grade: Grade
) -> None:
    script = "" if xml is None else f"cat > report.xml <<'END'\n{xml}\nEND\n"
    if xml == "":
        script = ": > report.xml\n"
    scored = await grade(f"{script}exit {exit_code}", junit="report.xml", tests=["T::a", "T::b"])
    assert (scored.value, scored.reason) == (value, reason)


async def test_without_names_a_report_of_no_tests_is_no_pass(grade: Grade) -> None:
    scored = await grade("echo '<testsuite/>' > report.xml", junit="report.xml")
    assert (scored.value, scored.reason) == (0.0, "no test ran")


@pytest.mark.parametrize(
    "script", ["ln -s /etc/passwd report.xml", "mkdir report.xml", "mkfifo report.xml", "printf '\\377' > report.xml"]
)
async def test_a_report_that_is_no_plain_text_file_is_no_report(script: str, grade: Grade) -> None:
    scored = await grade(script, junit="report.xml")
    assert (scored.value, scored.reason) == (0.0, "no report.xml was written; exit code 0: no output")


def test_a_huge_report_is_not_read() -> None:
    with pytest.raises(ValueError, match="characters, more than 16777216"):
        read_junit("<testsuite>" + " " * 17_000_000)


def test_a_deep_report_is_read_without_harm() -> None:
    depth = 50_000
    [test] = read_junit("<a>" * depth + '<testcase name="x"/>' + "</a>" * depth)
    assert (test.name, test.state) == ("x", "passed")


def test_names_of_tests_are_taken_as_they_are() -> None:
    xml = report('<testcase name="a::b"/>', "<testcase/>", '<testcase classname="&lt;b&gt;" name="é"/>')
    assert [(test.name, test.state) for test in read_junit(xml, "::")] == [
        ("a::b", "passed"), ("", "passed"), ("<b>::é", "passed"),
    ]  # fmt: skip


async def cancel_its_own_task(given: ScoreInput) -> float:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)
    return 1.0


async def test_a_function_that_cancels_its_own_task_cancels_no_task_of_ours() -> None:
    scorer = default_registry().scorers["function"](function_scorer(cancel_its_own_task))
    case = Case(id="c", prompt="?")
    with pytest.raises(asyncio.CancelledError):
        await call(scorer, ScoreInput(case, Transcript(), {}, no_workspace))
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


KEY = "".join(f"{number:x}Zq" for number in range(1000, 1040))


@pytest.mark.parametrize(
    ("script", "options"),
    [
        (f"printf %s {KEY}; printf '%01990d' 0; exit 1", {}),  # cut where the output is shortened
        (f"printf %s {KEY}; printf '%0490d' 0; exit 1", {}),  # where the last line is
        (f"printf '%01048516d' 0; printf %s {KEY}; echo done >&2; sleep 9", {}),  # at the limit of the output
    ],
)
async def test_a_key_that_is_cut_in_the_output_is_not_in_the_journal(
    script: str, options: dict[str, Any], grade: Grade, make_record: Callable[..., Record], tmp_path: Path
) -> None:
    record = make_record(scores=(await grade(script, **options),))
    with JournalWriter(tmp_path / "journal.jsonl", Redactor({"K": KEY})) as journal:
        journal.append_record(record)
    written = (tmp_path / "journal.jsonl").read_text()
    assert [KEY[at : at + 8] for at in range(len(KEY) - 8) if KEY[at : at + 8] in written] == []
    assert "[redacted K]" in written
