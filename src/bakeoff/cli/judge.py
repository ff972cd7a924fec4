"""Implement `bakeoff label` and `bakeoff judge audit`: label answers, and compare judges with the labels."""

import asyncio
import getpass
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff._kernel.text import count_of, part_of, visible
from bakeoff.cli.console import out, say
from bakeoff.cli.declare import Flags, command, flag, group_of
from bakeoff.cli.flags import NoOpen, Port, ReportFlags, Results, RunName, Trust
from bakeoff.errors import UsageError
from bakeoff.options import RunOptions

if TYPE_CHECKING:
    from bakeoff.plan import Plan
    from bakeoff.protocols import Scorer

app = group_of()
judges = group_of("Check model judges against labels of people.", "bakeoff judge audit latest")


class LabelFlags(Flags):
    """The options of `bakeoff label`."""

    results: Results = Path("results")
    scorer: str | None = flag(None, "The judge to label for, if there are several.", metavar="NAME")
    labeller: str | None = flag(None, "Who labels. Default: your login name.", metavar="NAME")
    count: int | None = flag(
        None, "Answers to label, with those of earlier sessions. Default: 30 of each subject.", min=1
    )
    port: Port = 0
    no_open: NoOpen = False


class JudgeAuditFlags(Flags):
    """The options of `bakeoff judge audit`."""

    results: Results = Path("results")
    scorer: str | None = flag(None, "The judge to audit, if there are several.", metavar="NAME")
    cut: float | None = flag(
        None,
        "The score from which on an answer passes. Default: the run's threshold, or 0.5.",
        "--threshold",
        min=0,
        max=1,
        metavar="SCORE",
    )
    repeat: int | None = flag(None, "Ask the judge so often about each labelled answer, for its flips.", min=2)
    trust: Trust = False


@command(app, "label")
def label_run(*, run: RunName = "latest", wanted: LabelFlags) -> None:
    """Label answers of a run in the browser, by keyboard, to calibrate the judge that scored them.

    Answers are drawn by the judge's score, and shown without it and without the subject. Stop and continue any time.

    Example: bakeoff label latest --count 50
    """

    from bakeoff.cli.pages import tell_address
    from bakeoff.report.judges.audit import agreement_blocks, agreement_of
    from bakeoff.report.judges.labelling import draw
    from bakeoff.report.render.terminal import print_blocks
    from bakeoff.report.view import make_label_app, serve_app
    from bakeoff.report.view.label import Labelling
    from bakeoff.storage.labels import read_labels
    from bakeoff.storage.run_folder import find_run

    folder = find_run(wanted.results, run)
    plan = folder.read_plan()
    drawn = draw(folder, plan, wanted.scorer, wanted.count)
    if not drawn:
        raise UsageError(f"run {folder.label} has no answer that could be labelled")
    labeller = _labeller(wanted.labeller)
    work = Labelling(drawn, plan, folder.labels_file, labeller)
    if work.place is None:
        say(f"{visible(labeller)} has labelled {part_of(len(drawn), len(drawn), 'answer')}: draw more with --count")
    else:
        left = part_of(work.left, len(drawn), "answer", "is/are")
        told = f"{left} left for {visible(labeller)}; press Ctrl-C to stop"
        ready = partial(tell_address, told, opened=not wanted.no_open)
        with suppress(KeyboardInterrupt):
            serve_app(lambda port, token, stop: make_label_app(work, labeller, port, token, stop), wanted.port, ready)
    labels = read_labels(folder.labels_file)
    print_blocks(out(), agreement_blocks(agreement_of(labels, drawn[0].scorer)))
    say(f"kept in {folder.labels_file}; next: `bakeoff judge audit {folder.name}`")


def _labeller(name: str | None) -> str:
    try:
        found = (getpass.getuser() if name is None else name).strip()
    except (OSError, KeyError):  # an account without a name
        found = ""
    if not 0 < len(found) <= 100 or not found.isprintable():
        raise UsageError(f"--labeller {found!r:.120}: give a name of 1 to 100 printable characters")
    return found


@command(judges, "audit")
def run_judge_audit(*, run: RunName = "latest", wanted: JudgeAuditFlags, shown_as: ReportFlags) -> None:
    """Compare a judge with the labels of a run: how often it is right, flips, or is swayed by length or position.

    Example: bakeoff judge audit latest --html judge.html
    """

    from bakeoff.cli.run_plan import show_report, trusted_plan
    from bakeoff.report.formatting import cost
    from bakeoff.report.judges.audit import audit_judge, describe_judge_audit
    from bakeoff.report.judges.labelling import ask_again, judge_of, read_judgements
    from bakeoff.storage.run_folder import find_run

    folder = find_run(wanted.results, run)
    asks = wanted.repeat is not None  # otherwise the judge is neither built nor asked
    plan = trusted_plan(folder, trust=wanted.trust or not asks, doing="bakeoff judge audit --repeat")
    found = read_judgements(folder, plan, wanted.scorer)
    scorer = judge_of(found, plan, wanted.scorer, folder.label)
    if not found.labels.of_scorer(scorer):
        raise UsageError(
            f"run {folder.label} has no labels for {scorer!r}: make some with `bakeoff label {folder.name}`"
        )
    repeated: dict[str, Sequence[float]] = {
        one.attempt_key: one.repeats for ones in found.of(scorer).values() for one in ones if one.repeats
    }
    source = "recorded, as the judge was asked several times" if repeated else "the judge was asked once; use --repeat"
    if wanted.repeat is not None:
        labelled = {attempt for attempt, _ in found.labels.of_scorer(scorer)}
        records = [record for record in folder.latest_records(plan) if record.attempt_key in labelled]
        judge, times = _judge(plan, scorer, wanted.repeat), count_of(wanted.repeat, "time")
        say(f"asking {visible(scorer)} {times} about each of {count_of(len(records), 'answer')}")
        repeated, spent = asyncio.run(ask_again(judge, scorer, plan, records, wanted.repeat))
        say(f"that cost {cost(spent.cost)}")
        source = f"asked {wanted.repeat} times for this audit"
    audit = audit_judge(folder.label, plan, found, scorer, cut=wanted.cut, repeated=repeated, repeated_from=source)
    show_report(audit.model_dump_json, describe_judge_audit(audit), shown_as)


def _judge(plan: "Plan", scorer: str, times: int) -> "Scorer":
    """Build the judge of a plan. A judge that asks a model repeats each question `times` times."""

    from bakeoff.doors import door_of
    from bakeoff.protocols import ModelJudge

    registry = door_of(plan).registry(plan, RunOptions())
    for spec in plan.every_scorer:
        factory = registry.scorers.get(spec.kind)
        built = factory(spec) if factory else None
        if factory and built and scorer == (spec.name or built.name):
            repeating = spec.model_copy(update={"options": {**spec.options, "repeats": times}})
            return factory(repeating) if isinstance(built, ModelJudge) else built
    raise UsageError(
        f"--repeat: the plan of this run does not say how to build {scorer!r}, as with runs of pytest: "
        "give the judge `repeats=2` there, and the audit uses the recorded answers"
    )
