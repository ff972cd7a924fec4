"""Real agents, as their makers publish them, against a provider on loopback: once they solve it, once they give up.

Those that are fetched within seconds always are, in one version: together they speak all three wire formats. The others
are looked for in the folders of BAKEOFF_AGENTS, which is written like PATH, and those found there come first.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bakeoff.record import Record
from bakeoff.storage.run_folder import RunFolder
from bakeoff.verdict import Verdict

from ...fetched import fetch_package
from .agent_parts import CANARY, PARTS, Part, user_environment
from .small_tracks import DOUBLE, write_track
from .speaking_provider import INPUT, OUTPUT, SpeakingProvider

pytestmark = pytest.mark.full

FOLDERS = os.environ.get("BAKEOFF_AGENTS", "")
FETCHED = {
    "claude": "@anthropic-ai/claude-code@2.1.197",
    "codex": "@openai/codex@0.166.0",
    "qwen": "@qwen-code/qwen-code@0.15.10",
}


def is_to_be_had(part: Part) -> bool:
    return part.agent in FETCHED or bool(FOLDERS and shutil.which(part.agent, path=FOLDERS))


def search_path(agent: str) -> str:
    folders = [FOLDERS] if FOLDERS else []
    if agent in FETCHED and not (FOLDERS and shutil.which(agent, path=FOLDERS)):
        folders.append(str(fetch_package(FETCHED[agent]) / ".bin"))
    return os.pathsep.join([*folders, os.environ["PATH"]])


def run_agent(part: Part, speaking: SpeakingProvider, folder: Path) -> Record:
    words = ["agents", "run", "--agent", part.agent, "--model", part.model, "--provider", part.provider]
    words += ["--exercises", str(write_track(folder / "track", double=DOUBLE)), "--timeout", "100", "--no-open"]
    done = subprocess.run(
        [sys.executable, "-m", "bakeoff", *words],
        cwd=folder,
        env=user_environment(speaking, search_path(part.agent)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    assert CANARY not in done.stdout + done.stderr
    [run] = (folder / "results" / "runs").iterdir()
    [record] = [entry for entry in RunFolder(run).entries() if isinstance(entry, Record)]
    return record


@pytest.mark.timeout(280)
@pytest.mark.parametrize("solving", [True, False], ids=["solves", "gives up"])
@pytest.mark.parametrize(
    "part", [pytest.param(part, id=f"{part.agent} {part.provider}") for part in PARTS if is_to_be_had(part)]
)
def test_an_agent_works_in_its_sandbox_and_is_metered(tmp_path: Path, part: Part, solving: bool) -> None:
    with SpeakingProvider(part.turns(solving=solving)) as speaking:
        record = run_agent(part, speaking, tmp_path)
    told = (record.failure, record.scores, record.transcript)
    assert record.verdict is (Verdict.PASS if solving else Verdict.FAIL), told
    assert speaking.keys <= {CANARY, f"Bearer {CANARY}"}
    written = {path: path.read_bytes() for path in (tmp_path / "results").rglob("*") if path.is_file()}
    assert [path for path, content in written.items() if CANARY.encode() in content] == []
    answers = len(speaking.models)
    assert answers > 0
    assert (record.spent.requests, record.spent.input, record.spent.output) == (
        answers,
        answers * INPUT,
        answers * OUTPUT,
    )
    assert in_result_file(tmp_path, solving=solving) == {
        "inputTokens": answers * INPUT,
        "outputTokens": answers * OUTPUT,
        "totalTokens": answers * (INPUT + OUTPUT),
        "cost": pytest.approx(part.price(speaking.models)),
    }


def in_result_file(folder: Path, *, solving: bool) -> dict[str, Any]:
    file = json.loads((folder / "results" / "latest.json").read_text())
    [entry] = file["results"]
    assert (entry["testSuccess"], entry["overallSuccess"]) == (solving, solving)
    usage: dict[str, Any] = entry["tokenUsage"]
    return usage
