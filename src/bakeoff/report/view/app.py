"""Serve the index (`/`) and runs (`/runs/NAME`) on loopback, with live changes at `…/events`.

Other web pages in the same browser can send requests here, so `Guard` requires our token.
"""

import asyncio
import itertools
import json
import logging
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from time import monotonic
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bakeoff._kernel.files import open_file
from bakeoff._kernel.http_server import HOST, ServerLimits, no_proxy, server_config
from bakeoff._kernel.temporary import temporary_folder
from bakeoff._kernel.text import count_of, visible
from bakeoff._kernel.threads import call
from bakeoff.errors import BakeoffError, RunFolderError, UsageError
from bakeoff.plan import PassRule, Plan
from bakeoff.record import Record
from bakeoff.report.render.html.index_page import (
    IndexEntry,
    index_rows,
    read_entries,
    read_entry,
    write_index,
    write_leaderboard,
)
from bakeoff.report.render.html.render import ServedPages
from bakeoff.report.render.html.run_data import read_plan
from bakeoff.report.render.html.run_page import Parts, no_parts, write_run_page
from bakeoff.storage.blobs import Blobs
from bakeoff.storage.journal import JournalMark, SpentTokens, read_line
from bakeoff.storage.journal_lines import Damage, lines_forwards
from bakeoff.storage.run_folder import RunFolder, run_folders
from bakeoff.verdict import Round, Verdict, case_score

State = Literal["running", "ended", "incomplete", "stopped"]
_ONE_BY_ONE = PassRule(gate="share")  # of cases without a rule of their own


class LiveProgress:
    """The progress of a run. `update` reads new lines; `news` returns the numbers."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.plan: Plan = read_plan(folder)
        self._planned = folder.plan_file.stat().st_mtime_ns
        self._at = 0  # how much of the journal has been read
        self._outcomes: dict[int, Round] = {}  # of each trial, by its latest record
        self._cost: float | None = None
        self._ending: str | None = None
        self._damaged = 0  # lines that cannot be read
        self._told: dict[str, Any] | None = None  # the event that the listener got last

    def update(self) -> bool:
        """Read new lines; return True if there were any."""
        before = self._at
        if (planned := self.folder.plan_file.stat().st_mtime_ns) != self._planned:
            self._planned, self.plan = planned, read_plan(self.folder)
            self._forget()  # scores by the old plan no longer count
        for raw in self._new_lines():
            entry = read_line(raw, 0, Blobs(self.folder.path / "blobs"))
            match entry:
                case Record():
                    trial = entry.trial_in(self.plan)
                    if trial is not None and entry.needs_score(trial):
                        self._outcomes.pop(trial.index, None)
                    elif trial is not None:
                        self._outcomes[trial.index] = entry.judged()
                case SpentTokens():
                    self._cost = entry.total.cost
                case Damage():
                    self._damaged += 1  # the report says which
                case JournalMark(kind="start"):
                    self._ending = None
                case JournalMark(kind="end"):
                    self._ending = visible(str(entry.facts.get("reason", "ended")))
        return self._at != before

    def _forget(self) -> None:
        self._at, self._outcomes, self._cost, self._ending, self._damaged = 0, {}, None, None, 0

    def _new_lines(self) -> Iterator[bytes | None]:
        """Yield the new complete lines; the last one may still be incomplete."""
        if not self.folder.started:
            return
        with open_file(self.folder.journal_file) as journal:
            if journal.seek(0, os.SEEK_END) < self._at:
                self._forget()  # the journal was replaced
            journal.seek(self._at)
            for _, raw in lines_forwards(journal):
                self._at = journal.tell()
                yield raw

    def next_event(self) -> bytes | None:
        """Return the next event for the only listener; None if nothing changed."""
        self.update()
        news = self.news()
        if news == self._told:
            return None
        self._told = news
        return event("progress", news)

    def news(self) -> dict[str, Any]:
        """Return all numbers, for a new listener."""
        running = self.folder.is_being_written()
        state = self._state(running=running)
        damage = f" {count_of(self._damaged, 'damaged line')} left out of these numbers." if self._damaged else ""
        return {
            "state": state,
            "words": self._words(state) + damage,
            "planned": len(self._outcomes) if self.plan.sparse else self.plan.size,
            "finished": len(self._outcomes),
            "cost": self._cost,
            "subjects": [self._subject(place) for place in range(len(self.plan.subjects))],
        }

    def _state(self, *, running: bool) -> State:
        if running:
            return "running"
        if self._ending is None and self.folder.started:
            return "stopped"
        counted = sum(outcome.verdict.counts for outcome in self._outcomes.values())
        planned = len(self._outcomes) if self.plan.sparse else self.plan.size
        return "ended" if counted == planned else "incomplete"

    def _words(self, state: State) -> str:
        match state:
            case "running":
                return "The run goes on."
            case "stopped":
                way_out = f"continue with `bakeoff resume {visible(self.folder.name)}`"
                return f"The run was stopped before its end; {way_out}."
            case _:
                return f"The run has ended: {self._ending or 'it never started'}."

    def _subject(self, place: int) -> dict[str, Any]:
        width, cases = len(self.plan.subjects), len(self.plan.cases)
        mine = {index: outcome for index, outcome in self._outcomes.items() if index % width == place}
        rounds: dict[int, list[Round]] = {}
        for index, outcome in mine.items():
            rounds.setdefault(index // width % cases, []).append(outcome)
        found = (case_score(self.plan.cases[at].rule_over_rounds or _ONE_BY_ONE, each) for at, each in rounds.items())
        scores = [score for score in found if score is not None]
        verdicts = [outcome.verdict for outcome in mine.values()]
        return {
            "name": visible(self.plan.subjects[place].name),
            "planned": len(mine) if self.plan.sparse else cases * self.plan.rounds,
            "finished": len(mine),
            "passed": verdicts.count(Verdict.PASS),
            "lost": sum(not verdict.counts for verdict in verdicts),
            "score": sum(scores) / len(scores) if scores else None,
        }


def event(name: str, news: dict[str, Any]) -> bytes:
    """Return a server-sent event; compact JSON has no newlines."""
    return f"event: {name}\ndata: {json.dumps(news, allow_nan=False)}\n\n".encode()


RUNS = "/runs/"
_REST = 3  # pause for this many times the reading time, so that a long run takes at most a quarter of a core


class Look(NamedTuple):
    """The state of a run's files, taken before the run itself is read."""

    plan: int  # when it was written: scoring again writes a new plan
    size: int
    changed: int
    running: bool


def look_at(results: Path) -> dict[str, Look]:
    """Return the state of every readable run."""
    looks = {}
    for folder in run_folders(results):
        try:
            looks[folder.name] = look_into(folder)
        except (OSError, BakeoffError):  # just deleted, or not readable for us
            continue
    return looks


def look_into(folder: RunFolder) -> Look:
    """Return the state of a run's files, without reading them."""
    running = folder.is_being_written()  # first, because later writes change the size
    plan = folder.plan_file.stat()
    found = folder.journal_file.stat() if folder.started else plan
    return Look(plan.st_mtime_ns, found.st_size, found.st_mtime_ns, running)


class FolderWatch:
    """The changes of a results folder, for one listener."""

    def __init__(self, results: Path, seen: dict[str, Look]) -> None:
        self._results = results
        self._seen = dict(seen)
        self._rest: dict[str, float] = {}  # until when a run is left alone

    def news(self) -> bytes | None:
        """Return the rows of new and changed runs, and the names of deleted ones."""
        looks = look_at(self._results)
        gone = sorted(self._seen.keys() - looks.keys())
        for name in gone:
            del self._seen[name]
        entries = [entry for name, look in looks.items() if (entry := self._changed(name, look))]
        if not gone and not entries:
            return None
        forgotten = [RunFolder(Path(name)).label for name in gone]
        return event("runs", {**index_rows(entries, ServedPages(home="/", reports=RUNS)), "gone": forgotten})

    def _changed(self, name: str, look: Look) -> IndexEntry | None:
        began = monotonic()
        if self._seen.get(name) == look or began < self._rest.get(name, 0.0):
            return None
        self._seen[name] = look
        try:
            entry = read_entry(next(run for run in run_folders(self._results) if run.name == name))
        except (BakeoffError, StopIteration):  # the page names it when it is loaded again; or it is deleted just now
            return None
        self._rest[name] = monotonic() + _REST * (monotonic() - began)
        return entry


HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
TOKEN = "token"  # noqa: S105 - the name of the parameter


@dataclass(frozen=True, slots=True)
class Guard:
    """A layer around the application that lets only authorised requests through."""

    app: ASGIApp
    port: int
    token: str
    command: str = "bakeoff view"  # that printed the address
    takes_posts: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # there are no websockets here

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        answer = self._answer(Request(scope))
        with suppress(ClientDisconnect):
            await (answer or self.app)(scope, receive, send_guarded)

    def _answer(self, request: Request) -> Response | None:
        """Return the refusal, or None to let the request through."""
        if refusal := self._refusal(request):
            return PlainTextResponse(f"refused: {refusal}\n", HTTPStatus.FORBIDDEN)
        given = request.query_params.get(TOKEN)
        if given is not None and self._is_token(given):
            # Replace the token in the address by a cookie, so that it stays out of history and links.
            rest = urlencode([(name, value) for name, value in parse_qsl(request.url.query) if name != TOKEN])
            # Two slashes at the start would be another site's address.
            path = "/" + request.url.path.lstrip("/")
            response = RedirectResponse(path + (f"?{rest}" if rest else ""), HTTPStatus.SEE_OTHER)
            response.set_cookie(self.cookie, self.token, httponly=True, samesite="strict", path="/")
            return response
        if self._is_token(request.cookies.get(self.cookie, "")):
            return None
        return PlainTextResponse(f"refused: open the address that `{self.command}` printed\n", HTTPStatus.FORBIDDEN)

    def _refusal(self, request: Request) -> str | None:
        posts = self.takes_posts and request.method == "POST"
        if request.method not in ("GET", "HEAD") and not posts:
            return "this server only shows"
        if request.headers.getlist("host") not in [[name] for name in self.names]:
            return "the Host header is not this server's name"
        origin = request.headers.get("origin")
        if origin is not None and origin not in [f"http://{name}" for name in self.names]:
            return "another site asked"
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "another site asked"
        if posts and (origin is None or request.headers.get("content-type") != "application/json"):
            return "only this page may change anything"
        return None

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self.token.encode())

    @property
    def cookie(self) -> str:
        """Return the name of the cookie that holds the token."""
        return f"bakeoff-{self.port}"

    @property
    def names(self) -> tuple[str, ...]:
        """Return the host names that a request to this server may use."""
        return (f"127.0.0.1:{self.port}", f"localhost:{self.port}")


LEADERBOARD = "/leaderboard"
POLL_SECONDS = 0.5
INDEX_POLL_SECONDS = 1.0  # checking a thousand runs takes a twentieth of that
_HEARTBEAT = 20  # polls without news, after which a sign of life is sent
_MAX_PAGES = 100  # open index pages whose contents are remembered


class Pages:
    """Make pages on request. A run's page is cached until its files change."""

    def __init__(self, results: Path, folder: Path, parts: Parts = no_parts) -> None:
        self._results = results
        self._folder = folder
        self._parts = parts
        self._made: dict[str, tuple[Look, Path]] = {}
        self._seen: dict[str, dict[str, Look]] = {}  # what each index page shows
        self._ranked: dict[str, Look] | None = None  # what the leaderboard shows
        self._numbers = itertools.count()
        self._making = asyncio.Lock()  # one at a time: a large run takes all of one core

    async def index(self) -> Path:
        """Return the index; its events start with the changes since the page was made."""
        async with self._making:
            seen = await call(look_at, self._results)  # first, so that changes in the meantime are sent again
            number = str(next(self._numbers))
            self._seen[number] = seen
            if len(self._seen) > _MAX_PAGES:
                del self._seen[next(iter(self._seen))]
            served = ServedPages(home="/", reports=RUNS, events=f"/events?page={number}", leaderboard=LEADERBOARD)
            path = self._folder / "index.html"
            made: Path = await call(partial(write_index, path, read_entries(self._results), served=served))
            return made

    async def leaderboard(self) -> Path:
        """Return the leaderboard over all readable runs, made again when a run has changed."""
        async with self._making:
            seen = await call(look_at, self._results)
            path = self._folder / "leaderboard.html"
            if seen != self._ranked:
                served = ServedPages(home="/", reports=RUNS)
                await call(partial(write_leaderboard, self._results, path, served=served))
                self._ranked = seen
            return path

    async def run(self, name: str) -> Path:
        """Return the page of a run, made again if its files have changed."""
        folder = self.find(name)
        async with self._making:
            version = look_into(folder)
            kept = self._made.get(name)
            if kept is None or kept[0] != version:
                path = self._folder / f"{len(self._made) if kept is None else kept[1].stem}.html"
                served = ServedPages(home="/", events=f"/runs/{quote(name)}/events")
                made = await call(partial(write_run_page, folder, path, parts=self._parts, served=served))
                kept = (version, made)
                self._made[name] = kept
        return kept[1]

    def find(self, name: str) -> RunFolder:
        """Find a run by comparing names, so that the text of a request is never used as a path."""
        found = next((folder for folder in run_folders(self._results) if folder.label == name), None)
        if found is None:
            raise RunFolderError("there is no such run")
        return found

    async def show(self, request: Request) -> Response:
        """Answer with the page of an address: the index, the leaderboard or a run."""
        if name := request.path_params.get("name"):
            page = self.run(name)
        else:
            page = self.leaderboard() if request.url.path == LEADERBOARD else self.index()
        return FileResponse(await page, media_type="text/html")

    async def index_events(self, request: Request) -> Response:
        """Stream the changes since a page was made, or all runs for a page that is no longer known."""
        watch = FolderWatch(self._results, self._seen.get(request.query_params.get("page", ""), {}))
        return StreamingResponse(_stream(watch.news, INDEX_POLL_SECONDS), media_type="text/event-stream")

    async def run_events(self, request: Request) -> Response:
        """Send the progress of a run while it is written."""
        progress: LiveProgress = await call(LiveProgress, self.find(request.path_params["name"]))
        return StreamingResponse(_stream(progress.next_event, POLL_SECONDS), media_type="text/event-stream")


def make_app(results: Path, port: int, token: str, *, parts: Parts = no_parts) -> Guard:
    """Return the application behind its guard. Pages are made in a temporary folder, which is removed with it.

    Args:
        results: the folder whose runs are shown.
        port: the port that the server listens on.
        token: the token that a request must carry.
        parts: makes the sections that doors add to the page of a run.
    """
    until_end = ExitStack()
    pages = Pages(results, until_end.enter_context(temporary_folder("bakeoff-view-")), parts)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:  # noqa: ARG001 - starlette's shape
        with until_end:
            yield

    routes = [
        Route("/", pages.show),
        Route("/events", pages.index_events),
        Route(LEADERBOARD, pages.show),
        Route("/runs/{name}", pages.show),
        Route("/runs/{name}/events", pages.run_events),
    ]
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={BakeoffError: _refused})
    return Guard(app, port, token)


async def _stream(news: Callable[[], bytes | None], pause: float) -> AsyncIterator[bytes]:
    """Yield changes while a client listens. There is no end, because a killed run may be resumed."""
    quiet = 0
    while True:
        try:
            event = await call(news)
        except (OSError, RunFolderError):  # the folder was deleted
            return
        if event is not None:
            quiet = 0
            yield event
        elif (quiet := quiet + 1) >= _HEARTBEAT:
            quiet = 0
            yield b": still here\n\n"
        await asyncio.sleep(pause)


async def _refused(request: Request, error: Exception) -> Response:  # noqa: ARG001 - starlette's shape
    return PlainTextResponse(f"{error}\n", HTTPStatus.NOT_FOUND)


Make = Callable[[int, str, Callable[[], None]], ASGIApp]
"""A function that makes an application from a port, a token, and a function that stops the server."""


def serve(results: Path, port: int, ready: Callable[[str], None], *, parts: Parts = no_parts) -> None:
    """Serve until Ctrl-C. `ready` receives the address once it answers; `parts` adds the doors' sections to pages."""
    serve_app(lambda bound, token, _: make_app(results, bound, token, parts=parts), port, ready)


def serve_app(make: Make, port: int, ready: Callable[[str], None]) -> None:
    """Serve an application on a loopback socket until Ctrl-C, or until it stops the server itself.

    Port 0 picks a free port. `ready` receives the address, with its token, once the server answers.
    Raises `UsageError` if the port is taken.
    """
    with _listen(port) as listening:
        bound: int = listening.getsockname()[1]
        token = secrets.token_urlsafe(24)

        def stop() -> None:
            server.should_exit = True

        # Event streams never end by themselves.
        app = no_proxy(make(bound, token, stop))
        config = server_config(app, ServerLimits(), log_level="error", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        ready(f"http://{HOST}:{bound}/?{TOKEN}={token}")
        # Ctrl-C cuts off streams and pages that are being made, which is not an error to report.
        logging.getLogger("uvicorn.error").addFilter(lambda _: not server.should_exit)
        server.run(sockets=[listening])


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise UsageError(f"port {port} cannot be used: {reason}; leave --port out to take a free one") from error
