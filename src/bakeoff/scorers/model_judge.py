"""Define what all scorers that ask a model share: texts to show, settings, scores from verdicts."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

from pydantic import JsonValue, NonNegativeFloat, PositiveInt

from bakeoff._kernel.environment import read_environment
from bakeoff._kernel.files import data_beside
from bakeoff.errors import GraderError, UsageError
from bakeoff.plan import ScorerSpec
from bakeoff.protocols import Needs, ScoreInput
from bakeoff.record import SHOWN, Score, Text, ToolCall
from bakeoff.scorers.configurable import ConfigurableScorer
from bakeoff.scorers.text import as_text

if TYPE_CHECKING:
    from bakeoff.models.access import ProviderAccess
    from bakeoff.scorers.judging import Question


PROMPTS = data_beside(__file__, "prompts.toml")
"""The prompts for judges, by scorer."""

Shown: TypeAlias = Literal["context", "tool_calls", "transcript"]

CONTEXT = "context"
MESSAGES = "messages"
_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "developer": "system", "function": "tool"}
_KNOWN = ("user", "assistant", "system", "tool")
_TEXT_OF = ("text", "content", "page_content")  # of a passage that is an object


class Turn(NamedTuple):
    """One message of a conversation."""

    role: str
    text: str


def material(given: ScoreInput, wanted: Iterable[Shown]) -> dict[str, str]:
    """Return the texts of the wanted kinds, by the names that the judge sees."""
    found: dict[str, str] = {}
    for kind in wanted:
        if kind == "context":
            found |= numbered("passage", context_of(given)) or {"passages": "(none)"}
        elif kind == "tool_calls":
            calls = map(_call_text, given.tool_calls)
            found["tool calls"] = "\n".join(calls) or "(no tool was called)"
        else:
            found |= _transcript(given)
    return found


def question_and_answer(given: ScoreInput, wanted: Iterable[Shown] = ()) -> dict[str, str]:
    """Return the question, the expected answer if there is one, the texts of the wanted kinds, and the answer."""
    reference = {"reference": as_text(given.expected)} if given.expected is not None else {}
    shown = material(given, wanted)
    return {"question": as_text(given.input), **reference, **shown, "answer": as_text(given.output)}


def context_of(given: ScoreInput) -> list[str]:
    """Return the retrieved passages: `context` in the result's metadata, or else in the row.

    A passage may be text or an object with a text. Raises `GraderError` if there is no context.
    """
    found: Any = given.transcript.metadata.get(CONTEXT, given.row.get(CONTEXT))
    if found is None:
        raise GraderError(
            f"case {given.case.id!r} has no context: return TaskResult(result=…, metadata={{'context': [passages]}}), "
            "or give the row a `context`"
        )
    passages: list[str] = []
    for each in found if isinstance(found, list | tuple) else [found]:
        if isinstance(each, Mapping):
            each = next((each[name] for name in _TEXT_OF if isinstance(each.get(name), str)), each)
        passages.append(as_text(each))
    return passages


def only_in_row(given: ScoreInput, texts: Mapping[str, str]) -> dict[str, str]:
    """Return the shown passages and turns that no record holds, because they come from a row in Python code."""
    held = given.transcript.metadata
    missing = (*(() if CONTEXT in held else ("passage ",)), *(() if MESSAGES in held else ("turn ",)))
    return {name: text for name, text in texts.items() if name.startswith(missing)}


def numbered(name: str, texts: Iterable[str]) -> dict[str, str]:
    """Return texts under numbered names. Each gets its own marks, so that none can imitate another."""
    return {f"{name} {number}": text for number, text in enumerate(texts, 1)}


def turns_of(given: ScoreInput, role: str | None = None) -> list[Turn]:
    """Return the conversation: `messages` of the result or the row, or an input of messages with the answer to it.

    The output is added as a last turn if the messages do not end with one of the assistant. With a `role` (`user`,
    `assistant`, `system`, `tool`), only its turns are returned. Raises `GraderError` if there is no conversation.
    """
    found = given.transcript.metadata.get(MESSAGES, given.row.get(MESSAGES, given.input))
    if not _is_conversation(found):
        raise GraderError(
            f"case {given.case.id!r} has no conversation: return its messages, or give the row `messages` or an "
            "`input` of messages, which are objects with `role` and `content`"
        )
    from bakeoff.sdk_results.plain_data import text_in

    turns: list[Turn] = []
    for message in found:
        text = text_in(content := message.get("content"))
        turns.append(Turn(_role(message), as_text(content) if text is None else text))
    said = as_text(given.output)
    turns += [Turn("assistant", said)] if turns[-1].role != "assistant" and said else []
    return [turn for turn in turns if role in (None, turn.role)]


def shown_turns(turns: Iterable[Turn]) -> dict[str, str]:
    """Return the turns by the names that the judge sees."""
    return {f"turn {number} of the {turn.role}": turn.text for number, turn in enumerate(turns, 1)}


def _is_conversation(found: Any) -> bool:
    return isinstance(found, list | tuple) and bool(found) and all(_role(each) in _KNOWN for each in found)


def _role(message: Any) -> str:
    said = message.get("role") or message.get("type") if isinstance(message, Mapping) else None
    return _ROLES.get(str(said), str(said))


def _transcript(given: ScoreInput) -> dict[str, str]:
    conversation = given.transcript.metadata.get(MESSAGES, given.row.get(MESSAGES))
    if _is_conversation(conversation):
        return shown_turns(turns_of(given))
    lines: list[str] = []
    for number, step in enumerate(given.transcript.steps, 1):
        for part in step.parts:
            if isinstance(part, ToolCall):
                lines.append(f"[{number}] called {_call_text(part)}")
            elif isinstance(part, Text):  # reasoning is not part of the answer
                lines.append(f"[{number}] said {part.text}")
    return {"transcript": "\n".join(lines) or "(nothing but the answer)"}


def _call_text(call: ToolCall) -> str:
    told = f"error: {call.error}" if call.error else as_text(call.result)
    return f"{call.name}({as_text(call.arguments)}) → {told}"


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
    """Return the verdict for an answer that is not in the required form."""
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
    prompt: str | None = None  # replaces ours; the form of the answer and the rules about marks are always added
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
        """Return the access to the judge's provider, with the environment at the first use."""
        from bakeoff.scorers.judging import access_to

        environment = read_environment()
        return access_to(self.model or environment.get(VARIABLE, "").strip() or USUAL_JUDGE, environment)

    @classmethod
    def from_spec(cls, spec: ScorerSpec) -> Self:
        """Build the judge that a plan names. Raises UsageError if no provider serves its model."""
        judge = super().from_spec(spec)
        _ = judge.access
        return judge

    def preload(self) -> None:
        """Import modules for the first question, so that the seconds count for no case."""
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
        """Return the judge's answers, one for each repeat."""
        from bakeoff.scorers.judging import ask

        asked = given.transcript.metadata.get("model")
        if isinstance(asked, str) and (why := self.self_judging_problem(asked)):
            raise GraderError(f"scorer {self.name!r}: {why}")
        return await ask(self, given, question, texts)

    def score(self, verdicts: list[JudgeVerdict], shown: Mapping[str, str] | None = None) -> Score:
        """Return the mean of the verdicts with a value; unscored if there are none.

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
    """A scorer with its own question. Subclasses define the texts shown, the form of the answer, and its score."""

    PROMPT: ClassVar[str]
    SHOWN: ClassVar[tuple[Literal["context", "question", "reference", "answer"], ...]] = ()

    def instructions(self) -> str:
        """Return the instructions for the judge."""
        return self.prompt or self.PROMPT

    def texts(self, given: ScoreInput) -> dict[str, str]:
        """Return the texts that are shown, by their names; a missing reference is left out.

        Raise GraderError if the case lacks any other text.
        """
        values = {"question": given.input, "reference": given.expected, "answer": given.output}
        found: dict[str, str] = {}
        for name in self.SHOWN:
            if name == "context":
                found |= material(given, ("context",))
            elif name != "reference" or given.expected is not None:
                found[name] = as_text(values[name])
        return found

    @abstractmethod
    def schema(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """Return the JSON schema of the answer."""

    @abstractmethod
    def verdict(self, answer: Any, texts: Mapping[str, str]) -> JudgeVerdict:
        """Return the verdict for an answer that fits the schema."""

    def unscored(self, given: ScoreInput) -> str | None:  # noqa: ARG002 - most score every case
        """Say why a case cannot be scored, without asking the judge."""
        return None

    async def __call__(self, given: ScoreInput) -> Score:
        from bakeoff.scorers.judging import Question, UnreadableVerdict, read_answer

        if why := self.unscored(given):
            return Score(name=self.name, reason=why)
        texts = self.texts(given)
        schema = self.schema(texts)
        question = Question(self.instructions(), schema, longest=self.longest)
        verdicts: list[JudgeVerdict] = []
        for said in await self.answers(given, question, texts):
            try:
                verdicts.append(replace(self.verdict(read_answer(said, schema), texts), said=said))
            except UnreadableVerdict:
                verdicts.append(unreadable(said))
        return self.score(verdicts, only_in_row(given, texts))


@dataclass(frozen=True, kw_only=True)
class ListingScorer(AskingScorer):
    """A scorer that has the judge list statements, and scores the share that holds, if there are any."""

    ITEMS: ClassVar[tuple[str, str, str]]  # the list, one of its items, what holds

    def schema(self, texts: Mapping[str, str]) -> dict[str, Any]:  # noqa: ARG002 - the same for all
        items, item, holds = self.ITEMS
        entry = object_schema({item: {"type": "string"}, holds: {"type": "boolean"}})
        return object_schema({items: {"type": "array", "items": entry}})

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
    return object_schema({"rationale": {"type": "string"}, **{_key(name): {"type": "boolean"} for name in names}})


def flagged(answer: Any, names: Mapping[str, str]) -> list[bool]:
    """Return the booleans of the names, in their order."""
    return [answer[_key(name)] for name in names]


def _key(name: str) -> str:
    return name.replace(" ", "_")


def object_schema(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of an object that has exactly these fields, given by their schemas."""
    return {"type": "object", "properties": dict(fields), "required": [*fields], "additionalProperties": False}
