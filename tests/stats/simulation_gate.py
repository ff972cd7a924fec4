"""Simulated gates: one change judged by both claims, and a series of runs looked at after every one."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bakeoff.report.gates import GateEvidence, GateState, decide_gate
from bakeoff.stats.cells import Cells
from bakeoff.stats.gates import PairedArms, judge_pairs
from bakeoff.stats.within_cases import delay_of, series_change

from .simulation import cells_from_passes

Rates = npt.NDArray[np.float64]
LOOKS = 52
_QUIET = 10  # looks before a planted drop


def unchanged_fails(suites: int, cases: int, rounds: int, draws: int) -> float:
    """How often the whole gate fails if every case passes with the same chance as before, mostly near 0 or 1."""
    random = np.random.default_rng([11, suites, cases, rounds])
    failed = 0
    for _ in range(draws):
        rates = random.beta(0.7, 0.3, (suites, cases))
        failed += _gate(random, rates, rates, rounds) is GateState.FAILED
    return failed / draws


def broken_fails(broken: int, cases: int, rounds: int, draws: int) -> float:
    """How often the gate fails if some cases always fail now, of cases that pass in 95 % of rounds."""
    before = np.full((1, cases), 0.95)
    return _fails(before, np.where(np.arange(cases) < broken, 0.0, before), rounds, draws)


def diffuse_fails(drop: float, cases: int, rounds: int, draws: int) -> float:
    """How often the gate fails if every case passes less often than the 80 % of before."""
    before = np.full((1, cases), 0.8)
    return _fails(before, before - drop, rounds, draws)


def history_alarms(cases: int, rounds: int, draws: int) -> float:
    """How often a loss is shown at any look at unchanged code."""
    random = np.random.default_rng([12, cases, rounds])
    found = 0
    for _ in range(draws):
        rates = random.beta(0.7, 0.3, cases)
        found += series_change(_runs(random, [rates] * (LOOKS + 1), rounds)).found_at is not None
    return found / draws


def found_in_time(drop: float, cases: int, rounds: int, draws: int) -> float:
    """How often a drop after ten quiet looks is found within the delay that was stated before it."""
    random = np.random.default_rng([13, cases, rounds])
    found = 0
    for _ in range(draws):
        rates = random.uniform(0.6, 1.0, cases)
        quiet = _runs(random, [rates] * (_QUIET + 1), rounds)
        delay = delay_of(drop, quiet)
        assert delay is not None
        found += series_change([*quiet, *_runs(random, [rates - drop] * delay, rounds)]).found_at is not None
    return found / draws


def decay_found(each: float, looks: int, cases: int, rounds: int, draws: int) -> float:
    """How often a loss that grows with every look is found by the last one."""
    random = np.random.default_rng([14, cases, rounds])
    found = 0
    for _ in range(draws):
        rates = random.uniform(0.6, 1.0, cases)
        fallen = [rates - each * look for look in range(looks + 1)]
        found += series_change(_runs(random, fallen, rounds)).found_at is not None
    return found / draws


def _fails(before: Rates, after: Rates, rounds: int, draws: int) -> float:
    random = np.random.default_rng([15, before.size, rounds])
    return sum(_gate(random, before, after, rounds) is GateState.FAILED for _ in range(draws)) / draws


def _gate(random: np.random.Generator, before: Rates, after: Rates, rounds: int) -> GateState:
    pairs = {}
    for place, rates in enumerate(zip(before, after, strict=True)):
        old, new = (
            {key._replace(id=f"{place}-{key.id}"): cell for key, cell in run.items()}
            for run in _runs(random, rates, rounds)
        )
        pairs[str(place)] = PairedArms(old, new)
    return decide_gate(GateEvidence(comparisons=[*judge_pairs(pairs).values()])).state


def _runs(random: np.random.Generator, rates: Sequence[Rates], rounds: int) -> list[Cells]:
    return [cells_from_passes(random.binomial(rounds, each), rounds) for each in rates]
