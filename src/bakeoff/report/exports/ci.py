"""Write the outputs for continuous integration: GitHub annotations, the summary page of a build, JUnit, safe logs.

Annotations are commands on stdout. Texts of subjects are encoded, so that they can neither end nor begin a command.
GitHub executes `::command::` at the start of a line and `##[command]` anywhere in it.
"""

import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from bakeoff._kernel.files import os_errors_explained
from bakeoff._kernel.text import visible
from bakeoff.errors import UsageError
from bakeoff.plan import Plan
from bakeoff.report.blocks import Blocks
from bakeoff.report.exports.junit import write_junit_of_all
from bakeoff.report.output_files import refuse_unwritable, replace_text
from bakeoff.report.reasons import why
from bakeoff.report.render.markdown import to_markdown
from bakeoff.report.run_records import RunRecords
from bakeoff.report.run_summary import describe_run, failed_records
from bakeoff.storage.run_folder import RunFolder
from bakeoff.verdict import LOST

MAX_ANNOTATIONS = 10
"""The number of annotations of each level. GitHub shows no more of one step."""

_MAX_TEXT_LENGTH = 500
_COMMAND = re.compile(r"^([ \t]*)(?=::)", re.MULTILINE)
_MAX_SUMMARY_LENGTH = 1_000_000  # bytes; GitHub refuses more than 1 MiB
SUMMARY_FILE = "GITHUB_STEP_SUMMARY"


def annotations(records: RunRecords, places: Mapping[str, tuple[str, int]] | None = None) -> Iterator[str]:
    """Yield an error for each failed trial, a warning for each lost one, and a notice about the rest.

    Cases that pass are left out, also if some of their rounds did not. So are controls, unless there is nothing else.
    `places` has the file and line of cases, by name.
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


def command(level: str, title: str, text: str, *, file: str | None = None, line: int | None = None) -> str:
    """Return an annotation, at a line of a file if one is given."""
    places = {"file": file, "line": None if line is None else str(line), "title": title}
    given = {name: _data(value) for name, value in places.items() if value is not None}
    properties = (f"{name}={value.replace(':', '%3A').replace(',', '%2C')}" for name, value in given.items())
    return f"::{level} {','.join(properties)}::{_data(text)}"


def _data(text: str) -> str:
    return (
        _no_old_command(visible(text, _MAX_TEXT_LENGTH)).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    )


def _no_old_command(text: str) -> str:
    """Break the old form of a command, which GitHub executes anywhere in a line."""
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
    """The outputs that were asked for. Created before a run starts, so that unwritable files are refused in time."""

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

    def records(self) -> RunRecords:
        """Read the records that count into a temporary file; close it with `with`."""
        return RunRecords(self.plan, self.folder.latest_records(self.plan))


def markdown_of(runs: Sequence[CiRun]) -> str:
    """Return the summaries of runs as Markdown, such as for a pull request."""
    with ExitStack() as stack:
        found = [(run.folder.name, stack.enter_context(run.records())) for run in runs]
        return to_markdown([block for name, records in found for block in describe_run(name, records)])


def write_ci_outputs(
    runs: Sequence[CiRun],
    outputs: CiOutputs,
    stream: TextIO | None = None,
    environment: Mapping[str, str] = os.environ,
) -> tuple[Path, ...]:
    """Write the outputs and return their paths. GitHub also reads stderr, and stdout may have to be JSON."""
    if not outputs or not runs:
        return ()
    with ExitStack() as stack:
        found = [(run.folder.name, stack.enter_context(run.records())) for run in runs]
        places = {run.folder.name: run.places for run in runs}
        return tuple(_written(found, places, outputs, stream or sys.stderr, environment))


def _written(
    runs: Sequence[tuple[str, RunRecords]],
    places: Mapping[str, Mapping[str, tuple[str, int]]],
    outputs: CiOutputs,
    stream: TextIO,
    environment: Mapping[str, str],
) -> Iterator[Path]:
    if outputs.junit:
        several = len(runs) > 1
        prefixed = [(f"{records.plan.name}: " if several else "", records) for _, records in runs]
        with replace_text(outputs.junit) as file:
            write_junit_of_all("bakeoff" if several else runs[0][0], prefixed, file)
        yield outputs.junit
    if outputs.github:
        blocks = [block for name, records in runs for block in describe_run(name, records)]
        stream.writelines(f"{line}\n" for name, records in runs for line in annotations(records, places[name]))
        write_step_summary(blocks, stream, environment)
