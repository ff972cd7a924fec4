"""Test what a run can find, where its noise comes from, and how often a subject contradicts itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.errors import UsageError
from bakeoff.stats.cells import CaseKey, Cell, Cells, moments_of
from bakeoff.stats.comparison import Comparison, compare
from bakeoff.stats.gates import GateVerdict, judge
from bakeoff.stats.intervals import TOO_SMALL
from bakeoff.stats.power import (
    UNDETECTABLE,
    Noise,
    VarianceSplit,
    cases_needed,
    cases_to_pass,
    design_of,
    detectable_between,
    difference_split,
    minimum_detectable,
    too_few,
)
from bakeoff.stats.rounds import flip_rate, flip_rate_within

from .simulation import cells_from_passes

unhurried = settings(deadline=None)  # the first call imports scipy
few = settings(max_examples=12, deadline=None)


def run(values: list[list[float]]) -> Cells:
    return {CaseKey(str(place)): Cell.of(rounds) for place, rounds in enumerate(values)}


def detectable(cases: int, rounds: int, noise: Noise) -> float:
    found = minimum_detectable(cases, rounds, noise)
    assert found is not None
    return found


@few
@given(st.integers(6, 500), st.integers(2, 20), st.floats(0, 0.5), st.floats(0.01, 0.5))
def test_more_cases_find_smaller_differences_and_more_rounds_never_larger(
    cases: int, rounds: int, between: float, within: float
) -> None:
    noise = Noise(between, within)
    here = detectable(cases, rounds, noise)
    assert detectable(cases + 1, rounds, noise) < here or here == UNDETECTABLE
    assert detectable(cases, rounds + 1, noise) <= here
    assert detectable(cases, rounds, Noise(between, 2 * within)) > here or here == UNDETECTABLE


@pytest.mark.parametrize("cases", [1, 2, 4, 5])
def test_so_few_cases_find_nothing_whatever_the_rounds(cases: int) -> None:
    assert too_few(6) is None
    sentence = too_few(cases)
    assert sentence is not None
    assert "however many rounds" in sentence
    assert "use more cases, at least 6" in sentence
    assert (minimum_detectable(cases, 100, Noise.guessed()) or 2) > 1
    lost = compare(run([[1, 1, 1]] * cases), run([[0, 0, 1]] * cases))
    assert (lost.p_value or 1) > 0.05


def test_the_advice_for_four_noisy_cases_is_more_cases() -> None:
    split = split_of(run([[1.0, 0.0]] * 4))
    assert split is not None
    assert split.share_within == 1
    assert split.advice == "more cases"
    assert split.sentence == (
        "4 cases cannot show a difference on cases like these, except a complete reversal, however many rounds: "
        "their p-value is never below 0.125; "
        "use more cases, at least 6"
    )


def test_one_case_finds_nothing() -> None:
    assert minimum_detectable(1, 10, Noise.guessed()) is None


def test_more_power_needs_a_larger_difference_whatever_the_number_of_cases() -> None:
    for cases in (2, 6, 20, 100, 5_000):
        found = [minimum_detectable(cases, 1, Noise(0, 0.01), power=power) for power in (0.1, 0.5, 0.8, 0.99, 0.999999)]
        known = [difference for difference in found if difference is not None]
        assert len(known) == len(found)
        assert known == sorted(known)


def test_where_nothing_varied_nothing_can_be_estimated() -> None:
    assert minimum_detectable(10, 1, Noise(0, 0)) is None
    same = run([[1, 1]] * 30)
    assert detectable_between(same, same) is None
    assert detectable_between(same, {}) is None
    assert detectable_between(run([[1]]), run([[0]])) is None


def test_clusters_are_the_units_that_find_a_difference() -> None:
    noise = Noise(0.1, 0.3)
    alone, together = minimum_detectable(100, 3, noise), minimum_detectable(100, 3, noise, clusters=10)
    assert alone is not None
    assert together is not None
    assert together > 2 * alone
    assert minimum_detectable(100, 3, noise, clusters=1) is None


def test_what_two_runs_could_find_follows_their_own_scatter() -> None:
    random = np.random.default_rng(20)
    arms = [cells_from_passes(random.binomial(3, random.beta(0.5, 0.5, 300)), 3) for _ in range(2)]
    found = detectable_between(*arms)
    split = difference_split(*arms)
    assert split is not None
    assert found == pytest.approx(minimum_detectable(300, 3, Noise(split.between, split.within)), rel=0.02)


def test_what_two_runs_could_find_is_less_in_clusters() -> None:
    random = np.random.default_rng(21)
    passes = [np.repeat(random.binomial(1, 0.5, 20), 5) for _ in range(2)]
    names = [str(place // 5) for place in range(100)]
    alone = detectable_between(*(cells_from_passes(arm, 1) for arm in passes))
    together = detectable_between(*(cells_from_passes(arm, 1, names) for arm in passes))
    assert alone is not None
    assert together is not None
    assert together > 2 * alone


def test_two_cases_that_changed_do_not_promise_more_than_the_test_can_find() -> None:
    base = cells_from_passes(np.ones(100, dtype=int), 1)
    found = detectable_between(base, cells_from_passes((np.arange(100) >= 2).astype(int), 1))
    assert found == pytest.approx(0.079, abs=0.002)  # six or more of 100 change in four of five runs


def test_twice_what_a_nearly_perfect_pair_could_find_is_found() -> None:
    random = np.random.default_rng(22)
    base = cells_from_passes(np.full(100, 3), 3)
    smallest = detectable_between(base, cells_from_passes(3 - 3 * (np.arange(100) < 3), 3))
    assert smallest is not None
    lost = random.random((300, 100)) < 2 * smallest
    found = [judge(compare(base, cells_from_passes(3 - 3 * row, 3))).verdict for row in lost]
    assert found.count(GateVerdict.REGRESSED) >= 0.9 * len(found)


def split_of(cells: Cells) -> VarianceSplit | None:
    """Of the difference to an arm that always fails, which adds no noise of its own."""
    return difference_split({key: Cell.of([0] * cell.rounds) for key, cell in cells.items()}, cells)


def test_noise_is_guessed_from_a_score() -> None:
    assert Noise.guessed(score=0.5, spread=0.4, agreement=0.5).between == pytest.approx(0.1)
    assert Noise.guessed(score=0.5, spread=0.4, agreement=0.5).within == pytest.approx(0.3)


def test_the_split_finds_the_variances_that_were_put_in() -> None:
    random = np.random.default_rng(1)
    cells = cells_from_passes(random.binomial(4, random.beta(0.5, 0.5, 20_000)), 4)
    split = split_of(cells)
    assert split is not None
    # Beta(½, ½) has variance ⅛, and a round given its chance has ¼ − ⅛ on average.
    assert (split.between, split.within) == pytest.approx((0.125, 0.125), abs=0.004)
    assert split.cases == 20_000
    assert split.rounds == pytest.approx(4)


def test_the_split_of_a_difference_adds_the_noise_of_both_arms() -> None:
    random = np.random.default_rng(2)
    arms = [cells_from_passes(random.binomial(k, random.beta(0.5, 0.5, 20_000)), k) for k in (3, 6)]
    split = difference_split(*arms)
    assert split is not None
    assert (split.between, split.within) == pytest.approx((0.25, 0.25), abs=0.008)
    assert split.rounds == pytest.approx(4, rel=0.02)  # (⅓ + ⅙)/2 is ¼
    observed = np.var([arms[1][key].mean - arms[0][key].mean for key in arms[0]]) / 20_000
    assert split.of_mean == pytest.approx(observed, rel=0.01)


def test_advice_is_more_rounds_only_where_rounds_are_the_noise() -> None:
    noisy = split_of(run([[1.0, 0.0]] * 10 + [[0.0, 0.0]] * 5))
    steady = split_of(run([[1.0, 1.0]] * 10 + [[0.0, 0.0]] * 5))
    assert noisy is not None
    assert steady is not None
    assert (noisy.advice, steady.advice) == ("more rounds", "more cases")
    assert steady.gain_of_doubling_rounds == 0
    assert noisy.gain_of_doubling_rounds == pytest.approx(1 - 0.5**0.5)
    assert steady.sentence == (
        "100 % of the uncertainty is between cases, 0 % between rounds of one case: more cases would help; "
        "twice the cases narrow the interval by 29 %, twice the rounds by 0 %"
    )


def test_cases_that_hang_together_are_one_source_of_noise() -> None:
    random = np.random.default_rng(23)
    chance = np.repeat(random.beta(0.5, 0.5, 2_000), 5)
    names = [str(place // 5) for place in range(10_000)]
    cells = cells_from_passes(random.binomial(4, chance), 4, names)
    split = split_of(cells)
    assert split is not None
    assert split.clusters == 2_000
    # Between clusters ⅛, and of one round ⅛; what rounds leave is shared by five times as many cases.
    assert (split.between, split.within) == pytest.approx((0.125, 0.125), abs=0.01)
    assert split.of_mean == pytest.approx(moments_of(list(cells.values())).variance)
    assert split.share_within == pytest.approx(0.125 / 4 / 5 / (0.125 + 0.125 / 4 / 5), rel=0.1)
    assert split.advice == "more clusters"
    assert "is between clusters of cases" in split.sentence
    assert "twice the clusters of cases narrow the interval by 29 %" in split.sentence
    same = {CaseKey(str(place)): Cell.of(values, "same") for place, values in enumerate(([1, 0], [1, 1]))}
    assert split_of(same) is None


def test_one_round_each_or_one_case_cannot_be_split() -> None:
    assert split_of(run([[1], [0]])) is None
    assert split_of(run([[1, 0]])) is None
    assert difference_split(run([[1], [0]]), run([[1, 0], [0, 1]])) is None
    assert difference_split(run([[1, 0]]), run([[1, 0]])) is None


def test_without_any_variance_nothing_is_divided_by_zero() -> None:
    split = split_of(run([[1, 1]] * 3))
    assert split is not None
    assert (split.share_within, split.of_mean) == (0, 0)
    pairs = difference_split(run([[1, 1]] * 3), run([[1, 1]] * 3))
    assert pairs is not None
    assert (pairs.share_within, pairs.rounds) == (0, 2)


def test_the_flip_rate_is_the_share_of_cases_that_changed_their_verdict() -> None:
    found = flip_rate(run([[1], [0], [1], [1]]), run([[1], [1], [0], [1]]))
    assert found is not None
    assert (found.rate, found.cases) == (0.5, 4)
    assert found.interval is not None
    assert found.interval.method == f"Wilson, {TOO_SMALL}"


def test_the_flip_rate_of_several_rounds_counts_every_pair_of_tries() -> None:
    between = flip_rate(run([[1, 0], [1, 1]]), run([[1, 1], [1, 1]]))
    within = flip_rate_within(run([[1, 0, 0], [1, 1], [1]]))
    assert between is not None
    assert within is not None
    assert between.rate == 0.25
    assert within.rate == pytest.approx((2 / 3 + 0) / 2)
    assert within.cases == 2


def test_a_subject_that_never_flipped_may_still_do_so() -> None:
    found = flip_rate(run([[1]] * 60), run([[1]] * 60))
    assert found is not None
    assert found.rate == 0
    assert found.interval is not None
    assert found.interval.high == pytest.approx(1 - 0.05 ** (1 / 60))


def test_a_flip_rate_needs_common_cases_and_passes() -> None:
    assert flip_rate(run([[1]]), {}) is None
    assert flip_rate_within(run([[1]])) is None
    with pytest.raises(UsageError, match=r"flip rate: case '0' has scores between 0 and 1"):
        flip_rate(run([[0.5]]), run([[1]]))


@pytest.mark.parametrize(("cases", "rounds"), [(20, 2), (30, 3)])
def test_with_several_rounds_the_minimum_detectable_difference_is_found_in_80_percent(cases: int, rounds: int) -> None:
    random, half = np.random.default_rng(31), detectable(cases, rounds, Noise(0, 0.5)) / 2
    drawn = [[random.binomial(rounds, np.full(cases, 0.5 + part)) for part in (-half, half)] for _ in range(400)]
    found = [judge(compare(*(cells_from_passes(arm, rounds) for arm in arms))).verdict for arms in drawn]
    assert 0.77 <= found.count(GateVerdict.IMPROVED) / len(found) <= 0.88


def test_unchanged_code_passes_a_margin_in_95_percent_with_as_many_cases_as_are_said_to_be_needed() -> None:
    random = np.random.default_rng(32)

    def unchanged(cases: int) -> Comparison:
        return compare(*(cells_from_passes(random.binomial(3, np.full(cases, 0.5)), 3) for _ in range(2)))

    def passes(cases: int) -> float:
        inner = [unchanged(cases).inner for _ in range(200)]
        return sum(one is not None and one.low > -0.1 for one in inner) / len(inner)

    needed = np.median([cases_to_pass(unchanged(50), 0.1) or 0 for _ in range(20)])
    assert passes(50) < 0.7
    assert passes(int(needed)) >= 0.93
    assert cases_to_pass(compare(run([[1]]), run([[1]])), 0.1) is None
    assert design_of(1, 3).least_margin is None
    assert (design_of(200, 3).least_margin or 0) < (design_of(50, 3).least_margin or 0)


@pytest.mark.parametrize("rounds", [1, 4])
def test_so_many_cases_as_are_needed_find_the_difference_and_half_of_them_do_not(rounds: int) -> None:
    def arms(times: int) -> tuple[Cells, Cells]:
        better = np.tile([1, 1, 1, 0, 0, 0, 0, 0], times) * rounds
        return cells_from_passes(np.tile([0, 0, 0, 1, 0, 0, 0, 0], times) * rounds, rounds), cells_from_passes(
            better, rounds
        )

    needed = cases_needed(*arms(1))
    assert needed is not None
    assert needed > 8
    many, half = (detectable_between(*arms(times)) for times in (round(needed / 8 + 1), needed // 16))
    assert many is not None
    assert half is not None
    assert many < 0.25 < half
    assert cases_needed(run([[1]] * 9), run([[1]] * 9)) is None
