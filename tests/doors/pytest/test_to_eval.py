"""`to_eval`: one eval in an ordinary test."""

import pytest

from .small_project import SmallProject, project

pytest_plugins = ["pytester"]
__all__ = ["project"]


def test_a_score_that_is_too_low_fails_the_test_at_its_own_line(project: SmallProject) -> None:
    project.write("""
async def ask(input, mood):
    return f"{mood} {input}"

async def test_it(to_eval):
    first = await to_eval("hi", task=ask, mood="kind", expected="kind hi", scorers=[right, Exact()])
    assert first.score == 1.0
    await to_eval("hi", task=ask, mood="rude", expected="kind hi", scorer=right)
    raise AssertionError("never reached")
""")
    seen = project.run()
    assert seen.counts() == {"failed": 1}
    seen.result.stdout.fnmatch_lines(['>*await to_eval("hi", task=ask, mood="rude"*', "E *score 0.00, threshold 1.00"])
    assert "to_eval.py" not in seen.text
    assert [(each.case, each.score, each.passed) for each in seen.outcomes] == [
        ("test_it", 1.0, True),
        ("test_it", 0.0, False),
    ]
    assert [each.records[0].case for each in seen.outcomes] == ["test_it.py::test_it", "test_it.py::test_it #2"]


def test_a_test_that_is_not_async_asks_in_line(project: SmallProject) -> None:
    project.write("""
def test_it(to_eval):
    assert to_eval.sync("hi", output="hi", expected="hi", scorer=right, name="greeting").case == "greeting"
    with pytest.raises(AssertionError, match="score 0.00, threshold 1.00"):
        to_eval.sync("hi", output="ho", expected="hi", scorer=right)
    assert to_eval.sync("hi", output="ho", expected="hi", scorer=right, threshold=None).score == 0.0
""")
    assert project.run().counts() == {"passed": 1}


def test_what_a_task_raises_is_raised_in_the_test(project: SmallProject) -> None:
    project.write("""
def broken(input):
    raise LookupError("nothing there")

async def test_it(to_eval):
    with pytest.raises(LookupError, match="nothing there"):
        await to_eval("hi", task=broken, scorer=right)
    with pytest.raises(AssertionError, match="not finished after 0.1 s"):
        await to_eval("hi", task=lambda input: threading.Event().wait(20), scorer=right, timeout=0.1)
    with pytest.raises(AssertionError, match="scorer 'broken': LookupError"):
        await to_eval("hi", output="x", scorer=broken)
""")
    assert project.run().counts() == {"passed": 1}


def test_wrong_use_is_said(project: SmallProject) -> None:
    project.write("""
from bakeoff import UsageError

@pytest.mark.parametrize("wrong, said", [
    ({"scorer": right}, "give either a `task` or an `output`"),
    ({"scorer": right, "task": str, "output": "x"}, "give either a `task` or an `output`"),
    ({"output": "x"}, "`scorers` is empty"),
    ({"output": "x", "scorer": right, "gate": "best"}, "gate 'best' is not one of"),
])
async def test_it(to_eval, wrong, said):
    with pytest.raises(UsageError, match=said):
        await to_eval("hi", **wrong)
""")
    assert project.run().counts() == {"passed": 4}


def test_rounds_and_gates_are_those_of_suites(project: SmallProject) -> None:
    project.write("""
async def test_it(to_eval):
    outcome = await to_eval("hi", task=str.upper, scorer=lambda given: given.output == "HI", rounds=2, gate="pass^k")
    assert len(outcome.records) == 2
""")
    assert project.run().counts() == {"passed": 1}


def test_sets_of_parameters_of_one_test_are_one_suite_for_a_baseline(
    project: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("""
@pytest.mark.parametrize("number", range(20))
async def test_it(to_eval, number):
    await to_eval(number, output=os.environ["SAID"], scorer=lambda given: given.output == "right", threshold=0)
""")
    monkeypatch.setenv("SAID", "right")
    before = project.run("--eval-json=before.json")
    assert before.counts() == {"passed": 20}
    assert {each.suite for each in before.outcomes} == {"test_it"}
    assert len({each.records[0].case for each in before.outcomes}) == 20
    monkeypatch.setenv("SAID", "wrong")
    worse = project.run("--eval-baseline=before.json")
    assert "--eval-baseline FAILED" in worse.text
    assert "regressed: all 20 cases went from pass to fail" in worse.text
