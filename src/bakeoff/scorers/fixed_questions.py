"""Ask a judge fixed questions about the passages that an answer was made from, or about a whole conversation.

A conversation is what the task returned as messages, the row's `messages`, or an input of messages with its answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from pydantic import JsonValue

from bakeoff.errors import GraderError, UsageError
from bakeoff.protocols import ScoreInput
from bakeoff.scorers.material import material, shown_turns, turns_of
from bakeoff.scorers.model_judge import AskingScorer, JudgeVerdict, ListingScorer, flagged, flags
from bakeoff.scorers.registry import scorer
from bakeoff.scorers.text import as_text


@scorer("faithfulness")
@dataclass(frozen=True, kw_only=True)
class Faithfulness(ListingScorer):
    """Scores the share of the claims in the answer that the context supports."""

    PROMPT: ClassVar = (
        "List every factual claim that the answer makes, one by one. A claim is `supported` only if it follows from "
        "the passages; what you know yourself does not count."
    )
    ITEMS: ClassVar = ("claims", "claim", "supported")
    name: str = "faithfulness"

    def texts(self, given: ScoreInput) -> dict[str, str]:
        return {**material(given, ("context",)), "question": as_text(given.input), "answer": as_text(given.output)}


@scorer("answer_relevance")
@dataclass(frozen=True, kw_only=True)
class AnswerRelevance(ListingScorer):
    """Scores the share of the statements in the answer that help to answer the question."""

    PROMPT: ClassVar = (
        "Divide the answer into its statements. A statement is `relevant` if it helps to answer the question, whether "
        "it is true or not. Small talk, repetition and matters that were not asked for are not."
    )
    ITEMS: ClassVar = ("statements", "statement", "relevant")
    name: str = "answer_relevance"

    def texts(self, given: ScoreInput) -> dict[str, str]:
        return {"question": as_text(given.input), "answer": as_text(given.output)}


@scorer("context_recall")
@dataclass(frozen=True, kw_only=True)
class ContextRecall(ListingScorer):
    """Scores the share of the statements in the expected answer that the context supports."""

    PROMPT: ClassVar = (
        "Divide the reference answer into its statements. A statement is `supported` only if it follows from the "
        "passages."
    )
    ITEMS: ClassVar = ("statements", "statement", "supported")
    name: str = "context_recall"

    def unscored(self, given: ScoreInput) -> str | None:
        return "the case has no expected output" if given.expected is None else None

    def texts(self, given: ScoreInput) -> dict[str, str]:
        shown = {"question": as_text(given.input), "reference": as_text(given.expected)}
        return {**material(given, ("context",)), **shown}


@scorer("context_precision")
@dataclass(frozen=True, kw_only=True)
class ContextPrecision(AskingScorer):
    """Scores how far the useful passages come first: their average precision."""

    PROMPT: ClassVar = (
        "Decide for each passage whether it is useful to answer the question, as the reference answer does if there is "
        "one. A passage about the same topic that does not help is not useful."
    )
    name: str = "context_precision"

    def texts(self, given: ScoreInput) -> dict[str, str]:
        reference = {} if given.expected is None else {"reference": as_text(given.expected)}
        return {"question": as_text(given.input), **reference, **material(given, ("context",))}

    def schema(self, texts: Mapping[str, str]) -> dict[str, Any]:
        return flags(_passages(texts))

    def verdict(self, answer: Any, texts: Mapping[str, str]) -> JudgeVerdict:
        useful = flagged(answer, _passages(texts))
        reason = f"{sum(useful)} of {len(useful)} passages are useful: {answer['rationale']}"
        return JudgeVerdict("", average_precision(useful), reason, answer["rationale"], {"useful": list(useful)})


def _passages(texts: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in texts.items() if name.startswith("passage ")}


def average_precision(useful: Sequence[bool]) -> float:
    """Return the mean, over the useful passages, of the share of useful ones down to there; 0 if none is useful."""
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
    """Has the judge look at each turn of the assistant, and scores the share of good ones."""

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
    """Scores the share of the assistant's turns that forget nothing of what the user has said before."""

    PROMPT: ClassVar = (
        "Decide for each turn of the assistant whether it keeps in mind what the user said in earlier turns. A turn is "
        "false if it asks again for something the user has told, contradicts it, or ignores it where it matters."
    )
    GOOD: ClassVar = "keep in mind what was said"
    name: str = "knowledge_retention"


@scorer("role_adherence")
@dataclass(frozen=True)
class RoleAdherence(_TurnScorer):
    """Scores the share of the assistant's turns that keep to its role."""

    role: str
    _: KW_ONLY
    GOOD: ClassVar = "keep to the role"
    PROMPT: ClassVar = (
        "The assistant has this role:\n{role}\n\nDecide for each turn of the assistant whether it keeps to that role: "
        "what it does, what it leaves to others, and how it speaks."
    )
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

    PROMPT: ClassVar = (
        "List every request that the user made in the conversation, one by one. A request is `met` if the assistant "
        "did or answered what was asked by the end."
    )
    ITEMS: ClassVar = ("requests", "request", "met")
    name: str = "conversation_completeness"

    def texts(self, given: ScoreInput) -> dict[str, str]:
        return _conversation(given)
