"""Keep one of several parts of the evals of a session."""

import pytest

from bakeoff.doors.pytest.reporting.redacting import has_eval


def keep_shard(config: pytest.Config, items: list[pytest.Item], number: int, of: int) -> None:
    """Deselect the evals of other shards. Each shard has every n-th case, with all its parameters; tests stay."""
    places: dict[tuple[str, str], int] = {}
    kept: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        place = places.setdefault(_case_of(item), len(places)) if has_eval(item) else number - 1
        (kept if place % of == number - 1 else others).append(item)
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = kept


def _case_of(item: pytest.Item) -> tuple[str, str]:
    """Return the suite and the row, or the test itself. Sets of parameters of one row are compared with each other."""
    row = getattr(item, "row", None)
    suite = item.nodeid.partition("[")[0]
    return (item.nodeid, "") if row is None else (suite, row.id)
