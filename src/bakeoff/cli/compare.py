"""Carry out `bakeoff compare`, `bakeoff selfcheck` and `bakeoff leaderboard`."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Argument

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import count_of
from bakeoff.bundled.demo import demo_plan
from bakeoff.cli.console import err, out, say
from bakeoff.cli.declare import command, flag, group_of
from bakeoff.cli.flags import ROUNDS, CompareFlags, ReportFlags, Results, SelfCheckFlags
from bakeoff.cli.run_plan import FAILED, INTERRUPTED, PASSED, UNDECIDED, check_plan, watch
from bakeoff.cli.trust import trusted_plan
from bakeoff.errors import UsageError
from bakeoff.plan import Plan
from bakeoff.report.blocks import BulletList, Column, Datum, Facts, Quote, Report, Section, Table, Value
from bakeoff.report.compare.comparison import FileName, compare_sources, read_arm
from bakeoff.report.compare.description import describe_comparison
from bakeoff.report.exports.github import harmless_in_logs, harmless_json
from bakeoff.report.formatting import UNKNOWN, percent, sentence, span
from bakeoff.report.leaderboard.description import describe_leaderboard
from bakeoff.report.leaderboard.ranking import SELFCHECK, rank_results, rank_sources
from bakeoff.report.readers import find_source, known_readers
from bakeoff.report.render.markdown import to_markdown
from bakeoff.report.render.terminal import print_blocks
from bakeoff.stats.comparison import Comparison, compare
from bakeoff.stats.design import Design, design_of
from bakeoff.stats.gates import GateJudgement, GateVerdict, judge
from bakeoff.stats.power import too_few
from bakeoff.stats.rounds import FlipRate, flip_rate, flip_rate_within
from bakeoff.storage.run_folder import RunFolder, find_run, new_run_folder, run_folders
from bakeoff.storage.store_copy import fetch_all

app = group_of()


@command(app, "compare")
def run_compare(
    *,
    baseline: Annotated[
        str, Argument(metavar="BASELINE", help="The folder or name of a run, `latest`, or a result file.")
    ],
    wanted: CompareFlags,
    shown_as: ReportFlags,
) -> int:
    """Compare two runs, or two subjects of one run, case by case.

    Exit codes: 0 no regression is shown, 1 a regression is shown, 3 too much is missing to compare.

    Example: bakeoff compare latest --subject-a small --subject-b large
    """
    readers = known_readers()
    first = find_source(wanted.results, baseline, readers)
    report = compare_sources(
        first,
        find_source(wanted.results, wanted.candidate, readers) if wanted.candidate else first,
        subjects=(wanted.subject_a, wanted.subject_b),
        gate=wanted.gate,
        margin=wanted.margin,
        undecidable=wanted.undecidable,
        most_details=wanted.details,
        require_calibrated=wanted.require_calibrated_judge,
    )
    show(report.model_dump_json, describe_comparison(report), shown_as)
    return PASSED if wanted.exit_zero and report.exit_code == FAILED else report.exit_code


def show(to_json: Callable[..., str], report: Report, shown_as: ReportFlags) -> None:
    """Print a report as JSON, Markdown or text, and write its page if one was asked for."""
    shown_as.check()
    if shown_as.html:
        from bakeoff.report.render.html import write_report_page  # takes long to import

        say(f"wrote {write_report_page(shown_as.html, report)}")
    files: tuple[Path, ...] = ()
    if shown_as.as_json:
        files = shown_as.write(harmless_json(to_json(indent=2)) + "\n")
    elif shown_as.markdown:
        files = shown_as.write(harmless_in_logs(to_markdown(report)))
    for path in files:
        say(f"wrote {path}")
    if shown_as.prints_table:
        console = out()
        with console.capture() as printed:  # a page has everything else
            print_blocks(console, replace(report, sections=()) if shown_as.html else report)
        console.file.write(harmless_in_logs(printed.get()))


@command(app, "leaderboard")
def run_leaderboard(
    *,
    runs: Annotated[list[str] | None, Argument(metavar="RUN", help="Runs or result files. Default: all runs.")] = None,
    results: Results = Path("results"),
    shown_as: ReportFlags,
) -> None:
    """Rank subjects by their latest results, in groups that cannot be told apart.

    Example: bakeoff leaderboard --html leaderboard.html
    """
    readers = known_readers()
    if runs:
        board = rank_sources([find_source(results, name, readers) for name in runs])
    else:
        fetch_all(results, say)
        board = rank_results([find_source(results, str(folder.path)) for folder in run_folders(results)])
    show(board.model_dump_json, describe_leaderboard(board), shown_as)


class SelfCheck(FrozenModel):
    """How far two runs of one subject agree."""

    runs: tuple[FileName, FileName]
    subject: str
    between: FlipRate | None
    within: FlipRate | None
    comparison: Comparison
    ruling: GateJudgement
    exit_code: int


@command(app, "selfcheck")
def run_selfcheck(*, wanted: SelfCheckFlags, shown_as: ReportFlags) -> int:
    """Run one subject twice and report how often the results disagree.

    Example: bakeoff selfcheck latest --subject oracle
    """
    options, run = wanted.options(), wanted.run
    planned = demo_plan(with_model=False)
    if run:
        planned = trusted_plan(find_run(options.results, run), trust=wanted.trust, doing="bakeoff selfcheck")
    plan = _one_subject(planned, wanted.subject or (None if run else "scripted"))
    if plan.threshold is None:
        raise UsageError(
            f"plan {plan.name!r} has no threshold, so nothing passes or fails and two runs cannot disagree"
        )
    plan = plan.with_changes(name=f"{SELFCHECK}{plan.name}", rounds=wanted.rounds or plan.rounds)
    checked = check_plan(plan, options)
    folders: list[RunFolder] = []
    for _ in range(2):
        folders.append(folder := new_run_folder(options.results, plan.name))
        if asyncio.run(watch(checked, replace(checked.options, folder=folder.path), err())):
            return INTERRUPTED
    report = _check(folders[0], folders[1], plan.subjects[0].name)
    show(report.model_dump_json, _describe(report), shown_as)
    return report.exit_code


def _one_subject(plan: Plan, wanted: str | None) -> Plan:
    found = [spec for spec in plan.subjects if wanted in (None, spec.name)]
    if len(found) != 1:
        names = ", ".join(spec.name for spec in plan.subjects)
        problem = f"has no subject {wanted!r}" if wanted else f"has {len(found)} subjects"
        raise UsageError(f"plan {plan.name!r} {problem}: choose one with --subject: {names}")
    return plan.with_changes(subjects=tuple(found))


def _check(first: RunFolder, second: RunFolder, subject: str) -> SelfCheck:
    sources = [find_source(folder.path, str(folder.path)) for folder in (first, second)]
    with read_arm(sources[0], subject) as one, read_arm(sources[1], subject) as other:
        compared = compare(one.cells, other.cells)
        ruling = judge(compared, losses=(one.losses, other.losses))
        differ = ruling.verdict in (GateVerdict.IMPROVED, GateVerdict.REGRESSED)
        whole = not ruling.refused and one.summary.scored == other.summary.scored == one.summary.planned
        return SelfCheck(
            runs=(first.name, second.name),
            subject=subject,
            between=flip_rate(one.passes, other.passes),
            within=flip_rate_within({**one.passes}),
            comparison=compared,
            ruling=ruling,
            exit_code=FAILED if differ else PASSED if whole else UNDECIDED,
        )


def _describe(check: SelfCheck) -> Report:
    kept = Facts((("First run", check.runs[0]), ("Second run", check.runs[1])))
    sections = (
        Section("findings", "Findings", (BulletList(tuple(map(sentence, _findings(check)))),)),
        Section("runs", "Runs", (kept,)),
    )
    differ = "differ" if check.exit_code == FAILED else "do not differ"
    headline = f"Flip rate {_rate(check.between)}; the two runs {differ}."
    return Report(("Self-check: ", Quote(check.subject)), sections, headline=headline)


def _findings(check: SelfCheck) -> list[str]:
    lines = [f"two trials of one case disagree {_rate(check.between)} of the time (between the two runs)"]
    if check.within:
        lines.append(f"two rounds of one case disagree {_rate(check.within)} of the time (within the first run)")
    lines.append(f"comparison of the two runs: {check.ruling.sentence}")
    if check.exit_code == FAILED:
        lines.append(
            "something besides the subject changes from run to run: check what the scorers and the sandbox depend on"
        )
    return lines


def _rate(flips: FlipRate | None) -> str:
    if flips is None:
        return "an unknown share"
    return f"{percent(flips.rate)} (95 % interval {span(flips.interval)}, {count_of(flips.cases, 'case')})"


@command(app, "power")
def run_power(
    *,
    cases: int = flag(30, "How many cases there are.", min=1, max=100_000),
    rounds: int = ROUNDS,
    score: float = flag(
        0.5, "The score that subjects are expected to have, about.", min=0.01, max=0.99, metavar="SCORE"
    ),
    shown_as: ReportFlags,
) -> None:
    """Show how small a difference a design can find, before any money is spent.

    Example: bakeoff power --cases 50 --rounds 3
    """
    design = design_of(cases, rounds, score=score)
    others = (design_of(2 * cases, rounds, score=score), design_of(cases, 2 * rounds, score=score))
    show(design.model_dump_json, _describe_design(design, others), shown_as)


def verdict_on(design: Design) -> str:
    """Say in one sentence what a design can show, and what to do if that is nothing."""
    size = f"{count_of(design.cases, 'case')} × {count_of(design.rounds, 'round')}"
    if few := too_few(design.cases):
        return few
    if design.too_small or design.detectable is None:
        return f"{size} are too few to tell any two subjects apart: use more cases"
    return (
        f"{size} find a difference of {100 * design.detectable:.0f} points between two subjects 4 times in 5, at usual "
        f"noise; the interval of the difference is about ±{_points(design.difference_width)} points"
    )


def _describe_design(design: Design, others: tuple[Design, ...]) -> Report:
    titles = (
        Column("Cases", align="end"),
        Column("Rounds", align="end"),
        Column("Finds", align="end", help="the difference that is found 4 times in 5, in points"),
        Column("Difference", align="end", help="half the width of its 95 % interval, in points"),
        Column("Score", align="end", help="the same of one subject's score"),
    )
    notes = (
        "Finds: the true difference, in points, that a paired comparison shows 4 times in 5 (power 80 %, level 5 %).",
        "Difference and Score: half the width of their 95 % intervals, in points.",
        f"Guessed: scores near {100 * design.score:.0f} %, half of a round's variance between cases, and a correlation "
        "of 0.5 between the case scores of two subjects. After a run, `bakeoff compare` uses what was seen.",
    )
    table = Table(
        titles, tuple(map(_design_row, (design, *others))), "This design, twice its cases, twice its rounds", notes
    )
    headline = sentence(verdict_on(design))
    return Report("What this design can show", (Section("design", "Designs", (table,)),), headline=headline)


def _design_row(design: Design) -> tuple[Value, ...]:
    return (
        design.cases,
        design.rounds,
        Datum("nothing" if design.too_small else _points(design.detectable), sort=design.detectable, tone="strong"),
        Datum(f"±{_points(design.difference_width)}", sort=design.difference_width),
        Datum(f"±{_points(design.score_width)}", sort=design.score_width),
    )


def _points(share: float | None) -> str:
    return UNKNOWN if share is None else f"{100 * share:.1f}"
