"""A million trials, fresh and then resumed half way, need hardly more memory than ten thousand."""

import shutil
import sys
import tempfile
from pathlib import Path

from bench.measure import Measured, contend

CASES, SUBJECTS, ROUNDS = 1_000, 10, 100
WANTED = 1.3


def main() -> int:
    total = CASES * SUBJECTS * ROUNDS
    small = contend("contender_bakeoff", str(CASES), str(SUBJECTS), "1")
    _print("10,000 trials", small, small)
    fresh = _contend()
    _print("1,000,000 fresh", fresh, small)
    folder = Path(tempfile.mkdtemp(prefix="bakeoff-bench-"))
    try:
        first = _contend(str(folder), str(total // 2))
        _print("… stopped half way", first, small)
        resumed = _contend(str(folder))
        _print("… and resumed", resumed, small)
    finally:
        shutil.rmtree(folder)
    ratio = max(fresh.peak_mb, resumed.peak_mb) / small.peak_mb
    print(f"memory of 1,000,000 / 10,000 trials: {ratio:.2f}× (wanted: below {WANTED:g}×)")
    return 0 if ratio < WANTED else 1


def _contend(*more: str) -> Measured:
    return contend("contender_bakeoff", str(CASES), str(SUBJECTS), str(ROUNDS), *more)


def _print(what: str, measured: Measured, small: Measured) -> None:
    ratio = measured.peak_mb / small.peak_mb
    print(f"{what:20}{measured.trials:>10,} trials {measured.rate:>8,.0f}/s {measured.peak_mb:>6.0f} MB  {ratio:.2f}×")


if __name__ == "__main__":
    sys.exit(main())
