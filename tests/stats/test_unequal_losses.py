"""Subjects that lose more of their trials than others are found, and chance alone seldom looks like that."""

import random
from itertools import combinations

import pytest

from bakeoff.stats.gates import Losses, unequal_losses

TRIALS = 40


def drawn(chances: list[float], rng: random.Random) -> dict[str, Losses]:
    """The losses of subjects whose trials are lost with these chances."""
    counts = [sum(rng.random() < chance for _ in range(TRIALS)) for chance in chances]
    return {f"s{place}": Losses(TRIALS, count) for place, count in enumerate(counts)}


def share_flagged(chances: list[float], runs: int) -> float:
    rng = random.Random(19)
    return sum(bool(unequal_losses(drawn(chances, rng))) for _ in range(runs)) / runs


@pytest.mark.unwatched
@pytest.mark.parametrize("chances", [[0.05] * 2, [0.3] * 2, [0.1] * 5], ids=str)
def test_subjects_that_lose_alike_are_seldom_flagged(chances: list[float]) -> None:
    assert share_flagged(chances, 1000) <= 0.05


@pytest.mark.unwatched
@pytest.mark.parametrize(("chances", "least"), [([0.0, 0.35], 0.95), ([0.02, 0.02, 0.02, 0.5], 0.95)], ids=str)
def test_a_subject_that_loses_what_others_keep_is_flagged(chances: list[float], least: float) -> None:
    assert share_flagged(chances, 300) >= least


def test_the_pair_and_its_counts_are_told_the_clearest_first() -> None:
    found = unequal_losses({"a": Losses(20, 0), "b": Losses(20, 20), "c": Losses(20, 9)})
    assert [(pair.more, pair.fewer) for pair in found] == [("b", "a"), ("b", "c"), ("c", "a")]
    assert (found[0].more_lost, found[0].more_trials, found[0].fewer_lost, found[0].fewer_trials) == (20, 20, 0, 20)


@pytest.mark.parametrize(
    "losses",
    [{}, {"a": Losses(10, 10)}, {"a": Losses(10, 5), "b": Losses(10, 5)}, {"a": Losses(0, 0), "b": Losses(10, 9)}],
)
def test_equal_shares_and_subjects_without_trials_are_not_flagged(losses: dict[str, Losses]) -> None:
    assert unequal_losses(losses) == ()


def test_a_difference_that_does_not_matter_is_not_flagged() -> None:
    assert unequal_losses({"a": Losses(100_000, 0), "b": Losses(100_000, 900)}) == ()


def test_more_subjects_need_clearer_losses() -> None:
    few = {"a": Losses(10, 6), "b": Losses(10, 0)}
    many = few | {f"other {number}": Losses(10, 3) for number in range(6)}
    assert unequal_losses(few)
    assert not unequal_losses(many)
    assert len(list(combinations(many, 2))) == 28
