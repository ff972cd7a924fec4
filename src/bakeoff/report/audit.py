"""Describe an audit: the table of cases, their problems, and the faults that no test noticed."""

from collections.abc import Iterator, Sequence

from bakeoff._kernel.text import count_of
from bakeoff.grading.audit import Audit, CaseAudit
from bakeoff.report.blocks import (
    BulletList,
    Column,
    Datum,
    Facts,
    Quote,
    Report,
    Section,
    Table,
    TextSpan,
    Value,
    columns,
)
from bakeoff.report.formatting import duration, percent, span
from bakeoff.stats.cells import Cell
from bakeoff.stats.intervals import Interval, score_interval

_LISTED = 50  # survivors on a terminal
_RARE = 0.1  # the flake rate that the rounds should show
_COLUMNS = (
    Column("case"),
    Column("tests", "end", "Tests that a subject can pass or fail."),
    Column("proven", "end", "Tests that neither an object that agrees with everything nor one that disagrees passes."),
    Column("reference", "end", "Runs of the tests on the reference that passed."),
    Column("flake rate", "end", "Failed runs of the reference, with a 95 % interval.", drop=2),
    Column("stub passes", "end", "Tests that pass without any work on the case.", drop=1),
    Column("cheats", "end", "Cheats that passed, of those that were tried."),
    Column("mutants found", "end", "Faults in the reference that the tests noticed; equivalent ones are left out."),
    Column("time", "end", drop=3, optional=True),
    Column("", help="Whether the case is fit for use."),
)


def describe_audit(audit: Audit) -> Report:
    """Return the report of an audit."""
    fit = len(audit.cases) - len(audit.excluded)
    sections = [
        Section("cases", "Cases", (Table(_COLUMNS, tuple(_row(case) for case in audit.cases)),)),
        Section("total", "Together", (Facts(tuple(_totals(audit))),)),
    ]
    if audit.excluded:
        items = tuple((Quote(case.case), ": ", Quote("; ".join(case.problems))) for case in audit.excluded)
        lead = "Runs with --require-audit leave these cases out."
        sections.append(Section("unfit", "Not fit for use", (BulletList(items),), lead=lead))
    if survivors := tuple(_survivors(audit.cases, "survived")):
        lead = "No test noticed these faults. Some change nothing that a user could see; the others need a test."
        table = Table(columns("case", "place", "fault", "before", "after"), survivors, text_rows=_LISTED)
        sections.append(Section("survivors", "Faults that no test noticed", (table,), lead=lead))
    if equivalent := tuple(_survivors(audit.cases, "equivalent")):
        lead = "These changes have no effect, so they were not tried and do not count."
        table = Table(columns("case", "place", "fault", "before", "after"), equivalent)
        sections.append(Section("equivalent", "Equivalent mutants", (table,), lead=lead, page_only=True))
    lacking = [(case.case, advice, names) for case in audit.cases for advice, names in case.unproven.items()]
    if unproven := tuple((Quote(case), ": ", Quote(", ".join(names)), f" ({how})") for case, how, names in lacking):
        sections.append(Section("unproven", "Tests that are not proven", (BulletList(unproven),)))
    idle = tuple((Quote(case.case), ": ", Quote(", ".join(case.nop_passed))) for case in audit.cases if case.nop_passed)
    if idle:
        sections.append(Section("tests", "Tests that pass without any work", (BulletList(idle),), page_only=True))
    return Report(
        title=f"Audit of {count_of(len(audit.cases), 'case')}",
        sections=tuple(sections),
        badge="fit" if not audit.excluded else "not fit",
        tone="pass" if not audit.excluded else "fail",
        headline=f"{fit} of {count_of(len(audit.cases), 'case')} {'is' if fit == 1 else 'are'} fit for use.",
        tiles=tuple((name, value, "") for name, value in _totals(audit)),
    )


def flake_interval(cases: Sequence[CaseAudit]) -> Interval | None:
    """Return the interval of the flake rate, over the cases or, for a single case, its rounds."""
    graded = [case for case in cases if case.rounds]
    if len(graded) == 1:
        return score_interval([Cell.of([failed]) for failed in _failures(graded[0])])
    return score_interval([Cell.of(_failures(case)) for case in graded])


def _failures(case: CaseAudit) -> list[float]:
    failed = len(case.oracle_failures)
    return [1.0] * failed + [0.0] * (case.rounds - failed)


def _row(case: CaseAudit) -> tuple[Value, ...]:
    name = Datum(Quote(f"{case.track}/{case.case}" if case.track else case.case), sort=case.case)
    mark = Datum("fit", tone="pass") if case.ok else Datum("not fit", tone="fail")
    if not case.rounds:
        return (name, *(None for _ in _COLUMNS[2:]), mark)
    failed, judged = len(case.oracle_failures), case.count("killed") + case.count("survived")
    interval = flake_interval([case])
    rate = failed / case.rounds
    ends = (interval.low, interval.high) if interval else (None, None)
    killed = None if case.killed is None else TextSpan(case.killed)
    return (
        name,
        case.tests,
        f"{case.proven}/{case.tests}",
        f"{case.rounds - failed}/{case.rounds}",
        Datum(f"{percent(rate)} ({span(interval)})", sort=rate, span=TextSpan(rate, *ends)),
        f"{len(case.nop_passed)}/{case.tests}",
        f"{len(case.cheats_passed)}/{len(case.cheats)}",
        Datum(f"{case.count('killed')}/{judged}", sort=case.killed, span=killed),
        Datum(duration(case.seconds), sort=case.seconds),
        mark,
    )


def _totals(audit: Audit) -> Iterator[tuple[str, str]]:
    cases = audit.cases
    tests, proven = sum(case.tests for case in cases), sum(case.proven for case in cases)
    rounds, failed = sum(case.rounds for case in cases), sum(len(case.oracle_failures) for case in cases)
    killed, survived = audit.count("killed"), audit.count("survived")
    yield "fit for use", f"{len(cases) - len(audit.excluded)} of {count_of(len(cases), 'case')}"
    if tests:
        yield "proven tests", f"{proven} of {tests} ({percent(proven / tests)})"
    if rounds:
        rate = f"{percent(failed / rounds)} ({span(flake_interval(cases))})"
        yield "failed runs of references", f"{failed} of {rounds}: {rate}"
        seen = 1 - (1 - _RARE) ** min(case.rounds for case in cases if case.rounds)
        yield "chance to see a reference that fails 1 run in 10", percent(seen)
    passed = sum(len(case.nop_passed) for case in cases)
    yield "tests that pass without work", f"{passed} of {tests}"
    tried = sum(len(case.cheats) for case in cases)
    yield "cheats that passed", f"{sum(len(case.cheats_passed) for case in cases)} of {tried}"
    if killed + survived:
        yield "mutants found", f"{killed} of {killed + survived} ({percent(audit.killed)})"
    yield "equivalent mutants", f"{audit.count('equivalent')}, not tried"


def _survivors(cases: Sequence[CaseAudit], fate: str) -> Iterator[tuple[Value, ...]]:
    for case in cases:
        for mutant in case.mutants:
            if mutant.fate == fate:
                after = Quote(mutant.after or "nothing")
                yield Quote(case.case), Quote(mutant.place), mutant.kind, Quote(mutant.before), after
