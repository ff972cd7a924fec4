"""`bakeoff power`: what a design can show before anything is spent."""

import json

import pytest

from bakeoff.report.compare.description import verdict_on
from bakeoff.stats.power import design_of

from ..warm_bakeoff import Bakeoff


def test_power_tells_what_a_design_finds_and_how_wide_its_intervals_are(bakeoff: Bakeoff) -> None:
    done = bakeoff("power", "--cases", "30", "--rounds", "3")
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "30 cases × 3 rounds find a difference of" in text
    assert "4 times in 5" in text
    told = json.loads(bakeoff("power", "--cases", "30", "--rounds", "3", "--json").stdout)
    assert (told["cases"], told["rounds"]) == (30, 3)
    assert 0.1 < told["difference_width"] < told["detectable"] < 0.4


@pytest.mark.parametrize(("cases", "rounds"), [(2, 1), (4, 100), (5, 3)])
def test_very_few_cases_are_told_to_be_more_cases_whatever_the_rounds(cases: int, rounds: int) -> None:
    words = verdict_on(design_of(cases, rounds))
    assert f"their p-value is never below {min(1.0, 2.0 ** (1 - cases)):.3g}; use more cases, at least 6" in words


def test_more_cases_and_more_rounds_both_narrow_a_design() -> None:
    base, wider, deeper = design_of(30, 1), design_of(60, 1), design_of(30, 2)
    assert base.detectable is not None
    assert wider.detectable is not None
    assert deeper.detectable is not None
    assert wider.detectable < deeper.detectable < base.detectable
    assert design_of(1, 5).detectable is None
    assert design_of(1, 5).too_small
