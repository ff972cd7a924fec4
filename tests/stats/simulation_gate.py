"""Simulated gates: one change judged by both claims, and a series of runs looked at after every one."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from bakeoff.report.gates import GateEvidence, GateState, decide_gate
from bakeoff.stats.cells import CaseKey, Cell, Cells
from bakeoff.stats.gates import PairedArms, judge_pairs
from bakeoff.stats.series import delay_of, series_change

from .simulation import cells_from_passes

Rates = npt.NDArray[np.float64]
LOOKS = 52
_QUIET = 10  # looks before a planted drop


def unchanged_fails(suites: int, cases: int, rounds: int, draws: int, *, graded: bool = False) -> float:
    """Return how often the whole gate fails if every case passes with the same chance as before, mostly near 0 or 1."""
    random = np.random.default_rng([111, suites, cases, rounds])
    failed = 0
    for _ in range(draws):
        rates = random.beta(0.7, 0.3, (suites, cases))
        failed += _gate(random, rates, rates, rounds, graded=graded) is GateState.FAILED
    return failed / draws


def counted_fails(before: list[list[int]], after: list[list[int]], rounds: int) -> float:
    """Tell whether the gate fails for these passes of each case in each suite, as 0 or 1."""
    suites = zip(before, after, strict=True)
    runs = ([cells_from_passes(np.array(passes), rounds) for passes in arms] for arms in suites)
    return float(_decide(runs) is GateState.FAILED)


def broken_fails(broken: int, cases: int, rounds: int, draws: int) -> float:
    """Return how often the gate fails if some cases always fail now, of cases that pass in 95 % of rounds."""
    before = np.full((1, cases), 0.95)
    return _fails(before, np.where(np.arange(cases) < broken, 0.0, before), rounds, draws)


def diffuse_fails(drop: float, cases: int, rounds: int, draws: int) -> float:
    """Return how often the gate fails if every case passes less often than the 80 % of before."""
    before = np.full((1, cases), 0.8)
    return _fails(before, before - drop, rounds, draws)


def history_alarms(cases: int, rounds: int, draws: int, *, rate: float | None = None, graded: bool = False) -> float:
    """Return how often any look at unchanged code shows a loss, with one rate or with those of `unchanged_fails`."""
    random = np.random.default_rng([112, cases, rounds])
    found = 0
    for _ in range(draws):
        rates = random.beta(0.7, 0.3, cases) if rate is None else np.full(cases, rate)
        found += series_change(_runs(random, [rates] * (LOOKS + 1), rounds, graded=graded)).found_at is not None
    return found / draws


def found_in_time(drop: float, cases: int, rounds: int, draws: int) -> float:
    """Return how often a drop after ten quiet looks is found within the delay that was stated before it."""
    random = np.random.default_rng([113, cases, rounds])
    found = 0
    for _ in range(draws):
        rates = random.uniform(0.6, 1.0, cases)
        quiet = _runs(random, [rates] * (_QUIET + 1), rounds)
        delay = delay_of(drop, quiet)
        assert delay is not None
        found += series_change([*quiet, *_runs(random, [rates - drop] * delay, rounds)]).found_at is not None
    return found / draws


def decay_known_to_end(each: float, looks: int, cases: int, rounds: int, draws: int) -> float:
    """Return how often a 5 % test finds the same if it knows the rates, the form of the loss and the last look.

    No test that may look at any time finds more.
    """
    random = np.random.default_rng([116, cases, rounds])
    rates = random.uniform(0.6, 1.0, (draws, 1, cases))
    times = np.arange(looks + 1) - looks / 2
    passes = random.binomial(rounds, rates - each * np.arange(looks + 1)[:, np.newaxis])
    middle = passes.mean(axis=1, keepdims=True) / rounds
    errors = np.sqrt(rounds * (middle * (1 - middle)).sum(axis=(1, 2)) * (times**2).sum())
    return float(np.mean(-(passes.sum(axis=2) * times).sum(axis=1) / errors >= 1.645))


def decay_found(each: float, looks: int, cases: int, rounds: int, draws: int) -> float:
    """Return how often a loss that grows with every look is found by the last one."""
    random = np.random.default_rng([114, cases, rounds])
    found = 0
    for _ in range(draws):
        rates = random.uniform(0.6, 1.0, cases)
        fallen = [rates - each * look for look in range(looks + 1)]
        found += series_change(_runs(random, fallen, rounds)).found_at is not None
    return found / draws


def _fails(before: Rates, after: Rates, rounds: int, draws: int) -> float:
    random = np.random.default_rng([115, before.size, rounds])
    return sum(_gate(random, before, after, rounds) is GateState.FAILED for _ in range(draws)) / draws


def _gate(random: np.random.Generator, before: Rates, after: Rates, rounds: int, *, graded: bool = False) -> GateState:
    return _decide([_runs(random, rates, rounds, graded=graded) for rates in zip(before, after, strict=True)])


def _decide(suites: Iterable[Sequence[Cells]]) -> GateState:
    pairs = {}
    for place, runs in enumerate(suites):
        old, new = ({key._replace(id=f"{place}-{key.id}"): cell for key, cell in run.items()} for run in runs)
        pairs[str(place)] = PairedArms(old, new)
    return decide_gate(GateEvidence(comparisons=[*judge_pairs(pairs).values()])).state


def _runs(random: np.random.Generator, rates: Sequence[Rates], rounds: int, *, graded: bool = False) -> list[Cells]:
    if not graded:
        return [cells_from_passes(random.binomial(rounds, each), rounds) for each in rates]
    scores = [random.beta(0.03 + 3 * each, 3.03 - 3 * each, (rounds, len(each))) for each in rates]
    return [{CaseKey(str(case)): Cell.of(row) for case, row in enumerate(run.T.tolist())} for run in scores]
