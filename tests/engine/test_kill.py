"""kill -9 at any moment loses nothing that was reported, and no trial is done twice."""

import importlib.util
import os
import random
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from bakeoff.record import NO_USAGE, Record
from bakeoff.storage.journal import JournalMark, SpentTokens
from bakeoff.storage.journal_lines import Damage
from bakeoff.storage.run_folder import RunFolder

pytestmark = pytest.mark.journey

PROGRAM = Path(__file__).with_name("programs") / "killed_run.py"
KILLS = int(os.environ.get("BAKEOFF_KILLS", "8"))
CASES_PER_KILL = 40


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("killed_run", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def start(folder: Path, cases: int) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, PROGRAM, folder, str(cases)], stdout=subprocess.PIPE, text=True)


def run_and_kill(folder: Path, cases: int, chance: random.Random) -> list[str]:
    """The keys that were reported before the process was killed: while starting, or some records later."""
    with start(folder, cases) as process:
        assert process.stdout is not None
        if chance.random() < 0.2:
            threading.Timer(chance.uniform(0.0, 0.8), process.kill).start()
            lines = process.stdout.readlines()
        else:
            wanted = chance.randrange(1, 60)
            lines = [line for line, _ in zip(process.stdout, range(wanted), strict=False)]
            threading.Timer(chance.uniform(0.0, 0.01), process.kill).start()
            lines += process.stdout.readlines()
        process.wait()
    return [line.strip() for line in lines if line.endswith("\n")]


@pytest.mark.timeout(60 + 6 * KILLS)
def test_nothing_reported_is_lost_and_nothing_is_done_twice_however_often_the_run_is_killed(tmp_path: Path) -> None:
    chance = random.Random(4)  # the moments are random all the same: the machine's own timing sees to that
    cases = KILLS * CASES_PER_KILL // 2
    program = load()
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    reported: list[str] = []
    for _ in range(KILLS):
        reported += run_and_kill(folder.path, cases, chance)
        finished = Counter(entry.attempt_key for entry in folder.entries() if isinstance(entry, Record))
        assert [entry for entry in folder.entries() if isinstance(entry, Damage)] == []
        assert set(reported) <= set(finished)
        assert not finished or max(finished.values()) == 1
    with start(folder.path, cases) as process:
        reported += process.communicate()[0].split()
    assert process.returncode == 0
    entries = list(folder.entries())
    records = [entry for entry in entries if isinstance(entry, Record)]
    assert len(reported) == len(set(reported))
    assert len(records) == len({record.attempt_key for record in records}) == cases * 2
    assert {record.verdict for record in records} == {"pass", "fail"}
    assert all(record.verdict == ("pass" if record.subject == "script" else "fail") for record in records)
    # The plan of a program that is run names its function in `__main__`.
    latest = list(folder.latest_records(folder.read_plan()))
    assert sorted(record.attempt_key for record in latest) == sorted(record.attempt_key for record in records)
    assert program.plan(cases).size == len(records)
    # What killed trials had spent is in the total as well, and no usage is counted twice.
    spent = [entry for entry in entries if isinstance(entry, SpentTokens)]
    assert spent[-1].total == sum((entry.usage for entry in spent), NO_USAGE)
    assert spent[-1].total.requests >= cases
    starts = [entry for entry in entries if isinstance(entry, JournalMark) and entry.kind == "start"]
    assert 1 < len(starts) <= KILLS + 1
    assert isinstance(entries[-1], JournalMark)
    assert entries[-1].kind == "end"
