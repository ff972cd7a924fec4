"""Write a run as JUnit XML: a suite for each subject, a test case for each case.

A case passes by its rule in the plan, or else if all its rounds do. A subject's mistake is a `failure`, a problem of
infrastructure or grader an `error`, and a trial that was not run or not paid for is `skipped`. Scores are properties.
Controls have no suite, because theirs would fail by design; if a run has only controls, they are marked.
"""

from collections.abc import Iterable, Iterator
from typing import Literal, TextIO
from xml.sax.saxutils import escape, quoteattr

from bakeoff._kernel.text import visible
from bakeoff.plan import Case, SubjectSpec
from bakeoff.record import Record
from bakeoff.report.reasons import why
from bakeoff.report.run_records import RunRecords
from bakeoff.verdict import Verdict

Status = Literal["passed", "failure", "error", "skipped"]

_MAX_TEXT_LENGTH = 2000  # characters of an untrusted text
_MAX_ROUNDS = 20  # of a case that are listed
_FAILED = (Verdict.FAIL, Verdict.TIMEOUT)
_BROKEN = (Verdict.INFRA, Verdict.GRADER)


def write_junit(name: str, records: RunRecords, file: TextIO) -> None:
    """Write one run, case by case."""
    write_junit_of_all(name, [("", records)], file)


def write_junit_of_all(name: str, runs: Iterable[tuple[str, RunRecords]], file: TextIO) -> None:
    """Write several runs to one file, each with a prefix for the names of its suites."""
    file.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name={_attribute(name)}>\n')
    for prefix, records in runs:
        for subject in records.judged:
            _write_suite(f"{prefix}{subject.name}", subject, records, file)
    file.write("</testsuites>\n")


def status_of(verdict: Verdict | None) -> Status:
    """Return JUnit's word for the verdict of a case. A round that is missing counts like one over the budget."""
    if verdict is not None and verdict.ok:
        return "passed"
    if verdict in _FAILED:
        return "failure"
    return "error" if verdict in _BROKEN else "skipped"


def _write_suite(name: str, spec: SubjectSpec, records: RunRecords, file: TextIO) -> None:
    subject = spec.name
    cases = records.cases_of(subject)
    statuses = [status_of(records.case_verdict(subject, case.id).verdict) for case in cases]
    counts = {
        "tests": len(statuses),
        "failures": statuses.count("failure"),
        "errors": statuses.count("error"),
        "skipped": statuses.count("skipped"),
    }
    numbers = " ".join(f'{key}="{count}"' for key, count in counts.items())
    file.write(f"<testsuite name={_attribute(name)} {numbers}>\n")
    if records.is_control(spec):
        file.write('<properties>\n<property name="control" value="tests the cases"/>\n</properties>\n')
    for case, status in zip(cases, statuses, strict=True):
        file.writelines(_test_case(name, case, subject, status, records))
    file.write("</testsuite>\n")


def _test_case(suite: str, case: Case, subject: str, status: Status, records: RunRecords) -> Iterator[str]:
    seconds = 0.0
    verdicts = records.verdicts(subject, case.id)
    rounds = len(verdicts) if records.plan.sparse else records.plan.rounds
    # The rounds that decide the outcome of their case come first.
    ranks = {**dict.fromkeys(_FAILED, 0), **dict.fromkeys(_BROKEN, 1), Verdict.BUDGET: 2}
    chosen = sorted(range(len(verdicts)), key=lambda place: ranks.get(verdicts[place], 3))[:_MAX_ROUNDS]
    told: dict[int, str] = {}
    properties: list[tuple[str, str]] = []
    for place, record in enumerate(records.rounds(subject, case.id)):
        seconds += record.seconds
        if place in chosen:
            properties += _properties(record, several=rounds > 1)
            if not record.verdict.ok:
                told[place] = f"round {record.round + 1}: {': '.join(filter(None, (record.verdict, why(record))))}"
    if (score := records.case_verdict(subject, case.id).score) is not None:
        properties.insert(0, ("score", f"{score:g}"))
    yield f'<testcase classname={_attribute(suite)} name={_attribute(case.id)} time="{seconds:.6f}">\n'
    if properties:
        lines = "".join(f"<property name={_attribute(key)} value={_attribute(value)}/>\n" for key, value in properties)
        yield f"<properties>\n{lines}</properties>\n"
    if status != "passed":
        more = sum(not verdict.ok for verdict in verdicts) - len(told)
        worst = [told[place] for place in chosen if place in told]
        yield _outcome(status, worst, more, missing=rounds - len(verdicts))
    yield "</testcase>\n"


def _properties(record: Record, *, several: bool) -> Iterator[tuple[str, str]]:
    prefix = f"round {record.round + 1}: " if several else ""
    yield f"{prefix}verdict", str(record.verdict)
    for score in record.scores:
        yield f"{prefix}{score.name}", "unscored" if score.value is None else f"{score.value:g}"
    if (used := record.used.cost) is not None:
        yield f"{prefix}cost", f"{used:.6f}"


def _outcome(status: Status, told: list[str], more: int, *, missing: int) -> str:
    rest = [f"and {more} more rounds that did not pass"] if more else []
    lines = [*told, *rest, *([f"{missing} not run"] if missing else [])]
    message = lines[0] if lines else status
    if status == "skipped":
        return f"<skipped message={_attribute(message)}/>\n"
    text = "\n".join(escape(visible(line, _MAX_TEXT_LENGTH)) for line in lines)
    return f"<{status} message={_attribute(message)}>{text}</{status}>\n"


def _attribute(text: str) -> str:
    """Return a quoted attribute. Characters that XML does not allow are escaped."""
    return quoteattr(visible(text, _MAX_TEXT_LENGTH))
