"""A run that ends when its comparisons are decided, and is resumed without losing its validity."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

from bakeoff.engine.run import read_progress, trials_left
from bakeoff.engine.run_control import RunControl
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec, UntilDecided
from bakeoff.report.summary import Summary, summarise
from bakeoff.stats.sequential import SequentialDecision, random_order
from bakeoff.storage.run_folder import RunFolder
from bakeoff.verdict import Verdict

from .probes import CarryOut, Probe, end_reason, folder_of, registry_of
from .programs import decided_run

PROGRAM = Path(decided_run.__file__)


def scripted(name: str, default: str = "yes", **answers: Any) -> SubjectSpec:
    return SubjectSpec(kind="scripted", name=name, options={"default": default, "answers": answers})


def plan_of(*subjects: SubjectSpec, cases: int = 30, **more: Any) -> Plan:
    settings: dict[str, Any] = {"scorers": (ScorerSpec(kind="exact"),), "until_decided": UntilDecided(), **more}
    asked = tuple(Case(id=f"c{number}", prompt="?", expected="yes") for number in range(cases))
    return Plan(name="p", cases=asked, subjects=subjects, **settings)


def in_order(plan: Plan) -> list[str]:
    return [case.id for unit in random_order(plan) for case in unit]


def summary_of(plan: Plan, tmp_path: Path) -> Summary:
    return summarise(plan, folder_of(tmp_path).latest_records(plan))


def counts(summary: Summary) -> dict[str, tuple[int, int, int]]:
    return {one.subject: (one.finished, one.not_needed, one.missing) for one in summary.subjects}


async def test_it_stops_with_the_case_that_decides(carry_out: CarryOut, tmp_path: Path) -> None:
    plan = plan_of(scripted("a"), scripted("b", "no"))
    records = await carry_out(plan, jobs=1)
    first_cases = in_order(plan)[:8]
    assert [(one.case, one.subject) for one in records] == [(case, name) for case in first_cases for name in "ab"]
    assert end_reason(tmp_path) == "decided"
    summary = summary_of(plan, tmp_path)
    assert summary.complete
    assert counts(summary) == {"a": (8, 22, 0), "b": (8, 22, 0)}
    assert summary.comparisons is not None
    assert summary.comparisons.trials_saved == 44
    [pair] = summary.comparisons.pairs
    assert (pair.decision, pair.cases) == (SequentialDecision.REGRESSED, 8)


async def test_a_decided_run_is_not_continued(carry_out: CarryOut, tmp_path: Path) -> None:
    plan = plan_of(scripted("a"), scripted("b", "no"))
    await carry_out(plan, jobs=1)
    folder = folder_of(tmp_path)
    assert trials_left(plan, read_progress(folder, plan, RunOptions())) == 0
    assert await carry_out(plan, jobs=1, folder=folder.path) == []
    assert end_reason(tmp_path) == "decided"


async def test_trials_in_flight_are_finished_and_no_more_are_started(carry_out: CarryOut, tmp_path: Path) -> None:
    plan = plan_of(scripted("a"), scripted("b", "no"), cases=100)
    records = await carry_out(plan, jobs=6)
    assert 16 <= len(records) <= 16 + 6
    assert summary_of(plan, tmp_path).complete


async def test_few_trials_start_while_a_slow_one_holds_up_the_decision(carry_out: CarryOut, tmp_path: Path) -> None:
    plan = plan_of(SubjectSpec(kind="probe", name="a"), scripted("b", "no"), cases=100)
    asked: list[int] = []
    probe = Probe()

    async def answer(task: Any) -> str:
        if task.case_id == in_order(plan)[0]:
            while len(probe.asked) < 9:  # of `a`, every other of 16 later trials
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.2)  # enough for many more
            asked.append(len(probe.asked))
        return "yes"

    probe.do = answer
    records = await carry_out(plan, registry=registry_of(probe), jobs=2)
    assert asked == [9]
    assert len(records) <= 17 + 2
    assert end_reason(tmp_path) == "decided"


async def test_a_subject_whose_pairs_are_decided_is_tried_no_more(carry_out: CarryOut, tmp_path: Path) -> None:
    control = SubjectSpec(kind="oracle", name="oracle")
    plan = plan_of(scripted("a"), scripted("b"), scripted("worst", "no"), control)
    await carry_out(plan, jobs=1)
    found = counts(summary_of(plan, tmp_path))
    finished, saved, missing = found.pop("worst")
    assert finished < 15
    assert (finished + saved, missing) == (30, 0)
    assert set(found.values()) == {(30, 0, 0)}
    assert end_reason(tmp_path) == "finished"


async def test_equal_subjects_end_at_the_limit_or_as_equivalent(carry_out: CarryOut, tmp_path: Path) -> None:
    until = UntilDecided(margin=0.2)
    plan = plan_of(scripted("a"), scripted("b"), until_decided=until)
    records = await carry_out(plan, jobs=1)
    summary = summary_of(plan, tmp_path)
    assert summary.comparisons is not None
    assert summary.comparisons.pairs[0].decision is SequentialDecision.EQUIVALENT
    assert len(records) < plan.size
    open_plan = plan_of(scripted("a"), scripted("b"), cases=10)
    assert len(await carry_out(open_plan, results=tmp_path / "open")) == 20


async def test_rounds_of_a_case_are_tried_together(carry_out: CarryOut) -> None:
    plan = plan_of(scripted("a"), scripted("b", "no"), rounds=2)
    records = await carry_out(plan, jobs=1)
    case = in_order(plan)[0]
    assert [(one.case, one.round, one.subject) for one in records[:4]] == [
        (case, 0, "a"),
        (case, 0, "b"),
        (case, 1, "a"),
        (case, 1, "b"),
    ]
    assert len(records) == 32


async def test_an_interrupted_run_goes_on_to_the_same_decision(carry_out: CarryOut, tmp_path: Path) -> None:
    plan = plan_of(scripted("a"), scripted("b", "no"))
    control = RunControl()
    probe = Probe()

    async def stop_at_the_third(_: Any) -> str:
        if len(probe.asked) == 3:
            control.drain()
        return "no"

    probe.do = stop_at_the_third
    probed = plan.with_changes(subjects=(plan.subjects[0], SubjectSpec(kind="probe", name="b")))
    first = await carry_out(probed, registry=registry_of(probe), control=control, jobs=1)
    assert len(first) == 6
    assert end_reason(tmp_path) == "interrupted"
    folder = folder_of(tmp_path).path
    assert not summary_of(probed, tmp_path).complete
    second = await carry_out(probed, registry=registry_of(probe), jobs=1, folder=folder)
    whole = [(case, name) for case in in_order(plan)[:8] for name in "ab"]
    assert [(one.case, one.subject) for one in [*first, *second]] == whole
    assert end_reason(tmp_path) == "decided"


async def test_a_limit_stops_it_and_it_can_be_continued(carry_out: CarryOut, tmp_path: Path) -> None:
    spending = {"output": "no", "usage": {"requests": 1, "input": 10}}
    plan = plan_of(scripted("a"), SubjectSpec(kind="scripted", name="b", options={"default": spending}))
    await carry_out(plan, jobs=1, max_total_tokens=30)
    summary = summary_of(plan, tmp_path)
    assert not summary.complete
    assert summary.comparisons is not None
    assert summary.comparisons.pairs[0].cases == 2
    await carry_out(plan, jobs=1, folder=folder_of(tmp_path).path)
    assert end_reason(tmp_path) == "decided"
    summary = summary_of(plan, tmp_path)
    assert summary.complete
    assert summary.comparisons is not None
    assert summary.comparisons.pairs[0].cases == 8


async def test_lost_trials_are_tried_again_while_a_pair_is_open(carry_out: CarryOut, tmp_path: Path) -> None:
    plan = plan_of(SubjectSpec(kind="probe", name="a"), scripted("b"), cases=10)
    lost = in_order(plan)[2]
    broken = True

    async def answer(task: Any) -> str:
        if broken and task.case_id == lost:
            raise ConnectionError("down")
        return "yes"

    registry = registry_of(Probe(answer))
    await carry_out(plan, registry=registry, jobs=1, retries=0)
    summary = summary_of(plan, tmp_path)
    verdicts = summary.subjects[0].verdicts
    assert verdicts.get(Verdict.PASS) == 9
    assert summary.comparisons is not None
    assert summary.comparisons.pairs[0].cases == 9
    broken = False
    [again] = await carry_out(plan, registry=registry, jobs=1, folder=folder_of(tmp_path).path)
    assert again.case == lost
    summary = summary_of(plan, tmp_path)
    assert summary.comparisons is not None
    assert summary.comparisons.pairs[0].cases == 10


async def test_scoring_again_leaves_out_nothing(carry_out: CarryOut, tmp_path: Path) -> None:
    plan = plan_of(scripted("a"), scripted("b", "no"))
    await carry_out(plan, jobs=1)
    other = plan.with_changes(scorers=(ScorerSpec(kind="contains"),))
    again = await carry_out(other, folder=folder_of(tmp_path).path, rescore_only=True)
    assert len(again) == 16
    assert summary_of(other, tmp_path).complete


def test_kill_9_loses_nothing_and_the_run_goes_on_to_the_same_decision(tmp_path: Path) -> None:
    folders = [RunFolder(tmp_path / name) for name in ("whole", "killed")]
    for folder in folders:
        folder.path.mkdir()
    command = [sys.executable, str(PROGRAM)]
    whole = subprocess.run([*command, folders[0].path], check=True, capture_output=True, text=True).stdout.split()
    reported: list[str] = []
    for most in (5, 9, 1000):
        with subprocess.Popen([*command, folders[1].path], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                reported.append(line.strip())
                if len(reported) == most:
                    process.kill()
    plan = decided_run.plan()
    records = [list(folder.latest_records(plan)) for folder in folders]
    keys = [sorted(record.attempt_key for record in some) for some in records]
    assert sorted(whole) == keys[0] == keys[1]
    assert set(reported) <= set(keys[1])
    assert len(whole) < plan.size
    assert summarise(plan, records[0]).comparisons == summarise(plan, records[1]).comparisons
