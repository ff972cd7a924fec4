"""Read job and trial folders of Harbor: `result.json` of each trial, and the trajectory of its agent.

A trajectory in ATIF, the Agent Trajectory Interchange Format of Harbor, can also be read alone: `trajectory.json`.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import AliasPath, Field

from bakeoff._kernel.json import as_json
from bakeoff.logs.trials import (
    RECORDED,
    Count,
    ForeignLog,
    LoggedObject,
    LoggedTrial,
    LoggedUsage,
    broken,
    check,
    child_folders,
    file_in,
    first_bytes,
    name_of,
    named,
    outer_keys,
    read_json,
    score_of,
    seconds_between,
    seconds_of,
    subject_of,
    text_of,
)
from bakeoff.plan import Case, SubjectSpec
from bakeoff.record import NO_USAGE, Failure, Part, Reasoning, Step, Text, ToolCall, Transcript, Usage

REWARD = "reward"
"""The name of the reward that counts, if a task has several."""
RESULT = "result.json"
# The agent or its model ended the attempt: by Harbor's own rule, the reward is a valid measurement.
_VALID = {
    "AgentTimeoutError", "ContextWindowExceededError", "OutputTokenExceededError", "ContextLengthExceededError",
    "OutputLengthExceededError", "AgentSafetyRefusalError", "ContentPolicyViolationError",
}  # fmt: skip
_VERIFIER = {"VerifierTimeoutError", "RewardFileNotFoundError", "RewardFileEmptyError", "VerifierOutputParseError"}


class _Call(LoggedObject):
    tool_call_id: str | None = None
    function_name: str
    arguments: Any = None


class _AtifAnswer(LoggedObject):
    source_call_id: str | None = None
    content: Any = None


class _AtifStep(LoggedObject):
    source: str
    timestamp: str | None = None
    model_name: str | None = None
    message: Any = ""
    reasoning_content: str | None = None
    tool_calls: list[_Call] | None = None
    results: list[_AtifAnswer] = named(AliasPath("observation", "results"), default=[])
    metrics: LoggedUsage | None = None
    is_copied_context: bool | None = None
    llm_call_count: Count | None = None


class _AtifAgent(LoggedObject):
    name: str
    version: str | None = None
    model_name: str | None = None


class AtifTrajectory(LoggedObject):
    """The steps of one agent on one task."""

    schema_version: str = Field(pattern=r"^ATIF-v1\.")
    session_id: str | None = None
    trajectory_id: str | None = None
    agent: _AtifAgent
    steps: list[_AtifStep] = Field(min_length=1)
    final_metrics: LoggedUsage | None = None

    @property
    def instruction(self) -> str:
        """Return the first message to the agent."""
        return next((text_in(step.message) for step in self.steps if step.source == "user"), "")

    @property
    def seconds(self) -> float | None:
        stamps = [step.timestamp for step in self.steps if step.timestamp]
        return seconds_between(stamps[0], stamps[-1]) if stamps else None

    @property
    def usage(self) -> Usage:
        """Return the totals of the trajectory, or else the sum of its steps."""
        total, own = self.final_metrics, [step for step in self.steps if step.metrics and not step.is_copied_context]
        requests = sum(1 if step.llm_call_count is None else step.llm_call_count for step in own)
        known = total is not None and not (total.input is None and total.output is None)
        used = sum((each.usage() for each in ([total] if known else [step.metrics for step in own]) if each), NO_USAGE)
        return used.model_copy(update={"requests": requests})

    def transcript(self) -> Transcript:
        """Return the steps of the agent, without the copies of earlier steps that summaries leave behind."""
        own = [step for step in self.steps if step.source == "agent" and not step.is_copied_context]
        taken = [seconds_between(one.timestamp, other.timestamp) for one, other in pairwise(self.steps)]
        by_step = {id(step): seconds for step, seconds in zip(self.steps[1:], taken, strict=True)}
        about = {"name": self.agent.name, "version": self.agent.version, "model": self.agent.model_name}
        return Transcript(
            output=next((said for step in reversed(own) if (said := text_in(step.message))), None),
            steps=tuple(
                Step(
                    parts=tuple(_parts(step)),
                    usage=step.metrics.usage() if step.metrics else NO_USAGE,
                    seconds=by_step.get(id(step)),
                )
                for step in own
            ),
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
    results, calls = step.results, step.tool_calls or []
    answers = {each.source_call_id: each for each in results if each.source_call_id is not None}
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


def _agent_subject(name: str, model: str | None, version: str | None) -> SubjectSpec:
    """Return an agent with its model. Harbor's agents `oracle` and `nop` are controls, as ours are."""
    options = {"agent": name_of(name), "model": model, "version": version}
    kind = name if name in ("oracle", "nop") else RECORDED
    return subject_of(f"{name} {model}" if model else name, options, kind)


class _Timing(LoggedObject):
    started_at: str | None = None
    finished_at: str | None = None

    @property
    def seconds(self) -> float | None:
        return seconds_between(self.started_at, self.finished_at)


class _Exception(LoggedObject):
    exception_type: str
    exception_message: str = ""
    exception_traceback: str = ""


class _Agent(LoggedObject):
    name: str
    version: str | None = None
    model: str | None = named(AliasPath("model_info", "name"))


class _StepResult(LoggedObject):
    agent_result: LoggedUsage | None = None
    exception_info: _Exception | None = None


class _HarborTrial(LoggedObject):
    task_name: str
    trial_name: str
    source: str | None = None
    agent_info: _Agent
    agent_result: LoggedUsage | None = None
    rewards: dict[str, Any] | None = named(AliasPath("verifier_result", "rewards"))
    exception_info: _Exception | None = None
    started_at: str | None = None
    environment_setup: _Timing | None = None
    agent_setup: _Timing | None = None
    agent_execution: _Timing | None = None
    verifier: _Timing | None = None
    step_results: list[_StepResult] | None = None

    @property
    def exceptions(self) -> list[_Exception]:
        """Return the exception of the trial, then those of its steps."""
        return [each for each in (self.exception_info, *(s.exception_info for s in self.step_results or ())) if each]

    @property
    def contexts(self) -> list[LoggedUsage]:
        steps = [each.agent_result for each in self.step_results or () if each.agent_result]
        return steps if self.agent_result is None else [self.agent_result]


def trial_folders(folder: Path) -> list[Path]:
    """Return the trial folders of a job, or the folder itself if it belongs to one trial."""

    def is_trial(candidate: Path) -> bool:
        found = file_in(candidate, RESULT)
        return found is not None and {"trial_name", "task_name"} <= outer_keys(first_bytes(found))[0]

    return [folder] if is_trial(folder) else [each for each in child_folders(folder) if is_trial(each)]


def read_job(path: Path) -> ForeignLog:
    """Read the folder of a job, trial by trial."""
    folders = trial_folders(path)
    prompts: dict[str, str] = {}
    for folder in folders:
        task = _read_trial(folder).task_name
        if task not in prompts and (found := _trajectory(folder)) is not None and found.instruction:
            prompts[task] = found.instruction

    def trials() -> Iterator[LoggedTrial]:
        for folder in folders:
            trial = _read_trial(folder)
            yield _trial(trial, _trajectory(folder), prompts.get(trial.task_name, ""))

    job = path.resolve()
    return ForeignLog(
        tool="Harbor",
        format="Harbor trial folder" if folders == [path] else "Harbor job folder",
        name=name_of(job.name),
        trials=trials,
        content_known=False,  # agents word the instruction of the same task differently
    )


def _read_trial(folder: Path) -> _HarborTrial:
    result = folder / RESULT
    return check(_HarborTrial, read_json(result), result)


def _trajectory(folder: Path) -> AtifTrajectory | None:
    found = file_in(folder, "agent", "trajectory.json")
    return None if found is None else check(AtifTrajectory, read_json(found), found)


def _trial(trial: _HarborTrial, trajectory: AtifTrajectory | None, prompt: str) -> LoggedTrial:
    agent = trial.agent_info
    scores = [score_of(name, value) for name, value in (trial.rewards or {}).items()]
    counted = [score for score in scores if score.name == REWARD] or scores
    failure, source = _failure(trial, scored=bool(scores)), {"source": name_of(trial.source)} if trial.source else {}
    setup = [each.seconds for each in (trial.environment_setup, trial.agent_setup) if each and each.seconds is not None]
    return LoggedTrial(
        case=Case(id=name_of(trial.task_name), prompt=prompt, tags=source),
        subject=_agent_subject(agent.name, agent.model, agent.version),
        started=seconds_of(trial.started_at),
        prepare_seconds=sum(setup) if setup else None,
        attempt_seconds=trial.agent_execution.seconds if trial.agent_execution else None,
        score_seconds=trial.verifier.seconds if trial.verifier else None,
        failure=failure,
        transcript=_transcript(trial, trajectory),
        scores=() if failure else tuple(counted),
        asides=() if failure else tuple(score for score in scores if score not in counted),
    )


def _failure(trial: _HarborTrial, *, scored: bool) -> Failure | None:
    """Return the first exception of a trial as its failure; None if its reward is valid."""
    exceptions = trial.exceptions
    if not exceptions or (scored and all(each.exception_type in _VALID for each in exceptions)):
        return None
    first = exceptions[0]
    failure = broken(first.exception_message, first.exception_traceback, first.exception_type)
    return failure.model_copy(update={"kind": "grader"}) if first.exception_type in _VERIFIER else failure


def _transcript(trial: _HarborTrial, trajectory: AtifTrajectory | None) -> Transcript | None:
    """Return the trajectory of the agent, with the totals of the result, which include its subagents."""
    contexts = trial.contexts
    made = trajectory.transcript() if trajectory else None
    if not contexts and made is None:
        return None
    used = sum((each.usage() for each in contexts), NO_USAGE)
    known = used if used != NO_USAGE or made is None else made.usage
    requests = made.usage.requests if made else 0
    ended = {"ended_by": [each.exception_type for each in trial.exceptions]} if trial.exceptions else {}
    made = made or Transcript()
    return made.model_copy(
        update={
            "usage": known.model_copy(update={"requests": requests}),
            "metadata": {**made.metadata, "trial": name_of(trial.trial_name), **as_json(ended)},  # type: ignore[dict-item]
        }
    )


def read_trajectory(path: Path) -> ForeignLog:
    """Read one trajectory. It shows the agent's steps, but not whether the result was right."""
    found = check(AtifTrajectory, read_json(path), path)
    trial = LoggedTrial(
        case=Case(id=name_of(found.session_id or found.trajectory_id or path.stem), prompt=found.instruction),
        subject=_agent_subject(found.agent.name, found.agent.model_name, found.agent.version),
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
