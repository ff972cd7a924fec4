"""What tests of the meter share: a provider on loopback, the key that only it may see, and a trial that asks it."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2
import pytest

from bakeoff._kernel.choices import ReplayMode
from bakeoff._kernel.clock import Clock
from bakeoff.errors import BudgetError
from bakeoff.meter import Meter, MeterLimits, OpenMeter, TrialMeter, Upstream
from bakeoff.models.prices import Price
from bakeoff.models.providers import BUILT_IN
from bakeoff.models.rate_limit import RetryPolicy
from bakeoff.plan import Limits
from bakeoff.protocols import BUDGET, Place, Task
from bakeoff.record import NO_USAGE, Usage
from bakeoff.replay.store import RECORDINGS, Store
from bakeoff.storage.redaction import Redactor

from ..models.loopback import Loopback

CANARY = "sk-canary-7f3a9b1c5d2e8f60"
"""The real key: the provider sees it, and nobody else."""

PRICE = Price(input=Decimal("0.0001"), output=Decimal("0.0002"), key="tiny", source="config")
"""A usual answer (10 in, 5 out) costs 0.002."""

QUICK = RetryPolicy(first_seconds=0.01, longest_seconds=0.02, total_seconds=1.0)


@dataclass
class Books:
    """The run's side: what it was told was spent, and how much it bears."""

    most_tokens: int | None = None
    spent: Usage = NO_USAGE
    counted: Usage = NO_USAGE
    told: list[Usage] = field(default_factory=list)

    def spend(self, usage: Usage) -> None:
        self.told.append(usage)
        self.spent += usage
        if reason := self.exceeded():
            raise BudgetError(reason)

    def exceeded(self) -> str | None:
        if self.most_tokens is None or self.spent.tokens < self.most_tokens:
            return None
        return f"max_total_tokens {self.most_tokens} is reached: {self.spent.tokens} used"

    def fits(self, more: Usage) -> bool:
        return self.most_tokens is None or self.spent.tokens + more.tokens <= self.most_tokens

    def count(self, usage: Usage) -> None:
        self.counted += usage


def task_of(books: Books, recordings: Store | None = None, **given: Any) -> Task:
    usual: dict[str, Any] = {
        "prompt": "solve it",
        "case_id": "c",
        "subject": "agent",
        "trial_id": "t",
        "round": 0,
        "seed": 0,
        "limits": Limits(),
        "spend": books.spend,
        "count": books.count,
        "resources": {BUDGET: books, **({RECORDINGS: recordings} if recordings else {})},
        "clock": Clock(300.0),
    }
    return Task(**{**usual, **given})


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Loopback]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.chdir(tmp_path)
    loopback = Loopback()
    loopback.start()
    yield loopback
    loopback.stop()


@pytest.fixture
def upstream(provider: Loopback) -> Callable[..., Upstream]:
    """The loopback provider as one of the real ones."""

    def make(name: str = "openai", price: Price | None = PRICE) -> Upstream:
        base = provider.url + ("/v1" if name == "openai" else "")
        return Upstream(name, BUILT_IN[name], base, CANARY, f"{name.upper()}_API_KEY", price)

    return make


@pytest.fixture
async def meter() -> AsyncIterator[OpenMeter]:
    async with Meter(retry_policy=QUICK).open() as opened:
        yield opened


Opening = Callable[..., AbstractAsyncContextManager["Visit"]]


@dataclass
class Visit:
    """A trial that is open, as an agent on the same machine meets it."""

    trial: TrialMeter
    books: Books
    client: httpx2.AsyncClient

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.trial.port}"

    async def chat(self, **more: Any) -> httpx2.Response:
        body = {"model": "tiny", "messages": [{"role": "user", "content": "hello"}], **more}
        return await self.post("/openai/v1/chat/completions", body)

    async def messages(self, **more: Any) -> httpx2.Response:
        body = {"model": "tiny", "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}], **more}
        return await self.post("/anthropic/v1/messages", body)

    async def post(self, path: str, body: Any, **headers: str) -> httpx2.Response:
        return await self.client.post(self.origin + path, json=body, headers=headers)


@pytest.fixture
def visit(meter: OpenMeter, upstream: Callable[..., Upstream]) -> Opening:
    @asynccontextmanager
    async def opening(
        *names: str,
        books: Books | None = None,
        recordings: Store | None = None,
        place: Place | None = None,
        price: Price | None = PRICE,
        limits: MeterLimits | None = None,
        worked: set[str] | None = None,
        **given: Any,
    ) -> AsyncIterator[Visit]:
        own = books or Books()
        upstreams = [upstream(name, price) for name in names or ("openai", "anthropic", "google")]
        async with (
            Meter(retry_policy=QUICK, limits=limits).open() if limits else nullcontext(meter) as chosen,
            chosen.open_trial(task_of(own, recordings, **given), upstreams, place=place, worked=worked) as trial,
            httpx2.AsyncClient(
                headers={"authorization": f"Bearer {trial.token}"}, trust_env=False, timeout=60
            ) as client,
        ):
            yield Visit(trial, own, client)

    return opening


@pytest.fixture
def recordings(tmp_path: Path) -> Callable[[ReplayMode], Store]:
    return lambda mode: Store(mode, tmp_path / "recordings", Redactor({"OPENAI_API_KEY": CANARY}))
