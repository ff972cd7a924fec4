"""How often 95 % intervals hold the truth, in every cell that is promised and some that are not. Prints Markdown.

`python -m bench.bench_coverage [draws]`; the tables of docs/statistics.md are its output.
"""

import sys

from tests.stats.simulation import REQUIRED, Coverage, Setting, coverage
from tests.stats.simulation_pairs import false_alarms, found_at_twice_the_detectable

DRAWS = 40_000
LOW, HIGH = 0.92, 0.98
BEYOND = [Setting(n, p, rounds, "strong") for n in (10, 20, 50) for p in (0.05, 0.2) for rounds in (2, 20)]


def main() -> int:
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else DRAWS
    print(f"Promised cells, {draws:,} draws each:\n")
    held = show(REQUIRED, draws)
    print("\nOther cells, for which nothing is promised:\n")
    show(BEYOND, draws)
    print("\nIdentical pairs called improved or regressed (10,000 pairs each, at most 5.7 %):\n")
    print("| cases | rounds | share |\n|---|---|---|")
    alarms = {(cases, rounds): false_alarms(cases, rounds, 10_000) for cases in (20, 50, 200) for rounds in (1, 10)}
    for (cases, rounds), share in alarms.items():
        print(f"| {cases} | {rounds} | {100 * share:.2f} % |")
    print("\nTrue differences of twice the printed minimum that were found (at least 90 %):\n")
    print("| cases | rounds | share |\n|---|---|---|")
    finds = {(cases, rounds): found_at_twice_the_detectable(cases, rounds, 2_000) for cases, rounds in ((100, 1), (100, 5), (500, 1))}
    for (cases, rounds), share in finds.items():
        print(f"| {cases} | {rounds} | {100 * share:.1f} % |")
    return 0 if held and max(alarms.values()) <= 0.057 and min(finds.values()) >= 0.9 else 1


def show(settings: list[Setting], draws: int) -> bool:
    """A row for each cell; whether all are within the bounds."""
    print("| cases | p | rounds | spread | coverage | mean width | method |\n|---|---|---|---|---|---|---|")
    held = True
    for setting in settings:
        found = coverage(setting, draws)
        inside = LOW <= found.share <= HIGH
        held = held and inside
        print(row(setting, found, inside=inside), flush=True)
    return held


def row(setting: Setting, found: Coverage, *, inside: bool) -> str:
    methods = ", ".join(f"{name} {100 * share:.0f} %" for name, share in found.methods.items() if share >= 0.005)
    mark = "" if inside else " ✗"
    return (
        f"| {setting.cases} | {setting.p:g} | {setting.rounds} | {setting.spread} "
        f"| {100 * found.share:.1f} %{mark} | {100 * found.width:.1f} | {methods} |"
    )


if __name__ == "__main__":
    sys.exit(main())
