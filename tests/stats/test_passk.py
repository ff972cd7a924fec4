"""pass@k and pass^k."""

from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.errors import UsageError
from bakeoff.stats.cells import CaseKey, Cells, cells_of
from bakeoff.stats.intervals import wilson
from bakeoff.stats.rounds import pass_at_k, pass_hat_k

outcomes = st.lists(st.lists(st.booleans(), min_size=3, max_size=7), min_size=1, max_size=6)
quick = settings(max_examples=50, deadline=None)


def run(cases: list[list[bool]]) -> Cells:
    return cells_of({CaseKey(f"case {place}"): rounds for place, rounds in enumerate(cases)})


def enumerated(cases: list[list[bool]], k: int, verdict: object) -> float:
    """Every choice of k rounds of every case, looked at."""
    assert callable(verdict)
    return fmean(fmean(verdict(chosen) for chosen in combinations(rounds, k)) for rounds in cases)


@quick
@given(outcomes, st.integers(1, 3))
def test_pass_at_k_and_pass_hat_k_equal_exhaustive_enumeration(cases: list[list[bool]], k: int) -> None:
    assert pass_at_k(run(cases), k).value == pytest.approx(enumerated(cases, k, any), abs=1e-12)
    assert pass_hat_k(run(cases), k).value == pytest.approx(enumerated(cases, k, all), abs=1e-12)


@quick
@given(outcomes)
def test_more_tries_never_lower_pass_at_k_nor_raise_pass_hat_k(cases: list[list[bool]]) -> None:
    tries = [(pass_at_k(run(cases), k).value, pass_hat_k(run(cases), k).value) for k in (1, 2, 3)]
    assert tries[0][0] == pytest.approx(tries[0][1])
    assert tries[0][0] <= tries[1][0] + 1e-12
    assert tries[1][0] <= tries[2][0] + 1e-12
    assert tries[0][1] >= tries[1][1] - 1e-12
    assert tries[1][1] >= tries[2][1] - 1e-12


def test_the_interval_is_that_of_a_mean_over_cases() -> None:
    cells = run([[True, False, True], [False, False, False], [True, True, True], [True, False, False]] * 40)
    found = pass_at_k(cells, 2)
    assert found.name == "pass@2"
    assert found.interval is not None
    assert found.interval.method == "t"
    assert found.interval.low < found.value < found.interval.high
    half = 1.96 * (fmean((value - found.value) ** 2 for value in (1, 0, 1, 2 / 3)) / 160) ** 0.5
    assert (found.interval.low, found.interval.high) == pytest.approx(
        (found.value - half, found.value + half), abs=0.002
    )


def test_one_round_has_the_interval_of_a_proportion() -> None:
    cells = run([[True], [False], [True], [True]] * 5)
    assert pass_at_k(cells, 1).interval == pass_hat_k(cells, 1).interval == wilson(0.75, 20)


def test_clusters_are_the_units_of_the_interval() -> None:
    rounds = [[False, False], [False, True], [True, True], [True, True]] * 20
    keyed = {CaseKey(f"case {place}"): given for place, given in enumerate(rounds)}
    alone = pass_hat_k(cells_of(keyed), 2).interval
    halves = pass_hat_k(cells_of(keyed, {key: str(place // 2) for place, key in enumerate(keyed)}), 2).interval
    assert alone is not None
    assert halves is not None
    assert halves.method == "clustered t"
    assert halves.width > 1.2 * alone.width


def test_all_solved_is_not_certain_and_one_case_is_undefined() -> None:
    solved = pass_hat_k(run([[True, True]] * 30), 2)
    assert solved.value == 1
    assert solved.interval is not None
    assert solved.interval.method == "rule of three"
    assert solved.interval.low == pytest.approx(0.05 ** (1 / 30))
    assert pass_at_k(run([[True, False]]), 1).interval is None


@pytest.mark.parametrize(
    ("cases", "k", "message"),
    [
        ([[True] * 5, [True] * 2], 3, r"pass@3: case 'case 1' has 2 scored rounds, fewer than 3: add rounds"),
        ([[True]], 0, r"pass@0: k is 0; it must be at least 1"),
        ([], 1, r"pass@1: no case was scored"),
        ([[0.5]], 1, r"pass@1: case 'case 0' has scores between 0 and 1: give passes and failures"),
    ],
)
def test_what_cannot_be_estimated_is_refused(cases: list[list[bool]], k: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        pass_at_k(run(cases), k)
