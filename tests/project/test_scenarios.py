"""The scenarios in docs/how-to/evals are run together: first to record, then against recordings and a baseline."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "how-to" / "evals"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "index.md")
FILE = re.compile(r'^```\w+ title="([\w.]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
MAX_LINES = 12
NAMES = """
    async-client baseline classes custom-scorer data-files json-extraction multi-turn parametrize rag replay rounds
    row-threshold streaming tool-agent
"""
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


def files_of(page: Path) -> dict[str, str]:
    return dict(FILE.findall(page.read_text("utf-8")))


def test_there_are_fourteen_and_the_index_has_them_all() -> None:
    assert [page.stem for page in PAGES] == NAMES.split()
    index = (FOLDER / "index.md").read_text("utf-8")
    assert sorted(re.findall(r"\]\(([\w-]+)\.md\)", index)) == NAMES.split()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_scenario_is_one_test_file_of_at_most_twelve_lines(page: Path) -> None:
    files = files_of(page)
    [name] = [name for name in files if name.endswith(".py")]
    assert name == f"test_{page.stem.replace('-', '_')}.py"
    assert len([line for line in files[name].splitlines() if line.strip()]) <= MAX_LINES


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
    for page in PAGES:
        for name, text in files_of(page).items():
            (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "conftest.py").write_text(JUDGE, "utf-8")
    run(tmp_path, "--eval-json", "main.json", "--eval-replay", "auto")
    second = run(tmp_path, "--eval-baseline", "main.json", "--eval-replay", "strict")
    assert re.search(r"--eval-baseline passed: .*no regression shown", " ".join(second.split()))
    ran = {suite["file"] for suite in json.loads((tmp_path / "main.json").read_text("utf-8"))["suites"]}
    assert ran == {f"test_{page.stem.replace('-', '_')}.py" for page in PAGES}
