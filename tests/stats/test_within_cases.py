"""Worse on exactly these cases, and a series of runs that is looked at after every one."""

import random
from itertools import pairwise, product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, fisher_exact

from bakeoff.stats.cells import CaseKey, Cell, Cells
from bakeoff.stats.series import delay_of, series_change
from bakeoff.stats.within_cases import change_within, worse_p_value

from .simulation_gate import broken_fails, decay_found, found_in_time, history_alarms, unchanged_fails

few = settings(max_examples=40, deadline=None)
rounds_of = st.lists(st.booleans(), min_size=1, max_size=4).map(lambda passes: Cell.of(map(float, passes)))


def passed(count: int, of: int) -> Cell:
    return Cell(of, count, count)


@few
@given(st.lists(st.tuples(rounds_of, rounds_of), min_size=1, max_size=3))
def test_the_p_value_counts_every_way_to_share_out_the_rounds(pairs: list[tuple[Cell, Cell]]) -> None:
    ways = [
        [
            (take, comb(new.rounds, take) * comb(old.rounds, round(old.total + new.total) - take))
            for take in range(min(new.rounds, round(old.total + new.total)) + 1)
        ]
        for old, new in pairs
    ]
    seen = sum(new.total for _, new in pairs)
    counted = [(sum(take for take, _ in way), np.prod([count for _, count in way])) for way in product(*ways)]
    low = sum(count for total, count in counted if total <= seen)
    assert worse_p_value(pairs) == pytest.approx(low / sum(count for _, count in counted))


def test_one_case_is_fishers_test_and_one_round_each_is_mcnemars() -> None:
    table = [[3, 7], [9, 1]]  # passed and failed: candidate, baseline
    assert worse_p_value([(passed(9, 10), passed(3, 10))]) == pytest.approx(fisher_exact(table, "less").pvalue)
    pairs = [(passed(1, 1), passed(0, 1))] * 9 + [(passed(0, 1), passed(1, 1))] * 2 + [(passed(1, 1), passed(1, 1))] * 5
    assert worse_p_value(pairs) == pytest.approx(binomtest(2, 11, alternative="less").pvalue)


def test_graded_scores_are_drawn_and_agree_with_the_exact_test() -> None:
    pairs = [(passed(5, 5), passed(2, 5)), (passed(4, 5), passed(3, 5))] * 2
    nearly = [(Cell.of([0.999, *old.scores[1:]]), new) for old, new in pairs]
    assert worse_p_value(nearly) == pytest.approx(worse_p_value(pairs), abs=0.02)


def test_thousands_of_cases_and_rounds_are_counted_quickly() -> None:
    pairs = [(passed(90 + place % 7, 100), passed(88 + place % 11, 100)) for place in range(2_000)]
    assert 0 < worse_p_value(pairs) < 1


def test_broken_cases_are_named_only_where_chance_is_ruled_out_for_all_of_them() -> None:
    pairs = {f"c{place}": (passed(20, 20), passed(20, 20)) for place in range(27)}
    broken = {f"b{place}": (passed(20, 20), passed(0, 20)) for place in range(3)}
    found = change_within(pairs | broken | {"weak": (passed(20, 20), passed(16, 20))})
    assert (found.worse, found.better, found.broken) == (4, 0, ("b0", "b1", "b2"))


@pytest.mark.parametrize(
    ("worse", "better", "sentence"),
    [
        (0, 0, "on these cases: none of 12 changed"),
        (3, 0, "on these cases: 3 of 12 got worse, none better: too few cases to call it"),
        (3, 2, "on these cases: 3 of 12 got worse, 2 better: no loss over all of them shown (p = 0.5)"),
    ],
)
def test_the_sentence_counts_before_it_claims(worse: int, better: int, sentence: str) -> None:
    steady = {str(place): (passed(1, 1), passed(1, 1)) for place in range(12 - worse - better)}
    fell = {f"w{place}": (passed(1, 1), passed(0, 1)) for place in range(worse)}
    rose = {f"b{place}": (passed(0, 1), passed(1, 1)) for place in range(better)}
    assert change_within(steady | fell | rose).sentence == sentence


def runs_of(*passes: int, cases: int = 40, rounds: int = 1) -> list[Cells]:
    return [
        {CaseKey(str(place)): passed(rounds * (place < count), rounds) for place in range(cases)} for count in passes
    ]


def test_a_series_says_since_when_it_is_worse_and_when_it_has_recovered() -> None:
    found = series_change(runs_of(40, 40, 40, 20, 20))
    assert (found.found_at, found.since, found.worse, found.cases, found.looks) == (3, 3, True, 40, 4)
    assert found.difference == pytest.approx(-0.5)
    back = series_change(runs_of(40, 40, 40, 20, 39))
    assert (back.found_at, back.recovered_at, back.worse) == (3, 4, False)
    assert not series_change(runs_of(20, 40, 40)).worse, "a gain is no loss"
    assert series_change(runs_of(40)).looks == 0
    assert series_change([*runs_of(40), {}]).cases == 0


def test_a_slow_decay_is_found_although_no_step_is() -> None:
    steps = runs_of(*range(100, 79, -2), cases=100)
    found = series_change(steps)
    assert found.worse
    assert all(not series_change([one, other]).worse for one, other in pairwise(steps))


def test_unchanged_code_that_rarely_fails_is_not_called_worse() -> None:
    fallen = runs_of(*[40] * 30, 39, *[40] * 30, 39, 39)
    assert series_change(fallen).found_at is None


def test_a_delay_that_cannot_be_kept_is_not_stated() -> None:
    random = np.random.default_rng(5)
    runs = [{CaseKey(str(place)): passed(int(random.binomial(3, 0.8)), 3) for place in range(20)} for _ in range(3)]
    assert delay_of(0.02, runs) is None
    assert delay_of(0.1, [{}, {}]) is None
    delay = delay_of(0.5, runs)
    assert delay is not None
    assert delay <= 4


def test_the_whole_gate_rarely_fails_on_unchanged_code() -> None:
    assert unchanged_fails(1, 60, 3, 60) <= 0.1
    assert unchanged_fails(3, 10, 3, 40) <= 0.1


def test_broken_cases_fail_the_gate() -> None:
    assert broken_fails(3, 30, 20, 20) == 1


@pytest.mark.full
def test_a_history_keeps_its_error_rate_and_its_delay() -> None:
    assert history_alarms(20, 3, 150) <= 0.08
    assert found_in_time(0.1, 30, 10, 100) >= 0.85
    assert decay_found(0.02, 10, 30, 10, 100) >= 0.95


def test_a_series_of_graded_scores_is_watched_as_long_as_one_that_passes_or_fails() -> None:
    dice = random.Random(5)

    def run(mean: float) -> dict[CaseKey, Cell]:
        return {CaseKey(str(case)): Cell.of([min(1.0, max(0.0, dice.gauss(mean, 0.1)))]) for case in range(30)}

    found = series_change([*(run(0.8) for _ in range(20)), *(run(0.3) for _ in range(3))])
    assert (found.worse, found.since) == (True, 20)


def test_thousands_of_rounds_of_one_case_are_counted() -> None:
    assert worse_p_value([(Cell(5_000, 4_000.0, 4_000.0), Cell(100, 40.0, 40.0))]) < 1e-9
