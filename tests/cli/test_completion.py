"""Shells complete commands, options, their choices, and the names of runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..report.runs import plan_of, record_of, write_run

BAKEOFF = str(Path(sys.executable).with_name("bakeoff"))


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("bakeoff ru", ["run", "runs"]),
        ("bakeoff mcp li", ["lint", "list"]),
        ("bakeoff runs show --j", ["--json"]),
        ("bakeoff run --sandbox ", ["auto", "process", "bwrap", "docker"]),
        ("bakeoff runs show 2026", ["2026-01-02T00-00-00-b", "2026-01-01T00-00-00-a"]),
        ("bakeoff runs show la", ["latest"]),
    ],
)
def test_bash_completes_what_is_typed(tmp_path: Path, typed: str, expected: list[str]) -> None:
    plan = plan_of(1, ["s"])
    for name in ("2026-01-01T00-00-00-a", "2026-01-02T00-00-00-b"):
        write_run(tmp_path / "results" / "runs" / name, plan, [record_of(trial, 1.0) for trial in plan.trials()])
    asked = {"_BAKEOFF_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    done = subprocess.run(
        [BAKEOFF], env={**os.environ, **asked}, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == expected
