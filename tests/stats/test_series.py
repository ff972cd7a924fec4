"""A series of runs: what is found, since when, how soon, and that a loss that was regained is not found again."""

import random

import pytest

from bakeoff.stats.cells import CaseKey, Cell, Cells
from bakeoff.stats.series import delay_of, series_change


def run(dice: random.Random, chance: float, cases: int = 40, rounds: int = 3) -> Cells:
    return {
        CaseKey(str(case)): Cell.of([float(dice.random() < chance) for _ in range(rounds)]) for case in range(cases)
    }


def test_a_loss_that_was_regained_is_not_found_again_and_a_second_one_is() -> None:
    dice = random.Random(1)
    runs = [run(dice, chance) for chance in (*[0.95] * 4, 0.5, 0.5, *[0.95] * 6)]
    for length in range(8, len(runs) + 1):
        assert not series_change(runs[:length]).worse, length
    first = series_change(runs)
    assert (first.since, first.recovered_at, first.recovered) == (4, 6, ((4, 6),))
    second = series_change([*runs, run(dice, 0.5)])
    assert (second.worse, second.since, second.recovered) == (True, 12, ((4, 6),))


@pytest.mark.parametrize(("cases", "rounds", "past", "chance"), [(50, 3, 5, 1.0), (100, 3, 4, 0.95), (30, 20, 1, 1.0)])
def test_a_drop_of_ten_points_is_found_within_the_stated_delay(
    cases: int, rounds: int, past: int, chance: float
) -> None:
    found = 0
    for seed in range(30):
        dice = random.Random(seed)
        runs = [run(dice, chance, cases, rounds) for _ in range(past)]
        delay = delay_of(0.1, runs)
        assert delay is not None
        later = [run(dice, chance - 0.1, cases, rounds) for _ in range(delay)]
        found += series_change([*runs, *later]).found_at is not None
    assert found >= 27


def test_too_few_cases_promise_no_delay() -> None:
    same = run(random.Random(0), 1.0, cases=20, rounds=1)
    assert delay_of(0.1, [same, same]) is None
