"""Cases of a suite that must not disturb each other."""

import junitparser
import pytest

from .small_project import DEAF, SmallProject, project

pytestmark = pytest.mark.full

pytest_plugins = ["pytester"]
__all__ = ["project"]


def test_time_lost_to_a_case_that_blocks_is_given_back_and_the_case_is_named(project: SmallProject) -> None:
    project.write("""
from bakeoff.scorers import Latency

@eval_suite(data=rows("blocks", *range(9)), scorers=[right, Latency(max_ms=1200)], timeout=1.5)
async def test_it(case):
    await asyncio.sleep(0.1)
    if case.input == "blocks":
        time.sleep(4)
    await asyncio.sleep(0.1)
    return f"<{case.input}>"
""")
    seen = project.run("--junitxml", "junit.xml")
    assert seen.counts() == {"passed": 9, "failed": 1}
    cases = [case for suite in junitparser.JUnitXml.fromfile("junit.xml") for case in suite]
    assert sorted(case.name for case in cases if case.time >= 4) == ["test_it[blocks]"]
    assert "not finished after 1.5 s" in seen.text
    assert "test_it[blocks]: it blocked the event loop for " in seen.text
    assert " s at test_it.py:" in seen.text


def test_time_lost_to_several_cases_is_given_back_to_all_and_a_scorer_that_blocks_is_named(
    project: SmallProject,
) -> None:
    project.write("""
@eval_suite(data=rows(*range(10)), scorers=[right], timeout=2)
async def test_many(case):
    for _ in range(5):
        if case.input:
            time.sleep(0.1)
        await asyncio.sleep(0.02)
    return f"<{case.input}>"

async def blocks(given):
    if given.expected == "<0>":
        time.sleep(1.5)
    return 1.0

@eval_suite(data=rows(*range(4)), scorers=[blocks])
async def test_scorer(case):
    await asyncio.sleep(0.1)
    return f"<{case.input}>"
""")
    seen = project.run()
    assert seen.counts() == {"passed": 14}, seen.text
    assert " s by one of: test_it.py::test_many[" in seen.text
    assert "it blocked the event loop" not in seen.text.partition("test_scorer[0]: scorer")[0]
    assert "test_scorer[0]: scorer 'blocks': it blocked the event loop for 1." in seen.text


def test_context_variables_of_one_case_are_unknown_to_the_others(project: SmallProject) -> None:
    project.write("""
import contextvars
NAME = contextvars.ContextVar("NAME", default="nobody")
TASKS = set()

@eval_suite(data=rows(*range(30)), scorers=[right], concurrency=3)
async def test_it(case):
    assert NAME.get() == "nobody"
    assert asyncio.current_task() not in TASKS
    TASKS.add(asyncio.current_task())
    NAME.set(str(case.input))
    await asyncio.sleep(0)
    assert NAME.get() == str(case.input)
    return f"<{case.input}>"
""")
    assert project.run().counts() == {"passed": 30}


def test_a_case_that_ignores_its_cancellation_is_given_up(project: SmallProject) -> None:
    project.write(DEAF.replace("FIXTURES", "case"))
    seen = project.run()
    assert seen.counts() == {"passed": 1, "failed": 1}
    assert "not finished after 0.3 s" in seen.text
    assert "test_deaf[deaf]: it ignored its cancellation, and goes on in the background" in seen.text


ALL_DEAF = """
async def deaf(*given):
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass

only = dict(data=rows("a"), timeout=0.2)

@eval_suite(**only, scorers=[right])
def test_task(case):
    return deaf()

@eval_suite(**only, scorers=[deaf])
def test_scorer(case):
    return "<a>"

@eval_suite(**only, scorers=[right], before_case=deaf)
def test_before(case):
    return "<a>"

@eval_suite(**only, scorers=[right], after_case=deaf)
def test_after(case):
    return "<a>"

async def test_judge(run_eval):
    result = await run_eval("a", task=lambda input: "<a>", timeout=0.2)
    await result.judge(deaf)

@eval_suite(data=rows(*range(5)), scorers=[right])
async def test_stops_the_loop(case):
    if case.input == 2:
        asyncio.get_running_loop().stop()
    await asyncio.sleep(0.01)
    return f"<{case.input}>"

NAME = __import__("contextvars").ContextVar("NAME")

async def sets(case):
    NAME.set(case.input)

@eval_suite(data=rows("a", "b"), scorers=[right], before_case=sets)
def test_next(case):
    return f"<{NAME.get()}>"
"""


def test_nothing_that_ignores_its_cancellation_or_stops_the_loop_holds_up_the_session(project: SmallProject) -> None:
    project.write(ALL_DEAF)
    seen = project.run_apart("-rA")
    assert seen.counts() == {"passed": 7, "failed": 5}
    assert "could not be scored: before_case was not finished after 0.2 s" in seen.text
    assert "could not be scored: after_case was not finished after 0.2 s" in seen.text
    assert "test_task[a]: it ignored its cancellation" in seen.text
    assert "test_scorer[a]: scorer 'deaf': it ignored its cancellation" in seen.text
    assert "test_judge: scorer 'deaf': it ignored its cancellation" in seen.text


INTERLEAVED = """
@pytest.fixture(scope="module")
def server():
    return object()

@eval_suite(data=rows(*range(10)), scorers=[right])
def test_it(case, server):
    with open("ran", "a") as file:
        file.write(f"{__name__}-{case.input}\\n")
    return f"<{case.input}>"
"""


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2")])
def test_every_case_is_run_once_whatever_the_order(project: SmallProject, workers: tuple[str, ...]) -> None:
    project.write(INTERLEAVED, "test_one.py")
    project.write(INTERLEAVED, "test_two.py")
    project.write(
        "def pytest_collection_modifyitems(items):\n    items.sort(key=lambda item: (item.name, item.nodeid))\n",
        "conftest.py",
    )
    assert project.run_apart(*workers).counts() == {"passed": 20}
    ran = (project.path / "ran").read_text().split()
    assert len(ran) == len(set(ran)) == 20


def test_cases_that_failed_before_are_run_first_and_once(project: SmallProject) -> None:
    code = INTERLEAVED.replace("    return f", "    assert os.path.exists('mended') or case.input % 3\n    return f")
    project.write(code, "test_one.py")
    project.write(code, "test_two.py")
    assert project.run(cached=True).counts() == {"passed": 12, "failed": 8}
    project.path.joinpath("mended").touch()
    project.path.joinpath("ran").unlink()
    assert project.run("--ff", cached=True).counts() == {"passed": 20}
    ran = (project.path / "ran").read_text().split()
    assert len(ran) == len(set(ran)) == 20


def test_what_a_judge_imports_is_imported_before_the_first_case(
    project: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "nobody-is-asked")
    project.write("""
import sys
from bakeoff.scorers import Judge

@eval_suite(data=rows("a"), scorers=[Judge("It is right.", model="openai:gpt-4o-mini")], threshold=None)
async def test_it(case):
    wanted = ("pydantic_ai", "genai_prices.data", "openai", "bakeoff.scorers.judging")
    assert [name for name in wanted if name not in sys.modules] == []
    pytest.skip("nobody is asked")
""")
    seen = project.run_apart("-rs")
    assert seen.counts() == {"skipped": 1}, seen.text
