"""The MCP door: connects MCP suites to the commands that serve all doors."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from pydantic import JsonValue

from bakeoff.doors import Door, DoorResults, FinishedRun
from bakeoff.doors.mcp_suite.outcome import CellOutcome, Outcome
from bakeoff.doors.mcp_suite.plan import SCORER, Evaluation, evaluation_of, provider_options, run_options
from bakeoff.doors.mcp_suite.providers import importable
from bakeoff.engine.registry import Registry, default_registry
from bakeoff.models.providers import parse_model_name
from bakeoff.options import RunOptions
from bakeoff.plan import Plan, ScorerSpec, SubjectSpec
from bakeoff.protocols import Scorer, Subject
from bakeoff.subjects.variables import filled

if TYPE_CHECKING:
    from bakeoff.doors.mcp_suite.results.files import Written
    from bakeoff.doors.mcp_suite.scorer import Grader
    from bakeoff.report.blocks import Block, Section, Words
    from bakeoff.report.html.run_data import RunData


@dataclass(frozen=True, slots=True)
class McpResults(DoorResults):
    """The results of a suite, with its report for the report over several suites."""

    written: "Written" = field(kw_only=True)


class McpDoor(Door):
    """Models in three modes, the scorer of their calls, and the reports in `mcp-report/`."""

    def registry(self, plan: Plan, options: RunOptions) -> Registry:  # noqa: ARG002 - the shape of the seam
        evaluation = evaluation_of(plan)
        environment = evaluation.environment()
        registry = default_registry().with_scorer(SCORER, partial(_scorer, evaluation, environment))
        return registry.with_subject(f"mcp-{evaluation.config.mode}", partial(_subject, evaluation, environment))

    def options(self, plan: Plan, options: RunOptions) -> RunOptions:
        """Apply the limits of the suite, also when its run is resumed."""
        evaluation = evaluation_of(plan)
        config = evaluation.config
        return replace(
            run_options(config, options, evaluation.environment()), jobs=min(options.jobs, config.concurrencyLimit)
        )

    def share(self, plan: Plan) -> float:
        return evaluation_of(plan).config.threshold

    def sections(self, run: "RunData") -> Sequence["Section"]:
        from bakeoff.doors.mcp_suite.results.sections import mcp_sections

        return mcp_sections(run)

    def finish(self, run: FinishedRun) -> McpResults:
        """Write the reports of the suite. A cell passes by its share of rounds, the suite by its rule over cells."""
        from bakeoff.doors.mcp_suite.results.files import reported

        written = reported(run.folder, run.plan)
        text = tuple(_describe(written.outcome, run))
        return McpResults(written.files, written.outcome.state, text, written.report, written=written)


def _describe(outcome: Outcome, run: FinishedRun) -> "Iterator[Block]":
    """Yield the pass rates for the terminal, with one row for each case and one column for each model."""
    from bakeoff.report.blocks import Quote, Table, columns, paragraph
    from bakeoff.report.words import cost, percent, visible

    def rate(cell: CellOutcome) -> str:
        lost = f", {cell.rounds - cell.scored} lost" if cell.scored < cell.rounds else ""
        return f"{percent(cell.pass_rate)} ({cell.passed}/{cell.scored}{lost})"

    rows: list[tuple[Words, ...]] = [(Quote(case), *map(rate, cells)) for case, cells in outcome.by_case()]
    yield Table(columns("case", *(f"{visible(spec.name, 60)}>" for spec in run.plan.subjects)), tuple(rows))
    needed = "" if outcome.rule == "all" else f"; {percent(outcome.threshold)} of them must pass"
    used = run.summary.spent
    yield paragraph(
        f"{outcome.passed} of {len(outcome.cells)} cells passed at {percent(outcome.threshold)} of "
        f"{run.plan.rounds} rounds{needed}: {outcome.state}",
    )
    if used.tokens:
        yield paragraph(f"{used.tokens:,} tokens, {cost(used.cost)}")


def _subject(evaluation: Evaluation, environment: Mapping[str, str], spec: SubjectSpec) -> Subject:
    from bakeoff.doors.mcp_suite.subjects import SuiteModel  # the SDKs behind it take a second to load

    with importable(evaluation.folder):
        return SuiteModel.from_spec(_filled(spec, environment), evaluation.config.mode, evaluation, environment)


def _scorer(evaluation: Evaluation, environment: Mapping[str, str], spec: ScorerSpec) -> Scorer:
    from bakeoff.doors.mcp_suite.scorer import CallScorer, Execution
    from bakeoff.doors.mcp_suite.servers import hub_of

    config = evaluation.config
    executes = evaluation.executes and config.mode != "agent"
    hub = hub_of(config.mcpServers, environment) if executes else None
    execution = Execution(hub, config.serverScope == "trial") if hub is not None else None
    return CallScorer.from_spec(spec, evaluation.tools, execution, _grader(evaluation, environment))


def _grader(evaluation: Evaluation, environment: Mapping[str, str]) -> "Grader | None":
    from bakeoff.doors.mcp_suite.scorer import Grader
    from bakeoff.doors.mcp_suite.subjects import model_of

    config = evaluation.config
    if not evaluation.grades or config.judge is None:
        return None
    provider = parse_model_name(config.judge).provider
    added = {name: provider_options(given) for name, given in config.providers.items() if name.lower() == provider}
    options: dict[str, JsonValue] = {"model": config.judge, "temperature": 0, "max_tokens": 1024, "timeout": 60}
    spec = SubjectSpec(kind="model", name="judge", options={**options, **({"providers": added} if added else {})})
    with importable(evaluation.folder):
        return Grader(model_of(_filled(spec, environment), config, environment).access)


def _filled(spec: SubjectSpec, environment: Mapping[str, str]) -> SubjectSpec:
    """Return a spec with the secrets of its provider, which the plan does not hold."""
    if "providers" not in spec.options:
        return spec
    providers = filled(spec.options["providers"], environment)
    return spec.model_copy(update={"options": {**spec.options, "providers": providers}})
