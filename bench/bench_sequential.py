"""Runs with --until-decided: how often they are wrong although every case is looked at, and what they save.

`python -m bench.bench_sequential [runs]` prints Markdown; docs/explanation/statistics.md has its output.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import repeat

from tests.stats.simulation_sequential import EQUAL, Apart, any_wrong, simulated

from bakeoff.stats.sequential import SequentialDecision

RUNS = 1_000
MAX_WRONG, MIN_COVERED, MIN_SAVED = 0.05, 0.95, 0.5

PEEKED = [
    *EQUAL,
    Apart(200, 0.7, 0.7, margin=0.1),
    Apart(200, 0.8, 0.7, margin=0.1),
    Apart(200, 0.9, 0.8),
    Apart(200, 0.9, 0.6),
]
DIFFERENCES = (0.0, 0.05, 0.1, 0.2, 0.3)
SIZES = ((100, 1), (200, 1), (200, 5), (1000, 1))


def main() -> int:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    print(f"Every case is looked at, {runs:,} runs each (wrong at most 5 %, covered at least 95 %):\n")
    right = show_errors(runs)
    print("\nSeveral equal subjects: runs in which any pair was told apart (at most 5 %):\n")
    right = show_several(runs) and right
    print("\nThe median share of trials that was not needed; in brackets, the share of runs that were decided:\n")
    saved = show_savings(runs // 2)
    print(f"\nRates of 90 % and 60 %, 200 cases: {100 * saved:.0f} % of the trials are not needed (at least 50 %).")
    return 0 if right and saved >= MIN_SAVED else 1


def show_errors(runs: int) -> bool:
    print("| cases | rounds | scores | true rates | margin | wrong | covered |\n|---|---|---|---|---|---|---|")
    right = True
    with ProcessPoolExecutor() as pool:
        every = list(pool.map(simulated, PEEKED, repeat(runs)))
    for apart, found in zip(PEEKED, every, strict=True):
        good = found.wrong <= MAX_WRONG and found.covered >= MIN_COVERED
        right = right and good
        margin = "–" if apart.margin is None else f"{apart.margin:g}"
        rates = f"{apart.first:g}, {apart.second:g}"
        numbers = f"{100 * found.wrong:.1f} % | {100 * found.covered:.1f} %{'' if good else ' ✗'}"
        print(f"| {apart.cases} | {apart.rounds} | {apart.kind} | {rates} | {margin} | {numbers} |", flush=True)
    return right


def show_several(runs: int) -> bool:
    print("| subjects | cases | clusters | wrong |\n|---|---|---|---|")
    right = True
    for subjects, cases, clusters in ((4, 100, None), (2, 200, 20)):
        wrong = any_wrong(subjects, cases, runs // 2, clusters=clusters)
        right = right and wrong <= MAX_WRONG
        print(f"| {subjects} | {cases} | {clusters or '–'} | {100 * wrong:.1f} % |", flush=True)
    return right


def show_savings(runs: int) -> float:
    """Print the savings by true difference, below a rate of 90 %; return that of 30 points and 200 cases."""
    points = [f"{100 * difference:.0f} points" for difference in DIFFERENCES]
    print("| cases | rounds | margin |", " | ".join(points), "|\n|---|---|---|" + "---|" * len(points))
    wanted = 0.0
    with ProcessPoolExecutor() as pool:
        for cases, rounds, margin in ((*size, margin) for size in SIZES for margin in (None, 0.1)):
            aparts = [Apart(cases, 0.9, 0.9 - points, rounds=rounds, margin=margin) for points in DIFFERENCES]
            fewer = max(1, runs * 200 // max(200, cases))
            found = list(pool.map(partial(simulated, intervals=False), aparts, repeat(fewer)))
            cells = [
                f"{100 * each.saved:.0f} % ({100 * (1 - each.decided[SequentialDecision.UNDECIDED]):.0f} %)"
                for each in found
            ]
            print(f"| {cases} | {rounds} | {'–' if margin is None else margin} |", " | ".join(cells), "|", flush=True)
            if (cases, rounds, margin) == (200, 1, None):
                wanted = found[DIFFERENCES.index(0.3)].saved
    return wanted


if __name__ == "__main__":
    sys.exit(main())
