"""Reach the provider of every subject and judge once before a run, so that a wrong address or key is told at once."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import httpx2

from bakeoff._kernel.text import visible
from bakeoff.engine.registry import ResolvedPlan, needs_of
from bakeoff.errors import InfraError, UsageError
from bakeoff.meter.upstreams import Upstream, key_headers, upstream_of
from bakeoff.models.access import ProviderAccess
from bakeoff.models.clients import http_client
from bakeoff.models.replies import UNREACHED, connection_problem
from bakeoff.protocols import Scorer, Subject

_SECONDS = 5.0
_MODELS = {"openai": "/models", "anthropic": "/v1/models", "google": "/v1beta/models"}
"""Requests that cost nothing, below the base address of a provider."""


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


async def reach(upstream: Upstream) -> InfraError | None:
    """Ask a provider for its models, and return the problem if there is no connection, no answer or a wrong key.

    Without an answer in time, the problem is not permanent: the provider has accepted the connection and may be busy.
    """
    provider, url = upstream.provider, upstream.base_url
    where = f"{provider.name} at {httpx2.URL(url).copy_with(userinfo=b'')}"
    address = provider.base_url_variable or f"the address of {provider.name}"
    headers = {**key_headers(upstream), "user-agent": "bakeoff", "anthropic-version": "2023-06-01"}
    try:
        async with asyncio.timeout(_SECONDS), http_client(url, _SECONDS) as client:
            answer = await client.get(url.rstrip("/") + _MODELS[upstream.family], headers=headers)
    except UNREACHED as error:
        advice = f"check {address}, and that the server runs"
        return InfraError(f"{where}: {connection_problem(error)}: {advice}", permanent=True)
    except (TimeoutError, httpx2.TimeoutException):
        return InfraError(f"{where}: no answer within {_SECONDS:g} s: check {address}, and that the server works")
    except httpx2.HTTPError:  # a server without a list of models may do what it likes
        return None
    refused = f"{where}: 401, the key is refused: check {' or '.join(provider.keys) or 'its key'}"
    return InfraError(refused, permanent=True) if answer.status_code == 401 else None


async def check_reach(resolved: ResolvedPlan, say: Callable[[str], None]) -> None:
    """Reach every provider of a plan once, and say which cannot be used.

    Raise InfraError if a judge's cannot, or that of every subject that is not a control.
    """
    judges = [pair for own in (resolved.scorers, *resolved.of_cases.values()) for pair in own.items()]
    members: list[tuple[str, str, Subject | Scorer]] = [("subject", *pair) for pair in resolved.subjects.items()]
    members += [("judge of scorer", *pair) for pair in judges]
    asked = [(role, name, each) for role, name, member in members for each in upstreams_of(member)]
    distinct = {(each.base_url, each.key): each for *_, each in asked}
    problems = dict(zip(distinct, await asyncio.gather(*map(reach, distinct.values())), strict=True))
    found = {(role, name): problem for role, name, each in asked if (problem := problems[each.base_url, each.key])}
    told = [f"{role} {visible(name)!r}: {problem}" for (role, name), problem in found.items()]
    dead = {key for key, problem in found.items() if problem.permanent}
    nobody = dead and dead >= {("subject", name) for name in resolved.plan.compared}
    if nobody or any(role != "subject" for role, _ in dead):
        raise InfraError("; ".join(told), permanent=True)
    for line in told:
        say(f"{line}; the run goes on")
