"""`--pdb` in evals."""

import subprocess
import sys

from .small_project import PLUGIN, SmallProject, project

pytest_plugins = ["pytester"]
__all__ = ["project"]

EVALS = """
@eval_suite(data=rows("a", "b"), scorers=[right], timeout=0.2)
async def test_low(case):
    await asyncio.sleep(0.5)
    return "wrong"

@eval_suite(data=rows("c"), scorers=[right], timeout=0.2)
def test_raises(case):
    secret = 41
    raise ValueError(secret)
"""


def debugged(project: SmallProject, typed: str, *options: str) -> str:
    """Run pytest with these lines on its standard input, and return what it prints."""
    command = [sys.executable, "-m", "pytest", *PLUGIN, "--eval-no-record", "-p", "no:cacheprovider", *options]
    run = subprocess.run(command, cwd=project.path, input=typed, capture_output=True, text=True, timeout=120)
    return run.stdout


def test_pdb_stops_where_a_task_raised_and_at_a_low_score_with_its_outcome(project: SmallProject) -> None:
    project.write(EVALS)
    asked = "p 'at', outcome.input, outcome.score\nc\n"
    text = debugged(project, f"{asked}{asked}p 'secret', secret + 1\nc\n", "--pdb", "-v")
    assert "test_low runs one case at a time: a debugger may stop in it" in text
    assert "('at', 'a', 0.0)" in text
    assert "('at', 'b', 0.0)" in text
    assert "('secret', 42)" in text
    assert text.count("PDB post_mortem") == 3
    assert "not finished after" not in text
