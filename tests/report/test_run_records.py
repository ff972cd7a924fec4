"""Whiskers of cost and time: the interval of a mean over trials whose cases stand together."""

from math import exp

import pytest

from bakeoff.plan import Case
from bakeoff.record import Phase, Usage
from bakeoff.report.summary import summarise
from bakeoff.stats.cells import moments_of_means
from bakeoff.stats.intervals import Interval, amount_interval, t_quantile

from .runs import lost, plan_of, record_of


def interval_of(values: dict[str, list[float]]) -> Interval | None:
    return amount_interval(list(map(len, values.values())), list(map(sum, values.values())))


def test_it_is_the_t_interval_of_the_logarithm_with_a_longer_upper_end() -> None:
    values = {"a": [1.0, 3.0], "b": [4.0, 6.0], "c": [2.0, 1.0]}
    moments = moments_of_means([sum(trials) / 2 for trials in values.values()])
    half = t_quantile(0.975, 2) * moments.error / moments.mean
    found = interval_of(values)
    assert found is not None
    assert found.low == pytest.approx(moments.mean * exp(-half))
    assert found.high > moments.mean * exp(half)
    assert not found.promised


def test_the_mean_of_all_trials_lies_within_also_where_cases_have_unequal_rounds() -> None:
    found = interval_of({"a": [10.0] * 9, **{f"b{place}": [8.0 + place % 3] for place in range(60)}})
    assert found is not None
    mean = (90 + 9 * 60) / 69
    assert found.low < mean < found.high
    assert found.high / mean >= mean / found.low, "dear cases may not have been seen"


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"a": [1.0, 2.0]},
        {"a": [0.01], "b": [0.01], "c": [0.01]},
        {"a": [1e308], "b": [1.7e308]},
        {"a": [10.0] * 9, "b": [1.0], "c": [2.0]},
    ],
)
def test_there_is_none_where_nothing_can_be_told(values: dict[str, list[float]]) -> None:
    assert interval_of(values) is None


def test_cases_of_one_cluster_are_one_unit() -> None:
    cases = tuple(Case(id=f"c{n}", prompt="?", tags={"cluster": "same"}) for n in range(5))
    plan = plan_of(0, ["s"], case_list=cases)
    records = [record_of(trial, attempt=Phase(seconds=trial.index)) for trial in plan.trials()]
    assert len(summarise(plan, records).subjects[0].times) == 1


def test_a_lost_trial_costs_and_takes_no_time_of_the_subject() -> None:
    plan = plan_of(3, ["s"])
    records = []
    for trial in plan.trials():
        record = lost(trial, "infra") if trial.index == 0 else record_of(trial)
        records.append(record.model_copy(update={"spent": Usage(cost=1.0 + trial.index)}))
    [summary] = summarise(plan, records).subjects
    assert (len(summary.costs), len(summary.times)) == (3, 2)
    assert summary.cost_interval is not None
