"""The state of the meter: token, addresses, budget and transcript per trial, and shared data.

Agents reach the meter at a loopback port or, from sandboxes without network, at a Unix socket.

All trials share limits, clients, rate limits, prices, and the budget for current requests.
"""

import asyncio
import json
import os
import secrets
import shutil
import socket
import stat
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any, Protocol

import httpx2
from pydantic import JsonValue

from bakeoff._kernel.clock import Clock
from bakeoff._kernel.http_server import HOST, ServerLimits, serving
from bakeoff._kernel.model import fingerprint
from bakeoff.errors import BakeoffError, BudgetError, InfraError
from bakeoff.meter.upstreams import Upstream, UpstreamRequest
from bakeoff.meter.wire_formats import MAX_TOKENS, ModelAnswer, WireToolResult, characters_in, data_in, objects_in
from bakeoff.models.clients import http_client
from bakeoff.models.estimate import CHARS_PER_TOKEN
from bakeoff.models.gateway import PriceBook
from bakeoff.models.prices import Price, cost_of
from bakeoff.models.rate_limit import RateLimiter, RetryPolicy, slots_of
from bakeoff.protocols import BUDGET, Task
from bakeoff.record import NO_USAGE, Step, ToolCall, Transcript, Usage
from bakeoff.replay.metered import KIND, exchange_key
from bakeoff.replay.store import Key, Store
from bakeoff.storage.redaction import CUT, Redactor

PREFIX, SOCKET, FORWARDER = "bakeoff-meter-", "meter", "forward.py"
FRESH_SECONDS = 60.0  # a new folder may not have a listener yet
_RUN = Path("/run/bakeoff")
_MAX_PATH_LENGTH = 72  # a socket's path may have about 100 characters


@asynccontextmanager
async def listen(app: Any, uid: int | None, limits: ServerLimits) -> AsyncIterator[tuple[int, Path]]:
    """Serve at a port and a socket during the block. The user `uid` may use the socket too."""
    folder = make_folder()
    try:
        port = socket.create_server((HOST, 0), backlog=limits.connections)
        async with serving(app, (port, unix_socket(folder / SOCKET, uid)), limits):
            yield port.getsockname()[1], folder
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def runtime_folder() -> Path:
    """Return a folder for sockets with a short path, preferably outside of `/tmp`."""
    if sys.platform == "linux" and os.geteuid() == 0:
        with suppress(OSError):
            _RUN.mkdir(mode=0o755, exist_ok=True)
    own = os.environ.get("XDG_RUNTIME_DIR", "")
    wanted = [_RUN, *([Path(own)] if own.startswith("/") else []), Path(tempfile.gettempdir())]
    usable = [path for path in wanted if os.access(path, os.W_OK | os.X_OK) and len(str(path)) <= _MAX_PATH_LENGTH]
    return next(iter(usable), Path("/tmp"))  # noqa: S108 - what is made there is made with a random name


def make_folder() -> Path:
    """Make a folder that others may enter but not list, with the forwarder for sandboxes."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=runtime_folder())).resolve()
    folder.chmod(0o711)
    script = folder / FORWARDER
    script.write_bytes(Path(__file__).with_name(FORWARDER).read_bytes())
    script.chmod(0o644)
    return folder


def unix_socket(path: Path, uid: int | None) -> socket.socket:
    """Return a bound socket that only this user and the user `uid` may use."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(path))
    path.chmod(0o600)
    if uid is not None:
        os.chown(path, uid, uid)
    return listening


def sweep() -> None:
    """Remove the folders of killed processes, whose sockets nobody listens on."""
    for folder in runtime_folder().glob(f"{PREFIX}*"):
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            found = folder.lstat()
            fresh = time.time() - found.st_mtime < FRESH_SECONDS
            if fresh or not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
                continue
            try:
                probe.connect(str(folder / SOCKET))
            except ConnectionRefusedError:
                shutil.rmtree(folder, ignore_errors=True)


USUAL_OUTPUT = 4096  # tokens of an answer without a limit
_BOUNDS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_MAX_CHOICES = 128

MAX_STEPS = 2000
MAX_RESULT = 20_000  # characters of one tool result
MAX_TOOLS = 1000
MAX_CHARACTERS = 8_000_000  # of all parts together; beyond this, keep only counts
INSIDE_PORT = 4141
"""The meter's port inside a sandbox without a network. It is fixed, so that all trials look alike."""
# Longer waits for a provider count as the trial's own time, so that agents cannot exploit them.
MAX_EXCUSED_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class MeterLimits:
    """The limits for an agent and its provider in the meter of one trial."""

    body_bytes: int = 32 << 20  # of one request
    held_bytes: int = 64 << 20  # of all requests together
    exchanges: int = 24  # at one time
    head_seconds: float = 20.0  # to the end of a request's headers
    body_seconds: float = 60.0  # for a complete request
    taking_seconds: float = 120.0  # to read a part of an answer, since a slow reader holds a slot
    event_bytes: int = 16 << 20  # of one event of a stream
    connections: int = 64

    @property
    def of_server(self) -> ServerLimits:
        """Return the limits of the HTTP server, so wide that the meter's own are reached first."""
        return ServerLimits(self.connections, self.head_seconds, self.body_seconds + 5, self.taking_seconds + 5)


class SharedMeter:
    """Clients and rate limits by provider address, and the reservations of all open requests."""

    def __init__(self, limits: MeterLimits, policy: RetryPolicy, most_in_flight: int, stack: AsyncExitStack) -> None:
        self.limits = limits
        self.prices = PriceBook()
        self.redactor = Redactor({})
        self.clients: dict[str, httpx2.AsyncClient] = {}
        self.rate_limiters: dict[str, RateLimiter] = {}
        self._policy = policy
        self._most_in_flight = most_in_flight
        self._stack = stack
        self._keys: dict[str, str] = {}
        self._held: dict[object, Usage] = {}
        self._freed = asyncio.Event()

    async def prepare(self, upstream: Upstream) -> None:
        """Open the client of a provider, and keep its key out of everything passed on."""
        address = upstream.base_url
        if address not in self.clients:
            self.clients[address] = await self._stack.enter_async_context(http_client(address, None))
            self.rate_limiters[address] = RateLimiter(
                self._most_in_flight, self._policy, slots_of(f"meter/{address}", self._most_in_flight)
            )
        if upstream.key and upstream.key not in self._keys.values():
            self._keys[f"{upstream.key_name}{'_' * len(self._keys)}"] = upstream.key
            self.redactor = Redactor(self._keys)

    @asynccontextmanager
    async def reserve(self, limit: "SpendingLimit | None", most: Usage, excused: Clock | None) -> AsyncIterator[None]:
        """Reserve budget for a request, so that parallel requests do not exceed the budget.

        Wait until the request fits. If little budget is left, requests are made one by one.

        Args:
            limit: The budget of the run, if any.
            most: The most that the request may use.
            excused: A clock to pause during the wait.

        Raises:
            BudgetError: The budget is used up.
        """
        if limit is None:
            yield
            return
        if not self._has_room(limit, most):
            with excused.paused() if excused else nullcontext():
                while not self._has_room(limit, most):
                    await self._freed.wait()
        mine = object()
        self._held[mine] = most
        try:
            yield
        finally:
            del self._held[mine]
            self._freed.set()
            self._freed = asyncio.Event()

    def _has_room(self, limit: "SpendingLimit", most: Usage) -> bool:
        if reason := limit.exceeded():
            raise BudgetError(reason)
        if not self._held:
            return True
        known = all(usage.cost is not None for usage in (most, *self._held.values()))
        total = sum(self._held.values(), start=most)
        return limit.fits(total if known else total.model_copy(update={"cost": None}))


class SpendingLimit(Protocol):
    """The remaining budget of the run."""

    def exceeded(self) -> str | None:
        """Return the limit that was reached; None if budget is left."""

    def fits(self, more: Usage) -> bool:
        """Return True if this usage is within the limits. Unknown costs exceed any cost limit."""


def most_of(data: Mapping[str, Any], price: Price | None) -> Usage:
    """Return the maximum usage of a request: the estimated prompt and the longest answer."""
    wanted = [data.get(name) for name in _BOUNDS] + [data_in(data.get("generationConfig")).get("maxOutputTokens")]
    bound = max((count for count in wanted if isinstance(count, int) and 0 < count <= MAX_TOKENS), default=0)
    choices = data.get("n")
    times = choices if isinstance(choices, int) and 0 < choices <= _MAX_CHOICES else 1
    prompt = ceil(characters_in(data) / CHARS_PER_TOKEN)
    usage = Usage(requests=1, input=prompt, output=(bound or USUAL_OUTPUT) * times)
    return usage.model_copy(update={"cost": cost_of(usage, price)})


@dataclass(slots=True)
class TrialLog:
    """The exchanges so far. They can be read at any time, even after a kill."""

    steps: list[Step] = field(default_factory=list)
    usage: Usage = NO_USAGE
    output: str = ""
    models: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    too_large: int = 0  # requests that the provider refused for their own size
    tools: dict[str, str] = field(default_factory=dict)
    characters: int = 0
    _open_calls: dict[str, tuple[int, int]] = field(default_factory=dict)  # the places of calls without a result

    def offer(self, tools: Iterable[tuple[str, Any]]) -> None:
        """Note the tools that a request offers. Changed versions of a tool are kept too."""
        for name, tool in tools:
            digest = fingerprint(tool)[:16]
            known = self.tools.get(name)
            if known is None and len(self.tools) < MAX_TOOLS:
                self.tools[name] = digest
            elif known is not None and digest not in known and len(known) < 160:
                self.tools[name] = f"{known} {digest}"

    def resolve(self, results: Iterable[WireToolResult]) -> None:
        """Add results to their calls. Requests repeat them, so only the first result counts."""
        for result in results:
            where = self._open_calls.pop(result.id, None) if isinstance(result.id, str) else None
            if where is None:
                continue
            text = _shown(result.content)
            self.characters += len(text)
            told = {"error": text} if result.failed else {"result": text}
            step, place = self.steps[where[0]], where[1]
            parts = [part.model_copy(update=told) if at == place else part for at, part in enumerate(step.parts)]
            self.steps[where[0]] = step.model_copy(update={"parts": tuple(parts)})

    def add(self, step: Step, model: str, answer: ModelAnswer, **how: bool) -> None:
        """Add a paid exchange. Count the flags in `how` that are True, such as `replayed`."""
        self.usage += step.usage
        self.models[model] += 1
        self.notes.update(name for name, true in {**how, "unpriced": step.usage.cost is None}.items() if true)
        self.output = answer.text() or self.output
        self.characters += answer.characters
        if len(self.steps) >= MAX_STEPS:
            self.notes["dropped"] += 1
        elif self.characters > MAX_CHARACTERS:
            self.notes["shortened"] += 1
            self.steps.append(step.model_copy(update={"parts": ()}))
        else:
            self.steps.append(step)
            calls = {part.id: place for place, part in enumerate(step.parts) if isinstance(part, ToolCall) and part.id}
            self._open_calls.update({id: (len(self.steps) - 1, place) for id, place in calls.items()})

    def transcript(self) -> Transcript:
        """Return a transcript. Its metadata counts models, tools, notes and errors."""
        about: dict[str, JsonValue] = {
            "exchanges": sum(self.models.values()),
            "models": dict(self.models),
            "tools": dict(self.tools),
            **dict(self.notes),
        }
        if self.too_large:
            about["too_large"] = self.too_large
        if self.statuses:
            about["errors"] = {str(status): count for status, count in sorted(self.statuses.items())}
        told: dict[str, JsonValue] = {"metered": True, "meter": about}
        told |= {name: True for name in ("replayed", "recorded") if self.notes[name]}  # keys that all reports use
        return Transcript(output=self.output, steps=tuple(self.steps), usage=self.usage, metadata=told)


def _shown(content: object) -> str:
    """Return a tool result as text, cut to a limit. Text parts are joined."""
    if isinstance(content, list):
        texts = [part["text"] for part in objects_in(content) if isinstance(part.get("text"), str)]
        content = "\n".join(texts) if texts else content
    text = content if isinstance(content, str) else json.dumps(content)
    return text if len(text) <= MAX_RESULT else text[:MAX_RESULT] + CUT


@dataclass(frozen=True, slots=True)
class MeterAccess:
    """How a sandboxed agent reaches its meter: command prefix, address and readable paths."""

    argv_prefix: tuple[str, ...]
    origin: str
    readable: tuple[Path, ...]
    network: bool  # False: the command can reach only the meter

    def wrap(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Return the command with the prefix that starts the forwarder, if one is needed."""
        return (*self.argv_prefix, *argv)


@dataclass(slots=True)
class TrialMeter:
    """The meter of one trial. It listens at `port` and in `folder`; see `access`."""

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
    free_failure: InfraError | None = None  # why a free request failed, which may stop an agent
    _stopped: asyncio.Event = field(default_factory=asyncio.Event)
    _asked: dict[str, int] = field(default_factory=dict)

    # --- for the subject that runs the agent ------------------------------------------------------------------------

    def transcript(self) -> Transcript:
        """Return the transcript so far, without secrets."""
        return self.meter.redactor.model(self.log.transcript())

    async def stopped(self) -> BakeoffError:
        """Wait until the meter stops, and return why, so that the agent can be ended."""
        await self._stopped.wait()
        assert self.failure is not None, "the reason is set before the event"
        return self.failure

    def check(self) -> None:
        """Raise the error that stopped the trial. If no model answered, free requests count too."""
        if self.failure is not None:
            raise self.failure
        if self.free_failure is not None and not self.worked:
            raise self.free_failure

    def access(self, sandbox: str, *, network: bool = False) -> MeterAccess:
        """Return how an agent in a sandbox reaches the meter.

        Args:
            sandbox: The name of the sandbox.
            network: The agent may use the network as well.
        """
        if sandbox == "process" or network:
            return MeterAccess((), f"http://{HOST}:{self.port}", (), network=network)
        script, socket = str(self.folder / FORWARDER), str(self.folder / SOCKET)
        python = "python3" if sandbox == "docker" else sys.executable  # an image has its own
        prefix = (python, "-I", "-S", script, socket, str(INSIDE_PORT))
        return MeterAccess(prefix, f"http://{HOST}:{INSIDE_PORT}", (self.folder,), network=False)

    def base_url(self, access: MeterAccess, upstream: str) -> str:
        """Return the base URL of a provider for the agent."""
        return access.origin + self.upstreams[upstream].base_path

    # --- for exchanges ----------------------------------------------------------------------------------------------

    @property
    def clock(self) -> Clock:
        """Return the clock to pause during waits for a provider.

        After `MAX_EXCUSED_SECONDS`, return another clock, so that waits count as the trial's time.
        """
        waited = self.task.clock.waited
        return self.task.clock if waited < MAX_EXCUSED_SECONDS else Clock(MAX_EXCUSED_SECONDS)

    def reserve(self, most: Usage) -> AbstractAsyncContextManager[None]:
        """Reserve budget for a request. Waits for other trials do not count as the trial's time."""
        clock = self.clock if len(self.exchanges) <= 1 else None
        return self.meter.reserve(self.task.resources.get(BUDGET), most, clock)

    def question(self, asked: UpstreamRequest) -> Key:
        """Return the key for recording the request."""
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
        """Report usage to the run. The answer is delivered even if it exceeds the budget."""
        if not cut and self.failure is not None and _may_pass(self.failure):
            self.failure = None
        try:
            self.task.spend(usage)
        except BakeoffError as error:
            self.stop(error)

    def stop(self, error: BakeoffError) -> None:
        """Stop the trial. A permanent error stays; the next answer clears a temporary one."""
        if self.failure is None or (_may_pass(self.failure) and not _may_pass(error)):
            self.failure = error
        if not _may_pass(self.failure):
            self._stopped.set()

    @property
    def out_of_budget(self) -> str | None:
        """Return a message for the agent if the run's budget is used up, or None."""
        spent = isinstance(self.failure, BudgetError)
        return f"the budget of this run is used up: {self.failure}" if spent else None

    async def end_exchanges(self) -> None:
        """Invalidate the token, cancel all exchanges, and wait until usage is recorded."""
        self.closed = True
        for exchange in self.exchanges:
            exchange.cancel()
        await asyncio.gather(*self.exchanges, return_exceptions=True)


def _may_pass(error: BakeoffError) -> bool:
    return isinstance(error, InfraError) and not error.permanent
