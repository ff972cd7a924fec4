"""Running the installed command as a user would."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

BAKEOFF = Path(sys.executable).parent / "bakeoff"

Bakeoff = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def environment() -> dict[str, str]:
    return {**os.environ, "NO_COLOR": "1"}


@pytest.fixture
def bakeoff(tmp_path: Path, environment: dict[str, str]) -> Bakeoff:
    """Calls `bakeoff …` in an empty folder and gives what came out."""

    def call(*arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [BAKEOFF, *arguments],
            cwd=tmp_path,
            env={**environment, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return call


@pytest.fixture(scope="session")
def demo_once(
    tmp_path_factory: pytest.TempPathFactory, answered_once: dict[str, str]
) -> tuple[Path, "subprocess.CompletedProcess[str]"]:
    folder = tmp_path_factory.mktemp("demo")
    command = [str(BAKEOFF), "demo", "--sandbox", "process"]
    environment = {**os.environ, **answered_once, "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return folder, done


@pytest.fixture
def demo(
    tmp_path: Path, demo_once: tuple[Path, "subprocess.CompletedProcess[str]"]
) -> "subprocess.CompletedProcess[str]":
    """What `bakeoff demo` printed, with a copy of the run it left in this test's folder."""
    folder, done = demo_once
    shutil.copytree(folder / "results", tmp_path / "results")
    return done
