"""Reach the provider of every subject and judge once before a run, so that a wrong address or key is told at once."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from bakeoff._kernel.model import fingerprint
from bakeoff._kernel.text import visible
from bakeoff.engine.registry import ResolvedPlan, needs_of
from bakeoff.errors import InfraError, UsageError
from bakeoff.meter.upstreams import Upstream, key_headers, upstream_of
from bakeoff.models.access import ProviderAccess
from bakeoff.models.clients import http_client
from bakeoff.models.replies import UNREACHED, connection_problem

_SECONDS = 5.0
_MODELS = {"openai": "/models", "anthropic": "/v1/models", "google": "/v1beta/models"}
"""Requests that cost nothing, below the base address of a provider."""


@dataclass(frozen=True, slots=True)
class Unreachable:
    """A provider that cannot be used, or that has not answered yet."""

    problem: str
    is_certain: bool = True  # False: it has accepted the connection, and may be busy


def upstreams_of(member: Any) -> Iterable[Upstream]:
    """Yield the providers over HTTP that a subject or scorer uses."""
    if (metered := getattr(member, "upstream", None)) is not None:
        yield metered
    for resource in needs_of(member).resources:
        if isinstance(resource, ProviderAccess):
            try:
                yield upstream_of(resource.provider, resource.environment)
            except UsageError:  # it runs in this process
                continue


async def reach(upstream: Upstream) -> Unreachable | None:
    """Ask a provider for its models. Return the problem if there is no connection, no answer or a wrong key."""
    provider, url = upstream.provider, upstream.base_url
    where = f"{provider.name} at {httpx2.URL(url).copy_with(userinfo=b'')}"
    address = provider.base_url_variable or f"the address of {provider.name}"
    headers = {**key_headers(upstream), "user-agent": "bakeoff", "anthropic-version": "2023-06-01"}
    try:
        async with asyncio.timeout(_SECONDS), http_client(url, _SECONDS) as client:
            answer = await client.get(url.rstrip("/") + _MODELS[upstream.family], headers=headers)
    except UNREACHED as error:
        return Unreachable(f"{where}: {connection_problem(error)}: check {address}, and that the server runs")
    except (TimeoutError, httpx2.TimeoutException):
        waited = f"no answer within {_SECONDS:g} s: check {address}, and that the server works"
        return Unreachable(f"{where}: {waited}", is_certain=False)
    except httpx2.HTTPError:  # a server that knows no list of models may do what it likes
        return None
    key = " or ".join(provider.keys) or "its key"
    return Unreachable(f"{where}: 401, the key is refused: check {key}") if answer.status_code == 401 else None


@dataclass(frozen=True, slots=True)
class ReachedProvider:
    """A resource that opens if a provider can be used. Raises InfraError otherwise."""

    upstream: Upstream
    who: str

    @property
    def key(self) -> str:
        """Return the key of the resource in this process."""
        return f"reached:{fingerprint(self.upstream.base_url, self.upstream.key)[:8]}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Reach the provider once."""
        if (found := await reach(self.upstream)) is not None and found.is_certain:
            raise InfraError(f"{self.who}: {found.problem}", permanent=True)
        yield


async def unreachable_members(members: Iterable[tuple[str, Any]]) -> dict[str, Unreachable]:
    """Return the named members whose provider cannot be used. Each provider is asked once."""
    asked = [(name, each) for name, member in members for each in upstreams_of(member)]
    distinct = {(each.base_url, each.key): each for _, each in asked}
    problems = dict(zip(distinct, await asyncio.gather(*map(reach, distinct.values())), strict=True))
    found = {name: problems[each.base_url, each.key] for name, each in asked}
    return {name: problem for name, problem in found.items() if problem is not None}


async def check_reach(resolved: ResolvedPlan, say: Callable[[str], None]) -> None:
    """Say which providers of a plan cannot be used. Raise InfraError if a judge's or every subject's cannot."""
    subjects = [(f"subject {visible(name)!r}", each) for name, each in resolved.subjects.items()]
    scorers = (resolved.scorers, *resolved.of_cases.values())
    judges = [(f"judge of scorer {visible(name)!r}", each) for own in scorers for name, each in own.items()]
    found = await unreachable_members([*subjects, *judges])
    certain = {name for name, each in found.items() if each.is_certain}
    told = [f"{name}: {each.problem}" for name, each in found.items()]
    if any(name in certain for name, _ in judges) or (subjects and all(name in certain for name, _ in subjects)):
        raise InfraError(f"nothing was run: {'; '.join(told)}")
    for line in told:
        say(f"{line}; the run goes on")
