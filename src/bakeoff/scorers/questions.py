"""Ask a judge several questions about passages, about a whole conversation, or from a `rubric`.

A conversation is the messages that the task returned, the row's `messages`, or an input of messages with its answer.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import Field, JsonValue

from bakeoff._kernel.files import read_text
from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.yaml import read_yaml
from bakeoff.errors import GraderError, UsageError
from bakeoff.protocols import ScoreInput
from bakeoff.scorers.model_judge import (
    PROMPTS,
    AskingScorer,
    JudgeVerdict,
    ListingScorer,
    Shown,
    flagged,
    flags,
    object_schema,
    question_and_answer,
    shown_turns,
    turns_of,
)
from bakeoff.scorers.registry import scorer


@scorer("faithfulness")
@dataclass(frozen=True, kw_only=True)
class Faithfulness(ListingScorer):
    """Scores the share of the claims in the answer that the context supports."""

    PROMPT: ClassVar = PROMPTS["questions"]["faithfulness"]
    ITEMS: ClassVar = ("claims", "claim", "supported")
    SHOWN: ClassVar = ("context", "question", "answer")
    name: str = "faithfulness"


@scorer("answer_relevance")
@dataclass(frozen=True, kw_only=True)
class AnswerRelevance(ListingScorer):
    """Scores the share of the statements in the answer that help to answer the question."""

    PROMPT: ClassVar = PROMPTS["questions"]["answer_relevance"]
    ITEMS: ClassVar = ("statements", "statement", "relevant")
    SHOWN: ClassVar = ("question", "answer")
    name: str = "answer_relevance"


@scorer("context_recall")
@dataclass(frozen=True, kw_only=True)
class ContextRecall(ListingScorer):
    """Scores the share of the statements in the expected answer that the context supports."""

    PROMPT: ClassVar = PROMPTS["questions"]["context_recall"]
    ITEMS: ClassVar = ("statements", "statement", "supported")
    SHOWN: ClassVar = ("context", "question", "reference")
    expected: str | None = None  # instead of the case's
    name: str = "context_recall"

    def unscored(self, given: ScoreInput) -> str | None:
        """Leave cases without an expected answer unscored."""
        return "the case has no expected output" if given.expected is None and self.expected is None else None

    def texts(self, given: ScoreInput) -> dict[str, str]:
        own = {} if self.expected is None else {"expected": self.expected}
        return super().texts(replace(given, row={**given.row, **own}))


@scorer("context_relevance")
@dataclass(frozen=True, kw_only=True)
class ContextRelevance(ListingScorer):
    """Scores the share of the sentences of the context that the answer to the question needs."""

    PROMPT: ClassVar = PROMPTS["questions"]["context_relevance"]
    ITEMS: ClassVar = ("sentences", "sentence", "needed")
    SHOWN: ClassVar = ("context", "question")
    name: str = "context_relevance"


@scorer("context_precision")
@dataclass(frozen=True, kw_only=True)
class ContextPrecision(AskingScorer):
    """Scores how far the useful passages come first: their average precision."""

    PROMPT: ClassVar = PROMPTS["questions"]["context_precision"]
    SHOWN: ClassVar = ("question", "reference", "context")
    name: str = "context_precision"

    def schema(self, texts: Mapping[str, str]) -> dict[str, Any]:
        return flags(_passages(texts))

    def verdict(self, answer: Any, texts: Mapping[str, str]) -> JudgeVerdict:
        useful = flagged(answer, _passages(texts))
        reason = f"{sum(useful)} of {len(useful)} passages are useful: {answer['rationale']}"
        return JudgeVerdict("", average_precision(useful), reason, answer["rationale"], {"useful": list(useful)})


def _passages(texts: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in texts.items() if name.startswith("passage ")}


def average_precision(useful: Sequence[bool]) -> float:
    """Return the mean, over the useful passages, of the precision up to each of them; 0 if none is useful."""
    found = 0
    precisions = []
    for rank, one in enumerate(useful, 1):
        if one:
            found += 1
            precisions.append(found / rank)
    return sum(precisions) / found if found else 0.0


_OF_ASSISTANT = " of the assistant"


def _conversation(given: ScoreInput) -> dict[str, str]:
    turns = turns_of(given)
    if {"user", "assistant"} - {turn.role for turn in turns}:
        raise GraderError(f"case {given.case.id!r}: a conversation needs a turn of the user and one of the assistant")
    return shown_turns(turns)


@dataclass(frozen=True, kw_only=True)
class _TurnScorer(AskingScorer):
    """A scorer of the share of the assistant's turns that the judge rates as good."""

    GOOD: ClassVar[str]

    def texts(self, given: ScoreInput) -> dict[str, str]:
        return _conversation(given)

    def schema(self, texts: Mapping[str, str]) -> dict[str, Any]:
        return flags(_assistant(texts))

    def verdict(self, answer: Any, texts: Mapping[str, str]) -> JudgeVerdict:
        turns = _assistant(texts)
        good = flagged(answer, turns)
        wrong = [name for name, fine in zip(turns, good, strict=True) if not fine]
        told = f"{sum(good)} of {len(good)} turns {self.GOOD}"
        told += f", not {', '.join(wrong)}" if wrong else ""
        rationale: str = answer["rationale"]
        by_turn: dict[str, JsonValue] = dict(zip(turns, good, strict=True))
        return JudgeVerdict("", sum(good) / len(good), f"{told}: {rationale}", rationale, {"turns": by_turn})


def _assistant(texts: Mapping[str, str]) -> dict[str, str]:
    return {name.removesuffix(_OF_ASSISTANT): text for name, text in texts.items() if name.endswith(_OF_ASSISTANT)}


@scorer("knowledge_retention")
@dataclass(frozen=True, kw_only=True)
class KnowledgeRetention(_TurnScorer):
    """Scores the share of the assistant's turns that forget nothing that the user said before."""

    PROMPT: ClassVar = PROMPTS["questions"]["knowledge_retention"]
    GOOD: ClassVar = "keep in mind what was said"
    name: str = "knowledge_retention"


@scorer("role_adherence")
@dataclass(frozen=True)
class RoleAdherence(_TurnScorer):
    """Scores the share of the assistant's turns that keep to its role."""

    role: str
    _: KW_ONLY
    GOOD: ClassVar = "keep to the role"
    PROMPT: ClassVar = PROMPTS["questions"]["role_adherence"]
    name: str = "role_adherence"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.role.strip():
            raise UsageError(f"scorer {self.name!r}: the role is empty: say what the assistant is, and is not, to do")

    def instructions(self) -> str:
        return super().instructions().replace("{role}", self.role)


@scorer("conversation_completeness")
@dataclass(frozen=True, kw_only=True)
class ConversationCompleteness(ListingScorer):
    """Scores the share of the user's requests that the conversation met."""

    PROMPT: ClassVar = PROMPTS["questions"]["conversation_completeness"]
    ITEMS: ClassVar = ("requests", "request", "met")
    name: str = "conversation_completeness"

    def texts(self, given: ScoreInput) -> dict[str, str]:
        return _conversation(given)


_LEVELS = {"met": 1.0, "partly met": 0.5, "not met": 0.0}
_HEADING = re.compile(r"##\s+(?P<name>.+?)\s*(?:\(\s*(?:weight\s*:?\s*)?(?P<weight>\d+(?:\.\d+)?)\s*\))?\s*")


class Criterion(FrozenModel):
    """One criterion of a rubric."""

    name: str = Field(min_length=1)
    text: str = Field(min_length=1)
    weight: float = Field(default=1.0, gt=0)


class _RubricFile(FrozenModel):
    criteria: tuple[Criterion, ...] = Field(min_length=1)
    name: str = "rubric"
    show: tuple[Shown, ...] = ()


@scorer("rubric", main="criteria")
@dataclass(frozen=True)
class Rubric(AskingScorer):
    """Asks a model, for each criterion, whether the answer meets it; the score is the weighted mean."""

    criteria: tuple[Criterion, ...]
    _: KW_ONLY
    show: tuple[Shown, ...] = ()
    name: str = "rubric"

    PARTS: ClassVar = ("{criteria}",)
    PROMPT: ClassVar = PROMPTS["questions"]["rubric"]

    def __post_init__(self) -> None:
        super().__post_init__()
        names = [criterion.name for criterion in self.criteria]
        if not names:
            raise UsageError(f"scorer {self.name!r}: the rubric has no criteria")
        if twice := [name for name in names if names.count(name) > 1]:
            raise UsageError(f"scorer {self.name!r}: two criteria are called {twice[0]!r}: rename one")

    @classmethod
    def from_file(cls, file: str | PathLike[str], **options: Any) -> Self:
        """Read a rubric from YAML (`criteria`, a list of `name`, `text`, `weight`) or Markdown (`## name (weight 2)`).

        Options are those of the scorer, and override what the file says. Raises `UsageError` if the file cannot be read
        or has no criteria.
        """
        path = Path(file)
        if path.suffix.lower() in (".md", ".markdown"):
            found = _RubricFile(criteria=tuple(_criteria(read_text(path, pipes=True), path)))
        else:
            examples = {"criteria": "a list of objects with `name`, `text` and, if you like, `weight`"}
            found = read_yaml(path).read(_RubricFile, examples)
        return cls(**{"criteria": found.criteria, "name": found.name, "show": found.show, **options})

    def instructions(self) -> str:
        """Return the prompt with the criteria and the keys by which the judge names them."""
        listed = "\n".join(f"{key}: {one.name}. {one.text}" for key, one in self._by_key().items())
        return super().instructions().replace("{criteria}", listed)

    def texts(self, given: ScoreInput) -> dict[str, str]:
        return question_and_answer(given, self.show)

    def schema(self, texts: Mapping[str, str]) -> dict[str, Any]:  # noqa: ARG002 - the same for all
        level = {"type": "string", "enum": list(_LEVELS)}
        return object_schema({"rationale": {"type": "string"}, **dict.fromkeys(self._by_key(), level)})

    def verdict(self, answer: Any, texts: Mapping[str, str]) -> JudgeVerdict:  # noqa: ARG002
        """Return the weighted mean of the criteria: 1 for met, 0.5 for partly met, 0 for not met."""
        met: dict[str, JsonValue] = {one.name: answer[key] for key, one in self._by_key().items()}
        weights = [one.weight for one in self.criteria]
        value = sum(_LEVELS[answer[key]] * one.weight for key, one in self._by_key().items()) / sum(weights)
        wrong = [f"{name} is {level}" for name, level in met.items() if level != "met"]
        reason = f"{', '.join(wrong) or 'all criteria are met'}: {answer['rationale']}"
        return JudgeVerdict("", min(1.0, value), reason, answer["rationale"], {"criteria": met})

    def _by_key(self) -> dict[str, Criterion]:
        return {f"criterion_{number}": criterion for number, criterion in enumerate(self.criteria, 1)}


def _criteria(text: str, path: Path) -> Iterator[Criterion]:
    """Yield the sections of a Markdown file. Text before the first section is ignored."""
    lines = text.splitlines()
    places = [place for place, line in enumerate(lines) if _HEADING.fullmatch(line)]
    if not places:
        raise UsageError(f"{path} has no criteria: write each as `## name (weight 2)`, with what it means below")
    for place, end in pairwise([*places, len(lines)]):
        heading = _HEADING.fullmatch(lines[place])
        assert heading is not None
        meaning = " ".join(" ".join(lines[place + 1 : end]).split())
        weight = float(heading["weight"] or 1)
        if not meaning or not weight:
            what = "has no text: say below the heading when it is met" if not meaning else "weighs nothing"
            raise UsageError(f"{path}:{place + 1}: criterion {heading['name']!r} {what}")
        yield Criterion(name=heading["name"], text=meaning, weight=weight)
