"""The same numbers as scipy and statsmodels, to nine digits."""

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from bakeoff.stats.cells import CaseKey, Cell, Cells, cells_of, moments_of_means
from bakeoff.stats.comparison import compare, holm, newcombe, unpaired_test
from bakeoff.stats.differences import mcnemar_exact, sign_flip_p_values, sign_flip_test, tail_bounds
from bakeoff.stats.intervals import BayesianBootstrap, rule_of_three, student_t, wilson
from bakeoff.stats.power import Noise, minimum_detectable

from .simulation import Array

pytestmark = pytest.mark.unwatched


@pytest.fixture(scope="module", autouse=True)
def little_to_search() -> Iterator[None]:
    """One of the peers searches for garbage at each call; what was here before is none."""
    gc.freeze()
    yield
    gc.unfreeze()


few = settings(max_examples=40, deadline=None)


def to_nine_digits(expected: Any) -> Any:
    return pytest.approx(expected, abs=1e-9, rel=1e-9)


def tried(passed: int, n: int) -> list[Cell]:
    return [Cell.of([place < passed]) for place in range(n)]


def run(values: list[float], clusters: list[str] | None = None) -> Cells:
    return {
        CaseKey(str(place)): Cell.of([value], clusters[place] if clusters else None)
        for place, value in enumerate(values)
    }


@few
@given(st.integers(1, 300), st.data())
def test_wilson(n: int, data: st.DataObject) -> None:
    passed = data.draw(st.integers(0, n))
    found = wilson(passed / n, n)
    assert (found.low, found.high) == to_nine_digits(proportion_confint(passed, n, method="wilson"))


@few
@given(st.integers(1, 300))
def test_rule_of_three_is_the_one_sided_exact_bound(n: int) -> None:
    bound = scipy_stats.binomtest(0, n, alternative="less").proportion_ci(0.95, method="exact").high
    assert rule_of_three(0.0, n).high == to_nine_digits(bound)


def test_t() -> None:
    values = np.random.default_rng(0).beta(3, 3, 37)
    expected = scipy_stats.t.interval(0.95, 36, loc=values.mean(), scale=scipy_stats.sem(values))
    found = student_t(moments_of_means(values.tolist()))
    assert (found.low, found.high) == to_nine_digits(expected)


def bell_mccaffrey(values: Array, owner: Array) -> tuple[float, float]:
    """The interval of a mean by the matrices of Bell and McCaffrey (2002), as R's clubSandwich computes it.

    CR2 multiplies the residuals of each cluster by (I − H)^−½; the degrees of freedom are Satterthwaite's, the fewer
    of those for independent cases and of those for clusters whose cases are all alike.
    """
    n, ones = len(values), np.ones(len(values))
    residual_maker = np.eye(n) - np.outer(ones, ones) / n
    parts = []
    for name in np.unique(owner):
        inside = np.flatnonzero(owner == name)
        block = residual_maker[np.ix_(inside, inside)]
        values_, vectors = np.linalg.eigh(block)
        adjustment = vectors @ np.diag(values_**-0.5) @ vectors.T
        parts.append(residual_maker[:, inside] @ adjustment @ ones[inside] / n)
    variance = sum((part @ values) ** 2 for part in parts)
    freedoms = []
    for working in (np.eye(n), (owner[:, None] == owner[None, :]).astype(float)):
        products = np.array([[one @ working @ other for other in parts] for one in parts])
        freedoms.append(np.trace(products) ** 2 / (products**2).sum())
    half = scipy_stats.t.ppf(0.975, min(freedoms)) * variance**0.5
    return float(values.mean() - half), float(values.mean() + half)


@pytest.mark.parametrize("seed", range(5))
def test_clustered_t(seed: int) -> None:
    random = np.random.default_rng(seed)
    owner = random.integers(0, 12, 80)
    values = np.clip(0.5 + 0.2 * random.normal(size=12)[owner] + 0.1 * random.normal(size=80), 0, 1)
    found = student_t(moments_of_means(values.tolist(), [str(name) for name in owner]))
    assert found.method == "clustered t"
    assert (found.low, found.high) == to_nine_digits(bell_mccaffrey(values, owner))


@pytest.mark.parametrize("seed", range(3))
def test_clusters_of_one_size_have_the_interval_of_statsmodels(seed: int) -> None:
    random = np.random.default_rng(seed)
    owner = np.arange(80) % 16
    values = np.clip(0.5 + 0.2 * random.normal(size=16)[owner] + 0.1 * random.normal(size=80), 0, 1)
    fit = sm.OLS(values, np.ones(80)).fit(cov_type="cluster", cov_kwds={"groups": owner}, use_t=True)
    found = student_t(moments_of_means(values.tolist(), [str(name) for name in owner]))
    assert (found.low, found.high) == to_nine_digits(tuple(fit.conf_int()[0]))


@pytest.mark.parametrize("seed", range(3))
def test_the_clustered_interval_of_a_paired_difference(seed: int) -> None:
    random = np.random.default_rng(seed)
    owner = random.integers(0, 90, 200)
    before, after = random.random(200), random.random(200)
    names = [str(name) for name in owner]
    found = compare(run(before.tolist(), names), run(after.tolist(), names))
    assert found.interval is not None
    assert found.interval.method == "clustered paired t"
    assert (found.interval.low, found.interval.high) == to_nine_digits(bell_mccaffrey(after - before, owner))


@pytest.mark.parametrize(("passed", "n"), [(1, 10), (5, 10), (3, 40), (38, 40), (25, 50)])
def test_the_bayesian_bootstrap_of_passes_and_failures_is_the_jeffreys_interval(passed: int, n: int) -> None:
    found = BayesianBootstrap.of([1.0] * passed + [0.0] * (n - passed), lowest=0.0, extra=0.5)
    expected = proportion_confint(passed, n, method="jeffreys")
    assert found.bounds(0.95) == pytest.approx(expected, abs=0.001)
    for bound in found.bounds(0.95):
        assert found.two_sided(bound) == pytest.approx(0.05, abs=1e-6)


def test_the_bayesian_bootstrap_is_that_of_drawn_weights() -> None:
    random = np.random.default_rng(31)
    values = random.beta(0.5, 2, 15)
    weights = random.dirichlet([*np.ones(15), 0.25, 0.25], 400_000)
    means = weights @ np.append(values, (-1.0, 1.0))
    found = BayesianBootstrap.of(values, lowest=-1.0, extra=0.25).bounds(0.9)
    assert found == pytest.approx(tuple(np.quantile(means, (0.05, 0.95))), abs=0.004)


def test_the_interval_of_a_paired_difference() -> None:
    random = np.random.default_rng(4)
    before, after = random.random(90), random.random(90)
    expected = scipy_stats.ttest_rel(after, before).confidence_interval(0.95)
    found = compare(run(before.tolist()), run(after.tolist()))
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == to_nine_digits((expected.low, expected.high))


@few
@given(st.integers(0, 120), st.integers(0, 120))
def test_mcnemar(gained: int, lost: int) -> None:
    expected = mcnemar([[3, gained], [lost, 5]], exact=True).pvalue if gained + lost else 1.0
    assert mcnemar_exact(gained, lost) == to_nine_digits(min(1.0, expected))


def test_compare_uses_mcnemar_for_passes_and_failures_of_one_round() -> None:
    before, after = [0.0] * 9 + [1.0] * 11, [1.0] * 8 + [0.0] * 3 + [1.0] * 9
    found = compare(run(before), run(after))
    table = [[9, 2], [8, 1]]
    assert found.test == "exact McNemar"
    assert found.p_value == to_nine_digits(mcnemar(table, exact=True).pvalue)


@few
@given(st.integers(2, 150), st.integers(2, 150), st.data())
def test_newcombe(n: int, m: int, data: st.DataObject) -> None:
    was, now = data.draw(st.integers(0, n)), data.draw(st.integers(0, m))
    expected = confint_proportions_2indep(now, m, was, n, method="newcomb", compare="diff")
    found = newcombe(tried(was, n), tried(now, m), confidence=0.95)
    assert found is not None
    assert (found.low, found.high) == to_nine_digits(expected)


def test_welch() -> None:
    random = np.random.default_rng(5)
    before, after = random.random(13), random.random(29)
    name, chance = unpaired_test([Cell.of([v]) for v in before], [Cell.of([v]) for v in after])
    assert name == "unpaired Welch's t"
    assert chance == to_nine_digits(scipy_stats.ttest_ind(before, after, equal_var=False).pvalue)


def test_fisher() -> None:
    name, chance = unpaired_test(tried(3, 20), tried(12, 25))
    assert name == "unpaired Fisher's exact test"
    assert chance == to_nine_digits(scipy_stats.fisher_exact([[3, 17], [12, 13]]).pvalue)


@few
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_holm(p_values: list[float]) -> None:
    assert holm(p_values) == to_nine_digits(tuple(multipletests(p_values, method="holm")[1]))


@pytest.mark.parametrize("places", [1, 15])
def test_exact_sign_flips(places: int) -> None:
    # One decimal lies on a grid and is convolved, fifteen do not and are enumerated.
    differences = np.round(np.random.default_rng(6).normal(0.3, 0.5, 11), places)
    expected = scipy_stats.permutation_test(
        (differences,), np.sum, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
    )
    found = sign_flip_test(differences.tolist())
    assert found.method == "exact sign-flip permutation"
    assert found.p_value == to_nine_digits(expected.pvalue)


def test_sign_flips_of_passes_and_failures_are_mcnemar() -> None:
    for gained, lost in ((700, 640), (30, 12), (5, 5), (1, 0)):
        differences = [1.0] * gained + [-1.0] * lost + [0.0] * 7
        assert sign_flip_test(differences).p_value == to_nine_digits(mcnemar_exact(gained, lost))


@pytest.mark.parametrize("shift", [0.0, 0.2, 0.6])
def test_the_bound_of_sign_flips_is_never_below_the_exact_chance(shift: float) -> None:
    for row in np.random.default_rng(10).normal(shift, 0.5, (20, 14)):
        exact = sign_flip_test(row.tolist())
        assert exact.method == "exact sign-flip permutation"
        assert exact.p_value <= float(tail_bounds(row[np.newaxis])[0]) <= max(2e-4, 30 * exact.p_value)


def test_a_difference_beyond_what_draws_can_show_is_bounded() -> None:
    differences = np.random.default_rng(12).normal(0.5, 0.3, 100)
    found = sign_flip_test(differences.tolist())
    assert found.method == "sign-flip permutation (upper bound)"
    assert scipy_stats.ttest_1samp(differences, 0).pvalue < found.p_value < 1e-12
    alike = sign_flip_test((0.5 + 1e-4 * differences).tolist())
    assert alike.p_value == pytest.approx(2 * 0.5**100, rel=1e-3)  # all of one sign: one of 2^100, twice


def test_many_rows_at_a_time_have_the_chances_of_each() -> None:
    random = np.random.default_rng(13)
    graded = random.normal(0.1, 0.3, (6, 40))
    graded[3, :30] = 0  # few enough to be enumerated
    grid = np.rint(5 * random.normal(0.1, 0.3, (4, 40))) / 5
    rows = np.concatenate((graded, grid, np.zeros((1, 40)), random.normal(0.6, 0.2, (2, 40))))
    expected = [sign_flip_test(row.tolist()).p_value for row in rows]
    assert sign_flip_p_values(rows).tolist() == pytest.approx(expected, rel=1e-6, abs=0.01)
    assert sign_flip_p_values(rows)[6:].tolist() == to_nine_digits(expected[6:])


def test_drawn_sign_flips_are_near_the_exact_ones_and_the_same_every_time() -> None:
    differences = np.random.default_rng(8).normal(0.2, 0.5, 40).tolist()
    found = sign_flip_test(differences)
    assert found == sign_flip_test(differences)
    assert found.method == "sign-flip permutation (20,000 draws, seed 0)"
    assert found.p_value == pytest.approx(scipy_stats.ttest_1samp(differences, 0).pvalue, abs=0.02)


@pytest.mark.parametrize("cases", [20, 60, 300])
def test_the_minimum_detectable_difference(cases: int) -> None:
    noise = Noise(0.1, 0.3)
    found = minimum_detectable(cases, 4, noise)
    assert found is not None
    effect = (found - 1 / 4 / cases) / (0.1 + 0.3 / 4) ** 0.5  # without what the grid of four rounds costs
    assert TTestPower().power(effect, cases, 0.05, alternative="two-sided") == pytest.approx(0.8, abs=1e-5)


def test_pairs_of_many_rounds_are_tested_on_case_means() -> None:
    random = np.random.default_rng(9)
    before, after = random.integers(0, 2, (12, 5)), random.integers(0, 2, (12, 5))
    keys = [CaseKey(str(place)) for place in range(12)]
    arms = [cells_of(dict(zip(keys, arm, strict=True))) for arm in (before, after)]
    means = after.mean(axis=1) - before.mean(axis=1)
    expected = scipy_stats.permutation_test(
        (np.rint(5 * means),), np.sum, permutation_type="samples", n_resamples=np.inf
    )
    assert sign_flip_test(means.tolist()).p_value == to_nine_digits(expected.pvalue)
    found = compare(*arms)  # with so few cases the interval is stricter
    assert found.test == "p-value from the interval"
    assert found.p_value is not None
    assert found.p_value > expected.pvalue
