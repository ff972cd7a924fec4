"""The record of one trial. Phases and scores are stored; verdicts are derived from them.

A `Record` has up to three `Phase`s (prepare, attempt, score), the `Transcript` of the attempt, the
collected files and a `Score` per scorer. A phase that was not reached is None. A phase that ended
early has a `Failure`, whose `kind` names the cause. The two keys identify what was tried and
scored: a record belongs to a trial only if their keys are equal.

Texts of subjects and scorers are cleaned when an object is made, so that every record can be written as JSON.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    Field,
    ModelWrapValidatorHandler,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from bakeoff._kernel.json import CleanJson, CleanObject, CleanText, as_json, clean
from bakeoff._kernel.model import FrozenModel, sparse_field
from bakeoff.verdict import Round, Verdict, trial_verdict

if TYPE_CHECKING:
    from bakeoff.plan import Plan, Trial

_Told = TypeVar("_Told", bound=FrozenModel)

SCHEMA = 2
"""The version of the journal format; `bakeoff.storage.journal` reads all older ones."""


BROKEN = "tests_broken"
"""The key in the metadata of a score for tests that the reference itself fails, by the fault of the case."""

OPENED = "opened"
"""The key in a transcript's metadata for the files of a treatment that the subject opened, where that is known."""


LABEL = "label"
"""The key in the metadata of a score for the text of a scorer that gives no number on purpose."""


class Usage(FrozenModel):
    """Tokens and money. `input` includes cached tokens; `cost` is in USD, or None if unknown."""

    requests: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost: float | None = None
    unpriced: int = sparse_field(0, "tokens that are not in `cost`; 0 if it is None, which leaves out all")

    @property
    def tokens_without_price(self) -> int:
        """Return the number of tokens whose cost is unknown."""
        return self.tokens if self.cost is None else self.unpriced

    @property
    def tokens(self) -> int:
        """Return the tokens of prompts and answers. `input` already includes cached tokens."""
        return self.input + self.output

    def __add__(self, other: Self) -> "Usage":
        return self._combine(other, 1)

    def __sub__(self, other: Self) -> "Usage":
        return self._combine(other, -1)

    def _combine(self, other: Self, sign: int) -> "Usage":
        costs = [cost for cost in (self.cost, other.cost and sign * other.cost) if cost is not None]
        unpriced = self.tokens_without_price + sign * other.tokens_without_price
        return Usage(
            requests=self.requests + sign * other.requests,
            input=self.input + sign * other.input,
            output=self.output + sign * other.output,
            cache_read=self.cache_read + sign * other.cache_read,
            cache_write=self.cache_write + sign * other.cache_write,
            reasoning=self.reasoning + sign * other.reasoning,
            cost=sum(costs) if costs else None,
            unpriced=unpriced if costs else 0,
        )


NO_USAGE = Usage()
_ROUNDING = 1e-12  # rounding error of sums, in USD


class _WithTexts(FrozenModel):
    """A part of a record that holds texts of subjects and scorers."""

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy with new values, and clean their texts, which pydantic's copy would not do."""
        return super().model_copy(update=clean(dict(update or {})), deep=deep)


class _TaggedBlock(_WithTexts):
    """A part of a step. Its `type` is always written, even if default values are omitted."""

    @model_serializer(mode="wrap")
    def _with_type(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {"type": type(self).model_fields["type"].default, **handler(self)}


class Text(_TaggedBlock):
    """Text that the subject said to the user."""

    type: Literal["text"] = "text"
    text: CleanText


class Reasoning(_TaggedBlock):
    """A model's reasoning before its answer, if its provider returns it."""

    type: Literal["reasoning"] = "reasoning"
    text: CleanText


class ToolCall(_TaggedBlock):
    """One call of a tool and its result.

    Calls created by user code may give `timestamp` instead of `started` (seconds, milliseconds, a
    `datetime` or ISO text), any `type`, kept as `kind`, and any objects as arguments, results or
    errors.
    """

    type: Literal["tool"] = "tool"
    name: CleanText
    arguments: CleanJson = None
    result: CleanJson = None
    error: CleanText | None = None
    id: CleanText | None = None
    parent_id: CleanText | None = None
    started: float | None = None
    duration_ms: float | None = None
    status: CleanText | None = None
    kind: CleanText | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            name: str,
            arguments: Any = None,
            result: Any = None,
            error: Any = None,
            status: str | None = None,
            id: str | None = None,
            parent_id: str | None = None,
            timestamp: float | datetime | str | None = None,
            duration_ms: float | None = None,
            type: str = "tool",
            started: float | None = None,
            kind: str | None = None,
        ) -> None: ...

    @property
    def timestamp(self) -> float | None:
        """Return the start in seconds since 1970, or None: another name of `started`."""
        return self.started

    @model_validator(mode="wrap")
    @classmethod
    def _by_hand(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Validate strictly first, which is fast for journals. Convert the data if that fails."""
        try:
            return handler(data)
        except ValidationError:
            if not isinstance(data, dict):
                raise
        return handler(_as_recorded(data))


_OTHER_NAMES = {"parentId": "parent_id", "durationMs": "duration_ms", "timestamp": "started"}
_MILLISECONDS = 1e11  # a larger time is in milliseconds


def _as_recorded(given: dict[str, Any]) -> dict[str, Any]:
    """Convert a call created by user code to the fields of a record."""
    data = {_OTHER_NAMES.get(name, name): value for name, value in given.items()}
    if data.get("type") != "tool":
        kind = data.pop("type", None)
        data |= {} if kind is None else {"kind": str(kind)}
    if data.get("started") is not None:
        data["started"] = _seconds(data["started"])
    if data.get("error") is not None:
        data["error"] = _error_text(data["error"])
    for name in ("arguments", "result"):
        data[name] = as_json(data.get(name))
    if data.get("id") is not None:
        data["id"] = str(data["id"])
    return data


def _seconds(moment: Any) -> Any:
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            return moment  # refused by validation
    if isinstance(moment, datetime):
        return moment.timestamp()
    return moment / 1000 if isinstance(moment, int | float) and moment > _MILLISECONDS else moment


def _error_text(error: Any) -> str:
    if isinstance(error, BaseException):
        return f"{type(error).__name__}: {error}"
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        return str(error["message"])
    return error if isinstance(error, str) else str(as_json(error))


Part = Annotated[Text | Reasoning | ToolCall, Field(discriminator="type")]


class Step(_WithTexts):
    """One turn of the subject: its texts and tool calls between two inputs."""

    parts: tuple[Part, ...] = ()
    usage: Usage = NO_USAGE
    finish_reason: CleanText | None = None
    seconds: float | None = None


class Transcript(_WithTexts):
    """Everything that a subject said and did in one attempt.

    `output` is the final answer for scorers: text or any JSON value. `usage` covers the attempt.
    """

    output: CleanJson = None
    steps: tuple[Step, ...] = ()
    usage: Usage = NO_USAGE
    metadata: CleanObject = Field(default_factory=dict)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Return the tool calls of all steps, in order."""
        return tuple(part for step in self.steps for part in step.parts if isinstance(part, ToolCall))


class Failure(_WithTexts):
    """The reason why a phase ended early. Its `kind` names the cause.

    The subject itself causes `subject` and `timeout`: the trial scores 0. Any other kind leaves the
    trial unscored, and a resumed run tries it again.
    """

    kind: Literal["subject", "timeout", "budget", "infra", "grader"]
    type: CleanText
    message: CleanText
    detail: CleanText = ""
    retry_after: float | None = None  # how many seconds the provider asks to wait
    permanent: bool = False  # an immediate retry would fail too
    stops_subject: bool = False  # every other trial of the subject would fail too


TESTS = "tests"
"""The key in a score's metadata for the tests one by one: a list of `TestResult`."""


class TestResult(FrozenModel):
    """One test of an answer. `hidden` is True if the subject did not see the test."""

    __test__ = False  # keep pytest from collecting it

    name: CleanText
    passed: bool
    message: CleanText = ""
    hidden: bool = False


UNIT_TESTS = "unit_tests"
"""The key in a score's metadata for `UnitTests`."""


class UnitTests(FrozenModel):
    """How many unit tests passed, and how many there are. Sums weight each test equally."""

    passed: int = Field(ge=0)
    total: int = Field(ge=0)

    @property
    def share(self) -> float | None:
        """Return the share that passed, from 0 to 1; None if there are no tests."""
        return self.passed / self.total if self.total else None

    def __add__(self, other: "UnitTests") -> "UnitTests":
        return UnitTests(passed=self.passed + other.passed, total=self.total + other.total)


PROVEN_TESTS = "tests_proven"
"""The key in a score's metadata for `ProvenTests`."""


class ProvenTests(FrozenModel):
    """How many of a case's tests are known to fail for wrong values and to pass only for right ones."""

    proven: int
    total: int

    def __add__(self, other: "ProvenTests") -> "ProvenTests":
        return ProvenTests(proven=self.proven + other.proven, total=self.total + other.total)

    def __str__(self) -> str:
        return f"{self.proven:,} of {self.total:,} tests proven" if self.proven else "not proven against forgery"


TEST_SHARES = "test_shares"
"""The key in a score's metadata for `TestShares`."""


class TestShares(FrozenModel):
    """How many tests passed, counted separately for visible and hidden tests."""

    __test__ = False  # keep pytest from collecting it

    visible_passed: int
    visible_total: int
    hidden_passed: int
    hidden_total: int

    @property
    def visible(self) -> float | None:
        """Return the share of the visible tests that passed; None if there are none."""
        return self.visible_passed / self.visible_total if self.visible_total else None

    @property
    def hidden(self) -> float | None:
        """Return the share of the hidden tests that passed; None if there are none."""
        return self.hidden_passed / self.hidden_total if self.hidden_total else None

    @property
    def difference(self) -> float | None:
        """Return the visible share minus the hidden share; None if either is missing.

        A large difference suggests an answer that was fitted to the visible tests.
        """
        return None if self.visible is None or self.hidden is None else self.visible - self.hidden

    def __add__(self, other: "TestShares") -> "TestShares":
        return TestShares(**{name: getattr(self, name) + getattr(other, name) for name in TestShares.model_fields})


SHOWN = "shown"
"""The key in a score's metadata for texts that the judge saw and that are recorded nowhere else."""


TRANSFORMED = "transformed"
"""The key in a score's metadata for the answer as the scorer got it, if a transform changed it."""


class Score(_WithTexts):
    """The result of one scorer. A `value` of None is unscored: shown, but left out of the mean."""

    name: CleanText
    value: float | None = Field(default=None, ge=0, le=1)
    weight: float = Field(default=1.0, ge=0, description="in the mean of all scores; one with 0 is only shown")
    reason: CleanText = ""
    metadata: CleanObject = Field(default_factory=dict)
    failure: Failure | None = None


class Phase(FrozenModel):
    """One phase of a trial, with the failure that ended it early. `seconds` includes all waits."""

    seconds: float
    waited: float = 0.0  # the part of them that others caused, such as a provider's queue
    remarks: tuple[CleanText, ...] = ()  # notes on how the time was used
    failure: Failure | None = None

    @property
    def working_seconds(self) -> float:
        """Return the duration without the waits that others caused."""
        return self.seconds - self.waited


Answers = Literal["live", "recorded", "replayed"]
"""The source of the answers of a trial's model: asked live, asked live and recorded, or at least in part replayed."""


class Record(_WithTexts):
    """One finished trial."""

    case: str
    subject: str
    round: int
    attempt_key: str
    score_key: str
    started: float
    tries: int = 1
    bound: bool = False  # the subject got the hidden parts of the case on purpose (oracle, cheat)
    unjudged: bool = False  # a control, in a case that none of the scorers can judge for it
    threshold: float | None
    prepare: Phase | None = None
    attempt: Phase | None = None
    score: Phase | None = None
    transcript: Transcript | None = None
    artefacts: dict[CleanText, CleanText] = Field(default_factory=dict)
    refused: dict[CleanText, CleanText] = Field(default_factory=dict)  # files that were not taken, and why
    workspace: CleanText | None = None  # the path of the workspace, if it was kept
    scores: tuple[Score, ...] = ()
    spent: Usage = NO_USAGE  # in all tries of this trial, including killed attempts
    judging: Usage = NO_USAGE  # the part of `spent` that scorers used

    @property
    def used(self) -> Usage:
        """Return the usage of the subject in all tries, without that of scorers.

        Its cost is None if only the cost of judging is known.
        """
        if self.judging == NO_USAGE:
            return self.spent
        used = self.spent - self.judging
        known = self.transcript is not None and self.transcript.usage.cost is not None
        nothing_left = used.cost is not None and used.cost <= _ROUNDING
        return used.model_copy(update={"cost": None, "unpriced": 0}) if nothing_left and not known else used

    @property
    def usage_is_estimated(self) -> bool:
        """Return True if some tokens or costs are estimates, because a provider sent no usage."""
        meter = self.transcript.metadata.get("meter") if self.transcript else None
        return isinstance(meter, dict) and bool(meter.get("estimated"))

    @property
    def attempted(self) -> bool:
        """Return True if the attempt is complete, so that at most scoring remains."""
        return self.transcript is not None and self.attempt is not None and self.attempt.failure is None

    def trial_in(self, plan: "Plan") -> "Trial | None":
        """Return the trial of this record in a plan; None if its case or subject was edited."""
        trial = plan.find(self.case, self.subject, self.round)
        return trial if trial is not None and trial.attempt_key == self.attempt_key else None

    def needs_score(self, trial: "Trial") -> bool:
        """Return True if there is an answer that the trial's current scorers have not scored."""
        return self.score_key != trial.score_key and self.attempted

    @property
    def failure(self) -> Failure | None:
        """Return the first failure in the order of the phases; None if there is none."""
        counted = (score for score in self.scores if score.weight)  # others are only shown
        for part in (self.prepare, self.attempt, self.score, *counted):
            if part is not None and part.failure is not None:
                return part.failure
        return None

    @property
    def test_shares(self) -> TestShares | None:
        """Return the visible and hidden tests that passed; None if no tests were hidden."""
        return self._told_by_a_scorer(TEST_SHARES, TestShares)

    @property
    def proven_tests(self) -> ProvenTests | None:
        """Return the proven tests of the case as the scorer counted them; None if it did not."""
        return self._told_by_a_scorer(PROVEN_TESTS, ProvenTests)

    @property
    def unit_tests(self) -> UnitTests | None:
        """Return the unit tests as the scorer counted them; None if it did not."""
        return self._told_by_a_scorer(UNIT_TESTS, UnitTests)

    def _told_by_a_scorer(self, key: str, kind: type[_Told]) -> _Told | None:
        """Return the value of this key in the first score that has it; None if it is invalid."""
        found = next((score.metadata[key] for score in self.scores if key in score.metadata), None)
        try:
            return None if found is None else kind.model_validate(found)
        except ValidationError:  # a user's scorer may put anything there
            return None

    @property
    def value(self) -> float | None:
        """Return the weighted mean of all scorers that returned a number; 0 if the subject failed."""
        return self._value(self.failure)

    def _value(self, failure: Failure | None) -> float | None:
        if failure is not None:
            return 0.0 if failure.kind in ("subject", "timeout") else None
        values = [(score.value, score.weight) for score in self.scores if score.value is not None]
        total = sum(weight for _, weight in values)
        return sum(value * weight for value, weight in values) / total if total else None

    @property
    def answers(self) -> Answers:
        """Return where the model's answers came from."""
        told = self.transcript.metadata if self.transcript else {}
        return "replayed" if told.get("replayed") is True else "recorded" if told.get("recorded") is True else "live"

    @property
    def verdict(self) -> Verdict:
        """Return the verdict of this one round; `case_verdict` combines all rounds of a case."""
        return self.judged().verdict

    def judged(self) -> Round:
        """Return the facts about this round that the verdict of its case depends on."""
        failure = self.failure
        value = self._value(failure)
        if self.unjudged and failure is None:
            return Round(Verdict.RECORDED, None, failed=False)
        verdict = trial_verdict(failure.kind if failure is not None else None, value, self.threshold)
        return Round(verdict, value, failure is not None)

    @property
    def seconds(self) -> float:
        """Return the duration of all phases together, including waits."""
        return sum(phase.seconds for phase in (self.prepare, self.attempt, self.score) if phase)

    @property
    def timed(self) -> bool:
        """Return True if the duration is known; logs of other tools may lack it."""
        return self.attempt is not None or self.prepare is not None or self.score is not None
