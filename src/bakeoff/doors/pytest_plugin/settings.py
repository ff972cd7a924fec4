"""How a suite is run and judged, checked where it is written."""

from dataclasses import dataclass
from typing import Any, get_args

from bakeoff.errors import UsageError
from bakeoff.plan import Gate, PassRule

NO_LIMIT = 10.0**9
"""Seconds that nothing takes: `timeout=None`."""


@dataclass(frozen=True, slots=True)
class Settings:
    threshold: float | None = 1.0
    gate: Gate = "mean"
    rounds: int | None = None  # None: as the command line says
    timeout: float = 60.0
    concurrency: int | None = None  # likewise
    null_as_zero: bool = False
    isolate: bool = False

    @property
    def rule(self) -> PassRule:
        """Return when a case of the suite passes, as the plan holds it."""
        return PassRule(threshold=self.threshold, gate=self.gate, null_as_zero=self.null_as_zero)


def settings_of(
    name: str,
    threshold: float | None,
    gate: str,
    rounds: int | None,
    timeout: float | None,
    concurrency: int | None = None,
    null_as_zero: bool = False,
    isolate: bool = False,
) -> Settings:
    """The settings, or an error that names the suite and all that is wrong."""
    problems = [
        problem
        for wrong, problem in (
            (not _is_share(threshold), f"threshold {threshold!r} is not between 0 and 1, or None"),
            (gate not in get_args(Gate), f"gate {gate!r} is not one of {', '.join(get_args(Gate))}"),
            (not _is_count(rounds), f"rounds {rounds!r} is not a number from 1 up"),
            (not _is_count(concurrency), f"concurrency {concurrency!r} is not a number from 1 up"),
            (not _is_time(timeout), f"timeout {timeout!r} is not a number of seconds above 0, or None"),
        )
        if wrong
    ]
    if problems:
        raise UsageError(f"{name}: {'; '.join(problems)}")
    known: dict[str, Gate] = {each: each for each in get_args(Gate)}
    seconds = NO_LIMIT if timeout is None else float(timeout)
    return Settings(threshold, known[gate], rounds, seconds, concurrency, null_as_zero, isolate)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_share(value: Any) -> bool:
    return value is None or (_is_number(value) and 0 <= value <= 1)


def _is_count(value: object) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1)


def _is_time(value: Any) -> bool:
    return value is None or (_is_number(value) and 0 < value <= NO_LIMIT)
