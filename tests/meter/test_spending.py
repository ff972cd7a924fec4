"""Money and trouble: budgets in mid-run, streams that break, providers that are busy, and the key that nobody sees."""

import asyncio
import json
import os
import threading
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from openai import APIStatusError, AsyncOpenAI

from bakeoff._kernel.clock import Clock
from bakeoff.errors import BudgetError, InfraError, RunFolderError
from bakeoff.meter import Meter, OpenMeter, TrialMeter, Upstream, upstream_of
from bakeoff.models.providers import BUILT_IN
from bakeoff.models.rate_limit import RetryPolicy
from bakeoff.record import Usage

from ..models.loopback import Act, Loopback, Received, failure
from .conftest import CANARY, Books, Opening, Visit, task_of


def about(at: Visit) -> dict[str, Any]:
    found = at.trial.transcript().metadata["meter"]
    assert isinstance(found, dict)
    return found


async def read_some(at: Visit, path: str, body: dict[str, Any], enough: bytes) -> bytes:
    """Read a stream until these bytes have come, and hang up."""
    seen = b""
    async with at.client.stream("POST", at.origin + path, json={**body, "stream": True}) as answer:
        async for chunk in answer.aiter_raw():
            seen += chunk
            if enough in seen:
                break
    return seen


async def until_booked(at: Visit) -> None:
    while not at.books.told:
        await asyncio.sleep(0.01)


async def test_each_exchange_is_told_to_the_run_as_it_ends(provider: Loopback, visit: Opening) -> None:
    async with visit() as at:
        await at.chat()
        assert len(at.books.told) == 1
        await at.chat(stream=True)
        assert len(at.books.told) == 2
    assert at.trial.transcript().usage == at.books.spent


async def test_exchanges_without_a_price_are_told_apart_from_those_that_have_one(
    provider: Loopback, visit: Opening
) -> None:
    async with visit(price=None) as at:
        await at.chat(model="gpt-4o")
        assert "unpriced" not in about(at)
        await at.chat(model="nobody-knows-this")
    assert about(at)["unpriced"] == 1


async def test_a_budget_that_is_used_up_stops_the_trial_in_mid_run_and_the_run_learns_of_it(
    provider: Loopback, visit: Opening
) -> None:
    async with visit(books=Books(most_tokens=30)) as at:
        answers = [await at.chat(), await at.chat(), await at.chat()]
        reason = await at.trial.stopped()
        claude = await at.messages()
        gemini = await at.post("/google/v1beta/models/gemini-x:generateContent", {"contents": []})
    assert [answer.status_code for answer in answers] == [200, 200, 402], "what was paid for is given"
    assert answers[2].json()["error"]["code"] == "insufficient_quota"
    assert "max_total_tokens 30 is reached" in answers[2].json()["error"]["message"]
    assert claude.json()["error"]["type"] == "billing_error"
    assert gemini.json()["error"]["status"] == "FAILED_PRECONDITION"
    assert isinstance(reason, BudgetError)
    with pytest.raises(BudgetError):
        at.trial.check()
    assert len(provider.received) == 2


async def test_a_request_that_waits_for_its_turn_is_not_sent_when_another_uses_up_the_budget(
    provider: Loopback, upstream: Callable[..., Upstream]
) -> None:
    release = threading.Event()
    provider.then(Act(hold=release))
    async with (
        Meter(most_in_flight=1).open() as meter,
        meter.open_trial(task_of(Books(most_tokens=1)), [upstream()]) as trial,
        httpx2.AsyncClient(trust_env=False, timeout=60, headers={"x-api-key": trial.token}) as client,
    ):
        url = f"http://127.0.0.1:{trial.port}/openai/v1/chat/completions"
        asking = [asyncio.create_task(client.post(url, json={"model": "tiny"})) for _ in range(2)]
        while not provider.received or len(trial.exchanges) < 2:
            await asyncio.sleep(0.01)
        release.set()
        statuses = sorted([(await answer).status_code for answer in asking])
    assert statuses == [200, 402]
    assert len(provider.received) == 1


async def test_an_sdk_does_not_ask_again_when_the_budget_is_used_up(provider: Loopback, visit: Opening) -> None:
    async with (
        visit(books=Books(most_tokens=1)) as at,
        AsyncOpenAI(base_url=f"{at.origin}/openai/v1", api_key=at.trial.token, max_retries=5) as sdk,
    ):
        await at.chat()
        with pytest.raises(APIStatusError, match="budget"):
            await sdk.chat.completions.create(model="tiny", messages=[])
    assert about(at)["refused"] == 1


async def test_a_run_that_cannot_write_what_was_spent_stops_the_trial(provider: Loopback, visit: Opening) -> None:
    def full_disk(_: Usage) -> None:
        raise RunFolderError("the disk is full")

    async with visit(spend=full_disk) as at:
        assert (await at.chat()).status_code == 200
        assert isinstance(await at.trial.stopped(), RunFolderError)


@pytest.mark.parametrize(
    ("path", "first"),
    [("/openai/v1/chat/completions", b"two"), ("/anthropic/v1/messages", b"two")],
)
async def test_an_agent_that_hangs_up_is_booked_what_had_arrived(
    path: str, first: bytes, provider: Loopback, visit: Opening
) -> None:
    provider.then(Act(say="one two " + "word " * 2000, pause=0.02, usage={"input": 33, "output": 4000}))
    body = {"model": "tiny", "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]}
    async with visit() as at:
        await read_some(at, path, body, first)
        await until_booked(at)
        assert at.books.spent.requests == 1
        assert 0 < at.books.spent.output < 4000
        assert at.books.spent.input == 33 if "anthropic" in path else at.books.spent.input > 0
        assert at.books.spent.cost is not None
        assert about(at)["estimated"] == 1
        assert about(at)["cut"] == 1


async def test_a_trial_that_ends_books_what_was_under_way(provider: Loopback, visit: Opening) -> None:
    release = threading.Event()
    provider.then(Act(hold=release))
    async with visit() as at:
        asking = asyncio.create_task(at.chat())
        while not provider.received:
            await asyncio.sleep(0.01)
    with pytest.raises(httpx2.HTTPError):
        await asking
    release.set()
    assert at.books.spent.requests == 1, "the provider had begun, so somebody pays"
    assert at.books.spent.input > 0


async def test_a_stream_that_the_provider_breaks_is_booked_and_breaks_for_the_agent(
    provider: Loopback, visit: Opening
) -> None:
    provider.then(Act(say="one two three four", cut=3))
    async with visit() as at:
        with pytest.raises(httpx2.RemoteProtocolError):
            await at.chat(stream=True)
        await until_booked(at)
    assert at.books.spent.output == 2
    assert about(at)["cut"] == 1


async def test_a_stream_that_ends_too_early_is_told_apart_from_a_whole_one(provider: Loopback, visit: Opening) -> None:
    provider.then(Act(say="one two three", stop=2))
    async with visit() as at:
        assert (await at.messages(stream=True)).status_code == 200
    assert about(at)["cut"] == 1
    assert at.books.spent.input == 10, "as the beginning of the message said"


async def test_what_may_pass_is_tried_again_before_the_agent_hears_of_it(provider: Loopback, visit: Opening) -> None:
    provider.then(failure(429, retry_after="0.01"), failure(500), failure(529), Act(say="at last"))
    clock = Clock(300.0)
    async with visit(clock=clock) as at:
        answer = await at.chat()
    assert answer.json()["choices"][0]["message"]["content"] == "at last"
    assert len(provider.received) == 4
    assert len(at.books.told) == 1, "errors cost nothing"
    assert clock.waited > 0.02, "waiting for a provider is not the agent's time"


async def test_a_stream_is_tried_again_while_nothing_of_it_has_been_passed_on(
    provider: Loopback, visit: Opening
) -> None:
    provider.then(Act(cut=0), Act(say="at last"))
    async with visit() as at:
        answer = await at.chat(stream=True)
    assert b"last" in answer.content
    assert [told.output for told in at.books.told] == [0, 5], "the one that broke had begun, so somebody pays"
    assert (about(at)["estimated"], about(at)["cut"]) == (1, 1)


@pytest.mark.parametrize(
    "broken",
    [
        Act(say="word " * 100, cut=1),
        Act(body=b"no gzip at all", headers={"content-encoding": "gzip"}),
    ],
)
async def test_answers_that_break_are_paid_for_each_time_and_not_asked_for_without_end(
    broken: Act, provider: Loopback, visit: Opening
) -> None:
    provider.plan = lambda _: broken
    async with visit() as at:
        answer = await at.chat()
    assert answer.status_code == 502
    assert len(provider.received) == len(at.books.told) == 3
    assert all(told.input and told.output and told.cost for told in at.books.told)
    assert about(at)["estimated"] == 3
    assert isinstance(at.trial.failure, InfraError)


async def test_a_budget_is_not_overshot_by_requests_that_are_sent_together(provider: Loopback, visit: Opening) -> None:
    async with visit(books=Books(most_tokens=15)) as at:
        answers = await asyncio.gather(*(at.chat() for _ in range(20)))
    assert sorted(answer.status_code for answer in answers) == [200, *[402] * 19]
    assert at.books.spent.tokens == 15
    assert len(provider.received) == 1


async def test_trials_of_a_run_share_what_is_left_of_its_budget(
    meter: OpenMeter, provider: Loopback, upstream: Callable[..., Upstream]
) -> None:
    books = Books(most_tokens=15)
    async with (
        meter.open_trial(task_of(books), [upstream()]) as one,
        meter.open_trial(task_of(books), [upstream()]) as two,
        httpx2.AsyncClient(trust_env=False, timeout=60) as client,
    ):

        async def ask(trial: TrialMeter) -> int:
            url = f"http://127.0.0.1:{trial.port}/openai/v1/chat/completions"
            return (await client.post(url, json={"model": "tiny"}, headers={"x-api-key": trial.token})).status_code

        statuses = await asyncio.gather(*(ask(trial) for trial in (one, two, one, two)))
    assert sorted(statuses) == [200, 402, 402, 402]
    assert one.out_of_budget is not None
    assert two.out_of_budget is not None


async def test_requests_that_fit_into_the_budget_together_are_sent_together(provider: Loopback, visit: Opening) -> None:
    release = threading.Event()
    provider.plan = lambda _: Act(hold=release)
    async with visit(books=Books(most_tokens=400)) as at:
        asking = [asyncio.create_task(at.chat(max_tokens=50)) for _ in range(8)]
        while len(provider.received) < 6:  # of ten tokens and up to fifty each
            await asyncio.sleep(0.01)
        release.set()
        answers = await asyncio.gather(*asking)
    assert [answer.status_code for answer in answers] == [200] * 8
    assert provider.most_in_flight < 8, "or they could have come to more than there was"


async def test_what_an_answer_says_cannot_lose_its_count(provider: Loopback, visit: Opening) -> None:
    provider.then(Act(calls=(("lift", '{"weight": 1e999}'),)))
    async with visit() as at:
        answer = await at.chat()
    assert answer.status_code == 200
    assert at.trial.failure is None
    assert at.books.spent.tokens == 15
    [call] = at.trial.transcript().tool_calls
    assert call.arguments == '{"weight": 1e999}', "as the text it came in"


async def test_an_answer_that_would_come_later_is_refused_for_nobody_would_count_it(
    provider: Loopback, visit: Opening
) -> None:
    async with visit() as at:
        later = await at.post("/openai/v1/responses", {"model": "tiny", "input": "hello", "background": True})
        now = await at.post("/openai/v1/responses", {"model": "tiny", "input": "hello", "background": False})
    assert (later.status_code, now.status_code) == (400, 200)
    assert "background" in later.json()["error"]["message"]
    assert len(provider.received) == 1


def stream_of(*events: dict[str, Any]) -> Act:
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    return Act(body=body.encode(), headers={"content-type": "text/event-stream"})


def chunk(text: str, finish: str | None = None, **usage: int) -> dict[str, Any]:
    told = {"usage": {f"{name}_tokens": count for name, count in usage.items()}} if usage else {}
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}], **told}


async def test_counts_that_come_with_every_event_are_final_with_the_last(provider: Loopback, visit: Opening) -> None:
    provider.then(
        stream_of(chunk("a", prompt=10, completion=1), chunk("b", "stop", prompt=10, completion=7)),
        stream_of(chunk("a", prompt=10, completion=1), *[chunk("word " * 40)] * 4),
    )
    async with visit() as at:
        await at.chat(stream=True)
        assert "estimated" not in about(at)
        await at.chat(stream=True)
    assert [(told.input, told.output) for told in at.books.told] == [(10, 7), (10, 201)]
    assert (about(at)["estimated"], about(at)["cut"]) == (1, 1)


async def test_zeros_after_real_counts_say_nothing(provider: Loopback, visit: Opening) -> None:
    zeros = {"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0}}
    provider.then(stream_of(chunk("a", "stop", prompt=10, completion=4), zeros))
    async with visit() as at:
        await at.chat(stream=True, stream_options={"include_usage": True})
    assert (at.books.spent.input, at.books.spent.output) == (10, 4)
    assert "estimated" not in about(at)


async def test_a_stream_that_begins_with_being_overloaded_is_tried_again(provider: Loopback, visit: Opening) -> None:
    busy = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    body = b"event: error\ndata: " + json.dumps(busy).encode() + b"\n\n"
    provider.then(Act(body=body, headers={"content-type": "text/event-stream"}), Act(say="at last"))
    async with visit() as at:
        answer = await at.messages(stream=True)
    assert b"last" in answer.content
    assert b"overloaded" not in answer.content
    assert len(at.books.told) == 1


async def test_when_patience_ends_the_agent_is_told_what_the_provider_said(provider: Loopback, visit: Opening) -> None:
    provider.plan = lambda _: failure(503, "come back tomorrow", retry_after="3600")
    async with visit() as at:
        answer = await at.chat()
        assert answer.status_code == 503
        assert answer.json()["error"]["message"] == "come back tomorrow"
        with pytest.raises(InfraError, match="openai answered 503"):
            at.trial.check()
        asked = len(provider.received)
        assert (await at.chat()).status_code == 503
        assert len(provider.received) == asked + 1, "the second request is not kept waiting again"
        provider.plan = lambda _: Act()
        assert (await at.chat()).status_code == 200
        at.trial.check()


async def test_a_provider_that_is_not_there_is_an_infra_failure(provider: Loopback, visit: Opening) -> None:
    async with visit() as at:
        provider.stop()
        answer = await at.chat()
    assert answer.status_code == 502
    assert isinstance(at.trial.failure, InfraError)


@pytest.mark.parametrize(
    "refused",
    [
        failure(401, "bad key"),
        failure(403, "this key may not use the model"),
        failure(402, "pay first"),
        failure(429, "no money", code="insufficient_quota"),
        failure(400, "Your credit balance is too low to access the API"),
    ],
)
async def test_a_key_that_does_not_work_ends_the_trial_and_is_not_the_agents_failure(
    refused: Act, provider: Loopback, visit: Opening
) -> None:
    provider.plan = lambda _: refused
    async with visit() as at:
        answer = await at.chat()
        error = await at.trial.stopped()
    assert answer.status_code == refused.status
    assert isinstance(error, InfraError)
    assert error.permanent
    assert error.stops_subject == (refused.status in (401, 403))
    assert len(provider.received) == 1


async def test_a_request_that_is_forbidden_after_an_answer_is_the_agents_own_affair(
    provider: Loopback, visit: Opening
) -> None:
    provider.plan = lambda asked: failure(403, "not this model") if asked.number else Act()
    async with visit() as at:
        statuses = [(await at.chat()).status_code for _ in range(2)]
    assert statuses == [200, 403]
    assert at.trial.failure is None, "or an agent that is about to fail could excuse itself"


@pytest.mark.parametrize("status", [401, 402, 403])
async def test_a_refused_model_is_the_agents_own_choice_once_another_has_answered_in_the_run(
    status: int, provider: Loopback, visit: Opening
) -> None:
    provider.plan = lambda asked: failure(status, "not this") if asked.body["model"] == "other" else Act()
    worked = set[str]()
    async with visit(worked=worked) as at:
        await at.chat()
    assert worked == {"tiny"}
    async with visit(worked=worked) as at:
        answer = await at.chat(model="other")
    assert answer.status_code == status
    assert at.trial.failure is None
    at.trial.check()


@pytest.mark.parametrize("status", [401, 402])
async def test_a_key_that_no_longer_works_is_not_the_agents_failure(
    status: int, provider: Loopback, visit: Opening
) -> None:
    provider.plan = lambda _: failure(status, "expired")
    async with visit(worked={"tiny"}) as at:
        await at.chat()
    assert isinstance(at.trial.failure, InfraError)


async def test_a_page_instead_of_an_answer_is_an_infra_failure_that_names_it(
    provider: Loopback, visit: Opening
) -> None:
    page = b"<html><head><title>Bad\n gateway</title></head></html>"
    provider.plan = lambda _: Act(body=page, headers={"content-type": "text/html"})
    async with visit() as at:
        await at.chat()
    assert isinstance(at.trial.failure, InfraError)
    assert "openai answered 200 with HTML, not JSON: 'Bad gateway'" in str(at.trial.failure)
    assert len(provider.received) == 3


async def test_a_key_that_is_good_for_answers_need_not_be_good_for_lists_of_models(
    provider: Loopback, visit: Opening
) -> None:
    provider.plan = lambda asked: failure(401, "restricted key") if asked.path == "/v1/models" else Act()
    async with visit() as at:
        listed = await at.client.get(f"{at.origin}/openai/v1/models")
        with pytest.raises(InfraError, match="restricted key"):
            at.trial.check()  # an agent may give up over it, which is not its failure
        assert (await at.chat()).status_code == 200
        at.trial.check()
    assert (listed.status_code, listed.json()["error"]["message"]) == (401, "restricted key")


async def test_what_is_free_is_waited_for_in_vain_only_once_and_forgotten_when_it_can_be_had(
    provider: Loopback, visit: Opening
) -> None:
    provider.plan = lambda _: failure(503, "come back tomorrow", retry_after="3600")
    async with visit() as at:
        models = f"{at.origin}/openai/v1/models"
        await at.client.get(models)
        asked = len(provider.received)
        assert (await at.client.get(models)).status_code == 503
        assert len(provider.received) == asked + 1
        with pytest.raises(InfraError, match="openai answered 503"):
            at.trial.check()
        provider.plan = lambda _: Act()
        assert (await at.client.get(models)).status_code == 200
        at.trial.check()


async def test_an_error_of_the_agents_own_making_is_passed_on_as_it_is(provider: Loopback, visit: Opening) -> None:
    provider.then(failure(400, "no such parameter: 'insufficient_quota'"))
    async with visit() as at:
        answer = await at.chat(insufficient_quota=True)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == "no such parameter: 'insufficient_quota'"
    assert at.trial.failure is None, "or an agent that is about to fail could excuse itself"
    assert about(at)["errors"] == {"400": 1}
    assert at.books.told == []


async def test_a_redirect_is_not_followed_with_the_key(provider: Loopback, visit: Opening) -> None:
    provider.plan = lambda asked: (
        Act() if asked.path == "/elsewhere" else Act(status=307, headers={"location": "/elsewhere"}, body={})
    )
    async with visit() as at:
        await at.chat()
    assert [asked.path for asked in provider.received] == ["/v1/chat/completions"]
    assert isinstance(at.trial.failure, InfraError)


async def test_the_limit_on_calls_in_flight_is_shared_by_all_trials(provider: Loopback) -> None:
    upstream = upstream_of(BUILT_IN["openai"], {"OPENAI_API_KEY": CANARY, "OPENAI_BASE_URL": f"{provider.url}/v1"})
    release = threading.Event()
    provider.plan = lambda _: Act(hold=release)
    async with (
        Meter(most_in_flight=2, retry_policy=RetryPolicy(first_seconds=0.01)).open() as meter,
        meter.open_trial(task_of(Books()), [upstream]) as one,
        meter.open_trial(task_of(Books()), [upstream]) as two,
        httpx2.AsyncClient(trust_env=False) as client,
    ):

        def ask(trial: TrialMeter) -> asyncio.Task[httpx2.Response]:
            url = f"http://127.0.0.1:{trial.port}/openai/v1/chat/completions"
            headers = {"x-api-key": trial.token}
            return asyncio.create_task(client.post(url, json={"model": "tiny"}, headers=headers))

        asking = [ask(trial) for trial in (one, two, one, two)]
        while len(provider.received) < 2:
            await asyncio.sleep(0.01)
        release.set()
        answers = await asyncio.gather(*asking)
    assert [answer.status_code for answer in answers] == [200] * 4
    assert provider.most_in_flight == 2


async def test_the_key_is_seen_by_the_provider_and_by_nobody_else(
    provider: Loopback, visit: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)

    def echo(asked: Received) -> Act:
        said = f"your key is {asked.headers['authorization']} or {CANARY.encode().hex()}"
        return Act(say=said, headers={"x-request-id": CANARY, "set-cookie": "a=b"})

    provider.plan = echo
    async with visit() as at:
        whole, stream = await at.chat(), await at.chat(stream=True)
        provider.plan = lambda _: failure(400, f"Incorrect API key: {CANARY}", x_request_id=CANARY)
        refused = await at.chat()
    seen = [whole, stream, refused]
    assert CANARY in provider.received[0].headers["authorization"]
    for answer in seen:
        assert CANARY not in answer.text + str(answer.headers)
        assert CANARY.encode().hex() not in answer.text
        assert "set-cookie" not in answer.headers
    assert "[redacted OPENAI_API_KEY" in whole.text
    assert CANARY not in at.trial.transcript().model_dump_json()
    assert CANARY not in repr(at.trial)
    assert os.environ["OPENAI_API_KEY"] == CANARY


async def test_the_transcript_is_bounded_and_says_so(provider: Loopback, visit: Opening) -> None:
    provider.plan = lambda _: Act(say="x" * 300_000)
    async with visit() as at:
        await at.chat()
    transcript = at.trial.transcript()
    assert len(transcript.model_dump_json()) < 450_000
    assert json.loads(transcript.model_dump_json())["steps"][0]["parts"][0]["text"].endswith("…")
