"""`--pdb` and `--trace` in evals."""

import subprocess
import sys

import pytest

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


def test_pdb_stops_in_the_users_frame_with_case_and_outcome(project: SmallProject) -> None:
    project.write(EVALS)
    asked = "p 'at', case.input, outcome.score, right\nc\n"
    text = debugged(project, f"{asked}{asked}p 'secret', secret + 1\nc\n", "--pdb", "-v")
    assert "test_low runs one case at a time: a debugger may stop in it" in text
    assert "('at', 'a', 0.0, <function right at " in text
    assert "('at', 'b', 0.0, <function right at " in text
    assert "('secret', 42)" in text
    assert text.count("PDB post_mortem") == 3
    assert text.count("test_it.py(13)test_low()") == 2
    assert "not finished after" not in text


@pytest.mark.parametrize(("test", "line"), [("test_low", 15), ("test_raises", 20)])
def test_trace_stops_at_the_first_line_of_the_function(project: SmallProject, test: str, line: int) -> None:
    project.write(EVALS)
    text = debugged(project, "p 'at', case.input\nc\n" * 2, "--trace", "-k", test)
    assert f"test_it.py({line}){test}()" in text
    assert f"('at', '{'a' if test == 'test_low' else 'c'}')" in text
    assert "not finished after" not in text
    assert "bdb.py" not in text
