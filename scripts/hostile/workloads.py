"""Real runs of every door that take seconds, to be killed and starved: each needs no key and no network."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bakeoff._kernel.cache import cache_folder
from bakeoff.record import Record
from bakeoff.storage.journal import read_journal

BAKEOFF = (str(Path(sys.executable).with_name("bakeoff")),)
_PROJECT = Path(__file__).resolve().parents[2]
_BUNDLED = _PROJECT / "src" / "bakeoff" / "bundled"

_PROVIDER = """
import time


class Slow:
    def create_message(self, system: str, message: str) -> str:
        time.sleep(0.02)
        return '{"serverName": "kitchen", "toolName": "set_timer", "parameters": {"minutes": 12}}'
"""
_SUITE = """
testRound: 8
passThreshold: 0.5
concurrencyLimit: 2
modelsToTest: [slow:v1]
testCases:
  - name: timer
    prompt: Set a timer.
    expectedOutput: {serverName: kitchen, toolName: set_timer, parameters: {minutes: 12}}
  - {name: poem, prompt: Write a poem., expectedOutput: null}
mcpServers:
  - {name: kitchen, command: python, args: [kitchen.py]}
providers: {slow: "slow_provider:Slow"}
"""
_EVALS = """
import time

from bakeoff import EvalCase, eval_suite
from bakeoff.scorers import Contains


@eval_suite(data=[{"input": str(number), "expected": str(number)} for number in range(40)], scorers=[Contains()])
def test_echo(case: EvalCase) -> str:
    time.sleep(0.03)
    return f"It is {case.input}."
"""
_AGENT = """
name: sleeper
defaultProvider: none
install: {method: other}
command: [sh, -c, "sleep 0.1; (sleep 300 &) ; cat > double.py; echo done", "{instructions}"]
"""


@dataclass(frozen=True, slots=True)
class Workload:
    """Hold a command of one door and how to set up the folder that it runs in."""

    name: str
    argv: tuple[str, ...]
    set_up: Callable[[Path], None]
    resumes: bool = True


def _mcp(folder: Path) -> None:
    shutil.copy(_BUNDLED / "mcp" / "servers" / "kitchen.py", folder)
    (folder / "slow_provider.py").write_text(_PROVIDER)
    (folder / "mcp-testing-framework.yaml").write_text(_SUITE)


def _exercises(folder: Path) -> None:
    from tests.doors.exercises.small_tracks import DOUBLE, write_track

    write_track(folder / "track", double=DOUBLE)
    (folder / "sleeper.yaml").write_text(_AGENT)


def _pytest(folder: Path) -> None:
    (folder / "test_evals.py").write_text(_EVALS)


def _embedded(folder: Path) -> None:
    shutil.copy(_BUNDLED / "mcp" / "servers" / "kitchen.py", folder)
    text = (_BUNDLED / "mcp" / "getting_started" / "mcp-testing-framework.yaml").read_text()
    (folder / "mcp-testing-framework.yaml").write_text(text)


def _nothing(folder: Path) -> None:
    del folder


MCP = Workload("mcp", (*BAKEOFF, "mcp", "evaluate", "--exit-zero", "--no-open"), _mcp)
EXERCISES = Workload(
    "exercises",
    (
        *(*BAKEOFF, "agents", "run", "--exercises", "track", "--agent-file", "sleeper.yaml", "--agent", "sleeper"),
        *("--agent", "nop", "--rounds", "2", "--sandbox", "process", "--jobs", "2", "--no-open", "--exit-zero"),
    ),
    _exercises,
)
COMPONENTS = Workload(
    "components",
    (
        *(*BAKEOFF, "run", "--suite", "python-intervals", "--model", "nop", "--rounds", "3", "--sandbox", "process"),
        *("--jobs", "2", "--no-open", "--exit-zero"),
    ),
    _nothing,
)
EVALS = Workload(
    "pytest", (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_evals.py"), _pytest, resumes=False
)
EMBEDDED = Workload("embedded", (*BAKEOFF, "mcp", "evaluate", "--exit-zero", "--no-open"), _embedded)
DOORS = (MCP, EXERCISES, MCP, EVALS, COMPONENTS, MCP)
"""Cheap ones more often."""


def environment(folder: Path) -> dict[str, str]:
    """Return an environment without keys, with a home of its own and the cache of this machine."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    cache = {"BAKEOFF_CACHE": str(cache_folder())}
    return {**kept, **cache, "HOME": str(folder), "PYTHONPATH": str(_PROJECT), "NO_COLOR": "1"}


def prepare(workload: Workload, folder: Path) -> Path:
    """Return the folder, set up for the workload."""
    folder.mkdir(parents=True)
    workload.set_up(folder)
    return folder


def start(argv: Sequence[str], folder: Path, **options: object) -> subprocess.Popen[bytes]:
    """Start a command. Its output goes to files, so that no reader is needed."""
    with (folder / "output.txt").open("ab") as output:
        return subprocess.Popen(  # type: ignore[call-overload, no-any-return]
            list(argv), cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            **{"env": environment(folder), **options},
        )  # fmt: skip


def output(folder: Path) -> str:
    """Return what all commands in the folder have printed."""
    return (folder / "output.txt").read_text(errors="replace")


def run_folders(folder: Path) -> list[Path]:
    """Return the run folders with a journal."""
    return sorted(path.parent for path in (folder / "results" / "runs").glob("*/journal.jsonl"))


def records(run: Path) -> Iterator[Record]:
    """Yield the records in the journal of a run."""
    return (entry for entry in read_journal(run / "journal.jsonl") if isinstance(entry, Record))


def finished(run: Path) -> Counter[tuple[str, str, int]]:
    """Return how often each trial was recorded with a verdict that counts, and so is never tried again."""
    counted = [record for record in records(run) if record.verdict.value in ("pass", "fail", "timeout", "recorded")]
    return Counter((record.case, record.subject, record.round) for record in counted)


def planned(run: Path) -> int:
    """Return how many trials the plan of a run has."""
    plan: Mapping[str, object] = json.loads((run / "plan.json").read_text())
    cases, subjects = plan["cases"], plan["subjects"]
    assert isinstance(cases, list)
    assert isinstance(subjects, list)
    return len(cases) * len(subjects) * int(str(plan["rounds"]))
