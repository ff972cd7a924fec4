"""Define the options of a run: one frozen object that every layer passes on unchanged.

The command line imports this module at start-up, so it imports nothing heavy.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff._kernel.choices import EXECUTORS, REPLAY_MODES, ExecutorName, ReplayMode, SandboxName
from bakeoff._kernel.environment import default_jobs
from bakeoff.errors import UsageError

if TYPE_CHECKING:
    from bakeoff.storage.redaction import Redactor


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options that control how a plan is run. None of them changes what is measured."""

    results: Path = Path("results")  # or the address of an object store, such as Path("s3://bucket/results")
    folder: Path | None = None  # of the run to resume or start; None: a new one in `results`
    jobs: int = field(default_factory=default_jobs)  # trials in flight, over the whole plan
    retries: int = 2  # only after infra failures
    backoff_seconds: float = 1.0  # before the first retry; doubled each time, jittered
    longest_backoff_seconds: float = 60.0
    max_cost: float | None = None  # USD
    max_total_tokens: int | None = None  # of all trials; the length of one reply is an option of subjects
    max_seconds: float | None = None  # time limit of this process, not of the whole run
    sandbox: SandboxName = "auto"
    keep_workspaces: bool = False
    replay: ReplayMode = "off"  # whether model calls are recorded or answered from recordings
    recordings: Path = Path(".bakeoff/recordings")
    upload_interval: float = 10.0  # seconds between uploads of a run that is kept in an object store
    trace: bool = False  # send OpenTelemetry spans; needs the extra `otel`
    rescore_only: bool = False  # make no new attempts, score the recorded ones
    rescore_all: bool = False  # score again even if the scorers have not changed
    executor: ExecutorName = "local"  # `ray` needs the extra `ray`
    ray_address: str | None = None  # None: RAY_ADDRESS, else a local Ray, else a new one
    ray_silence_seconds: float = 60.0  # a node that is silent for so long counts as lost
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)  # in addition to those of the environment

    def __post_init__(self) -> None:
        for name, least in (("jobs", 1), ("retries", 0), ("backoff_seconds", 0), ("longest_backoff_seconds", 0)):
            if getattr(self, name) < least:
                raise UsageError(f"{name}: {getattr(self, name)} is below {least}")
        if self.replay not in REPLAY_MODES:
            raise UsageError(f"replay: {self.replay!r} is not one of {', '.join(REPLAY_MODES)}")
        if self.executor not in EXECUTORS:
            raise UsageError(f"executor: {self.executor!r} is not one of {', '.join(EXECUTORS)}")
        if self.ray_address is not None and self.executor != "ray":
            raise UsageError(f"ray_address: {self.ray_address!r} is for the executor `ray`: add it, or leave this out")
        if self.executor == "ray" and find_spec("ray") is None:
            raise UsageError("executor: 'ray' needs Ray, which is not installed: run `pip install 'bakeoff[ray]'`")
        if self.trace:
            from bakeoff._kernel.tracing import check_tracing

            check_tracing()
        for name in ("max_cost", "max_total_tokens", "max_seconds", "ray_silence_seconds", "upload_interval"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UsageError(f"{name}: {value} is not above 0: leave it out for no limit")

    def redactor(self) -> "Redactor":
        """Return a redactor that knows the secrets of the environment, of `.env` files and of this run."""
        from bakeoff.storage.redaction import Redactor, known_secrets

        return Redactor({**known_secrets(), **self.secrets})
