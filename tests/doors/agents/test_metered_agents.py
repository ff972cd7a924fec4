"""Agents behind the meter: counted, charged, replayed, and stopped at a budget."""

import sys
from pathlib import Path

import pytest

from bakeoff.subjects.agent_run import agent_run_in
from bakeoff.verdict import Verdict

from ...models.loopback import Act, Loopback
from .exercise_runs import CANARY, carried_out, outcome, planned
from .small_tracks import RIGHT_DOUBLE, agent_file

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("in_a_folder_of_its_own")]


ASKING = f"""\
{sys.executable} - <<'END'
import json, os, urllib.request
body = json.dumps({{"model": "tiny", "messages": [{{"role": "user", "content": "solve it"}}]}}).encode()
headers = {{"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"}}
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
    open("double.py", "w").write(json.load(answer)["choices"][0]["message"]["content"])
END
env; cat "$HOME"/.config/*
"""

METERED = {
    "defaultProvider": "openai",
    "meter": {
        "openai": {
            "env": {"OPENAI_BASE_URL": "{meterUrl}", "OPENAI_API_KEY": "{meterToken}"},
            "files": {".config/settings": "url={meterUrl}\n"},
        }
    },
    "require": ["OPENAI_API_KEY"],
    "env": {"OPENAI_API_KEY": "${OPENAI_API_KEY}", "SECOND_NAME": "${OPENAI_API_KEY}"},
}


@pytest.mark.parametrize("sandbox", ["process", "bwrap"])
@pytest.mark.parametrize(("answer", "verdict"), [(RIGHT_DOUBLE, Verdict.PASS), ("def double(n): 1", Verdict.FAIL)])
async def test_a_metered_agent_is_counted_and_never_sees_the_key(
    track: Path,
    tmp_path: Path,
    provider: Loopback,
    monkeypatch: pytest.MonkeyPatch,
    sandbox: str,
    answer: str,
    verdict: Verdict,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
    provider.then(Act(say=answer))
    file = agent_file(tmp_path, "asking", ASKING, **METERED)
    plan = planned(track, "asking", agent_files=[file], wanted=["double"])
    [record] = (await carried_out(plan, tmp_path, sandbox=sandbox)).values()
    assert record.verdict is verdict, (record.failure, record.scores, record.transcript)
    assert (record.spent.requests, record.spent.input, record.spent.output) == (1, 10, 5)
    assert record.transcript is not None
    assert record.transcript.metadata["metered"] is True
    [asked] = provider.received
    assert asked.headers["authorization"] == f"Bearer {CANARY}"
    assert "SECOND_NAME" not in str(record.transcript)
    written = [path.read_bytes() for path in (tmp_path / "results").rglob("*") if path.is_file()]
    assert not any(CANARY.encode() in content for content in written)


async def test_an_agent_that_is_killed_in_mid_stream_is_charged_for_what_came(
    track: Path, tmp_path: Path, provider: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
    provider.then(Act(say="word " * 3000, pause=0.02))
    streaming = ASKING.replace('"model": "tiny"', '"model": "tiny", "stream": True')
    file = agent_file(tmp_path, "asking", streaming, **METERED)
    plan = planned(track, "asking", agent_files=[file], wanted=["double"], timeout=4.0)
    [record] = (await carried_out(plan, tmp_path)).values()
    assert record.verdict is Verdict.TIMEOUT, record
    assert record.transcript is not None
    meter = record.transcript.metadata["meter"]
    assert isinstance(meter, dict)
    assert (meter["cut"], meter["estimated"]) == (1, 1)
    assert 0 < record.spent.output < 3000
    assert record.spent.requests == 1


@pytest.mark.parametrize(("then", "verdict"), [("true", Verdict.PASS), ("sleep 600", Verdict.TIMEOUT)])
async def test_a_providers_queue_is_not_an_agents_time_and_a_timeout_remains_one(
    track: Path,
    tmp_path: Path,
    provider: Loopback,
    monkeypatch: pytest.MonkeyPatch,
    then: str,
    verdict: Verdict,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
    provider.then(Act(status=429, headers={"retry-after": "7"}, body={}), Act(say=RIGHT_DOUBLE))
    file = agent_file(tmp_path, "asking", f"{ASKING}\n{then}", **METERED)
    plan = planned(track, "asking", agent_files=[file], wanted=["double"], timeout=6.0)
    [record] = (await carried_out(plan, tmp_path)).values()
    assert record.verdict is verdict, (record.failure, record.scores, record.transcript)
    assert outcome(record)["testSuccess"] is True
    assert record.attempt is not None
    assert record.attempt.waited >= 7
    assert record.transcript is not None
    assert agent_run_in(record.transcript).seconds + record.attempt.waited <= record.attempt.seconds + 0.01


async def test_a_run_out_of_budget_ends_the_agent_and_says_so(
    track: Path, tmp_path: Path, provider: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
    file = agent_file(tmp_path, "asking", f"{ASKING}\nsleep 600", **METERED)
    plan = planned(track, "asking", agent_files=[file], wanted=["double"], timeout=60.0)
    [record] = (await carried_out(plan, tmp_path, max_total_tokens=5)).values()
    assert record.verdict is Verdict.BUDGET
    assert record.spent.tokens == 15
    assert record.transcript is not None, "what was said until then is paid for, and kept"
    assert record.transcript.usage.tokens == 15
    assert len(record.transcript.steps) == 1
    assert record.scores == ()
    assert not record.attempted, "it is tried again on resume"


async def test_what_an_agents_model_said_is_replayed_without_a_provider(
    track: Path, tmp_path: Path, provider: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
    provider.then(Act(say=RIGHT_DOUBLE))
    plan = planned(track, "asking", agent_files=[agent_file(tmp_path, "asking", ASKING, **METERED)], wanted=["double"])
    kept = {"recordings": tmp_path / "recordings"}
    [first] = (await carried_out(plan, tmp_path, replay="record", **kept)).values()
    monkeypatch.delenv("OPENAI_API_KEY")
    [again] = (await carried_out(plan, tmp_path, replay="strict", **kept)).values()
    assert (first.verdict, again.verdict) == (Verdict.PASS, Verdict.PASS), again
    assert again.spent.tokens == first.spent.tokens == 15
    assert len(provider.received) == 1


@pytest.mark.parametrize(
    ("script", "verdict"),
    [
        ("echo log > .asking.log; echo 'No auth type is selected.' >&2; exit 1", Verdict.INFRA),
        ("echo 'x = 1' > double.py; exit 1", Verdict.FAIL),  # it was at work, whatever it left
        ("exit 0", Verdict.FAIL),
        (f"{ASKING}\nrm -f double.py; exit 1", Verdict.FAIL),
    ],
)
async def test_an_agent_that_fails_before_it_asks_its_model_never_started(
    track: Path, tmp_path: Path, provider: Loopback, monkeypatch: pytest.MonkeyPatch, script: str, verdict: Verdict
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
    file = agent_file(tmp_path, "asking", script, **METERED)
    plan = planned(track, "asking", agent_files=[file], wanted=["double"])
    [record] = (await carried_out(plan, tmp_path)).values()
    assert record.verdict is verdict, (record.failure, record.scores)
    if verdict is Verdict.INFRA:
        assert record.failure is not None
        assert record.failure.permanent
        assert "No auth type is selected." in str(record.transcript)
        assert record.failure.message == (
            "`sh` never asked its model, and ended with exit code 1: No auth type is selected."
        )


async def test_an_agent_whose_model_is_refused_is_not_said_to_have_asked_nothing(
    track: Path, tmp_path: Path, provider: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
    provider.then(Act(status=404))
    asking = f"set -e\n{ASKING}"
    plan = planned(track, "asking", agent_files=[agent_file(tmp_path, "asking", asking, **METERED)], wanted=["double"])
    [record] = (await carried_out(plan, tmp_path)).values()
    assert record.verdict is Verdict.INFRA, (record.failure, record.scores)
    assert record.failure is not None
    assert record.failure.message.startswith("`sh` got no answer of its model (openai answered 404), and ended with")
