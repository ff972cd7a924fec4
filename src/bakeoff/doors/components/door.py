"""Connect component suites to the commands that serve all doors."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff._kernel.files import write_atomically
from bakeoff._kernel.text import count_of, visible
from bakeoff.doors import Door, DoorResults, FinishedRun
from bakeoff.doors.components.plan import IN_TURN, PICTURES, case_of
from bakeoff.doors.components.scoring import SUITE, component_tools, score_component
from bakeoff.doors.components.suites import ComponentSuite
from bakeoff.engine.registry import Registry, default_registry
from bakeoff.engine.resources import open_resources, sandbox_of
from bakeoff.errors import InfraError, RunFolderError, UsageError
from bakeoff.grading.attacks import HostileSolution, all_attacks, attack_on, solution_in_turn
from bakeoff.grading.audit import VerificationCheck, WrongAnswer, verify_cases
from bakeoff.grading.cases import build_test_scorer, graded_case, toolchains_for
from bakeoff.grading.references import References
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan
from bakeoff.protocols import Sandbox
from bakeoff.record import BROKEN, Record
from bakeoff.storage.run_folder import RunFolder
from bakeoff.subjects.controls import Submission
from bakeoff.toolchains.install import Say, install_vitest
from bakeoff.toolchains.vitest import find_chromium
from bakeoff.verdict import Verdict

if TYPE_CHECKING:
    from bakeoff.doors.components.results.model import ComponentsResult
    from bakeoff.report.blocks import DoorParts
    from bakeoff.report.readers import RecordsInMemory
    from bakeoff.report.render.html.run_data import RunData


def _hostile(name: str, case: Case) -> Submission:
    """Return the hostile solution of this name as a submission; it is empty if the case's language has none."""
    graded = graded_case(case)
    attack = solution_in_turn(graded) if name == IN_TURN else attack_on(graded, name)
    files = attack.files(graded) if isinstance(attack, HostileSolution) else {}
    return Submission(files=files or dict.fromkeys(case.collect, ""))


class ComponentsDoor(Door):
    """The door that builds the tools and the scorer of suites, and writes result files."""

    pages = True

    def registry(self, plan: Plan, options: RunOptions) -> Registry:
        """Return the usual registry with the scorer `suite`, tools, and hostile solutions."""
        tools = partial(component_tools, test_tool=plan.settings.get("test_tool", True) is True)
        toolchains = toolchains_for(plan.cases, sandbox_of(options), options.jobs)
        resources = (References("bakeoff verify --suite"), *toolchains)
        scorer = partial(build_test_scorer, score=score_component, resources=resources)
        registry = default_registry().with_scorer(SUITE, scorer).with_tools(tools)
        if all(spec.kind != "cheat" for spec in plan.subjects):
            return registry
        solutions = [attack.name for attack in all_attacks() if isinstance(attack, HostileSolution)]
        return registry.with_attacks({name: partial(_hostile, name) for name in (*solutions, "patch-expect", IN_TURN)})

    def page_parts(self, run: "RunData") -> "DoorParts":
        """Add the table of suites, the comparison of MCP servers, and the totals of an imported file."""
        from bakeoff.doors.components.sections import components_sections
        from bakeoff.report.blocks import DoorParts

        return DoorParts(after=components_sections(run))

    def line_of(self, record: Record) -> str:
        """Return the verdict on a suite with its tests and cost."""
        from bakeoff.report.formatting import cost

        mark = "✓" if record.verdict is Verdict.PASS else "✗" if record.verdict.counts else "–"
        tests, spent = record.unit_tests, record.spent.cost
        broken = next((score.metadata[BROKEN] for score in record.scores if BROKEN in score.metadata), None)
        parts = [
            f"{mark} {visible(record.case)}",
            visible(record.subject),
            f"{tests.passed}/{tests.total}" if tests else "",
            "" if spent is None else cost(spent),
            "" if record.verdict.counts else record.verdict,
            f"unfit: the reference fails {len(broken)} of its tests" if isinstance(broken, list) else "",
        ]
        return "  ".join(filter(None, parts))

    def illustrate(self, run: FinishedRun, say: Callable[[str], None]) -> None:
        """Take pictures of the components if the plan asks for them."""
        if run.plan.settings.get(PICTURES) is True:
            from bakeoff.doors.components.pictures import take_pictures

            take_pictures(run.folder, run.plan, sandbox_of(run.options), say)

    def finish(self, run: FinishedRun) -> DoorResults:
        """Write a result file and its page for each subject and round, computed from records."""
        from bakeoff.doors.components.results.write import ResultOrigin, result_files
        from bakeoff.report.readers import Source
        from bakeoff.report.render.html.run_page import write_source_page

        folder, records = run.folder, list(run.records())
        written: list[Path] = []
        origin = ResultOrigin(folder.label, _began(folder))
        for name, result in result_files(run.plan, records, _sizes(records), origin):
            path = _free_path(run.options.results, name, folder.label, written)
            write_atomically(path, result.to_json())
            part = _records_of_file(path.name, run.plan, records, result)
            page = write_source_page(Source(path, part), path.with_suffix(".html"), parts=self.page_parts)
            written += (path, page)
        return DoorResults(tuple(written))


def _records_of_file(name: str, plan: Plan, records: Sequence[Record], result: "ComponentsResult") -> "RecordsInMemory":
    """Return a reader for the records in a result file: one subject in one round of the run."""
    from bakeoff.report.readers import Description, RecordsInMemory

    added = result.bakeoff
    assert added is not None, "files that we write say which subject and round they are of"
    subjects = tuple(spec for spec in plan.subjects if spec.name == added.subject)
    alone = {"subjects": subjects, "rounds": 1, "until_decided": None}  # two subjects would be compared
    own = [record for record in records if (record.subject, record.round) == (added.subject, added.round - 1)]
    described = Description(name=name, plan=plan.model_copy(update=alone))
    return RecordsInMemory(described, lambda: (record.model_copy(update={"round": 0}) for record in own))


def _free_path(results: Path, name: str, run: str, written: Collection[Path]) -> Path:
    """Return the path for a result file. It may replace an older file of the same run only."""
    from bakeoff.doors.components.results.read import read_result

    def is_our_own(path: Path) -> bool:
        try:
            added = read_result(path).bakeoff
        except RunFolderError:  # an incomplete file, or one of another program
            return False
        return added is not None and added.run == run and path not in written

    stem = name.removesuffix(".json")
    paths = chain([results / name], (results / f"{stem}-{number}.json" for number in count(2)))
    return next(path for path in paths if not path.exists() or is_our_own(path))


def _began(folder: RunFolder) -> str | None:
    """Return the time when the run began, before any resume: from its name, or else from its oldest record."""
    from bakeoff.doors.components.results.model import stamp_in
    from bakeoff.doors.result_files import timestamp_of

    if (stamp := stamp_in(folder.name)) is not None:
        return stamp
    first = min((entry.started for entry in folder.entries() if isinstance(entry, Record)), default=None)
    return None if first is None else timestamp_of(first)


def _sizes(records: Sequence[Record]) -> dict[str, int]:
    """Return the number of tests of each suite in which anything was graded."""
    sizes: dict[str, int] = {}
    for record in records:
        for score in record.scores:
            found = score.metadata.get("verification")
            if isinstance(found, dict) and isinstance(total := found.get("numTests"), int):
                sizes[record.case] = total
    return sizes


def wrong_answers(suite: ComponentSuite) -> list[WrongAnswer]:
    """Return the answers that must fail: an empty one, and the wrong answer of the suite if it has one."""
    file, why = suite.component_file, "the wrong answer passes: no test finds what is wrong with it"
    empty = WrongAnswer("empty", {file: ""}, "an empty answer passes: its tests measure nothing")
    return [empty] if suite.wrong is None else [empty, WrongAnswer("wrong", {file: suite.wrong}, why)]


async def verify_suites(
    suites: Sequence[ComponentSuite], sandbox: Callable[[], Sandbox], jobs: int
) -> list[VerificationCheck]:
    """Check suites, several at a time."""
    cases, wrong = [case_of(suite) for suite in suites], map(wrong_answers, suites)
    async with open_resources(
        [References("bakeoff verify --suite"), *toolchains_for(cases, sandbox, jobs)]
    ) as resources:
        return await verify_cases([*zip(cases, wrong, strict=True)], resources, jobs)


async def gradable_suites(
    suites: Sequence[ComponentSuite], say: Say
) -> tuple[tuple[ComponentSuite, ...], tuple[str, ...]]:
    """Return the suites that can be graded here, and a sentence about those that lack Node or a browser.

    Raise `UsageError` if none can be graded. The first time takes a while, as packages are installed.
    """
    fit, warnings = list(suites), []
    if need_browser := [suite.name for suite in fit if suite.layout.browser]:
        try:
            find_chromium()
        except InfraError as error:
            warnings.append(f"left out: {', '.join(need_browser)}: {error}")
            fit = [suite for suite in fit if not suite.layout.browser]
    if need_node := [suite.name for suite in fit if suite.needs_node]:
        try:
            await install_vitest(say)
        except (InfraError, OSError) as error:
            needed = f"{count_of(len(need_node), 'suite')} for which Node is needed ({', '.join(need_node)})"
            warnings.append(f"left out: {needed}: {error}")
            fit = [suite for suite in fit if not suite.needs_node]
    if warnings and not fit:
        raise UsageError("\n".join(warnings))
    return tuple(fit), tuple(warnings)
