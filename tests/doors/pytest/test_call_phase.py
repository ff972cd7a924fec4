"""Cases that need no setup go a shorter way through pytest; nobody may notice."""

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bakeoff.doors.pytest.gather import Outcomes
from bakeoff.report.suites.outcomes import EvalOutcome
from bakeoff.storage.run_folder import find_run

from .small_project import SmallProject, project

pytest_plugins = ["pytester"]
__all__ = ["project"]

FIVE = """
@eval_suite(data=rows(*"abcde"), scorers=[right])
async def test_it(case):
    return f"<{case.input}>"
"""
HOOKS = {
    "setup": "def pytest_runtest_setup(item): note(item.name)",
    "teardown": "def pytest_runtest_teardown(item): note(item.name)",
    "call": "def pytest_runtest_call(item): item.addfinalizer(lambda: note(item.name))",
    "a report": "def pytest_runtest_logreport(report): note(report.when)",
    "the making of a report": "def pytest_runtest_makereport(item, call): note(call.when)",
}
NOTE = """
def note(word):
    with open("noted.txt", "a") as file:
        file.write(word + "\\n")

"""


@pytest.mark.parametrize("hook", HOOKS)
def test_whoever_has_a_hook_for_each_phase_has_it_called(project: SmallProject, hook: str) -> None:
    project.write(FIVE)
    project.write(HOOKS[hook], "conftest.py", head=NOTE)
    assert project.run().counts() == {"passed": 5}
    noted = (project.path / "noted.txt").read_text().split()
    each = ["setup", "call", "teardown"] * 5
    assert noted == (each if "report" in hook else [f"test_it[{name}]" for name in "abcde"])


@pytest.mark.parametrize("hook", ["pytest_runtest_logstart", "pytest_runtest_logfinish"])
def test_whoever_has_a_hook_for_the_start_or_the_end_of_a_test_has_it_called_with_q_too(
    project: SmallProject, hook: str
) -> None:
    project.write(FIVE)
    project.write(f"def {hook}(nodeid): note(nodeid)", "conftest.py", head=NOTE)
    assert project.run("-q").counts() == {"passed": 5}
    noted = (project.path / "noted.txt").read_text().split()
    assert noted == [f"test_it.py::test_it[{name}]" for name in "abcde"]


FINISHED_BEFORE_THEIR_TURN = """
import asyncio

finished = []

@eval_suite(data=rows(*"abcdef"), scorers=[right], concurrency=6)
async def test_it(case):
    while case.input == "a" and len(finished) < 5:
        await asyncio.sleep(0)
    finished.append(case.input)
    if case.input == "c":
        print("printed by c")
    if case.input == "d":
        return "wrong"
    return f"<{case.input}>"
"""


def test_cases_that_are_finished_before_their_turn_are_reported_like_any_other(project: SmallProject) -> None:
    project.write(FINISHED_BEFORE_THEIR_TURN)
    seen = project.run("-q", "-rPf")
    assert seen.counts() == {"passed": 5, "failed": 1}
    assert seen.text.count("printed by c") == 1
    assert "FAILED test_it.py::test_it[d]" in seen.text
    assert [outcome.case for outcome in seen.outcomes] == list("abcdef")


def test_cases_that_are_finished_before_their_turn_end_the_run_at_the_first_failure(project: SmallProject) -> None:
    project.write(FINISHED_BEFORE_THEIR_TURN)
    assert project.run("-q", "-x").counts() == {"passed": 3, "failed": 1}


def test_cases_that_are_finished_before_their_turn_are_told_apart_by_lf(project: SmallProject) -> None:
    project.write(FINISHED_BEFORE_THEIR_TURN)
    given = ("-q", "-p", "cacheprovider")
    assert project.run(*given, cached=True).counts() == {"passed": 5, "failed": 1}
    assert "1 failed" in project.run(*given, "--lf", cached=True).text


def test_marks_that_are_given_while_collecting_count(project: SmallProject) -> None:
    project.write(FIVE)
    project.write(
        """
import pytest

def pytest_collection_modifyitems(items):
    items[1].add_marker(pytest.mark.skip)
    items[2].add_marker(pytest.mark.xfail(run=False))
    items[3].add_marker(pytest.mark.filterwarnings("default"))
""",
        "conftest.py",
        head="",
    )
    assert project.run().counts() == {"passed": 3, "skipped": 1, "xfailed": 1}


@pytest.mark.parametrize("option", ["--setup-show", "--durations=0"])
def test_whoever_asks_for_phases_is_shown_them(project: SmallProject, option: str) -> None:
    project.write(FIVE)
    text = project.run(option, "-vv").text
    shown = "test_it.py::test_it[c]" if option == "--setup-show" else "setup    test_it.py::test_it[c]"
    assert shown in text


def test_setup_only_runs_no_case(project: SmallProject) -> None:
    project.write(FIVE)
    assert project.run("--setup-only").outcomes == []


def test_what_others_set_up_in_the_module_is_torn_down_when_the_first_failure_ends_the_run(
    project: SmallProject,
) -> None:
    project.write("""
@pytest.fixture(scope="module")
def thing():
    yield 1
    raise ValueError("torn down")

def test_before(thing):
    assert thing

@eval_suite(data=rows(*"abcde"), scorers=[right])
async def test_it(case):
    return "" if case.input == "c" else f"<{case.input}>"
""")
    seen = project.run("-x")
    assert seen.counts() == {"passed": 3, "failed": 1, "errors": 1}
    assert "torn down" in seen.text


def test_a_failure_in_the_middle_reaches_whoever_deals_with_failures(project: SmallProject) -> None:
    project.write("""
@eval_suite(data=rows(*"abcde"), scorers=[right])
async def test_it(case):
    return "no" if case.input == "c" else f"<{case.input}>"
""")
    project.write("def pytest_exception_interact(node): note(node.name)", "conftest.py", head=NOTE)
    assert project.run().counts() == {"passed": 4, "failed": 1}
    assert (project.path / "noted.txt").read_text() == "test_it[c]\n"


def test_node_ids_are_those_that_pytest_would_have_made(project: SmallProject) -> None:
    project.write("""
class TestThese:
    @eval_suite(data=rows("a[1]", "b::c", "]", "["), scorers=[right])
    async def test_it(self, case):
        return f"<{case.input}>"
""")
    project.write(
        """
def pytest_collection_finish(session):
    for item in session.items:
        parsed = type(item.id).parse(item.nodeid) if hasattr(item, "id") else item.nodeid
        assert parsed == getattr(item, "id", item.nodeid)
        assert item.nodeid == f"{item.parent.nodeid}::{item.name}"
""",
        "conftest.py",
        head="",
    )
    assert project.run().counts() == {"passed": 4}


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 200])
def test_outcomes_are_read_back_in_order(count: int) -> None:
    made = [
        EvalOutcome(nodeid=f"n{n}", suite="s", case=str(n), input="\n\udcff" * (n % 3), score=1.0) for n in range(count)
    ]
    kept = Outcomes()
    for outcome in made:
        kept.add(outcome)
    assert len(kept) == count
    assert list(kept) == made


def test_a_session_that_is_killed_leaves_what_it_had_reported(project: SmallProject) -> None:
    project.write("""
@eval_suite(data=rows(*range(300)), scorers=[right])
async def test_it(case):
    return f"<{case.input}>"
""")
    project.write(
        """
import os, signal

seen = []

def pytest_runtest_logreport(report):
    seen.append(report.when == "call")
    if sum(seen) == 200:
        os.kill(os.getpid(), signal.SIGKILL)
""",
        "conftest.py",
        head="",
    )
    assert project.run_apart(record=()).result.ret == -signal.SIGKILL
    folder = find_run(project.path / "results", "latest")
    assert not folder.is_being_written()
    lines = folder.journal_file.read_bytes().splitlines()
    # A write is due after 64 records or a second, so that a slow machine has written at another place before.
    assert sum(line.startswith(b'{"type":"record"') for line in lines) > 200 - 64
    assert folder.plan_file.stat().st_size > 0


RINGS = """
import gc, weakref

class Ring:
    def __init__(self):
        self.ring = self

def is_collected():
    seen = weakref.ref(Ring())
    gc.collect()
    return seen() is None and gc.get_freeze_count() > 0

@eval_suite(data=rows("a", "b"), scorers=[right])
async def test_it(case):
    return f"<{case.input}>" if is_collected() else "not collected"
"""


def test_what_tests_leave_is_collected_and_nothing_stays_frozen_after_the_session(project: SmallProject) -> None:
    project.write(RINGS)
    was_frozen = gc.get_freeze_count() > 0  # by the session that runs this test
    assert project.run("-q").counts() == {"passed": 2}
    assert (gc.get_freeze_count() > 0) == was_frozen
    assert gc.isenabled()


NOT_FOR_ONE_PASSING_CASE = (
    "bakeoff.report.summary",
    "bakeoff.report.compare.within_run",
    "bakeoff.stats.comparison",
    "bakeoff.stats.gates",
    "bakeoff.report.suites.eval_file",
    "bakeoff.doors.pytest.lost",
    "bakeoff.models.providers",
    "logging.handlers",
    "rich",
    "httpx",
    "yaml",
    "scipy",
)


def test_one_passing_case_loads_nothing_for_reports_that_nobody_asked_for(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "from bakeoff import eval_suite\nfrom bakeoff.scorers import Exact\n\n"
        "@eval_suite(data=[{'input': 'a', 'expected': 'a'}], scorers=[Exact()])\n"
        "async def test_it(case):\n    return case.input\n"
    )
    assert loaded_by_pytest(tmp_path).isdisjoint(NOT_FOR_ONE_PASSING_CASE)


def loaded_by_pytest(folder: Path) -> set[str]:
    """Return the modules that a session in this folder has loaded when it ends."""
    code = (
        "import sys, pytest\n"
        "assert pytest.main(['-q', '-p', 'no:cacheprovider', '-p', 'bakeoff.doors.pytest.plugin']) == 0\n"
        "open('loaded.txt', 'w').write('\\n'.join(sys.modules))"
    )
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    for name in ("GITHUB_ACTIONS", "COV_CORE_SOURCE", "COVERAGE_PROCESS_START"):
        environment.pop(name, None)
    subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, check=True, capture_output=True, timeout=120
    )
    return set((folder / "loaded.txt").read_text().split())
