"""A provider that misbehaves: whose doing it is, how often it is asked again, and what it costs."""

import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bakeoff.plan import Limits, SubjectSpec
from bakeoff.record import Record, Usage
from bakeoff.verdict import Verdict

from .loopback import Act, Loopback, Received, failure, plan_of

pytestmark = pytest.mark.full

Ask = Callable[..., Awaitable[Record]]
CarryOut = Callable[..., Awaitable[list[Record]]]
MakeSpec = Callable[..., SubjectSpec]

ONE_ANSWER = Usage(requests=1, input=10, output=5, cost=0.002)


async def test_an_answer_is_booked_with_its_tokens_and_its_cost(provider: Loopback, ask: Ask) -> None:
    record = await ask()
    assert record.verdict is Verdict.PASS
    assert record.spent == ONE_ANSWER
    assert record.transcript is not None
    assert record.transcript.usage == ONE_ANSWER
    assert record.transcript.metadata["price"] == {
        "input": "0.0001",
        "output": "0.0002",
        "cache_read": None,
        "cache_write": None,
        "key": "loopback:tiny",
        "source": "config",
        "date": None,
        "tiers": [],
    }
    assert len(provider.received) == 1


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(failure(429, retry_after_ms="20"), id="429 with Retry-After"),
        pytest.param(failure(429), id="429 without"),
        pytest.param(failure(500), id="500"),
        pytest.param(failure(502), id="502"),
        pytest.param(failure(503, "overloaded"), id="overloaded"),
        pytest.param(failure(529), id="529"),
        pytest.param(failure(408), id="408"),
        pytest.param(Act(cut=1, say="yes and no"), id="cut in the middle"),
        pytest.param(Act(cut=0), id="cut before the body"),
        pytest.param(Act(body=b'{"choices": [{"mess'), id="half a JSON"),
        pytest.param(Act(body=b"<html>gateway</html>", headers={"content-type": "text/html"}), id="a web page"),
        pytest.param(Act(body={"error": {"message": "upstream broke", "code": 502}}), id="200 with an error"),
        pytest.param(Act(body={"choices": []}), id="no choices"),
        pytest.param(Act(body={}), id="an empty object"),
        pytest.param(Act(body=[]), id="a list"),
        pytest.param(Act(body=b"null"), id="null"),
        pytest.param(Act(body=b""), id="nothing"),
    ],
)
async def test_trouble_that_passes_costs_one_more_try_and_nothing_else(
    provider: Loopback, ask: Ask, trouble: Act, stream: bool
) -> None:
    provider.then(trouble)
    record = await ask(stream=stream)
    assert (record.verdict, record.failure) == (Verdict.PASS, None)
    assert record.tries == 1
    assert record.spent == ONE_ANSWER
    assert len(provider.received) == 2


@pytest.mark.parametrize(
    "trouble",
    [
        failure(429),
        failure(500),
        Act(body=b"{"),
        Act(body={"error": {"message": "no"}}),
        Act(body={"choices": []}),
        Act(cut=1),
    ],
    ids=["429", "500", "malformed", "200 with an error", "no choices", "cut"],
)
async def test_trouble_that_does_not_pass_is_infra_and_free(provider: Loopback, ask: Ask, trouble: Act) -> None:
    provider.plan = lambda _: trouble
    record = await ask(patience_seconds=0.2, run={"retries": 1})
    assert record.verdict is Verdict.INFRA
    assert record.failure is not None
    assert record.failure.type == "InfraError"
    assert "loopback:tiny" in record.failure.message
    assert record.tries == 1, "all the patience was used within one try"
    assert record.spent == Usage()
    assert record.value is None
    # A busy machine has time for no more; tests/models/test_rate_limit.py counts the retries in virtual time.
    assert provider.received


@pytest.mark.parametrize("status", [400, 401, 403, 404, 402, 422])
async def test_what_will_fail_again_is_infra_and_asked_once(provider: Loopback, ask: Ask, status: int) -> None:
    provider.plan = lambda _: failure(status)
    record = await ask(run={"retries": 3})
    assert record.verdict is Verdict.INFRA
    assert record.failure is not None
    assert record.failure.permanent
    assert len(provider.received) == 1


@pytest.mark.parametrize("status", [401, 403])
async def test_a_key_that_is_refused_stops_the_subject_at_once_and_no_other(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec, status: int
) -> None:
    provider.plan = lambda asked: failure(status, "no such key") if asked.body["model"] == "closed" else Act()
    closed, opened = model_spec("closed", model="loopback:closed"), model_spec("opened")
    plan = plan_of(closed, opened, cases=5)
    records = await carry_out(plan, jobs=1, retries=2)
    verdicts = {subject: [one.verdict for one in records if one.subject == subject] for subject in ("closed", "opened")}
    assert verdicts == {"closed": [Verdict.INFRA] * 5, "opened": [Verdict.PASS] * 5}
    assert [asked.body["model"] for asked in provider.received].count("closed") == 1
    failures = [one.failure for one in records if one.subject == "closed" and one.failure]
    assert {one.type for one in failures} == {"InfraError", "NotStarted"}
    assert len({one.message for one in failures}) == 1, "each says why"


async def test_a_page_instead_of_an_answer_is_asked_for_again_only_a_few_times(provider: Loopback, ask: Ask) -> None:
    provider.plan = lambda _: Act(body=b"<html>Welcome</html>", headers={"content-type": "text/html"})
    record = await ask(run={"retries": 2})
    assert record.verdict is Verdict.INFRA
    assert len(provider.received) == 3


@pytest.mark.parametrize("body", [b"", b'{"choices": [{"mess'])
async def test_a_body_that_is_no_json_is_asked_for_again_only_a_few_times(
    provider: Loopback, ask: Ask, body: bytes
) -> None:
    provider.plan = lambda _: Act(body=body)
    record = await ask(run={"retries": 2})
    assert record.verdict is Verdict.INFRA
    assert len(provider.received) == 3


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": {"message": "upstream broke", "code": 502}}, "upstream broke (code 502): an answer without choices"),
        ({"error": "no credit"}, "no credit: an answer without choices"),
        ({"id": "x1", "choices": []}, 'an answer without choices: {"id": "x1"}'),
    ],
)
async def test_the_providers_own_error_inside_of_a_success_comes_first(
    provider: Loopback, ask: Ask, body: dict[str, Any], said: str
) -> None:
    provider.plan = lambda _: Act(body=body)
    record = await ask()
    assert record.failure is not None
    assert record.failure.message.startswith(f"loopback:tiny: {said}")


async def test_an_exhausted_quota_is_not_waited_for(provider: Loopback, ask: Ask) -> None:
    provider.plan = lambda _: failure(429, "pay first", code="insufficient_quota")
    record = await ask(run={"retries": 3})
    assert record.verdict is Verdict.INFRA
    assert len(provider.received) == 1


@pytest.mark.parametrize(
    "error",
    [
        failure(400, "whatever", code="context_length_exceeded"),
        failure(400, "This model's maximum context length is 10 tokens"),
        failure(400, "the request exceeds the available context size, try increasing it"),
        failure(413, "no"),
        failure(413, "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 9000"),
        failure(
            429,
            "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 45000. "
            "The input or output tokens must be reduced in order to run successfully.",
            code="rate_limit_exceeded",
        ),
        failure(422, "the prompt is too long"),
    ],
    ids=["openai", "vllm", "llama.cpp", "413", "groq", "openai's 429", "422"],
)
async def test_a_prompt_that_does_not_fit_is_the_subjects_failure(provider: Loopback, ask: Ask, error: Act) -> None:
    provider.plan = lambda _: error
    record = await ask(run={"retries": 3})
    assert record.verdict is Verdict.FAIL
    assert record.failure is not None
    assert record.failure.type == "ContextOverflow"
    assert len(provider.received) == 1


@pytest.mark.parametrize("status", [400, 422])
async def test_a_request_that_is_refused_for_what_the_model_wrote_is_the_subjects_failure(
    provider: Loopback, ask: Ask, status: int
) -> None:
    """The first request passed with the same settings, and the second adds only the model's own words."""
    provider.then(Act(calls=(("no_such_tool", {}),), finish="tool_calls"), failure(status, "messages[1] is invalid"))
    record = await ask(kind="agent", run={"retries": 3})
    assert record.verdict is Verdict.FAIL
    assert record.failure is not None
    assert "refused for what the model wrote" in record.failure.message
    assert len(provider.received) == 2


async def test_a_refusal_is_the_models_answer(provider: Loopback, ask: Ask) -> None:
    provider.then(Act(refuse="I would rather not"))
    record = await ask()
    assert record.verdict is Verdict.FAIL
    assert record.failure is None
    assert record.transcript is not None
    assert record.transcript.output == "I would rather not"
    assert record.transcript.steps[0].finish_reason == "content_filter"
    assert record.spent == ONE_ANSWER


async def test_a_filtered_answer_is_the_models_answer(provider: Loopback, ask: Ask) -> None:
    provider.then(Act(say="I would", finish="content_filter"))
    record = await ask()
    assert (record.verdict, record.failure) == (Verdict.FAIL, None)
    assert record.transcript is not None
    assert record.transcript.steps[0].finish_reason == "content_filter"


async def test_a_question_that_the_provider_will_not_pass_on_is_answered_by_that(provider: Loopback, ask: Ask) -> None:
    provider.then(failure(400, "your prompt was flagged", code="content_policy_violation"))
    record = await ask()
    assert (record.verdict, record.failure) == (Verdict.FAIL, None)
    assert record.transcript is not None
    assert record.transcript.output == "your prompt was flagged"
    assert "unmeasured" not in record.transcript.metadata
    assert record.spent == Usage(requests=1, cost=0.0)


async def test_a_question_that_is_not_passed_on_costs_nothing_and_stops_no_run(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec
) -> None:
    provider.then(failure(400, "flagged", code="content_policy_violation"))
    records = await carry_out(plan_of(model_spec(), cases=3), jobs=1, max_cost=1.0)
    assert [record.verdict for record in records] == [Verdict.FAIL, Verdict.PASS, Verdict.PASS]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"input": -10, "output": 5},
        {"input": 10, "output": -5},
        {"input": 10**12, "output": 5},
        {"input": 10**30, "output": 10**30},
        {"input": "many", "output": "some"},
        {"input": 0, "output": 0},
        {"input": 1.5, "output": 2.5},
        {"input": 10, "output": 5, "cached": 11},
        {"input": 10, "output": 5, "cached": -1},
        {"input": None, "output": None},
        {"input": [1], "output": {}},
    ],
    ids=lambda usage: str(usage)[:40],
)
async def test_usage_that_cannot_be_true_is_not_booked_and_the_answer_still_counts(
    provider: Loopback, ask: Ask, usage: Any, stream: bool
) -> None:
    provider.then(Act(usage=usage))
    record = await ask(stream=stream)
    assert (record.verdict, record.failure) == (Verdict.PASS, None)
    assert record.spent == Usage(requests=1, cost=None)
    assert record.transcript is not None
    assert record.transcript.metadata["unmeasured"] == 1
    assert len(provider.received) == 1


async def test_cached_tokens_have_their_own_price(provider: Loopback, ask: Ask) -> None:
    provider.then(Act(usage={"input": 10, "output": 5, "cached": 4}))
    record = await ask(price={"input": 100, "output": 200, "cache_read": 10})
    assert record.spent == Usage(requests=1, input=10, output=5, cache_read=4, cost=0.00164)


async def test_a_model_without_a_known_price_has_no_cost_rather_than_none_at_all(provider: Loopback, ask: Ask) -> None:
    record = await ask(price=None)
    assert record.spent == Usage(requests=1, input=10, output=5, cost=None)
    assert record.transcript is not None
    assert "price" not in record.transcript.metadata


async def test_a_price_of_nothing_is_a_cost_of_nothing(provider: Loopback, ask: Ask) -> None:
    record = await ask(price={"input": 0, "output": 0})
    assert record.spent.cost == 0.0


@pytest.mark.parametrize("where", [1, 3, 4])
async def test_a_stream_that_ends_early_is_not_taken_for_the_answer(provider: Loopback, ask: Ask, where: int) -> None:
    provider.then(Act(say="yes or rather no", stop=where))
    record = await ask(stream=True)
    assert record.verdict is Verdict.PASS
    assert len(provider.received) == 2


async def test_an_error_inside_a_stream_is_the_providers(provider: Loopback, ask: Ask) -> None:
    body = b'data: {"error": {"message": "slow down", "type": "rate_limit_error", "code": "rate_limit_exceeded"}}\n\n'
    provider.then(Act(body=body, headers={"content-type": "text/event-stream"}))
    record = await ask(stream=True)
    assert record.verdict is Verdict.PASS
    assert len(provider.received) == 2


async def test_waiting_as_long_as_was_asked_does_not_count_as_the_subjects_time(provider: Loopback, ask: Ask) -> None:
    provider.then(failure(429, retry_after="3"))
    started = time.perf_counter()
    record = await ask(limits=Limits(attempt_seconds=2.5))
    assert time.perf_counter() - started >= 3.0
    assert record.verdict is Verdict.PASS
    assert record.attempt is not None
    assert record.attempt.waited >= 3.0
    assert record.attempt.seconds - record.attempt.waited < 2.5


async def test_waiting_for_a_turn_does_not_count_as_the_subjects_time(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec
) -> None:
    provider.plan = lambda _: Act(first_byte=0.8)
    plan = plan_of(model_spec(most_in_flight=1), cases=5, limits=Limits(attempt_seconds=2.8))
    records = await carry_out(plan, jobs=5)
    assert {record.verdict for record in records} == {Verdict.PASS}
    assert provider.most_in_flight == 1
    assert max(record.attempt.waited for record in records if record.attempt) > 2.8


async def test_the_time_of_a_call_that_the_provider_lost_does_not_count(provider: Loopback, ask: Ask) -> None:
    provider.then(*[Act(status=500, first_byte=1.0, body={"error": {"message": "no"}})] * 3)
    record = await ask(limits=Limits(attempt_seconds=2.5))
    assert record.verdict is Verdict.PASS
    assert len(provider.received) == 4


async def test_slow_generation_is_the_subjects_timeout_and_never_tried_again(provider: Loopback, ask: Ask) -> None:
    provider.plan = lambda _: Act(say="a b c d e f g h i j k l", pause=0.1)
    record = await ask(stream=True, limits=Limits(attempt_seconds=0.5), run={"retries": 3})
    assert record.verdict is Verdict.TIMEOUT
    assert record.value == 0.0
    assert record.tries == 1
    assert len(provider.received) == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_later_than_the_models_timeout_is_the_subjects(
    provider: Loopback, ask: Ask, stream: bool
) -> None:
    provider.plan = lambda _: Act(say="a b c d e f g h i j k l", pause=0.1, first_byte=0.0 if stream else 0.6)
    record = await ask(stream=stream, timeout=0.4, run={"retries": 3})
    assert record.verdict is Verdict.TIMEOUT
    assert record.failure is not None
    assert record.failure.type == "SubjectTimeout"
    assert "0.4" in record.failure.message
    assert len(provider.received) == 1


async def test_the_models_timeout_does_not_run_while_the_provider_is_waited_for(provider: Loopback, ask: Ask) -> None:
    provider.then(failure(429, retry_after="3"))
    record = await ask(timeout=2.5)
    assert record.verdict is Verdict.PASS


async def test_a_silent_stream_is_infra(provider: Loopback, ask: Ask) -> None:
    provider.plan = lambda _: Act(first_byte=5.0)
    record = await ask(stream=True, idle_seconds=0.15, patience_seconds=0.3)
    assert record.verdict is Verdict.INFRA
    assert provider.received


async def test_without_a_stream_silence_is_thinking_and_only_the_attempts_time_ends_it(
    provider: Loopback, ask: Ask
) -> None:
    provider.plan = lambda _: Act(first_byte=0.5)
    assert (await ask(idle_seconds=0.1)).verdict is Verdict.PASS
    late = await ask(idle_seconds=0.1, limits=Limits(attempt_seconds=0.3))
    assert late.verdict is Verdict.TIMEOUT
    assert len(provider.received) == 2


async def test_a_stream_that_falls_silent_is_infra(provider: Loopback, ask: Ask) -> None:
    provider.plan = lambda _: Act(say="yes but", pause=5.0)
    record = await ask(stream=True, idle_seconds=0.15, patience_seconds=0.3)
    assert record.verdict is Verdict.INFRA


async def test_a_stream_that_keeps_talking_is_not_silent(provider: Loopback, ask: Ask) -> None:
    provider.then(Act(say="y e s", pause=0.8))
    record = await ask(stream=True, idle_seconds=2.0)
    assert record.verdict is not Verdict.INFRA
    assert record.transcript is not None
    assert record.transcript.output == "yes"


async def test_a_slow_first_byte_within_the_limit_is_only_slow(provider: Loopback, ask: Ask) -> None:
    provider.then(Act(first_byte=0.3))
    record = await ask(idle_seconds=2.0)
    assert record.verdict is Verdict.PASS
    assert record.transcript is not None
    assert record.transcript.steps[0].seconds is not None
    assert record.transcript.steps[0].seconds >= 0.3


async def test_a_provider_that_asks_for_an_hour_is_given_up_with_its_wish(provider: Loopback, ask: Ask) -> None:
    provider.plan = lambda _: failure(429, retry_after="3600")
    record = await ask()
    assert record.verdict is Verdict.INFRA
    assert record.failure is not None
    assert record.failure.retry_after == 3600
    assert len(provider.received) == 1


async def test_nobody_at_the_address_is_infra(provider: Loopback, ask: Ask) -> None:
    provider.stop()
    record = await ask(patience_seconds=0.1)
    assert record.verdict is Verdict.INFRA


async def test_a_cancelled_call_leaves_nothing_in_flight(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec
) -> None:
    hold = threading.Event()
    provider.then(Act(hold=hold), Act(hold=hold))
    plan = plan_of(model_spec(most_in_flight=2), cases=6, limits=Limits(attempt_seconds=3.0))
    records = await carry_out(plan, jobs=6)
    hold.set()
    verdicts = sorted(record.verdict for record in records)
    assert verdicts == [*[Verdict.PASS] * 4, *[Verdict.TIMEOUT] * 2]


def three_in_ten() -> Callable[[Received], Act]:
    """Exactly 30 % of all requests are refused, spread over them."""

    def act(request: Received) -> Act:
        if request.number * 3 % 10 < 3:
            return failure(429, **({"retry_after_ms": "15"} if request.number % 2 else {}))
        return Act(first_byte=0.01)

    return act


async def test_500_calls_of_which_three_in_ten_are_refused_lose_nothing(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec
) -> None:
    provider.plan = three_in_ten()
    plan = plan_of(model_spec(patience_seconds=60), cases=500)
    records = await carry_out(plan, jobs=50)
    assert len({record.case for record in records}) == 500
    assert {record.verdict for record in records} == {Verdict.PASS}
    assert {record.tries for record in records} == {1}
    assert {record.spent for record in records} == {ONE_ANSWER}
    refused = sum(three_in_ten()(request).status == 429 for request in provider.received)
    assert len(provider.received) == 500 + refused
    assert refused > 150
    assert provider.most_in_flight <= 50


async def test_a_hard_stop_on_cost_is_at_most_one_call_per_slot_late(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec
) -> None:
    jobs, cases = 4, 40
    records = await carry_out(plan_of(model_spec(), cases=cases), jobs=jobs, max_cost=0.01)
    spent = sum(record.spent.cost or 0.0 for record in records)
    assert 0.01 <= spent <= 0.01 + jobs * 0.002 + 1e-9
    assert len(provider.received) == round(spent / 0.002)
    assert len(records) == cases
    assert {record.verdict for record in records} == {Verdict.PASS, Verdict.BUDGET}
    assert sum(record.verdict is Verdict.PASS for record in records) == len(provider.received)


async def test_a_cheating_count_cannot_push_back_the_hard_stop(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec
) -> None:
    provider.plan = lambda request: Act(usage={"input": -(10**6), "output": 5}) if request.number % 2 else Act()
    records = await carry_out(plan_of(model_spec(), cases=40), jobs=1, max_cost=0.01)
    assert sum(record.verdict is Verdict.PASS for record in records) <= 2, "a limit that cannot be kept stops the run"
    assert {record.verdict for record in records} == {Verdict.PASS, Verdict.BUDGET}
