"""Read job and trial folders of Harbor: `result.json` of each trial, and the trajectory of its agent."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bakeoff._kernel.json import as_json
from bakeoff.logs.atif import AtifTrajectory, agent_subject
from bakeoff.logs.trials import (
    Amount,
    Count,
    ForeignLog,
    LoggedObject,
    LoggedTrial,
    broken,
    check,
    child_folders,
    file_in,
    first_bytes,
    name_of,
    outer_keys,
    read_json,
    score_of,
    seconds_between,
    seconds_of,
)
from bakeoff.plan import Case
from bakeoff.record import NO_USAGE, Failure, Transcript, Usage

REWARD = "reward"
"""The name of the reward that counts, if a task has several."""
RESULT = "result.json"
# The agent or its model ended the attempt: by Harbor's own rule, the reward is a valid measurement.
_VALID = {
    "AgentTimeoutError", "ContextWindowExceededError", "OutputTokenExceededError", "ContextLengthExceededError",
    "OutputLengthExceededError", "AgentSafetyRefusalError", "ContentPolicyViolationError",
}  # fmt: skip
_VERIFIER = {"VerifierTimeoutError", "RewardFileNotFoundError", "RewardFileEmptyError", "VerifierOutputParseError"}


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


class _Model(LoggedObject):
    name: str
    provider: str | None = None


class _Agent(LoggedObject):
    name: str
    version: str | None = None
    model_info: _Model | None = None


class _Context(LoggedObject):
    n_input_tokens: Count | None = None
    n_cache_tokens: Count | None = None
    n_output_tokens: Count | None = None
    cost_usd: Amount = None


class _VerifierResult(LoggedObject):
    rewards: dict[str, Any] | None = None


class _StepResult(LoggedObject):
    agent_result: _Context | None = None
    exception_info: _Exception | None = None


class _HarborTrial(LoggedObject):
    task_name: str
    trial_name: str
    source: str | None = None
    agent_info: _Agent
    agent_result: _Context | None = None
    verifier_result: _VerifierResult | None = None
    exception_info: _Exception | None = None
    started_at: str | None = None
    environment_setup: _Timing | None = None
    agent_setup: _Timing | None = None
    agent_execution: _Timing | None = None
    verifier: _Timing | None = None
    step_results: list[_StepResult] | None = None

    @property
    def exceptions(self) -> list[_Exception]:
        """Return that of the trial, then those of its steps."""
        return [each for each in (self.exception_info, *(s.exception_info for s in self.step_results or ())) if each]

    @property
    def contexts(self) -> list[_Context]:
        if self.agent_result is not None:
            return [self.agent_result]
        return [each.agent_result for each in self.step_results or () if each.agent_result]


def trial_folders(folder: Path) -> list[Path]:
    """Return the folders of the trials of a job, or the folder itself if it is that of one trial."""
    if _is_trial(folder):
        return [folder]
    return [each for each in child_folders(folder) if _is_trial(each)]


def _is_trial(folder: Path) -> bool:
    found = file_in(folder, RESULT)
    return found is not None and {"trial_name", "task_name"} <= outer_keys(first_bytes(found))[0]


def read_job(path: Path) -> ForeignLog:
    """Read a folder, trial by trial."""
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
        content_known=False,  # agents word the instruction of one task differently
    )


def _read_trial(folder: Path) -> _HarborTrial:
    result = folder / RESULT
    return check(_HarborTrial, read_json(result), result)


def _trajectory(folder: Path) -> AtifTrajectory | None:
    found = file_in(folder, "agent", "trajectory.json")
    return None if found is None else check(AtifTrajectory, read_json(found), found)


def _trial(trial: _HarborTrial, trajectory: AtifTrajectory | None, prompt: str) -> LoggedTrial:
    agent = trial.agent_info
    rewards = (trial.verifier_result.rewards if trial.verifier_result else None) or {}
    scores = [score_of(name, value) for name, value in rewards.items()]
    counted = [score for score in scores if score.name == REWARD] or scores
    failure = _failure(trial, scored=bool(scores))
    setup = [each.seconds for each in (trial.environment_setup, trial.agent_setup) if each and each.seconds is not None]
    return LoggedTrial(
        case=Case(
            id=name_of(trial.task_name),
            prompt=prompt,
            tags={"source": name_of(trial.source)} if trial.source else {},
        ),
        subject=agent_subject(agent.name, agent.model_info.name if agent.model_info else None, agent.version),
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
    """Return why a trial has no valid reward. The first exception says it."""
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
    used = sum(map(_usage, contexts), NO_USAGE)
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


def _usage(context: _Context) -> Usage:
    """Return the usage. Harbor's input tokens include cached ones, as ours do."""
    return Usage(
        input=context.n_input_tokens or 0,
        output=context.n_output_tokens or 0,
        cache_read=context.n_cache_tokens or 0,
        cost=context.cost_usd,
    )
