"""Tell `bakeoff mcp evaluate --watch` which files to watch and which cells to ask again, and describe a cycle.

Every prompt contains all descriptions, so a carried-over result may be out of date if one changed.
It is marked as carried over, and an evaluation without `--watch` asks everything.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pydantic import JsonValue

from bakeoff._kernel.text import count_of, visible
from bakeoff.doors import Door, DoorResults, FinishedRun
from bakeoff.doors.mcp.door import McpDoor
from bakeoff.doors.mcp.outcome import CallOutcome, CellOutcome, outcome_of
from bakeoff.doors.mcp.plan import DOOR, mode_of, settings_of
from bakeoff.doors.mcp.results.report import failure_reason
from bakeoff.doors.mcp.results.sections import evidence_of, pass_rates, rate_of, reasons, verdict_sentence
from bakeoff.engine.reuse import NEW, KnownPart, past_runs, reusable_records, why_stale
from bakeoff.engine.watch import CODE_SUFFIXES, source_files
from bakeoff.errors import BakeoffError
from bakeoff.mcp import ServerSpec
from bakeoff.mcp.changes import ToolChange, changes
from bakeoff.mcp.snapshot import Snapshot
from bakeoff.mcp.tools import tool_label
from bakeoff.plan import Case, Plan
from bakeoff.record import Record
from bakeoff.report.blocks import Block, Quote, Table, Value, columns, paragraph
from bakeoff.report.formatting import UNKNOWN, points
from bakeoff.report.render.html.render import write_cycle
from bakeoff.report.render.html.run_page import write_run_page
from bakeoff.report.tools import listed_changes
from bakeoff.scorers.mcp.calls import SCORER, CaseExpectation
from bakeoff.storage.run_folder import FinishedRunFolder, RunFolder
from bakeoff.verdict import Verdict

CHANGED_TOOL = "changed tool"
MORE_ROUNDS = "more rounds"

_MAX_FILES = 5_000  # of one suite: a folder with more is not one of sources alone
_MAX_ROWS = 60
_MAX_REASON_LENGTH = 200
_WATCHED = (*CODE_SUFFIXES, ".json", ".md", ".txt", ".sql")  # servers may read their descriptions from data files

CellKey = tuple[str, str]
"""The case and the model of a cell."""


def suite_sources(folder: Path, servers: Sequence[ServerSpec], outputs: Sequence[Path]) -> set[str]:
    """Return the source files below the folder of a suite, and the files that the commands of its servers name.

    `outputs` are folders that evaluations write to.
    """
    top = folder.resolve()
    files = set(islice(source_files(top, _WATCHED, {str(output.resolve()) for output in outputs}), _MAX_FILES))
    for server in servers:
        for word in filter(None, (server.command, *server.args)):
            with suppress(OSError, ValueError):  # a word that no disk can have as a path
                path = top / (server.cwd or "") / word
                files |= {str(path.resolve())} if path.is_file() else set()
    return files


def newest_run(results: Path, file: str) -> RunFolder | None:
    """Return the newest run of a configuration that you started here, if there is one that can be read."""
    for run in past_runs(results, lambda plan: plan.door == DOOR and settings_of(plan).file == file)[:1]:
        with suppress(BakeoffError):  # a damaged run
            folder = FinishedRunFolder(run.path)
            list(folder.latest_records(folder.read_plan()))
            return folder
    return None


@dataclass(frozen=True, slots=True)
class Selection:
    """The trials of a cycle: those to ask, and those to carry over."""

    asked: Mapping[CellKey, str]  # with the reason
    carried: tuple[Record, ...] = ()  # with the keys of the new plan; those without a score are scored again
    changes: tuple[ToolChange, ...] = ()  # of the tools since the earlier run
    before: Mapping[CellKey, CellOutcome] | None = None  # None if there is no earlier run

    @property
    def cells_carried(self) -> int:
        """Return the number of cells whose results are all carried over."""
        return len({(record.case, record.subject) for record in self.carried} - self.asked.keys())

    @property
    def is_empty(self) -> bool:
        """Return True if nothing is asked or scored, and no change would be visible in a report."""
        return not self.asked and not self.changes and all(record.score_key for record in self.carried)

    def noted_in(self, plan: Plan) -> Plan:
        """Return the plan with a warning for reports that says how many results are carried over."""
        if not self.cells_carried:
            return plan
        carried = count_of(self.cells_carried, "cell")
        warning = f"{carried} carried over from earlier cycles of --watch: not asked with the present tools"
        settings = settings_of(plan)
        settings = settings.model_copy(update={"warnings": (*settings.warnings, warning)})
        return plan.model_copy(update={"settings": settings.model_dump(mode="json")})


def select(plan: Plan, earlier: RunFolder | None, *, anew: str | None = None) -> Selection:
    """Select the cells of a plan whose tools changed, that did not pass, or that are new.

    `anew` is a reason to select everything.
    """
    every = [(case, spec.name) for case in plan.cases for spec in plan.subjects]
    if earlier is None:
        return Selection({(case.id, model): NEW for case, model in every})
    known = earlier.read_plan()
    old, new = settings_of(known), settings_of(plan)
    before = {(cell.case, cell.model): cell for cell in outcome_of(known, earlier.latest_records(known), old).cells}
    found = changes(Snapshot.of_tools(old.tools), Snapshot.of_tools(new.tools))
    changed = {tool_label(each.server, name) for each in found for name in (each.name, each.renamed)}
    changed |= {tool.label for tool in old.tools} ^ {tool.label for tool in new.tools}
    adapted = _with_tools_hash(known, new.tools_hash)
    asked: dict[CellKey, str] = {}
    for case, model in every:
        then, now, cell = adapted.find(case.id, model, 0), plan.find(case.id, model, 0), before.get((case.id, model))
        has_changed_tool = not changed.isdisjoint(wanted_tools(case.expected))
        part = KnownPart(then.attempt_key, cell.state == "passed") if then and cell and cell.records else None
        reason = why_stale(now.attempt_key if now else "", part, anew or (CHANGED_TOOL if has_changed_tool else None))
        if reason is None and cell is not None and len(cell.records) < plan.rounds:
            reason = MORE_ROUNDS
        if reason is not None:
            asked[case.id, model] = reason
    again = {case.id for case in plan.cases if _executes_tools(case, plan)}
    carried = [
        record.model_copy(update={"score_key": ""}) if record.case in again else record
        for record in reusable_records([earlier], plan, lambda _: adapted)
        if asked.get((record.case, record.subject), MORE_ROUNDS) == MORE_ROUNDS
    ]
    return Selection(asked, tuple(carried), found, before)


def _executes_tools(case: Case, plan: Plan) -> bool:
    """Tell whether a scorer executes the tools of a case, whose code may have changed.

    Cases that a judge graded or agents executed are not run again, because that costs money.
    """
    expected = CaseExpectation.model_validate(case.expected)
    if mode_of(plan) == "agent" or expected.grading is not None:
        return False
    if expected.execute is not None:
        return expected.execute
    by_scorer = any(spec.options.get("execute") for spec in plan.scorers if spec.kind == SCORER)
    return expected.results is not None or by_scorer


def _with_tools_hash(plan: Plan, tools_hash: str) -> Plan:
    """Return an earlier plan with the present hash of the tools, because tools are compared one by one."""
    known = settings_of(plan).tools_hash
    models = (spec.model_copy(update={"revision": spec.revision.replace(known, tools_hash)}) for spec in plan.subjects)
    return plan.with_changes(subjects=tuple(models))


def wanted_tools(expected: JsonValue) -> Iterator[str]:
    """Yield the tools of all expected calls of a case, including alternatives and turns."""
    if isinstance(expected, list):
        for each in expected:
            yield from wanted_tools(each)
    elif isinstance(expected, dict):
        server, tool = expected.get("serverName"), expected.get("toolName")
        if isinstance(server, str) and isinstance(tool, str):
            yield tool_label(server, tool)
        else:
            for each in expected.values():
                yield from wanted_tools(each)


@dataclass(frozen=True, slots=True)
class CycleDoor(Door):
    """The door of a cycle, which prints its answers and cells, and writes the page of the watch."""

    selection: Selection
    page: Path
    cycle: int

    def line_of(self, record: Record) -> str | None:
        """Return a line about an answer, so that answers are shown before the cycle ends."""
        if (record.case, record.subject) not in self.selection.asked:
            return None
        passed = record.verdict is Verdict.PASS
        why = "" if passed else f": {visible(failure_reason(record) or '', _MAX_REASON_LENGTH)}"
        verdict = "passed" if passed else record.verdict.value
        return f"{verdict}  {visible(record.case, 80)}, {visible(record.subject, 60)}{why}"

    def finish(self, run: FinishedRun) -> DoorResults:
        """Write the page, and describe the cycle."""
        settings = settings_of(run.plan)
        outcome = outcome_of(run.plan, run.records(), settings)
        write_run_page(run.folder, self.page, parts=McpDoor(settings).page_parts, cycle=self.cycle)
        write_cycle(self.page, self.cycle)
        text = tuple(cycle_blocks(self.selection, outcome, run.plan.rounds))
        return DoorResults(evidence=evidence_of(outcome, settings.coverage, run.plan.rounds), text=text)


def cycle_blocks(selection: Selection, outcome: CallOutcome, rounds: int) -> Iterator[Block]:
    """Describe a cycle. Without an earlier run, all pass rates are shown."""
    before = selection.before
    yield from listed_changes(selection.changes)
    if before is None:
        yield pass_rates(outcome)
    else:
        rows: list[tuple[Value, ...]] = []
        for cell in outcome.cells:
            earlier, reason = before.get((cell.case, cell.model)), selection.asked.get((cell.case, cell.model))
            if reason is not None or earlier is None or earlier.pass_rate != cell.pass_rate:
                rates = rate_of(earlier, UNKNOWN), rate_of(cell, UNKNOWN)
                rows.append((Quote(cell.case), Quote(cell.model), reason or "scored again", *rates))
        if rows:
            titles = columns("case", "model", "asked because", "before>", "now>")
            yield Table(titles, tuple(rows), "Cells that were asked", text_rows=_MAX_ROWS)
    yield from reasons(outcome)
    yield paragraph(f"{outcome.state.capitalize()}: {verdict_sentence(outcome, rounds)}.")
    yield paragraph(_counts(selection, outcome))


def _counts(selection: Selection, outcome: CallOutcome) -> str:
    """Say how many cells were asked and carried over, and how their pass rates changed."""
    asked = f"{count_of(len(selection.asked), 'cell')} asked"
    carried = f", {selection.cells_carried:,} carried over" if selection.cells_carried else ""
    before = selection.before or {}
    differences = [
        cell.pass_rate - earlier.pass_rate
        for cell in outcome.cells
        if (earlier := before.get((cell.case, cell.model))) is not None
        and earlier.pass_rate is not None
        and cell.pass_rate is not None
    ]
    if not differences:
        return f"{asked}{carried}"
    won, lost = sum(each > 0 for each in differences), sum(each < 0 for each in differences)
    mean = points(sum(differences) / len(differences))
    return f"{asked}{carried}; {mean} points since the last cycle: {won} better, {lost} worse"
