"""Share among all scorers that ask a model: the model, its settings, and how verdicts become a score."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import JsonValue, NonNegativeFloat, PositiveInt

from bakeoff._kernel.environment import read_environment
from bakeoff.errors import GraderError, UsageError
from bakeoff.plan import ScorerSpec
from bakeoff.protocols import Needs, ScoreInput
from bakeoff.record import SHOWN, Score
from bakeoff.scorers.configurable import ConfigurableScorer
from bakeoff.scorers.material import only_in_row

if TYPE_CHECKING:
    from bakeoff.models.access import ProviderAccess
    from bakeoff.scorers.judging import Question

VARIABLE = "BAKEOFF_JUDGE"
"""The variable that names the default judge."""

USUAL_JUDGE = "local:smollm2"
MAX_KEPT = 2000  # characters kept of a judge's answer


@dataclass(frozen=True, slots=True)
class JudgeVerdict:
    """One answer of a judge. An answer that cannot be read is a `problem` and has no value."""

    said: str
    value: float | None = None
    reason: str = ""
    rationale: str = ""  # by default, the reason
    facts: Mapping[str, JsonValue] = field(default_factory=dict)
    problem: bool = False


def unreadable(said: str) -> JudgeVerdict:
    """Return the verdict for an answer that does not have the form that was asked for."""
    return JudgeVerdict(said, reason=f"the judge's verdict cannot be read: {said[:200]!r}", problem=True)


@dataclass(frozen=True, kw_only=True)
class ModelScorer(ConfigurableScorer):
    """A scorer that asks a model. It also holds the settings of a call of `ask_judge`."""

    model: str | None = None
    repeats: PositiveInt = 1  # how often the judge is asked; the score is the mean
    same_model: bool = False  # lets a model judge its own answers
    temperature: NonNegativeFloat | None = 0.0  # None leaves it to the provider
    max_tokens: PositiveInt | None = None
    longest: PositiveInt = 20_000  # characters of each text that are shown to the judge
    prompt: str | None = None  # replaces ours; what the answer must be, and the rules about marks, are always added
    name: str = "judge"
    only_recordings: bool = field(default=False, repr=False)

    PARTS: ClassVar[tuple[str, ...]] = ()  # what a prompt of the user's own must contain

    def __post_init__(self) -> None:
        ConfigurableScorer.__post_init__(self)
        missing = [part for part in self.PARTS if self.prompt is not None and part not in self.prompt]
        if missing:
            raise UsageError(f"scorer {self.name!r}: the prompt has no {missing[0]}, which stands for what is asked")

    @cached_property
    def access(self) -> "ProviderAccess":
        """Return the access to the judge's provider, from the environment at the time of the first use."""
        from bakeoff.scorers.judging import access_to

        environment = read_environment()
        return access_to(self.model or environment.get(VARIABLE, "").strip() or USUAL_JUDGE, environment)

    @classmethod
    def from_spec(cls, spec: ScorerSpec) -> Self:
        """Build the judge that a plan names. Raises UsageError where no provider serves its model."""
        judge = super().from_spec(spec)
        _ = judge.access
        return judge

    def preload(self) -> None:
        """Import what the first question needs. That takes seconds, which belong to no case."""
        from bakeoff.scorers.judging import preload

        preload(self.access)

    def lacks(self) -> list[str]:
        """Return why the judge cannot be asked, such as a missing key; empty if it can."""
        return self.access.lacks()

    def secrets(self) -> dict[str, str]:
        """Return the keys that the judge needs, by the names of their variables."""
        return self.access.secrets()

    def offline(self) -> Self:
        """Return the same judge, which answers from recordings only."""
        return replace(self, only_recordings=True)

    @property
    def needs(self) -> Needs:
        """Return the provider, which a run opens once for all trials."""
        return Needs(resources=() if self.only_recordings else (self.access,))

    def self_judging_problem(self, model: str) -> str | None:
        """Return why this judge must not judge the answers of a model, or None if it may."""
        own = self.access.name
        if self.same_model or model.strip().casefold() not in (str(own).casefold(), own.model.casefold()):
            return None
        return f"{own} would judge its own answers: name another `model` as judge, or set `same_model` to allow it"

    async def answers(self, given: ScoreInput, question: "Question", texts: Mapping[str, str]) -> list[str]:
        """Return what the judge said, once for each repeat."""
        from bakeoff.scorers.judging import ask

        asked = given.transcript.metadata.get("model")
        if isinstance(asked, str) and (why := self.self_judging_problem(asked)):
            raise GraderError(f"scorer {self.name!r}: {why}")
        return await ask(self, given, question, texts)

    def score(self, verdicts: list[JudgeVerdict], shown: Mapping[str, str] | None = None) -> Score:
        """Return the mean of the verdicts with a value; unscored where none has one.

        `shown` are texts that people need in order to judge the answer, and that are recorded nowhere else.
        """
        values = [verdict.value for verdict in verdicts if verdict.value is not None]
        told = next((verdict for verdict in verdicts if verdict.value is not None), verdicts[0])
        rationale = "" if told.problem else (told.rationale or told.reason)[:MAX_KEPT]
        said: dict[str, JsonValue] = {"rationale": rationale, "output": told.said[:MAX_KEPT]}
        metadata = {**said, "judge": str(self.access.name), **told.facts}
        if len(verdicts) > 1:
            metadata |= {"values": list(values), "spread": max(values) - min(values) if values else None}
        if shown:
            metadata[SHOWN] = dict(shown)
        if problems := sum(verdict.problem for verdict in verdicts):
            metadata["unreadable"] = problems
        mean = sum(values) / len(values) if values else None
        return Score(name=self.name, value=mean, reason=told.reason, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class AskingScorer(ModelScorer, ABC):
    """A scorer with a question of its own. Subclasses say what is shown, what is answered, and what that is worth."""

    PROMPT: ClassVar[str]

    def instructions(self) -> str:
        """Return what the judge is asked."""
        return self.prompt or self.PROMPT

    @abstractmethod
    def texts(self, given: ScoreInput) -> dict[str, str]:
        """Return the texts that are shown, by their names. Raise GraderError if the case lacks one."""

    @abstractmethod
    def schema(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """Return the JSON schema of the answer."""

    @abstractmethod
    def verdict(self, answer: Any, texts: Mapping[str, str]) -> JudgeVerdict:
        """Return what an answer that fits the schema is worth."""

    def unscored(self, given: ScoreInput) -> str | None:  # noqa: ARG002 - most score every case
        """Say why a case cannot be scored, without asking anybody."""
        return None

    async def __call__(self, given: ScoreInput) -> Score:
        from bakeoff.scorers.judging import Question

        if why := self.unscored(given):
            return Score(name=self.name, reason=why)
        texts = self.texts(given)
        schema = self.schema(texts)
        question = Question(self.instructions(), schema, longest=self.longest)
        said = await self.answers(given, question, texts)
        return self.score([self._read(each, schema, texts) for each in said], only_in_row(given, texts))

    def _read(self, said: str, schema: Mapping[str, Any], texts: Mapping[str, str]) -> JudgeVerdict:
        from bakeoff.scorers.judging import UnreadableVerdict, read_answer

        try:
            answer = read_answer(said, schema)
        except UnreadableVerdict:
            return unreadable(said)
        return replace(self.verdict(answer, texts), said=said)


@dataclass(frozen=True, kw_only=True)
class ListingScorer(AskingScorer):
    """Have the judge list statements, and score the share of those that hold; unscored where nothing is listed."""

    ITEMS: ClassVar[tuple[str, str, str]]  # the list, one of its items, what holds

    def schema(self, texts: Mapping[str, str]) -> dict[str, Any]:  # noqa: ARG002 - the same for all
        items, item, holds = self.ITEMS
        entry = _closed({item: {"type": "string"}, holds: {"type": "boolean"}})
        return _closed({items: {"type": "array", "items": entry}})

    def verdict(self, answer: Any, texts: Mapping[str, str]) -> JudgeVerdict:  # noqa: ARG002
        items, item, holds = self.ITEMS
        found = answer[items]
        if not found:
            return JudgeVerdict("", reason=f"the judge found no {items}", facts={items: []})
        wrong = [str(each[item]) for each in found if not each[holds]]
        told = f"{len(found) - len(wrong)} of {len(found)} {items} are {holds}"
        reason = told + (f"; not: {'; '.join(wrong[:3])}" if wrong else "")
        return JudgeVerdict("", 1 - len(wrong) / len(found), reason, facts={items: found})


def flags(names: Mapping[str, str]) -> dict[str, Any]:
    """Return the schema of a rationale and one boolean for each name."""
    return _closed({"rationale": {"type": "string"}, **{_key(name): {"type": "boolean"} for name in names}})


def flagged(answer: Any, names: Mapping[str, str]) -> list[bool]:
    """Return the booleans of the names, in their order."""
    return [answer[_key(name)] for name in names]


def _key(name: str) -> str:
    return name.replace(" ", "_")


def _closed(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(fields), "required": [*fields], "additionalProperties": False}
