"""A suite that was recorded once: the same scores without provider, network or key."""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from ...models.loopback import KEY, Act, Loopback, Received
from .small_project import Seen, SmallProject, project

pytest_plugins = ["pytester"]
__all__ = ["project"]

for _module in ("anthropic", "openai", "bakeoff.scorers.judging", "bakeoff.models.httpx_replay"):
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
    assert "against the nearest recording" in problem
    assert seen.outcomes[-1].passed is None  # it says nothing of the application


@pytest.mark.slow
def test_strict_under_xdist_gives_the_same(project: SmallProject, provider: Loopback) -> None:
    project.write(SUITE)
    recorded = project.run("--eval-replay", "record")
    provider.stop()
    shown = project.run_apart("-p", "xdist", "-n", "2", "--eval-replay", "strict").text
    assert "4 passed" in shown
    assert [f"{each.nodeid} {each.score:.2f} " in shown for each in recorded.outcomes] == [True] * 4
