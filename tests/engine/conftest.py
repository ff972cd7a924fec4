"""Fixtures of the tests of runs."""

import pytest


@pytest.fixture
def log() -> list[tuple[str, str, object]]:
    return []
