"""Score answers from retrieved passages: `faithfulness`, `answer_relevance`, `context_precision`, `context_recall`.

Passages are the `context` in the metadata of a task's result, or else that of the row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from bakeoff.protocols import ScoreInput
from bakeoff.scorers.material import material
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
