"""Whiskers of cost and time: the interval of a mean over trials whose cases stand together."""

from math import exp

import pytest

from bakeoff.plan import Case
from bakeoff.record import Phase, Usage
from bakeoff.report.run_records import CaseSums, CostsAndTimes
from bakeoff.stats.cells import moments_of_means
from bakeoff.stats.intervals import t_quantile

from .runs import lost, plan_of, record_of


def sums_of(values: dict[str, list[float]]) -> CaseSums:
    sums = CaseSums()
    for unit, trials in values.items():
        for value in trials:
            sums.add(unit, value)
    return sums


def test_it_is_the_t_interval_of_the_logarithm_where_every_case_has_as_many_rounds() -> None:
    values = {"a": [1.0, 3.0], "b": [4.0, 6.0], "c": [2.0, 1.0]}
    moments = moments_of_means([sum(trials) / 2 for trials in values.values()])
    half = t_quantile(0.975, 2) * moments.error / moments.mean
    found = sums_of(values).interval()
    assert found is not None
    assert found.ends == pytest.approx((moments.mean * exp(-half), moments.mean * exp(half)))
    assert not found.promised


def test_the_mean_of_all_trials_lies_within_also_where_cases_have_unequal_rounds() -> None:
    found = sums_of({"a": [10.0] * 9, "b": [1.0], "c": [2.0]}).interval()
    assert found is not None
    assert found.low < 93 / 11 < found.high
    assert found.low * found.high == pytest.approx((93 / 11) ** 2)


@pytest.mark.parametrize(
    "values", [{}, {"a": [1.0, 2.0]}, {"a": [0.01], "b": [0.01], "c": [0.01]}, {"a": [1e308], "b": [1.7e308]}]
)
def test_there_is_none_where_nothing_can_be_told(values: dict[str, list[float]]) -> None:
    assert sums_of(values).interval() is None


def test_cases_of_one_cluster_are_one_unit() -> None:
    cases = tuple(Case(id=f"c{n}", prompt="?", tags={"cluster": "same"}) for n in range(5))
    plan = plan_of(0, ["s"], case_list=cases)
    costs_and_times = CostsAndTimes(plan)
    for trial in plan.trials():
        costs_and_times.add(record_of(trial, attempt=Phase(seconds=trial.index)))
    assert len(costs_and_times.by_subject["s"].times.by_unit) == 1


def test_a_lost_trial_costs_and_takes_no_time_of_the_subject() -> None:
    plan = plan_of(3, ["s"])
    costs_and_times = CostsAndTimes(plan)
    for trial in plan.trials():
        spent = Usage(cost=1.0 + trial.index)
        record = lost(trial, "infra") if trial.index == 0 else record_of(trial)
        costs_and_times.add(record.model_copy(update={"spent": spent}))
    cost_and_time = costs_and_times.by_subject["s"]
    assert (len(cost_and_time.costs.by_unit), len(cost_and_time.times.by_unit)) == (3, 2)
