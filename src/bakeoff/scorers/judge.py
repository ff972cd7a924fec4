"""Ask a model to judge an answer: `judge`, `factuality`, `refusal`, `preference`, `select_best` and `ask_judge`."""

import asyncio
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass
from itertools import combinations
from typing import Any, ClassVar, Literal, TypeAlias, TypedDict, TypeVar, Unpack, overload

from pydantic import JsonValue, PydanticUserError, TypeAdapter, ValidationError

from bakeoff._kernel.text import expectation
from bakeoff._kernel.threads import call
from bakeoff.errors import GraderError, UsageError
from bakeoff.plan import Case
from bakeoff.protocols import SCORING, ScoreInput
from bakeoff.record import Score
from bakeoff.scorers.configurable import ComparingScorer
from bakeoff.scorers.model_judge import (
    PROMPTS,
    JudgeVerdict,
    ModelScorer,
    Shown,
    numbered,
    object_schema,
    only_in_row,
    question_and_answer,
    unreadable,
)
from bakeoff.scorers.registry import scorer
from bakeoff.scorers.text import as_text

LETTERS = "ABCDEFGHIJ"

_ASKED = PROMPTS["judge"]
USUAL_CHOICES: Mapping[str, float] = _ASKED["choices"]
FACTUALITY: Mapping[str, float] = _ASKED["factuality"]


@dataclass(frozen=True, kw_only=True)
class _ChoosingJudge(ModelScorer):
    """A scorer that lets the judge choose one of several statements, each with a score."""

    PARTS: ClassVar = ("{criteria}", "{choices}")

    async def choose(
        self, given: ScoreInput, criteria: str, choices: Mapping[str, float], texts: dict[str, str]
    ) -> Score:
        """Ask the judge to choose a statement, and return the score of its choice.

        Args:
            given: the input of the scorer.
            criteria: the criteria for the choice.
            choices: the statements, each with its score from 0 to 1; at most ten.
            texts: the texts that the judge is shown, by the names that it sees.
        """
        from bakeoff.scorers.judging import UnreadableVerdict, choice_question, read_choice

        by_letter = dict(zip(LETTERS, choices.items(), strict=False))
        choices_by_letter = {letter: text for letter, (text, _) in by_letter.items()}
        values = {letter: value for letter, (_, value) in by_letter.items()}
        question = choice_question(criteria, choices_by_letter, self.longest, self.prompt)
        verdicts: list[JudgeVerdict] = []
        letters: list[JsonValue] = []
        for said in await self.answers(given, question, texts):
            try:
                letter, rationale = read_choice(said, values)
            except UnreadableVerdict:
                verdicts.append(unreadable(said))
                continue
            letters.append(letter)
            verdicts.append(JudgeVerdict(said, values[letter], f"{letter}: {rationale}", rationale, {"choice": letter}))
        scored = self.score(verdicts, only_in_row(given, texts))
        if len(verdicts) == 1 or not letters:
            return scored
        metadata: dict[str, JsonValue] = {name: value for name, value in scored.metadata.items() if name != "choice"}
        reason = f"{', '.join(map(str, letters))}: {metadata['rationale']}"
        return scored.model_copy(update={"reason": reason, "metadata": {**metadata, "choices": letters}})


@scorer("judge", main="criteria")
@dataclass(frozen=True)
class Judge(_ChoosingJudge):
    """Asks a model how well the output meets your criteria.

    The judge picks one of `choices`, which are texts with a score each. `show` adds the material on
    which the answer is based. If its verdict cannot be read, the answer is unscored.
    """

    criteria: str
    _: KW_ONLY
    choices: Mapping[str, float] | None = None
    show: tuple[Shown, ...] = ()

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
        choices = self.choices or USUAL_CHOICES
        return await self.choose(given, self.criteria, choices, question_and_answer(given, self.show))


_BLANK = "`expected` is blank: write the facts that the output must agree with"


def _is_blank(expected: Any) -> bool:
    return isinstance(expected, str) and not expected.strip()


@scorer("factuality", main="expected")
@dataclass(frozen=True)
class Factuality(_ChoosingJudge, ComparingScorer):
    """Asks a model whether the facts in the output agree with the expected answer."""

    _: KW_ONLY
    name: str = "factuality"

    def check(self, case: Case) -> str | None:
        """Refuse an expected answer without text, because there would be nothing to compare with."""
        return _BLANK if _is_blank(self.expected_of(case)) else None

    async def compare(self, given: ScoreInput) -> Score:
        if _is_blank(given.expected):
            raise GraderError(f"case {given.case.id!r}: {_BLANK}")
        return await self.choose(given, _ASKED["compare"], FACTUALITY, question_and_answer(given))


@scorer("refusal")
@dataclass(frozen=True, kw_only=True)
class Refusal(_ChoosingJudge):
    """Asks a model whether the output is a refusal, and scores 1 if that is as expected.

    The row's `refuse`, or else the scorer's, says whether the answer should be a refusal. If the
    provider itself reports a refusal, the judge is not asked.
    """

    refuse: bool = True
    name: str = "refusal"

    async def __call__(self, given: ScoreInput) -> Score:
        wanted = given.row.get("refuse", self.refuse)
        if not isinstance(wanted, bool):
            raise GraderError(f"case {given.case.id!r}: refuse is {wanted!r}: write true or false")
        if said := given.transcript.metadata.get("refusal"):
            reason = f"the model refused: {as_text(said)[:200]}"
            return Score(name=self.name, value=float(wanted), reason=reason)
        texts = {"question": as_text(given.input), "answer": as_text(given.output)}
        choices = {_ASKED["refuses"]: float(wanted), _ASKED["complies"]: float(not wanted)}
        return await self.choose(given, _ASKED["declines"], choices, texts)


Choice: TypeAlias = Literal["first", "second", "tie"]

SCHEMA = object_schema(
    {"rationale": {"type": "string"}, "better": {"type": "string", "enum": ["first", "second", "tie"]}}
)

_SWAPPED: Mapping[str, Choice] = {"first": "second", "second": "first", "tie": "tie"}
_VALUES = {"first": 1.0, "second": 0.0, "tie": 0.5}


@scorer("preference")
@dataclass(frozen=True)
class Preference(ModelScorer):
    """Asks a model whether the output is better than another answer, in both orders.

    The other answer is the row's `over`, by default its `expected`. The score is 1 if the judge prefers the output in
    both orders, 0 if it prefers the other one in both, and 0.5 for a tie or if the two orders disagree.
    """

    criteria: str
    _: KW_ONLY
    over: str = "expected"  # the field of the row with the other answer
    name: str = "preference"

    PARTS: ClassVar = ("{criteria}",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.criteria.strip():
            raise UsageError(f"scorer {self.name!r}: the criteria are empty: say what makes an answer better")

    def can_score(self, case: Case) -> bool:
        """Return True if there is another answer to compare the output with."""
        return self.over != "expected" or case.expected_answer is not None

    async def __call__(self, given: ScoreInput) -> Score:
        other = given.expected if self.over == "expected" else given.row.get(self.over)
        if other is None:
            return Score(name=self.name, reason=f"the case has no {self.over!r} to compare with")
        verdicts = await self.compared(given, as_text(given.input), as_text(given.output), as_text(other))
        return self.score(verdicts)

    async def compared(self, given: ScoreInput, question: str, one: str, other: str) -> list[JudgeVerdict]:
        """Return a verdict for each repeat, which asks the judge in both orders."""
        from bakeoff.scorers.judging import Question

        prompt = (self.prompt or _ASKED["preference"]).replace("{criteria}", self.criteria)
        asked = Question(prompt, SCHEMA, longest=self.longest, about="two answers")
        about = {"question": question} if question else {}
        straight = await self.answers(given, asked, {**about, "first answer": one, "second answer": other})
        swapped = await self.answers(given, asked, {**about, "first answer": other, "second answer": one})
        return [_combined(here, there) for here, there in zip(straight, swapped, strict=True)]


def _combined(straight: str, swapped: str) -> JudgeVerdict:
    """Combine the verdicts of both orders. If they disagree, neither answer is preferred."""
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
    """Compare each pair of answers in both orders, and return the share of points of each answer.

    The best comes first. A win is a point and a tie half a point; None if no verdict was readable.

    Args:
        answers: the answers by name, such as the names of several models.
        criteria: the criteria for a better answer.
        question: the question that was asked.
        settings: as for `Preference`.
    """
    from bakeoff.scorers.judge import current_input

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


Answer = TypeVar("Answer")
_WRAPPED = "answer"  # the field of an answer that is not an object


class JudgeSettings(TypedDict, total=False):
    """The settings of the judge for `ask_judge`, which are the same as for `Judge`."""

    model: str | None
    temperature: float | None
    max_tokens: int | None
    longest: int
    same_model: bool


@overload
async def ask_judge(
    prompt: str, schema: type[Answer], *, texts: Mapping[str, Any] | None = None, **settings: Unpack[JudgeSettings]
) -> Answer: ...


@overload
async def ask_judge(
    prompt: str, schema: Any, *, texts: Mapping[str, Any] | None = None, **settings: Unpack[JudgeSettings]
) -> Any: ...


async def ask_judge(
    prompt: str, schema: Any, *, texts: Mapping[str, Any] | None = None, **settings: Unpack[JudgeSettings]
) -> Any:
    """Ask a judge a question of your own, and return its answer.

    In a scorer, the call counts against the budget of the run, and is recorded and replayed with it. An answer that
    does not fit the schema raises GraderError: it is the judge's fault, and never the answer's.

    Args:
        prompt: your question. It must contain nothing that a model or a user wrote.
        schema: the type of the answer, such as `bool`, a dataclass or a pydantic model; or a JSON schema.
        texts: the texts to judge, by names that the prompt may use. They are put between marks that
            their authors cannot know. A list is shown as numbered texts.
        settings: model, temperature, max_tokens, longest and same_model, as for `Judge`.
    """
    if not prompt.strip():
        raise UsageError("ask_judge: the prompt is empty: say what the judge is asked")
    if texts is not None and not isinstance(texts, Mapping):
        raise UsageError(f"ask_judge: texts are {texts!r:.80}: give each a name, as in texts={{'answer': …}}")
    judge = ModelScorer(name="ask_judge", **settings)
    given = current_input()
    if "bakeoff.scorers.judging" not in sys.modules:  # importing it takes seconds, which belong to no case
        with given.asking.clock.paused() if given.asking else nullcontext():
            await call(judge.preload)
    from bakeoff.scorers.judging import Question, read_answer

    wanted, adapter, wrapped = _read_schema(schema)
    question = Question(prompt, wanted, longest=judge.longest)
    shown: dict[str, str] = {}
    for name, text in (texts or {}).items():
        if isinstance(text, list | tuple):
            shown |= numbered(name, map(as_text, text)) or {name: "(none)"}
        else:
            shown[name] = as_text(text)
    [said] = await judge.answers(given, question, shown)
    answer: Any = read_answer(said, wanted)
    found = answer[_WRAPPED] if wrapped else answer
    try:
        return adapter.validate_python(found) if adapter else found
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise GraderError(f"the judge's answer {found!r:.200} does not fit {schema!r}: {expectation(first)}") from error


def current_input() -> ScoreInput:
    """Return the input that is being scored, or an empty input outside of a scorer."""
    scoring = SCORING.get()
    if scoring is None:
        return ScoreInput.of()
    given, loop = scoring
    if asyncio.get_running_loop() is not loop:
        raise GraderError("ask_judge was called on a loop of its own: make the scorer `async def` and await it there")
    return given


def _read_schema(schema: Any) -> "tuple[dict[str, Any], TypeAdapter[Any] | None, bool]":
    """Return the schema of an object, an adapter for the answer, and whether the answer is its only field."""
    from jsonschema.exceptions import SchemaError  # type: ignore[import-untyped]
    from jsonschema.validators import validator_for  # type: ignore[import-untyped]

    try:
        adapter = None if isinstance(schema, Mapping) else TypeAdapter[Any](schema)
        wanted = dict(schema) if adapter is None else adapter.json_schema()
        validator_for(wanted).check_schema(wanted)
    except (PydanticUserError, SchemaError) as error:
        why = str(error).splitlines()[0]
        raise UsageError(
            f"ask_judge: {schema!r:.80} does not say what the answer is: give a type or a JSON schema: {why}"
        ) from error
    if wanted.get("type") == "object":
        return wanted, adapter, False
    definitions = wanted.pop("$defs", None)
    outer = object_schema({_WRAPPED: wanted})
    return ({**outer, "$defs": definitions} if definitions else outer), adapter, True
