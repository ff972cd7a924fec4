"""Taking a run up again: what is skipped, what is done again, and what is never paid for twice."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from bakeoff._kernel.imports import command_revision
from bakeoff.doors.eval.door import EvalDoor
from bakeoff.engine.registry import Registry, default_registry
from bakeoff.engine.run_control import RunControl
from bakeoff.errors import InfraError, RunFolderError, SubjectError, UsageError
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.protocols import ScoreInput, Task
from bakeoff.record import Record, Transcript, Usage
from bakeoff.storage.journal import SpentTokens
from bakeoff.storage.run_folder import RunFolder, run_folders

CarryOut = Callable[..., Awaitable[list[Record]]]


class Bench:
    """One subject and one scorer whose behaviour can be changed between two processes of a run."""

    name = "judge"

    def __init__(self) -> None:
        self.attempts: list[str] = []
        self.scorings: list[str] = []
        self.errors: dict[str, Exception] = {}
        self.score: Any = 1.0
        self.said = ""
        self.usage = Usage()
        self.meanwhile: Callable[[Task], Awaitable[None]] | None = None

    @property
    def registry(self) -> Registry:
        return default_registry().with_subject("bench", lambda _: self).with_scorer("judge", lambda _: self)

    async def attempt(self, task: Task) -> Transcript:
        self.attempts.append(task.case_id)
        if self.meanwhile:
            await self.meanwhile(task)
        if self.usage != Usage():
            task.spend(self.usage)
        if task.case_id in self.errors:
            raise self.errors[task.case_id]
        return Transcript(output=f"answer {len(self.attempts)}{self.said}", usage=self.usage)

    def __call__(self, given: ScoreInput) -> Any:
        self.scorings.append(given.case.id)
        if isinstance(self.score, Exception):
            raise self.score
        return self.score

    def forget(self) -> None:
        self.attempts.clear()
        self.scorings.clear()


@pytest.fixture
def bench() -> Bench:
    return Bench()


def plan_of(*cases: Case, **more: Any) -> Plan:
    usual: dict[str, Any] = {
        "subjects": (SubjectSpec(kind="bench", name="s"),),
        "scorers": (ScorerSpec(kind="judge"),),
    }
    asked = cases or tuple(Case(id=name, prompt="?") for name in ("a", "b", "c"))
    return Plan(name="p", cases=asked, **{**usual, **more})


def folder_of(tmp_path: Path) -> RunFolder:
    (folder,) = run_folders(tmp_path / "results")
    return folder


@pytest.fixture
def go(tmp_path: Path, bench: Bench, carry_out: CarryOut) -> CarryOut:
    """Run in the one run folder of this test, a new one the first time."""

    async def go(plan: Plan | None = None, **options: Any) -> list[Record]:
        folders = run_folders(tmp_path / "results")
        folder = folders[0].path if folders else None
        given = {"retries": 0, "jobs": 1, "folder": folder, **options}
        return await carry_out(plan or plan_of(), **{"registry": bench.registry, **given})

    return go


async def test_what_is_finished_is_not_done_again(tmp_path: Path, bench: Bench, go: CarryOut) -> None:
    bench.errors["b"] = SubjectError("wrong")
    first = await go()
    bench.forget()
    assert await go() == []
    assert (bench.attempts, bench.scorings) == ([], [])
    assert list(folder_of(tmp_path).latest_records(plan_of())) == first[::-1]


async def test_a_program_does_not_go_on_with_another_version_of_a_script(
    tmp_path: Path, bench: Bench, go: CarryOut
) -> None:
    script, argv = tmp_path / "answer.py", [sys.executable, "answer.py"]
    script.write_text("print('yes')")
    options: dict[str, Any] = {"argv": argv, "folder": str(tmp_path), "sandbox": "none"}

    def planned() -> Plan:
        spec = SubjectSpec(kind="command", name="s", options=options, revision=command_revision(argv, tmp_path))
        return plan_of(subjects=(spec,))

    plan = planned()
    known = {"registry": EvalDoor().registry(plan, RunOptions()).with_scorer("judge", lambda _: bench)}
    assert len(await go(plan, **known)) == 3
    script.write_text("print('no')")
    with pytest.raises(UsageError, match=r"subject 's' \(command\): changed since the run began"):
        await go(plan, **known)
    assert await go(plan, **known, rescore_only=True) == []
    assert len(await go(planned(), **known)) == 3, "a new subject is tried from the start"


async def test_the_control_knows_how_many_were_finished_before(bench: Bench, go: CarryOut) -> None:
    bench.errors["b"] = InfraError("down")
    await go()
    control = RunControl()
    await go(control=control)
    assert control.finished_before == 2


async def test_infra_is_tried_again(tmp_path: Path, bench: Bench, go: CarryOut) -> None:
    bench.errors["b"] = InfraError("down")
    assert [record.verdict for record in await go()] == ["pass", "infra", "pass"]
    bench.errors.clear()
    bench.forget()
    assert [(record.case, record.verdict) for record in await go()] == [("b", "pass")]
    assert bench.attempts == ["b"]
    assert sorted(record.verdict for record in folder_of(tmp_path).latest_records(plan_of())) == ["pass"] * 3


async def test_a_broken_grader_grades_again_without_a_new_attempt(bench: Bench, go: CarryOut) -> None:
    bench.score = ZeroDivisionError("bug")
    before = await go()
    assert {record.verdict for record in before} == {"grader"}
    bench.score = 1.0
    bench.forget()
    after = await go()
    assert [record.verdict for record in after] == ["pass"] * 3
    assert [(record.transcript, record.attempt) for record in after] == [(r.transcript, r.attempt) for r in before]
    assert (bench.attempts, bench.scorings) == ([], ["a", "b", "c"])


@pytest.mark.parametrize(
    "change",
    [
        {"scorers": (ScorerSpec(kind="judge", revision="2"),)},
        {"threshold": 0.5},
        {"cases": tuple(Case(id=name, prompt="?", expected="x", hidden={"t": "1"}) for name in ("a", "b", "c"))},
    ],
)
async def test_what_only_graders_notice_is_scored_again_on_the_recorded_attempt(
    change: dict[str, Any], tmp_path: Path, bench: Bench, go: CarryOut
) -> None:
    bench.usage = Usage(input=5, cost=0.5)
    before = await go()
    bench.forget()
    bench.score = 0.5
    plan = plan_of().model_copy(update=change)
    after = await go(Plan.model_validate(plan.model_dump()))
    assert [record.value for record in after] == [0.5] * 3
    assert (bench.attempts, bench.scorings) == ([], ["a", "b", "c"])
    assert [record.transcript for record in after] == [record.transcript for record in before]
    assert [record.spent for record in after] == [Usage(input=5, cost=0.5)] * 3
    spent = [entry for entry in folder_of(tmp_path).entries() if isinstance(entry, SpentTokens)]
    assert spent[-1].total == Usage(input=15, cost=1.5)
    bench.forget()
    assert await go(Plan.model_validate(plan.model_dump())) == []


async def test_an_edited_case_is_a_new_one(tmp_path: Path, bench: Bench, go: CarryOut) -> None:
    await go()
    bench.forget()
    cases = (Case(id="a", prompt="another question"), Case(id="b", prompt="?"))
    records = await go(plan_of(*cases))
    assert [record.case for record in records] == bench.attempts == ["a"]
    assert len(list(folder_of(tmp_path).latest_records(plan_of(*cases)))) == 2
    assert folder_of(tmp_path).read_plan() == plan_of(*cases)


async def test_rescore_only_makes_no_attempts(bench: Bench, go: CarryOut) -> None:
    bench.errors["b"] = InfraError("down")
    await go()
    bench.forget()
    records = await go(plan_of(threshold=0.1), rescore_only=True)
    assert [record.case for record in records] == bench.scorings == ["a", "c"]
    assert bench.attempts == []


async def test_rescore_all_scores_again_what_has_not_changed(bench: Bench, go: CarryOut) -> None:
    bench.errors["b"] = SubjectError("nothing to score")
    await go()
    bench.forget()
    bench.score = 0.0
    records = await go(rescore_only=True, rescore_all=True)
    assert [(record.case, record.verdict) for record in records] == [("a", "fail"), ("c", "fail")]
    assert (bench.attempts, bench.scorings) == ([], ["a", "c"])


async def test_a_limit_counts_what_earlier_processes_spent(bench: Bench, go: CarryOut) -> None:
    bench.usage = Usage(input=10, cost=1.0)
    first = await go(max_cost=2.0)
    assert [record.verdict for record in first] == ["pass", "budget", "budget"]
    bench.forget()
    assert [record.verdict for record in await go(max_cost=2.0)] == ["budget", "budget"]
    assert bench.attempts == []
    more = await go(max_cost=100.0)
    assert [record.verdict for record in more] == ["pass", "pass"]
    assert [record.spent.cost for record in more] == [2.0, 1.0]  # the one that was cut short counts too


async def test_the_spending_of_every_process_on_a_trial_is_in_its_record(bench: Bench, go: CarryOut) -> None:
    bench.usage = Usage(input=10, cost=1.0)
    bench.errors["b"] = InfraError("down")
    await go()
    await go()
    bench.errors.clear()
    (record,) = await go()
    assert record.spent == Usage(input=30, cost=3.0)


async def test_an_attempt_is_never_covered_by_a_limit_that_came_later(
    tmp_path: Path, bench: Bench, go: CarryOut
) -> None:
    bench.usage = Usage(input=10, cost=1.0)
    before = await go()
    bench.forget()
    assert await go(plan_of(threshold=0.5), max_cost=1.0) == []
    assert bench.scorings == []
    assert list(folder_of(tmp_path).latest_records(plan_of())) == before[::-1]
    assert list(folder_of(tmp_path).latest_records(plan_of(threshold=0.5))) == [], "not scored by that plan yet"


SPENDER = """
import asyncio, os, sys
from pathlib import Path
from bakeoff.engine.registry import default_registry
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.record import Usage
from bakeoff.engine.run import run

class Spender:
    async def attempt(self, task):
        task.spend(Usage(input=7, cost=0.75))
        print("spent", flush=True)
        await asyncio.Event().wait()

async def main():
    case = Case(id="a", prompt="?", expected="x")
    plan = Plan(name="p", cases=(case,), subjects=(SubjectSpec(kind="bench", name="s"),),
                scorers=(ScorerSpec(kind="exact"),))
    registry = default_registry().with_subject("bench", lambda _: Spender())
    async for _ in run(plan, RunOptions(results=Path(sys.argv[1])), registry=registry):
        pass

asyncio.run(main())
"""


async def test_what_a_killed_trial_spent_counts_when_the_run_is_taken_up_again(
    tmp_path: Path, bench: Bench, go: CarryOut
) -> None:
    process = subprocess.Popen([sys.executable, "-c", SPENDER, tmp_path / "results"], stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "spent\n"
        async with asyncio.timeout(20):
            while not any(isinstance(entry, SpentTokens) for entry in folder_of(tmp_path).entries()):
                await asyncio.sleep(0.001)
        process.kill()
    plan = plan_of(Case(id="a", prompt="?"), scorers=(ScorerSpec(kind="judge"),))
    assert [record.verdict for record in await go(plan, max_cost=0.75)] == ["budget"]
    bench.usage = Usage(input=1, cost=0.25)
    (record,) = await go(plan)
    assert (record.verdict, record.spent) == ("pass", Usage(input=8, cost=1.0))


async def test_a_damaged_record_is_done_again(tmp_path: Path, bench: Bench, go: CarryOut) -> None:
    await go()
    journal = folder_of(tmp_path).journal_file
    lines = journal.read_bytes().splitlines(keepends=True)
    place = next(number for number, line in enumerate(lines) if b'"case":"b"' in line)
    lines[place] = b"#" + lines[place]
    journal.write_bytes(b"".join(lines))
    bench.forget()
    assert [record.case for record in await go()] == bench.attempts == ["b"]


async def test_a_run_of_a_newer_bakeoff_is_refused_instead_of_paid_for_again(
    tmp_path: Path, bench: Bench, go: CarryOut
) -> None:
    await go()
    folder = folder_of(tmp_path)
    before = folder.journal_file.read_bytes() + json.dumps({"type": "record", "v": 9, "record": {}}).encode() + b"\n"
    folder.journal_file.write_bytes(before)
    bench.forget()
    with pytest.raises(
        RunFolderError, match=r"line \d+: schema 9 is newer than 2, the newest this bakeoff knows: upgrade bakeoff"
    ):
        await go()
    assert (bench.attempts, folder.journal_file.read_bytes()) == ([], before)


async def test_a_plan_that_cannot_be_written_is_said_so(tmp_path: Path, bench: Bench, go: CarryOut) -> None:
    await go()
    plan_file = folder_of(tmp_path).plan_file
    folder = plan_file.parent
    plan_file.unlink()
    plan_file.mkdir()
    with pytest.raises(RunFolderError, match=r"plan\.json cannot be written: Is a directory"):
        await go(folder=folder)


async def test_two_processes_cannot_go_on_with_one_run(tmp_path: Path, bench: Bench, go: CarryOut) -> None:
    await go()
    folder = folder_of(tmp_path)
    assert not folder.is_being_written()
    refused: list[str] = []

    async def second(task: Task) -> None:
        assert folder.is_being_written()
        with pytest.raises(RunFolderError, match="is being written: stop it before you delete it"):
            folder.delete()
        with pytest.raises(RunFolderError, match="another process is writing run"):
            await go()
        refused.append(task.case_id)

    bench.meanwhile = second
    await go(plan_of(Case(id="new", prompt="?")))
    assert refused == ["new"]
    folder.delete()
    assert not folder.path.exists()


async def test_a_run_that_filled_the_disk_goes_on_once_there_is_room(
    tiny_disk: Path, bench: Bench, carry_out: CarryOut
) -> None:
    ballast = tiny_disk / "ballast"
    ballast.write_bytes(b"x" * 150_000)
    plan = plan_of(*(Case(id=f"c{number}", prompt="?") for number in range(150)))
    bench.said = "some words " * 30
    options = {"registry": bench.registry, "results": tiny_disk / "results", "jobs": 4}
    with pytest.raises(RunFolderError, match=r"the journal cannot be written: No space left on device\."):
        await carry_out(plan, **options)
    (folder,) = run_folders(tiny_disk / "results")
    before = [entry for entry in folder.entries() if isinstance(entry, Record)]
    assert 0 < len(before) < 150
    ballast.unlink()
    after = await carry_out(plan, folder=folder.path, **options)
    assert len(before) + len(after) == 150 == len(list(folder.latest_records(plan)))
