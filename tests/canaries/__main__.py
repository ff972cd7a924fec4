"""Search the doors that are named, or all: `python -m tests.canaries [--bounded] [DOOR…]`."""

import sys
import tempfile
from pathlib import Path

from tests.canaries import search, table, warmed
from tests.canaries.doors import DOORS

total = 0
with warmed() as warm:
    for door in [word for word in sys.argv[1:] if word in DOORS] or DOORS:
        with tempfile.TemporaryDirectory(prefix="bakeoff-canaries-") as folder:
            done = search(Path(folder), door, warm, long="--bounded" not in sys.argv)
        print(f"{door}: {done.searches} searches in {len(done.outputs)} outputs, {len(done.reached)} reached")
        print(table(done.findings), flush=True)
        total += len(done.findings)
sys.exit(bool(total))
