"""Running one contender in a process of its own and reading what it says of itself."""

import json
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Measured:
    """What one contender did."""

    trials: int
    seconds: float
    peak_mb: float

    @property
    def rate(self) -> float:
        return self.trials / self.seconds


def contend(script: str, *arguments: str) -> Measured:
    """Run `python -m bench.<script>` and read the measurement it prints last."""
    done = subprocess.run(
        [sys.executable, "-m", f"bench.{script}", *arguments],
        cwd=Path(__file__).parents[1],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    facts: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return Measured(**facts)


def report(trials: int, seconds: float) -> None:
    """Called by a contender at its end."""
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"trials": trials, "seconds": seconds, "peak_mb": peak_mb}))
