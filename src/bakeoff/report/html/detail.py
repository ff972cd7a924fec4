"""Convert records and cases to the JSON that a page shows: texts are cut, and control characters made visible."""

from typing import Any

from pydantic import JsonValue
from pydantic_core import to_json

from bakeoff.plan import Case
from bakeoff.record import Failure, Phase, Reasoning, Record, Score, Step, Text, ToolCall, Usage
from bakeoff.report.formatting import shown, visible
from bakeoff.report.html.render import NAME

Json = dict[str, Any]


def as_text(value: JsonValue) -> str | None:
    """Return any data as text: a string as it is, anything else as JSON."""
    if value is None:
        return None
    if isinstance(value, str):
        return shown(value)
    return shown(to_json(value, indent=2).decode())


def case_detail(case: Case) -> Json:
    """Return what a subject was given. Hidden files are only named, because pages are passed on."""
    return _filled(
        prompt=shown(case.prompt),
        files={visible(name, NAME): shown(text) for name, text in case.files.items()},
        hidden=[visible(name, NAME) for name in (*case.hidden, *case.reference)],
        tags={visible(key, NAME): visible(value, NAME) for key, value in case.tags.items()},
    )


def record_detail(record: Record) -> Json:
    """Return everything that the page shows of a trial."""
    transcript = record.transcript
    return _filled(
        started=record.started,
        tries=record.tries,
        bound=record.bound,
        replayed=is_replayed(record),
        phases=[_phase(name, phase) for name in ("prepare", "attempt", "score") if (phase := getattr(record, name))],
        steps=[_step(step) for step in transcript.steps] if transcript else None,
        output=_output(record),
        about=as_text(dict(transcript.metadata) or None) if transcript else None,
        scores=[_score(score) for score in record.scores],
        files={visible(name, NAME): shown(text) for name, text in record.artefacts.items()},
        refused={visible(name, NAME): visible(why, 1000) for name, why in record.refused.items()},
        workspace=visible(record.workspace, 1000) if record.workspace else None,
        spent=_usage(record.used),
        judging=_usage(record.judging),
    )


def is_replayed(record: Record) -> bool:
    """Tell whether a recording answered instead of the model at least once."""
    return record.transcript is not None and record.transcript.metadata.get("replayed") is True


def _output(record: Record) -> str | None:
    """Return the output, unless it is the text of the last step."""
    transcript = record.transcript
    if transcript is None:
        return None
    last = transcript.steps[-1].parts if transcript.steps else ()
    said = "".join(part.text for part in last if isinstance(part, Text))
    return None if said and transcript.output == said else as_text(transcript.output)


def _phase(name: str, phase: Phase) -> Json:
    return _filled(name=name, seconds=phase.seconds, waited=phase.waited or None, failure=_failure(phase.failure))


def _failure(failure: Failure | None) -> Json | None:
    if failure is None:
        return None
    return _filled(
        kind=failure.kind,
        type=visible(failure.type, NAME),
        message=shown(failure.message),
        detail=shown(failure.detail),
        permanent=failure.permanent,
    )


def _score(score: Score) -> Json:
    return _filled(
        name=visible(score.name, NAME),
        value=score.value,
        reason=shown(score.reason),
        about=as_text(dict(score.metadata) or None),
        failure=_failure(score.failure),
    )


def _step(step: Step) -> Json:
    return _filled(
        parts=[_part(part) for part in step.parts],
        usage=_usage(step.usage),
        finish=visible(step.finish_reason, NAME) if step.finish_reason else None,
        seconds=step.seconds,
    )


def _part(part: Text | Reasoning | ToolCall) -> Json:
    if not isinstance(part, ToolCall):
        return {"type": part.type, "text": shown(part.text)}
    return _filled(
        type="tool",
        name=visible(part.name, NAME),
        arguments=as_text(part.arguments),
        result=as_text(part.result),
        error=shown(part.error) if part.error else None,
        ms=part.duration_ms,
    )


def _usage(usage: Usage) -> Json | None:
    return usage.model_dump(exclude_defaults=True) or None


def _filled(**fields: Any) -> Json:
    """Drop empty fields, because most fields of most records are empty."""
    return {name: value for name, value in fields.items() if value or (value == 0 and value is not False)}
