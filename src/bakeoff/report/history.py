"""Judge a series of runs against a pinned baseline: is it worse now, since when, and how soon would a drop be found?

in_order           orders runs by their start
series_evidence    judges every subject of the baseline, and returns the evidence for `decide_gate`
judge_history      calls both for the command line; `describe_history` describes its report

A single test covers the whole series with one error rate: see `stats.series.series_change`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf
from typing import Literal, NamedTuple

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import count_of, visible
from bakeoff.errors import UsageError
from bakeoff.report.blocks import (
    Axis,
    Block,
    Column,
    Datum,
    Plot,
    Point,
    Quote,
    Report,
    Section,
    Table,
    Tone,
    Value,
    columns,
    trail,
)
from bakeoff.report.compare.arms import Arm, FileName, RunPair, countable, read_arm
from bakeoff.report.formatting import UNKNOWN, percent, points, sentence, span, utc
from bakeoff.report.gates import GATE_TONES, GateEvidence, GateState, Uncompared, decide_gate
from bakeoff.report.readers import Source
from bakeoff.report.summary import is_control
from bakeoff.stats.cells import CaseKey, Cells
from bakeoff.stats.intervals import ALPHA, Interval
from bakeoff.stats.series import SeriesChange, delay_of, mean_of, series_change
from bakeoff.storage.run_folder import RunFolder

_DROPS = (0.1, 0.2, 0.3, 0.5)  # the delay is stated for the first drop that would be found
_MAX_NAMED = 5

RunState = Literal["baseline", "not worse", "worse", "recovered", "incomplete", "not comparable"]
_TONES: dict[RunState, Tone] = {
    "baseline": "strong",
    "not worse": "pass",
    "worse": "fail",
    "recovered": "pass",
    "incomplete": "lost",
    "not comparable": "lost",
}


class SeriesRun(NamedTuple):
    """A run with its start, in seconds since 1970, and a name that no other run of the series has."""

    source: Source
    started: float
    label: str

    @property
    def dated(self) -> str:
        """Return the name with the date."""
        return f"{self.label}, {_date(self.started)}"


class HistoryRun(FrozenModel):
    """One subject in one run of a series."""

    run: str
    path: FileName
    started: float
    score: float | None = None
    interval: Interval | None = None
    cases: int = 0  # with a score
    difference: float | None = None  # from the baseline, over the cases that all judged runs have
    state: RunState
    problem: str = ""  # why the run is not judged


class SubjectHistory(FrozenModel):
    """One subject over all runs; the indices in `change` count only the judged runs."""

    subject: str
    runs: tuple[HistoryRun, ...]
    change: SeriesChange
    alpha: float
    drop: float | None  # the smallest drop that further runs would find; None: no drop within 100 runs
    delay: int | None  # the number of further runs that would find this drop
    finding: str


class HistoryReport(FrozenModel):
    """A series of runs against its baseline."""

    baseline: str
    subjects: tuple[SubjectHistory, ...]
    left_out: int = 0  # runs that started before the baseline
    state: GateState
    gate: str  # the explanation of the state
    exit_code: int


def in_order(sources: Iterable[Source]) -> list[SeriesRun]:
    """Sort runs by their start, oldest first.

    Raises `UsageError` if the start of a run is unknown, or if two runs have the same start.
    """
    found = list(sources)
    names = Counter(source.name for source in found)
    runs = []
    for source in found:
        label = visible(source.name if names[source.name] == 1 else str(source.path), 200)
        if (started := _start(source)) is None:
            raise UsageError(f"{label} has no trial with a start, so that it has no place in the series: leave it out")
        runs.append(SeriesRun(source, started, label))
    runs.sort(key=lambda run: run.started)
    for earlier, later in pairwise(runs):
        if earlier.started == later.started:
            both = f"{visible(str(earlier.source.path), 200)} and {visible(str(later.source.path), 200)}"
            raise UsageError(f"{both} started at the same time: they are one run, or have no order; leave one out")
    return runs


def _start(source: Source) -> float | None:
    known = min((record.started for record in source.records() if record.started > 0), default=None)
    if known is None and (source.path / "plan.json").is_file():  # a run of which no trial has ended
        known = RunFolder(source.path).beginning().get("time")
    return known if isinstance(known, float) and 0 < known < inf else None


def judge_history(
    sources: Sequence[Source],
    *,
    baseline: Source | None = None,
    subject: str | None = None,
    common: GateEvidence | None = None,
) -> HistoryReport:
    """Judge a series of runs, in any order.

    Args:
        sources: the runs.
        baseline: the run to compare with, which may be one of them; the oldest by default. Older runs are left out.
        subject: the only subject to judge; by default, all of the baseline except controls.
        common: evidence that all gates share, such as how much may be undecided.
    """
    runs, left_out = since_baseline(sources, baseline)
    subjects, evidence = series_evidence(runs, common or GateEvidence(), subject)
    decision = decide_gate(evidence)
    return HistoryReport(
        baseline=runs[0].label,
        subjects=tuple(subjects),
        left_out=left_out,
        state=decision.state,
        gate=decision.sentence,
        exit_code=decision.exit_code,
    )


def since_baseline(sources: Sequence[Source], baseline: Source | None) -> tuple[list[SeriesRun], int]:
    """Return the baseline and the runs after it, oldest first, and the number of runs before it."""
    pinned = [] if baseline is None else [baseline.path.resolve()]
    others = [source for source in sources if source.path.resolve() not in pinned]
    runs = in_order([*others, baseline] if baseline is not None else others)
    first = next((place for place, run in enumerate(runs) if run.source is baseline), 0)
    return runs[first:], first


def series_evidence(
    runs: Sequence[SeriesRun], common: GateEvidence, subject: str | None = None
) -> tuple[list[SubjectHistory], GateEvidence]:
    """Judge every subject of the first run over all runs; return the findings, and the evidence for the gate.

    Several subjects share the error rate. A run is left out of the test if its scorers or thresholds differ, the
    subject is absent, or too much is missing; then the gate is undecided.
    """
    specs = runs[0].source.plan.subjects
    names = [spec.name for spec in specs if not is_control(spec, bound=False)] or [spec.name for spec in specs]
    names = names if subject is None else [subject]
    judged = [_judge(runs, name, common, ALPHA / len(names)) for name in names]
    lacking = [one.evidence.uncompared for one in judged]
    said = [f"{visible(one.history.subject, 80)}: " * (len(names) > 1) + one.evidence.sentence for one in judged]
    evidence = replace(
        common,
        ledgers={label: ledger for one in judged for label, ledger in one.evidence.ledgers.items()},
        each=True,
        uncompared=max(lacking, key=lambda each: each.cases),
        series=[one.history.change for one in judged],
        refused=any(one.evidence.refused for one in judged),
        sentence="; ".join(said),
    )
    return [one.history for one in judged], evidence


class _Judged(NamedTuple):
    history: SubjectHistory
    evidence: GateEvidence


class _ReadRun(NamedTuple):
    """A subject in one run. If it cannot be judged there, `state` and `problem` say why."""

    run: SeriesRun
    arm: Arm | None
    state: RunState | None = None
    problem: str = ""


def _judge(runs: Sequence[SeriesRun], subject: str, common: GateEvidence, alpha: float) -> _Judged:
    read = [_read(run, subject, required=place == 0) for place, run in enumerate(runs)]
    first = read[0].arm
    assert first is not None
    read = [read[0], *(_checked(one, first, common) for one in read[1:])]
    judged = [(one.run, one.arm) for one in read if one.arm is not None and one.state is None]
    known = all(arm.content_known for _, arm in judged)
    cells = [{_key(key, known=known): cell for key, cell in arm.cells.items()} for _, arm in judged]
    change = series_change(cells, alpha=alpha)
    found = ((drop, delay) for drop in _DROPS if (delay := delay_of(drop, cells, alpha=alpha)))
    drop, delay = next(found, (None, None))
    soon = f"even a drop of {100 * _DROPS[-1]:.0f} points may stay unnoticed: use more cases or rounds"
    if drop is not None and delay is not None:
        soon = f"a drop of {100 * drop:.0f} points would be found within {count_of(delay, 'run')}"
    finding = _finding(change, [run for run, _ in judged], alpha, soon)
    problems = [f"{one.run.label}: {one.problem}" for one in read if one.state == "not comparable"]
    more = "; …" if len(problems) > _MAX_NAMED else ""
    named = f"not comparable with {runs[0].label}: {'; '.join(problems[:_MAX_NAMED])}{more}" if problems else ""
    evidence = GateEvidence(
        ledgers={_name(one.run, one.arm): one.arm.ledger.for_scores for one in read if one.arm is not None},
        uncompared=_uncompared(first, [(run, each) for (run, _), each in zip(judged, cells, strict=True)], known=known),
        refused=bool(problems) or not change.looks or not change.cases,
        sentence="; ".join(filter(None, (named, finding))),
    )
    rows = tuple(_rows(read, cells, change))
    return _Judged(
        SubjectHistory(subject=subject, runs=rows, change=change, alpha=alpha, drop=drop, delay=delay, finding=finding),
        evidence,
    )


def _read(run: SeriesRun, subject: str, *, required: bool) -> _ReadRun:
    if not required and all(spec.name != subject for spec in run.source.plan.subjects):
        return _ReadRun(run, None, "not comparable", f"it has no subject {visible(repr(subject), 80)}")
    with countable(run.source), read_arm(run.source, subject) as arm:
        return _ReadRun(run, arm)


def _checked(one: _ReadRun, first: Arm, common: GateEvidence) -> _ReadRun:
    """Return a run, with the reason if it cannot be judged."""
    if one.arm is None:
        return one
    if differing := RunPair(first, one.arm).judged_differently:
        return one._replace(state="not comparable", problem="; ".join(map(str, differing)))
    ledger = one.arm.ledger.for_scores
    if ledger.gap or not common.allowed.covers(ledger.undecided, ledger.planned):
        return one._replace(state="incomplete", problem=ledger.gap or ledger.words)
    return one if one.arm.cells else one._replace(state="not comparable", problem="none of its trials has a score")


def _key(key: CaseKey, *, known: bool) -> CaseKey:
    return key if known else CaseKey(key.id)


def _name(run: SeriesRun, arm: Arm) -> str:
    """Return the name of a ledger: the run, or one subject in the run."""
    return run.label if arm.circumstances.ledger else f"{visible(arm.spec.name, 80)} in {run.label}"


def _uncompared(first: Arm, runs: Sequence[tuple[SeriesRun, Cells]], *, known: bool) -> Uncompared:
    """Return the cases of the baseline that a later run lacks: the test uses the cases that all runs have."""
    keys = [_key(key, known=known) for key in first.keys.values()]
    lacking = {key: run.label for run, cells in reversed(runs) for key in keys if key not in cells}
    return Uncompared(len(lacking), [f"{key.id}: not in {label}" for key, label in lacking.items()], len(keys))


def _finding(change: SeriesChange, runs: Sequence[SeriesRun], alpha: float, soon: str) -> str:
    """Say what the series shows, and how soon it would show a drop."""
    if not change.looks:
        return f"no run can be compared with {runs[0].label}: a history needs two"
    if not change.cases:
        return "no case is in every run: nothing can be compared"
    over = f"over {count_of(change.looks, 'run')} and {count_of(change.cases, 'case')}"
    rate = f"one error rate of {100 * alpha:.2g} % for all looks"
    if change.found_at is None or change.since is None:
        return f"not worse than {runs[0].label} {over} ({rate}); {soon}"
    lost = f"worse since {runs[change.since].dated}: {points(change.difference)} points"
    found = f"{lost} (found at {runs[change.found_at].label}), p = {change.p_value:.2g} ({rate})"
    if change.recovered_at is None:
        return f"{found}, {over}"
    return f"it was {found}, and recovered at {runs[change.recovered_at].label}; {soon}"


def _rows(read: Sequence[_ReadRun], cells: Sequence[Cells], change: SeriesChange) -> Iterator[HistoryRun]:
    shared = [key for key in cells[0] if all(key in run for run in cells)]
    means = [mean_of([run[key] for key in shared]) if shared else None for run in cells]
    place = 0  # among the runs that are judged
    for run, arm, state, problem in read:
        facts = {} if arm is None else {name: getattr(arm.summary, name) for name in ("score", "interval", "cases")}
        difference = None
        if state is None:
            here, start = means[place], means[0]
            difference = here - start if place and here is not None and start is not None else None
            state, place = _state(place, change), place + 1
        about = {"run": run.label, "path": str(run.source.path), "started": run.started}
        yield HistoryRun(**about, **facts, difference=difference, state=state, problem=problem)


def _state(place: int, change: SeriesChange) -> RunState:
    if not place:
        return "baseline"
    if any(place == end for _, end in change.recovered):
        return "recovered"
    losses = [*change.recovered, *([(change.since, change.looks + 1)] if change.worse else [])]
    return "worse" if any(start <= place < end for start, end in losses if start is not None) else "not worse"


def describe_history(report: HistoryReport, *, last: int | None = None) -> Report:
    """Describe a series: the decision of the gate, and a plot and a table of the runs of each subject.

    `last` limits the table to the baseline and this many of the last runs; all runs are judged.
    """
    decided = report.state is not GateState.UNDECIDED
    several = len(report.subjects) > 1
    looks = max(len(one.runs) for one in report.subjects) - 1
    tiles = (
        ("Baseline", report.baseline, _date(report.subjects[0].runs[0].started)),
        ("Runs after it", f"{looks:,}", f"{report.left_out:,} older left out" if report.left_out else ""),
        *(
            (f"A drop of {100 * one.drop:.0f} points", count_of(one.delay, "run"), "until it would be found, at most")
            for one in report.subjects
            if not several and one.drop is not None and one.delay is not None
        ),
        ("Gate", str(report.state), f"exit {report.exit_code} with --gate"),
    )
    sections = [_overview(report)] if several else []
    sections += [
        _runs_of(one, number, last, decided=decided, several=several) for number, one in enumerate(report.subjects, 1)
    ]
    title = ("History since ", Quote(report.baseline))
    said, tone = f"Gate {report.state}: {report.gate}.", GATE_TONES[report.state]
    return Report(title, tuple(sections), f"Gate {report.state}", tone, tiles=tiles, decision=said)


def _overview(report: HistoryReport) -> Section:
    rows: list[tuple[Value, ...]] = []
    for one in report.subjects:
        state: RunState = "worse" if one.change.worse else "not worse"
        scores = Datum("", trail=trail(run.score for run in one.runs))
        about = _state_datum(state, decided=report.state is not GateState.UNDECIDED)
        rows.append((Datum(Quote(one.subject)), scores, about))
    table = Table(columns("Subject", "Scores", "State"), tuple(rows), "All subjects")
    return Section("subjects", "Subjects", (table,))


def _state_datum(state: RunState, note: str = "", *, decided: bool) -> Datum:
    """Return the state of a run for a table. `not worse` is shown as undecided while the gate is undecided."""
    if state == "not worse" and not decided:
        return Datum("undecided", tone="partial", note="not shown to be worse, but something is missing")
    return Datum(state, tone=_TONES[state], note=note)


def _runs_of(one: SubjectHistory, number: int, last: int | None, *, decided: bool, several: bool) -> Section:
    titles = (
        *columns("Run", "Started", "Score>", "95 % interval>", "Cases>"),
        Column("Points", align="end", help="the difference from the baseline, over the cases that all runs have"),
        Column("State"),
    )
    kept = one.runs if last is None else (one.runs[0], *one.runs[1:][-last:])
    rows = tuple(_row(run, decided=decided) for run in kept)
    notes = tuple(f"{run.state.capitalize()}: {visible(run.run, 80)}: {run.problem}." for run in kept if run.problem)
    dots = tuple(
        Point(place, run.score, run.run, y_interval=run.interval.ends if run.interval else None)
        for place, run in enumerate(one.runs, 1)
        if run.score is not None
    )
    plot = Plot("Score by run, with 95 % intervals", Axis("Run"), Axis("Score", "percent"), dots)
    scores = Section(f"scores-{number}", "Scores", (plot,), page_only=True, in_menu=False)
    blocks: tuple[Block, ...] = (Table(titles, rows, "Every run, the oldest first", notes), scores)
    if several:
        return Section(f"runs-{number}", Quote(one.subject), blocks, sentence(one.finding))
    return Section("runs", "Runs", blocks)


def _row(run: HistoryRun, *, decided: bool) -> tuple[Value, ...]:
    return (
        Datum(Quote(run.run), source=run.path),
        Datum(_date(run.started), sort=run.started),
        Datum(percent(run.score), sort=run.score, tone="strong"),
        Datum(span(run.interval)),
        run.cases,
        Datum(points(run.difference), sort=run.difference),
        _state_datum(run.state, run.problem, decided=decided),
    )


def _date(started: float) -> str:
    found = utc(started)
    return UNKNOWN if found is None else f"{found:%Y-%m-%d %H:%M}"
