"""Ask a model a single question that is not part of an evaluation, such as how to word something."""

import json
import re
from collections.abc import Mapping
from typing import Any

from bakeoff._kernel.clock import Clock
from bakeoff.errors import SubjectError, UsageError
from bakeoff.plan import Limits, SubjectSpec
from bakeoff.protocols import Task
from bakeoff.subjects.model import ModelSubject

_SECONDS = 120.0
_SHORTEST = 8
_OBJECT = re.compile(r"\{.*\}", re.DOTALL)


def assistant_of(
    model: str, system: str, key: str, longest: int, environment: Mapping[str, str], *, temperature: float = 0.0
) -> ModelSubject:
    """Return a model that answers with `{key: text}`. Embedded models are bound to that form; others are only told."""
    options: dict[str, Any] = {
        "model": model,
        "system": system,
        "temperature": temperature,
        "max_tokens": 300,
        "priced": False,
    }
    if model.startswith("local:"):
        text = {"type": "string", "minLength": _SHORTEST, "maxLength": longest}
        form = {"type": "object", "properties": {key: text}, "required": [key], "additionalProperties": False}
        options["output_schema"] = form
    subject = ModelSubject.from_spec(SubjectSpec(kind="model", name=model, options=options), environment)
    if missing := subject.lacks():
        raise UsageError("\n".join(missing))
    return subject


def question(prompt: str, name: str, resources: Mapping[str, object], *, seed: int = 0) -> Task:
    """Return a question as a task without limits of money."""
    return Task(
        prompt=prompt,
        case_id=name,
        subject=name,
        trial_id=f"{name} {seed}",
        round=seed,
        seed=seed,
        limits=Limits(attempt_seconds=_SECONDS),
        spend=lambda _: None,
        count=lambda _: None,
        resources=resources,
        clock=Clock(_SECONDS),
    )


async def answer_of(subject: ModelSubject, asked: Task, key: str, longest: int) -> str:
    """Return the text that a model answers with under a key, on one line; raise `SubjectError` if there is none."""
    output = str((await subject.attempt(asked)).output or "")
    found = _OBJECT.search(output)
    try:
        said = json.loads(found[0] if found else output)[key]
    except (ValueError, KeyError, TypeError, RecursionError):
        said = None
    if not isinstance(said, str) or not _SHORTEST <= len(said) <= longest:
        raise SubjectError(f"the model did not answer with {{{key}}} but with {output[:80]!r}")
    return " ".join(said.split())
