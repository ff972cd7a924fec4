"""Options out of bounds are refused at once."""

from typing import Any

import pytest

from bakeoff.errors import UsageError
from bakeoff.options import RunOptions


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ({"jobs": 0}, "jobs: 0 is below 1"),
        ({"retries": -1}, "retries: -1 is below 0"),
        ({"backoff_seconds": -0.5}, "backoff_seconds: -0.5 is below 0"),
        ({"longest_backoff_seconds": -1}, "longest_backoff_seconds: -1 is below 0"),
        ({"max_cost": 0}, "max_cost: 0 is not above 0: leave it out for no limit"),
        ({"max_total_tokens": -5}, "max_total_tokens: -5 is not above 0: leave it out for no limit"),
        ({"max_seconds": float("nan")}, "max_seconds: nan is not above 0: leave it out for no limit"),
    ],
)
def test_options_out_of_bounds_are_refused_by_name_and_value(option: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        RunOptions(**option)
    assert str(caught.value) == sentence
