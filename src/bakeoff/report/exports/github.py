"""Write what GitHub Actions shows: annotations, the summary page of a build, and logs without foreign commands.

Annotations are commands on stdout. Texts of subjects are encoded, so that they can neither end nor begin a command.
GitHub executes `::command::` at the start of a line and `##[command]` anywhere in it.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

from bakeoff._kernel.text import visible
from bakeoff.errors import UsageError
from bakeoff.record import Record
from bakeoff.report.blocks import Blocks
from bakeoff.report.reasons import why
from bakeoff.report.render.markdown import to_markdown
from bakeoff.report.run_records import RunRecords
from bakeoff.report.run_summary import failed_records
from bakeoff.verdict import LOST

MAX_ANNOTATIONS = 10
"""The number of annotations of each level. GitHub shows no more of one step."""

_LONGEST = 500
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
            yield _annotation(level, record, (places or {}).get(record.case))
    hidden = sum(max(0, count - MAX_ANNOTATIONS) for count in counts.values())
    if hidden:
        yield f"::notice title=bakeoff::{hidden} more trials did not pass; the summary and the run have them"


def write_step_summary(blocks: Blocks, stdout: TextIO, environment: Mapping[str, str] = os.environ) -> None:
    """Append a summary to the file that GitHub names, or else write it to stdout."""
    text = to_markdown(blocks, _MAX_SUMMARY_LENGTH)
    place = environment.get(SUMMARY_FILE)
    if not place:
        stdout.write(_no_old_command(text))
        return
    data = text.encode(errors="replace")
    if len(data) > _MAX_SUMMARY_LENGTH:
        data = data[:_MAX_SUMMARY_LENGTH].rsplit(b"\n", 1)[0] + b"\n\nCut: GitHub limits the length of a summary.\n"
    try:
        with Path(place).open("ab") as file:
            file.write(data)
    except OSError as error:
        raise UsageError(f"{SUMMARY_FILE}={place}: this file cannot be written: {error.strerror}") from error


def _annotation(level: str, record: Record, place: tuple[str, int] | None) -> str:
    title = f"{record.subject}: {record.case} (round {record.round + 1})"
    file, line = place or (None, None)
    return command(level, title, f"{record.verdict}: {why(record)}", file=file, line=line)


def command(level: str, title: str, text: str, *, file: str | None = None, line: int | None = None) -> str:
    """Return an annotation, at a line of a file if one is given."""
    places = {"file": file, "line": None if line is None else str(line), "title": title}
    properties = ",".join(f"{name}={_property(value)}" for name, value in places.items() if value is not None)
    return f"::{level} {properties}::{_data(text)}"


def _data(text: str) -> str:
    return _no_old_command(visible(text, _LONGEST)).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _no_old_command(text: str) -> str:
    """Break the old form of a command, which GitHub executes anywhere in a line."""
    return text.replace("##[", "## [")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def harmless_in_logs(text: str) -> str:
    """Return text with a mark before everything that GitHub would execute as a command."""
    marked = _COMMAND.sub(lambda blanks: f"{blanks.group(1)[:-1]}·", text)
    return marked.replace("##[", "##\\[")


def harmless_json(text: str) -> str:
    """Return the same JSON without commands. Its lines never begin with a colon."""
    return text.replace("##[", "#\\u0023[")
