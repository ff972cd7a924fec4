"""The run-wide limits."""

import time
from typing import Any

import pytest

from bakeoff.engine.run_control import Budget
from bakeoff.options import RunOptions
from bakeoff.record import Usage


@pytest.mark.parametrize(
    ("limits", "spent", "sentence"),
    [
        ({}, Usage(input=10**9, cost=1e9), None),
        ({"max_cost": 2.0}, Usage(cost=1.99), None),
        ({"max_cost": 2.0}, Usage(cost=None, input=5), None),
        ({"max_cost": 2.0}, Usage(cost=2.0), "max_cost $2 is reached: $2 spent"),
        ({"max_total_tokens": 10}, Usage(input=5, output=4), None),
        ({"max_total_tokens": 10}, Usage(input=5, output=5), "max_total_tokens 10 is reached: 10 used"),
        ({"max_seconds": 1e9}, Usage(), None),
    ],
)
def test_a_budget_says_which_limit_is_reached(limits: dict[str, Any], spent: Usage, sentence: str | None) -> None:
    assert Budget(RunOptions(**limits), spent).exceeded() == sentence


def test_a_budget_of_time_is_reached_by_the_clock() -> None:
    budget = Budget(RunOptions(max_seconds=5.0), started=time.monotonic() - 6)
    assert budget.exceeded() == "max_seconds 5 is reached"


@pytest.mark.parametrize(
    ("limits", "more", "fits"),
    [
        ({}, Usage(input=10**9), True),
        ({"max_cost": 2.0}, Usage(cost=1.0), True),
        ({"max_cost": 2.0}, Usage(cost=1.01), False),
        ({"max_cost": 2.0}, Usage(input=1), False),
        ({"max_total_tokens": 20}, Usage(input=5, output=5), True),
        ({"max_total_tokens": 20}, Usage(input=5, output=6), False),
    ],
)
def test_a_budget_says_whether_there_is_room_for_more(limits: dict[str, Any], more: Usage, fits: bool) -> None:
    spent = Usage(input=5, output=5, cost=1.0)
    assert Budget(RunOptions(**limits), spent).fits(more) is fits
