"""How often 95 % intervals hold the truth, and gates err, where it is promised and in places more. Prints Markdown.

`python -m bench.bench_coverage [draws]`; the tables of docs/explanation/statistics.md are its output.
"""

import sys

from tests.stats.simulation import REQUIRED, Coverage, Setting, coverage
from tests.stats.simulation_differences import EDGE, INNER, SPREAD, Apart, measured
from tests.stats.simulation_pairs import false_alarms, found_at_twice_the_detectable

DRAWS = 40_000
LOW, HIGH = 0.92, 0.98
MOST_WRONG = 0.057
BEYOND = [Setting(n, p, rounds, "strong") for n in (10, 20, 50) for p in (0.05, 0.2) for rounds in (2, 20)]

BEYOND_APART = [
    Apart(n, rounds, loss, "edge beta")
    for n, loss in ((20, 0.1), (50, 0.05), (100, 0.02), (500, 0.1))
    for rounds in (5, 20)
]


def main() -> int:
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else DRAWS
    print(f"Settings with a promised coverage, {draws:,} draws each:\n")
    held = show(REQUIRED, draws)
    print("\nOther settings, for which nothing is promised:\n")
    show(BEYOND, draws)
    print("\nDifferences where few cases change (coverage of at least 92 %, each error at most 5.7 %):\n")
    safe = show_differences([*EDGE, *SPREAD], draws)
    print("\nOther differences:\n")
    show_differences([*INNER, *BEYOND_APART], draws // 2)
    return 0 if held and safe and show_verdicts() else 1


def show_verdicts() -> bool:
    print("\nIdentical pairs that were called improved or regressed (10,000 pairs each, at most 5.7 %):\n")
    print("| cases | rounds | share |\n|---|---|---|")
    alarms = {(cases, rounds): false_alarms(cases, rounds, 10_000) for cases in (20, 50, 200) for rounds in (1, 10)}
    for (cases, rounds), share in alarms.items():
        print(f"| {cases} | {rounds} | {100 * share:.2f} % |")
    print("\nTrue differences of twice the printed minimum that were found (at least 90 %):\n")
    print("| cases | rounds | share |\n|---|---|---|")
    finds = {
        (cases, rounds): found_at_twice_the_detectable(cases, rounds, 2_000)
        for cases, rounds in ((100, 1), (100, 5), (500, 1))
    }
    for (cases, rounds), share in finds.items():
        print(f"| {cases} | {rounds} | {100 * share:.1f} % |")
    return max(alarms.values()) <= MOST_WRONG and min(finds.values()) >= 0.9


def show_differences(settings: list[Apart], draws: int) -> bool:
    """A row each: how often the interval holds, and how often a margin as wide as the loss is granted."""
    print("| cases | rounds | loss | chances | covered | equivalent | not worse |\n|---|---|---|---|---|---|---|")
    held = True
    for apart in settings:
        found = measured(apart, draws)
        good = found.covered >= LOW and found.not_worse <= MOST_WRONG
        held = held and good
        shares = f"{100 * found.covered:.1f} % | {100 * found.equivalent:.1f} % | {100 * found.not_worse:.1f} %"
        setting = f"{apart.cases} | {apart.rounds} | {apart.loss:g} | {apart.kind}"
        print(f"| {setting} | {shares}{'' if good else ' ✗'} |", flush=True)
    return held


def show(settings: list[Setting], draws: int) -> bool:
    """A row for each number of cases and share, a column for each kind of run; whether all are within the bounds."""
    kinds = sorted({(setting.rounds, setting.spread) for setting in settings})
    print("| cases | p |", " | ".join(f"{_rounds(rounds)}, spread {spread}" for rounds, spread in kinds), "|")
    print("|---|---|" + "---|" * len(kinds))
    held = True
    for cases, p in sorted({(setting.cases, setting.p) for setting in settings}):
        found = [coverage(Setting(cases, p, *kind), draws) for kind in kinds]
        print(f"| {cases} | {p:g} |", " | ".join(map(cell, found)), "|", flush=True)
        held = held and all(map(inside, found))
    return held


def _rounds(count: int) -> str:
    return f"{count} round{'' if count == 1 else 's'}"


def cell(found: Coverage) -> str:
    """The coverage, and the method that gave most of the intervals."""
    method = max(found.methods, key=found.methods.__getitem__)
    return f"{100 * found.share:.1f} % {method}{'' if inside(found) else ' ✗'}"


def inside(found: Coverage) -> bool:
    return LOW <= found.share <= HIGH


if __name__ == "__main__":
    sys.exit(main())
