"""The model of a result file, with the field names of the format.

Unknown values are not written, and unknown fields are ignored when a file is read. The fields that bakeoff adds to the
format are under the key `bakeoff`.
"""

import json
import re
from collections.abc import Sequence
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from bakeoff.doors.result_files import CamelObject, HiddenTests, Moment, written_shortest
from bakeoff.logs.trials import MAX_NUMBER
from bakeoff.record import ProvenTests
from bakeoff.verdict import Verdict

_MAX_COUNT = 10_000  # exercises of a file, attempts at one
_UNSAFE = re.compile(r"[^a-zA-Z0-9._-]")


def safe_name(text: str) -> str:
    """Return a text made safe for file names and keys: other characters become `_`, and it is cut to 100 characters."""
    return _UNSAFE.sub("_", text)[:100]


# An empty name or `default`, which some programs write, is no model.
_NO_DEFAULT = BeforeValidator(lambda value: None if value in ("", "default") else value)
Number = Annotated[float, Field(ge=0, le=MAX_NUMBER), written_shortest(6)]
Percent = Annotated[float, Field(ge=0, le=100), written_shortest(6)]
# With the digits that a price can have. A sum of floats has more, which are noise.
Dollars = Annotated[float, Field(ge=0, le=MAX_NUMBER), written_shortest(12)]
Count = Annotated[int, Field(ge=0, le=MAX_NUMBER)]
Short = Annotated[str, Field(min_length=1, max_length=500)]
Long = Annotated[str, Field(max_length=100_000)]


class AgentsMetadata(CamelObject):
    """The agent, its model and provider, and the run. `timestamp` is when the first trial began."""

    agent: Short
    model: Annotated[Short | None, _NO_DEFAULT] = None
    provider: Short = "unknown"
    version: str | None = Field(default=None, max_length=500)
    timestamp: Moment | None = None
    exercise_count: Count | None = None
    benchmark_version: str | None = Field(default=None, max_length=100)
    generated_by: str | None = Field(default=None, max_length=200)
    run_url: str | None = Field(default=None, max_length=2000)
    run_id: str | None = Field(default=None, max_length=200)


class FileSummary(CamelObject):
    """The totals of a file. Durations are in milliseconds; a rate is a percentage of attempts."""

    success_rate: Percent = 0.0
    total_duration: Number = 0.0
    avg_duration: Number = 0.0
    success_count: Count = 0
    total_count: Annotated[int, Field(ge=0, le=_MAX_COUNT)] = 0
    agent_success_count: Count = 0
    test_success_count: Count = 0
    test_failed_count: Count = 0

    @model_validator(mode="after")
    def _check_counts(self) -> Self:
        if self.success_count > self.total_count:
            raise ValueError(f"successCount {self.success_count} is more than totalCount {self.total_count}")
        return self


class TokenUsage(CamelObject):
    """The tokens of one attempt, and their cost in USD if it is known."""

    input_tokens: Count = 0
    output_tokens: Count = 0
    total_tokens: Count = 0
    cost: Dollars | None = None
    estimated: bool | None = None  # a provider sent no usage, and texts were counted instead


class Attempt(CamelObject):
    """One try at an exercise."""

    agent_success: bool = False
    test_success: bool = False
    overall_success: bool = False
    agent_error: Long | None = None
    test_error: Long | None = None
    agent_duration: Number = 0.0
    test_duration: Number = 0.0
    total_duration: Number = 0.0
    token_usage: TokenUsage | None = None


class ExerciseResult(Attempt):
    """One exercise. With several rounds, it is solved only if every attempt is, and durations are means."""

    exercise: Short
    attempts: Annotated[tuple[Attempt, ...], Field(max_length=_MAX_COUNT)] | None = None


def added_costs(usages: Sequence[TokenUsage]) -> float | None:
    """Add up costs. The sum is unknown if any cost is, so that the agent does not look cheap."""
    costs = [usage.cost for usage in usages if usage.cost is not None]
    return sum(costs) if costs and len(costs) == len(usages) else None


def summary_of(exercises: Sequence[Sequence[Attempt]]) -> FileSummary:
    """Sum up attempts by exercise. Rates are shares of attempts. An exercise counts as solved if every attempt is."""
    made = [attempt for tries in exercises for attempt in tries]
    total = sum(attempt.total_duration for attempt in made)

    def count(field: str) -> int:
        return sum(all(getattr(attempt, field) for attempt in tries) for tries in exercises)

    return FileSummary(
        success_rate=round(100 * sum(attempt.overall_success for attempt in made) / len(made), 1) if made else 0.0,
        total_duration=round(total, 3),
        avg_duration=round(total / len(made), 3) if made else 0.0,
        success_count=count("overall_success"),
        total_count=len(exercises),
        agent_success_count=count("agent_success"),
        test_success_count=count("test_success"),
        test_failed_count=len(exercises) - count("test_success"),
    )


class LostTrial(CamelObject):
    """A trial that says nothing about the agent, and so is not counted."""

    exercise: Short
    round: Count = 1
    verdict: Verdict
    reason: Long = ""


class AgentsAdditions(CamelObject):
    """The fields that bakeoff adds to the format."""

    run: str | None = Field(default=None, description="the run folder that the file was computed from")
    subject: Short
    control: bool = False
    metered: bool | None = None
    rounds: Annotated[int, Field(ge=1, le=_MAX_COUNT)] = 1
    track: Long | None = None
    language: Long | None = None
    checkout: Long | None = Field(default=None, description="the folder of the track, or `bundled`")
    commit: Long | None = Field(default=None, description="of the checkout; the version, for bundled exercises")
    left_out: tuple[Long, ...] = Field(default=(), description="why exercises of the track could not be used")
    replayed: Count = Field(default=0, description="attempts that were answered from recordings, at least in part")
    not_run: tuple[Short, ...] = ()
    lost: tuple[LostTrial, ...] = ()
    failure_classes: dict[str, Count] = {}
    hidden_tests: HiddenTests | None = Field(default=None, description="where a share of the tests was hidden")
    hidden_tests_by_exercise: dict[str, HiddenTests] | None = None
    proven_tests: ProvenTests | None = Field(default=None, description="of all exercises")


class AgentsResult(CamelObject):
    """The results of one agent in all rounds."""

    metadata: AgentsMetadata
    summary: FileSummary = FileSummary()
    results: Annotated[tuple[ExerciseResult, ...], Field(max_length=_MAX_COUNT)] = ()
    bakeoff: AgentsAdditions | None = None

    def with_summary(self) -> Self:
        """Return the file with a summary, computed if the file has none."""
        if self.summary.total_count or not self.results:
            return self
        summary = summary_of([each.attempts or (each,) for each in self.results])
        return self.model_copy(update={"summary": summary})

    def to_json(self) -> bytes:
        """Return the contents of the file."""
        return (json.dumps(self.as_json(), indent=2) + "\n").encode()

    def as_json(self) -> dict[str, Any]:
        """Return the file as JSON, with `exercise` first in each result."""
        written = self.model_dump(mode="json", exclude_none=True)
        written["results"] = [{"exercise": each["exercise"], **each} for each in written["results"]]
        return written
