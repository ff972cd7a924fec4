"""How often 95 % intervals hold the truth, and gates err, in every setting of docs/explanation/statistics.md.

`make bench BENCH=coverage`; DRAWS=5000 in the environment simulates more runs of each setting. Prints Markdown.
A setting holds if its coverage is between 92 and 98 %, give or take two standard errors of the simulation, or if nearly
all its intervals are marked "too few cases to promise 95 %".
"""

import os
import sys
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
    decay_found,
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
    skewed_apart,
    split_boards,
)

from bakeoff.stats.intervals import TOO_SMALL

DRAWS = int(os.environ.get("DRAWS", "1000"))
LOW, HIGH = 0.92, 0.98
MOSTLY = 0.8
Cell = tuple[str, Callable[[], Held]]
Result = TypeVar("Result")


def main() -> int:
    with ProcessPoolExecutor(max_workers=2) as pool:
        show = partial(_show, pool)
        good = [
            show("One score", scores()),
            show("Few or skewed graded scores", graded_scores()),
            show("Clusters", clusters()),
            show(f"pass@k and pass^k of {ROUNDS} rounds", repeated()),
            show("Differences", differences()),
            show("Equal means, skewed differences (an interval without 0 is a false alarm)", skewed()),
            shares(pool, "Identical arms called different, at most 5 %", alarms(), 0.0, 0.05),
            shares(pool, "Equal subjects, looked at after every case, told apart, at most 5 %", peeked(), 0.0, 0.05),
            show("Costs, and how many times as much one subject costs as another", money()),
            shares(pool, "The minimum detectable difference is found, one round", found(several=False), 0.78, 0.92),
            shares(pool, "The minimum detectable difference is found, several rounds", found(several=True), 0.78, 0.85),
            shares(pool, "Unchanged code passes --margin with the cases that are said to be needed", kept(), 0.95, 1.0),
            shares(pool, "Unchanged code fails the whole gate, at most 5 %", unchanged(), 0.0, 0.05),
            shares(pool, "A loss fails the whole gate", losses(enough=True), 0.75, 1.0),
            shares(pool, "The same with too few rounds, for which nothing is promised", losses(enough=False), 0.0, 1.0),
            shares(
                pool, f"A history of {LOOKS} looks at unchanged code has an alarm, at most 5 %", histories(), 0.0, 0.05
            ),
            shares(pool, "A drop of 10 points is found within the delay that was stated", drops(), 0.85, 1.0),
            shares(pool, "A decay of 2 points a look is found within ten looks", decays(), 0.95, 1.0),
        ]
    print(f"\n{'every setting holds' if all(good) else 'some settings do not hold (✗)'}; {DRAWS:,} draws each")
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
    for units, size in ((20, 1), (100, 1), (300, 1), (10, 10), (100, 3)):
        for skew in (0.5, 1.0, 2.0):
            for ratio in (False, True):
                kind = "ratio of costs" if ratio else "cost"
                label = f"{kind}, {units} clusters of {size}, lognormal, σ = {skew:g}"
                yield label, partial(costs, units, size, skew, ratio, DRAWS)


def kept() -> Iterable[tuple[str, Callable[[], float]]]:
    for cases, rounds, margin in ((50, 1, 0.1), (50, 3, 0.1), (100, 3, 0.05)):
        label = f"{cases} cases × {rounds} were seen, margin {margin:g}"
        yield label, partial(passes_a_margin, cases, rounds, margin, DRAWS, enough=True)


def found(*, several: bool) -> Iterable[tuple[str, Callable[[], float]]]:
    for cases, rounds in ((20, 2), (30, 2), (30, 3), (100, 2), (100, 5)) if several else ((30, 1), (100, 1)):
        yield f"{cases} cases × {rounds}", partial(found_at_the_detectable, cases, rounds, DRAWS)


def unchanged() -> Iterable[tuple[str, Callable[[], float]]]:
    for suites, cases in ((1, 60), (3, 20), (20, 5)):
        for rounds in (1, 3, 10):
            label = f"{suites} × {cases} cases × {rounds}"
            yield label, partial(unchanged_fails, suites, cases, rounds, DRAWS)


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
    for cases, rounds in ((20, 3), (100, 1), (50, 10)):
        yield f"{cases} cases × {rounds}", partial(history_alarms, cases, rounds, DRAWS)


def drops() -> Iterable[tuple[str, Callable[[], float]]]:
    for cases, rounds in ((30, 3), (30, 10), (50, 3), (100, 1), (100, 3)):
        yield f"{cases} cases × {rounds}", partial(found_in_time, 0.1, cases, rounds, DRAWS)


def decays() -> Iterable[tuple[str, Callable[[], float]]]:
    for cases, rounds in ((30, 10), (50, 3), (100, 3)):
        yield f"{cases} cases × {rounds}", partial(decay_found, 0.02, 10, cases, rounds, DRAWS)


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


def _show(pool: ProcessPoolExecutor, title: str, cells: Iterable[Cell]) -> bool:
    print(f"\n{title}:\n\n| setting | covered | marked | |\n|---|---|---|---|", flush=True)
    labels, jobs = zip(*cells, strict=True)
    good = True
    for label, result in zip(labels, pool.map(_run, jobs), strict=True):
        marked = result.marked >= MOSTLY
        holds = marked or LOW - _slack() <= result.covered <= HIGH + _slack()
        good = good and holds
        shares = f"{100 * result.covered:.1f} % | {100 * result.marked:.0f} %"
        print(f"| {label} | {shares} | {TOO_SMALL if marked else ''}{'' if holds else '✗'} |", flush=True)
    return good


def shares(
    pool: ProcessPoolExecutor,
    title: str,
    cells: Iterable[tuple[str, Callable[[], float]]],
    least: float,
    most: float,
) -> bool:
    print(f"\n{title}:\n\n| setting | share |\n|---|---|", flush=True)
    labels, jobs = zip(*cells, strict=True)
    good = True
    for label, share in zip(labels, pool.map(_run, jobs), strict=True):
        holds = least - _slack() <= share <= most + _slack()
        good = good and holds
        print(f"| {label} | {100 * share:.1f} %{'' if holds else ' ✗'} |", flush=True)
    return good


def _run(job: Callable[[], Result]) -> Result:
    return job()


def _slack() -> float:
    """Two standard errors of a share near 5 or 95 %."""
    return 2 * sqrt(0.05 * 0.95 / DRAWS)


if __name__ == "__main__":
    sys.exit(main())
