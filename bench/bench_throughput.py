"""10,000 instant trials: Bakeoff with its journal on and fsynced, pydantic-evals (no log), inspect-ai (its log)."""

import statistics
import sys

from bench.measure import Measured, contend

TRIALS = 10_000
INSPECT_TRIALS = 1_000  # its rate does not depend on the count, and 10,000 take minutes
REPEATS = 3
WANTED = {"pydantic-evals": 2.0, "inspect-ai": 50.0}


def main() -> int:
    # The contenders take turns, so that a busy moment of the machine meets them all.
    rounds = [_round() for _ in range(REPEATS)]
    print(f"{'':16}{'trials/s':>10}{'peak MB':>10}")
    for name in rounds[0]:
        rate = statistics.median(measured[name].rate for measured in rounds)
        peak = statistics.median(measured[name].peak_mb for measured in rounds)
        print(f"{name:16}{rate:>10,.0f}{peak:>10.0f}")
    missed = [name for name, wanted in WANTED.items() if not _compare(rounds, name, wanted)]
    return 1 if missed else 0


def _round() -> dict[str, Measured]:
    return {
        "bakeoff": contend("contender_bakeoff", str(TRIALS), "1", "1"),
        "pydantic-evals": contend("contender_pydantic_evals", str(TRIALS)),
        "inspect-ai": contend("contender_inspect", str(INSPECT_TRIALS)),
    }


def _compare(rounds: list[dict[str, Measured]], name: str, wanted: float) -> bool:
    ratio = statistics.median(measured["bakeoff"].rate / measured[name].rate for measured in rounds)
    print(f"bakeoff / {name}: {ratio:.1f}× (wanted: at least {wanted:g}×)")
    return ratio >= wanted


if __name__ == "__main__":
    sys.exit(main())
