"""Find what a judge may be shown besides the answer: the context, the tool calls, the conversation."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from bakeoff.errors import GraderError
from bakeoff.protocols import ScoreInput
from bakeoff.record import Step, Text, ToolCall
from bakeoff.scorers.text import as_text

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
    """Return the texts of the wanted kinds, by the names under which a judge sees them."""
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
    """Return the retrieved passages: the `context` in the result's metadata, or else that of the row."""
    found: Any = given.transcript.metadata.get(CONTEXT, given.row.get(CONTEXT))
    if found is None:
        raise GraderError(
            f"case {given.case.id!r} has no context: return TaskResult(result=…, metadata={{'context': [passages]}}), "
            "or give the row a `context`"
        )
    return [_passage(each) for each in (found if isinstance(found, list | tuple) else [found])]


def _passage(given: Any) -> str:
    if isinstance(given, Mapping):
        given = next((given[name] for name in _TEXT_OF if isinstance(given.get(name), str)), given)
    return as_text(given)


def only_in_row(given: ScoreInput, texts: Mapping[str, str]) -> dict[str, str]:
    """Return the shown passages and turns that no record holds, because they stand in a row of Python."""
    held = given.transcript.metadata
    missing = (*(() if CONTEXT in held else ("passage ",)), *(() if MESSAGES in held else ("turn ",)))
    return {name: text for name, text in texts.items() if name.startswith(missing)}


def numbered(name: str, texts: Iterable[str]) -> dict[str, str]:
    """Return texts under numbered names. Each has marks of its own, so that no text can pretend to be the next."""
    return {f"{name} {number}": text for number, text in enumerate(texts, 1)}


def turns_of(given: ScoreInput) -> list[Turn]:
    """Return the conversation: `messages` of the result or the row, or an input of messages with the answer to it."""
    found = given.transcript.metadata.get(MESSAGES, given.row.get(MESSAGES, given.input))
    if not _is_conversation(found):
        raise GraderError(
            f"case {given.case.id!r} has no conversation: return its messages, or give the row `messages` or an "
            "`input` of messages, which are objects with `role` and `content`"
        )
    turns = [Turn(_role(each), _content(each)) for each in found]
    said = as_text(given.output)
    return [*turns, Turn("assistant", said)] if turns[-1].role != "assistant" and said else turns


def shown_turns(turns: Iterable[Turn]) -> dict[str, str]:
    """Return the turns by the names under which a judge sees them."""
    return {f"turn {number} of the {turn.role}": turn.text for number, turn in enumerate(turns, 1)}


def _is_conversation(found: Any) -> bool:
    return isinstance(found, list | tuple) and bool(found) and all(_role(each) in _KNOWN for each in found)


def _role(message: Any) -> str:
    said = message.get("role") or message.get("type") if isinstance(message, Mapping) else None
    return _ROLES.get(str(said), str(said))


def _content(message: Mapping[str, Any]) -> str:
    from bakeoff.sdk_results.plain_data import text_in

    content = message.get("content")
    text = text_in(content)
    return as_text(content) if text is None else text


def _transcript(given: ScoreInput) -> dict[str, str]:
    conversation = given.transcript.metadata.get(MESSAGES, given.row.get(MESSAGES))
    if _is_conversation(conversation):
        return shown_turns(turns_of(given))
    steps = [f"[{number}] {line}" for number, step in enumerate(given.transcript.steps, 1) for line in _lines(step)]
    return {"transcript": "\n".join(steps) or "(nothing but the answer)"}


def _lines(step: Step) -> Iterator[str]:
    for part in step.parts:
        if isinstance(part, ToolCall):
            yield f"called {_call_text(part)}"
        elif isinstance(part, Text):  # what a model thought is not what it said
            yield f"said {part.text}"


def _call_text(call: ToolCall) -> str:
    told = f"error: {call.error}" if call.error else as_text(call.result)
    return f"{call.name}({as_text(call.arguments)}) → {told}"
