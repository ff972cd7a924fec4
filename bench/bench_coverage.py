"""Measure how often 95 % intervals hold the truth, and gates err, in every setting of docs/explanation/statistics.md.

`make bench BENCH=coverage`; DRAWS=500 in the environment simulates fewer runs of each setting. Prints Markdown.
A setting holds if its coverage is between 92 and 98 %, give or take two standard errors of the simulation, or if nearly
all its intervals are marked "too few cases to promise 95 %". Of costs and clusters, only those that are not marked
count, and they may cover more.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from math import sqrt
from typing import TypeVar

from tests.stats.simulation import REQUIRED, Setting, coverage
from tests.stats.simulation_differences import EDGE, INNER, SPREAD, Apart, measured
from tests.stats.simulation_gate import (
    LOOKS,
    broken_fails,
    counted_fails,
    decay_found,
    decay_known_to_end,
    diffuse_fails,
    found_in_time,
    history_alarms,
    unchanged_fails,
)
from tests.stats.simulation_pairs import false_alarms, found_at_the_detectable, passes_a_margin
from tests.stats.simulation_sequential import EQUAL, any_wrong, simulated
from tests.stats.simulation_sequential import Apart as Peeked
from tests.stats.simulation_small import (
    CLUSTERS,
    ROUNDS,
    SKEWED,
    Held,
    clustered,
    clustered_apart,
    costs,
    graded,
    pass_k,
    rarely_dear,
    skewed_apart,
    split_boards,
)

DRAWS = int(os.environ.get("DRAWS", "2000"))
FEWER = max(40, DRAWS // 4)  # of what takes long
LOW, HIGH = 0.92, 0.98
MOSTLY = 0.8
Cell = tuple[str, Callable[[], Held]]
Result = TypeVar("Result")


def main() -> int:
    """Print the tables of gates, costs and power first; the intervals of scores and differences follow."""
    started = time.monotonic()
    with ProcessPoolExecutor(max_workers=2) as pool:
        show = partial(_show, pool)
        good = [
            shares(pool, "Losses that one run of a gate was blind to", known_losses(), 1.0, 1.0),
            shares(pool, "Unchanged code fails the whole gate", unchanged(), 0.0, 0.05),
            shares(pool, "A loss fails the whole gate", losses(enough=True), 0.75, 1.0),
            shares(pool, "The same with too few rounds, for which nothing is promised", losses(enough=False), 0.0, 1.0),
            shares(pool, f"A history of {LOOKS} looks at unchanged code has an alarm", histories(), 0.0, 0.05),
            shares(pool, "A drop of 10 points is found within the delay that was stated", drops(), 0.85, 1.0),
            shares(pool, "A decay of 2 points a look is found within ten looks", decays(), 0.95, 1.0),
            shares(pool, "The same, by a test that knows the rates, the form and the last look", oracles(), 0.0, 1.0),
            show("Costs, and how many times as much one subject costs as another", money(), 1.0),
            shares(pool, "The difference that a pilot said can be found is found", found(), 0.78, 0.88),
            shares(pool, "Unchanged code passes --margin with the cases that are said to be needed", kept(), 0.95, 1.0),
            show("Clusters", clusters(), 1.0),
            shares(pool, "Identical arms called different", alarms(), 0.0, 0.05),
            shares(pool, "Equal subjects, looked at after every case, told apart", peeked(), 0.0, 0.05),
            show("One score", scores()),
            show("Few or skewed graded scores", graded_scores()),
            show(f"pass@k and pass^k of {ROUNDS} rounds", repeated()),
            show("Differences", differences()),
            show("Equal means, skewed differences (an interval without 0 is a false alarm)", skewed()),
        ]
    minutes = (time.monotonic() - started) / 60
    said = "every row is met" if all(good) else "some rows are missed (✗)"
    print(f"\n{said}; {DRAWS:,} draws each, {minutes:.0f} minutes")
    return 0 if all(good) else 1


def scores() -> Iterable[Cell]:
    small = [Setting(10, p, rounds, "none") for p in (0.05, 0.5) for rounds in (1, 5)]
    for one in [*small, *REQUIRED]:
        yield f"{one.cases} cases × {one.rounds}, p = {one.p:g}, spread {one.spread}", partial(_score, one, DRAWS)


def graded_scores() -> Iterable[Cell]:
    for a, b in ((0.1, 1.9), (8, 2)):
        for cases in (10, 20, 50, 100):
            yield f"{cases} scores of Beta({a:g}, {b:g})", partial(graded, cases, a, b, DRAWS)


def clusters() -> Iterable[Cell]:
    for sizes in CLUSTERS:
        for together in (True, False):
            kind = "alike in a cluster" if together else "independent"
            yield f"score, clusters {sizes}, {kind}", partial(clustered, sizes, 0.5, together, DRAWS)
            yield f"difference, clusters {sizes}, {kind}", partial(clustered_apart, sizes, 0.5, together, DRAWS)


def repeated() -> Iterable[Cell]:
    for cases in (10, 50):
        for p in (0.05, 0.5, 0.95):
            for name in ("pass@", "pass^"):
                for k, spread in ((2, "none"), (5, "strong")):
                    label = f"{name}{k}, {cases} cases, p = {p:g}, spread {spread}"
                    yield label, partial(pass_k, name, cases, p, k, spread, DRAWS)


def differences() -> Iterable[Cell]:
    for apart in (*EDGE, *SPREAD, *INNER):
        label = f"{apart.cases} cases × {apart.rounds}, loss {apart.loss:g}, {apart.kind}"
        yield label, partial(_difference, apart, DRAWS)


def skewed() -> Iterable[Cell]:
    for kind in SKEWED:
        for cases in (10, 20, 50, 100):
            yield f"{cases} cases, {kind}", partial(skewed_apart, kind, cases, DRAWS)


def alarms() -> Iterable[tuple[str, Callable[[], float]]]:
    for cases, rounds in ((20, 1), (20, 10), (50, 1), (50, 10), (200, 1)):
        yield f"pairs of {cases} cases × {rounds}", partial(false_alarms, cases, rounds, DRAWS)
    yield "pairs of 60 cases × 3 in 15 clusters", partial(_alarms_in_clusters, DRAWS)
    yield "leaderboards of 8 equal subjects, 60 cases × 3", partial(split_boards, max(40, DRAWS // 10))


def peeked() -> Iterable[tuple[str, Callable[[], float]]]:
    for apart in EQUAL:
        label = f"{apart.cases} cases × {apart.rounds}, {apart.kind}, p = {apart.first:g}"
        yield label, partial(_told_apart, apart, DRAWS)
    yield "4 subjects, 100 cases × 1, any pair", partial(any_wrong, 4, 100, max(40, DRAWS // 4))
    yield "200 cases × 1 in 20 clusters", partial(_peeked_in_clusters, max(40, DRAWS // 4))


def money() -> Iterable[Cell]:
    for units, size in ((20, 1), (50, 1), (100, 1), (300, 1), (10, 10), (100, 3)):
        for skew in (0.5, 1.0, 2.0):
            for ratio in (False, True):
                kind = "ratio of costs" if ratio else "cost"
                label = f"{kind}, {units} clusters of {size}, lognormal, σ = {skew:g}"
                yield label, partial(costs, units, size, skew, ratio, DRAWS)
    for units in (50, 100, 300):
        for one_in in (10, 20):
            label = f"cost, {units} cases of which one in {one_in} is {one_in} times as dear"
            yield label, partial(rarely_dear, units, one_in, DRAWS)


def kept() -> Iterable[tuple[str, Callable[[], float]]]:
    for cases, rounds, margin in ((50, 1, 0.1), (50, 3, 0.1), (100, 3, 0.05)):
        label = f"{cases} cases × {rounds} were seen, margin {margin:g}"
        yield label, partial(passes_a_margin, cases, rounds, margin, DRAWS, enough=True)


def found() -> Iterable[tuple[str, Callable[[], float]]]:
    for cases, rounds in ((30, 1), (100, 1), (20, 2), (30, 2), (30, 3), (100, 2), (100, 5)):
        yield f"{cases} cases × {rounds}", partial(found_at_the_detectable, cases, rounds, DRAWS)


def known_losses() -> Iterable[tuple[str, Callable[[], float]]]:
    yield "5 cases × 20, 100 of 100 → 5 of 100", partial(counted_fails, [[20] * 5], [[1] * 5], 20)
    three = [20] * 27 + [0] * 3
    yield "30 cases × 20, three 20 of 20 → 0 of 20", partial(counted_fails, [[20] * 30], [three], 20)
    yield "20 suites × 5 cases, 5 of 5 → 1 of 5", partial(counted_fails, [[1] * 5] * 20, [[1, 0, 0, 0, 0]] * 20, 1)


def unchanged() -> Iterable[tuple[str, Callable[[], float]]]:
    for suites, cases in ((1, 60), (3, 20), (20, 5)):
        for rounds in (1, 3, 10):
            label = f"{suites} × {cases} cases × {rounds}"
            yield label, partial(unchanged_fails, suites, cases, rounds, DRAWS)
    for suites, cases, rounds in ((1, 30, 1), (1, 20, 3), (3, 10, 3)):
        label = f"{suites} × {cases} cases × {rounds}, graded scores, {FEWER:,} draws"
        yield label, partial(unchanged_fails, suites, cases, rounds, FEWER, graded=True)


def losses(*, enough: bool) -> Iterable[tuple[str, Callable[[], float]]]:
    """Yield the losses that should be found, or those for which the rounds are too few."""
    for broken, cases, least in ((3, 30, 10), (5, 50, 3)):
        for rounds in [rounds for rounds in (1, 3, 10) if (rounds >= least) == enough]:
            label = f"{broken} of {cases} cases broken × {rounds}"
            yield label, partial(broken_fails, broken, cases, rounds, DRAWS)
    for cases, least in ((30, 10), (100, 3)):
        for rounds in [rounds for rounds in (1, 3, 10) if (rounds >= least) == enough]:
            yield f"{cases} cases × {rounds}, each 10 points worse", partial(diffuse_fails, 0.1, cases, rounds, DRAWS)


def histories() -> Iterable[tuple[str, Callable[[], float]]]:
    for cases, rounds, rate in ((5, 1, None), (20, 3, None), (100, 1, None), (30, 3, 0.999), (30, 3, 0.8)):
        label = f"{cases} cases × {rounds}" + ("" if rate is None else f", all pass in {100 * rate:g} %")
        yield label, partial(history_alarms, cases, rounds, DRAWS, rate=rate)
    yield f"50 cases × 10, {FEWER:,} draws", partial(history_alarms, 50, 10, FEWER)
    yield f"10 cases × 1, graded scores, {FEWER:,} draws", partial(history_alarms, 10, 1, FEWER, graded=True)
    yield f"10 cases × 3, graded scores, {FEWER:,} draws", partial(history_alarms, 10, 3, FEWER, graded=True)


def drops() -> Iterable[tuple[str, Callable[[], float]]]:
    for cases, rounds in ((30, 3), (30, 10), (50, 3), (100, 1), (100, 3)):
        yield f"{cases} cases × {rounds}", partial(found_in_time, 0.1, cases, rounds, DRAWS)


def decays() -> Iterable[tuple[str, Callable[[], float]]]:
    for cases, rounds in ((30, 3), (50, 2), (100, 1), (50, 3), (100, 3)):
        yield f"{cases} cases × {rounds}", partial(decay_found, 0.02, 10, cases, rounds, DRAWS)


def oracles() -> Iterable[tuple[str, Callable[[], float]]]:
    for cases, rounds in ((10, 3), (20, 3), (30, 3)):
        yield f"{cases} cases × {rounds}", partial(decay_known_to_end, 0.02, 10, cases, rounds, DRAWS)


def _score(setting: Setting, draws: int) -> Held:
    result = coverage(setting, draws)
    return Held(result.share, result.marked)


def _difference(apart: Apart, draws: int) -> Held:
    result = measured(apart, draws)
    return Held(result.covered, result.marked)


def _alarms_in_clusters(draws: int) -> float:
    return false_alarms(60, 3, draws, clusters=15)


def _told_apart(apart: Peeked, draws: int) -> float:
    return simulated(apart, draws, intervals=False).wrong


def _peeked_in_clusters(draws: int) -> float:
    return any_wrong(2, 200, draws, clusters=20)


def _show(pool: ProcessPoolExecutor, title: str, cells: Iterable[Cell], high: float = HIGH) -> bool:
    wanted = f"{100 * LOW:.0f} to {100 * high:.0f} %, or marked"
    print(f"\n{title}:\n\n| setting | wanted | covered | of unmarked ones | marked | met |\n{'|---' * 6}|", flush=True)
    labels, jobs = zip(*cells, strict=True)
    good, marks = True, 0
    for label, result in zip(labels, pool.map(_run, jobs), strict=True):
        marked = result.marked >= MOSTLY
        alone = result.covered if result.promised is None else result.promised
        holds = marked or LOW - _slack() <= alone <= high + _slack()
        good, marks = good and holds, marks + marked
        measured = (
            f"{100 * result.covered:.1f} % | {'–' if marked else f'{100 * alone:.1f} %'} | {100 * result.marked:.0f} %"
        )
        print(f"| {label} | {wanted} | {measured} | {'marked' if marked else _met(holds)} |", flush=True)
    print(f"\n{marks} of {len(labels)} settings are marked")
    return good


def shares(
    pool: ProcessPoolExecutor,
    title: str,
    cells: Iterable[tuple[str, Callable[[], float]]],
    least: float,
    most: float,
) -> bool:
    wanted = f"{100 * least:.0f} to {100 * most:.0f} %"
    print(f"\n{title}:\n\n| setting | wanted | measured | met |\n|---|---|---|---|", flush=True)
    labels, jobs = zip(*cells, strict=True)
    good = True
    for label, share in zip(labels, pool.map(_run, jobs), strict=True):
        holds = least - _slack() <= share <= most + _slack()
        good = good and holds
        print(f"| {label} | {wanted} | {100 * share:.1f} % | {_met(holds)} |", flush=True)
    return good


def _met(holds: bool) -> str:
    return "✓" if holds else "✗"


def _run(job: Callable[[], Result]) -> Result:
    return job()


def _slack() -> float:
    """Two standard errors of a share near 5 or 95 %."""
    return 2 * sqrt(0.05 * 0.95 / DRAWS)


if __name__ == "__main__":
    sys.exit(main())
