"""Choose the cells to ask again after a change of a server or its configuration, and carry over the results of others.

A description that changed is in the prompt of every case, so that a carried-over result may be out of date. It is shown
as carried over, and an evaluation without `--watch` asks everything.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import JsonValue

from bakeoff._kernel.text import count_of
from bakeoff.doors.mcp.outcome import CellOutcome, outcome_of
from bakeoff.doors.mcp.plan import McpPlanSettings, mode_of, settings_of
from bakeoff.doors.mcp.runs import newest_run
from bakeoff.errors import BakeoffError
from bakeoff.mcp.changes import ToolChange, changes
from bakeoff.mcp.snapshot import Snapshot
from bakeoff.mcp.tools import tool_label
from bakeoff.plan import Case, Plan, SubjectSpec
from bakeoff.record import NO_USAGE, Record
from bakeoff.scorers.mcp.calls import SCORER, ExpectedMcpCall
from bakeoff.storage.run_folder import RunFolder

NEW = "new"
CHANGED_CASE = "changed case or model"
CHANGED_TOOL = "changed tool"
NOT_PASSED = "did not pass"
MORE_ROUNDS = "more rounds"
CARRIED = "carried_over"
"""The key of the run that a result was carried over from, in the metadata of its transcript."""

CellKey = tuple[str, str]
"""The case and the model of a cell."""


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """The run whose results can be carried over."""

    folder: RunFolder
    plan: Plan
    records: tuple[Record, ...]

    @classmethod
    def of(cls, folder: RunFolder, plan: Plan) -> Self:
        return cls(folder, plan, tuple(folder.latest_records(plan)))

    @classmethod
    def newest(cls, results: Path, file: str) -> Self | None:
        """Return the newest run of a configuration, if there is one that can be read."""
        folder = newest_run(results, file)
        try:
            return cls.of(folder, folder.read_plan()) if folder is not None else None
        except BakeoffError:  # a damaged run
            return None

    def cells(self) -> dict[CellKey, CellOutcome]:
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
    compared = _SelectionRule.of(plan, earlier)
    asked: dict[CellKey, str] = {}
    carried: list[Record] = []
    for case, spec in every:
        reason = anew or compared.reason(case, spec)
        if reason is not None:
            asked[case.id, spec.name] = reason
        if reason in (None, MORE_ROUNDS):
            carried += compared.carried(case, spec)
    return Selection(asked, tuple(carried), compared.changes, compared.before)


@dataclass(frozen=True, slots=True)
class _SelectionRule:
    plan: Plan
    earlier: EarlierRun
    changes: tuple[ToolChange, ...]
    changed_tools: frozenset[str]
    before: Mapping[CellKey, CellOutcome]
    cases: Mapping[str, Case]
    models: Mapping[str, SubjectSpec]
    models_before: Mapping[str, SubjectSpec]

    @classmethod
    def of(cls, plan: Plan, earlier: EarlierRun) -> "_SelectionRule":
        known, settings = settings_of(earlier.plan), settings_of(plan)
        found = changes(Snapshot.of_tools(known.tools), Snapshot.of_tools(settings.tools))
        old, new = ({tool.label for tool in each.tools} for each in (known, settings))
        changed = {tool_label(each.server, name) for each in found for name in (each.name, each.renamed)}
        return cls(
            plan,
            earlier,
            found,
            frozenset(changed | old ^ new),
            earlier.cells(),
            {case.id: case for case in earlier.plan.cases},
            {spec.name: _without_tools(spec, settings) for spec in plan.subjects},
            {spec.name: _without_tools(spec, known) for spec in earlier.plan.subjects},
        )

    def reason(self, case: Case, spec: SubjectSpec) -> str | None:
        """Return why a cell is asked, or None if its results are carried over."""
        cell = self.before.get((case.id, spec.name))
        if cell is None or not cell.records:
            return NEW
        same_model = (
            self.models[spec.name] == self.models_before[spec.name] and self.plan.seed == self.earlier.plan.seed
        )
        if not same_model or case.attempt_digest != self.cases[case.id].attempt_digest:
            return CHANGED_CASE
        if not self.changed_tools.isdisjoint(wanted_tools(case.expected)):
            return CHANGED_TOOL
        if cell.state != "passed":
            return NOT_PASSED
        return MORE_ROUNDS if len(cell.records) < self.plan.rounds else None

    def carried(self, case: Case, spec: SubjectSpec) -> Iterator[Record]:
        """Yield the results of a cell with the keys of the new plan. They cost nothing again."""
        scored = self._is_scored(case)
        for record in self.before[case.id, spec.name].records:
            trial = self.plan.find(case.id, spec.name, record.round)
            if trial is None or not record.verdict.counts:
                continue
            transcript = record.transcript
            if transcript is not None and CARRIED not in transcript.metadata:
                metadata = {**transcript.metadata, CARRIED: self.earlier.folder.label}
                transcript = transcript.model_copy(update={"metadata": metadata})
            yield record.model_copy(
                update={
                    "attempt_key": trial.attempt_key,
                    "score_key": trial.score_key if scored else "",
                    "transcript": transcript,
                    "spent": NO_USAGE,
                    "judging": NO_USAGE,
                }
            )

    def _is_scored(self, case: Case) -> bool:
        """Return False if expectations changed, or if tools are executed, whose code may have changed.

        What a judge graded, and what agents executed, is not paid for again.
        """
        before = self.earlier.plan
        same_rules = (self.plan.scorers, self.plan.threshold) == (before.scorers, before.threshold)
        if not same_rules or case.score_digest != self.cases[case.id].score_digest:
            return False
        expected = ExpectedMcpCall.model_validate(case.expected)
        return mode_of(self.plan) == "agent" or expected.grading is not None or not _executes(self.plan, expected)


def _executes(plan: Plan, expected: ExpectedMcpCall) -> bool:
    if expected.execute is not None:
        return expected.execute
    return expected.results is not None or any(
        spec.options.get("execute") for spec in plan.scorers if spec.kind == SCORER
    )


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
