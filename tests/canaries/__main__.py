"""Search the doors that are named, or all: `python -m tests.canaries [DOOR…]`."""

import sys
import tempfile
from pathlib import Path

from tests.canaries import search, table, warmed
from tests.canaries.doors import DOORS

total = 0
for door in sys.argv[1:] or DOORS:
    with tempfile.TemporaryDirectory(prefix="bakeoff-canaries-") as folder, warmed() as warm:
        done = search(Path(folder), door, warm)
    print(f"{door}: {done.searches} searches in {len(done.outputs)} outputs")
    print(table(done.findings), flush=True)
    total += len(done.findings)
sys.exit(bool(total))
