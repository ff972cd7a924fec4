"""BAKEOFF_NO_SKIP=1 keeps continuous integration from going green on tests that did not run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

TESTS = Path(__file__).parents[1]


def run_pytest(folder: Path, source: str, no_skip: str) -> subprocess.CompletedProcess[str]:
    (folder / "tests").mkdir()
    for file in ("conftest.py", "warm_bakeoff.py"):
        shutil.copy(TESTS / file, folder / "tests" / file)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    (folder / "tests" / "test_it.py").write_text(source)
    env = {**os.environ, "BAKEOFF_NO_SKIP": no_skip}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-rs", "-q"]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)


ABSENT = """
def test_one(needs_program):
    needs_program("no-such-program-here")
"""
MARKED = """
import pytest

@pytest.mark.skip(reason="not today")
def test_one(): ...
"""
WHOLE_MODULE = """
import pytest

pytest.skip("not today", allow_module_level=True)
"""
EXPECTED_FAILURE = """
import pytest

@pytest.mark.xfail(reason="known")
def test_one():
    assert False
"""


def test_an_absent_program_skips_with_the_command_to_type(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, ABSENT, no_skip="0")
    assert done.returncode == 0, done.stdout
    assert "no-such-program-here is not here: apt-get install no-such-program-here" in done.stdout


@pytest.mark.parametrize(
    ("source", "reason"),
    [(ABSENT, "apt-get install"), (MARKED, "not today"), (WHOLE_MODULE, "not today")],
    ids=["fixture", "mark", "module"],
)
def test_a_skip_is_a_failure_where_nothing_may_skip(tmp_path: Path, source: str, reason: str) -> None:
    done = run_pytest(tmp_path, source, no_skip="1")
    assert done.returncode != 0
    assert "nothing may be skipped with BAKEOFF_NO_SKIP=1" in done.stdout
    assert reason in done.stdout


def test_an_expected_failure_is_not_taken_for_a_skip(tmp_path: Path) -> None:
    assert run_pytest(tmp_path, EXPECTED_FAILURE, no_skip="1").returncode == 0
