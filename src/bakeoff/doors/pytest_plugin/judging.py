"""From the records of a case to its outcome."""

from collections.abc import Sequence

from bakeoff._kernel.json import as_json
from bakeoff.doors.pytest_plugin.outcome import EvalOutcome
from bakeoff.doors.pytest_plugin.rows import Row
from bakeoff.doors.pytest_plugin.suite import Settings
from bakeoff.plan import SubjectSpec
from bakeoff.record import Record


def outcome_of(
    nodeid: str,
    suite: str,
    row: Row,
    settings: Settings,
    records: Sequence[Record],
    column: tuple[str, SubjectSpec | None] = ("", None),
) -> EvalOutcome:
    """Return the outcome of a case; `column` holds its pytest parameters and the subject that they stand for."""
    parameters, subject = column
    return EvalOutcome.judged(
        records,
        settings.rule,
        nodeid=nodeid,
        suite=suite,
        case=row.id,
        input=shown_input(row),
        expected=as_json(row.values.get("expected")),
        parameters=parameters,
        subject=subject,
    )


def undecided(nodeid: str, suite: str, row: Row, settings: Settings, problem: str) -> EvalOutcome:
    """Return the outcome of a case that was never tried."""
    shown = shown_input(row) if row.values else ""
    return EvalOutcome(nodeid=nodeid, suite=suite, case=row.id, input=shown, rule=settings.rule, problem=problem)


def shown_input(row: Row) -> str:
    """Return the input of a row as text."""
    from pydantic_core import to_json

    value = as_json(row.input)
    return value if isinstance(value, str) else to_json(value).decode()
