"""Ask a model which of two answers is better, in both orders: `preference` and `select_best`."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import JsonValue

from bakeoff.errors import UsageError
from bakeoff.plan import Case
from bakeoff.protocols import ScoreInput
from bakeoff.record import Score
from bakeoff.scorers.model_judge import JudgeVerdict, ModelScorer, unreadable
from bakeoff.scorers.registry import scorer
from bakeoff.scorers.text import as_text

if TYPE_CHECKING:
    from bakeoff.scorers.judging import Question

Choice: TypeAlias = Literal["first", "second", "tie"]

_FIELDS: dict[str, Any] = {
    "rationale": {"type": "string"},
    "better": {"type": "string", "enum": ["first", "second", "tie"]},
}
SCHEMA = {"type": "object", "properties": _FIELDS, "required": [*_FIELDS], "additionalProperties": False}

PROMPT = """\
You are a careful and impartial judge of two answers to the same question.

{criteria}

Say which answer is better by that: the first, the second, or neither, which is a tie. The order of the answers and \
their length do not matter."""
_SWAPPED: Mapping[str, Choice] = {"first": "second", "second": "first", "tie": "tie"}
_VALUES = {"first": 1.0, "second": 0.0, "tie": 0.5}


@scorer("preference")
@dataclass(frozen=True)
class Preference(ModelScorer):
    """Asks a model whether the output is better than another answer, in both orders.

    The other answer is the row's `over`, by default its `expected`. The score is 1 if the judge prefers the output in
    both orders, 0 if it prefers the other one in both, and 0.5 for a tie, which a disagreement of the two is, too.
    """

    criteria: str
    _: KW_ONLY
    over: str = "expected"  # the field of the row with the other answer
    name: str = "preference"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.criteria.strip():
            raise UsageError(f"scorer {self.name!r}: the criteria are empty: say what makes an answer better")
        if self.prompt is not None and "{criteria}" not in self.prompt:
            raise UsageError(f"scorer {self.name!r}: the prompt has no {{criteria}}, which stands for what is asked")

    def can_score(self, case: Case) -> bool:
        return self.over != "expected" or case.expected is not None

    async def __call__(self, given: ScoreInput) -> Score:
        other = given.expected if self.over == "expected" else given.row.get(self.over)
        if other is None:
            return Score(name=self.name, reason=f"the case has no {self.over!r} to compare with")
        verdicts = await self.compared(given, as_text(given.input), as_text(given.output), as_text(other))
        return self.score(verdicts)

    async def compared(self, given: ScoreInput, question: str, one: str, other: str) -> list[JudgeVerdict]:
        """Return a verdict for each repeat, which has asked in both orders."""
        asked = self._question()
        about = {"question": question} if question else {}
        straight = await self.answers(given, asked, {**about, "first answer": one, "second answer": other})
        swapped = await self.answers(given, asked, {**about, "first answer": other, "second answer": one})
        return [_combined(here, there) for here, there in zip(straight, swapped, strict=True)]

    def _question(self) -> "Question":
        from bakeoff.scorers.judging import Question

        prompt = (self.prompt or PROMPT).replace("{criteria}", self.criteria)
        return Question(prompt, SCHEMA, longest=self.longest, about="two answers")


def _combined(straight: str, swapped: str) -> JudgeVerdict:
    """Return one verdict of two orders. If they disagree, the position decided, and nothing is preferred."""
    from bakeoff.scorers.judging import UnreadableVerdict, read_answer

    read: list[Any] = []
    for said in (straight, swapped):
        try:
            read.append(read_answer(said, SCHEMA))
        except UnreadableVerdict:
            return unreadable(said)
    here, there = read[0]["better"], _SWAPPED[read[1]["better"]]
    agree = here == there
    chosen = here if agree else "tie"
    words = {"first": "preferred to the other", "second": "the other is preferred", "tie": "a tie"}[chosen]
    rationale = read[0]["rationale"]
    reason = f"{words}: {rationale}" if agree else f"a tie: the judge changed its mind with the order: {rationale}"
    facts: dict[str, JsonValue] = {"in_this_order": here, "swapped": there, "orders_agree": agree}
    return JudgeVerdict(straight, _VALUES[chosen], reason, rationale, facts)


async def select_best(
    answers: Mapping[str, Any], criteria: str, *, question: str = "", **settings: Any
) -> dict[str, float | None]:
    """Compare every two answers in both orders, and return the share of points of each, best first.

    A better answer gets a point, a tie half of one. An answer none of whose comparisons could be read has None.

    Args:
        answers: by name, such as those of several models.
        criteria: what makes an answer better.
        question: what was asked.
        settings: as of `Preference`.
    """
    from bakeoff.scorers.asking import current_input

    if len(answers) < 2:
        raise UsageError(f"select_best: {len(answers)} answers: give at least 2")
    judge = Preference(criteria, name="select_best", **settings)
    points: dict[str, list[float]] = {name: [] for name in answers}
    for one, other in combinations(answers, 2):
        texts = as_text(answers[one]), as_text(answers[other])
        value = judge.score(await judge.compared(current_input(), question, *texts)).value
        if value is not None:
            points[one].append(value)
            points[other].append(1 - value)
    shares = {name: sum(won) / len(won) if won else None for name, won in points.items()}
    return dict(sorted(shares.items(), key=lambda item: -1.0 if item[1] is None else item[1], reverse=True))
