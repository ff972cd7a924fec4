"""The interval of one score."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from bakeoff.stats.cells import CaseKey, Cell, cells_of
from bakeoff.stats.intervals import (
    TOO_SMALL,
    Interval,
    amount_interval,
    ratio_interval,
    rule_of_three,
    score_interval,
    wilson,
)

unhurried = settings(deadline=None)  # the first call imports scipy

# Sixty-fourths are exact in binary, and so is 1 minus any of them.
scores = st.one_of(st.sampled_from([0.0, 1.0]), st.integers(0, 64).map(lambda part: part / 64))
rounds = st.lists(scores, min_size=1, max_size=4)
clusters = st.one_of(st.none(), st.sampled_from("abcdef"))
cells = st.lists(st.builds(Cell.of, rounds, clusters), min_size=1, max_size=25)


def interval(values: list[list[float]], names: Sequence[str | None] | None = None) -> Interval | None:
    return score_interval(
        [Cell.of(case, name) for case, name in zip(values, names or [None] * len(values), strict=True)]
    )


def method(values: list[list[float]], names: Sequence[str | None] | None = None) -> str:
    found = interval(values, names)
    assert found is not None
    return found.method


def test_no_case_or_one_case_has_no_interval() -> None:
    assert score_interval([]) is None
    assert interval([[0.0, 1.0, 1.0]]) is None


def test_one_cluster_has_no_interval_however_many_cases_it_has() -> None:
    assert interval([[1.0]] * 50, ["same"] * 50) is None
    assert interval([[1.0], [0.0]] * 25, ["same"] * 50) is None


def test_passes_and_failures_of_one_round_get_wilson() -> None:
    assert method([[1.0], [0.0], [1.0]] * 10) == "Wilson"


def test_few_cases_are_marked_as_too_small_to_promise() -> None:
    few = interval([[1.0], [0.0], [1.0]])
    assert few is not None
    assert few.method == f"Wilson, {TOO_SMALL}"
    assert not few.promised
    assert method([[1.0], [0.0]] * 9) == f"Wilson, {TOO_SMALL}"
    assert method([[1.0], [0.0]] * 10) == "Wilson"
    assert method([[1.0, 0.0], [0.5, 1.0]] * 9) == f"Bayesian bootstrap, {TOO_SMALL}"
    assert method([[1.0, 0.0], [0.5, 1.0]] * 10) == "Bayesian bootstrap"
    assert method([[1.0, 0.0], [0.5, 1.0], [1.0, 1.0]] * 3) == f"Bayesian bootstrap, {TOO_SMALL}"
    assert method([[1.0, 1.0]] * 9) == f"rule of three, {TOO_SMALL}"


def test_a_cluster_that_outweighs_the_others_is_too_small_to_promise() -> None:
    names = ["large"] * 30 + [str(place) for place in range(20)]
    found = interval([[1.0, 0.0], [1.0, 1.0]] * 25, names)
    assert found is not None
    assert not found.promised
    equal = interval([[1.0, 0.0], [1.0, 1.0]] * 25, [str(place // 2) for place in range(50)])
    assert equal is not None
    assert equal.promised
    assert found.width > 2 * equal.width


def test_all_passed_and_all_failed_get_the_rule_of_three() -> None:
    passed, failed = interval([[1.0]] * 100), interval([[0.0, 0.0]] * 100)
    assert passed is not None
    assert failed is not None
    assert (passed.low, passed.high) == pytest.approx((0.05 ** (1 / 100), 1.0))
    assert (failed.low, failed.high) == pytest.approx((0.0, 1 - 0.05 ** (1 / 100)))
    assert (passed.method, failed.method) == ("rule of three", "rule of three")


def test_cases_that_all_scored_the_same_are_not_certain() -> None:
    found = interval([[0.5, 0.5]] * 20)
    assert found is not None
    assert found.method == "rule of three"
    assert found.low < 0.45 < 0.55 < found.high


def test_clusters_whose_cases_cancel_out_are_not_certain() -> None:
    found = interval([[0.0], [1.0]] * 10, [str(place // 2) for place in range(20)])
    assert found is not None
    assert found.width > 0.2


def test_t_is_used_away_from_the_edges_and_the_bootstrap_near_them_or_where_scores_are_skewed() -> None:
    assert method([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]] * 20) == "t"
    assert method([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]] * 7) == "Bayesian bootstrap"
    assert method([[0.9]] * 95 + [[0.1]] * 5) == "Bayesian bootstrap"


def test_clusters_are_named_in_the_method() -> None:
    names = [str(place // 2) for place in range(60)]
    assert method([[1.0], [1.0], [0.0], [0.0]] * 15, names) == "clustered t"
    assert method([[1.0], [1.0], *[[0.0]] * 58], names) == "clustered Wilson with effective n"


def test_a_tag_of_its_own_for_every_case_changes_nothing() -> None:
    values = [[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]] * 20
    assert interval(values, [str(place) for place in range(60)]) == interval(values)


def test_more_rounds_do_not_count_as_more_cases() -> None:
    once, often = interval([[1.0], [0.0]] * 30), interval([[1.0] * 50, [0.0] * 50] * 30)
    assert once is not None
    assert often is not None
    assert often.width == pytest.approx(once.width, rel=0.07)


def test_one_case_a_hair_below_the_others_does_not_make_a_certainty() -> None:
    found = interval([[1.0]] * 19 + [[0.99]])
    assert found is not None
    assert found.low < 0.98


def test_a_score_outside_0_and_1_is_refused() -> None:
    with pytest.raises(ValueError, match=r"score 1\.5 is not between 0 and 1"):
        Cell.of([1.0, 1.5])
    with pytest.raises(ValueError, match="nan"):
        Cell.of([float("nan")])
    with pytest.raises(ValueError, match="without rounds"):
        Cell.of([])


def test_cells_are_made_of_plain_lists() -> None:
    key = CaseKey("a", "hash")
    assert cells_of({key: [1, 0.5]}, {key: "family"}) == {key: Cell(2, 1.5, 1.25, "family")}


def test_an_interval_is_frozen() -> None:
    found = wilson(0.5, 10)
    with pytest.raises(ValidationError, match="frozen"):
        found.low = 0.0  # type: ignore[misc]


@unhurried
@given(cells)
def test_an_interval_lies_within_0_and_1_holds_the_score_and_has_a_width(drawn: list[Cell]) -> None:
    found = score_interval(drawn)
    if found is not None:
        score = sum(cell.mean for cell in drawn) / len(drawn)
        assert 0 <= found.low <= score + 1e-9
        assert score - 1e-9 <= found.high <= 1
        assert found.width > 1e-6


@unhurried
@given(cells)
def test_passes_and_failures_swapped_mirror_the_interval(drawn: list[Cell]) -> None:
    mirrored = [Cell(c.rounds, c.rounds - c.total, c.rounds - 2 * c.total + c.squares, c.cluster) for c in drawn]
    here, there = score_interval(drawn), score_interval(mirrored)
    if here is None or there is None:
        assert here is there
    elif here.method == there.method:  # the choice may tip over where the mean is a rounding away from its bound
        assert (here.low, here.high) == pytest.approx((1 - there.high, 1 - there.low), abs=1e-6)


@unhurried
@given(st.lists(st.booleans(), min_size=2, max_size=40))
def test_the_order_of_cases_does_not_matter(passed: list[bool]) -> None:
    here = [Cell.of([value]) for value in passed]
    assert score_interval(here) == score_interval(here[::-1])


@unhurried
@given(st.integers(1, 200), st.data())
def test_wilson_moves_up_with_every_pass_and_narrows_with_more_cases(n: int, data: st.DataObject) -> None:
    passed = data.draw(st.integers(0, n - 1))
    here, up, more = wilson(passed / n, n), wilson((passed + 1) / n, n), wilson(passed / n, 2 * n)
    assert here.low <= up.low
    assert here.high <= up.high
    assert more.width < here.width


@unhurried
@given(st.integers(1, 10_000))
def test_the_rule_of_three_is_a_little_below_three_over_n(n: int) -> None:
    found = rule_of_three(0.0, n)
    assert 0 < found.high <= 3 / n
    assert found.high >= 0.95 * min(1.0, 3 / (n + 2))


@unhurried
@given(cells, st.floats(0.5, 0.98))
def test_more_confidence_is_wider(drawn: list[Cell], confidence: float) -> None:
    sure, less = score_interval(drawn, confidence=0.99), score_interval(drawn, confidence=confidence)
    if sure is not None and less is not None:
        assert sure.width > less.width


@unhurried
@given(st.lists(st.booleans(), min_size=1, max_size=50))
def test_sums_know_passes_and_failures_from_grades(values: list[bool]) -> None:
    assert Cell.of(values).binary
    assert not Cell.of([*values, 0.5]).binary
    exact = Fraction(sum(values), len(values))
    assert Cell.of(values).mean == pytest.approx(float(exact))


@pytest.mark.parametrize(("units", "size", "skew"), [(300, 1, 0.5), (100, 3, 0.5), (100, 1, 1.0), (20, 5, 1.5)])
def test_costs_are_covered_or_marked_also_in_clusters_and_so_is_their_ratio(units: int, size: int, skew: float) -> None:
    random = np.random.default_rng([units, size])
    sizes, alone, ratios = [size] * units, [], []
    for _ in range(400):
        cheap = (size * np.exp(skew * random.normal(size=units))).tolist()
        dear = (15 * np.array(cheap) * np.exp(0.3 * random.normal(size=units) - 0.045)).tolist()
        alone.append(amount_interval(sizes, cheap))
        ratios.append(ratio_interval(sizes, dear, cheap))
    for found, truth in ((alone, np.exp(skew**2 / 2)), (ratios, 15)):
        known = [one for one in found if one is not None]
        marked = np.mean([not one.promised for one in known])
        assert marked >= 0.8 or np.mean([one.low <= truth <= one.high for one in known]) >= 0.92


def test_costs_of_one_case_or_of_nothing_have_no_interval() -> None:
    assert amount_interval([3], [1.0]) is None
    assert amount_interval([1, 1], [0.0, 0.0]) is None
    assert ratio_interval([1, 1], [1.0, 2.0], [0.0, 0.0]) is None
    assert ratio_interval([1, 1], [1.0, 2.0], [0.5, 1.0]) is None  # exactly twice, so that nothing varies
