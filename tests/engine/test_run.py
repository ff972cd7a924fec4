"""Running a plan: what is recorded, when, and how much is in flight. Other files have one behaviour each."""

import asyncio
import time
from contextlib import aclosing
from pathlib import Path

import pytest

from bakeoff.engine.run import run
from bakeoff.engine.run_control import RunControl
from bakeoff.errors import PlanError, RunFolderError, SandboxMissing
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.protocols import Needs, Task
from bakeoff.record import Record
from bakeoff.storage.journal import JournalMark, read_journal
from bakeoff.storage.run_folder import RunFolder

from .probes import CarryOut, Probe, end_reason, folder_of, plan_of, registry_of


async def test_every_trial_is_carried_out_once_and_recorded(tmp_path: Path, carry_out: CarryOut) -> None:
    probe = Probe()
    plan = plan_of(3, rounds=2)
    records = await carry_out(plan, registry=registry_of(probe))
    assert [(r.case, r.round, r.verdict) for r in records] == [(f"c{n}", r, "pass") for r in (0, 1) for n in range(3)]
    stored = [entry for entry in folder_of(tmp_path).entries() if isinstance(entry, Record)]
    assert stored == records
    assert folder_of(tmp_path).read_plan() == plan
    assert end_reason(tmp_path) == "finished"
    assert len(probe.asked) == 6


async def test_a_record_is_on_disk_before_it_is_yielded(tmp_path: Path) -> None:
    options = RunOptions(results=tmp_path / "results", jobs=3)
    async for record in run(plan_of(20), options, registry=registry_of(Probe())):
        assert record in list(folder_of(tmp_path).entries())


async def test_every_problem_of_a_plan_is_told_before_a_folder_is_made(tmp_path: Path, carry_out: CarryOut) -> None:
    case = Case(id="twin", prompt="?")
    plan = Plan(
        name="p",
        cases=(case, case),
        subjects=(
            SubjectSpec(kind="scriptd", name="a"),
            SubjectSpec(kind="cheat", name="b", options={"attack": "pray"}),
            SubjectSpec(kind="function", name="c", options={"target": "nowhere:f"}),
        ),
        scorers=(ScorerSpec(kind="regex", options={"pattern": "("}), ScorerSpec(kind="vibes")),
    )
    with pytest.raises(PlanError) as caught:
        await carry_out(plan)
    assert caught.value.problems == (
        "case id 'twin' is used more than once in plan 'p': rename one",
        "subject 'a' (scriptd): unknown kind 'scriptd'; did you mean 'scripted'?",
        "subject 'b' (cheat): no attack 'pray'; there are exit-early, forge-report, inject-prompt, replace-tests",
        "subject 'c' (function): module 'nowhere' cannot be imported: No module named 'nowhere'",
        "scorer 'regex': pattern '(' is not a regular expression: missing ), unterminated subpattern at position 0",
        "scorer 'vibes': unknown kind 'vibes'; there are answer_relevance, checks, command, contains, "
        "context_precision, context_recall, context_relevance, "
        "conversation_completeness, cost, exact, factuality, faithfulness, "
        "function, javascript, json, judge, "
        "knowledge_retention, latency, mcp, preference, python, refusal, regex, role_adherence, rubric, semantic, "
        "spans, structured, tool_calls, trajectory",
    )
    assert not (tmp_path / "results").exists()


async def test_a_sandbox_that_is_not_there_is_told_before_a_folder_is_made(tmp_path: Path, carry_out: CarryOut) -> None:
    with pytest.raises(SandboxMissing, match="'vault' is not one of auto"):
        await carry_out(plan_of(), registry=registry_of(Probe()), sandbox="vault")
    assert not (tmp_path / "results").exists()


async def test_a_folder_that_is_named_for_the_run_is_made(tmp_path: Path) -> None:
    place = tmp_path / "new/run"
    for _ in range(2):
        async for _ in run(plan_of(2), RunOptions(folder=place), registry=registry_of(Probe())):
            pass
    assert len([entry for entry in RunFolder(place).entries() if isinstance(entry, Record)]) == 2, "it was resumed"
    (tmp_path / "file").touch()
    with pytest.raises(RunFolderError, match=r"file/run cannot be made: .*; choose another folder for the run"):
        async for _ in run(plan_of(), RunOptions(folder=tmp_path / "file/run"), registry=registry_of(Probe())):
            pass


async def test_a_results_folder_that_cannot_be_made_is_said_so(tmp_path: Path, carry_out: CarryOut) -> None:
    (tmp_path / "results").write_text("a file is in the way")
    with pytest.raises(RunFolderError, match=r"cannot be made: .*; choose another folder for results"):
        await carry_out(plan_of(), registry=registry_of(Probe()))


@pytest.mark.parametrize("jobs", [1, 3])
async def test_no_more_trials_are_in_flight_than_asked_for_over_all_cells(jobs: int, carry_out: CarryOut) -> None:
    now = most = 0

    async def count(task: Task) -> str:
        nonlocal now, most
        now += 1
        most = max(most, now)
        for _ in range(5):
            await asyncio.sleep(0)
        now -= 1
        return "yes"

    subjects = tuple(SubjectSpec(kind="probe", name=f"s{number}") for number in range(4))
    records = await carry_out(plan_of(5, subjects=subjects), registry=registry_of(Probe(count)), jobs=jobs)
    assert (len(records), most) == (20, jobs)


async def test_a_million_trials_give_their_first_record_at_once(tmp_path: Path) -> None:
    plan = plan_of(100, rounds=10_000)
    started = time.process_time()
    async with aclosing(aiter(run(plan, RunOptions(results=tmp_path), registry=registry_of(Probe())))) as records:  # type: ignore[type-var]
        assert (await anext(records)).case == "c0"
    assert time.process_time() - started < 5


async def test_a_slow_consumer_holds_the_run_up_and_loses_nothing(tmp_path: Path) -> None:
    """More records wait than there is room for; none is lost when reading goes on."""
    probe = Probe()
    seen: list[Record] = []
    async for record in run(plan_of(50, rounds=160), RunOptions(results=tmp_path), registry=registry_of(probe)):
        if not seen:
            for _ in range(20_000):
                await asyncio.sleep(0)
            assert len(probe.asked) < 6200
        seen.append(record)
    assert len({(record.case, record.round) for record in seen}) == len(seen) == 8000


# --- time limits --------------------------------------------------------------------------------------------------


async def test_what_is_finished_when_the_consumer_leaves_is_kept(tmp_path: Path) -> None:
    probe = Probe()
    records = aiter(run(plan_of(200), RunOptions(results=tmp_path / "results", jobs=4), registry=registry_of(probe)))
    await anext(records)
    await records.aclose()  # type: ignore[attr-defined]
    folder = folder_of(tmp_path)
    stored = [entry.case for entry in folder.entries() if isinstance(entry, Record)]
    assert len(stored) == len(set(stored)) >= len(probe.asked) - 4
    assert not folder.is_being_written()


async def test_the_run_tells_its_control_which_sandbox_is_used(carry_out: CarryOut) -> None:
    control = RunControl()
    await carry_out(plan_of(), registry=registry_of(Probe()), control=control)
    assert (control.sandbox, control.finished_before) == (None, 0)
    await carry_out(plan_of(), registry=registry_of(Probe(needs=Needs(workspace=True))), control=control)
    assert control.sandbox == "process"


def test_the_start_of_a_journal_says_who_wrote_it(tmp_path: Path) -> None:
    async def go() -> None:
        async for _ in run(plan_of(), RunOptions(results=tmp_path / "results"), registry=registry_of(Probe())):
            pass

    asyncio.run(go())
    first = next(read_journal(folder_of(tmp_path).journal_file))
    assert isinstance(first, JournalMark)
    assert {"bakeoff", "time"} <= first.facts.keys()
    assert folder_of(tmp_path).journal_file.stat().st_mode & 0o077 == 0
