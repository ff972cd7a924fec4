"""Applications checked by their spans: what is scored, and that spans of concurrent cases are kept apart."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bakeoff.errors import GraderError, UsageError
from bakeoff.protocols import ScoreInput
from bakeoff.record import Score, Transcript
from bakeoff.scorers import Spans, spans_of

PROGRAM = Path(__file__).parent / "programs" / "instrumented.py"


def made(*names: str, error: str | None = None, count: int | None = None) -> ScoreInput:
    """An input with spans of these names; the last one has failed if there is an error."""
    spans: list[Any] = [
        {"name": name, "id": str(at), "started": float(at), "ms": 1.0, "attributes": {"at": at}}
        for at, name in enumerate(names)
    ]
    if error:
        spans[-1]["error"] = error
    about = ScoreInput.of("x", input="?")
    told: dict[str, Any] = {"spans": {"count": len(spans) if count is None else count, "spans": spans}}
    return ScoreInput(about.case, Transcript(output="x", metadata=told), {}, about.pristine)


async def scored(given: ScoreInput, **options: Any) -> Score:
    return await Spans(**options)(given)


@pytest.mark.parametrize(
    ("options", "value", "reason"),
    [
        ({}, 1.0, "3 spans"),
        ({"calls_of": {"chat *": 2, "search": (0, 1), "pay": 0}}, 1.0, "3 spans"),
        ({"calls_of": {"chat *": 1}}, 0.0, "2 spans 'chat *', not 1"),
        ({"calls_of": {"search": (2, 3), "pay": 1}}, 0.0, "1 spans 'search', not 2 to 3; 0 spans 'pay', not 1"),
        ({"max_spans": 3}, 1.0, "3 spans"),
        ({"max_spans": 2}, 0.0, "3 spans, at most 2 allowed"),
        ({"max_spans": 0}, 0.0, "3 spans, at most 0 allowed"),
    ],
)
async def test_spans_are_counted_by_their_names(options: dict[str, Any], value: float, reason: str) -> None:
    score = await scored(made("chat a", "search", "chat b"), **options)
    assert (score.value, score.reason) == (value, reason)


async def test_failed_spans_fail_unless_they_may() -> None:
    given = made("chat", "search", error="TimeoutError")
    score = await scored(given)
    assert (score.value, score.reason) == (0.0, "failed: search (TimeoutError)")
    assert (await scored(given, no_error_spans=False)).value == 1.0
    assert [(span.name, span.error, span.attributes) for span in spans_of(given)] == [
        ("chat", None, {"at": 0}),
        ("search", "TimeoutError", {"at": 1}),
    ]


async def test_no_spans_are_no_pass() -> None:
    with pytest.raises(GraderError, match="the application made no spans: instrument it"):
        await scored(made())
    assert (await scored(made(), max_spans=0)).value == 1.0
    with pytest.raises(GraderError, match="no spans were collected: add a scorer `Spans`"):
        await scored(ScoreInput.of("x", input="?"))
    assert (await scored(made("a", count=2000), max_spans=1500)).reason == "2000 spans, at most 1500 allowed"


def test_options_are_checked() -> None:
    with pytest.raises(UsageError, match="option calls_of"):
        Spans(calls_of={"a": -1})
    with pytest.raises(UsageError, match="calls_of 'a': 2 to 1 is no range"):
        Spans(calls_of={"a": (2, 1)})


@pytest.mark.parametrize("provider", ["own", "none"])
def test_spans_of_concurrent_cases_are_kept_apart(provider: str, tmp_path: Path) -> None:
    """The program runs cases at the same time, of functions sync and async, with children in threads."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), provider, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["12 cases with their own spans", f"exported: {48 if provider == 'own' else 0}"]
