"""`bakeoff suite new`, and `bakeoff verify --watch`."""

import os
from pathlib import Path

import pytest

from bakeoff.doors.components.suites import find_suites

from ..doors.components.small_suites import ADDER, write_suites
from ..warm_bakeoff import PROGRAM, Bakeoff
from .wizard_terminal import CTRL_C, Terminal

pytestmark = pytest.mark.full


@pytest.mark.parametrize(
    ("framework", "component"),
    [
        ("svelte", "Component.svelte"),
        ("react", "Component.tsx"),
        ("vue", "Component.vue"),
        ("typescript", "solution.ts"),
        ("python", "solution.py"),
    ],
)
def test_a_new_suite_is_complete(bakeoff: Bakeoff, tmp_path: Path, framework: str, component: str) -> None:
    done = bakeoff("suite", "new", "mine", "--framework", framework, "--suites", str(tmp_path / "own"))
    assert done.returncode == 0, done.stderr
    assert "--suite mine --watch`, and change it into yours" in " ".join(done.stdout.split())
    (suite,) = find_suites(tmp_path / "own").suites
    assert (suite.name, suite.component_file) == ("mine", component)
    assert suite.wrong is not None


def test_a_new_suite_verifies(bakeoff: Bakeoff) -> None:
    assert bakeoff("suite", "new", "mine", "--framework", "python").returncode == 0
    done = bakeoff("verify")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 suite is fit for use" in done.stdout
    again = bakeoff("suite", "new", "mine")
    assert again.returncode == 2
    assert "tests/mine exists already" in again.stderr
    assert "'../up' is no name for a suite" in bakeoff("suite", "new", "../up").stderr


def test_an_edited_suite_is_verified_again_until_ctrl_c(tmp_path: Path) -> None:
    write_suites(tmp_path / "tests", adder=ADDER)
    environment = {**os.environ, "BAKEOFF_CACHE": str(tmp_path / "cache")}
    with Terminal([str(PROGRAM), "verify", "--watch"], tmp_path, environment) as terminal:
        terminal.sees("1 of 1 suite is fit for use")
        terminal.sees("Waiting for changes; Ctrl-C ends.")
        (tmp_path / "tests" / "adder" / "reference.py").write_text("def add(a, b):\n    return a - b\n")
        terminal.sees("0 of 1 suite is fit for use")
        terminal.sees("Waiting for changes; Ctrl-C ends.")
        (tmp_path / "tests" / "adder" / "suite.toml").write_text("runner =")
        terminal.sees("suite 'adder' is left out")
        terminal.sees("Waiting for changes; Ctrl-C ends.")
        (tmp_path / "tests" / "adder" / "suite.toml").write_text(ADDER["suite.toml"])
        (tmp_path / "tests" / "adder" / "reference.py").write_text(ADDER["reference.py"])
        terminal.sees("1 of 1 suite is fit for use")
        terminal.answer("Waiting for changes; Ctrl-C ends.", CTRL_C)
        assert terminal.ends() == 0
        assert "Traceback" not in terminal.text
