"""The intervals that reports print."""

import subprocess
import sys

import pytest

from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.record import Phase, Record, Score
from bakeoff.report.summary import SubjectSummary, summarise


def plan_of(cases: int, rounds: int, clusters: int | None = None) -> Plan:
    return Plan(
        name="p",
        cases=tuple(
            Case(id=str(n), prompt="", tags={"cluster": str(n % clusters)} if clusters else {}) for n in range(cases)
        ),
        subjects=(SubjectSpec(kind="nop", name="s"),),
        scorers=(ScorerSpec(kind="exact"),),
        rounds=rounds,
    )


def summary_of(plan: Plan, value: object) -> SubjectSummary:
    assert callable(value)
    records = (
        Record(
            case=trial.case.id,
            subject="s",
            round=trial.round,
            attempt_key=trial.attempt_key,
            score_key=trial.score_key,
            started=0,
            threshold=1.0,
            attempt=Phase(seconds=1),
            scores=(Score(name="exact", value=value(int(trial.case.id), trial.round)),),
        )
        for trial in plan.trials()
    )
    return summarise(plan, records).subjects[0]


@pytest.mark.parametrize(
    ("plan", "value", "method"),
    [
        (plan_of(20, 1), lambda case, _: case % 2, "Wilson"),
        (plan_of(20, 1), lambda case, _: (case % 3) / 2, "t"),
        (plan_of(60, 2), lambda case, round_: (case + round_) % 3 == 0, "t"),
        (plan_of(60, 2, clusters=30), lambda case, _: case % 3 == 0, "clustered t"),
        (plan_of(20, 3), lambda case, _: case < 1, "Bayesian bootstrap"),
        (plan_of(20, 3), lambda case, _: 1, "rule of three"),
    ],
)
def test_the_summary_names_the_interval_that_fits(plan: Plan, value: object, method: str) -> None:
    interval = summary_of(plan, value).interval
    assert interval is not None
    assert interval.method == method


def test_one_cluster_is_undefined_in_the_summary() -> None:
    assert summary_of(plan_of(20, 2, clusters=1), lambda case, _: case % 2).interval is None


def test_statistics_load_neither_scipy_nor_numpy_before_they_need_them() -> None:
    modules = "bakeoff.stats.power, bakeoff.stats.ranking, bakeoff.stats.rounds"
    code = f"import sys, {modules}; print(sorted({{'numpy', 'scipy'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
