"""Turn what a task returned into a transcript."""

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
    from bakeoff.sdk_results import foreign_class, recognise

    result = recognise(answer)
    if result is None:
        kind = foreign_class(answer) or type(answer)
        held = "" if kind is type(answer) else f"a {type(answer).__name__} with "
        raise SubjectError(
            f"the task returned {held}an object of {kind.__module__}.{kind.__qualname__}, which is unknown: return its "
            "text, data of your own (text, number, list, dict, dataclass, model), the result object of a known SDK, or "
            "`TaskResult(result=…)` with what is to be scored"
        )
    return result.transcript()


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
