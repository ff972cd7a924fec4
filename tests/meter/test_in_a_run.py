"""The meter as a resource of a real run: what its record, its verdict and its journal say."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from bakeoff.engine.registry import default_registry
from bakeoff.meter import METER, Meter, OpenMeter, Upstream
from bakeoff.plan import Limits, SubjectSpec
from bakeoff.protocols import Needs, Task
from bakeoff.record import Record, Transcript
from bakeoff.verdict import Verdict

from ..models.loopback import Act, Loopback, failure, plan_of
from .conftest import CANARY, QUICK

pytestmark = pytest.mark.journey

Ask = Callable[..., Awaitable[Record]]


class Agent:
    """Asks until it has been answered often enough, as a command-line agent would, or all at once."""

    needs = Needs(resources=(Meter(retry_policy=QUICK),))

    def __init__(self, upstream: Upstream, times: int, *, together: bool = False) -> None:
        self._upstream, self._times, self._together = upstream, times, together

    async def attempt(self, task: Task) -> Transcript:
        meter: OpenMeter = task.resources[METER]
        async with (
            meter.open_trial(task, [self._upstream]) as trial,
            httpx2.AsyncClient(trust_env=False, timeout=60, headers={"x-api-key": trial.token}) as client,
        ):
            url = f"http://127.0.0.1:{trial.port}/openai/v1/chat/completions"
            body = {"model": "tiny", "messages": [], "stream": True}
            asking = (client.post(url, json=body) for _ in range(self._times))
            if self._together:
                await asyncio.gather(*asking)
            for asked in () if self._together else asking:
                await asked
            trial.check()
        return trial.transcript()


@pytest.fixture
def ask(
    provider: Loopback, upstream: Callable[..., Upstream], carry_out: Callable[..., Awaitable[list[Record]]]
) -> Ask:
    async def asking(times: int = 1, limits: Limits | None = None, *, together: bool = False, **options: Any) -> Record:
        registry = default_registry().with_subject("probe", lambda _: Agent(upstream(), times, together=together))
        plan = plan_of(SubjectSpec(kind="probe", name="a"), limits=limits)
        [record] = await carry_out(plan, registry=registry, retries=0, **options)
        return record

    return asking


async def test_a_run_records_what_the_meter_saw(provider: Loopback, ask: Ask, tmp_path: Path) -> None:
    record = await ask(times=3)
    assert record.verdict is Verdict.PASS
    assert (record.spent.requests, record.spent.input, record.spent.output) == (3, 30, 15)
    assert record.spent.cost == pytest.approx(0.006)
    assert record.transcript is not None
    assert len(record.transcript.steps) == 3
    written = [path.read_bytes() for path in (tmp_path / "results").rglob("*") if path.is_file()]
    assert written
    assert not any(CANARY.encode() in content for content in written)


async def test_a_trial_that_runs_out_of_time_in_mid_stream_is_charged_for_what_came(
    provider: Loopback, ask: Ask
) -> None:
    provider.plan = lambda _: Act(say="word " * 3000, pause=0.02)
    record = await ask(limits=Limits(attempt_seconds=1.0))
    assert record.verdict is Verdict.TIMEOUT
    assert record.spent.requests == 1
    assert 0 < record.spent.output < 3000
    assert record.spent.input > 0


async def test_a_budget_ends_the_trial_as_nobodys_fault(provider: Loopback, ask: Ask) -> None:
    record = await ask(times=5, max_total_tokens=20)
    assert record.verdict is Verdict.BUDGET
    assert record.spent.tokens == 30
    assert len(provider.received) == 2


@pytest.mark.parametrize("limit", [{"max_cost": 0.003}, {"max_total_tokens": 20}])
async def test_a_budget_is_kept_however_much_is_asked_at_once(
    provider: Loopback, ask: Ask, limit: dict[str, Any]
) -> None:
    record = await ask(times=20, together=True, **limit)
    assert record.verdict is Verdict.BUDGET
    assert record.spent.tokens == 30
    assert len(provider.received) == 2, "as many as if they had been asked one by one"


async def test_waiting_for_the_provider_does_not_count_as_the_agents_time(provider: Loopback, ask: Ask) -> None:
    provider.then(Act(status=429, headers={"retry-after": "0.3"}, body={}))
    record = await ask()
    assert record.verdict is Verdict.PASS
    assert record.attempt is not None
    assert record.attempt.waited >= 0.3


async def test_a_run_can_be_replayed_without_a_provider(provider: Loopback, ask: Ask, tmp_path: Path) -> None:
    first = await ask(times=2, replay="record", recordings=tmp_path / "kept")
    again = await ask(times=2, replay="strict", recordings=tmp_path / "kept")
    assert len(provider.received) == 2
    assert again.verdict is Verdict.PASS
    assert again.spent == first.spent
    missing = await ask(times=3, replay="strict", recordings=tmp_path / "kept")
    assert missing.verdict is Verdict.INFRA
    assert missing.failure is not None
    assert "nothing is recorded under" in missing.failure.message


@pytest.mark.parametrize(
    "refusal",
    [
        failure(429, "Request too large for tiny on tokens per min (TPM): Limit 30000, Requested 45000"),
        failure(429, "slow down", x_ratelimit_limit_tokens="3"),
        failure(413),
    ],
    ids=["by its words", "by its limit", "by its status"],
)
async def test_a_last_request_that_is_too_large_excuses_no_agent(refusal: Act, provider: Loopback, ask: Ask) -> None:
    provider.then(Act(say="no"), refusal)
    record = await ask(2)
    assert record.verdict is Verdict.FAIL
    assert record.transcript is not None
    assert record.transcript.metadata["meter"]["too_large"] == 1  # type: ignore[index, call-overload]
    assert len(provider.received) == 2, "nobody waits for it"
