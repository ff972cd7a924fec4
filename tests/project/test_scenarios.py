"""The scenarios in docs/how-to/evals.md are run together: first to record, then against recordings and a baseline."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "evals.md"
FILE = re.compile(r'^```\w+ title="([\w.]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
MAX_LINES = 12
JUDGE = """\
import json

from bakeoff import register_provider


class Kind:
    \"\"\"A judge that finds one statement, and agrees with it.\"\"\"

    def create_message(self, system, message):
        one = "claim" if "factual claim" in system + message else "statement"
        return json.dumps({f"{one}s": [{one: "Refunds take 5 days.", "supported": True}]})


register_provider("kind", Kind())
"""


FILES = dict(FILE.findall(PAGE.read_text("utf-8")))
TESTS = [name for name in FILES if name.endswith(".py")]


def test_each_scenario_is_a_section_with_one_test_file() -> None:
    assert len(TESTS) == 11
    assert [section.count('title="test_') for section in PAGE.read_text("utf-8").split("\n## ")[1:]] == [1] * 11


@pytest.mark.parametrize("name", TESTS)
def test_a_scenario_has_at_most_twelve_lines(name: str) -> None:
    assert len([line for line in FILES[name].splitlines() if line.strip()]) <= MAX_LINES


def run(folder: Path, *words: str) -> str:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("BAKEOFF_", "COVERAGE_", "PYTEST_"))
    }
    env = {**kept, "NO_COLOR": "1", "COLUMNS": "120", "BAKEOFF_JUDGE": "kind:judge"}
    command = [sys.executable, "-m", "pytest", "-q", *words]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_scenario_passes_and_again_from_recordings_and_against_its_baseline(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "conftest.py").write_text(JUDGE, "utf-8")
    run(tmp_path, "--eval-json", "main.json", "--eval-replay", "auto")
    second = run(tmp_path, "--eval-baseline", "main.json", "--eval-replay", "strict")
    assert re.search(r"--eval-baseline passed: .*no regression shown", " ".join(second.split()))
    ran = {suite["file"] for suite in json.loads((tmp_path / "main.json").read_text("utf-8"))["suites"]}
    assert ran == set(TESTS)
