"""Turn what a task returned into a transcript."""

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
    from bakeoff.sdk_results import recognise

    result = recognise(answer)
    if result is None:
        kind = type(answer)
        raise SubjectError(
            f"the task returned an object of {kind.__module__}.{kind.__qualname__}, which is unknown: "
            "return a str, a TaskResult, data, or the result object of a known SDK"
        )
    return result.transcript()
