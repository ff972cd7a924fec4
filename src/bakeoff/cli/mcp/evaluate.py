"""Implement `bakeoff mcp evaluate`: run every suite of a configuration in turn."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from bakeoff._kernel.text import count_of, visible
from bakeoff.cli.console import out, print_json, say, warn
from bakeoff.cli.declare import FAILED, INTERRUPTED, PASSED, UNDECIDED, Flags, command, flag, group_of
from bakeoff.cli.flags import HEADERS, MIN_COVERAGE, EndingFlags, NoOpen, PlanFlags, SelectionFlags
from bakeoff.errors import BakeoffError, InfraError, PlanError, UsageError
from bakeoff.options import RunOptions

if TYPE_CHECKING:
    from bakeoff.cli.run_plan import EndedRun
    from bakeoff.doors.mcp.suites import SelectedSuite

app = group_of()

_WRONG_CONFIGURATION = 2
_STATES = {None: "not run", PASSED: "passed", FAILED: "failed", UNDECIDED: "undecided", INTERRUPTED: "interrupted"}


class EvaluationFlags(Flags):
    """Options that choose a part of a configuration, named as in `EvaluationRequest`."""

    path: Annotated[
        Path | None,
        Argument(
            metavar="PATH",
            help="A YAML file, a folder of them, or a part of the names of suites below the current folder. "
            "Default: all suites below the current folder, or else the nearest configuration above.",
        ),
    ] = None
    prompts: list[str] | None = flag(None, "Only cases with this text in the prompt.", "--prompt", metavar="TEXT")
    models: list[str] | None = flag(None, "Only this model of modelsToTest.", "--model")
    cases: list[str] | None = flag(None, "Only cases with this name, number or tag.", "--case")
    rounds: int | None = flag(None, "How often to try each case. Default: testRound.", min=1)
    jobs: int | None = flag(None, "How many trials to run at the same time. Default: concurrencyLimit, or 5.", min=1)
    min_coverage: float | None = MIN_COVERAGE
    report: Path = flag(Path("mcp-report"), "The folder of the reports.", metavar="DIR")
    headers: list[str] | None = HEADERS


@command(app, "evaluate")
def evaluate(
    *,
    wanted: EvaluationFlags,
    flags: PlanFlags,
    selection: SelectionFlags,
    html: bool = flag(  # noqa: ARG001 - the page is always written
        False, "Accepted for older scripts: the page is always written.", hidden=True
    ),
    opened: bool = flag(  # noqa: ARG001 - the page is shown anyway
        False, "Accepted for older scripts: the page is shown anyway.", "--open", hidden=True
    ),
    no_open: NoOpen = False,
    watch: bool = flag(
        False, "After every save, ask the cases whose tools changed and those that failed, until Ctrl-C."
    ),
    ending: EndingFlags,
) -> int:
    """Ask every model every prompt, and compare the tools it calls with the expected calls.

    --dry-run checks everything except the servers.

    Example: bakeoff mcp evaluate mcp-testing-framework.yaml --watch
    """

    from bakeoff.cli.run_plan import conclude
    from bakeoff.doors.mcp.plan import EvaluationRequest
    from bakeoff.doors.mcp.suites import read_suites
    from bakeoff.report.output_files import refuse_unwritable

    request, options = EvaluationRequest(**wanted.values()), flags.options()
    if request.report.exists() and not request.report.is_dir():
        raise UsageError(f"--report {request.report} is a file: name a folder")
    refuse_unwritable("--report", request.report / "test-report.json")
    ending.check()
    if watch:
        from bakeoff.cli.watch import McpWatch, WatchOutputs

        return McpWatch(request, flags, WatchOutputs(selection, ending, not no_open)).run()
    read = read_suites(request, options)
    suites = _parted(read.suites, selection)
    if problems := [problem for selected in suites for problem in selected.plan.problems()]:
        raise PlanError(problems)  # before any server is started
    wrong = dict(read.problems)
    for problem in wrong.values():
        _tell(problem)
    if flags.dry_run:
        _print_plans(suites, options, as_json=ending.as_json)
        return _WRONG_CONFIGURATION if wrong else PASSED
    files = [*wrong, *(selected.suite.file for selected in suites)]
    ended = _run_each(suites, wrong, ending, alone=len(files) == 1)
    if len(files) > 1 and ending.prints_table:
        _print_states(files, ended, ending)
    combined = _write_combined(files, ended, request.report) if len(files) > 1 and ended else ()
    code = conclude(list(ended.values()), ending, opened=not no_open, planned=len(files), more_files=combined)
    return _WRONG_CONFIGURATION if wrong and code != INTERRUPTED else code


def _write_combined(files: Iterable[Path], ended: "Mapping[Path, EndedRun]", report: Path) -> Iterable[Path]:
    """Write a report over all suites into the folder `report`, and return its files.

    Suites without a finished run are listed as not run.
    """
    from bakeoff.doors.mcp.results.files import McpResults, write_combined

    written = [one.results for one in ended.values() if isinstance(one.results, McpResults)]
    return write_combined(written, [str(file) for file in sorted(files) if file not in ended], report)


def _parted(suites: "Sequence[SelectedSuite]", selection: SelectionFlags) -> "list[SelectedSuite]":
    """Return the suites with the requested cases; skip suites without a case in the shard."""
    largest = max((len(selected.plan.cases) for selected in suites), default=0)
    kept: list[SelectedSuite] = []
    for selected in suites:
        if selection.has_no_case_of(selected.plan, largest):
            cases = count_of(len(selected.plan.cases), "case")
            say(f"{visible(str(selected.suite.file))} is skipped: shard {selection.shard} has none of its {cases}")
        else:
            kept.append(replace(selected, plan=selection.applied(selected.plan, largest=largest)))
    return kept


def _run_each(
    suites: "Sequence[SelectedSuite]", wrong: dict[Path, str], ending: EndingFlags, *, alone: bool
) -> "dict[Path, EndedRun]":
    """Run the suites one after another until interrupted; name the file of each if not `alone`.

    Skip a suite if its servers fail; add it to `wrong` if its expected calls are impossible.
    """

    from bakeoff.cli.run_plan import check_plan, run_checked
    from bakeoff.doors.mcp.suites import prepare

    ended: dict[Path, EndedRun] = {}
    for selected in suites:
        with asyncio.Runner() as runner, servers_in(runner) as stack:
            try:
                prepared = runner.run(prepare(selected, stack))
            except BakeoffError as error:
                if alone:
                    raise
                _tell(str(error))
                if not isinstance(error, InfraError):
                    wrong[selected.suite.file] = str(error)
                continue
            warn(prepared.door.settings_of(prepared.plan).warnings)
            checked = check_plan(prepared.plan, prepared.options, prepared.door)
            if ending.prints_table and not alone:
                out().print(f"\n{visible(str(selected.suite.file))}")
            one = ended[selected.suite.file] = run_checked(checked, ending, runner=runner)
        if one.interrupted:
            break
    return ended


@contextmanager
def servers_in(runner: asyncio.Runner) -> Iterator[AsyncExitStack]:
    """Yield an exit stack for servers that run in the runner's event loop, and close it there."""
    stack = AsyncExitStack()
    try:
        yield stack
    finally:
        runner.run(stack.aclose())


def _print_states(files: Iterable[Path], ended: "Mapping[Path, EndedRun]", ending: EndingFlags) -> None:
    """Print the result of each suite, after all tables."""
    honest = EndingFlags(fail_under=ending.fail_under, allow_undecided=ending.allow_undecided)
    # --exit-zero changes the exit code, but not the printed result
    codes = {file: ended[file].exit_code(honest) if file in ended else None for file in sorted(files)}
    passed = sum(code == PASSED for code in codes.values())
    out().print(f"\n{passed:,} of {count_of(len(codes), 'suite')} passed:")
    for file, code in codes.items():
        out().print(f"  {visible(str(file))}: {_STATES[code]}")


def _tell(problem: str) -> None:
    for line in problem.splitlines():
        say(f"error: {line}")


def _print_plans(suites: "Sequence[SelectedSuite]", options: RunOptions, *, as_json: bool) -> None:
    """Print what a run would do; as JSON, print a list if there are several suites."""

    from bakeoff.cli.run_plan import check_plan, plan_json, print_plan
    from bakeoff.report.formatting import percent

    if not as_json:
        for selected in suites:
            config, file = selected.suite.config, visible(str(selected.suite.file))
            share = percent(config.threshold)
            rule = "all cells must pass" if config.suiteRule == "all" else f"{share} of cells must pass"
            out().print(f"{file}: a cell passes at {share} of its rounds; {rule}")
            out().print(f"mode {config.mode}, servers: {visible(', '.join(one.name for one in config.mcpServers))}")
            print_plan(out(), check_plan(selected.plan, options))
        out().print("nothing was run")
        return
    plans = []
    for selected in suites:
        more = {"file": str(selected.suite.file), "mode": selected.suite.config.mode}
        plans.append({**plan_json(check_plan(selected.plan, options)), **more})
    print_json(plans[0] if len(plans) == 1 else plans)
