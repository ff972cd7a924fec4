"""Evals beside everything else that a project has: other plugins, other kinds of tests, other event loops."""

import json
import subprocess
import sys

import pytest

from bakeoff.storage.run_folder import find_run, run_folders

from .small_project import PLUGIN, SmallProject, project

pytestmark = pytest.mark.full

pytest_plugins = ["pytester"]
__all__ = ["project"]

EVALS = """
@eval_suite(data=rows("a", "b", "c"), scorers=[right])
async def test_async(case):
    await asyncio.sleep(0)
    return f"<{case.input}>"

@eval_suite(data=rows("a", "b"), scorers=[right])
def test_sync(case):
    return f"<{case.input}>"

async def test_one(to_eval):
    await to_eval("a", expected="<a>", task=lambda input: f"<{input}>", scorer=right)

def test_plain():
    pass
"""
MIXED = """
@eval_suite(data=rows(*range(12)), scorers=[right], concurrency=4)
async def test_it(case):
    with open(f"ran-{case.input}-{os.environ['PYTEST_XDIST_WORKER']}", "x"):
        pass
    await asyncio.sleep(0.01)
    return "<0>" if case.input == 7 else f"<{case.input}>"

def test_sync_one(to_eval):
    to_eval.sync("a", output="a", expected="a", scorer=right)

def test_plain():
    pass
"""


def test_xdist_runs_each_case_once_and_the_controller_has_all(project: SmallProject) -> None:
    project.write(MIXED)
    seen = project.run_apart("-p", "xdist", "-n", "2", "-v", record=("--eval-results", "kept"))
    assert seen.counts() == {"passed": 13, "failed": 1}
    ran = sorted(path.name.split("-")[1:] for path in project.path.glob("ran-*"))
    assert sorted(int(case) for case, _ in ran) == list(range(12))
    assert {worker for _, worker in ran} == {"gw0", "gw1"}
    seen.result.stdout.fnmatch_lines(["score 0.00, threshold 1.00", "  input     7", "  output    <0>"])
    (folder,) = run_folders(project.path / "kept")
    plan = folder.read_plan()
    assert len(plan.cases) == 13
    assert len(list(folder.latest_records(plan))) == 13
    assert list(project.path.glob("results/*")) == []


@pytest.mark.parametrize("dist", ["load", "worksteal", "loadfile", "no"])
def test_xdist_stops_at_the_first_failure_and_leaves_nothing_behind(project: SmallProject, dist: str) -> None:
    project.write("""
@eval_suite(data=rows(*range(30)), scorers=[right], concurrency=4)
async def test_it(case):
    await asyncio.sleep(1 if case.input > 10 else 0)
    return "wrong" if case.input == 1 else f"<{case.input}>"
""")
    many = () if dist == "no" else ("-n", "2")
    seen = project.run_apart("-p", "xdist", *many, "--dist", dist, "-x")
    assert seen.counts()["failed"] == 1
    assert "never awaited" not in seen.text
    assert "INTERNALERROR" not in seen.text


@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_pytest_asyncio_in_either_mode(project: SmallProject, mode: str) -> None:
    project.path.joinpath("tox.ini").write_text(
        f"[pytest]\nasyncio_mode = {mode}\nasyncio_default_fixture_loop_scope = function\n"
    )
    project.write(EVALS)
    project.write(
        """
pytestmark = pytest.mark.asyncio

@pytest.fixture(scope="module")
def shared(): return 1

@eval_suite(data=rows("a", "b"), scorers=[right])
async def test_marked(case, shared):
    return f"<{case.input}>"

async def test_theirs(to_eval):
    loop = asyncio.get_running_loop()
    await to_eval("a", output="a", expected="a", scorer=right)
    assert asyncio.get_running_loop() is loop

@pytest.mark.asyncio(loop_scope="module")
async def test_theirs_too():
    await asyncio.sleep(0)
""",
        "test_marked.py",
    )
    seen = project.run_apart("-p", "pytest_asyncio.plugin")
    assert seen.counts() == {"passed": 11}


def test_anyio_runs_its_own_tests_and_leaves_evals_alone(project: SmallProject) -> None:
    project.write(EVALS)
    project.write(
        """
pytestmark = pytest.mark.anyio

@pytest.fixture
def anyio_backend(): return "asyncio"

@eval_suite(data=rows("a", "b"), scorers=[right])
async def test_marked(case):
    return f"<{case.input}>"

async def test_theirs(to_eval):
    await to_eval("a", output="a", expected="a", scorer=right)
""",
        "test_marked.py",
    )
    assert project.run_apart("-p", "anyio").counts() == {"passed": 10}


def test_an_event_loop_of_the_conftest_stays_the_current_one(project: SmallProject) -> None:
    project.path.joinpath("conftest.py").write_text("""
import asyncio, pytest

@pytest.fixture(scope="session", autouse=True)
def event_loop():
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield loop
    asyncio.set_event_loop(None)
    loop.close()
""")
    project.write(
        EVALS
        + """
def test_their_loop(event_loop):
    assert asyncio.get_event_loop_policy().get_event_loop() is event_loop
    assert event_loop.run_until_complete(asyncio.sleep(0, "done")) == "done"
"""
    )
    assert project.run_apart().counts() == {"passed": 8}


def test_unittest_classes_and_doctests_beside(project: SmallProject) -> None:
    project.write(
        EVALS
        + """
import unittest

class Old(unittest.TestCase):
    def setUp(self): self.value = 1
    def test_old(self): self.assertEqual(self.value, 1)

class OldAsync(unittest.IsolatedAsyncioTestCase):
    async def test_old(self): await asyncio.sleep(0)
"""
    )
    assert project.run_apart().counts() == {"passed": 9}


def test_lf_runs_those_cases_again_that_failed(project: SmallProject) -> None:
    project.write("""
@eval_suite(data=rows("a", "b", "c", "d"), scorers=[right])
async def test_it(case):
    with open("ran.txt", "a") as file:
        file.write(case.input)
    return "wrong" if case.input in "bd" else f"<{case.input}>"
""")
    assert project.run(cached=True).counts() == {"passed": 2, "failed": 2}
    (project.path / "ran.txt").unlink()
    assert project.run("--lf", cached=True).counts() == {"failed": 2}
    assert (project.path / "ran.txt").read_text() == "bd"


def test_collect_only_runs_nothing_and_keeps_nothing(project: SmallProject) -> None:
    project.write("""
@eval_suite(data=rows("a", "b"), scorers=[right])
async def test_it(case):
    raise AssertionError("ran")
""")
    seen = project.run("--collect-only", "-q")
    assert seen.text.splitlines()[:2] == ["test_it.py::test_it[a]", "test_it.py::test_it[b]"]
    assert not (project.path / "results").exists()


RERUNS = ("-p", "pytest_rerunfailures", "--reruns", "2")


def test_the_first_result_counts_of_a_test_that_is_run_again(project: SmallProject) -> None:
    project.write("""
tries = []

@eval_suite(data=rows("a", "b"), scorers=[right])
def test_flaky(case):
    tries.append(case.input)
    return f"<{case.input}>" if tries.count(case.input) == 3 else "wrong"

@pytest.fixture
def own(): return 1

@eval_suite(data=rows("c"), scorers=[right])
def test_flaky_with_fixture(case, own):
    tries.append(case.input)
    return f"<{case.input}>" if tries.count(case.input) == 2 else "wrong"
""")
    seen = project.run(*RERUNS, "--eval-min-pass-rate=0.1", "--eval-json=out.json")
    assert seen.counts() == {"passed": 3, "rerun": 5}
    assert [(each.case, each.passed) for each in seen.outcomes] == [("a", False), ("b", False), ("c", False)]
    assert "--eval-min-pass-rate FAILED: 0 of 3 passed" in seen.text
    assert "test_it.py::test_flaky[a] was run again: its first result counts for scores and gates" in seen.text
    assert seen.result.ret == 1
    assert json.loads((project.path / "out.json").read_text())["numbers"]["failed"] == 3
    [run] = run_folders(project.path / "results")
    assert [record.verdict for record in run.latest_records(run.read_plan())] == ["fail"] * 3
    apart = project.run_apart("-p", "xdist", "-n", "1", *RERUNS, "--eval-min-pass-rate=0.1")
    assert apart.result.ret == 1
    assert "--eval-min-pass-rate FAILED: 0 of 3 passed" in apart.text


def test_a_try_that_could_not_be_judged_is_no_result_and_a_miss_is_forgiven_once(project: SmallProject) -> None:
    project.write("""
tries = []

def picky(given):
    tries.append(given.input)
    if tries.count("a") == 1:
        raise OSError("the grader is away")
    return given.input == "a"

@eval_suite(data=rows("a", "b"), scorers=[picky], concurrency=1)
def test_it(case):
    return "x"
""")
    seen = project.run(*RERUNS, "--eval-min-pass-rate=0.5")
    assert [(each.case, each.passed) for each in seen.outcomes] == [("a", True), ("b", False)]
    assert (seen.result.ret, seen.counts()) == (0, {"passed": 1, "failed": 1, "rerun": 3})


def test_record_property_and_junit_of_pytest_itself_still_work(project: SmallProject) -> None:
    project.write(EVALS)
    assert project.run("--junitxml", "out.xml", "--durations", "3", "-vv", "--setup-show").counts() == {"passed": 7}
    assert 'name="test_async[b]"' in (project.path / "out.xml").read_text()


def test_suites_under_names_that_are_no_tests_are_left_alone_with_a_warning(project: SmallProject) -> None:
    project.write("helper = describe_eval('s', data=rows('a'), task=str, scorers=[right])\ndef test_plain(): pass\n")
    seen = project.run("-W", "default")
    assert seen.counts() == {"passed": 1}
    assert "'s' is not collected, so it tests nothing" in seen.text


def test_a_project_without_evals_loads_nothing_of_the_core(project: SmallProject) -> None:
    project.write("def test_plain(): pass\n", head="")
    project.path.joinpath("conftest.py").write_text("""
import sys

def pytest_unconfigure():
    loaded = [name for name in sys.modules if name.startswith("bakeoff") or name in ("pydantic", "rich", "asyncio")]
    print(sorted(loaded))
""")
    command = [sys.executable, "-m", "pytest", *PLUGIN, "-q", "-s"]
    done = subprocess.run(command, cwd=project.path, capture_output=True, text=True, check=True)
    (loaded,) = [line for line in done.stdout.splitlines() if line.startswith("['bakeoff")]
    assert eval(loaded) == [
        "bakeoff",
        "bakeoff._kernel",
        "bakeoff._kernel.choices",
        "bakeoff._kernel.imports",
        "bakeoff._kernel.text",
        "bakeoff._version",
        "bakeoff.doors",
        "bakeoff.doors.pytest",
        "bakeoff.doors.pytest.gather",
        "bakeoff.doors.pytest.hooks",
        "bakeoff.doors.pytest.options",
        "bakeoff.doors.pytest.plugin",
        "bakeoff.doors.pytest.report_texts",
        "bakeoff.errors",
    ]
    assert not (project.path / "results").exists()


def test_a_conftest_may_ask_of_every_item_what_functions_have(project: SmallProject) -> None:
    project.write(
        EVALS
        + """
class TestThem:
    @eval_suite(data=rows("a"), scorers=[right])
    def test_inside(self, case):
        return "<a>"

@pytest.mark.parametrize("model", ["m"])
@eval_suite(data=rows("a"), scorers=[right])
def test_fixtures(case, model, tmp_path):
    return "<a>"
"""
    )
    asking = """
def pytest_collection_modifyitems(items):
    for item in items:
        assert "missing" not in item.fixturenames
        assert item.module.__name__ == "test_it"
        assert (item.cls is None) == ("TestThem" not in item.nodeid)
        assert item.originalname == item.name.partition("[")[0]
        holder = item.cls or item.module
        assert item.function is not None and hasattr(holder, item.originalname)
    assert "tmp_path" in items[-1].fixturenames
"""
    project.write(asking, "conftest.py", head="")
    assert project.run().counts() == {"passed": 9}


def test_a_number_that_json_cannot_be_read_back_with_travels_under_xdist(project: SmallProject) -> None:
    project.write("""
@eval_suite(data=rows("a"), scorers=[right])
def test_it(case):
    return TaskResult(result="<a>", tool_calls=[ToolCall(name="count", arguments={"to": 10**5000})])
""")
    for workers in ((), ("-p", "xdist", "-n", "2")):
        seen = project.run_apart(*workers, "-v", "--eval-json=e.json", "--eval-html=e.html", record=())
        assert seen.counts() == {"passed": 1}
        assert "INTERNALERROR" not in seen.text + seen.result.stderr.str()
        assert "count(to=" in seen.text
        kept = find_run(project.path / "results", "latest")
        [record] = kept.latest_records(kept.read_plan())
        assert record.value == 1.0
