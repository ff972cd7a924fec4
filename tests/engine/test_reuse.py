"""Reusing answers of earlier runs: which are carried over, what is scored again, and what is paid for."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from bakeoff.engine.registry import default_registry
from bakeoff.engine.reuse import CARRIED_OVER, count_finished, delete_runs, past_runs, reusable_records, start_run
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.protocols import Task
from bakeoff.record import Record, Transcript, Usage
from bakeoff.storage.run_folder import RunFolder, run_folders

CarryOut = Callable[..., Awaitable[list[Record]]]
A, B = (Case(id=name, prompt=name, expected=name.upper()) for name in "ab")


class Paid:
    """A subject whose every answer costs one dollar."""

    name = "paid"

    async def attempt(self, task: Task) -> Transcript:
        usage = Usage(requests=1, cost=1.0)
        task.spend(usage)
        return Transcript(output=task.prompt.upper(), usage=usage)


REGISTRY = default_registry().with_subject("paid", lambda _: Paid())


def plan_of(*cases: Case, **more: Any) -> Plan:
    usual = {"subjects": (SubjectSpec(kind="paid", name="s"),), "scorers": (ScorerSpec(kind="exact"),)}
    return Plan(name="p", cases=cases, **{**usual, **more})


@pytest.fixture
async def runs(tmp_path: Path, carry_out: CarryOut, monkeypatch: pytest.MonkeyPatch) -> list[RunFolder]:
    """Two runs of one case each, newest first."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for case in (A, B):
        await carry_out(plan_of(case), registry=REGISTRY)
    return run_folders(tmp_path / "results")[::-1]


async def test_answers_are_carried_over_from_all_runs_of_the_same_attempts(runs: list[RunFolder]) -> None:
    plan = plan_of(A, B)
    records = {record.case: record for record in reusable_records(runs, plan)}
    assert {case: record.answers for case, record in records.items()} == {"a": "replayed", "b": "replayed"}
    from_run = {record.transcript.metadata[CARRIED_OVER] for record in records.values() if record.transcript}
    assert from_run == {run.label for run in runs}
    assert count_finished(records.values(), plan) == 2
    edited = B.model_copy(update={"prompt": "c"})
    assert [record.case for record in reusable_records(runs, plan_of(A, edited))] == ["a"]
    assert reusable_records(runs, plan_of(A, subjects=(SubjectSpec(kind="paid", name="other"),))) == []


async def test_changed_expectations_and_scorers_are_scored_again_with_the_threshold_of_the_plan(
    runs: list[RunFolder],
) -> None:
    plan = plan_of(A, B.model_copy(update={"expected": "C"}))
    records = reusable_records(runs, plan)
    assert (len(records), count_finished(records, plan)) == (2, 1)
    for changed in ({"threshold": 0.75}, {"scorers": (ScorerSpec(kind="contains"),)}):
        plan = plan_of(A, B, **changed)
        records = reusable_records(runs, plan)
        assert (len(records), count_finished(records, plan)) == (2, 0)
        assert {record.threshold for record in records} == {plan.threshold}


async def test_a_reused_answer_keeps_its_cost_and_is_not_paid_again(
    tmp_path: Path, runs: list[RunFolder], carry_out: CarryOut
) -> None:
    plan, options = plan_of(A, B), RunOptions(results=tmp_path / "results")
    folder = start_run(plan, options, reusable_records(runs[:1], plan), watch=True)
    (record,) = await carry_out(plan, registry=REGISTRY, folder=folder.path, max_cost=1.5)
    assert record.case == "a"
    assert folder.beginning()["watch"] is True
    assert folder.spent().cost == 1.0
    assert {one.case: one.used.cost for one in folder.latest_records(plan)} == {"a": 1.0, "b": 1.0}


async def test_only_runs_that_were_made_here_are_searched(tmp_path: Path, runs: list[RunFolder]) -> None:
    results = tmp_path / "results"
    assert past_runs(results, lambda _: True) == runs
    assert past_runs(results, lambda plan: plan.cases == (A,)) == runs[1:]
    runs[0].path.rename(runs[0].path.with_name(f"{runs[0].name}-of-a-stranger"))  # as a cloned repository brings one
    runs[1].plan_file.write_text("{")
    assert past_runs(results, lambda _: True) == []


async def test_runs_with_labels_are_not_deleted(tmp_path: Path, runs: list[RunFolder]) -> None:
    runs[0].labels_file.touch()
    assert delete_runs(runs) == runs[:1]
    assert run_folders(tmp_path / "results") == runs[:1]
