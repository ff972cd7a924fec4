"""The MCP door: what the commands that serve all doors ask of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from bakeoff.doors import Door, Ruling
from bakeoff.doors.mcp_suite.outcome import outcome_of
from bakeoff.doors.mcp_suite.plan import SCORER, Evaluation, evaluation_of, provider_options, run_options
from bakeoff.doors.mcp_suite.providers import importable
from bakeoff.engine.registry import Registry, default_registry
from bakeoff.models.names import parse_model_name
from bakeoff.options import RunOptions
from bakeoff.plan import Plan, ScorerSpec, SubjectSpec
from bakeoff.protocols import Scorer, Subject
from bakeoff.storage.run_folder import RunFolder
from bakeoff.subjects.variables import filled

if TYPE_CHECKING:
    from bakeoff.doors.mcp_suite.scorer import Grader
    from bakeoff.report.html.gather import RunData
    from bakeoff.report.sections import Section


class McpDoor(Door):
    """Models in three modes, the scorer of their calls, and the reports in `mcp-report/`."""

    def registry(self, plan: Plan, options: RunOptions) -> Registry:  # noqa: ARG002 - the shape of the seam
        evaluation = evaluation_of(plan)
        environment = evaluation.environment()
        registry = default_registry().with_scorer(SCORER, partial(_scorer, evaluation, environment))
        return registry.with_subject(f"mcp-{evaluation.config.mode}", partial(_subject, evaluation, environment))

    def options(self, plan: Plan, options: RunOptions) -> RunOptions:
        """The suite's limit holds whoever goes on with it, and whatever the usual number of jobs is."""
        evaluation = evaluation_of(plan)
        config = evaluation.config
        return replace(
            run_options(config, options, evaluation.environment()), jobs=min(options.jobs, config.concurrencyLimit)
        )

    def ruling(self, folder: RunFolder, plan: Plan) -> Ruling | None:
        """A cell passes at its share of rounds, and the suite by its rule over cells."""
        config = evaluation_of(plan).config
        return outcome_of(plan, folder.latest_records(plan), config.suiteRule, config.threshold).state

    def share(self, plan: Plan) -> float:
        return evaluation_of(plan).config.threshold

    def sections(self, run: "RunData") -> Sequence["Section"]:
        from bakeoff.doors.mcp_suite.results.sections import mcp_sections

        return mcp_sections(run)

    def export(self, folder: RunFolder, plan: Plan, options: RunOptions) -> Iterator[Path]:  # noqa: ARG002
        """The reports of a suite: JSON, Markdown, a page, and a log."""
        from bakeoff.doors.mcp_suite.results.files import write_reports

        yield from write_reports(folder, plan)


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
    """With what its provider is told in confidence, which the plan does not hold."""
    if "providers" not in spec.options:
        return spec
    providers = filled(spec.options["providers"], environment)
    return spec.model_copy(update={"options": {**spec.options, "providers": providers}})
