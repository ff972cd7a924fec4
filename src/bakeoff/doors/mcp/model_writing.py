"""Let a model write texts that are not part of an evaluation: descriptions of tools, and prompts of drafts."""

import json
import re
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from bakeoff.doors.mcp.generate.drafts import Draft
from bakeoff.doors.mcp.generate.wording import leaks, shown_value
from bakeoff.errors import SubjectError, TrialError, UsageError
from bakeoff.mcp import ServerTool
from bakeoff.plan import SubjectSpec
from bakeoff.protocols import Task
from bakeoff.subjects.model import ModelSubject

_SECONDS = 120.0
_MIN_LENGTH = 8
_MAX_OTHERS = 20  # tools that a description is told apart from
_OBJECT = re.compile(r"\{.*\}", re.DOTALL)

Write = Callable[[Mapping[str, Any], str, int], Awaitable[str]]
"""A function that writes a text from data, for a task with this name and seed.

Raises `SubjectError` if the answer has no text.
"""


async def proposed_descriptions(
    tool: ServerTool, tools: Sequence[ServerTool], model: str, count: int, environment: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """Return the descriptions that a model proposes, and a sentence for each answer that cannot be used."""
    others = [other for other in tools if other.name != tool.name][:_MAX_OTHERS]
    told = {
        "name": tool.name,
        "description": tool.description[:2_000],
        "parameters": sorted(tool.parameters),
        "other tools": {other.name: other.description[:300] for other in others},
    }
    found: list[str] = []
    problems: list[str] = []
    async with _writer(model, "description", environment) as write:
        for number in range(count):
            try:
                said = await write(told, "propose", number)
            except TrialError as error:
                problems.append(f"proposal {number + 1} of {model} cannot be used: {error}")
            else:
                found.append("".join(char for char in said if char.isprintable()))
    return found, problems


async def reworded(
    drafts: Sequence[Draft], tools: Sequence[ServerTool], model: str, environment: Mapping[str, str]
) -> tuple[list[Draft], list[str]]:
    """Let a model rewrite the prompts. Return the drafts, and a sentence for each that keeps its template."""
    offered = {(tool.server, tool.name): tool for tool in tools}
    better: list[Draft] = []
    problems: list[str] = []
    async with _writer(model, "prompt", environment) as write:
        for draft in drafts:
            tool = offered.get((draft.server or "", draft.tool or ""))
            if tool is None or draft.tags:  # the exact words of these drafts matter
                better.append(draft)
                continue
            told = {"description": tool.description[:2_000], "values": draft.values, "request": draft.prompt}
            try:
                said = await write(told, draft.name, 0)
                _check_prompt(said, draft, tool)
            except TrialError as error:
                problems.append(f"{draft.name}: keeps the prompt of the template: {error}")
                better.append(draft)
            else:
                better.append(draft.model_copy(update={"prompt": said}))
    return better, problems


@asynccontextmanager
async def _writer(model: str, key: str, environment: Mapping[str, str]) -> AsyncIterator[Write]:
    """Open a model that answers with `{key: text}`.

    Embedded models are constrained to that form; other models are only asked for it.
    """
    asked = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))[key]
    longest = asked["max_length"]
    options: dict[str, Any] = {"model": model, "system": asked["system"], "temperature": asked["temperature"]}
    if model.startswith("local:"):
        text = {"type": "string", "minLength": _MIN_LENGTH, "maxLength": longest}
        form = {"type": "object", "properties": {key: text}, "required": [key], "additionalProperties": False}
        options["output_schema"] = form
    spec = SubjectSpec(kind="model", name=model, options={**options, "max_tokens": 300, "priced": False})
    subject = ModelSubject.from_spec(spec, environment)
    if missing := subject.lacks():
        raise UsageError("\n".join(missing))
    async with subject.access.open() as opened:

        async def write(told: Mapping[str, Any], name: str, seed: int) -> str:
            asked = {"prompt": json.dumps(told, ensure_ascii=False), "case_id": name, "subject": name}
            known = {"trial_id": f"{name} {seed}", "round": seed, "seed": seed}
            task = Task.alone(_SECONDS, **asked, **known, resources={subject.access.key: opened})
            output = str((await subject.attempt(task)).output or "")
            found = _OBJECT.search(output)
            try:
                said = json.loads(found[0] if found else output)[key]
            except (ValueError, KeyError, TypeError, RecursionError):
                said = None
            if not isinstance(said, str) or not _MIN_LENGTH <= len(said) <= longest:
                raise SubjectError(f"the model did not answer with {{{key}}} but with {output[:80]!r}")
            return " ".join(said.split())

        yield write


def _check_prompt(said: str, draft: Draft, tool: ServerTool) -> None:
    """Raise `SubjectError` for a prompt that no file can hold, that lacks a value, or that reveals the tool."""
    if not said.isprintable() or "${" in said:
        raise SubjectError("the model's answer contains characters that a configuration cannot")
    if lost := [name for name, value in draft.values.items() if not _names_value(said, value)]:
        raise SubjectError(f"the model left out {', '.join(lost)}")
    if told := leaks(said, tool, draft.values):
        raise SubjectError(f"the model's request {told[0]}")


def _names_value(prompt: str, value: JsonValue) -> bool:
    """Return True if the prompt contains the value: without it, a model cannot make the call."""
    if isinstance(value, dict | list):
        return all(_names_value(prompt, inner) for inner in (value.values() if isinstance(value, dict) else value))
    if value is None or isinstance(value, bool):
        return True
    return any(form.casefold() in prompt.casefold() for form in (str(value), shown_value(value).strip("'")))
