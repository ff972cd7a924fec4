"""Run every bench/bench_*.py in turn, or the one that is named, each in a process of its own."""

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]


def choose(names: list[str]) -> list[Path]:
    """The files to run, in order of their names."""
    found = {path.stem.removeprefix("bench_"): path for path in sorted((ROOT / "bench").glob("bench_*.py"))}
    wanted = [name.removeprefix("bench_") for name in names] or list(found)
    unknown = [name for name in wanted if name not in found]
    if unknown or not wanted:
        there = ", ".join(found) or "none"
        sys.exit(f"✗ no benchmark is called {', '.join(unknown) or 'anything'}; those in bench/: {there}")
    return [found[name] for name in wanted]


def main() -> None:
    failed = []
    for path in choose(sys.argv[1:]):
        print(f"→ {path.name}", flush=True)
        started = time.monotonic()
        code = subprocess.run([sys.executable, "-m", f"bench.{path.stem}"], cwd=ROOT, check=False).returncode
        print(f"{'✗' if code else '✓'} {path.name}: {time.monotonic() - started:.1f} s", flush=True)
        if code:
            failed.append(f"{path.name} (exit {code})")
    if failed:
        sys.exit(f"✗ failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
