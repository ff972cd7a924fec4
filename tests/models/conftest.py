"""What tests of models share: a provider on loopback, and a run that asks it."""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bakeoff.plan import Limits, SubjectSpec
from bakeoff.record import Record

from .loopback import KEY, PRICE, Loopback, plan_of


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The test begins in an empty folder, with a cache of its own and without this machine's keys."""
    for name in ("OPENAI", "ANTHROPIC", "GEMINI", "GOOGLE", "DEEPSEEK", "AI_GATEWAY", "OPENROUTER", "GROQ", "XAI"):
        for end in ("API_KEY", "BASE_URL", "API_URL"):
            monkeypatch.delenv(f"{name}_{end}", raising=False)
    for name in ("VERCEL_OIDC_TOKEN", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")


@pytest.fixture
def provider(nobody: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    """The provider, and a key for it in the environment."""
    loopback = Loopback()
    loopback.start()
    monkeypatch.setenv("LOOPBACK_API_KEY", KEY)
    yield loopback
    loopback.stop()


@pytest.fixture
def model_spec(provider: Loopback) -> Callable[..., SubjectSpec]:
    """A subject that asks the loopback provider; options are those of the kind."""

    def make(name: str = "m", kind: str = "model", **options: Any) -> SubjectSpec:
        usual: dict[str, Any] = {
            "model": "loopback:tiny",
            "providers": {"loopback": {"base_url": f"{provider.url}/v1", "key_variable": "LOOPBACK_API_KEY"}},
            "price": PRICE,
            "first_wait_seconds": 0.01,
            "longest_wait_seconds": 0.05,
            "patience_seconds": 5.0,
        }
        return SubjectSpec(kind=kind, name=name, options={**usual, **options})

    return make


@pytest.fixture
def ask(
    carry_out: Callable[..., Awaitable[list[Record]]], model_spec: Callable[..., SubjectSpec]
) -> Callable[..., Awaitable[Record]]:
    """Ask the loopback provider one question in a real run; what comes back is the record."""

    async def ask_once(
        *, limits: Limits | None = None, run: dict[str, Any] | None = None, registry: Any = None, **options: Any
    ) -> Record:
        plan = plan_of(model_spec(**options), limits=limits)
        [record] = await carry_out(plan, registry=registry, **{"retries": 0, **(run or {})})
        return record

    return ask_once
