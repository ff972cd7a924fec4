"""Implement `bakeoff audit`: check, without any model, whether suites and exercises are fit for use."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from typer import Argument

from bakeoff._kernel.files import write_atomically
from bakeoff._kernel.text import count_of, visible
from bakeoff.cli.console import err, out, say, warn
from bakeoff.cli.declare import FAILED, PASSED, UNDECIDED, Flags, command, flag, group_of
from bakeoff.cli.flags import AsJson, Markdown, VerifyFlags
from bakeoff.errors import UsageError
from bakeoff.options import RunOptions

if TYPE_CHECKING:
    from bakeoff.doors.components import suites as suite_files
    from bakeoff.grading.audit import AuditSettings, CaseAudit, WrongAnswer
    from bakeoff.plan import Case

    Audited = tuple[Case, Sequence[WrongAnswer]]

app = group_of()

_READABLE = 0o644
_ALL = ("all",)  # otherwise, a published track selects some of its cases


class AuditFlags(Flags):
    """Options that set how thorough the audit is, named as in `AuditSettings`."""

    only: list[str] | None = flag(None, "Audit only this suite or exercise.", "--case", "--suite", "--exercise")
    rounds: int = flag(44, "How often to run the tests on the reference: it must never fail.", min=1)
    mutants: int = flag(20, "How many faults to try in each reference.", min=0)
    cheats: int = flag(10, "How many cheats to try on each case.", min=0)
    seed: int = flag(0, "The seed that chooses the faults.")
    least_killed: float = flag(
        0.75, "The share of faults that tests must notice.", "--min-killed", min=0, max=1, metavar="SHARE"
    )
    output: Path = flag(Path("results/audit"), "The folder to write to.", "--output", "-o", metavar="DIR")


@command(app, "audit")
def run_audit(
    *,
    paths: Annotated[
        list[Path] | None,
        Argument(
            metavar="PATH",
            help="A suite, a folder of suites, an exercise, or the checkout of a track. "
            "Default: `tests` if it has suites, else the bundled ones.",
        ),
    ] = None,
    wanted: AuditFlags,
    flags: VerifyFlags,
    as_json: AsJson = False,
    markdown: Markdown = False,
) -> int:
    """Check what tests are worth, without any model: references must pass, cheats and small faults must fail.

    Writes audit.json for --require-audit, a page and a badge. Exits with 1 if a case is not fit for use.

    Example: bakeoff audit tests/my-suite --mutants 50
    """

    from bakeoff.grading.audit import Audit, AuditSettings
    from bakeoff.report.audit import describe_audit
    from bakeoff.report.exports.formats import audit_badge
    from bakeoff.report.render.html.render import write_report_page
    from bakeoff.report.render.markdown import to_markdown
    from bakeoff.report.render.terminal import print_blocks

    settings = AuditSettings(**{name: vars(wanted)[name] for name in AuditSettings.model_fields})
    if as_json and markdown:
        raise UsageError("--json and --markdown both print to stdout: use only one of them")
    cases = _chosen(list(_found(paths)), wanted.only or ())
    made = datetime.now(UTC).isoformat(timespec="seconds")
    done = asyncio.run(_audit(cases, settings, flags.options(), err()))
    audit = Audit(made=made, settings=settings, cases=tuple(done)).sealed()
    folder, described = wanted.output, describe_audit(audit)
    folder.mkdir(parents=True, exist_ok=True)
    certificate, badge = folder / "audit.json", folder / "audit.svg"
    write_atomically(certificate, audit.model_dump_json(indent=1).encode() + b"\n", _READABLE)
    write_atomically(badge, audit_badge(audit).encode(), _READABLE)
    page = write_report_page(folder / "audit.html", described)
    if as_json:
        out().file.write(audit.model_dump_json(indent=2) + "\n")
    elif markdown:
        out().file.write(to_markdown(described))
    else:
        print_blocks(out(), described)
    for path in (certificate, page, badge):
        say(f"wrote {path}")
    if any(case.audited for case in audit.excluded):
        return FAILED
    return UNDECIDED if audit.excluded else PASSED


def _found(paths: Sequence[Path] | None) -> "Iterator[Audited]":
    """Yield the cases at these paths, by default those in `tests`, or else all bundled ones."""

    from bakeoff.doors.components import suites as suite_files

    if not paths:
        found = suite_files.find_suites(None)
        yield from _suite_cases(found)
        if found.folder == suite_files.bundled_folder():
            yield from _exercise_cases(None)
    for path in paths or ():
        if not path.is_dir():
            raise UsageError(f"{visible(str(path))} is not a folder: name a suite, an exercise, or a folder of them")
        if suite_files.is_suite(path):
            whole = path.resolve()
            yield from _suite_cases(suite_files.find_suites(whole.parent, [whole.name]))
        elif (found := suite_files.discover(path)).suites:
            yield from _suite_cases(found)
        else:
            yield from _exercise_cases(path)


def _suite_cases(found: "suite_files.FoundSuites") -> "Iterator[Audited]":
    from bakeoff.cli import run
    from bakeoff.doors.components import door, plan

    warn(found.warnings)
    for suite in run.gradable(found.suites):
        yield plan.case_of(suite), door.wrong_answers(suite)


def _exercise_cases(path: Path | None) -> "Iterator[Audited]":
    from bakeoff.cli import agents
    from bakeoff.doors.agents import plan as exercises
    from bakeoff.doors.agents.door import STUB
    from bakeoff.doors.agents.exercises import find_exercises
    from bakeoff.doors.agents.plan import ExercisesRequest

    request = ExercisesRequest(exercises=path)
    found = find_exercises(path, () if path is None else _ALL)
    warn(found.warnings)
    for exercise in agents.gradable(found.exercises, request):
        yield exercises.case_of(exercise, request), [STUB]


def _chosen(cases: "Sequence[Audited]", only: Sequence[str]) -> "list[Audited]":
    names = [case.id for case, _ in cases]
    for name in only:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names[:30])}"
            raise UsageError(f"--case {name!r} does not exist: {hint}")
    return [(case, wrong) for case, wrong in cases if not only or case.id in only]


async def _audit(
    cases: "Sequence[Audited]", settings: "AuditSettings", options: RunOptions, console: Console
) -> "list[CaseAudit]":
    """Audit cases in order. Show a bar on a terminal, or else print a line for each case."""

    from bakeoff.engine.resources import open_resources, sandbox_of
    from bakeoff.grading.audit import audit_cases, audit_digest
    from bakeoff.grading.cases import toolchains_for
    from bakeoff.grading.references import References

    runs = Counter[str]()
    done: list[CaseAudit] = []
    columns = TextColumn("{task.description}", markup=False), BarColumn(bar_width=20), MofNCompleteColumn()
    toolchains = toolchains_for([case for case, _ in cases], sandbox_of(options), options.jobs)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        bar = bars.add_task("cases", total=len(cases))

        def on_run(case: str) -> None:
            runs[case] += 1
            bars.update(bar, description=f"{count_of(runs.total(), 'run')} of tests, now {visible(case, 28)}")

        async with open_resources((References("bakeoff verify --suite"), *toolchains)) as resources:
            async for found in audit_cases(cases, settings, resources, options.jobs, on_run):
                done.append(found)
                bars.advance(bar)
                if not console.is_terminal:
                    state = "fit" if found.ok else "not fit"
                    say(f"{len(done)}/{len(cases)} {found.case}: {state}, {found.seconds:.0f} s")
    order = [(case.id, audit_digest(case)) for case, _ in cases]
    return sorted(done, key=lambda each: order.index((each.case, each.digest)))
