"""The page of a trial says why it did not pass."""

import re
from pathlib import Path
from typing import Any

import pytest

from bakeoff.plan import Case, Grading, SubjectSpec
from bakeoff.record import TESTS, Record, Score, Step, Text, ToolCall, Transcript
from bakeoff.report.render.html.detail import record_detail
from bakeoff.report.render.html.run_page import write_run_page

from ...runs import plan_of, record_of, write_run

CASE = Case(
    id="pair",
    prompt="Add.",
    files={"pair.py": "def add(a, b):\n    raise NotImplementedError\n", "same.py": "X = 1\n"},
    grading=Grading(runner="pytest", solution=("pair.py",), tests=("pair_test.py",), seconds=5),
)


def detail(value: float = 0.0, **more: Any) -> dict[str, Any]:
    record: Record = record_of(plan_of(1, ["a"]).trial(0), value, **more)
    return record_detail(record, CASE)


def score(**metadata: Any) -> tuple[Score, ...]:
    return (Score(name="exercise", value=0.0, reason="wrong", metadata=metadata),)


def test_tests_are_listed_one_by_one_with_failed_ones_first_and_are_not_repeated_as_data() -> None:
    tests = [{"name": "t1", "passed": True}, {"name": "t2", "passed": False, "message": "1 != 2", "hidden": True}]
    shown = detail(scores=score(**{TESTS: tests}, more=1))
    assert shown["tests"] == [{"name": "t2", "message": "1 != 2", "hidden": True}, {"name": "t1", "passed": True}]
    assert TESTS not in shown["scores"][0]["about"]


@pytest.mark.parametrize(
    "metadata",
    [
        {"verification": {"failedTests": [{"fullName": "A > t", "errorMessage": "no"}]}},
        {"exercise": {"failedTests": ["A > t"]}},
    ],
)
def test_of_a_result_file_the_failed_tests_are_known(metadata: dict[str, Any]) -> None:
    [test] = detail(scores=score(**metadata))["tests"]
    assert test["name"] == "A > t"


@pytest.mark.parametrize("anything", [7, "x", [1], [{"name": None}], {"a": 1}])
def test_a_scorer_that_puts_anything_there_harms_nothing(anything: Any) -> None:
    assert "tests" not in detail(scores=score(**{TESTS: anything}))


def test_the_answer_is_shown_with_its_changes_to_the_start() -> None:
    answer = {"pair.py": "def add(a, b):\n    return a + b\n", "same.py": "X = 1\n", "new.py": "Y = 2\n"}
    shown = detail(artefacts=answer)
    assert shown["files"] == answer
    assert shown["changes"]["pair.py"].splitlines()[-2:] == ["-    raise NotImplementedError", "+    return a + b"]
    assert shown["changes"]["same.py"] == ""
    assert "new.py" not in shown["changes"]


def test_tests_that_were_left_as_they_are_were_not_handed_in() -> None:
    case = CASE.model_copy(update={"files": {**CASE.files, "pair_test.py": "assert add(1, 2) == 3\n"}})
    kept = {"pair.py": "add = sum\n", "pair_test.py": "assert add(1, 2) == 3\n"}
    trial = plan_of(1, ["a"]).trial(0)
    assert set(record_detail(record_of(trial, artefacts=kept), case)["files"]) == {"pair.py"}
    changed = {**kept, "pair_test.py": "assert True\n"}
    assert set(record_detail(record_of(trial, artefacts=changed), case)["files"]) == {"pair.py", "pair_test.py"}


def test_the_reference_that_a_control_hands_in_is_not_shown() -> None:
    case = CASE.model_copy(update={"reference": {"pair.py": "def add(a, b):\n    return a + b\n"}})
    oracle = record_of(plan_of(1, ["a"]).trial(0), artefacts=dict(case.reference), bound=True)
    shown = record_detail(oracle, case)
    assert shown["files"] == {"pair.py": "(the reference, which is not shown)"}
    assert "return a + b" not in str(shown)


def test_a_component_is_what_its_tool_was_given_first() -> None:
    calls = tuple(
        ToolCall(name=name, arguments={"content": content}, result={}, id=content, error=error)
        for name, content, error in (
            ("TestComponent", "draft", None),
            ("ResultWrite", "refused", "not a text"),
            ("ResultWrite", "first", None),
            ("ResultWrite", "second", None),
        )
    )
    shown = detail(transcript=Transcript(steps=(Step(parts=calls),)))
    assert shown["files"] == {"pair.py": "first"}


def test_the_last_lines_of_an_agents_stderr_are_shown_unless_it_passed() -> None:
    lines = "\n".join(f"line {number}" for number in range(50))
    said = (Text(text="printed:\nhello"), Text(text=f"printed to stderr:\n{lines}\n"))
    transcript = Transcript(steps=(Step(parts=said),))
    shown = detail(transcript=transcript)["stderr"].splitlines()
    assert (len(shown), shown[0], shown[-1]) == (20, "line 30", "line 49")
    assert "stderr" not in detail(1.0, transcript=transcript)


def test_the_page_has_badges_for_what_scores_depend_on(tmp_path: Path) -> None:
    specs = (
        SubjectSpec(kind="agent", name="m + svelte", options={"mcp": ["http:https://secret@mcp"]}),
        SubjectSpec(kind="cli-agent", name="claude opus"),
    )
    plan = plan_of(1, ["a"]).with_changes(subjects=specs).from_origin(checkout="track", commit="a" * 40, track="go")
    versions = Transcript(metadata={"agent": {"version": "2.1.0"}, "replayed": True})
    kept = Transcript(metadata={"recorded": True})
    records = [record_of(plan.trial(0), transcript=kept), record_of(plan.trial(1), transcript=versions)]
    page = write_run_page(write_run(tmp_path / "run", plan, records)).read_text()
    shown = re.findall(r'<span class="badge fact">(.*?)</span>', page)
    assert shown == [
        "go: track at aaaaaaaaaa",
        "MCP: svelte",
        "claude opus 2.1.0",
        "1 of 2 replayed",
        "1 of 2 recorded",
    ]
