"""Write the outputs for continuous integration: GitHub annotations, the summary page of a build, JUnit, safe logs.

Annotations are commands on stdout. Texts of subjects are encoded, so that they can neither end nor begin a command.
GitHub executes `::command::` at the start of a line and `##[command]` anywhere in it.
"""

import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TextIO
from xml.sax.saxutils import escape, quoteattr

from bakeoff._kernel.files import os_errors_explained
from bakeoff._kernel.text import visible
from bakeoff.errors import UsageError
from bakeoff.plan import Case, Plan, SubjectSpec
from bakeoff.record import Record
from bakeoff.report.blocks import Blocks, paragraph
from bakeoff.report.formatting import sentence
from bakeoff.report.gates import GateDecision
from bakeoff.report.output_files import refuse_unwritable, replace_text
from bakeoff.report.reasons import why
from bakeoff.report.render.markdown import to_markdown
from bakeoff.report.run_records import RunRecords
from bakeoff.report.run_summary import describe_run, failed_records
from bakeoff.storage.ledger import Ledger, describe
from bakeoff.storage.run_folder import RunFolder
from bakeoff.verdict import LOST, Verdict

Status = Literal["passed", "failure", "error", "skipped"]

_MAX_XML_LENGTH = 2000  # characters of an untrusted text
_MAX_ROUNDS = 20  # of a case that are listed
_FAILED = (Verdict.FAIL, Verdict.TIMEOUT)
_BROKEN = (Verdict.INFRA, Verdict.GRADER)


def write_junit_of_all(name: str, runs: Iterable[tuple[str, GateDecision | None, RunRecords]], file: TextIO) -> None:
    """Write runs to one file. Each has a prefix for the names of its suites, and maybe a gate."""
    file.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name={_attribute(name)}>\n')
    for prefix, gate, records in runs:
        for subject in records.judged:
            _write_suite(f"{prefix}{subject.name}", subject, records, str(gate or ""), file)
        if gate is not None:
            _write_gate(f"{prefix}gate", gate, file)
    file.write("</testsuites>\n")


def _write_gate(name: str, gate: GateDecision, file: TextIO) -> None:
    """Write the gate as a test case, for programs that read only tests."""
    failed = int(not gate.passed)
    file.write(f'<testsuite name={_attribute(name)} tests="1" failures="{failed}" errors="0" skipped="0">\n')
    file.write(f'<testcase classname={_attribute(name)} name="gate" time="0">\n')
    file.write(f"<failure message={_attribute(str(gate))}/>\n" * failed)
    file.write("</testcase>\n</testsuite>\n")


def status_of(verdict: Verdict | None) -> Status:
    """Return JUnit's word for a verdict; missing cases and those over budget are skipped."""
    if verdict is not None and verdict.ok:
        return "passed"
    if verdict in _FAILED:
        return "failure"
    return "error" if verdict in _BROKEN else "skipped"


def _write_suite(name: str, spec: SubjectSpec, records: RunRecords, gate: str, file: TextIO) -> None:
    subject = spec.name
    cases = records.cases_of(subject)
    statuses = [status_of(records.case_verdict(subject, case.id).verdict) for case in cases]
    kinds: dict[str, Status] = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    counts = "".join(f' {key}="{statuses.count(status)}"' for key, status in kinds.items())
    file.write(f'<testsuite name={_attribute(name)} tests="{len(statuses)}"{counts}>\n')
    file.write(_property_lines(_suite_properties(spec, records, gate)))
    for case, status in zip(cases, statuses, strict=True):
        file.writelines(_test_case(name, case, subject, status, records))
    file.write("</testsuite>\n")


def _suite_properties(spec: SubjectSpec, records: RunRecords, gate: str) -> Iterator[tuple[str, str]]:
    """Yield the decision of the gate, and the subject's ledger: what was planned, passed, failed or is missing."""
    if gate:
        yield "gate", gate
    if records.is_control(spec):
        yield "control", "tests the cases"
    ledger = next(one.ledger for one in records.summary.subjects if one.subject == spec.name)
    yield "ledger", describe(ledger, "trial")
    yield "planned", str(ledger.planned)
    yield from ((kind, str(count)) for kind, count in ledger.missing.items())


def _property_lines(properties: Iterable[tuple[str, str]]) -> str:
    lines = "".join(f"<property name={_attribute(key)} value={_attribute(value)}/>\n" for key, value in properties)
    return f"<properties>\n{lines}</properties>\n"


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
        yield _property_lines(properties)
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
    text = "\n".join(escape(visible(line, _MAX_XML_LENGTH)) for line in lines)
    return f"<{status} message={_attribute(message)}>{text}</{status}>\n"


def _attribute(text: str) -> str:
    """Return a quoted attribute. Characters that XML does not allow are escaped."""
    return quoteattr(visible(text, _MAX_XML_LENGTH))


MAX_ANNOTATIONS = 10
"""The largest number of annotations of each level; GitHub shows no more per step."""

_MAX_TEXT_LENGTH = 500
_COMMAND = re.compile(r"^([ \t]*)(?=::)", re.MULTILINE)
_MAX_SUMMARY_LENGTH = 1_000_000  # bytes; GitHub refuses more than 1 MiB
SUMMARY_FILE = "GITHUB_STEP_SUMMARY"
OUTPUT_FILE = "GITHUB_OUTPUT"


def annotations(records: RunRecords, places: Mapping[str, tuple[str, int]] | None = None) -> Iterator[str]:
    """Yield an error for each failed trial, a warning for each lost one, and a notice about the rest.

    Cases that pass are left out even if some of their rounds failed, and so are controls, unless there are no other
    subjects. `places` has the file and line of cases, by name.
    """
    counts: Counter[str] = Counter()
    for record in failed_records(records):
        level = "warning" if record.verdict in LOST else "error"
        counts[level] += 1
        if counts[level] <= MAX_ANNOTATIONS:
            title = f"{record.subject}: {record.case} (round {record.round + 1})"
            file, line = (places or {}).get(record.case, (None, None))
            yield command(level, title, f"{record.verdict}: {why(record)}", file=file, line=line)
    hidden = sum(max(0, count - MAX_ANNOTATIONS) for count in counts.values())
    if hidden:
        yield f"::notice title=bakeoff::{hidden} more trials did not pass; the summary and the run have them"


def write_step_summary(blocks: Blocks, stdout: TextIO, environment: Mapping[str, str] = os.environ) -> None:
    """Append a summary to the file that GitHub names in the environment, or else write it to stdout.

    Raises `UsageError` if that file cannot be written.
    """
    text = to_markdown(blocks, _MAX_SUMMARY_LENGTH)
    place = environment.get(SUMMARY_FILE)
    if not place:
        stdout.write(_no_old_command(text))
        return
    data = text.encode(errors="replace")
    if len(data) > _MAX_SUMMARY_LENGTH:
        data = data[:_MAX_SUMMARY_LENGTH].rsplit(b"\n", 1)[0] + b"\n\nCut: GitHub limits the length of a summary.\n"
    what = f"{SUMMARY_FILE}={place}: this file"
    with os_errors_explained(what, "written", kind=UsageError), Path(place).open("ab") as file:
        file.write(data)


def write_step_outputs(gate: str, lowest: float | None, environment: Mapping[str, str] = os.environ) -> None:
    """Append the outputs `gate` and `lowest-score` of a step to the file that GitHub names, if there is one.

    Raises `UsageError` if that file cannot be written.
    """
    if not (place := environment.get(OUTPUT_FILE)):
        return
    score = "" if lowest is None else f"{lowest:.4f}"
    what = f"{OUTPUT_FILE}={place}: this file"
    with os_errors_explained(what, "written", kind=UsageError), Path(place).open("a", encoding="utf-8") as file:
        file.write(f"gate={visible(gate, _MAX_TEXT_LENGTH)}\nlowest-score={score}\n")


def command(level: str, title: str, text: str, *, file: str | None = None, line: int | None = None) -> str:
    """Return an annotation, at a line of a file if one is given."""
    places = {"file": file, "line": None if line is None else str(line), "title": title}
    given = {name: _data(value) for name, value in places.items() if value is not None}
    properties = (f"{name}={value.replace(':', '%3A').replace(',', '%2C')}" for name, value in given.items())
    return f"::{level} {','.join(properties)}::{_data(text)}"


def _data(text: str) -> str:
    shown = _no_old_command(visible(text, _MAX_TEXT_LENGTH))
    return shown.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _no_old_command(text: str) -> str:
    """Break commands in the old form, which GitHub executes anywhere in a line."""
    return text.replace("##[", "## [")


def harmless_in_logs(text: str) -> str:
    """Return text with a mark before everything that GitHub would execute as a command."""
    marked = _COMMAND.sub(lambda blanks: f"{blanks.group(1)[:-1]}·", text)
    return marked.replace("##[", "##\\[")


def harmless_json(text: str) -> str:
    """Return the same JSON without commands. Its lines never begin with a colon."""
    return text.replace("##[", "#\\u0023[")


@dataclass(frozen=True, slots=True)
class CiOutputs:
    """The requested outputs. Create them before a run starts, so that unwritable files are refused in time."""

    junit: Path | None = None
    github: bool = False

    def __post_init__(self) -> None:
        if self.junit is not None:
            refuse_unwritable("--junit", self.junit)

    def __bool__(self) -> bool:
        return bool(self.junit or self.github)


@dataclass(frozen=True, slots=True)
class CiRun:
    """A finished run."""

    folder: RunFolder
    plan: Plan
    places: Mapping[str, tuple[str, int]] = field(default_factory=dict)  # file and line of cases, by name
    gate: GateDecision | None = None

    def records(self) -> RunRecords:
        """Read each trial's latest record into a temporary file, which `with` closes."""
        return RunRecords(self.plan, self.folder.latest_records(self.plan))


def with_gate(name: str, records: RunRecords, ledger: Ledger, gate: GateDecision | None) -> Blocks:
    """Return the decision of the gate, the summary of a run, and its ledger."""
    planned = paragraph(sentence(describe(ledger, "trial")))
    return (*((paragraph(str(gate)),) if gate else ()), *describe_run(name, records), planned)


def _with_gates(found: Iterable[tuple[CiRun, RunRecords]]) -> Blocks:
    return [
        block
        for run, records in found
        for block in with_gate(run.folder.name, records, records.summary.ledger, run.gate)
    ]


def markdown_of(runs: Sequence[CiRun]) -> str:
    """Return the summaries of runs as Markdown, such as for a pull request."""
    with ExitStack() as stack:
        found = [(run, stack.enter_context(run.records())) for run in runs]
        return to_markdown(_with_gates(found))


def write_ci_outputs(
    runs: Sequence[CiRun],
    outputs: CiOutputs,
    stream: TextIO | None = None,
    environment: Mapping[str, str] = os.environ,
) -> tuple[Path, ...]:
    """Write the outputs and return their paths. Annotations go to stderr, because stdout may have to be JSON."""
    if not outputs or not runs:
        return ()
    stream = stream or sys.stderr
    with ExitStack() as stack:
        found = [(run, stack.enter_context(run.records())) for run in runs]
        if outputs.junit:
            several = len(runs) > 1
            prefixed = [(f"{run.plan.name}: " if several else "", run.gate, records) for run, records in found]
            with replace_text(outputs.junit) as file:
                write_junit_of_all("bakeoff" if several else runs[0].folder.name, prefixed, file)
        if outputs.github:
            scores = [one.score for _, records in found for one in records.summary.judged if one.score is not None]
            gates = " ".join(str(run.gate) for run in runs if run.gate)
            write_step_outputs(gates, min(scores, default=None), environment)
            stream.writelines(f"{line}\n" for run, records in found for line in annotations(records, run.places))
            write_step_summary(_with_gates(found), stream, environment)
    return (outputs.junit,) if outputs.junit else ()
