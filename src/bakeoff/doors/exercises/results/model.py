"""The result file, field by field, under the names it has there. What is unknown is left out.

Fields that are not in the table are passed over on reading; what this project adds stands under the key `bakeoff`.
"""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    AliasGenerator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    model_validator,
)
from pydantic.alias_generators import to_camel

from bakeoff._kernel.model import FrozenModel
from bakeoff.record import Verdict

_MOST = 10_000  # exercises of a file, attempts at one
_LARGEST = 10**15
_UNSAFE = re.compile(r"[^a-zA-Z0-9._-]")
_END_OF_TIME = 253_402_300_800  # the year 10000, which dates here do not reach


def safe_name(text: str) -> str:
    """As a part of a file name or a key."""
    return _UNSAFE.sub("_", text)[:100]


def timestamp_of(seconds: float) -> str:
    """As JavaScript writes a date: UTC, with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_of(timestamp: str) -> float:
    """Since 1970; a time without a zone is UTC. ValueError where it is no time."""
    moment = datetime.fromisoformat(timestamp)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _moment(timestamp: str) -> str:
    try:
        seconds = seconds_of(timestamp)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{timestamp!r:.60} is no time: write it as 2026-01-31T12:00:00.000Z") from error
    if not 0 <= seconds < _END_OF_TIME:
        raise ValueError(f"{timestamp!r:.60} is no time since 1970")
    return timestamp


def _shortly(number: float) -> int | float:
    """As JavaScript writes it: 3, not 3.0."""
    return int(number) if float(number).is_integer() else round(number, 6)


def _dollars(amount: float) -> int | float:
    """To the last digit that a price has; a sum of floats has more, which are noise."""
    return int(amount) if float(amount).is_integer() else round(amount, 12)


def _said(value: Any) -> Any:
    """Some write null, or nothing, where there is no model."""
    return None if value in ("", "default") else value


Number = Annotated[float, Field(ge=0, le=_LARGEST), PlainSerializer(_shortly, return_type=int | float)]
Percent = Annotated[float, Field(ge=0, le=100), PlainSerializer(_shortly, return_type=int | float)]
Dollars = Annotated[float, Field(ge=0, le=_LARGEST), PlainSerializer(_dollars, return_type=int | float)]
Count = Annotated[int, Field(ge=0, le=_LARGEST)]
Short = Annotated[str, Field(min_length=1, max_length=500)]
Long = Annotated[str, Field(max_length=100_000)]
Moment = Annotated[str, Field(max_length=60), AfterValidator(_moment)]


class _Written(FrozenModel):
    model_config = ConfigDict(
        extra="ignore", alias_generator=AliasGenerator(alias=to_camel), populate_by_name=True, allow_inf_nan=False
    )


class Metadata(_Written):
    agent: Short
    model: Annotated[Short | None, BeforeValidator(_said)] = None
    provider: Short = "unknown"
    version: str | None = Field(default=None, max_length=500)
    timestamp: Moment | None = None
    exercise_count: Count | None = None
    benchmark_version: str | None = Field(default=None, max_length=100)
    generated_by: str | None = Field(default=None, max_length=200)
    run_url: str | None = Field(default=None, max_length=2000)
    run_id: str | None = Field(default=None, max_length=200)


class FileSummary(_Written):
    success_rate: Percent = 0.0
    total_duration: Number = 0.0
    avg_duration: Number = 0.0
    success_count: Count = 0
    total_count: Annotated[int, Field(ge=0, le=_MOST)] = 0
    agent_success_count: Count = 0
    test_success_count: Count = 0
    test_failed_count: Count = 0

    @model_validator(mode="after")
    def _no_more_than_all(self) -> Self:
        if self.success_count > self.total_count:
            raise ValueError(f"successCount {self.success_count} is more than totalCount {self.total_count}")
        return self


class TokenUsage(_Written):
    input_tokens: Count = 0
    output_tokens: Count = 0
    total_tokens: Count = 0
    cost: Dollars | None = None


class Attempt(_Written):
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
    exercise: Short
    attempts: Annotated[tuple[Attempt, ...], Field(max_length=_MOST)] | None = None


def added_costs(usages: Sequence[TokenUsage]) -> float | None:
    """A sum with an unknown in it is unknown: nobody may look cheap for that."""
    costs = [usage.cost for usage in usages if usage.cost is not None]
    return sum(costs) if costs and len(costs) == len(usages) else None


def summary_of(exercises: Sequence[Sequence[Attempt]]) -> FileSummary:
    """Rates over all attempts; counts over exercises, which are solved if every attempt was."""
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


class Lost(_Written):
    """A trial that says nothing about the agent, and so is in no number."""

    exercise: Short
    round: Count = 1
    verdict: Verdict
    reason: Long = ""


class Additions(_Written):
    """What this project adds."""

    run: str | None = Field(default=None, description="the run folder that the file was computed from")
    subject: Short
    control: bool = False
    metered: bool | None = None
    rounds: Annotated[int, Field(ge=1, le=_MOST)] = 1
    not_run: tuple[Short, ...] = ()
    lost: tuple[Lost, ...] = ()
    failure_classes: dict[str, Count] = {}


class ResultFile(_Written):
    metadata: Metadata
    summary: FileSummary = FileSummary()
    results: Annotated[tuple[ExerciseResult, ...], Field(max_length=_MOST)] = ()
    bakeoff: Additions | None = None

    def with_summary(self) -> Self:
        """Summed up anew where the file does not do it."""
        if self.summary.total_count or not self.results:
            return self
        summary = summary_of([each.attempts or (each,) for each in self.results])
        return self.model_copy(update={"summary": summary})

    def to_json(self) -> bytes:
        return (json.dumps(self.as_json(), indent=2) + "\n").encode()

    def as_json(self) -> dict[str, Any]:
        """`exercise` first in each result, as people expect it."""
        written = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        written["results"] = [{"exercise": each["exercise"], **each} for each in written["results"]]
        return written
