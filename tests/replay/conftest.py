"""Fixtures for recordings: the loopback provider of the model tests, and replay in a folder of the test."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from bakeoff._kernel.choices import ReplayMode
from bakeoff.replay.process import replaying
from bakeoff.storage.redaction import Redactor

from ..models.conftest import ask, model_spec, nobody, provider
from ..models.loopback import KEY

__all__ = ["ask", "model_spec", "nobody", "provider"]

SECRET = "secret-9b1e4f7a2c"
Replay = Callable[[ReplayMode], AbstractContextManager[None]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "recordings"


@pytest.fixture
def replay(folder: Path) -> Replay:
    """Replay the calls of the application: `with replay("record"):`."""
    return lambda mode: replaying(mode, folder, Redactor({"LOOPBACK_API_KEY": KEY, "MY_KEY": SECRET}))


@pytest.fixture
def recordings(folder: Path) -> Callable[[], list[Path]]:
    """List the recordings that were written so far."""
    return lambda: sorted(folder.rglob("*.json"))
