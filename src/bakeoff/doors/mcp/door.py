"""Connect MCP suites to the commands that serve all doors."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff._kernel.imports import importable
from bakeoff.doors import Door, FinishedRun
from bakeoff.doors.mcp.plan import KIND, McpPlanSettings, environment_of, settings_of
from bakeoff.engine.registry import Registry, ScorerFactory, default_registry
from bakeoff.options import RunOptions
from bakeoff.plan import Plan, ScorerSpec
from bakeoff.protocols import Scorer
from bakeoff.scorers.mcp.calls import SCORER
from bakeoff.storage.redaction import secrets_in

if TYPE_CHECKING:
    from bakeoff.doors.mcp.results.files import McpResults
    from bakeoff.mcp import McpHub
    from bakeoff.report.blocks import DoorParts
    from bakeoff.report.render.html.run_data import RunData


class McpDoor(Door):
    """The MCP door: models in three modes, a scorer of their calls, and reports in `mcp-report/`.

    Each object serves one plan. Its settings and environment are read from the plan unless given.
    `running` are the servers if they already run.
    """

    def __init__(
        self,
        settings: McpPlanSettings | None = None,
        environment: Mapping[str, str] | None = None,
        running: "McpHub | None" = None,
    ) -> None:
        self._settings, self._environment, self._running = settings, environment, running

    def registry(self, plan: Plan, options: RunOptions) -> Registry:  # noqa: ARG002 - the signature of all doors
        """Return the usual registry with the plan's models, and with its servers and judges.

        Servers that already run are used.
        """
        # Imported here, because the SDKs take a second to load.
        from bakeoff.doors.mcp.subjects import SuiteModel, suite_parts
        from bakeoff.scorers.mcp.scorer import McpCalls

        given = plan, self.settings_of(plan), self.environment_of(plan), self._running

        def calls_scorer(spec: ScorerSpec) -> McpCalls:
            scorer = McpCalls.from_spec(spec)
            return replace(scorer, suite=suite_parts(scorer, *given))

        def beside_the_file(build: ScorerFactory) -> ScorerFactory:
            def built(spec: ScorerSpec) -> Scorer:
                with importable(given[1].folder):
                    return build(spec)

            return built

        usual = default_registry()
        scorers = {kind: beside_the_file(build) for kind, build in usual.scorers.items()}
        registry = replace(usual, scorers=scorers).with_scorer(SCORER, calls_scorer)
        for kind in {spec.kind for spec in plan.subjects if spec.kind.startswith(KIND)}:
            registry = registry.with_subject(kind, lambda spec: SuiteModel.from_spec(spec, *given))
        return registry

    def options(self, plan: Plan, options: RunOptions) -> RunOptions:
        """Apply the limits and retries of the suite, and the secrets of its folder, even when its run is resumed."""
        from bakeoff.doors.mcp.servers import values_of_arguments

        settings, environment = self.settings_of(plan), self.environment_of(plan)
        secrets = {**values_of_arguments(settings.servers, environment, plan), **secrets_in(environment)}
        retry = settings.retryConfig
        return replace(
            options,
            secrets={**secrets, **options.secrets},
            jobs=min(options.jobs, settings.concurrencyLimit),
            retries=max(1, retry.maxRetries),  # at least one, for the rounds of a server that died and was restarted
            backoff_seconds=retry.baseDelay / 1000,
            longest_backoff_seconds=retry.maxDelay / 1000,
        )

    def page_parts(self, run: "RunData") -> "DoorParts":
        """Return the sections that this door adds to a run page; none without a run folder."""
        from bakeoff.doors.mcp.outcome import confusions, outcome_of
        from bakeoff.doors.mcp.results.sections import page_parts
        from bakeoff.doors.mcp.runs import compare_with_run_before
        from bakeoff.report.blocks import DoorParts

        if run.folder is None:
            return DoorParts()
        settings = self.settings_of(run.plan)
        records = list(run.folder.latest_records(run.plan))
        outcome, found = outcome_of(run.plan, records, settings), confusions(run.plan, records)
        return page_parts(run.plan, settings, outcome, found, compare_with_run_before(run.folder, run.plan))

    def finish(self, run: FinishedRun) -> "McpResults":
        """Write the reports of the suite. A cell passes by its share of rounds, the suite by its rule for cells."""
        from bakeoff.doors.mcp.results import sections
        from bakeoff.doors.mcp.results.files import write_reports
        from bakeoff.doors.mcp.results.report import cost_of
        from bakeoff.report.blocks import paragraph
        from bakeoff.report.run_summary import pass_k_notes

        written = write_reports(run.folder, run.plan, self.settings_of(run.plan), run.records())
        outcome, added = written.outcome, written.report.bakeoff
        blocks = [
            *sections.rate_tables(outcome),
            paragraph(f"{outcome.state.capitalize()}: {sections.verdict_sentence(outcome, run.plan.rounds)}."),
            *map(paragraph, pass_k_notes(run.summary)),
            *sections.reasons(outcome),
            *(sections.coverage_blocks(added.coverage) if added.coverage is not None else ()),
        ]
        if used := run.summary.spent.tokens:
            counted = [one for one in added.models if one.usage.tokens]
            blocks.append(paragraph(f"{used:,} tokens, cost: {cost_of(counted)}"))
        return replace(written, text=tuple(blocks))

    def places(self, plan: Plan) -> Mapping[str, tuple[str, int]]:
        """Return file and line of each case, or none if the file is gone or can no longer be read."""
        from bakeoff.doors.mcp.suites import case_places

        return case_places(Path(self.settings_of(plan).file))

    def settings_of(self, plan: Plan) -> McpPlanSettings:
        """Return the settings of the plan. They are read once."""
        if self._settings is None:
            self._settings = settings_of(plan)
        return self._settings

    def environment_of(self, plan: Plan) -> Mapping[str, str]:
        """Return the variables and secrets of the suite. They are read once."""
        if self._environment is None:
            self._environment = environment_of(plan, self.settings_of(plan))
        return self._environment
