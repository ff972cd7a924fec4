"""Grade honest solutions with twins, and compare verdicts and tests with those of plain pytest, Jest, Vitest, and the
commands of compiled languages.

python -m bench.honest [WORD …]   only the cases with one of these words in their names
"""

import asyncio
import sys
import time
from collections import Counter

from tests.grading.against_plain import compare_with_plain
from tests.grading.corpus import bundled_cases, made_up_cases, polyglot_cases, solutions_of

MUTANTS = 3


def main() -> int:
    words = sys.argv[1:] or [""]
    known = (*made_up_cases(), *bundled_cases(), *polyglot_cases())
    cases = [case for case in known if any(word in case.name for word in words)]
    solutions = [solution for case in cases for solution in solutions_of(case, MUTANTS)]
    started = time.monotonic()
    compared = asyncio.run(compare_with_plain(solutions))
    differences = [each.difference for each in compared if each.difference is not None]
    for difference in differences:
        print(f"✗ {difference}")
    kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(each.kind for each in solutions).items())
    print(f"{len(solutions)} solutions of {len(cases)} cases ({kinds}) in {time.monotonic() - started:.0f} s")
    passing, tests = sum(each.passes_plainly for each in compared), sum(len(each.plain) for each in compared)
    print(f"the plain tools pass {passing} of them; {tests} tests were compared")
    doubted = [each for each in compared if each.doubted]
    tests = sum(len(each.doubted) for each in doubted)
    print(f"tests that pass whatever they expect, and so do not count: {tests}, in {len(doubted)} wrong solutions")
    print(f"solutions that differ: {len(differences)} (wanted: none)")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
