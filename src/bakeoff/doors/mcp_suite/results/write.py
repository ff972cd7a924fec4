"""Writing the reports of one suite: `test-report-<time>.json`, `.md`, `.html`, and a log."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bakeoff.doors.mcp_suite.outcome import Outcome
from bakeoff.doors.mcp_suite.plan import suite_name
from bakeoff.doors.mcp_suite.results.build import Built, build_report
from bakeoff.doors.mcp_suite.results.model import Report
from bakeoff.doors.mcp_suite.results.text import describe, log_lines
from bakeoff.doors.mcp_suite.settings import evaluation_of
from bakeoff.errors import UsageError
from bakeoff.plan import Plan
from bakeoff.record import Record
from bakeoff.report.markdown import to_markdown
from bakeoff.report.whole_files import whole_file, whole_text
from bakeoff.storage.run_folder import RunFolder

_MOST_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Written:
    """A suite's report, and the files that hold it."""

    report: Report
    outcome: Outcome
    stamp: str  # by which its files are told from those of other runs
    files: tuple[Path, ...]

    @property
    def page(self) -> str:
        return f"test-report-{self.stamp}.html"


def write_reports(folder: RunFolder, plan: Plan) -> Iterator[Path]:
    yield from reported(folder, plan).files


def reported(folder: RunFolder, plan: Plan) -> Written:
    """Made from the run's records alone, so that a run which is taken up again replaces its own files."""
    built = build_report(plan, folder.latest_records(plan), folder.label, _began(folder))
    place = Path(evaluation_of(plan).report)
    stamp = own_stamp(place, built.report.timestamp.replace(":", "-"), built.report.bakeoff.run)
    return Written(built.report, built.outcome, stamp, tuple(_write(folder, plan, built, stamp)))


def _write(folder: RunFolder, plan: Plan, built: Built, stamp: str) -> Iterator[Path]:
    from bakeoff.doors.mcp_suite.sections import mcp_sections
    from bakeoff.report.html import write_run_page

    evaluation = evaluation_of(plan)
    place = Path(evaluation.report)
    stem = f"test-report-{stamp}"
    with whole_file(place / f"{stem}.json") as path:
        path.write_bytes(built.report.to_json())
    yield place / f"{stem}.json"
    with whole_text(place / f"{stem}.md") as file:
        file.write(to_markdown(describe(built.report)))
    yield place / f"{stem}.md"
    yield write_run_page(folder, place / f"{stem}.html", sections=mcp_sections)
    log = place / f"{_plain(suite_name(Path(evaluation.file)))}-{stamp}.log"
    with whole_text(log) as file:
        file.writelines(f"{line}\n" for line in log_lines(built.report))
    yield log


def own_stamp(place: Path, stamp: str, run: str) -> str:
    """The time; numbered where another run, which began in the same millisecond, has its reports there.

    The JSON file is made at once, so that two runs that end together do not both take the name.
    """
    for number in range(1, _MOST_AT_ONCE):
        taken = stamp if number == 1 else f"{stamp}-{number}"
        file = place / f"test-report-{taken}.json"
        try:
            place.mkdir(parents=True, exist_ok=True)
            with file.open("x") as made:
                json.dump({"bakeoff": {"run": run}}, made)
        except FileExistsError:
            if not _is_of(file, run):
                continue
        except OSError as error:
            raise UsageError(f"{file} cannot be written: {error.strerror}") from error
        return taken
    raise UsageError(f"{place} has {_MOST_AT_ONCE} reports of {stamp}: name another folder with --report")


def _is_of(file: Path, run: str) -> bool:
    try:
        told = json.loads(file.read_bytes())
        return bool(told["bakeoff"]["run"] == run)
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return False


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-") or "suite"


def _began(folder: RunFolder) -> float:
    time = folder.beginning().get("time")
    if isinstance(time, int | float):
        return float(time)
    return min((entry.started for entry in folder.entries() if isinstance(entry, Record)), default=0.0)
