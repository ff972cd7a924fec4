"""Two runs, case by case."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.stats.cells import CaseKey, Cell, Cells
from bakeoff.stats.comparison import Comparison, compare
from bakeoff.stats.differences import sign_flip_test
from bakeoff.stats.intervals import TOO_SMALL

quick = settings(max_examples=60, deadline=None)
arm = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=6, max_size=6)


def run(values: list[list[float]], *, first: int = 0, digest: str = "", clusters: list[str] | None = None) -> Cells:
    return {
        CaseKey(f"case {place}", digest): Cell.of(rounds, clusters[place - first] if clusters else None)
        for place, rounds in enumerate(values, first)
    }


def once(values: list[float], *, first: int = 0) -> Cells:
    return run([[value] for value in values], first=first)


def test_a_difference_is_candidate_minus_baseline_over_the_common_cases() -> None:
    found = compare(run([[0, 0], [0, 1], [1, 1], [1, 1]]), run([[1, 1], [0, 1], [1, 1], [1, 0]]))
    assert found.paired
    assert (found.baseline, found.candidate) == (0.625, 0.75)
    assert found.difference == pytest.approx(0.125)
    assert (found.wins, found.ties, found.losses) == (1, 2, 1)
    assert found.test == "exact sign-flip permutation"
    assert found.interval is not None
    assert found.interval.method == f"Tango with effective n, {TOO_SMALL}"


def test_cases_that_only_one_run_has_are_listed_and_left_out() -> None:
    found = compare(once([0, 1, 0]), once([1, 1, 1], first=1))
    assert found.cases == 2
    assert found.baseline_only == (CaseKey("case 0"),)
    assert found.candidate_only == (CaseKey("case 3"),)
    assert found.changed == ()


def test_a_case_whose_content_changed_is_not_the_same_case() -> None:
    before = {**run([[0], [1]]), CaseKey("edited", "old"): Cell.of([0])}
    after = {**run([[0], [1]]), CaseKey("edited", "new"): Cell.of([1])}
    found = compare(before, after)
    assert (found.cases, found.difference) == (2, 0)
    assert found.changed == ("edited",)


def test_without_a_common_case_the_comparison_is_labelled_unpaired() -> None:
    found = compare(once([0.0, 1.0] * 10), once([1.0, 1.0, 1.0, 0.0] * 10, first=100))
    assert not found.paired
    assert found.interval is not None
    assert found.interval.method == "unpaired Newcombe"
    assert found.test == "unpaired Fisher's exact test"
    assert found.difference == pytest.approx(0.25)
    assert (found.cases, found.wins, found.ties, found.losses) == (60, 0, 0, 0)
    assert len(found.baseline_only) == 20


def test_unpaired_arms_of_several_rounds_are_compared_by_their_case_means() -> None:
    clear = compare(run([[0, 1], [0, 0]] * 10), run([[1, 1], [0, 1]] * 10, first=100))
    assert clear.test == "p-value from the interval"  # it is stricter here
    assert clear.p_value is not None
    assert clear.p_value < 0.001
    close = compare(run([[0, 1], [0, 0]] * 10), run([[0, 1], [0, 0], [0, 1]] * 7, first=100))
    assert close.test == "unpaired Welch's t"


def test_unpaired_arms_without_any_spread_are_still_compared() -> None:
    apart = compare(run([[0, 0]] * 4), run([[1, 1]] * 4, first=10))
    alike = compare(run([[1, 1]] * 4), run([[1, 1]] * 4, first=10))
    assert apart.p_value == pytest.approx(2 / 70)
    assert alike.p_value == 1


def test_nothing_to_compare_is_undefined() -> None:
    for found in (compare({}, {}), compare({}, once([1, 0])), compare(once([1]), once([0], first=5))):
        assert found.interval is None
        assert found.p_value is None
    assert compare({}, {}).difference is None


def test_one_pair_has_a_difference_and_no_interval() -> None:
    found = compare(once([0]), once([1]))
    assert (found.difference, found.interval, found.p_value) == (1, None, None)


def test_one_cluster_has_a_difference_and_no_interval() -> None:
    same = ["one"] * 4
    found = compare(run([[0]] * 4, clusters=same), run([[1], [0], [1], [1]], clusters=same))
    assert (found.difference, found.interval, found.p_value) == (0.75, None, None)


def test_clusters_flip_whole() -> None:
    names = [str(place // 3) for place in range(12)]
    found = compare(run([[0.0]] * 11 + [[1.0]], clusters=names), run([[1]] * 12, clusters=names))
    assert found.p_value == pytest.approx(2 / 2**4)
    assert found.test == "exact sign-flip permutation"


@pytest.mark.parametrize(("cases", "low"), [(2, 0.0), (3, 0.0816), (5, 0.383), (100, 0.9634)])
def test_a_complete_reversal_has_a_p_value_and_an_interval_that_agree(cases: int, low: float) -> None:
    """If a case passes with any probability p, both arms differ with p(1 − p) at most, which is 1/4."""
    up, down = compare(once([0] * cases), once([1] * cases)), compare(once([1] * cases), once([0] * cases))
    assert up.p_value == down.p_value == pytest.approx(2 * 0.25**cases)
    assert up.p_value is not None
    assert up.interval is not None
    assert down.interval is not None
    assert max(0, up.interval.low) == pytest.approx(low, abs=5e-4)
    assert up.interval.high == 1
    assert (down.interval.low, down.interval.high) == (-1, -up.interval.low)
    assert (up.p_value <= 0.05) == (up.interval.low > 0)


def test_a_reversal_of_whole_clusters_counts_them_once() -> None:
    names = [str(place // 3) for place in range(12)]
    found = compare(run([[0]] * 12, clusters=names), run([[1]] * 12, clusters=names))
    assert found.p_value == pytest.approx(2 * 0.25**4)


def test_a_tag_in_either_run_says_which_cases_hang_together() -> None:
    names = [str(place // 3) for place in range(12)]
    tagged, plain = run([[1], [0], [1]] * 4, clusters=names), run([[0], [1], [1]] * 4)
    assert compare(plain, tagged).test == "exact sign-flip permutation"
    assert compare(tagged, plain).test == "exact sign-flip permutation"


def test_runs_without_any_difference_are_not_certain_to_be_alike() -> None:
    found = compare(once([0, 1] * 50), once([0, 1] * 50))
    bound = 1 - 0.025 ** (1 / 100)  # either side may be the one
    assert found.p_value == 1
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((-bound, bound))
    assert found.interval.method == "rule of three"


@quick
@given(arm, arm)
def test_swapping_the_arms_mirrors_everything(before: list[float], after: list[float]) -> None:
    here, there = compare(once(before), once(after)), compare(once(after), once(before))
    assert here.p_value == there.p_value
    assert (here.wins, here.ties, here.losses) == (there.losses, there.ties, there.wins)
    assert ends(here) == pytest.approx([-end for end in reversed(ends(there))])


@quick
@given(arm, arm)
def test_a_comparison_stays_within_what_scores_can_do(before: list[float], after: list[float]) -> None:
    found = compare(once(before), once(after))
    assert found.difference is not None
    assert found.p_value is not None
    assert 0 < found.p_value <= 1
    assert -1 <= ends(found)[0] <= found.difference + 1e-12
    assert found.difference - 1e-12 <= ends(found)[1] <= 1
    assert ends(found)[1] > ends(found)[0]
    assert found.inner is not None
    assert found.inner.width <= ends(found)[1] - ends(found)[0]


def ends(found: Comparison) -> list[float]:
    assert found.interval is not None
    return [found.interval.low, found.interval.high]


@quick
@given(st.lists(st.integers(-12, 12), min_size=1, max_size=12))
def test_a_larger_gap_never_has_a_larger_p(steps: list[int]) -> None:
    here = sign_flip_test([abs(step) / 12 for step in steps]).p_value
    one_back = sign_flip_test(
        [abs(step) / 12 if place else -abs(step) / 12 for place, step in enumerate(steps)]
    ).p_value
    assert here <= one_back + 1e-12
