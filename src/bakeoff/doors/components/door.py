"""The components door: connects component suites to the commands that serve all doors."""

import os
from collections.abc import Collection, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff._kernel.files import write_atomically
from bakeoff.doors import Door, DoorResults, FinishedRun
from bakeoff.doors.components.attacks import ATTACKS
from bakeoff.doors.components.cases import grading_of
from bakeoff.doors.components.references import REFERENCES
from bakeoff.doors.components.runners import toolchains_for
from bakeoff.doors.components.scorer import SUITE, SuiteScorer
from bakeoff.doors.components.tools import component_tools
from bakeoff.engine.registry import Registry, default_registry
from bakeoff.engine.run import sandbox_of
from bakeoff.errors import RunFolderError
from bakeoff.options import RunOptions
from bakeoff.plan import Plan
from bakeoff.protocols import Resource
from bakeoff.record import Record
from bakeoff.storage.run_folder import RunFolder

if TYPE_CHECKING:
    from bakeoff.report.html.gather import RunData
    from bakeoff.report.sections import Section

_READABLE = 0o644  # result files are made to be passed on


class ComponentsDoor(Door):
    """Suites, the tools that models get in them, and the result files."""

    pages = True

    def registry(self, plan: Plan, options: RunOptions) -> Registry:
        tools = partial(component_tools, test_tool=plan.settings.get("test_tool", True) is True)
        scorer = partial(SuiteScorer.from_spec, resources=grading_resources(plan, options))
        return default_registry().with_scorer(SUITE, scorer).with_tools(tools).with_attacks(ATTACKS)

    def sections(self, run: "RunData") -> Sequence["Section"]:
        from bakeoff.doors.components.sections import components_sections

        return components_sections(run)

    def finish(self, run: FinishedRun) -> DoorResults:
        """Write one result file for each subject and round, with its page beside it."""
        from bakeoff.doors.components.results.read import ResultFileReader
        from bakeoff.doors.components.results.write import Origin, result_files
        from bakeoff.report.html import write_source_page
        from bakeoff.report.readers import Source

        folder, records = run.folder, list(run.records)
        written: list[Path] = []
        for name, result in result_files(run.plan, records, _sizes(records), Origin(folder.label, _began(folder))):
            path = _place(run.options.results, name, folder.label, written)
            write_atomically(path, result.to_json(), _READABLE)  # records hold no secret, so neither does this
            source = Source(path, ResultFileReader())
            page = write_source_page(source, path.with_suffix(".html"), sections=self.sections, mode=_READABLE)
            written += (path, page)
        return DoorResults(tuple(written))


def grading_resources(plan: Plan, options: RunOptions) -> tuple[Resource, ...]:
    """Return what graders share: the test names of references, and warm workers for the jobs that run at once."""
    slots = max(1, min(options.jobs, os.cpu_count() or 1))
    gradings = [grading_of(case) for case in plan.cases]
    return (REFERENCES, *toolchains_for(gradings, sandbox_of(options), slots))


def _place(results: Path, name: str, run: str, written: Collection[Path]) -> Path:
    """Return where a result file goes: its own older file is replaced, that of another run is not."""
    from bakeoff.doors.components.results.read import read_result

    path = results / name
    for number in count(2):
        if not path.exists():
            return path
        try:
            added = read_result(path).bakeoff
        except RunFolderError:  # half of a file, or somebody else's
            added = None
        if added is not None and added.run == run and path not in written:
            return path
        path = results / f"{name.removesuffix('.json')}-{number}.json"
    raise AssertionError("counting has no end")


def _began(folder: RunFolder) -> str | None:
    """Return when the run began, from its name or else from its oldest record."""
    from bakeoff.doors.components.results.names import started_at, timestamp_of

    if (stamp := started_at(folder.name)) is not None:
        return stamp
    first = min((entry.started for entry in folder.entries() if isinstance(entry, Record)), default=None)
    return None if first is None else timestamp_of(first)


def _sizes(records: Sequence[Record]) -> dict[str, int]:
    """Return how many tests each suite has, as far as it was graded."""
    sizes: dict[str, int] = {}
    for record in records:
        for score in record.scores:
            found = score.metadata.get("verification")
            if isinstance(found, dict) and isinstance(total := found.get("numTests"), int):
                sizes[record.case] = total
    return sizes
