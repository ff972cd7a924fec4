"""Show answers one by one to a person, and store the labels. The page never receives subject, round or score."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import visible
from bakeoff._kernel.threads import call
from bakeoff.errors import RunFolderError
from bakeoff.plan import Plan, ScorerSpec
from bakeoff.record import SHOWN
from bakeoff.report.formatting import as_text, shown
from bakeoff.report.judges.labelling import SampledAnswer
from bakeoff.report.render.html.render import NAME, Page, ServedPages
from bakeoff.report.view.app import Guard
from bakeoff.scorers.registry import scorer_kinds
from bakeoff.storage.labels import MAX_NOTE_LENGTH, Choice, append_label, read_labels

_MAX_REQUEST_LENGTH = 8 * MAX_NOTE_LENGTH  # bytes


class _LabelForm(FrozenModel):
    """A label as the page sends it. `id` is the place of the answer that was shown."""

    id: int
    label: Choice
    note: str = Field(default="", max_length=MAX_NOTE_LENGTH)


class Labelling:
    """One person's labels of a list of answers, kept in a file: a killed session continues where it stopped."""

    def __init__(self, drawn: Sequence[SampledAnswer], plan: Plan, labels_file: Path, labeller: str) -> None:
        self._drawn = drawn
        self._cases = {case.id: case for case in plan.cases}
        self._criteria = {name: text for name, text in map(_criteria, plan.every_scorer) if text}
        self._file = labels_file
        self._labeller = labeller
        earlier = read_labels(labels_file).by_labeller.get(labeller, {})
        places = {(one.scorer, one.record.attempt_key, one.answer): place for place, one in enumerate(drawn)}
        self._given: dict[int, Choice] = {  # by place, in the order in which they were given
            places[trial]: label.label for trial, label in earlier.items() if trial in places and label.label
        }

    @property
    def place(self) -> int | None:
        """Return the place of the next answer, or None when all have a label."""
        return next((place for place in range(len(self._drawn)) if place not in self._given), None)

    @property
    def left(self) -> int:
        """Return how many answers have no label yet."""
        return len(self._drawn) - len(self._given)

    def give(self, place: int, choice: Choice, note: str) -> None:
        """Store a label for the answer that is shown; ignore labels that were sent twice."""
        if place == self.place:
            self._write(place, choice, note)
            self._given[place] = choice

    def undo(self) -> None:
        """Withdraw the last label, so that its answer is shown again."""
        if self._given:
            place = next(reversed(self._given))
            self._write(place, None, "")
            del self._given[place]

    def state(self) -> dict[str, Any]:
        """Return what the page shows: the progress, and the next answer."""
        counts = Counter(self._given.values())
        totals = {"pass": counts["pass"], "fail": counts["fail"], "skip": counts["skip"]}
        progress = {"done": len(self._given), "count": len(self._drawn), **totals}
        place = self.place
        return {"progress": progress, "answer": None if place is None else {"id": place, **self._shown(place)}}

    def _shown(self, place: int) -> dict[str, Any]:
        one = self._drawn[place]
        case = self._cases[one.record.case]
        files = [{"name": visible(name, NAME), "text": shown(text)} for name, text in one.record.artefacts.items()]
        return {
            "question": shown(case.prompt),
            "reference": shown(as_text(case.expected)),
            "material": shown(_material(one)),
            "criteria": shown(self._criteria.get(one.scorer) or f"those of the scorer {one.scorer!r}"),
            "text": shown(as_text(one.output)),
            "files": files,
        }

    def _write(self, place: int, choice: Choice | None, note: str) -> None:
        label = self._drawn[place].labelled(time.time(), self._labeller, choice, note)
        append_label(self._file, label)


def _criteria(spec: ScorerSpec) -> tuple[str, str]:
    """Return the name of a scorer, and the criteria or the prompt of its judge."""
    found = spec.options.get("criteria") or spec.options.get("prompt")
    if found is None:
        known = scorer_kinds().get(spec.kind)
        found = getattr(known.load(), "PROMPT", "") if known else ""
    rubric = found if isinstance(found, list) else [found]
    texts = [f"{each.get('name')}: {each.get('text')}" if isinstance(each, dict) else str(each) for each in rubric]
    return spec.name or spec.kind, "\n".join(texts)


def _material(one: SampledAnswer) -> str:
    """Return the recorded passages and messages on which the answer is based."""
    metadata = one.record.transcript.metadata if one.record.transcript else {}
    told = (score.metadata.get(SHOWN) for score in one.record.scores if score.name == one.scorer)
    texts = [pair for found in told if isinstance(found, dict) for pair in found.items()]
    shown_to_judge = [f"{name}: {as_text(text)}" for name, text in texts]
    return "\n\n".join([*_listed(metadata.get("context")), *_listed(metadata.get("messages")), *shown_to_judge])


def _listed(given: Any) -> list[str]:
    items = given if isinstance(given, list) else [] if given is None else [given]
    roles = [f"{each['role']}: " if isinstance(each, dict) and "role" in each else "" for each in items]
    return [f"{role}{as_text(each.get('content') if role else each)}" for role, each in zip(roles, items, strict=True)]


def make_label_app(labelling: Labelling, labeller: str, port: int, token: str, stop: Callable[[], None]) -> Guard:
    """Return the labelling application behind its guard. Finishing the session calls `stop`."""
    working = asyncio.Lock()  # one change at a time

    async def show(request: Request) -> Response:  # noqa: ARG001 - starlette's shape
        page = Page("label", "label.html", Path("label.html"), ServedPages(home="/"))
        title = f"Labels by {visible(labeller, NAME)}"
        before, after = page.halves(title=f"{title} · bakeoff", heading=title, menu=())
        return HTMLResponse(before + after)

    async def answer(request: Request) -> Response:  # noqa: ARG001
        return JSONResponse(labelling.state())

    async def give(request: Request) -> Response:
        body = await _body(request)
        try:
            given = _LabelForm.model_validate_json(body)
        except ValidationError:
            return PlainTextResponse("refused: not a label\n", HTTPStatus.BAD_REQUEST)
        return await change(lambda: labelling.give(given.id, given.label, given.note))

    async def undo(request: Request) -> Response:  # noqa: ARG001
        return await change(labelling.undo)

    async def change(step: Callable[[], None]) -> Response:
        async with working:
            try:
                await call(step)
            except RunFolderError as error:
                return PlainTextResponse(f"{error}\n", HTTPStatus.INTERNAL_SERVER_ERROR)
        return JSONResponse(labelling.state())

    async def finish(request: Request) -> Response:  # noqa: ARG001
        stop()
        return JSONResponse({})

    routes = [
        Route("/", show),
        Route("/answer", answer),
        Route("/label", give, methods=["POST"]),
        Route("/undo", undo, methods=["POST"]),
        Route("/finish", finish, methods=["POST"]),
    ]
    return Guard(Starlette(routes=routes), port, token, command="bakeoff label", takes_posts=True)


async def _body(request: Request) -> bytes:
    """Read the body of a request, or return nothing if it is longer than a label can be."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _MAX_REQUEST_LENGTH:
            return b""
    return body
