"""Several comparisons at once: p-values and intervals are adjusted alike."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.stats.comparison import Comparison, compare, holm, holm_levels
from bakeoff.stats.gates import TOGETHER, PairedArms, judge_pairs
from bakeoff.stats.intervals import ALPHA

from .simulation import cells_from_passes

few = settings(max_examples=40, deadline=None)


def excludes_zero(found: Comparison) -> bool:
    assert found.interval is not None
    return found.interval.low > 0 or found.interval.high < 0


@few
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_a_p_value_is_within_its_level_exactly_if_holm_makes_it_significant(p_values: list[float]) -> None:
    for p_value, adjusted, level in zip(p_values, holm(p_values), holm_levels(p_values), strict=True):
        if abs(adjusted - ALPHA) > 1e-9:
            assert (p_value <= level) == (adjusted <= ALPHA)
        assert ALPHA / len(p_values) <= level <= ALPHA


@few
@given(st.integers(1, 5), st.integers(6, 40), st.floats(0, 0.6), st.integers(0, 10_000))
def test_an_interval_excludes_no_difference_exactly_if_the_p_value_is_small(
    rounds: int, cases: int, shift: float, seed: int
) -> None:
    random = np.random.default_rng(seed)
    before = cells_from_passes(random.binomial(rounds, np.full(cases, 0.4)), rounds)
    after = cells_from_passes(random.binomial(rounds, np.full(cases, 0.4 + shift)), rounds)
    for level in (0.05, 0.01, 0.001):
        found = compare(before, after, level=level)
        assert found.p_value is not None
        assert excludes_zero(found) == (found.p_value <= level)


def test_an_unpaired_interval_agrees_with_its_p_value_too() -> None:
    random = np.random.default_rng(9)
    decided = 0
    for shift in np.linspace(0, 0.5, 30):
        before = cells_from_passes(random.binomial(3, np.full(15, 0.4)), 3)
        after = {**cells_from_passes(random.binomial(3, np.full(40, 0.4 + shift)), 3)}
        found = compare(before, {key._replace(id=f"other {key.id}"): cell for key, cell in after.items()})
        assert not found.paired
        assert found.p_value is not None
        assert excludes_zero(found) == (found.p_value <= 0.05)
        decided += excludes_zero(found)
    assert 0 < decided < 30


def test_several_subjects_have_intervals_that_agree_with_their_adjusted_p_values() -> None:
    random = np.random.default_rng(3)
    base = cells_from_passes(random.binomial(3, np.full(40, 0.4)), 3)
    shifts = {f"subject {n}": 0.05 * n for n in range(6)}
    pairs = {
        name: (base, cells_from_passes(random.binomial(3, np.full(40, 0.4 + shift)), 3))
        for name, shift in shifts.items()
    }
    found = judge_pairs({name: PairedArms(*pair) for name, pair in pairs.items()})
    assert {ruling.verdict.value for _, ruling in found.values()} == {"improved", "undecidable"}
    for one, ruling in found.values():
        assert ruling.p_value is not None
        assert excludes_zero(one) == (ruling.p_value <= 0.05)
    assert found[TOGETHER].comparison.level == pytest.approx(0.025)
    [(alone, _)] = judge_pairs({"only": PairedArms(*pairs["subject 5"])}).values()
    assert alone == compare(*pairs["subject 5"])
