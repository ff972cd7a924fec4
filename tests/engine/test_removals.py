"""Removing the folders of a trial is on nobody's clock, and changes no verdict."""

import os
import shutil
import threading
from pathlib import Path

import pytest

from bakeoff._kernel.temporary import removing_beside
from bakeoff.engine.run import run
from bakeoff.engine.run_control import RunControl
from bakeoff.options import RunOptions
from bakeoff.plan import Limits, Plan, ScorerSpec
from bakeoff.protocols import Needs, ScoreInput, Task
from bakeoff.record import Record

from .probes import Judge, Probe, plan_of, registry_of

# Too deep for Python's own removal, so that `rm` is called.
NESTS = ("python3", "-c", "import os\nfor _ in range(3000):\n os.mkdir('d'); os.chdir('d')")
SLOW_RM = """#!/bin/sh
while [ ! -e "{released}" ]; do sleep 0.05; done
exec {rm} "$@"
"""


@pytest.fixture
def released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing is removed before this file exists."""
    programs, file = tmp_path / "bin", tmp_path / "released"
    programs.mkdir()
    rm = shutil.which("rm")
    (programs / "rm").write_text(SLOW_RM.format(released=file, rm=rm))
    (programs / "rm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return file


async def nesting_subject(task: Task) -> str:
    await task.workspace.run(NESTS, seconds=50)
    return "yes"


async def nesting_scorer(given: ScoreInput) -> float:
    async with given.pristine() as workspace:
        await workspace.run(NESTS, seconds=50)
    return 1.0


def a_plan(seconds: float) -> Plan:
    limits = Limits(attempt_seconds=seconds, score_seconds=seconds)
    return plan_of(limits=limits, scorers=(ScorerSpec(kind="judge"),))


async def first_record(tmp_path: Path, control: RunControl, released: Path, seconds: float) -> Record:
    probe = Probe(nesting_subject, needs=Needs(workspace=True))
    options = RunOptions(results=tmp_path / "results", sandbox="process")
    registry = registry_of(probe, Judge(nesting_scorer))
    records: list[Record] = []
    async for record in run(a_plan(seconds), options, registry=registry, control=control):
        records.append(record)  # before anything is removed
        released.touch()
    [record] = records
    return record


async def test_a_folder_that_is_slow_to_remove_costs_its_trial_nothing(tmp_path: Path, released: Path) -> None:
    control = RunControl()
    record = await first_record(tmp_path, control, released, seconds=60.0)
    assert record.verdict == "pass", record.failure
    assert control.left_behind == {}, "in the end it is removed"


async def test_a_removal_that_does_not_end_is_named_and_not_waited_for(tmp_path: Path) -> None:
    stuck, over = tmp_path / "stuck", threading.Event()

    def never_ends() -> None:
        over.wait()

    async with removing_beside(lambda: 0.05) as removals:
        removals.add(stuck, never_ends)
    assert removals.left == {stuck: "not removed after 0.05 s"}
    over.set()
