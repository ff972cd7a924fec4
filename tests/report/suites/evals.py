"""Outcomes made of records, without running anything."""

from collections.abc import Sequence
from typing import Any

from bakeoff.plan import PassRule
from bakeoff.record import Failure, Phase, Record, Score, Step, ToolCall, Transcript, Usage
from bakeoff.report.suites.eval_file import file_chunks
from bakeoff.report.suites.numbers import SuiteNumbers, SuitesSummary, SuiteTallies, summary_of
from bakeoff.report.suites.outcomes import EvalOutcome


def record(value: float | None = 1.0, *, round_: int = 0, threshold: float | None = 0.5, **more: Any) -> Record:
    calls = more.pop("calls", ())
    usual: dict[str, Any] = {
        "case": "case",
        "subject": "subject",
        "round": round_,
        "attempt_key": "a",
        "score_key": "s",
        "started": 1_700_000_000.0,
        "threshold": threshold,
        "attempt": Phase(seconds=0.042),
        "score": Phase(seconds=0.001),
        "transcript": Transcript(output=more.pop("output", "an answer"), steps=(Step(parts=tuple(calls)),)),
        "scores": (Score(name="Contains", value=value, reason="" if value == 1 else "it says something else"),),
    }
    return Record(**{**usual, **more})


def broken(message: str = "boom") -> Record:
    failure = Failure(kind="grader", type="ValueError", message=message)
    return record(None, scores=(Score(name="Judge", failure=failure),))


def outcome(
    value: float | None = 1.0, nodeid: str = "tests/test_x.py::test_capitals[paris]", **more: Any
) -> EvalOutcome:
    """One case with one round, judged as the plugin would, unless something else is said."""
    threshold, gate = more.pop("threshold", 0.5), more.pop("gate", "mean")
    records = more.pop("records", None)
    records = (record(value, threshold=threshold, **more.pop("record", {})),) if records is None else records
    rule = PassRule(threshold=threshold, gate=gate, null_as_zero=more.pop("null_as_zero", False))
    suite = nodeid.split("::")[-1].partition("[")[0]
    case = nodeid.partition("[")[2].removesuffix("]")
    usual: dict[str, Any] = {
        "nodeid": nodeid,
        "suite": suite,
        "case": case,
        "input": f"What about {case}?",
        "expected": "Paris",
    }
    parts: dict[str, Any] = {name: more.pop(name) for name in ("score", "passed", "problem") if name in more}
    return EvalOutcome(rule=rule, **{**usual, **more}).judged(records).model_copy(update=parts)


def suite(
    values: Sequence[float | None], name: str = "test_capitals", file: str = "tests/test_x.py", **more: Any
) -> list[EvalOutcome]:
    """One case for each value; `more` are facts of every record."""
    return [outcome(value, f"{file}::{name}[case-{place}]", record=more) for place, value in enumerate(values)]


def priced(value: float = 1.0, cost: float = 0.0012) -> EvalOutcome:
    usage = Usage(requests=1, input=1000, output=204, cost=cost)
    calls = (ToolCall(name="search", id="1"), ToolCall(name="fetch", id="2", parent_id="1"), ToolCall(name="add"))
    return outcome(value, record={"spent": usage, "calls": calls})


def numbers_of(outcomes: Sequence[EvalOutcome]) -> SuiteNumbers:
    return SuiteTallies.of(outcomes).whole().numbers()


def whole_summary(outcomes: Sequence[EvalOutcome], **more: Any) -> SuitesSummary:
    return summary_of(SuiteTallies.of(outcomes), **more)


def file_bytes(outcomes: Sequence[EvalOutcome], **more: Any) -> bytes:
    """The file of --eval-json."""
    return b"".join(file_chunks(outcomes, summary_of(SuiteTallies.of(outcomes), **more)))
