"""Test pytest's own reports of evals: the short summary, the blocks of failures, JUnit, the page, the kept run."""

import re
import subprocess
import sys

import junitparser
import pytest

from .small_project import PLUGIN, SmallProject, project

pytest_plugins = ["pytester"]
__all__ = ["project"]

HOSTILE = """
TEXT = "::error::one\\n::error::two ##[command]x " + "word " * 40 + "\\u65e5\\u672c" * 40

def a_scorer_with_a_very_long_name(given):
    return 0.5

@eval_suite(data=[{"input": n, "name": f"n{n}", "expected": "Lima"} for n in range(3)],
            scorers=[a_scorer_with_a_very_long_name, Contains()], threshold=0.8)
async def test_low(case):
    await asyncio.sleep(0.2)
    print(TEXT)
    return TEXT

@eval_suite(data=rows("raises"), scorers=[right])
def test_raises(case):
    raise ValueError(TEXT)

async def test_one(to_eval):
    await to_eval("x", output=TEXT, expected="Lima", scorer=Contains())

@pytest.fixture
def broken():
    raise OSError(TEXT)

def test_lost(to_eval, broken):
    pass
"""


@pytest.mark.journey
@pytest.mark.parametrize(("workers", "ci"), [((), ""), ((), "true"), (("-p", "xdist", "-n", "2"), "true")])
def test_failures_fit_the_terminal_hold_no_commands_and_say_why(
    project: SmallProject, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...], ci: str
) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    monkeypatch.setenv("CI", ci)  # pytest cuts its summary elsewhere, and not there
    project.write(HOSTILE)
    run = project.run_apart if workers else project.run
    seen = run("--junitxml", "junit.xml", *workers)
    assert seen.counts() == {"failed": 5, "errors": 1}
    lines = seen.text.splitlines()
    blocks = lines[lines.index(next(line for line in lines if " FAILURES " in line)) :]
    assert not [line for line in lines if line.lstrip().startswith("::") or "##[" in line]
    from _pytest._io.wcwidth import wcswidth

    errors = ("ValueError", "OSError")
    own = [line for line in blocks if line.startswith("    ") and "word" in line and not any(map(line.count, errors))]
    assert own
    assert max(map(wcswidth, own)) <= 72
    assert "FAILED test_it.py::test_low[n0] - score 0.25 < 0.80: contains: missin" in seen.text
    assert "FAILED test_it.py::test_one - score 0.00 < 1.00: contains: missing" in seen.text
    cases = {case.name: case for suite in junitparser.JUnitXml.fromfile("junit.xml") for case in suite}
    printed = {name: float(number) for name, number in re.findall(r"(test_low\[n\d\]) FAILED 0\.25 (\d+)ms", seen.text)}
    assert len(printed) == 3  # with a time of their own, not that of pytest's hook
    # JUnit adds what pytest took before and after, which may be long on a busy machine.
    assert all(1000 * cases[name].time > printed[name] - 1 for name in printed)


def test_the_page_and_the_summary_are_right_for_several_thresholds(project: SmallProject) -> None:
    project.write("""
def some(given): return 0.6

test_low = describe_eval("low", data=rows("a"), task=str, scorers=[some], threshold=0.5)
test_high = describe_eval("high", data=rows("b"), task=str, scorers=[some], threshold=0.9)
test_recorded = describe_eval("recorded", data=rows("c"), task=lambda input: "x", scorers=[right], threshold=None)
""")
    seen = project.run("--eval-html", "page.html")
    page = (project.path / "page.html").read_text()
    assert "<dt>Pass threshold</dt><dd>0.5 to 0.9, by case; some cases have none</dd>" in page
    worst = seen.text[seen.text.index("Worst cases:") :]
    assert worst.index("test_high[b]") < worst.index("test_recorded[c]")  # a failure before a lower score
    from bakeoff.report.render.html.run_page import write_run_page
    from bakeoff.storage.run_folder import find_run

    kept = write_run_page(find_run(project.path / "results", "latest")).read_text()
    assert "<dt>Pass threshold</dt><dd>0.5 to 0.9, by case; some cases have none</dd>" in kept
    assert "No threshold was set" not in kept


def test_evals_run_where_files_cannot_be_locked_and_are_not_kept(project: SmallProject) -> None:
    project.write("""
@eval_suite(data=rows("a"), scorers=[right])
def test_it(case):
    return f"<{case.input}>"
""")
    code = "import sys; sys.modules['fcntl'] = None; import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, *PLUGIN, "-p", "no:cacheprovider", "--eval-json", "evals.json"]
    run = subprocess.run(command, cwd=project.path, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout
    assert "this run is not kept: runs cannot be kept on this platform: Python has no file locks here" in run.stdout
    assert (project.path / "evals.json").exists()
    assert not (project.path / "results").exists()


def test_control_characters_and_commands_in_errors_and_ids_are_harmless(project: SmallProject) -> None:
    project.write(r"""
BAD = "\x1b[2J\x1b]0;owned\x07 \u202e ##[error]owned"

@eval_suite(data=[{"input": 1, "name": "##[error]owned"}], scorers=[right])
def test_it(case):
    raise ValueError(BAD)
""")
    for style in ("auto", "line"):
        seen = project.run("-v", "-l", f"--tb={style}")
        assert seen.counts() == {"failed": 1}
        assert r"\x1b[2J\x1b]0;owned\x07 \u202e ## [error]owned" in seen.text
        assert not {"\x1b", "\x07", "\u202e"} & set(seen.text)
        assert "##[" not in seen.text
        assert "test_it.py::test_it[## [error]owned] FAILED" in seen.text
