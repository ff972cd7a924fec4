"""Turn what the user's function returned into a transcript."""

import inspect
from collections.abc import Sequence
from typing import Any

from bakeoff.errors import SubjectError
from bakeoff.record import Transcript


def transcript_of(answer: Any) -> Transcript:
    """Return what a task returned as a transcript. Raise SubjectError if it cannot be scored."""
    if isinstance(answer, str):
        return Transcript(output=answer)
    if answer is None:
        raise SubjectError("the task returned None: return the output to score")
    if isinstance(answer, Transcript):
        return answer
    if inspect.isgenerator(answer):
        return Transcript(output=joined(list(answer)))
    from bakeoff.sdk_results import recognise  # most tasks return text

    result = recognise(answer)
    if result is None:
        raise SubjectError(_refusal(answer))
    return result.transcript()


def _refusal(answer: Any) -> str:
    """Say what of an answer is not understood, where it is, and the way out."""
    from bakeoff.sdk_results import foreign_class, unknown_part

    kind, part = foreign_class(answer), unknown_part(answer)
    what = f"an object of {kind.__module__}.{kind.__qualname__}" if kind else part.what if part else "something"
    place = part.place if part and not kind else ""
    held = "" if kind is type(answer) or (part and not part.place and not kind) else f"a {type(answer).__name__} with "
    return (
        f"the task returned {held}{what}, which is unknown{f' (at {place})' if place else ''}: return its "
        "text, data of your own (text, number, list, dict, dataclass, model), the result object of a known SDK, or "
        "`TaskResult(result=…)` with what is to be scored"
    )


def joined(pieces: Sequence[Any]) -> str:
    """Return the texts that a generator has yielded as one."""
    for piece in pieces:
        if not isinstance(piece, str):
            kind = type(piece)
            raise SubjectError(
                f"the task yielded an object of {kind.__module__}.{kind.__qualname__}: "
                "yield texts, which are joined, or return the whole output"
            )
    return "".join(pieces)
