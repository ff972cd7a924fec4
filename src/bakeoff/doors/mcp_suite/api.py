"""Evaluating from Python: `evaluate(config)` gives a report, and tells of each round as it ends.

from bakeoff import evaluate_mcp

report = evaluate_mcp("mcp-testing-framework.yaml", progress=lambda news: print(news.done, "of", news.total))
assert report.summary.allPass
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from bakeoff.doors import door_of
from bakeoff.doors.mcp_suite.plan import EvaluationRequest
from bakeoff.doors.mcp_suite.results.files import reported
from bakeoff.doors.mcp_suite.results.report import Report
from bakeoff.doors.mcp_suite.suites import Asked, prepare, read_suites
from bakeoff.engine.run import run
from bakeoff.errors import UsageError
from bakeoff.options import RunOptions
from bakeoff.record import Record
from bakeoff.storage.run_folder import new_run_folder


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an evaluation is, and the round that has just ended."""

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


OnProgress = Callable[[Progress], None]


def evaluate(
    config: Path | str | EvaluationRequest,
    *,
    progress: OnProgress | None = None,
    options: RunOptions | None = None,
) -> Report:
    """Evaluate one configuration. What cannot be run at all raises; what a model gets wrong is in the report."""
    return asyncio.run(evaluate_async(config, progress=progress, options=options))


evaluate_mcp = evaluate
"""Its name in `bakeoff`, where other things are evaluated too."""


async def evaluate_async(
    config: Path | str | EvaluationRequest,
    *,
    progress: OnProgress | None = None,
    options: RunOptions | None = None,
) -> Report:
    """The same, for a program that has an event loop already."""
    request, options = _request(config), options or RunOptions()
    asked = read_suites(request, options)
    if len(asked) > 1:
        raise UsageError(f"{request.path} has {len(asked)} suites: use evaluate_all, which gives a report for each")
    return await _evaluated(asked[0], options, progress)


async def evaluate_all(
    config: Path | str | EvaluationRequest,
    *,
    progress: OnProgress | None = None,
    options: RunOptions | None = None,
) -> tuple[Report, ...]:
    """Every suite of a folder, one after the other."""
    options = options or RunOptions()
    return tuple([await _evaluated(one, options, progress) for one in read_suites(_request(config), options)])


def _request(config: Path | str | EvaluationRequest) -> EvaluationRequest:
    return config if isinstance(config, EvaluationRequest) else EvaluationRequest(path=Path(config))


async def _evaluated(asked: Asked, options: RunOptions, progress: OnProgress | None) -> Report:
    suite = asked.suite
    prepared = await prepare(suite, asked.request, options)
    plan = prepared.plan
    folder = new_run_folder(options.results, plan.name)
    options = replace(prepared.options, folder=folder.path)
    done = 0
    async for record in run(plan, options, registry=door_of(plan).registry(plan, options)):
        done += 1
        if progress is not None:
            progress(Progress(suite.file, done, plan.size, record))
    return reported(folder, plan).report
