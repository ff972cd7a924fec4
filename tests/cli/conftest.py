"""A demonstration that several tests look at."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ..warm_bakeoff import WarmBakeoff


@pytest.fixture(scope="session")
def demo_once(
    tmp_path_factory: pytest.TempPathFactory, answered_once: dict[str, str], warm_bakeoff: WarmBakeoff
) -> tuple[Path, "subprocess.CompletedProcess[str]"]:
    folder = tmp_path_factory.mktemp("demo")
    environment = {**os.environ, **answered_once, "NO_COLOR": "1"}
    return folder, warm_bakeoff.run("demo", "--sandbox", "process", cwd=folder, env=environment)


@pytest.fixture
def demo(
    tmp_path: Path, demo_once: tuple[Path, "subprocess.CompletedProcess[str]"]
) -> "subprocess.CompletedProcess[str]":
    """What `bakeoff demo` printed, with a copy of the run it left in this test's folder."""
    folder, done = demo_once
    shutil.copytree(folder / "results", tmp_path / "results")
    return done
