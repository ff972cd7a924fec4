"""Keep the state of the meter for one trial: its token, addresses, budget, and transcript."""

import asyncio
import secrets
import sys
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

from bakeoff._kernel.clock import Clock
from bakeoff._kernel.http_server import HOST
from bakeoff._kernel.model import fingerprint
from bakeoff.errors import BakeoffError, BudgetError, InfraError
from bakeoff.meter.listener import FORWARDER, SOCKET
from bakeoff.meter.shared import SharedMeter
from bakeoff.meter.trial_log import TrialLog
from bakeoff.meter.upstreams import Upstream, UpstreamRequest
from bakeoff.protocols import BUDGET, Task
from bakeoff.record import Transcript, Usage
from bakeoff.replay.metered import KIND, exchange_key
from bakeoff.replay.store import Key, Store

INSIDE_PORT = 4141
"""The meter's port inside a sandbox without a network. It is fixed, so that all trials look alike."""

# Waiting longer for a provider counts against the trial, so that no agent can hide behind a queue.
MAX_EXCUSED_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class MeterAccess:
    """How a sandboxed agent gets to its meter: a prefix for its command, the address, and what must be readable."""

    argv_prefix: tuple[str, ...]
    origin: str
    readable: tuple[Path, ...]
    network: bool  # whether the command needs the network; without it, only the meter can be reached

    def wrap(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        return (*self.argv_prefix, *argv)


@dataclass(slots=True)
class TrialMeter:
    """The meter of one trial. It listens at `port` and in `folder`; `access` says how an agent gets there."""

    meter: SharedMeter
    task: Task
    upstreams: Mapping[str, Upstream]
    store: Store
    worked: set[str] = field(default_factory=set)  # models that have answered this subject in this run
    token: str = field(default_factory=lambda: f"sk-bakeoff-{secrets.token_urlsafe(32)}", repr=False)
    port: int = 0
    folder: Path = Path()
    log: TrialLog = field(default_factory=TrialLog)
    uncounted: set[str] = field(default_factory=set)  # providers that do not accept a request for counts
    exchanges: set[asyncio.Task[None]] = field(default_factory=set)
    closed: bool = False
    held_bytes: int = 0  # of requests that are being read or answered
    failure: BakeoffError | None = None  # why no more requests are made: out of budget, or the provider is unavailable
    free_failure: InfraError | None = None  # why a free request failed, over which an agent may give up
    _stopped: asyncio.Event = field(default_factory=asyncio.Event)
    _asked: dict[str, int] = field(default_factory=dict)

    # --- for whoever runs the agent ---------------------------------------------------------------------------------

    def transcript(self) -> Transcript:
        """Return the transcript so far, without secrets. The run redacts it once more."""
        return self.meter.redactor.model(self.log.transcript())

    async def stopped(self) -> BakeoffError:
        """Wait until no more requests can be made, and return the reason, so that the agent can be ended."""
        await self._stopped.wait()
        assert self.failure is not None, "the reason is set before the event"
        return self.failure

    def check(self) -> None:
        """Raise the error that stopped the trial, if any. Failed free requests count only if no model has answered."""
        if self.failure is not None:
            raise self.failure
        if self.free_failure is not None and not self.worked:
            raise self.free_failure

    def access(self, sandbox: str, *, network: bool = False, python: str | None = None) -> MeterAccess:
        """Return how an agent in a sandbox of this name gets to the meter.

        `network` says whether the agent may use the network besides. `python` is the interpreter inside the sandbox: by
        default ours for `bwrap`, and the image's `python3` for `docker`. An empty text says that the image has none;
        then the agent needs the host's network.
        """
        found = python if python is not None else "python3" if sandbox == "docker" else sys.executable
        if sandbox == "process" or network or not found:
            return MeterAccess((), f"http://{HOST}:{self.port}", (), network=network or not found)
        script, socket = str(self.folder / FORWARDER), str(self.folder / SOCKET)
        prefix = (found, "-I", "-S", script, socket, str(INSIDE_PORT))
        return MeterAccess(prefix, f"http://{HOST}:{INSIDE_PORT}", (self.folder,), network=False)

    def base_url(self, access: MeterAccess, upstream: str) -> str:
        """Return the base URL to give the agent for a provider."""
        return access.origin + self.upstreams[upstream].base_path

    # --- for exchanges ----------------------------------------------------------------------------------------------

    @property
    def clock(self) -> Clock:
        waited = self.task.clock.waited
        return self.task.clock if waited < MAX_EXCUSED_SECONDS else Clock(MAX_EXCUSED_SECONDS)

    def reserve(self, most: Usage) -> AbstractAsyncContextManager[None]:
        """Reserve budget for a request. Waiting for other trials is excused, waiting for one's own requests is not."""
        clock = self.clock if len(self.exchanges) <= 1 else None
        return self.meter.reserve(self.task.resources.get(BUDGET), most, clock)

    def question(self, asked: UpstreamRequest) -> Key:
        """Return the key under which the request is recorded."""
        if self.store.mode == "off":
            return Key(KIND, {}, "")
        task, upstream = self.task, asked.upstream
        trial = {
            "subject": task.subject,
            "case": task.case_id,
            "round": task.round,
            "provider": upstream.provider.name,
            "endpoint": fingerprint(upstream.base_url)[:8],
        }
        path = f"{asked.inner}{':stream' if asked.streams else ''}"
        first = exchange_key(trial, path, asked.data, 0)
        turn = self._asked.get(first.digest, 0)
        self._asked[first.digest] = turn + 1
        return first if turn == 0 else exchange_key(trial, path, asked.data, turn)

    def spend(self, usage: Usage, *, cut: bool) -> None:
        """Report usage to the run. If the budget is exceeded, the answer is still delivered, since it is paid for."""
        if not cut and self.failure is not None and _may_pass(self.failure):
            self.failure = None
        try:
            self.task.spend(usage)
        except BakeoffError as error:
            self.stop(error)

    def stop(self, error: BakeoffError) -> None:
        """Stop the trial. The first permanent error stays; a temporary one is cleared by the next answer."""
        if self.failure is None or (_may_pass(self.failure) and not _may_pass(error)):
            self.failure = error
        if not _may_pass(self.failure):
            self._stopped.set()

    @property
    def out_of_budget(self) -> BudgetError | None:
        return self.failure if isinstance(self.failure, BudgetError) else None

    async def end_exchanges(self) -> None:
        """Cancel all exchanges and wait until their usage is recorded. The token is invalid from now on."""
        self.closed = True
        for exchange in self.exchanges:
            exchange.cancel()
        await asyncio.gather(*self.exchanges, return_exceptions=True)


def _may_pass(error: BakeoffError) -> bool:
    return isinstance(error, InfraError) and not error.permanent
