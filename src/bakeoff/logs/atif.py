"""Read trajectories in ATIF, the Agent Trajectory Interchange Format of Harbor: `trajectory.json`."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import Field

from bakeoff._kernel.json import as_json
from bakeoff.logs.trials import (
    RECORDED,
    Amount,
    Count,
    ForeignLog,
    LoggedObject,
    LoggedTrial,
    check,
    name_of,
    read_json,
    seconds_between,
    seconds_of,
    text_of,
)
from bakeoff.plan import Case, SubjectSpec
from bakeoff.record import NO_USAGE, Part, Reasoning, Step, Text, ToolCall, Transcript, Usage


class _Metrics(LoggedObject):
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    cached_tokens: Count | None = None
    cost_usd: Amount = None


class _Total(LoggedObject):
    total_prompt_tokens: Count | None = None
    total_completion_tokens: Count | None = None
    total_cached_tokens: Count | None = None
    total_cost_usd: Amount = None


class _Call(LoggedObject):
    tool_call_id: str | None = None
    function_name: str
    arguments: Any = None


class _AtifAnswer(LoggedObject):
    source_call_id: str | None = None
    content: Any = None


class _Observation(LoggedObject):
    results: list[_AtifAnswer] = []


class _AtifStep(LoggedObject):
    source: str
    timestamp: str | None = None
    model_name: str | None = None
    message: Any = ""
    reasoning_content: str | None = None
    tool_calls: list[_Call] | None = None
    observation: _Observation | None = None
    metrics: _Metrics | None = None
    is_copied_context: bool | None = None
    llm_call_count: Count | None = None


class _AtifAgent(LoggedObject):
    name: str
    version: str | None = None
    model_name: str | None = None


class AtifTrajectory(LoggedObject):
    """Hold the steps of one agent on one task."""

    schema_version: str = Field(pattern=r"^ATIF-v1\.")
    session_id: str | None = None
    trajectory_id: str | None = None
    agent: _AtifAgent
    steps: list[_AtifStep] = Field(min_length=1)
    final_metrics: _Total | None = None

    @property
    def instruction(self) -> str:
        """Return what the agent was asked first."""
        return next((text_in(step.message) for step in self.steps if step.source == "user"), "")

    @property
    def seconds(self) -> float | None:
        stamps = [step.timestamp for step in self.steps if step.timestamp]
        return seconds_between(stamps[0], stamps[-1]) if stamps else None

    @property
    def usage(self) -> Usage:
        """Return the totals of the trajectory, or else the sum of its steps."""
        total, own = self.final_metrics, [step for step in self.steps if not step.is_copied_context]
        requests = sum(step.llm_call_count if step.llm_call_count is not None else 1 for step in own if step.metrics)
        if total is None or (total.total_prompt_tokens is None and total.total_completion_tokens is None):
            summed = sum((_usage(step.metrics) for step in own if step.metrics), NO_USAGE)
            return summed.model_copy(update={"requests": requests})
        return Usage(
            requests=requests,
            input=total.total_prompt_tokens or 0,
            output=total.total_completion_tokens or 0,
            cache_read=total.total_cached_tokens or 0,
            cost=total.total_cost_usd,
        )

    def transcript(self) -> Transcript:
        """Return the steps of the agent; copies of earlier ones, which summaries leave, are left out."""
        own = [step for step in self.steps if step.source == "agent" and not step.is_copied_context]
        taken = [seconds_between(one.timestamp, other.timestamp) for one, other in pairwise(self.steps)]
        by_step = {id(step): seconds for step, seconds in zip(self.steps[1:], taken, strict=True)}
        steps = [
            Step(
                parts=tuple(_parts(step)),
                usage=_usage(step.metrics) if step.metrics else NO_USAGE,
                seconds=by_step.get(id(step)),
            )
            for step in own
        ]
        about = {"name": self.agent.name, "version": self.agent.version, "model": self.agent.model_name}
        return Transcript(
            output=next((said for step in reversed(own) if (said := text_in(step.message))), None),
            steps=tuple(steps),
            usage=self.usage,
            metadata={"agent": {key: as_json(value) for key, value in about.items() if value}},
        )


def text_in(message: Any) -> str:
    """Return the text of a message; pictures and sound are only named."""
    if not isinstance(message, list):
        return text_of(message)
    parts = [part for part in message if isinstance(part, dict)]
    texts = (part.get("text") if part.get("type") == "text" else f"[{part.get('type')}]" for part in parts)
    return "\n".join(text_of(text) for text in texts)


def _parts(step: _AtifStep) -> Iterator[Part]:
    if step.reasoning_content:
        yield Reasoning(text=step.reasoning_content)
    if said := text_in(step.message):
        yield Text(text=said)
    results = step.observation.results if step.observation else []
    answers = {each.source_call_id: each for each in results if each.source_call_id is not None}
    calls = step.tool_calls or []
    for call in calls:
        # An answer without an id belongs to the only call.
        answer = answers.get(call.tool_call_id or "") or (results[0] if len(calls) == len(results) == 1 else None)
        yield ToolCall(
            name=name_of(call.function_name),
            arguments=as_json(call.arguments),
            result=None if answer is None else text_in(answer.content),
            id=call.tool_call_id,
        )
    if not calls:
        yield from (Text(text=found) for each in results if (found := text_in(each.content)))


def _usage(metrics: _Metrics) -> Usage:
    return Usage(
        input=metrics.prompt_tokens or 0,
        output=metrics.completion_tokens or 0,
        cache_read=metrics.cached_tokens or 0,
        cost=metrics.cost_usd,
    )


def agent_subject(name: str, model: str | None, version: str | None) -> SubjectSpec:
    """Return an agent with its model. Harbor's agents `oracle` and `nop` are controls, as ours are."""
    options = {"agent": name_of(name), "model": model, "version": version}
    return SubjectSpec(
        kind=name if name in ("oracle", "nop") else RECORDED,
        name=name_of(f"{name} {model}" if model else name),
        options={key: as_json(value) for key, value in options.items() if value},
    )


def read_trajectory(path: Path) -> ForeignLog:
    """Read one trajectory. It says what an agent did, and not whether that was right."""
    found = check(AtifTrajectory, read_json(path), path)
    trial = LoggedTrial(
        case=Case(id=name_of(found.session_id or found.trajectory_id or path.stem), prompt=found.instruction),
        subject=agent_subject(found.agent.name, found.agent.model_name, found.agent.version),
        started=next((seconds for step in found.steps if (seconds := seconds_of(step.timestamp))), None),
        attempt_seconds=found.seconds,
        transcript=found.transcript(),
    )
    return ForeignLog(
        tool="ATIF",
        version=found.schema_version.removeprefix("ATIF-v"),
        format="ATIF trajectory (.json)",
        name=name_of(path.stem),
        trials=lambda: iter((trial,)),
    )
