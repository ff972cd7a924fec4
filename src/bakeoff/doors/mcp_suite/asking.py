"""Ask a model a single question that is not part of an evaluation, such as how to word something."""

from collections.abc import Mapping
from typing import Any

from bakeoff._kernel.clock import Clock
from bakeoff.errors import UsageError
from bakeoff.plan import Limits, SubjectSpec
from bakeoff.protocols import Task
from bakeoff.subjects.model import ModelSubject

_SECONDS = 120.0


def assistant_of(
    model: str, system: str, schema: Mapping[str, Any], environment: Mapping[str, str], *, temperature: float = 0.0
) -> ModelSubject:
    """Return a model that answers with JSON. Embedded models are bound to the schema; others are only told."""
    options: dict[str, Any] = {
        "model": model,
        "system": system,
        "temperature": temperature,
        "max_tokens": 300,
        "priced": False,
    }
    if model.startswith("local:"):
        options["output_schema"] = dict(schema)
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
