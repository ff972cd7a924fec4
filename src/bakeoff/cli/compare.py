"""Implement `bakeoff compare`, `leaderboard`, `history`, `selfcheck` and `power`."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from bakeoff._kernel.choices import ComparisonGate
from bakeoff.cli.console import err, say
from bakeoff.cli.declare import FAILED, INTERRUPTED, PASSED, Flags, command, flag, group_of
from bakeoff.cli.flags import (
    ALLOW_UNDECIDED,
    ROUNDS,
    ExitZero,
    GateFlags,
    Jobs,
    LogFlags,
    MaxCost,
    NewResults,
    ReportFlags,
    Results,
    Sandbox,
    Trust,
    allowed_in,
)
from bakeoff.errors import UsageError

if TYPE_CHECKING:
    from bakeoff.plan import Plan
    from bakeoff.report.readers import Source
    from bakeoff.storage.run_folder import RunFolder

app = group_of()


class CompareFlags(GateFlags):
    """The options of `bakeoff compare`."""

    candidate: Annotated[
        str | None, Argument(metavar="CANDIDATE", help="The same. Leave it out to compare two subjects of one run.")
    ] = None
    results: Results = Path("results")
    subject_a: str | None = flag(None, "The subject to take from the baseline.", metavar="NAME")
    subject_b: str | None = flag(None, "The subject to take from the candidate.", metavar="NAME")
    gate: ComparisonGate = flag(
        "verdict",
        "Decide by this rule: `no-new-failures` fails if a case that passed in every round fails in every round now. "
        "With --margin, `regression` allows a gain of any size.",
    )
    anyway: bool = flag(False, "Compare although scorers or thresholds differ.")
    github: bool = flag(False, "Also write the decision of the gate as an output of a GitHub step.")
    details: int = flag(5, "How many changed cases to show in full.", min=0)
    require_calibrated_judge: bool = flag(
        False, "Decide by scores that labels correct; refuse (exit 3) if a judge has too few labels."
    )
    exit_zero: ExitZero = False


class HistoryFlags(Flags):
    """The options of `bakeoff history`."""

    results: Results = Path("results")
    baseline: str | None = flag(None, "The run to compare with. Default: the oldest.", metavar="RUN")
    gate: bool = flag(False, "Exit with 1 if it is worse now, and with 3 if something is missing or not comparable.")
    github: bool = flag(False, "Also write the decision of the gate as an output of a GitHub step.")
    subject: str | None = flag(None, "The only subject to judge. Default: all of the baseline.", metavar="NAME")
    allow_undecided: str = ALLOW_UNDECIDED
    last: int | None = flag(None, "Show only the last N runs in the table; all are judged.", min=1, metavar="N")


class SelfCheckFlags(Flags):
    """The options of `bakeoff selfcheck`."""

    run: Annotated[
        str | None, Argument(metavar="RUN", help="The run whose plan to use. Default: the plan of the demo.")
    ] = None
    results: NewResults = Path("results")
    subject: str | None = flag(None, "The subject of the plan to run.", metavar="NAME")
    rounds: int | None = flag(None, "How often to try each case. Default: as often as the run.", min=1)
    jobs: Jobs = None
    sandbox: Sandbox = "auto"
    max_cost: MaxCost = None
    trust: Trust = False


@command(app, "compare")
def run_compare(
    *,
    baseline: Annotated[
        str, Argument(metavar="BASELINE", help="The folder or name of a run, `latest`, or a result file.")
    ],
    wanted: CompareFlags,
    logs: LogFlags,
    shown_as: ReportFlags,
) -> int:
    """Compare two runs, or two subjects of one run, case by case.

    Exit codes: 0 no regression is shown, 1 a regression is shown, 3 something is missing or not comparable.

    Example: bakeoff compare latest --subject-a small --subject-b large
    """

    from bakeoff.cli.run_plan import show_report
    from bakeoff.report.compare.comparison import CompareRequest, compare_parts
    from bakeoff.report.compare.description import describe_comparison
    from bakeoff.report.exports.ci import write_step_outputs
    from bakeoff.report.gates import GateRule

    first = logs.find(wanted.results, baseline)
    request = CompareRequest(
        (wanted.subject_a, wanted.subject_b),
        GateRule(wanted.gate, wanted.margin, wanted.undecidable),
        allowed_in(wanted.allow_undecided),
        wanted.anyway,
        wanted.details,
        wanted.require_calibrated_judge,
    )
    second = logs.find(wanted.results, wanted.candidate) if wanted.candidate else first
    report = compare_parts(first, second, request)
    described = describe_comparison(report)
    show_report(report.model_dump_json, described, shown_as)
    if wanted.github:
        write_step_outputs(described.decision, None)
    return PASSED if wanted.exit_zero and report.exit_code == FAILED else report.exit_code


@command(app, "leaderboard")
def run_leaderboard(
    *,
    runs: Annotated[list[str] | None, Argument(metavar="RUN", help="Runs or result files. Default: all runs.")] = None,
    results: Results = Path("results"),
    logs: LogFlags,
    shown_as: ReportFlags,
) -> None:
    """Rank subjects by their latest results, in groups that cannot be told apart.

    Example: bakeoff leaderboard --html leaderboard.html
    """

    from bakeoff.cli.run_plan import show_report
    from bakeoff.report.leaderboard import describe_leaderboard, rank_results, rank_sources
    from bakeoff.report.readers import find_source
    from bakeoff.storage.run_folder import run_folders
    from bakeoff.storage.store_copy import fetch_all

    if runs:
        board = rank_sources([source for name in runs for source in logs.find(results, name)])
    else:
        fetch_all(results, say)
        board = rank_results([find_source(results, str(folder.path)) for folder in run_folders(results)])
    show_report(board.model_dump_json, describe_leaderboard(board), shown_as)


@command(app, "history")
def run_history(
    *,
    runs: Annotated[
        list[str] | None,
        Argument(metavar="RUN", help="Runs or result files, in any order. Default: all runs of the latest plan."),
    ] = None,
    wanted: HistoryFlags,
    shown_as: ReportFlags,
) -> int:
    """Judge a series of runs against a pinned baseline, with one error rate for all looks.

    Says whether it is worse now and since when, and how soon a drop of 10 points would be found.

    Example: bakeoff history --baseline 2026-11-01T02-00-00-nightly --gate
    """

    from bakeoff.cli.run_plan import show_report
    from bakeoff.report.exports.ci import write_step_outputs
    from bakeoff.report.gates import GateEvidence
    from bakeoff.report.history import describe_history, judge_history
    from bakeoff.report.readers import find_source, known_readers

    readers = known_readers()
    report = judge_history(
        [find_source(wanted.results, name, readers) for name in runs] if runs else kept_runs(wanted.results),
        baseline=find_source(wanted.results, wanted.baseline, readers) if wanted.baseline else None,
        subject=wanted.subject,
        common=GateEvidence(allowed=allowed_in(wanted.allow_undecided)),
    )
    described = describe_history(report, last=wanted.last)
    show_report(report.model_dump_json, described, shown_as)
    if wanted.github:
        write_step_outputs(described.decision, None)
    return report.exit_code if wanted.gate else PASSED


def kept_runs(results: Path) -> "list[Source]":
    """Return all runs under `results` whose plan has the same name as that of the latest run."""
    from bakeoff.report.readers import find_source
    from bakeoff.storage.journal_lines import JOURNAL
    from bakeoff.storage.run_folder import LATEST, folders_of_runs, run_folders
    from bakeoff.storage.store_copy import fetch_all

    fetch_all(results, say)
    for journal in (found for runs in folders_of_runs(results) for found in runs.glob(f"*/{JOURNAL}")):
        if not journal.with_name("plan.json").exists():
            raise UsageError(f"{journal.parent}: its plan.json is gone: delete the folder, or name the runs to judge")
    name = find_source(results, LATEST).plan.name
    sources = [find_source(results, str(folder.path)) for folder in run_folders(results)]
    return [source for source in sources if source.plan.name == name]


@command(app, "selfcheck")
def run_selfcheck(*, wanted: SelfCheckFlags, shown_as: ReportFlags) -> int:
    """Run one subject twice and report how often the results disagree.

    Example: bakeoff selfcheck latest --subject oracle
    """

    from bakeoff.bundled.demo import demo_plan
    from bakeoff.cli.run_plan import check_plan, show_report, trusted_plan, watch
    from bakeoff.report.compare.description import check_runs, describe_self_check
    from bakeoff.report.leaderboard import SELFCHECK
    from bakeoff.storage.run_folder import find_run, new_run_folder

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
    report = check_runs(folders[0], folders[1], plan.subjects[0].name)
    show_report(report.model_dump_json, describe_self_check(report), shown_as)
    return report.exit_code


def _one_subject(plan: "Plan", wanted: str | None) -> "Plan":
    found = [spec for spec in plan.subjects if wanted in (None, spec.name)]
    if len(found) != 1:
        names = ", ".join(spec.name for spec in plan.subjects)
        problem = f"has no subject {wanted!r}" if wanted else f"has {len(found)} subjects"
        raise UsageError(f"plan {plan.name!r} {problem}: choose one with --subject: {names}")
    return plan.with_changes(subjects=tuple(found))


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

    from bakeoff.cli.run_plan import show_report
    from bakeoff.report.compare.description import describe_design
    from bakeoff.stats.power import design_of

    design = design_of(cases, rounds, score=score)
    others = (design_of(2 * cases, rounds, score=score), design_of(cases, 2 * rounds, score=score))
    show_report(design.model_dump_json, describe_design(design, others), shown_as)
