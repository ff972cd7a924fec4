# mypy: ignore-errors
"""Make the Harbor job folder and the ATIF trajectory in tests/logs/logs, with the models of harbor 0.25.0.

Harbor runs tasks in containers; its own pydantic models and its own statistics stand for a run here.

    python scripts/logs/harbor_job.py tests/logs/logs
"""

import sys
import typing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import typing_extensions

if sys.version_info < (3, 12):  # which Harbor asks for; its models need only these two names
    typing.TypedDict = typing_extensions.TypedDict
    typing.override = typing_extensions.override

from harbor.models.agent.context import AgentContext
from harbor.models.job.result import JobResult, JobStats
from harbor.models.task.id import LocalTaskId
from harbor.models.trajectories import (
    Agent,
    FinalMetrics,
    Metrics,
    Observation,
    ObservationResult,
    Step,
    ToolCall,
    Trajectory,
)
from harbor.models.trial.config import TaskConfig, TrialConfig
from harbor.models.trial.result import AgentInfo, ExceptionInfo, ModelInfo, TimingInfo, TrialResult
from harbor.models.verifier.result import VerifierResult

START = datetime(2026, 11, 1, 9, 0, tzinfo=UTC)
TRIALS = [  # task, reward, exception
    ("hello-world", 1.0, None),
    ("hello-world", 0.0, None),
    ("fix-tests", 1.0, None),
    ("fix-tests", 1.0, "AgentTimeoutError"),  # the agent used all its time: the reward is valid
    ("broken-image", None, "EnvironmentStartTimeoutError"),
    ("broken-image", 0.0, "ApiRateLimitError"),  # the provider failed: the reward is not valid
    ("odd-verifier", None, "RewardFileNotFoundError"),
    ("odd-verifier", 0.0, None),
]


def moment(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def trajectory(task: str) -> Trajectory:
    """Return what a small agent did: think, call a tool, answer."""
    return Trajectory(
        session_id=f"session-{task}",
        agent=Agent(name="mini-agent", version="1.2.3", model_name="openai/gpt-none"),
        steps=[
            Step(step_id=1, timestamp=moment(60).isoformat(), source="user", message=f"Solve the task {task}."),
            Step(
                step_id=2,
                timestamp=moment(65).isoformat(),
                source="agent",
                message="I look around.",
                reasoning_content="Files first.",
                tool_calls=[ToolCall(tool_call_id="call-1", function_name="bash", arguments={"command": "ls"})],
                observation=Observation(results=[ObservationResult(source_call_id="call-1", content="README.md")]),
                metrics=Metrics(prompt_tokens=100, completion_tokens=20, cached_tokens=10, cost_usd=0.001),
            ),
            Step(
                step_id=3,
                timestamp=moment(70).isoformat(),
                source="agent",
                message="Done <script>alert(1)</script>.",
                metrics=Metrics(prompt_tokens=150, completion_tokens=10, cached_tokens=90, cost_usd=0.002),
            ),
        ],
        final_metrics=FinalMetrics(
            total_prompt_tokens=250, total_completion_tokens=30, total_cached_tokens=100, total_cost_usd=0.003
        ),
    )


def trial(number: int, task: str, reward: float | None, exception: str | None) -> TrialResult:
    """Return the result of one trial."""
    ran = exception != "EnvironmentStartTimeoutError"
    more: dict[str, Any] = {}
    if ran:
        more["agent_result"] = AgentContext(n_input_tokens=250, n_cache_tokens=100, n_output_tokens=30, cost_usd=0.003)
        more["agent_execution"] = TimingInfo(started_at=moment(60), finished_at=moment(70))
    if reward is not None:
        more["verifier_result"] = VerifierResult(rewards={"reward": reward, "lines": 7})
        more["verifier"] = TimingInfo(started_at=moment(70), finished_at=moment(75))
    if exception:
        more["exception_info"] = ExceptionInfo(
            exception_type=exception,
            exception_message=f"{exception} of the sample",
            exception_traceback="Traceback (most recent call last):\n  …",
            occurred_at=moment(70),
        )
    name = f"{task}__{number:07d}"
    return TrialResult(
        id=UUID(int=number),
        task_name=task,
        trial_name=name,
        trial_uri=f"file:///jobs/sample/{name}",
        task_id=LocalTaskId(path=Path("tasks") / task),
        source="sample-tasks",
        task_checksum=f"{number:064x}",
        config=TrialConfig(task=TaskConfig(path=Path("tasks") / task), trial_name=name, trials_dir=Path("jobs/sample")),
        agent_info=AgentInfo(
            name="mini-agent", version="1.2.3", model_info=ModelInfo(name="gpt-none", provider="openai")
        ),
        started_at=moment(0),
        finished_at=moment(80),
        environment_setup=TimingInfo(started_at=moment(0), finished_at=moment(50)),
        agent_setup=TimingInfo(started_at=moment(50), finished_at=moment(60)),
        **more,
    )


def main(target: Path) -> None:
    """Write the job as Harbor lays it out."""
    results = [trial(number, *each) for number, each in enumerate(TRIALS, 1)]
    job = target / "harbor-job"
    for result in results:
        folder = job / result.trial_name
        (folder / "agent").mkdir(parents=True, exist_ok=True)
        (folder / "result.json").write_text(result.model_dump_json(indent=4))
        if result.agent_result:
            text = trajectory(result.task_name).model_dump_json(indent=1, exclude_none=True)
            (folder / "agent" / "trajectory.json").write_text(text)
    stats = JobStats.from_trial_results(results, n_total_trials=len(results))
    whole = JobResult(
        id=UUID(int=99), started_at=START, finished_at=moment(90), n_total_trials=len(results), stats=stats
    )
    (job / "result.json").write_text(whole.model_dump_json(indent=4, exclude={"trial_results"}))
    (target / "atif.json").write_text(trajectory("alone").model_dump_json(indent=1, exclude_none=True))
    print(stats.model_dump_json(indent=1))
    print([(each.trial_name, each.reward_valid) for each in results])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
