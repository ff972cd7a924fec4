"""What GitHub Actions shows of a run: annotations on the build, and its summary page.

Annotations are commands on stdout. Whatever a subject said is encoded: it can neither end a command nor begin one.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

from bakeoff.errors import UsageError
from bakeoff.record import LOST, Record
from bakeoff.report.compare_cases import why
from bakeoff.report.markdown import to_markdown
from bakeoff.report.outputs import Blocks
from bakeoff.report.outputs_shelf import Shelf
from bakeoff.report.outputs_summary import unhappy_records
from bakeoff.report.words import visible

MOST_ANNOTATIONS = 10
"""Of each level: GitHub shows no more of one step."""

_LONGEST = 500
_LONGEST_SUMMARY = 1_000_000  # bytes; GitHub refuses more than 1 MiB
SUMMARY_FILE = "GITHUB_STEP_SUMMARY"


def annotations(shelf: Shelf) -> Iterator[str]:
    """An error for each trial that failed, a warning for each that was lost, and a notice about the rest.

    A case that passes is left out, whatever became of some of its rounds.
    Controls are left out where there is anything else: that `nop` fails is no news.
    """
    counts: Counter[str] = Counter()
    for record in unhappy_records(shelf):
        level = "warning" if record.verdict in LOST else "error"
        counts[level] += 1
        if counts[level] <= MOST_ANNOTATIONS:
            yield _annotation(level, record)
    hidden = sum(max(0, count - MOST_ANNOTATIONS) for count in counts.values())
    if hidden:
        yield f"::notice title=bakeoff::{hidden} more trials did not pass; the summary and the run have them"


def write_step_summary(blocks: Blocks, stdout: TextIO, environment: Mapping[str, str] = os.environ) -> None:
    """To the file that GitHub names, or else to stdout."""
    text = to_markdown(blocks, _LONGEST_SUMMARY)
    place = environment.get(SUMMARY_FILE)
    if not place:
        stdout.write(_no_old_command(text))
        return
    data = text.encode(errors="replace")
    if len(data) > _LONGEST_SUMMARY:
        data = data[:_LONGEST_SUMMARY].rsplit(b"\n", 1)[0] + b"\n\nCut: GitHub takes no longer summary.\n"
    try:
        with Path(place).open("ab") as file:
            file.write(data)
    except OSError as error:
        raise UsageError(f"{SUMMARY_FILE}={place}: it cannot be written: {error.strerror}") from error


def _annotation(level: str, record: Record) -> str:
    title = f"{record.subject}: {record.case} (round {record.round + 1})"
    return command(level, title, f"{record.verdict}: {why(record)}")


def command(level: str, title: str, text: str, *, file: str | None = None, line: int | None = None) -> str:
    """An annotation, on a line of a file where it has one."""
    places = {"file": file, "line": None if line is None else str(line), "title": title}
    properties = ",".join(f"{name}={_property(value)}" for name, value in places.items() if value is not None)
    return f"::{level} {properties}::{_data(text)}"


def _data(text: str) -> str:
    return _no_old_command(visible(text, _LONGEST)).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _no_old_command(text: str) -> str:
    """The old form of a command is heard anywhere in a line of stdout."""
    return text.replace("##[", "## [")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
