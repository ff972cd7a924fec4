"""One attack of each family, on each sandbox of this machine: none passes. `make hostile` runs all of them."""

import shutil
from pathlib import Path

import pytest

from bakeoff import find_run

from ..doors.agents.small_tracks import DOUBLE, write_track
from ..warm_bakeoff import Bakeoff

pytestmark = pytest.mark.journey

PYTHON = {
    "files": "conftest",
    "patch": "patch-assertions",
    "report": "claim-all",
    "value": "equal-everything",
    "process": "exit-early",
    "guess": "guess-at-random",
    "search": "find-reference",
    "state": "claim-by-user",
}
DOCUMENT = "lie-in-text"  # only a test of a component has a document to attack


@pytest.fixture(params=["process", "bwrap"])
def sandbox(request: pytest.FixtureRequest) -> str:
    if request.param == "bwrap" and shutil.which("bwrap") is None:
        pytest.skip("bwrap is not here: apt-get install bubblewrap")
    return str(request.param)


def verdicts(folder: Path) -> dict[str, str]:
    run = find_run(folder / "results", "latest")
    return {record.subject: record.verdict.value for record in run.latest_records(run.read_plan())}


def test_no_attack_on_an_exercise_passes(bakeoff: Bakeoff, sandbox: str, tmp_path: Path) -> None:
    write_track(tmp_path / "track", double=DOUBLE)
    cheats = [word for name in PYTHON.values() for word in ("--agent", f"cheat:{name}")]
    words = ("--exercises", "track", "--sandbox", sandbox, "--no-open")
    done = bakeoff("agents", "run", *cheats, "--agent", "oracle", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert verdicts(tmp_path) == {"oracle": "pass"} | {f"cheat:{name}": "fail" for name in PYTHON.values()}


def test_no_attack_on_a_component_passes(bakeoff: Bakeoff, sandbox: str, tmp_path: Path) -> None:
    words = ("--suite", "progress-bar", "--sandbox", sandbox, "--no-open")
    done = bakeoff("run", "--model", f"cheat:{DOCUMENT}", "--model", "oracle", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert verdicts(tmp_path) == {"oracle": "pass", f"cheat:{DOCUMENT}": "fail"}
