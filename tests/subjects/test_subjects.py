"""The subjects that ship: the fakes do as they are told, and none is handed what it must not see."""

import dataclasses
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from bakeoff.engine.registry import default_registry
from bakeoff.errors import PlanError, UsageError
from bakeoff.plan import Case, Limits, Plan, ScorerSpec, SubjectSpec
from bakeoff.protocols import Needs, Task, Tool
from bakeoff.record import Record, Step, ToolCall, Transcript, Usage
from bakeoff.subjects.controls import ATTACKS, ScriptedAnswer, Submission

CarryOut = Callable[..., Awaitable[list[Record]]]


def plan_for(subject: SubjectSpec, *cases: Case, rounds: int = 1, **more: Any) -> Plan:
    usual: dict[str, Any] = {"scorers": (ScorerSpec(kind="exact"),), "threshold": None}
    asked = cases or (Case(id="c", prompt="?", expected="yes"),)
    return Plan(name="p", cases=asked, subjects=(subject,), rounds=rounds, **{**usual, **more})


def scripted(**options: Any) -> SubjectSpec:
    return SubjectSpec(kind="scripted", name="s", options=options)


def outputs(records: list[Record]) -> list[JsonValue]:
    return [(record.transcript or Transcript()).output for record in records]


# --- scripted -----------------------------------------------------------------------------------------------------


async def test_a_script_answers_by_case_then_by_default(carry_out: CarryOut) -> None:
    cases = [Case(id=name, prompt="?", expected="x") for name in ("a", "b", "c")]
    spec = scripted(answers={"a": "one", "b": {"output": {"n": 2}}}, default="other")
    assert outputs(await carry_out(plan_for(spec, *cases), jobs=1)) == ["one", {"n": 2}, "other"]


async def test_a_list_is_gone_through_by_rounds_and_its_last_answer_stays(carry_out: CarryOut) -> None:
    spec = scripted(answers={"c": ["first", {"output": "second"}]})
    assert outputs(await carry_out(plan_for(spec, rounds=4), jobs=1)) == ["first", "second", "second", "second"]
    assert outputs(await carry_out(plan_for(scripted(default=[])))) == [None]


async def test_a_script_is_read_from_a_file(tmp_path: Path, carry_out: CarryOut) -> None:
    file = tmp_path / "script.json"
    file.write_text(json.dumps({"answers": {"c": "from a file"}}))
    assert outputs(await carry_out(plan_for(scripted(file=str(file))))) == ["from a file"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "cannot be read: No such file or directory"),
        ('{"answers": {"c": {"breaks": "badly"}}}', "answers.c"),
        ("{", "this is not JSON"),
    ],
)
async def test_a_file_that_is_no_script_is_named_before_anything_runs(
    content: str | None, sentence: str, tmp_path: Path, carry_out: CarryOut
) -> None:
    file = tmp_path / "script.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(PlanError) as caught:
        await carry_out(plan_for(scripted(file=str(file))))
    assert f"subject 's' (scripted): script {file}" in str(caught.value)
    assert sentence in str(caught.value)


async def test_an_empty_script_is_refused(carry_out: CarryOut) -> None:
    with pytest.raises(PlanError, match="give it answers, a default, a file or a target"):
        await carry_out(plan_for(scripted()))


async def test_a_case_without_an_answer_is_told_before_anything_runs(carry_out: CarryOut) -> None:
    with pytest.raises(PlanError, match="the script has no answer for it and no default: add one of them"):
        await carry_out(plan_for(scripted(answers={"other": "x"})))


def by_function(task: Task) -> str:
    return f"{task.case_id} {task.round} {task.seed} {task.prompt}"


async def by_async_function(task: Task) -> ScriptedAnswer:
    return ScriptedAnswer(output=[task.case_id], files={"made.txt": "here"})


async def test_a_function_may_write_the_script(carry_out: CarryOut) -> None:
    spec = scripted(target=f"{__name__}:by_function")
    assert outputs(await carry_out(plan_for(spec, rounds=2, seed=5), jobs=1)) == ["c 0 5 ?", "c 1 6 ?"]
    case = Case(id="c", prompt="?", expected="x", collect=("*.txt",))
    (record,) = await carry_out(plan_for(scripted(target=f"{__name__}:by_async_function"), case))
    assert (outputs([record]), record.artefacts) == ([["c"]], {"made.txt": "here"})


@pytest.mark.parametrize(
    ("breaks", "verdict"), [("infra", "infra"), ("subject", "fail"), ("budget", "budget"), ("bug", "infra")]
)
async def test_a_script_breaks_to_order_after_it_has_spent(breaks: str, verdict: str, carry_out: CarryOut) -> None:
    spec = scripted(default={"breaks": breaks, "usage": {"input": 3, "cost": 0.5}})
    (record,) = await carry_out(plan_for(spec, threshold=1.0), retries=0)
    assert (record.verdict, record.spent) == (verdict, Usage(input=3, cost=0.5))


async def test_a_script_hangs_to_order(carry_out: CarryOut) -> None:
    case = Case(id="c", prompt="?", expected="x", limits=Limits(attempt_seconds=0.05))
    (record,) = await carry_out(plan_for(scripted(default={"seconds": 600}), case))
    assert record.verdict == "timeout"


async def test_a_script_writes_files_and_they_are_collected(carry_out: CarryOut) -> None:
    case = Case(id="c", prompt="?", files={"given.py": "0"}, expected="done", collect=("*.py", "sub/**"))
    spec = scripted(default={"output": "done", "files": {"made.py": "1", "sub/deep/x.txt": "2", "not.txt": "3"}})
    (record,) = await carry_out(plan_for(spec, case, threshold=1.0))
    assert record.verdict == "pass"
    assert record.artefacts == {"given.py": "0", "made.py": "1", "sub/deep/x.txt": "2"}
    assert record.prepare is not None


async def test_a_script_calls_tools_and_is_told_of_those_that_are_not_there(carry_out: CarryOut) -> None:
    async def look(arguments: Mapping[str, JsonValue]) -> JsonValue:
        return {"saw": arguments["at"]}

    tool = Tool("look", "Look at something.", {"type": "object"}, look)
    registry = default_registry().with_tools(lambda *_: (tool,))
    spec = scripted(default={"tools": [{"name": "look", "arguments": {"at": "it"}}, {"name": "smell"}]})
    (record,) = await carry_out(plan_for(spec), registry=registry)
    assert (record.transcript or Transcript()).steps == (
        Step(
            parts=(
                ToolCall(name="look", arguments={"at": "it"}, result={"saw": "it"}),
                ToolCall(name="smell", arguments={}, error="no such tool among ['look']"),
            )
        ),
    )


# --- what a subject is given --------------------------------------------------------------------------------------

SECRET = Case(
    id="c",
    prompt="the question",
    files={"visible.txt": "shown"},
    hidden={"test_hidden.py": "HIDDEN-TEST"},
    reference={"answer.py": "HIDDEN-REFERENCE"},
    expected="HIDDEN-EXPECTED",
    tags={"hint": "HIDDEN-TAG"},
)


async def test_a_subject_is_given_nothing_that_is_hidden(carry_out: CarryOut) -> None:
    seen: list[Task] = []
    listed: list[str] = []

    class Curious:
        needs = Needs(workspace=True)

        async def attempt(self, task: Task) -> Transcript:
            seen.append(task)
            done = await task.workspace.run(("sh", "-c", "find . -type f | xargs cat"), seconds=20)
            listed.append(done.stdout.decode())
            return Transcript(output="x")

    registry = default_registry().with_subject("curious", lambda _: Curious())
    await carry_out(plan_for(SubjectSpec(kind="curious", name="s"), SECRET), registry=registry)
    (task,) = seen
    assert {each.name for each in dataclasses.fields(task)} == {
        *("prompt", "case_id", "trial_id", "round", "seed", "limits", "spend", "tools", "resources", "own_workspace"),
        "clock",
        "subject",
        "count",
    }
    assert not any(isinstance(getattr(task, each.name), Case) for each in dataclasses.fields(task))
    assert "HIDDEN" not in repr(
        [getattr(task, each.name) for each in dataclasses.fields(task) if each.name not in ("spend", "count")]
    )
    assert listed == ["shown"]


async def test_asking_for_a_workspace_that_was_not_declared_says_how_to(carry_out: CarryOut) -> None:
    class Forgetful:
        async def attempt(self, task: Task) -> Transcript:
            return Transcript(output=str(task.workspace))

    registry = default_registry().with_subject("forgetful", lambda _: Forgetful())
    (record,) = await carry_out(plan_for(SubjectSpec(kind="forgetful", name="s")), registry=registry, retries=0)
    assert record.failure is not None
    assert "give it `needs = Needs(workspace=True)`" in record.failure.message


# --- nop, oracle, cheat -------------------------------------------------------------------------------------------

TEST = """
import unittest
from solution import add

class Sum(unittest.TestCase):
    def test_small(self): self.assertEqual(add(1, 2), 3)
    def test_large(self): self.assertEqual(add(10**9, 1), 10**9 + 1)

if __name__ == "__main__":
    import sys, xml.etree.ElementTree as tree
    result = unittest.TextTestRunner(verbosity=0).run(unittest.defaultTestLoader.loadTestsFromTestCase(Sum))
    suite = tree.Element("testsuite")
    broken = {test.id().split(".")[-1] for test, _ in result.failures + result.errors}
    for name in ("test_small", "test_large"):
        case = tree.SubElement(suite, "testcase", classname="Sum", name=name)
        if name in broken:
            tree.SubElement(case, "failure")
    tree.ElementTree(suite).write("report.xml")
    sys.exit(not result.wasSuccessful())
"""
SUM = Case(
    id="sum",
    prompt="write add(a, b)",
    files={"solution.py": "def add(a, b):\n    raise NotImplementedError\n"},
    collect=("solution.py", "*.xml", "*.py"),
    hidden={"test_sum.py": TEST},
    reference={"solution.py": "def add(a, b):\n    return a + b\n"},
)
ARGV = ["python3", "-B", "test_sum.py"]
BY_REPORT = ScorerSpec(
    kind="command",
    options={"argv": ARGV, "junit": "report.xml", "tests": ["Sum::test_small", "Sum::test_large"]},
)
BY_EXIT_CODE = ScorerSpec(kind="command", options={"argv": ARGV})


@pytest.fixture(params=["process", "bwrap"])
def sandbox_kind(request: pytest.FixtureRequest, needs_program: Callable[[str], str]) -> str:
    if request.param == "bwrap":
        needs_program("bwrap")
    return str(request.param)


def cheats() -> tuple[SubjectSpec, ...]:
    return tuple(SubjectSpec(kind="cheat", name=name, options={"attack": name}) for name in ATTACKS)


async def test_the_oracle_passes_and_every_other_fails(sandbox_kind: str, carry_out: CarryOut) -> None:
    subjects = (SubjectSpec(kind="oracle", name="oracle"), SubjectSpec(kind="nop", name="nop"), *cheats())
    plan = Plan(name="p", cases=(SUM,), subjects=subjects, scorers=(BY_REPORT,))
    records = {record.subject: record for record in await carry_out(plan, sandbox=sandbox_kind)}
    assert {name: record.verdict for name, record in records.items()} == {
        "oracle": "pass",
        "nop": "fail",
        "exit-early": "fail",
        "replace-tests": "fail",
        "forge-report": "fail",
        "inject-prompt": "fail",
    }
    assert {name for name, record in records.items() if record.bound} == {"oracle", *ATTACKS}


async def test_the_oracle_passes_by_output_and_nop_fails(carry_out: CarryOut) -> None:
    case = Case(id="c", prompt="?", expected={"a": [1]})
    subjects = (SubjectSpec(kind="oracle", name="o"), SubjectSpec(kind="nop", name="n"))
    plan = Plan(name="p", cases=(case,), subjects=subjects, scorers=(ScorerSpec(kind="json"),))
    assert [record.verdict for record in await carry_out(plan, jobs=1)] == ["pass", "fail"]


@pytest.mark.parametrize("attack", ["exit-early", "replace-tests", "forge-report", "inject-prompt"])
async def test_cheats_fail_where_the_exit_code_counts_and_proof_is_asked_for(attack: str, carry_out: CarryOut) -> None:
    cheat = SubjectSpec(kind="cheat", name="cheat", options={"attack": attack})
    oracle = SubjectSpec(kind="oracle", name="oracle")
    check = "proof = input()\nfrom solution import add\nassert add(2, 3) == 5\nprint(proof)\n"
    case = SUM.model_copy(update={"hidden": {"test_sum.py": check}})
    scorer = ScorerSpec(kind="command", options={"argv": ARGV, "proof": True})
    records = await carry_out(Plan(name="p", cases=(case,), subjects=(cheat, oracle), scorers=(scorer,)))
    verdicts = {record.subject: record.verdict for record in records}
    assert verdicts == {"cheat": "fail", "oracle": "pass"}


async def test_an_exit_code_without_proof_can_be_forged_as_the_docs_warn(carry_out: CarryOut) -> None:
    cheat = SubjectSpec(kind="cheat", name="cheat", options={"attack": "exit-early"})
    (record,) = await carry_out(Plan(name="p", cases=(SUM,), subjects=(cheat,), scorers=(BY_EXIT_CODE,)))
    assert record.verdict == "pass"


async def test_a_door_adds_its_own_attacks(carry_out: CarryOut) -> None:
    registry = default_registry().with_attacks({"lie": lambda case: Submission(output=str(case.expected))})
    case = Case(id="c", prompt="?", expected="42")
    spec = SubjectSpec(kind="cheat", name="liar", options={"attack": "lie"})
    (record,) = await carry_out(
        Plan(name="p", cases=(case,), subjects=(spec,), scorers=(ScorerSpec(kind="exact"),)), registry=registry
    )
    assert (record.verdict, record.bound) == ("pass", True)
    with pytest.raises(UsageError, match="no attack 'lie'"):
        default_registry().resolve(Plan(name="p", cases=(case,), subjects=(spec,), scorers=(ScorerSpec(kind="exact"),)))
