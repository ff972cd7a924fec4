"""Let the workers of a test run share what takes long to make."""

import fcntl
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any


def made_once(folder: Path, make: Callable[[Path], Any]) -> tuple[Path, Any]:
    """Return a folder that the first process to ask has filled by `make`, and what that returned, as JSON has it.

    The others wait for it. Nobody may change the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made, told = folder / "made", folder / "told.json"
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not told.exists():
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir()
            told.write_text(json.dumps(make(made)))
    return made, json.loads(told.read_text())
