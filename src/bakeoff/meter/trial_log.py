"""Collect the exchanges of one trial: steps for the transcript, tools that were offered, and statistics."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from bakeoff._kernel.model import fingerprint
from bakeoff.meter.answer import ModelAnswer
from bakeoff.meter.wire_formats import WireToolResult, objects_in
from bakeoff.record import NO_USAGE, Step, ToolCall, Transcript, Usage
from bakeoff.storage.redaction import CUT

MAX_STEPS = 2000
MAX_RESULT = 20_000  # characters of one tool result
MAX_TOOLS = 1000
MAX_CHARACTERS = 8_000_000  # of all parts together; beyond this, only counts are kept


@dataclass(slots=True)
class TrialLog:
    """The exchanges so far. It can be read at any time, also after a kill."""

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
        """Note the tools that a request offers. A changed tool is noted beside the first version."""
        for name, tool in tools:
            digest = fingerprint(tool)[:16]
            known = self.tools.get(name)
            if known is None and len(self.tools) < MAX_TOOLS:
                self.tools[name] = digest
            elif known is not None and digest not in known and len(known) < 160:
                self.tools[name] = f"{known} {digest}"

    def resolve(self, results: Iterable[WireToolResult]) -> None:
        """Add results to their calls. Requests repeat earlier results; only the first one for a call counts."""
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
        """Add an exchange that used tokens. Each of `how` that is true is counted: estimated, cut, replayed."""
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
        told |= {name: True for name in ("replayed", "recorded") if self.notes[name]}  # the keys that all reports read
        return Transcript(output=self.output, steps=tuple(self.steps), usage=self.usage, metadata=told)


def _shown(content: object) -> str:
    """Return a tool result as text: the texts of its parts if it has parts, up to a limit."""
    if isinstance(content, list):
        texts = [part["text"] for part in objects_in(content) if isinstance(part.get("text"), str)]
        content = "\n".join(texts) if texts else content
    text = content if isinstance(content, str) else json.dumps(content)
    return text if len(text) <= MAX_RESULT else text[:MAX_RESULT] + CUT
