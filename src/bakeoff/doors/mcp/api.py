"""Evaluate MCP suites from Python: `evaluate(config)` returns a report, and reports progress after each round.

from bakeoff import evaluate_mcp

report = evaluate_mcp("mcp-testing-framework.yaml", progress=lambda news: print(news.done, "of", news.total))
assert report.summary.allPass
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bakeoff._kernel.yaml import gathered
from bakeoff.doors.mcp.config import SuiteConfig, suite_of
from bakeoff.doors.mcp.plan import EvaluationRequest
from bakeoff.doors.mcp.results.files import write_reports
from bakeoff.doors.mcp.results.report import McpReport
from bakeoff.doors.mcp.suites import SelectedSuite, prepare, read_suites
from bakeoff.engine.run import run
from bakeoff.errors import UsageError
from bakeoff.options import RunOptions
from bakeoff.record import Record
from bakeoff.storage.run_folder import new_run_folder


@dataclass(frozen=True, slots=True)
class McpProgress:
    """The progress of an evaluation, and the round that has just ended."""

    suite: Path
    done: int
    total: int
    record: Record

    @property
    def model(self) -> str:
        """Return the model that was asked in this round, as `modelsToTest` names it."""
        return self.record.subject

    @property
    def passed(self) -> bool:
        """Return True if the round passed. A round that was lost to an infra problem did not."""
        return self.record.verdict.value == "pass"


Config = Path | str | Mapping[str, Any] | SuiteConfig | EvaluationRequest
"""The accepted forms of a configuration: a path, the keys of a file as data, a model, or a request."""

OnProgress = Callable[[McpProgress], None]


def evaluate(config: Config, *, progress: OnProgress | None = None, options: RunOptions | None = None) -> McpReport:
    """Evaluate one configuration and return its report.

    `progress` is called after each round. Raise an error if the configuration, a model or a server cannot be used;
    wrong answers of models are in the report.
    """
    return asyncio.run(evaluate_async(config, progress=progress, options=options))


async def evaluate_async(
    config: Config, *, progress: OnProgress | None = None, options: RunOptions | None = None
) -> McpReport:
    """Evaluate one configuration from a running event loop."""
    suites = _all_of(config, options)
    if len(suites) > 1:
        place = suites[0].request.path or Path.cwd()
        raise UsageError(f"{place} has {len(suites)} suites: use evaluate_all, which returns a report for each")
    return await _evaluate(suites[0], progress)


evaluate_mcp, evaluate_mcp_async = evaluate, evaluate_async
"""The public names of both functions in `bakeoff`."""


async def evaluate_all(
    config: Config, *, progress: OnProgress | None = None, options: RunOptions | None = None
) -> tuple[McpReport, ...]:
    """Evaluate every suite of a folder, one after the other."""
    suites = _all_of(config, options)
    return tuple([await _evaluate(suite, progress) for suite in suites])


def _all_of(config: Config, options: RunOptions | None) -> tuple[SelectedSuite, ...]:
    """Read and check every suite of a configuration. Raise one error for all problems."""
    options = options or RunOptions()
    if isinstance(config, EvaluationRequest):
        read = read_suites(config, options)
    elif isinstance(config, Path | str):
        read = read_suites(EvaluationRequest(path=Path(config)), options)
    else:
        read = read_suites(EvaluationRequest(), options, suite_of(config))
    gathered([*read.problems.values()])
    return read.suites


async def _evaluate(selected: SelectedSuite, progress: OnProgress | None) -> McpReport:
    """Run one suite in a new run folder, write its reports, and return the report."""
    async with AsyncExitStack() as stack:
        selected = await prepare(selected, stack)
        plan, door = selected.plan, selected.door
        folder = new_run_folder(selected.options.results, plan.name)
        options = replace(door.options(plan, selected.options), folder=folder.path)
        done = 0
        async for record in run(plan, options, registry=door.named_registry(plan, options)):
            done += 1
            if progress is not None:
                progress(McpProgress(selected.suite.file, done, plan.size, record))
        return write_reports(folder, plan, door.settings_of(plan), folder.latest_records(plan)).report
