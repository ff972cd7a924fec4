"""Scorers that need more than the output: of other packages, judges, and what has to be open for them."""

import json
from importlib import import_module

import pytest

from .small_project import SmallProject, project

pytest_plugins = ["pytester"]
__all__ = ["project"]

for _module in ("autoevals", "pydantic_evals.evaluators", "bakeoff.scorers.judging"):
    import_module(_module)  # once, instead of once for each session in this process

NEEDY = """
import contextlib
from bakeoff import Needs

class Opens:
    key = "counted"

    @contextlib.asynccontextmanager
    async def open(self):
        note("open")
        yield "here"
        note("close")

def note(word):
    with open("log", "a") as file:
        file.write(word + " ")

class Needy:
    name = "needy"
    needs = Needs(resources=(Opens(),))

    async def __call__(self, given):
        return given.resources["counted"] == "here"
"""


def test_scorers_of_other_packages_score_a_suite_as_they_are(project: SmallProject) -> None:
    project.write("""
from autoevals import ExactMatch, Levenshtein
from pydantic_evals.evaluators import Contains as Holds, Evaluator, IsInstance

@eval_suite(data=rows("a", "b"), scorers=[Holds("a"), IsInstance("str"), ExactMatch(), Levenshtein], threshold=0.9)
async def test_it(case):
    return "<a>"
""")
    seen = project.run()
    assert seen.counts() == {"passed": 1, "failed": 1}
    [record] = seen.outcome("a").records
    assert {score.name: score.value for score in record.scores} == {
        "Contains": 1.0,
        "IsInstance": 1.0,
        "ExactMatch": 1.0,
        "Levenshtein": 1.0,
    }
    assert seen.outcome("b").score == pytest.approx((1 + 1 + 0 + 2 / 3) / 4)


def test_what_scorers_need_is_opened_once_for_a_session_and_closed_at_its_end(project: SmallProject) -> None:
    project.write(
        NEEDY
        + """
test_beside = describe_eval("beside", data=rows(1, 2, 3), task=lambda input: "x", scorers=[Needy()])
test_other = describe_eval("other", data=rows(1, 2), task=lambda input: "x", scorers=[Needy()])

@eval_suite(data=rows(1, 2), scorers=[Needy()])
def test_alone(case, tmp_path):
    return "x"

def test_sync(to_eval):
    to_eval.sync("a", output="x", scorer=Needy())
    to_eval.sync("b", output="x", scorer=Needy())
"""
    )
    assert project.run().counts() == {"passed": 8}
    assert (project.path / "log").read_text() == "open close "


def test_what_does_not_open_is_said_by_every_case_that_needs_it_and_by_no_other(project: SmallProject) -> None:
    project.write(
        NEEDY.replace('note("open")', 'raise OSError("nobody there")')
        + """
test_it = describe_eval("it", data=rows(1, 2), task=lambda input: "x", scorers=[Needy()])
test_other = describe_eval("other", data=rows(3), task=lambda input: "<3>", scorers=[right])
"""
    )
    seen = project.run()
    assert seen.counts() == {"passed": 1, "failed": 2}
    assert seen.outcome("2").problem == "scorer 'needy': nobody there"


@pytest.mark.parametrize("serial", ["", ", tmp_path"])
def test_what_a_judge_lacks_is_said_before_the_task_is_asked(
    project: SmallProject, serial: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    project.write(f"""
from bakeoff.scorers import Judge

@eval_suite(data=rows(1, 2), scorers=[Judge("good?", model="openai:gpt-4o"), right])
def test_it(case{serial}):
    open("asked", "w").close()

test_other = describe_eval("other", data=rows(3), task=lambda input: "<3>", scorers=[right])

async def test_one(to_eval):
    await to_eval("x", output="y", scorer=Judge("good?", model="openai:gpt-4o"))
""")
    seen = project.run()
    assert seen.counts() == {"passed": 1, "failed": 3}
    assert not (project.path / "asked").exists()
    problem = seen.outcome("1").problem
    assert problem is not None
    assert problem.startswith("scorer 'judge': ")
    assert "OPENAI_API_KEY" in problem


def test_what_a_judge_cost_is_told_apart_from_the_tasks_cost(project: SmallProject) -> None:
    verdict = json.dumps({"rationale": "it will do", "choice": "B"})
    reply = {"say": verdict, "usage": {"input": 100, "output": 10, "cost": 0.25}}
    (project.path / "judge.json").write_text(json.dumps({"replies": [reply]}))
    project.write("""
from bakeoff import Usage
from bakeoff.scorers import Judge

@eval_suite(data=rows("a", "b"), scorers=[Judge("good?", model="scripted:judge.json")], threshold=0.7)
def test_it(case):
    return TaskResult(result="x", usage=Usage(input=5, output=1, cost=0.001))
""")
    seen = project.run("--eval-json", "evals.json", "--eval-junit", "--junitxml", "junit.xml")
    assert seen.counts() == {"passed": 2}
    assert "test_it.py::test_it[a] 0.75 " in seen.text
    assert " 6 tokens $0.0010" in seen.text
    assert "Judges used 220 tokens for $0.5000, which is in no suite's cost" in seen.text
    written = json.loads((project.path / "evals.json").read_text())
    assert written["numbers"]["usage"]["cost"] == pytest.approx(0.002)
    assert written["numbers"]["judging"]["cost"] == 0.5
    assert 'name="eval.judging.cost" value="0.250000"' in (project.path / "junit.xml").read_text()


def test_a_judge_is_shown_no_character_that_people_cannot_see(project: SmallProject) -> None:
    project.write("""
import json, re
from bakeoff import register_provider
from bakeoff.scorers import Judge

UNSEEN = "\\u00ad\\u200b\\u202e\\u2060\\ufe0f\\U000e0041"

class Looking:
    def create_message(self, system, message):
        clean = "Paris" in message and not re.search(f"[{UNSEEN}]", system + message)
        return json.dumps({"rationale": "looked", "choice": "A" if clean else "E"})

register_provider("looking", Looking())

@eval_suite(data=rows("a"), scorers=[Judge("It names a city.", model="looking:judge")])
def test_it(case):
    return UNSEEN.join("Paris")
""")
    assert project.run().counts() == {"passed": 1}


@pytest.mark.journey
def test_an_instrumented_agent_is_checked_by_its_spans_its_way_and_a_question_of_ones_own(
    project: SmallProject,
) -> None:
    """In a process of its own: a provider of spans can be set only once."""
    project.write("""
import json
from opentelemetry import trace
from bakeoff import register_provider
from bakeoff.scorers import Faithfulness, Spans, Trajectory, ask_judge

class Fake:
    def create_message(self, system, message):
        claims = {"claims": [{"claim": "x", "supported": "c2" not in message}]}
        return json.dumps(claims if '"claims"' in system else {"answer": "c1" not in message})

register_provider("fake", Fake())
tracer = trace.get_tracer("shop")

async def polite(given):
    return await ask_judge("Is it polite?", bool, texts={"answer": given.output}, model="fake:x")

SCORERS = [Spans(calls_of={"search": 1}), Trajectory(match="exact"), Faithfulness(model="fake:x"), polite]

@eval_suite(data=[{"input": f"c{n}", "expected_tools": ["search"]} for n in range(4)], scorers=SCORERS)
async def test_it(case):
    with tracer.start_as_current_span("search"):
        await asyncio.sleep(0.01)
    for _ in range(case.input == "c3"):
        with tracer.start_as_current_span("search"):
            await asyncio.sleep(0.01)
    calls = [ToolCall(name="search")]
    return TaskResult(result=f"<{case.input}>", tool_calls=calls, metadata={"context": [case.input]})
""")
    seen = project.run_apart()
    assert seen.counts() == {"passed": 1, "failed": 3}
    seen.result.stdout.fnmatch_lines_random(
        ["*polite*0.00*", "*0 of 1 claims are supported; not: x*", "*2 spans 'search', not 1*"]
    )
