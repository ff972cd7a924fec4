"""The command line, as someone types it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Bakeoff = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def bakeoff(tmp_path: Path) -> Bakeoff:
    """Calls `bakeoff …` in the test's folder and gives what came out."""

    def call(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [Path(sys.executable).with_name("bakeoff"), *words],
            cwd=tmp_path,
            env={**os.environ, "NO_COLOR": "1", **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    return call
