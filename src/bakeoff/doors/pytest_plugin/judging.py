"""From the records of a case to its outcome: the score that the gate makes of its rounds, against the threshold."""

from collections.abc import Sequence
from statistics import fmean

from bakeoff._kernel.json import as_json
from bakeoff.doors.pytest_plugin.outcome import EvalOutcome, Gate
from bakeoff.doors.pytest_plugin.rows import Row
from bakeoff.doors.pytest_plugin.settings import Settings
from bakeoff.plan import SubjectSpec
from bakeoff.record import Record, Score, Verdict, reaches

_OURS = ("GraderError", "InfraError")  # whose messages need no type to be understood
_FULL = 1.0  # what a round must reach to pass where the suite has no threshold


def outcome_of(
    nodeid: str,
    suite: str,
    row: Row,
    settings: Settings,
    records: Sequence[Record],
    column: tuple[str, SubjectSpec | None] = ("", None),
) -> EvalOutcome:
    """The case as a whole. What a scorer broke, or what the infrastructure lost, cannot be decided."""
    problem = _problem(records)
    score = None if problem else _gated(records, settings)
    if score is None and problem is None and settings.threshold is not None:
        problem = f"no scorer gave a score: {_unscored(records)}"
    never = bool(records) and all(record.attempt and record.attempt.failure for record in records)
    passed = None if score is None or settings.threshold is None else reaches(score, settings.threshold) and not never
    parameters, subject = column
    return EvalOutcome(
        nodeid=nodeid,
        suite=suite,
        case=row.id,
        input=shown_input(row),
        expected=as_json(row.values.get("expected")),
        threshold=settings.threshold,
        gate=settings.gate,
        null_as_zero=settings.null_as_zero,
        parameters=parameters,
        subject=subject,
        records=tuple(records),
        score=score,
        passed=passed,
        problem=problem,
    )


def undecided(nodeid: str, suite: str, row: Row, settings: Settings, problem: str) -> EvalOutcome:
    """A case that was never tried."""
    return EvalOutcome(
        nodeid=nodeid,
        suite=suite,
        case=row.id,
        input=shown_input(row) if row.values else "",
        threshold=settings.threshold,
        gate=settings.gate,
        null_as_zero=settings.null_as_zero,
        problem=problem,
    )


def shown_input(row: Row) -> str:
    """The input as text."""
    from pydantic_core import to_json

    value = as_json(row.input)
    return value if isinstance(value, str) else to_json(value).decode()


def _problem(records: Sequence[Record]) -> str | None:
    for record in records:
        broken = [score for score in record.scores if score.failure is not None]
        if broken:
            return "; ".join(map(_broken, broken))
        if record.failure is not None and record.verdict in (Verdict.INFRA, Verdict.BUDGET, Verdict.GRADER):
            return record.failure.message
    return None


def _broken(score: Score) -> str:
    assert score.failure is not None
    kind, message = score.failure.type, score.failure.message
    who = f"scorer {score.name!r}"
    if message.startswith(who):
        return message
    return f"{who}: {message}" if kind in _OURS else f"{who}: {kind}: {message}"


def _unscored(records: Sequence[Record]) -> str:
    told = [f"{score.name}: {score.reason or 'unscored'}" for record in records[:1] for score in record.scores]
    return "; ".join(told) or "there was no output"


def _gated(records: Sequence[Record], settings: Settings) -> float | None:
    values = [record.value for record in records]
    scored = [value for value in values if value is not None]
    if not scored or (settings.gate != "mean" and len(scored) < len(values)):
        return None
    return fmean(scored) if settings.gate == "mean" else _pass_k(scored, settings.gate, settings.threshold)


def _pass_k(values: Sequence[float], gate: Gate, threshold: float | None) -> float:
    """Of k rounds, whether one passed, or all did."""
    from bakeoff.stats.cells import CaseKey, cells_of
    from bakeoff.stats.passk import pass_at_k, pass_hat_k

    least = _FULL if threshold is None else threshold
    cells = cells_of({CaseKey("rounds"): [float(reaches(value, least)) for value in values]})
    estimate = pass_at_k if gate == "pass@k" else pass_hat_k
    return estimate(cells, len(values)).value
