"""Fixtures for runs of small tracks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ...models.loopback import Loopback
from .small_tracks import DOUBLE, PAIR, write_track


@pytest.fixture
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def track(tmp_path: Path) -> Path:
    return write_track(tmp_path / "track", double=DOUBLE, pair=PAIR)


@pytest.fixture
def provider() -> Iterator[Loopback]:
    loopback = Loopback()
    loopback.start()
    yield loopback
    loopback.stop()
