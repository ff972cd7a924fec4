"""Ask a model to score: `judge` and `factuality`. Models are imported only when one is asked."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

from pydantic import JsonValue, NonNegativeFloat, PositiveInt

from bakeoff._kernel.environment import read_environment
from bakeoff.errors import GraderError, UsageError
from bakeoff.plan import ScorerSpec
from bakeoff.protocols import Needs, ScoreInput
from bakeoff.record import Score
from bakeoff.scorers.configurable import ComparingScorer, ConfigurableScorer
from bakeoff.scorers.text import as_text

if TYPE_CHECKING:
    from bakeoff.models.access import ProviderAccess
    from bakeoff.scorers.judging import Verdict

VARIABLE = "BAKEOFF_JUDGE"
"""The variable that names the default judge."""

USUAL_JUDGE = "local:smollm2"
LETTERS = "ABCDEFGHIJ"

USUAL_CHOICES: Mapping[str, float] = {
    "The answer meets the criteria in full.": 1.0,
    "The answer meets the criteria for the most part.": 0.75,
    "The answer meets about half of the criteria.": 0.5,
    "The answer hardly meets the criteria.": 0.25,
    "The answer does not meet the criteria.": 0.0,
}
FACTUALITY: Mapping[str, float] = {
    "The answer states some of the facts of the reference, and contradicts none.": 0.4,
    "The answer states all facts of the reference and further ones, and contradicts none.": 0.6,
    "The answer states the same facts as the reference.": 1.0,
    "The answer and the reference contradict each other.": 0.0,
    "The answer and the reference differ, but not in any fact that matters.": 1.0,
}
_COMPARE = "Compare the facts in the answer with those in the reference. Style, grammar and punctuation do not matter."


@dataclass(frozen=True, kw_only=True)
class _ModelJudge(ConfigurableScorer):
    """Holds what both judges share: the model and its settings."""

    model: str | None = None
    repeats: PositiveInt = 1  # how often the judge is asked; the score is the mean
    same_model: bool = False  # lets a model judge its own answers
    temperature: NonNegativeFloat | None = 0.0  # None leaves it to the provider
    max_tokens: PositiveInt | None = None
    longest: PositiveInt = 20_000  # characters of each text that are shown to the judge
    name: str = "judge"
    only_recordings: bool = field(default=False, repr=False)

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
        return self.access.lacks()

    def secrets(self) -> dict[str, str]:
        return self.access.secrets()

    def offline(self) -> Self:
        return replace(self, only_recordings=True)

    @property
    def needs(self) -> Needs:
        return Needs(resources=() if self.only_recordings else (self.access,))

    def self_judging_problem(self, model: str) -> str | None:
        own = self.access.name
        if self.same_model or model.strip().casefold() not in (str(own).casefold(), own.model.casefold()):
            return None
        return f"{own} would judge its own answers: name another `model` as judge, or set `same_model` to allow it"

    async def _judged(
        self, given: ScoreInput, criteria: str, choices: Mapping[str, float], sections: dict[str, str]
    ) -> Score:
        from bakeoff.scorers.judging import Rubric, ask

        asked = given.transcript.metadata.get("model")
        if isinstance(asked, str) and (why := self.self_judging_problem(asked)):
            raise GraderError(f"scorer {self.name!r}: {why}")
        by_letter = dict(zip(LETTERS, choices.items(), strict=False))
        rubric = Rubric(criteria, {letter: text for letter, (text, _) in by_letter.items()}, self.longest)
        verdicts = await ask(self, given, rubric, sections)
        values = {letter: value for letter, (_, value) in by_letter.items()}
        return _score(self.name, str(self.access.name), verdicts, values)


@dataclass(frozen=True)
class Judge(_ModelJudge):
    """Asks a model how well the output meets your criteria.

    It picks one of `choices`, which are texts with a score each. A verdict that cannot be read is unscored.
    """

    criteria: str
    _: KW_ONLY
    choices: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.criteria.strip():
            raise UsageError(f"scorer {self.name!r}: the criteria are empty: say what the judge should look for")
        choices = USUAL_CHOICES if self.choices is None else self.choices
        if not 2 <= len(choices) <= len(LETTERS):
            raise UsageError(f"scorer {self.name!r}: {len(choices)} choices: give from 2 to {len(LETTERS)}")
        if wrong := [value for value in choices.values() if not 0 <= value <= 1]:
            raise UsageError(f"scorer {self.name!r}: a choice scores {wrong[0]!r}, which is not between 0 and 1")

    async def __call__(self, given: ScoreInput) -> Score:
        reference = {"reference": as_text(given.expected)} if given.expected is not None else {}
        sections = {"question": as_text(given.input), **reference, "answer": as_text(given.output)}
        return await self._judged(given, self.criteria, self.choices or USUAL_CHOICES, sections)


@dataclass(frozen=True)
class Factuality(_ModelJudge, ComparingScorer):
    """Asks a model whether the facts in the output are those of the expected answer."""

    _: KW_ONLY
    name: str = "factuality"

    async def compare(self, given: ScoreInput) -> Score:
        texts = {"question": given.input, "reference": given.expected, "answer": given.output}
        sections = {name: as_text(value) for name, value in texts.items()}
        return await self._judged(given, _COMPARE, FACTUALITY, sections)


def _score(name: str, judge: str, verdicts: "list[Verdict]", values: Mapping[str, float]) -> Score:
    """Return the mean of the readable verdicts; unscored where none is readable."""
    chosen = [verdict.choice for verdict in verdicts if verdict.choice is not None]
    scores = [values[choice] for choice in chosen]
    unread = len(verdicts) - len(chosen)
    told = next((verdict for verdict in verdicts if verdict.choice is not None), verdicts[0])
    metadata: dict[str, JsonValue] = {"rationale": told.rationale, "output": told.said, "judge": judge}
    if len(verdicts) > 1:
        spread = max(scores) - min(scores) if scores else None
        metadata |= {"choices": list(chosen), "values": list(scores), "spread": spread}
    elif chosen:
        metadata["choice"] = chosen[0]
    if unread:
        metadata["unreadable"] = unread
    if not scores:
        return Score(name=name, reason=f"the judge's verdict cannot be read: {told.said[:200]!r}", metadata=metadata)
    reason = f"{', '.join(chosen)}: {told.rationale}"
    return Score(name=name, value=sum(scores) / len(scores), reason=reason, metadata=metadata)
