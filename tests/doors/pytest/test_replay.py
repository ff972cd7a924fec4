"""A suite that was recorded once: the same scores without provider, network or key."""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from ...models.loopback import KEY, Act, Loopback, Received
from .small_project import Seen, SmallProject, project

pytestmark = pytest.mark.full

pytest_plugins = ["pytester"]
__all__ = ["project"]

for _module in ("anthropic", "openai", "bakeoff.scorers.judging", "bakeoff.replay.process"):
    import_module(_module)  # once, instead of once for each session in this process

SUITE = """
import anthropic, openai
from bakeoff import replayable
from bakeoff.scorers import Judge

URL, KEY = os.environ["LOOPBACK_URL"], os.environ["LOOPBACK_API_KEY"]

@replayable
def population(city: str) -> int:
    with open("called", "a") as file:
        file.write(city)
    return len(city) * 1000

@eval_suite(data=rows("Paris", "Rome"), scorers=[Contains(), Judge("right?", model="openai-compatible:judge")],
            threshold=0.5, rounds=2)
async def test_async(case):
    async with openai.AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0) as client:
        asked = [{"role": "user", "content": f"Where is {case.input}? {population(case.input)}"}]
        return await client.chat.completions.create(model="m", messages=asked)

@eval_suite(data=rows("Oslo", "Lima"), scorers=[Contains()], threshold=0.4)
def test_sync(case):
    with anthropic.Anthropic(base_url=URL, api_key=KEY, max_retries=0) as client:
        return client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": case.input}])
"""


def answer(request: Received) -> Act:
    """Another one each time, so that only a recording can give the same twice."""
    if request.body["model"] == "judge":
        return Act(say=f'{{"rationale": "said {KEY}", "choice": "{"ABC"[request.number % 3]}"}}')
    cities = [city for city in ("Paris", "Rome", "Oslo", "Lima") if city in str(request.body["messages"])]
    return Act(say=f"<{cities[0]}> {request.number}" if request.number % 2 else f"<{cities[0]}>, {request.number}")


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    loopback = Loopback()
    loopback.start()
    loopback.plan = answer
    for name, value in {
        "LOOPBACK_URL": loopback.url,
        "LOOPBACK_API_KEY": KEY,
        "OPENAI_COMPATIBLE_BASE_URL": f"{loopback.url}/v1",
        "OPENAI_COMPATIBLE_API_KEY": KEY,
    }.items():
        monkeypatch.setenv(name, value)
    yield loopback
    loopback.stop()


def results(seen: Seen) -> list[tuple[str, float | None, object]]:
    return [
        (outcome.nodeid, outcome.score, [record.transcript and record.transcript.output for record in outcome.records])
        for outcome in seen.outcomes
    ]


def recordings(project: SmallProject) -> list[Path]:
    return [path for path in (project.path / ".bakeoff" / "recordings").rglob("*") if path.is_file()]


def test_a_suite_that_was_recorded_once_scores_the_same_in_strict_mode_when_the_provider_is_gone(
    project: SmallProject, provider: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write(SUITE)
    recorded = project.run("--eval-replay", "record")
    assert recorded.counts() == {"passed": 4}
    assert len(set(map(str, results(recorded)))) == 4
    assert provider.bodies
    asked = len(provider.bodies)
    assert (project.path / "called").read_text().count("Paris") == 2  # once for each round
    kept = recordings(project)
    assert kept
    assert not [path for path in kept if KEY.encode() in path.read_bytes()]

    provider.stop()
    monkeypatch.setenv("LOOPBACK_API_KEY", "sk-another-key-of-a-colleague")
    monkeypatch.delenv("OPENAI_COMPATIBLE_API_KEY")
    again = project.run("--eval-replay", "strict")
    assert again.counts() == {"passed": 4}
    assert results(again) == results(recorded)
    assert len(provider.bodies) == asked
    assert (project.path / "called").read_text().count("Paris") == 2


def test_a_miss_in_strict_mode_names_its_key_and_fails_that_case_alone(
    project: SmallProject, provider: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write(SUITE)
    project.run("--eval-replay", "auto")
    provider.stop()
    project.write(SUITE.replace('rows("Oslo", "Lima")', 'rows("Oslo", "Rome")'))
    monkeypatch.setenv("BAKEOFF_REPLAY", "strict")
    seen = project.run()
    assert seen.counts() == {"passed": 3, "failed": 1}
    assert re.search(r"nothing is recorded under \w{12,}", seen.text)
    problem = seen.outcomes[-1].problem
    assert problem is not None
    assert "the nearest recording" in problem
    assert seen.outcomes[-1].passed is None  # it says nothing of the application


@pytest.mark.parametrize(
    ("fixture", "option"), [("", ", concurrency=1"), (", tmp_path", "")], ids=["on the loop", "with its own fixture"]
)
def test_a_miss_in_the_first_case_leaves_the_others_their_scores(
    project: SmallProject, provider: Loopback, fixture: str, option: str
) -> None:
    suite = SUITE.replace("test_sync(case)", f"test_sync(case{fixture})").replace("=0.4)", f"=0.4{option})")
    project.write(suite)
    project.run("--eval-replay", "record")
    provider.stop()
    project.write(suite.replace('rows("Oslo", "Lima")', 'rows("Rome", "Oslo", "Lima")'))
    seen = project.run("--eval-replay", "strict")
    assert seen.counts() == {"passed": 4, "failed": 1}
    missed, *others = seen.outcomes[2:]
    assert (missed.case, missed.score, missed.passed) == ("Rome", None, None)
    assert "nothing is recorded under" in str(missed.problem)
    assert [(each.case, each.passed, each.problem) for each in others] == [("Oslo", True, None), ("Lima", True, None)]


IN_A_FIXTURE = """
import anthropic

@pytest.fixture(scope="session")
def asked():
    with anthropic.Anthropic(base_url=os.environ["LOOPBACK_URL"], api_key="x", max_retries=0) as client:
        question = [{"role": "user", "content": "Paris"}]
        return client.messages.create(model="m", max_tokens=9, messages=question).content[0].text

def test_a_first(asked):
    assert "Paris" in asked

@eval_suite(data=rows("Paris"), scorers=[Contains()])
def test_eval(case, asked):
    return asked
"""


def test_what_a_fixture_asks_before_the_first_eval_is_recorded_and_in_strict_mode_refused(
    project: SmallProject, provider: Loopback
) -> None:
    project.write(IN_A_FIXTURE)
    refused = project.run("--eval-replay", "strict")
    assert refused.counts() == {"errors": 2}
    assert "nothing is recorded under" in refused.text
    assert provider.bodies == []
    assert project.run("--eval-replay", "record").counts() == {"passed": 2}
    assert len(provider.bodies) == 1
    provider.stop()
    assert project.run("--eval-replay", "strict").counts() == {"passed": 2}


def test_strict_under_xdist_gives_the_same(project: SmallProject, provider: Loopback) -> None:
    project.write(SUITE)
    recorded = project.run("--eval-replay", "record")
    provider.stop()
    shown = project.run_apart("-p", "xdist", "-n", "2", "--eval-replay", "strict").text
    assert "4 passed" in shown
    assert [f"{each.nodeid} {each.score:.2f} " in shown for each in recorded.outcomes] == [True] * 4
