"""Tell `bakeoff mcp evaluate --watch` which files to watch and which cells to ask again, and describe a cycle.

A description that changed is in the prompt of every case, so that a carried-over result may be out of date. It is shown
as carried over, and an evaluation without `--watch` asks everything.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Self

from pydantic import JsonValue

from bakeoff._kernel.text import count_of
from bakeoff.doors.mcp.outcome import CallOutcome, CellOutcome, outcome_of
from bakeoff.doors.mcp.plan import DOOR, McpPlanSettings, mode_of, settings_of
from bakeoff.doors.mcp.results.sections import pass_rates, rate_of, reasons, verdict_sentence
from bakeoff.engine.reuse import carry_over, past_runs
from bakeoff.engine.watch import CODE_SUFFIXES, source_files
from bakeoff.errors import BakeoffError
from bakeoff.mcp import ServerSpec
from bakeoff.mcp.changes import ToolChange, changes
from bakeoff.mcp.snapshot import Snapshot
from bakeoff.mcp.tools import tool_label
from bakeoff.plan import Case, Plan, SubjectSpec
from bakeoff.record import Record
from bakeoff.report.blocks import Block, Quote, Table, Value, columns, paragraph
from bakeoff.report.formatting import UNKNOWN, points
from bakeoff.report.tools import listed_changes
from bakeoff.scorers.mcp.calls import SCORER, CaseExpectation
from bakeoff.storage.run_folder import RunFolder

NEW = "new"
CHANGED_CASE = "changed case or model"
CHANGED_TOOL = "changed tool"
NOT_PASSED = "did not pass"
MORE_ROUNDS = "more rounds"

_MAX_FILES = 5_000  # of one suite: a folder with more is not one of sources alone
_MAX_ROWS = 60
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


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """The run whose results can be carried over."""

    folder: RunFolder
    plan: Plan
    records: tuple[Record, ...]

    @classmethod
    def of(cls, folder: RunFolder, plan: Plan) -> Self:
        """Read the records of a run."""
        return cls(folder, plan, tuple(folder.latest_records(plan)))

    @classmethod
    def newest(cls, results: Path, file: str) -> Self | None:
        """Return the newest run of a configuration that you started here, if there is one that can be read."""
        runs = past_runs(results, lambda plan: plan.door == DOOR and settings_of(plan).file == file)
        with suppress(BakeoffError):  # a damaged run
            return cls.of(runs[0], runs[0].read_plan()) if runs else None
        return None

    def cells(self) -> dict[CellKey, CellOutcome]:
        """Return the outcome of each case with each model."""
        found = outcome_of(self.plan, self.records, settings_of(self.plan))
        return {(cell.case, cell.model): cell for cell in found.cells}


@dataclass(frozen=True, slots=True)
class Selection:
    """The trials to ask in a cycle, and those to carry over."""

    asked: Mapping[CellKey, str]  # with the reason
    carried: tuple[Record, ...] = ()  # with the keys of the new plan; those without a score are scored again
    changes: tuple[ToolChange, ...] = ()  # of the tools since the earlier run
    before: Mapping[CellKey, CellOutcome] | None = None  # None if there is no earlier run

    @property
    def cells_carried(self) -> int:
        """Return the number of cells that are carried over whole."""
        return len({(record.case, record.subject) for record in self.carried} - self.asked.keys())

    @property
    def is_empty(self) -> bool:
        """Return True if nothing is asked or scored, and nothing changed that a report shows."""
        return not self.asked and not self.changes and all(record.score_key for record in self.carried)

    def noted_in(self, plan: Plan) -> Plan:
        """Return the plan with a warning that says how many results are carried over, for reports."""
        if not self.cells_carried:
            return plan
        carried = count_of(self.cells_carried, "cell")
        warning = f"{carried} carried over from earlier cycles of --watch: not asked with the present tools"
        settings = settings_of(plan)
        settings = settings.model_copy(update={"warnings": (*settings.warnings, warning)})
        return plan.model_copy(update={"settings": settings.model_dump(mode="json")})


def select(plan: Plan, earlier: EarlierRun | None, *, anew: str | None = None) -> Selection:
    """Select the cells of a plan whose tools changed, that did not pass, or that are new.

    `anew` is a reason to ask everything.
    """
    every = [(case, spec) for case in plan.cases for spec in plan.subjects]
    if earlier is None:
        return Selection({(case.id, spec.name): NEW for case, spec in every})
    compared = _ComparedPlans(plan, earlier)
    asked: dict[CellKey, str] = {}
    carried: list[Record] = []
    for case, spec in every:
        reason = anew or compared.reason(case, spec)
        if reason is not None:
            asked[case.id, spec.name] = reason
        if reason in (None, MORE_ROUNDS):
            carried += compared.carried(case, spec)
    return Selection(asked, tuple(carried), compared.changes, compared.before)


class _ComparedPlans:
    """A plan, and the earlier run that results can be carried over from."""

    def __init__(self, plan: Plan, earlier: EarlierRun) -> None:
        self._plan, self._earlier = plan, earlier
        known, settings = settings_of(earlier.plan), settings_of(plan)
        self.before = earlier.cells()
        self.changes = changes(Snapshot.of_tools(known.tools), Snapshot.of_tools(settings.tools))
        old, new = ({tool.label for tool in each.tools} for each in (known, settings))
        changed = {tool_label(each.server, name) for each in self.changes for name in (each.name, each.renamed)}
        self._changed_tools = changed | old ^ new
        self._cases = {case.id: case for case in earlier.plan.cases}
        self._models = {spec.name: _without_tools(spec, settings) for spec in plan.subjects}
        self._models_before = {spec.name: _without_tools(spec, known) for spec in earlier.plan.subjects}

    def reason(self, case: Case, spec: SubjectSpec) -> str | None:
        """Return why a cell is asked, or None if its results are carried over."""
        cell = self.before.get((case.id, spec.name))
        if cell is None or not cell.records:
            return NEW
        same_model = self._models[spec.name] == self._models_before[spec.name]
        same_case = case.attempt_digest == self._cases[case.id].attempt_digest
        if not (same_model and same_case and self._plan.seed == self._earlier.plan.seed):
            return CHANGED_CASE
        if not self._changed_tools.isdisjoint(wanted_tools(case.expected)):
            return CHANGED_TOOL
        if cell.state != "passed":
            return NOT_PASSED
        return MORE_ROUNDS if len(cell.records) < self._plan.rounds else None

    def carried(self, case: Case, spec: SubjectSpec) -> Iterator[Record]:
        """Yield the results of a cell for the new plan."""
        scored = self._is_scored(case)
        for record in self.before[case.id, spec.name].records:
            trial = self._plan.find(case.id, spec.name, record.round)
            if trial is not None and record.verdict.counts:
                yield carry_over(record, self._plan, trial, self._earlier.folder, scored=scored)

    def _is_scored(self, case: Case) -> bool:
        """Return False if expectations changed, or if tools are executed, whose code may have changed.

        What a judge graded, and what agents executed, is not paid for again.
        """
        plan, before = self._plan, self._earlier.plan
        same_rules = (plan.scorers, plan.threshold) == (before.scorers, before.threshold)
        if not same_rules or case.score_digest != self._cases[case.id].score_digest:
            return False
        expected = CaseExpectation.model_validate(case.expected)
        if mode_of(plan) == "agent" or expected.grading is not None:
            return True
        executes = expected.execute
        if executes is None:
            by_scorer = any(spec.options.get("execute") for spec in plan.scorers if spec.kind == SCORER)
            executes = expected.results is not None or by_scorer
        return not executes


def _without_tools(spec: SubjectSpec, settings: McpPlanSettings) -> SubjectSpec:
    """Return a model without the hash of the tools, which are compared one by one."""
    return spec.model_copy(update={"revision": spec.revision.replace(settings.tools_hash, "")})


def wanted_tools(expected: JsonValue) -> Iterator[str]:
    """Yield the tools of all calls that a case expects, wherever they stand: in alternatives and turns, too."""
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
    yield paragraph(f"{verdict_sentence(outcome, rounds)}: {outcome.state}")
    yield paragraph(_counts(selection, outcome))


def _counts(selection: Selection, outcome: CallOutcome) -> str:
    """Return how many cells were asked and carried over, and the mean difference of the pass rates that both have."""
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
