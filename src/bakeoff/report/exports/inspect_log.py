"""Write one subject of a run as a log of Inspect (`.eval`, log format 2). Inspect need not be installed.

A subject becomes the evaluation of a model, a case a sample, and a round an epoch; steps become messages. Anything that
has no equivalent is kept in `metadata`. The trial's own score and verdict are the score `bakeoff`. A trial that was
lost to infra, budget or a grader has an `error` and no score, so that Inspect leaves it out as we do. A trial that the
subject failed or timed out in counts as 0. Hidden files and artefacts are not written. Inspect finds a sample in the
archive by its id, so an id that would leave its folder when the log is unpacked is percent-encoded.
"""

import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from bakeoff._kernel.model import fingerprint
from bakeoff._version import __version__
from bakeoff.plan import Case, Plan, SubjectSpec
from bakeoff.record import Record, Text, ToolCall, Usage
from bakeoff.report.exports.tables import unique_names
from bakeoff.report.formatting import NO_INTERVAL, as_text, utc
from bakeoff.report.reasons import why
from bakeoff.report.run_records import RunRecords
from bakeoff.report.summary import SubjectSummary
from bakeoff.storage.ledger import Ledger, describe
from bakeoff.verdict import Verdict

OWN_SCORE = "bakeoff"
_VERSION = 2
_MAX_SUMMARY_LENGTH = 1024
_STOPS = {"stop": "stop", "length": "max_tokens", "tool_call": "tool_calls", "content_filter": "content_filter"}

Json = dict[str, Any]


def write_inspect_log(
    name: str,
    plan: Plan,
    subject: SubjectSpec,
    run_records: RunRecords,
    path: Path,
    ledger: Ledger | None = None,
    *,
    whole: bool = True,
) -> None:
    """Write the log of one subject sample by sample, so that memory holds one sample.

    Unless the run is whole and all trials have a score, the log's status is "cancelled". Summaries, which Inspect reads
    first, are collected in a temporary file.
    """
    [summary] = (one for one in run_records.summary.subjects if one.subject == subject.name)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as log, tempfile.TemporaryFile() as summaries:
        first, last = inf, -inf  # the start of the first sample and the end of the last one
        separator = b"["
        for case in plan.cases:
            for record in run_records.rounds(subject.name, case.id):
                first, last = min(first, record.started), max(last, record.started + record.seconds)
                sample = _sample(case, subject, record)
                sample["metadata"]["bakeoff_case_verdict"] = run_records.case_verdict(subject.name, case.id).verdict
                log.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", _dump(sample))
                summaries.write(separator + _dump(_summary(sample)))
                separator = b","
        summaries.write(b"]" if separator == b"," else b"[]")
        start = {
            "version": _VERSION,
            "eval": _spec(name, plan, subject, first, describe(ledger or summary.ledger, "trial")),
            "plan": {"name": "bakeoff", "steps": []},
        }
        log.writestr("_journal/start.json", _dump(start))
        summaries.seek(0)
        with log.open("summaries.json", "w") as member:
            shutil.copyfileobj(summaries, member)
        log.writestr("header.json", _dump({**start, **_ending(summary, subject, first, last, whole=whole)}))


def sample_id(case: str) -> str:
    """Return the id of a case, percent-encoded if it would lead out of a folder or looks encoded already."""
    *folders, _ = case.replace("\\", "/").split("/")
    safe = "\\" not in case and not {"", ".", ".."} & set(folders)
    return case if safe and unquote(case) == case else quote(case, safe="")


def _spec(name: str, plan: Plan, subject: SubjectSpec, started: float, ledger: str) -> Json:
    ids = [sample_id(case.id) for case in plan.cases]
    return {
        "eval_id": fingerprint(name, subject.digest),
        "run_id": fingerprint(name),
        "created": _time(started) or _time(0.0),
        "task": plan.name,
        "task_id": fingerprint(plan.name),
        "dataset": {"name": plan.name, "samples": len(ids), "sample_ids": ids},
        "model": _model(subject),
        "config": {"epochs": plan.rounds},
        "packages": {"bakeoff": __version__},
        "scorers": [{"name": name} for name in _score_names(plan.scorer_names)],
        "metadata": {
            "bakeoff_run": name,
            "bakeoff_subject": subject.name,
            "bakeoff_subject_kind": subject.kind,
            "bakeoff_threshold": plan.threshold,
            "bakeoff_ledger": ledger,
        },
    }


def _ending(summary: SubjectSummary, subject: SubjectSpec, started: float, ended: float, *, whole: bool) -> Json:
    return {
        "status": "success" if whole and summary.scored == summary.planned else "cancelled",
        "results": {
            "total_samples": summary.planned,
            "completed_samples": summary.scored,
            "scores": [_result(summary)] if summary.score is not None else [],
        },
        "stats": {
            "started_at": _time(started) or "",
            "completed_at": _time(ended) or "",
            "model_usage": {_model(subject): _usage(summary.spent)},
        },
    }


def _result(summary: SubjectSummary) -> Json:
    metrics = {"mean": summary.score}
    if summary.interval:
        metrics |= {"interval_low": summary.interval.low, "interval_high": summary.interval.high}
    return {
        "name": OWN_SCORE,
        "scorer": OWN_SCORE,
        "scored_samples": summary.scored,
        "unscored_samples": sum(summary.lost.values()),
        "metrics": {name: {"name": name, "value": value} for name, value in metrics.items()},
        "metadata": {"interval_method": summary.interval.method if summary.interval else NO_INTERVAL},
    }


def _sample(case: Case, subject: SubjectSpec, record: Record) -> Json:
    transcript = record.transcript
    messages = list(_messages(case, subject, record))
    sample: Json = {
        "id": sample_id(case.id),
        "epoch": record.round + 1,
        "input": case.prompt,
        "target": as_text(case.expected),
        "messages": messages,
        "output": _output(subject, record, messages),
        "scores": _scores(record),
        "metadata": {**case.tags, "bakeoff_verdict": str(record.verdict), "bakeoff_attempt_key": record.attempt_key},
        "model_usage": {_model(subject): _usage(record.used)},
        "total_time": record.seconds,
        "working_time": sum(phase.working_seconds for phase in (record.prepare, record.attempt, record.score) if phase),
        "uuid": fingerprint(record.attempt_key, record.score_key),
    }
    if started := _time(record.started):
        sample |= {"started_at": started, "completed_at": _time(record.started + record.seconds) or started}
    if sample["id"] != case.id:
        sample["metadata"]["bakeoff_case"] = case.id
    if not record.verdict.counts:
        failure = record.failure  # a grader may have given none
        words = f"{failure.type}: {failure.message}" if failure else "no scorer returned a number"
        detail = failure.detail if failure else ""
        message = f"{record.verdict}: {words}"
        sample["error"] = {"message": message, "traceback": detail, "traceback_ansi": detail}
    if record.verdict is Verdict.TIMEOUT:
        sample["limit"] = {"type": "time", "limit": case.limits.attempt_seconds}
    if transcript and transcript.metadata:
        sample["metadata"]["bakeoff_transcript"] = transcript.metadata
    return sample


def _messages(case: Case, subject: SubjectSpec, record: Record) -> Iterator[Json]:
    system = subject.options.get("system")
    if isinstance(system, str):
        yield {"role": "system", "content": system}
    yield {"role": "user", "content": case.prompt, "source": "input"}
    for number, step in enumerate(record.transcript.steps if record.transcript else ()):
        texts = [part for part in step.parts if not isinstance(part, ToolCall)]
        content = [{"type": part.type, "text" if isinstance(part, Text) else "reasoning": part.text} for part in texts]
        calls = [part for part in step.parts if isinstance(part, ToolCall)]
        ids = [call.id or f"call-{number}-{place}" for place, call in enumerate(calls)]
        said: Json = {"role": "assistant", "content": content, "source": "generate", "model": _model(subject)}
        for call, id_ in zip(calls, ids, strict=True):
            arguments = call.arguments if isinstance(call.arguments, dict) else {"arguments": call.arguments}
            asked = {"id": id_, "function": call.name, "arguments": arguments, "type": "function"}
            said.setdefault("tool_calls", []).append(asked)
        yield said
        for call, id_ in zip(calls, ids, strict=True):
            answer: Json = {"role": "tool", "content": as_text(call.result), "tool_call_id": id_, "function": call.name}
            yield {**answer, "error": {"type": "unknown", "message": call.error}} if call.error is not None else answer


def _output(subject: SubjectSpec, record: Record, messages: list[Json]) -> Json:
    transcript = record.transcript
    if transcript is None:
        return {"model": _model(subject), "choices": []}
    said = as_text(transcript.output)
    last = next((message for message in reversed(messages) if message["role"] == "assistant"), None)
    stop = _STOPS.get((transcript.steps[-1].finish_reason or "") if transcript.steps else "", "unknown")
    message = last or {"role": "assistant", "content": said, "source": "generate"}
    return {
        "model": _model(subject),
        "choices": [{"message": message, "stop_reason": stop}],
        "completion": said,
        "usage": _usage(transcript.usage),
        "time": record.attempt.seconds if record.attempt else None,
    }


def _scores(record: Record) -> Json:
    """Return the scores by scorer, and the score `bakeoff`; repeated names are changed."""
    names = _score_names([score.name for score in record.scores])
    scores = {
        name: {"value": score.value, "explanation": score.reason, "metadata": score.metadata}
        for name, score in zip(names, record.scores, strict=True)
        if score.value is not None and score.failure is None
    }
    if not record.verdict.counts:
        return {}
    return {**scores, OWN_SCORE: {"value": record.value, "answer": str(record.verdict), "explanation": why(record)}}


def _score_names(names: list[str]) -> list[str]:
    return unique_names([OWN_SCORE, *names])[1:]


def _summary(sample: Json) -> Json:
    """Return the fields that Inspect lists without opening a sample."""
    kept = ("id", "epoch", "model_usage", "started_at", "completed_at", "total_time", "working_time", "uuid")
    scores = {
        name: {**score, "explanation": str(score["explanation"])[:_MAX_SUMMARY_LENGTH], "metadata": None}
        for name, score in sample["scores"].items()
    }
    return {
        **{key: sample[key] for key in kept if key in sample},
        "input": sample["input"][:_MAX_SUMMARY_LENGTH],
        "target": sample["target"][:_MAX_SUMMARY_LENGTH],
        "metadata": {"bakeoff_verdict": sample["metadata"]["bakeoff_verdict"]},
        "scores": scores,
        "error": sample["error"]["message"][:_MAX_SUMMARY_LENGTH] if "error" in sample else None,
        "limit": sample["limit"]["type"] if "limit" in sample else None,
        "completed": True,
        "message_count": len(sample["messages"]),
    }


def _usage(usage: Usage) -> Json:
    """Return the usage. Inspect's input tokens exclude cache reads and writes."""
    return {
        "input_tokens": max(0, usage.input - usage.cache_read - usage.cache_write),
        "output_tokens": usage.output,
        "total_tokens": usage.tokens,
        "input_tokens_cache_write": usage.cache_write,
        "input_tokens_cache_read": usage.cache_read,
        "reasoning_tokens": usage.reasoning,
        "total_cost": usage.cost,
    }


def _model(subject: SubjectSpec) -> str:
    model = subject.options.get("model")
    return model if isinstance(model, str) else f"bakeoff/{subject.name}"


def _time(seconds: float) -> str | None:
    moment = utc(seconds)
    return moment.isoformat() if moment else None


def _dump(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(errors="replace")
