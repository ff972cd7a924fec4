"""Cases that are finished already are reported several at a time; nobody may notice."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .small_project import SmallProject, project

pytest_plugins = ["pytester"]
__all__ = ["project"]

NAMES = "abcdefgh"
ALL_FINISH_BEFORE_THE_FIRST = f"""
finished = []

@eval_suite(data=rows(*{NAMES!r}), scorers=[right], concurrency=8)
async def test_it(case):
    while case.input == "a" and len(finished) < 7:
        await asyncio.sleep(0)
    finished.append(case.input)
    return f"<{{case.input}}>"
"""
NOTE = """
import pytest

def note(word):
    with open("noted.txt", "a") as file:
        file.write(word + "\\n")

"""
EACH = [f"test_it.py::test_it[{name}]" for name in NAMES]


def noted(project: SmallProject) -> list[str]:
    return (project.path / "noted.txt").read_text().splitlines()


@pytest.mark.parametrize(
    "hook",
    [
        "def pytest_runtest_protocol(item): note(item.nodeid)",
        "@pytest.hookimpl(wrapper=True)\ndef pytest_runtest_protocol(item):\n    note(item.nodeid)\n    return (yield)",
        "@pytest.hookimpl(tryfirst=True)\ndef pytest_runtest_logstart(nodeid): note(nodeid)",
        "def pytest_runtest_logfinish(nodeid): note(nodeid)",
        "def pytest_runtest_logreport(report):\n    if report.when == 'call': note(report.nodeid)",
    ],
)
@pytest.mark.parametrize("options", [["-q"], []])
def test_every_hook_of_others_is_called_for_every_case_in_order(
    project: SmallProject, hook: str, options: list[str]
) -> None:
    project.write(ALL_FINISH_BEFORE_THE_FIRST)
    project.write(hook, "conftest.py", head=NOTE)
    assert project.run(*options).counts() == {"passed": 8}
    assert noted(project) == EACH


def test_a_loop_of_another_plugin_runs_the_tests(project: SmallProject) -> None:
    project.write(ALL_FINISH_BEFORE_THE_FIRST)
    own_loop = """
def pytest_runtestloop(session):
    for place, item in enumerate(session.items[:3]):
        note(item.nodeid)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=session.items[place + 1] if place < 2 else None)
    return True
"""
    project.write(own_loop, "conftest.py", head=NOTE)
    assert project.run("-q").counts()["passed"] == 3
    assert noted(project) == EACH[:3]


def test_whoever_stops_the_session_at_a_case_stops_it_there(project: SmallProject) -> None:
    project.write(ALL_FINISH_BEFORE_THE_FIRST)
    stop = """
class Stop:
    def pytest_report_teststatus(self, report):
        if report.when == "call" and "[c]" in report.nodeid:
            self.session.shouldstop = "enough"

def pytest_sessionstart(session):
    stop = Stop()
    stop.session = session
    session.config.pluginmanager.register(stop)
"""
    stop = stop.replace(
        "def pytest_report_teststatus", "@pytest.hookimpl(tryfirst=True)\n    def pytest_report_teststatus"
    )
    project.write(stop, "conftest.py", head=NOTE)
    seen = project.run("-q")
    assert seen.counts() == {"passed": 3}
    assert "Interrupted: enough" in seen.text


def test_warnings_of_cases_that_are_reported_together_are_shown(project: SmallProject) -> None:
    warn = 'import warnings\n    warnings.warn(f"odd input {case.input}", stacklevel=1)\n    finished.append'
    project.write(ALL_FINISH_BEFORE_THE_FIRST.replace("finished.append", warn, 1))
    text = project.run("-q", "-W", "default").text
    assert [name for name in NAMES if f"odd input {name}" not in text] == []


def test_an_error_of_collection_interrupts_the_session_as_ever(project: SmallProject) -> None:
    project.write(ALL_FINISH_BEFORE_THE_FIRST)
    project.write("import nothing_of_this_name", "test_other.py")
    assert "Interrupted: 1 error during collection" in project.run("-q").text
    assert project.run("-q", "--continue-on-collection-errors").counts() == {"passed": 8, "errors": 1}


def test_a_plugin_that_runs_a_case_again_is_given_each_one(project: SmallProject) -> None:
    project.write(ALL_FINISH_BEFORE_THE_FIRST)
    seen = project.run_apart("-q", "-p", "pytest_rerunfailures", "--reruns", "1")
    assert seen.counts() == {"passed": 8}


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
    "bakeoff.doors.pytest.reporting.eval_file",
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
