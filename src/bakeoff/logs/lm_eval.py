"""Read samples of lm-evaluation-harness, `samples_<task>_<time>.jsonl`, with `results_<time>.json` beside them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import AliasPath, ConfigDict

from bakeoff._kernel.json import as_json
from bakeoff.logs.trials import (
    END_OF_TIME,
    ForeignLog,
    LoggedObject,
    LoggedTrial,
    check,
    file_in,
    json_lines,
    name_of,
    named,
    read_json,
    score_of,
    subject_of,
    text_of,
    text_steps,
)
from bakeoff.plan import Case, SubjectSpec
from bakeoff.record import Transcript

_FILE = re.compile(r"samples_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT[\d.:-]+)")


class _LmEvalSample(LoggedObject):
    """One document with the answers that one filter made of it; the values of its metrics are fields, too."""

    model_config = ConfigDict(extra="allow", frozen=True)

    doc_id: int | str
    doc: Any = None
    target: Any = None
    arguments: Any = None
    filtered_resps: Any = None
    filter: str = "none"
    metrics: list[str] = []


class _LmEvalResults(LoggedObject):
    model_name: str | None = None
    lm_eval_version: str | None = None
    date: float | None = named("date", ge=0, lt=END_OF_TIME)
    model: str | None = named(AliasPath("config", "model"))
    model_args: Any = named(AliasPath("config", "model_args"))
    gen_kwargs: Any = named(AliasPath("config", "gen_kwargs"))
    chat_template: str | None = None


def read_samples(path: Path) -> ForeignLog:
    """Read the samples of one task, line by line."""
    parts = _FILE.fullmatch(path.stem)
    beside = file_in(path.parent, f"results_{parts['time']}.json") if parts else None
    results = _LmEvalResults() if beside is None else check(_LmEvalResults, read_json(beside), beside)
    options = {name: getattr(results, name) for name in ("model", "model_args", "gen_kwargs", "chat_template")}
    subject = subject_of(results.model_name or path.resolve().parent.name, options)

    def trials() -> Iterator[LoggedTrial]:
        return (_trial(check(_LmEvalSample, line, path, place), subject) for place, line in json_lines(path))

    return ForeignLog(
        tool="lm-evaluation-harness",
        version=name_of(results.lm_eval_version) if results.lm_eval_version else None,
        format="lm-eval samples (.jsonl)",
        name=name_of(parts["task"] if parts else path.stem),
        trials=trials,
        created=results.date,
    )


def _trial(sample: _LmEvalSample, subject: SubjectSpec) -> LoggedTrial:
    """Return a trial of one document. Its prompt belongs to the subject, because chat templates differ."""
    answers = sample.filtered_resps
    output = as_json(answers[0] if isinstance(answers, list) and len(answers) == 1 else answers)
    values = sample.model_extra or {}
    # Lists are parts of a metric of the whole task, such as perplexity.
    single = [name for name in sample.metrics if isinstance(values.get(name), int | float)]
    suffix = "" if sample.filter == "none" else f",{sample.filter}"
    return LoggedTrial(
        case=Case(
            id=name_of(sample.doc_id),
            prompt=json.dumps(as_json(sample.doc), indent=1, ensure_ascii=False),
            expected=as_json(sample.target),
        ),
        subject=subject,
        round=0,
        transcript=Transcript(
            output=output, steps=text_steps(output), metadata={"prompt": text_of(_prompt(sample.arguments))}
        ),
        scores=tuple(score_of(f"{name}{suffix}", values[name]) for name in single),
    )


def _prompt(arguments: Any) -> Any:
    """Return the first argument of the first request."""
    for _ in range(2):
        inner = list(arguments.values()) if isinstance(arguments, dict) else arguments
        arguments = inner[0] if isinstance(inner, list) and inner else inner
    return arguments
