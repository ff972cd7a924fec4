"""A demonstration that several tests look at."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ..made_once import made_once
from ..warm_bakeoff import WarmBakeoff


@pytest.fixture(scope="session")
def demo_once(
    shared_folder: Path, answered_once: dict[str, str], warm_bakeoff: WarmBakeoff
) -> tuple[Path, "subprocess.CompletedProcess[str]"]:
    def make(folder: Path) -> tuple[list[str], int, str, str]:
        environment = {**os.environ, **answered_once, "NO_COLOR": "1"}
        done = warm_bakeoff.run("demo", "--quick", "--sandbox", "process", cwd=folder, env=environment)
        return done.args, done.returncode, done.stdout, done.stderr

    folder, done = made_once(shared_folder / "demo", make)
    return folder, subprocess.CompletedProcess(*done)


@pytest.fixture
def demo(
    tmp_path: Path, demo_once: tuple[Path, "subprocess.CompletedProcess[str]"]
) -> "subprocess.CompletedProcess[str]":
    """Return what `bakeoff demo` printed, with a copy of the run it left in this test's folder."""
    folder, done = demo_once
    shutil.copytree(folder / "results", tmp_path / "results")
    return done
