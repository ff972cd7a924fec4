"""Our Python as a sandbox sees it, and the pytest that it finds there."""

import importlib.util
import sys
from pathlib import Path

from bakeoff.errors import InfraError
from bakeoff.protocols import Sandbox

_NEEDED = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging")
_MISSING = "is not installed beside Bakeoff, and Python suites are tested with pytest: `pip install pytest`"


def interpreter(sandbox: Sandbox) -> str:
    """This one; a container brings its own."""
    return "python3" if sandbox.name == "docker" else sys.executable


def pytest_folders() -> tuple[Path, ...]:
    """Where pytest and what it needs are imported from."""
    return tuple(dict.fromkeys(_folder_of(name) for name in _NEEDED))


def _folder_of(name: str) -> Path:
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        raise InfraError(f"`{name}` {_MISSING}", permanent=True)
    return Path(found.origin).parents[1]
