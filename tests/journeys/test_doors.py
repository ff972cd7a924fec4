"""A way through every door with real parts: a run that passes, one that fails, and one that is killed and resumed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import bakeoff as package
from bakeoff import RunFolder, find_run

from ..doors.agents.small_tracks import DOUBLE, RIGHT_DOUBLE, agent_file, write_track
from ..doors.components.small_suites import ADDER, calling, scripted, write_suites
from ..warm_bakeoff import PROGRAM, Bakeoff

pytestmark = pytest.mark.journey

KITCHEN = Path(package.__file__).parent / "bundled" / "mcp" / "servers" / "kitchen.py"
RIGHT_CALL = {"serverName": "kitchen", "toolName": "set_timer", "parameters": {"minutes": 12}}
KILL_SECONDS = 60.0


@dataclass(frozen=True)
class Journey:
    """Hold the commands of one door, and the function that writes what they need into a folder.

    `slow` takes some seconds for its trials, so that it can be killed after the first.
    """

    write: Callable[[Path], None]
    passing: tuple[str, ...]
    failing: tuple[str, ...]
    slow: tuple[str, ...]


def write_eval(folder: Path) -> None:
    for name, command, answer, cases in (
        ("right", "cat", "number", 1),
        ("wrong", "cat", "another", 1),
        ("slow", "sleep 0.2; cat", "number", 12),
    ):
        rows = [{"input": f"number {number}", "expected": f"{answer} {number}"} for number in range(cases)]
        subject = {"name": "cat", "command": ["sh", "-c", command]}
        config = {"prompts": "{{ input }}", "subjects": [subject], "cases": rows, "scorers": ["exact"]}
        (folder / f"{name}.yaml").write_text(json.dumps(config))  # JSON is YAML


def write_run(folder: Path) -> None:
    write_suites(folder / "tests", adder=ADDER)
    scripted(folder / "right.json", [calling("ResultWrite", ADDER["reference.py"])])
    scripted(folder / "wrong.json", [calling("ResultWrite", ADDER["wrong.py"])])


def write_agents(folder: Path) -> None:
    write_track(folder / "track", double=DOUBLE)
    agent_file(folder, "right", f"cat > double.py <<'END'\n{RIGHT_DOUBLE}END\n")
    agent_file(folder, "wrong", "true")
    agent_file(folder, "slow", "sleep 0.5")


def write_mcp(folder: Path) -> None:
    shutil.copy(KITCHEN, folder)
    for name, reply, rounds in (("right", RIGHT_CALL, 1), ("wrong", {"serverName": "kitchen"}, 1), ("slow", None, 12)):
        model = f"'scripted:{json.dumps(reply)}'" if reply else "slow:v1"
        (folder / f"{name}.yaml").write_text(
            f"testRound: {rounds}\nconcurrencyLimit: 1\nmodelsToTest: [{model}]\n"
            f"testCases:\n  - {{name: timer, prompt: Set a timer., expectedOutput: {json.dumps(RIGHT_CALL)}}}\n"
            "mcpServers:\n  - {name: kitchen, command: python, args: [kitchen.py]}\n"
            + ('providers: {slow: "slow_provider:Slow"}\n' if reply is None else "")
        )
    (folder / "slow_provider.py").write_text(
        "import time\n\n\nclass Slow:\n    def create_message(self, system, message):\n"
        f"        time.sleep(0.2)\n        return {json.dumps(RIGHT_CALL)!r}\n"
    )


AGENTS = ("agents", "run", "--exercises", "track", "--no-open")
RUN = ("run", "--no-open", "--jobs", "1", "--sandbox", "process")
JOURNEYS = {
    "eval": Journey(
        write_eval,
        ("eval", "right.yaml", "--no-open"),
        ("eval", "wrong.yaml", "--no-open"),
        ("eval", "slow.yaml", "--no-open", "--jobs", "1"),
    ),
    "components": Journey(
        write_run,
        (*RUN, "--model", "scripted:right.json"),
        (*RUN, "--model", "scripted:wrong.json"),
        (*RUN, "--model", "scripted:right.json", "--rounds", "6"),
    ),
    "agents": Journey(
        write_agents,
        (*AGENTS, "--agent-file", "right.yaml", "--agent", "right"),
        (*AGENTS, "--agent-file", "wrong.yaml", "--agent", "wrong"),
        (*AGENTS, "--agent-file", "slow.yaml", "--agent", "slow", "--rounds", "4", "--jobs", "1"),
    ),
    "mcp": Journey(
        write_mcp,
        ("mcp", "evaluate", "right.yaml", "--no-open"),
        ("mcp", "evaluate", "wrong.yaml", "--no-open"),
        ("mcp", "evaluate", "slow.yaml", "--no-open"),
    ),
}


@pytest.fixture(params=sorted(JOURNEYS))
def journey(request: pytest.FixtureRequest, tmp_path: Path) -> Journey:
    journey = JOURNEYS[request.param]
    journey.write(tmp_path)
    return journey


@pytest.fixture
def environment() -> dict[str, str]:
    """Servers and providers of the tests run with this Python."""
    return {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}


def test_right_answers_pass_and_wrong_ones_fail_and_others_derive_the_same(
    bakeoff: Bakeoff, journey: Journey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = bakeoff(*journey.passing)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "100.0 %" in done.stdout
    done = bakeoff(*journey.failing)
    assert done.returncode == 1, done.stdout + done.stderr
    elsewhere = tmp_path / "elsewhere"  # with nothing but the runs
    shutil.copytree(tmp_path / "results" / "runs", elsewhere / "runs")
    (elsewhere / "home").mkdir()
    monkeypatch.chdir(elsewhere)
    for run in sorted((elsewhere / "runs").iterdir()):
        done = bakeoff("runs", "verify", str(run), "--regrade", "--trust", HOME=str(elsewhere / "home"))
        assert done.returncode == 0, done.stdout + done.stderr
        assert "MATCH, 1 of 1 trial derived again" in done.stdout


def finished(run: RunFolder) -> Counter[tuple[str, str, int]]:
    return Counter((record.case, record.subject, record.round) for record in run.latest_records(run.read_plan()))


def run_and_kill(words: tuple[str, ...], folder: Path, environment: dict[str, str]) -> RunFolder:
    """Kill a run with all of its group as soon as its first trial is on disk."""
    process = subprocess.Popen(
        [PROGRAM, *words], cwd=folder, env={**os.environ, **environment}, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    end = time.monotonic() + KILL_SECONDS
    while time.monotonic() < end and process.poll() is None:
        journals = list((folder / "results" / "runs").glob("*/journal.jsonl"))
        if journals and b'"case"' in journals[0].read_bytes():
            break
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "the run ended before it could be killed"
    return find_run(folder / "results", "latest")


def test_a_killed_run_resumes_where_it_was(
    bakeoff: Bakeoff, journey: Journey, tmp_path: Path, environment: dict[str, str]
) -> None:
    run = run_and_kill(journey.slow, tmp_path, environment)
    before = finished(run)
    done = bakeoff("resume", "--exit-zero")
    assert done.returncode == 0, done.stdout + done.stderr
    after = finished(run)
    assert before.total() < after.total() == run.read_plan().size
    assert before <= after
    assert max(after.values()) == 1


EVALS = """\
from bakeoff import eval_suite
from bakeoff.scorers import Contains


@eval_suite(data=[{{"input": "France", "expected": "{expected}"}}], scorers=[Contains()])
async def test_capitals(case):
    return "It is Paris."
"""


def test_evals_in_pytest_pass_and_fail(tmp_path: Path) -> None:
    for expected, code in (("Paris", 0), ("Rome", 1)):
        (tmp_path / "test_capitals.py").write_text(EVALS.format(expected=expected))
        command = [sys.executable, "-m", "pytest", "-q", "--eval-json=evals.json", "--eval-min-pass-rate=1"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        assert json.loads((tmp_path / "evals.json").read_text())["numbers"]["pass_rate"] == 1 - code
