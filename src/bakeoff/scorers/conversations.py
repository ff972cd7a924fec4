"""Score whole conversations: `knowledge_retention`, `role_adherence` and `conversation_completeness`.

A conversation is what the task returned as messages, the row's `messages`, or an input of messages with its answer.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from pydantic import JsonValue

from bakeoff.errors import GraderError, UsageError
from bakeoff.protocols import ScoreInput
from bakeoff.scorers.material import shown_turns, turns_of
from bakeoff.scorers.model_judge import AskingScorer, JudgeVerdict, ListingScorer, flagged, flags
from bakeoff.scorers.registry import scorer

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
