"""Measure how often intervals of judged scores hold the truth, with and without correction by labels. Prints Markdown.

`python -m bench.bench_judges [draws]`; the tables of docs/explanation/judges.md are its output.
"""

import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat

from tests.stats.simulation_judges import (
    EDGE,
    FAIR,
    HARSH,
    LENIENT,
    PAIRS,
    PROMISED,
    Held,
    Judged,
    held,
    held_by_difference,
    quality_held,
)

DRAWS = 2_000
LOW, HIGH = 0.92, 0.98
SLACK = 0.005  # the standard error of a share near 95 % in 2,000 draws


def main() -> int:
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else DRAWS
    print(f"Scores of one subject, {draws:,} draws each:\n")
    good = show(PROMISED, draws)
    print("\nFew bad answers: too wide, and marked if fewer than 5 are among the labels:\n")
    wide = show(EDGE, draws, highest=1.0, marks=True)
    print("\nDifferences of two subjects that the judge treats differently:\n")
    apart = show_pairs(draws)
    print("\nThe judge's own sensitivity and specificity (100 cases, 60 labels; a quarter of the draws):\n")
    return 0 if good and wide and apart and show_quality(draws // 4) else 1


def show(settings: Sequence[Judged], draws: int, highest: float = HIGH, *, marks: bool = False) -> bool:
    titles = "| cases × rounds | labels | true score | judge | corrected | the judge's own |"
    print(f"{titles}{' marked |' if marks else ''}\n|---|---|---|---|---|---|{'---|' if marks else ''}")
    with ProcessPoolExecutor() as pool:
        found = list(zip(settings, pool.map(held, settings, repeat(draws)), strict=True))
    for setting, shares in found:
        size = f"{setting.cases} × {setting.rounds} | {setting.labels} | {setting.truth:g}"
        marked = f" {100 * shares.marked:.0f} % |" if marks else ""
        print(f"| {size} | {setting.judge} | {_shares(shares)} |{marked}", flush=True)
    return all(LOW - SLACK <= shares.corrected <= highest + SLACK for _, shares in found)


def show_pairs(draws: int) -> bool:
    print("| true scores | labels of each | judge of the first | of the second | corrected | the judge's own |")
    print("|---|---|---|---|---|---|")
    with ProcessPoolExecutor() as pool:
        every = pool.map(held_by_difference, *zip(*PAIRS, strict=True), repeat(draws))
        found = list(zip(PAIRS, every, strict=True))
    for (old, new), shares in found:
        who = f"{old.truth:g} and {new.truth:g} | {old.labels} | {old.judge} | {new.judge}"
        print(f"| {who} | {_shares(shares)} |", flush=True)
    return all(shares.corrected >= LOW - SLACK for _, shares in found)


def show_quality(draws: int) -> bool:
    print("| judge | true score | sensitivity | specificity |\n|---|---|---|---|")
    settings = [Judged(100, 60, truth, judge) for judge in (LENIENT, FAIR, HARSH) for truth in (0.5, 0.8)]
    with ProcessPoolExecutor() as pool:
        found = list(zip(settings, pool.map(quality_held, settings, repeat(draws)), strict=True))
    for setting, (sensitivity, specificity) in found:
        shares = f"{100 * sensitivity:.1f} % | {100 * specificity:.1f} %"
        print(f"| {setting.judge} | {setting.truth:g} | {shares} |")
    return all(min(shares) >= LOW - 2 * SLACK for _, shares in found)


def _shares(held: Held) -> str:
    return f"{100 * held.corrected:.1f} % | {100 * held.naive:.1f} %"


if __name__ == "__main__":
    sys.exit(main())
