"""Evaluate MCP suites from Python: `evaluate(config)` returns a report, and reports progress after each round.

from bakeoff import evaluate_mcp

report = evaluate_mcp("mcp-testing-framework.yaml", progress=lambda news: print(news.done, "of", news.total))
assert report.summary.allPass
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from bakeoff._kernel.yaml_with_lines import gathered
from bakeoff.doors.mcp_suite.plan import EvaluationRequest
from bakeoff.doors.mcp_suite.results.files import write_reports
from bakeoff.doors.mcp_suite.results.report import Report
from bakeoff.doors.mcp_suite.suites import SelectedSuite, prepare, read_suites
from bakeoff.engine.run import run
from bakeoff.errors import UsageError
from bakeoff.options import RunOptions
from bakeoff.record import Record
from bakeoff.storage.run_folder import new_run_folder


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of an evaluation, and the round that has just ended."""

    suite: Path
    done: int
    total: int
    record: Record

    @property
    def model(self) -> str:
        return self.record.subject

    @property
    def passed(self) -> bool:
        return self.record.verdict.value == "pass"


Config = Path | str | EvaluationRequest
"""A file, a folder of files, or a part of them."""

OnProgress = Callable[[Progress], None]


def evaluate(config: Config, *, progress: OnProgress | None = None, options: RunOptions | None = None) -> Report:
    """Evaluate one configuration and return its report.

    `progress` is called after each round. Raise an error if the configuration, a model or a server cannot be used;
    wrong answers of models are in the report.
    """
    return asyncio.run(evaluate_async(config, progress=progress, options=options))


evaluate_mcp = evaluate
"""The name of `evaluate` in `bakeoff`."""


async def evaluate_async(
    config: Config, *, progress: OnProgress | None = None, options: RunOptions | None = None
) -> Report:
    """Evaluate one configuration from a running event loop."""
    request = _request(config)
    suites = _all_of(request, options)
    if len(suites) > 1:
        raise UsageError(f"{request.path} has {len(suites)} suites: use evaluate_all, which returns a report for each")
    return await _evaluate(suites[0], progress)


async def evaluate_all(
    config: Config, *, progress: OnProgress | None = None, options: RunOptions | None = None
) -> tuple[Report, ...]:
    """Evaluate every suite of a folder, one after the other."""
    suites = _all_of(_request(config), options)
    return tuple([await _evaluate(suite, progress) for suite in suites])


def _request(config: Config) -> EvaluationRequest:
    return config if isinstance(config, EvaluationRequest) else EvaluationRequest(path=Path(config))


def _all_of(request: EvaluationRequest, options: RunOptions | None) -> tuple[SelectedSuite, ...]:
    read = read_suites(request, options or RunOptions())
    gathered([*read.problems.values()])
    return read.suites


async def _evaluate(selected: SelectedSuite, progress: OnProgress | None) -> Report:
    selected = await prepare(selected)
    plan, door = selected.plan, selected.door
    folder = new_run_folder(selected.options.results, plan.name)
    options = replace(door.options(plan, selected.options), folder=folder.path)
    done = 0
    async for record in run(plan, options, registry=door.registry(plan, options)):
        done += 1
        if progress is not None:
            progress(Progress(selected.suite.file, done, plan.size, record))
    return write_reports(folder, plan, door.settings_of(plan), folder.latest_records(plan)).report
