"""Implement `bakeoff run`, `verify` and `pictures`, for component suites."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from bakeoff._kernel.git import commit_of
from bakeoff._kernel.text import visible
from bakeoff._version import __version__
from bakeoff.cli.console import can_ask, out, say, warn
from bakeoff.cli.declare import INTERRUPTED, PASSED, UNDECIDED, Flags, command, flag, group_of
from bakeoff.cli.flags import (
    HIDDEN_SEED,
    HIDDEN_TESTS,
    ROUNDS,
    AsJson,
    EndingFlags,
    NoOpen,
    RequireAudit,
    Results,
    RunFlags,
    RunName,
    Sandbox,
    SelectionFlags,
    Trust,
    VerifyFlags,
)
from bakeoff.errors import UsageError
from bakeoff.options import RunOptions

if TYPE_CHECKING:
    from bakeoff.doors.components.suites import ComponentSuite, FoundSuites
    from bakeoff.plan import Plan

app = group_of()


class SuiteFlags(Flags):
    """Options that choose suites, named as in `ComponentsRequest`."""

    suites: Path | None = flag(
        None, "The folder of suites. Default: `tests` if it has suites, else the bundled.", metavar="DIR"
    )
    only: list[str] | None = flag(None, "Use only this suite.", "--suite", "--case")


class ComponentsFlags(SuiteFlags):
    """Options that choose suites and models, and how to ask the models."""

    models: list[str] | None = flag(None, "A model, such as local:smollm2, oracle or nop.", "--model")
    mcp: list[str] | None = flag(
        None, "Servers to use: none, http[:URL], stdio[:COMMAND], or several joined by ` + `.", metavar="SERVER"
    )
    treatments: list[str] | None = flag(
        None, "Add the texts of a file or folder to the system prompt, and compare.", "--with", metavar="NAME=PATH"
    )
    test_tool: bool = flag(True, "Let models run the tests before they submit.")
    pricing: bool = flag(True, "Compute what the calls cost.")
    hide_tests: bool = flag(False, "Leave the tests out of the prompt.")
    hidden_tests: float = HIDDEN_TESTS
    hidden_seed: int = HIDDEN_SEED
    rounds: int = ROUNDS
    max_steps: int | None = flag(None, "Replies of a model per trial. Default: 10, or 2 for a local model.", min=1)
    temperature: float | None = flag(
        None, "The temperature of the models. Default: their own.", min=0, metavar="NUMBER"
    )
    seed: int | None = flag(None, "The seed of the first round; later rounds count up.")
    max_tokens: int | None = flag(None, "The longest reply of a model, in tokens; a run has --max-total-tokens.", min=1)
    pictures: bool = flag(False, "Take a picture of each component in Chromium, after grading.")


@command(app, "run")
def run_components(
    *,
    context: typer.Context,
    wanted: ComponentsFlags,
    require_audit: RequireAudit = None,
    flags: RunFlags,
    selection: SelectionFlags,
    no_open: NoOpen = False,
    ending: EndingFlags,
) -> int:
    """Benchmark models on component suites: each writes code, the suite's tests grade it.

    Without --model, in a terminal, it asks for what is missing.

    Example: bakeoff run --model local:smollm2 --model oracle --suite counter
    """
    from bakeoff.cli.run_plan import carry_out, check_plan, print_dry_run, print_plan
    from bakeoff.cli.verify import audited
    from bakeoff.doors.components.plan import ComponentsRequest, build_plan, case_of, servers_of
    from bakeoff.doors.components.suites import find_suites
    from bakeoff.plan import CONTROLS

    request, options = ComponentsRequest(**wanted.values()), flags.options()
    if not request.models and can_ask():
        from bakeoff.cli.wizard import ask_for_run

        sources = {name: context.get_parameter_source(name) for name in context.params}
        given = {name for name, source in sources.items() if source and source.name == "COMMANDLINE"}

        def show_plan(request: ComponentsRequest) -> None:
            suites = find_suites(request.suites, request.only).suites
            print_plan(out(), check_plan(selection.applied(build_plan(request, suites)), options))

        answers = ask_for_run(request, show_plan, jobs=options.jobs, given=given)
        if answers is None:
            return INTERRUPTED
        request, options = answers[0], replace(options, jobs=answers[1])
    if options.max_cost is not None and not request.pricing:
        raise UsageError("--max-cost needs prices, and --no-pricing leaves them out: use only one of them")
    found = find_suites(request.suites, request.only)
    warn(found.warnings)
    suites = found.suites
    if require_audit is not None:
        suites = audited(suites, [case_of(suite, request) for suite in suites], require_audit)
    plan = selection.applied(build_plan(request, suites))
    if flags.dry_run:
        print_dry_run(check_plan(plan, options), ending)
        return PASSED
    plan = selection.applied(_with_origin(build_plan(request, gradable(suites)), found))
    from bakeoff.doors.components.scoring import check_servers

    checked = check_plan(plan, options)
    asyncio.run(check_servers(plan, servers_of(request)))
    priced = [model for model in dict.fromkeys(request.models) if model.partition(":")[0] not in CONTROLS]
    if priced and request.pricing and options.replay != "strict":
        check_prices(priced)
    return carry_out(checked, ending, opened=not no_open)


def check_prices(models: Sequence[str]) -> None:
    """Look up the price of each model, and raise `UsageError` for an implausible one."""

    from bakeoff.models.gateway import PriceBook
    from bakeoff.models.providers import parse_model_name

    book = PriceBook(say=say)
    for name in map(parse_model_name, models):
        book.price(name.provider, name.model)


def gradable(suites: "Sequence[ComponentSuite]") -> "tuple[ComponentSuite, ...]":
    """Return the suites that can be graded here; warn of the others."""

    from bakeoff.doors.components.door import gradable_suites

    fit, warnings = asyncio.run(gradable_suites(suites, say))
    warn(warnings)
    return fit


def _with_origin(plan: "Plan", found: "FoundSuites") -> "Plan":
    """Record in the plan where its suites come from, and which suites were left out."""

    from bakeoff.doors.components.suites import bundled_folder

    used = {case.id for case in plan.cases}
    unfit = [f"suite {suite.name!r} cannot be graded here" for suite in found.suites if suite.name not in used]
    folder, bundled = found.folder.resolve(), found.folder == bundled_folder()
    checkout = "bundled" if bundled else visible(folder.name)
    commit = f"bakeoff {__version__}" if bundled else commit_of(folder)
    return plan.from_origin(checkout=checkout, commit=commit, left_out=(*found.warnings, *unfit))


@command(app, "verify")
def verify(
    *,
    wanted: SuiteFlags,
    flags: VerifyFlags,
    as_json: AsJson = False,
    watch: Annotated[bool, Option("--watch", help="Check suites again whenever their files change.")] = False,
) -> int:
    """Check suites: the reference must pass, an empty and a wrong answer must fail. Exits with 1 if not.

    Example: bakeoff verify --suites tests --watch
    """

    from bakeoff.cli.verify import print_checks
    from bakeoff.doors.components.door import verify_suites
    from bakeoff.doors.components.plan import ComponentsRequest
    from bakeoff.doors.components.suites import find_suites
    from bakeoff.engine.resources import sandbox_of

    request, options = ComponentsRequest(**wanted.values()), flags.options()
    folder = find_suites(request.suites, request.only).folder  # a wrong name is an error at once
    checked: Sequence[ComponentSuite] = ()
    code = PASSED

    def check_changed(_: object = None) -> int:
        nonlocal checked, code
        found = find_suites(request.suites, request.only)
        warn(found.warnings)
        changed = [suite for suite in found.suites if suite not in checked]
        checked = found.suites
        if changed:
            checks = asyncio.run(verify_suites(gradable(changed), sandbox_of(options), options.jobs))
            code = print_checks(checks, "suite", ("reference", "empty", "wrong"), as_json=as_json)
        return code or int(bool(found.left_out))

    if not watch:
        return check_changed()
    from bakeoff.engine.watch import WatchLoop, source_files

    return WatchLoop(lambda: set(source_files(folder, "")), check_changed, say).run()


@command(app, "pictures")
def picture_run(
    *,
    run: RunName = "latest",
    results: Results = Path("results"),
    sandbox: Sandbox = "auto",
    no_open: NoOpen = False,
    trust: Trust = False,
) -> int:
    """Take a picture of each component of a run in Chromium, for its page. No score changes.

    Example: bakeoff pictures latest
    """

    from bakeoff.cli.pages import open_page
    from bakeoff.cli.run_plan import trusted_plan
    from bakeoff.doors import parts_of
    from bakeoff.doors.components.pictures import take_pictures
    from bakeoff.doors.components.plan import DOOR
    from bakeoff.engine.resources import sandbox_of
    from bakeoff.report.render.html.index_page import write_pages_of
    from bakeoff.storage.run_folder import find_run

    folder = find_run(results, run)
    plan = trusted_plan(folder, trust=trust, doing="bakeoff pictures")
    if plan.door != DOOR:
        raise UsageError(f"run {folder.name} has no components: pictures are taken of the runs of `bakeoff run`")
    if folder.is_being_written():
        raise UsageError(f"run {folder.name} is being written: take its pictures when it has ended")
    taken = take_pictures(folder, plan, sandbox_of(RunOptions(sandbox=sandbox)), say, again=True)
    if not taken:
        say("there is no component that a picture could be taken of")
        return UNDECIDED
    for page in (pages := write_pages_of(folder, parts=parts_of)):
        say(f"wrote {page}")
    if not no_open:
        open_page(pages[0])
    return PASSED
