"""A run as JUnit XML: a suite for each subject, a test case for each case.

A case passes by its rule in the plan, or else when all its rounds do. What the subject did wrong is a
`failure`, what our side did wrong (infra, grader) an `error`, what was not run or not paid for `skipped`. Scores are
properties. Controls have no suite, for theirs would be red by design; where a run has nothing else, their suites say
what they are.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TextIO
from xml.sax.saxutils import escape, quoteattr

from bakeoff.plan import Case, SubjectSpec
from bakeoff.record import Record, Verdict
from bakeoff.report.compare_cases import why
from bakeoff.report.outputs_shelf import Shelf
from bakeoff.report.words import visible

Status = Literal["passed", "failure", "error", "skipped"]

_LONGEST = 2000  # characters of an untrusted text
_MOST_ROUNDS = 20  # of a case that are told one by one
_FAILED = (Verdict.FAIL, Verdict.TIMEOUT)
_BROKEN = (Verdict.INFRA, Verdict.GRADER)
_HAPPY = (Verdict.PASS, Verdict.RECORDED)


def write_junit(name: str, shelf: Shelf, file: TextIO) -> None:
    """One case at a time; only their outcomes are counted beforehand."""
    write_junit_of_all(name, [("", shelf)], file)


def write_junit_of_all(name: str, shelves: Iterable[tuple[str, Shelf]], file: TextIO) -> None:
    """Several runs in one file, each with a text that its suites are told apart by."""
    file.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name={_attribute(name)}>\n')
    for prefix, shelf in shelves:
        for subject in shelf.judged:
            _write_suite(f"{prefix}{subject.name}", subject, shelf, file)
    file.write("</testsuites>\n")


def status_of(verdict: Verdict | None) -> Status:
    """Return JUnit's word for the verdict of a case. A round that is missing counts like one over the budget."""
    if verdict in _HAPPY:
        return "passed"
    if verdict in _FAILED:
        return "failure"
    return "error" if verdict in _BROKEN else "skipped"


def _write_suite(name: str, spec: SubjectSpec, shelf: Shelf, file: TextIO) -> None:
    subject = spec.name
    cases = shelf.cases_of(subject)
    statuses = [status_of(shelf.case_verdict(subject, case.id).verdict) for case in cases]
    counts = {
        "tests": len(statuses),
        "failures": statuses.count("failure"),
        "errors": statuses.count("error"),
        "skipped": statuses.count("skipped"),
    }
    numbers = " ".join(f'{key}="{count}"' for key, count in counts.items())
    file.write(f"<testsuite name={_attribute(name)} {numbers}>\n")
    if shelf.is_control(spec):
        file.write('<properties>\n<property name="control" value="it is there to test the cases"/>\n</properties>\n')
    for case, status in zip(cases, statuses, strict=True):
        file.writelines(_test_case(name, case, subject, status, shelf))
    file.write("</testsuite>\n")


def _test_case(suite: str, case: Case, subject: str, status: Status, shelf: Shelf) -> Iterator[str]:
    seconds = 0.0
    verdicts = shelf.verdicts(subject, case.id)
    rounds = len(verdicts) if shelf.plan.sparse else shelf.plan.rounds
    chosen = _worst_first(verdicts)[:_MOST_ROUNDS]
    told: dict[int, str] = {}
    properties: list[tuple[str, str]] = []
    for place, record in enumerate(shelf.rounds(subject, case.id)):
        seconds += record.seconds
        if place in chosen:
            properties += _properties(record, several=rounds > 1)
            if record.verdict not in _HAPPY:
                told[place] = _round_line(record)
    if (score := shelf.case_verdict(subject, case.id).score) is not None:
        properties.insert(0, ("score", f"{score:g}"))
    yield f'<testcase classname={_attribute(suite)} name={_attribute(case.id)} time="{seconds:.6f}">\n'
    if properties:
        lines = "".join(f"<property name={_attribute(key)} value={_attribute(value)}/>\n" for key, value in properties)
        yield f"<properties>\n{lines}</properties>\n"
    if status != "passed":
        more = sum(verdict not in _HAPPY for verdict in verdicts) - len(told)
        worst = [told[place] for place in chosen if place in told]
        yield _outcome(status, worst, more, missing=rounds - len(verdicts))
    yield "</testcase>\n"


def _worst_first(verdicts: Sequence[Verdict]) -> list[int]:
    """Places of rounds: what decides the outcome of their case comes before what does not."""
    ranks = {**dict.fromkeys(_FAILED, 0), **dict.fromkeys(_BROKEN, 1), Verdict.BUDGET: 2}
    return sorted(range(len(verdicts)), key=lambda place: ranks.get(verdicts[place], 3))


def _properties(record: Record, *, several: bool) -> Iterator[tuple[str, str]]:
    prefix = f"round {record.round + 1}: " if several else ""
    yield f"{prefix}verdict", str(record.verdict)
    for score in record.scores:
        yield f"{prefix}{score.name}", "unscored" if score.value is None else f"{score.value:g}"
    if (used := record.used.cost) is not None:
        yield f"{prefix}cost", f"{used:.6f}"


def _round_line(record: Record) -> str:
    reason = why(record)
    return f"round {record.round + 1}: {record.verdict}{': ' if reason else ''}{reason}"


def _outcome(status: Status, told: list[str], more: int, *, missing: int) -> str:
    rest = [f"and {more} more rounds that did not pass"] if more else []
    lines = [*told, *rest, *([f"{missing} not run"] if missing else [])]
    message = lines[0] if lines else status
    if status == "skipped":
        return f"<skipped message={_attribute(message)}/>\n"
    text = "\n".join(escape(visible(line, _LONGEST)) for line in lines)
    return f"<{status} message={_attribute(message)}>{text}</{status}>\n"


def _attribute(text: str) -> str:
    """Quoted; characters that XML has no place for are shown as escapes."""
    return quoteattr(visible(text, _LONGEST))
