"""A run's numbers as sections, made of the same blocks that doors use."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from bakeoff.models.prices import MILLION, Price, format_cost, format_mtok_cost
from bakeoff.plan import ScorerSpec, SubjectSpec
from bakeoff.record import NO_USAGE, Verdict
from bakeoff.report.html.detail import NAME, shown
from bakeoff.report.html.gather import Bill, FailureClass, FailureCount, RunData
from bakeoff.report.html.plots import moment
from bakeoff.report.html.scores import cost_per_trial, counted, interval_datum, losses, score_plots, score_point
from bakeoff.report.sections import (
    Block,
    Code,
    Column,
    Datum,
    Facts,
    Section,
    Table,
    Text,
    Tone,
    Value,
)
from bakeoff.report.summary import SubjectSummary, Summary
from bakeoff.report.words import UNKNOWN, cost, duration, judging_note, percent, replay_note, span, visible

_LONG_OPTIONS = 20_000
_TONES: Mapping[Verdict, Tone] = {
    Verdict.PASS: "pass",
    Verdict.FAIL: "fail",
    Verdict.TIMEOUT: "timeout",
    Verdict.RECORDED: "plain",
}


def tone_of(verdict: Verdict) -> Tone:
    return _TONES.get(verdict, "lost")


def overview(data: RunData) -> Section:
    columns = (
        Column(title="Subject"),
        Column(title="Score", align="end", help="the mean over cases of the mean over rounds"),
        Column(title="95 % interval"),
        Column(title="Passed / scored", align="end"),
        Column(title="Lost", align="end", help="to budget, infra or grader: not the subject's doing, not in its score"),
        Column(title="Not run", align="end"),
        Column(title="Cost", align="end", help="of all trials, retries included"),
        Column(title="Time", align="end", help="mean of a scored trial"),
    )
    rows = tuple(_overview_row(subject, data.summary.threshold) for subject in data.summary.subjects)
    caption = "Score, interval and every denominator, by subject"
    table = Table(columns=columns, rows=rows, caption=caption, notes=_notes(data.summary))
    return Section(id="overview", title="Overview", blocks=(*_warnings(data), table))


def _overview_row(subject: SubjectSummary, threshold: float | None) -> tuple[Value, ...]:
    name = visible(subject.subject, NAME)
    passed = str(subject.passed) if threshold is not None else UNKNOWN
    note = "knows the hidden answers on purpose" if subject.bound else ""
    return (
        Datum(text=f"{name} *" if subject.bound else name, sort=name, tone="strong", note=note),
        Datum(text=percent(subject.score), sort=subject.score, tone="strong"),
        interval_datum(subject.score, subject.interval),
        Datum(text=f"{passed} / {subject.judged:,}", sort=subject.passed),
        losses(subject),
        counted(subject.missing),
        Datum(text=cost(subject.spent.cost), sort=subject.spent.cost),
        Datum(text=duration(subject.seconds), sort=subject.seconds),
    )


def _notes(summary: Summary) -> tuple[str, ...]:
    methods = sorted({subject.interval.method for subject in summary.subjects if subject.interval})
    threshold = "no threshold: scores are only recorded"
    if summary.own_rules:
        threshold = "a case passes by its own rule over all its rounds"
    elif summary.threshold is not None:
        threshold = f"a trial passes at a score of {summary.threshold:g} or more"
    found = [
        f"{summary.cases:,} cases × {len(summary.subjects):,} subjects × {summary.rounds:,} rounds; {threshold}.",
        "The score is the mean over cases; what was lost or not run is not in it.",
    ]
    if methods:
        found.append(f"Interval: {', '.join(methods)}.")
    if any(subject.interval is None for subject in summary.subjects):
        found.append("Undefined: fewer than two cases were scored.")
    if any(subject.verdicts.get(Verdict.TIMEOUT) for subject in summary.subjects):
        found.append("A timeout is the subject's and scores 0.")
    if any(subject.bound for subject in summary.subjects):
        found.append("* knows the hidden answers on purpose.")
    if summary.replayed:
        found.append(_replays(summary))
    if summary.judging != NO_USAGE:
        note = judging_note(summary.judging.tokens, summary.judging.cost)
        found.append(f"{note[:1].upper()}{note[1:]}.")
    return tuple(found)


def _replays(summary: Summary) -> str:
    by = ", ".join(f"{visible(one.subject, 40)} {one.replayed:,}" for one in summary.subjects[:20] if one.replayed)
    return f"{replay_note(summary.replayed, summary.finished)} ({by}): their cost and time are those of the recording."


def _warnings(data: RunData) -> list[Block]:
    found = []
    if data.damaged:
        lines = "line" if data.damaged == 1 else "lines"
        why = f": {data.first_damage}" if data.first_damage else ""
        where = "journal" if data.marks or why else "file"
        found.append(f"{data.damaged:,} {lines} of the {where} cannot be read and are left out{why}")
    if data.torn:
        found.append("The journal ends in the middle of a line: a process was killed while it wrote.")
    if data.unscored:
        said = "1 trial was" if data.unscored == 1 else f"{data.unscored:,} trials were"
        found.append(f"{said} tried, but not scored by the plan's present scorers yet, and count as not run.")
    if data.foreign:
        found.append(f"{data.foreign:,} records belong to an earlier version of the plan and are left out.")
    return [Text(text=sentence, tone="lost") for sentence in found]


def tradeoffs(data: RunData) -> Section | None:
    """Score against money and against time."""
    scored = [subject for subject in data.summary.subjects if subject.score is not None]
    bound = frozenset(visible(subject.subject, NAME) for subject in scored if subject.bound)
    spreads = data.spreads
    priced = tuple(
        score_point(subject, paid, spreads[subject.subject].costs.interval())
        for subject in scored
        if (paid := cost_per_trial(subject)) is not None
    )
    timed = tuple(
        score_point(subject, subject.seconds, spreads[subject.subject].times.interval())
        for subject in scored
        if subject.seconds is not None
    )
    return score_plots(priced, timed, bound)


def costs(data: RunData) -> Section | None:
    rows = [
        _cost_row(subject, data.bills[subject.subject])
        for subject in data.summary.subjects
        if subject.spent.tokens or subject.spent.cost is not None
    ]
    if not rows:
        return None
    columns = (
        Column(title="Subject"),
        Column(title="Spent", align="end", help="with retries and killed attempts"),
        Column(title="A trial", align="end"),
        Column(title="Input tokens", align="end"),
        Column(title="Of these cached", align="end"),
        Column(title="Output tokens", align="end"),
        Column(title="Recorded attempts", align="end", help="what the conversations below are priced at"),
        Column(title="With a cache", align="end", help="the same conversations, each prompt's prefix cached"),
        Column(title="Saving", align="end"),
        Column(title="Cache reads", align="end"),
        Column(title="Cache writes", align="end"),
    )
    notes = (
        "With a cache: simulated, each conversation on its own; the prefix is read at the read price, the rest written "
        "at the write price (a tenth and five quarters of the input price where a model has none).",
    )
    table = Table(columns=columns, rows=tuple(rows), caption="Money and tokens, by subject", notes=notes)
    return Section(id="costs", title="Cost", blocks=(table, *_prices(data)))


def _cost_row(subject: SubjectSummary, bill: Bill) -> tuple[Value, ...]:
    spent = subject.spent
    priced = bill.price is not None
    saving = bill.total - bill.simulated
    return (
        Datum(text=visible(subject.subject, NAME), tone="strong"),
        Datum(text=cost(spent.cost), sort=spent.cost, tone="strong"),
        Datum(text=cost(cost_per_trial(subject)), sort=cost_per_trial(subject)),
        *(Datum(text=f"{count:,}", sort=count) for count in (spent.input, spent.cache_read, spent.output)),
        Datum(text=cost(bill.total if priced else None), sort=bill.total),
        Datum(text=cost(bill.simulated if priced else None), sort=bill.simulated),
        Datum(text=_saving(saving, bill.total) if priced else UNKNOWN, sort=saving),
        *(Datum(text=f"{count:,}", sort=count) for count in (bill.hits, bill.writes)),
    )


def _saving(saving: float, total: float) -> str:
    share = f" ({100 * saving / total:.0f} %)" if total else ""
    return f"{'−' if saving < 0 else ''}{format_cost(abs(saving))}{share}"


def _prices(data: RunData) -> list[Block]:
    priced = [(name, bill.price) for name, bill in data.bills.items() if bill.price is not None]
    if not priced:
        return []
    columns = (
        Column(title="Subject"),
        Column(title="Price of"),
        *(Column(title=f"{what} / MTok", align="end") for what in ("Input", "Output", "Cache read", "Cache write")),
        Column(title="Source"),
        Column(title="Date"),
    )
    rows = tuple(_price_row(name, price) for name, price in priced)
    return [Table(columns=columns, rows=rows, caption="Prices that held, in USD per million tokens")]


def _price_row(name: str, price: Price) -> tuple[Value, ...]:
    rates = (price.input, price.output, price.cache_read, price.cache_write)
    return (
        visible(name, NAME),
        visible(price.key, NAME),
        *(Datum(text=UNKNOWN if rate is None else format_mtok_cost(float(rate * MILLION))) for rate in rates),
        visible(price.source, NAME),
        str(price.date) if price.date else UNKNOWN,
    )


def failures(data: RunData) -> Section:
    if not data.failures:
        text = "Nothing failed." if data.summary.complete else "Nothing that was run failed."
        return Section(id="failures", title="Failures", blocks=(Text(text=text),))
    columns = (
        Column(title="Outcome"),
        Column(title="Class"),
        Column(title="Whose doing"),
        Column(title="Trials", align="end"),
        Column(title="Subjects"),
        Column(title="For example"),
    )
    ordered = sorted(data.failures.items(), key=lambda item: -item[1].subjects.total())
    rows = tuple(_failure_row(kind, count) for kind, count in ordered)
    return Section(
        id="failures",
        title="Failures",
        blocks=(Table(columns=columns, rows=rows, caption="What did not pass, by class"),),
    )


def _failure_row(kind: FailureClass, count: FailureCount) -> tuple[Value, ...]:
    whose = {
        Verdict.INFRA: "ours or the provider's",
        Verdict.BUDGET: "the run's limits",
        Verdict.GRADER: "the scorer's",
    }
    most = count.subjects.most_common(4)
    more = f" and {len(count.subjects) - 4} more" if len(count.subjects) > 4 else ""
    subjects = ", ".join(f"{visible(name, 40)} ({number:,})" for name, number in most) + more
    return (
        Datum(text=kind.verdict, tone=tone_of(kind.verdict)),
        kind.name,
        whose.get(kind.verdict, "the subject's"),
        Datum(text=f"{count.subjects.total():,}", sort=count.subjects.total()),
        subjects,
        Datum(text=count.example or "open one", href=f"#t={count.trial}"),
    )


def settings(data: RunData) -> Section:
    plan = data.plan
    pairs = (
        ("Plan", visible(plan.name, NAME)),
        ("Run", visible(data.name, NAME)),
        ("Cases", f"{len(plan.cases):,}"),
        ("Rounds", f"{plan.rounds:,}"),
        ("Pass threshold", "none" if plan.threshold is None else f"{plan.threshold:g}"),
        ("Seed", visible(str(plan.seed), NAME)),
        ("Trials planned", f"{data.summary.planned:,}"),
        *_sessions(data),
    )
    blocks: list[Block] = [Facts(pairs=pairs)]
    blocks += [_spec("subject", spec) for spec in plan.subjects[:_MOST_SPECS]]
    blocks += [_spec("scorer", spec) for spec in plan.scorers[:_MOST_SPECS]]
    if len(plan.subjects) > _MOST_SPECS:
        blocks.append(Text(text=f"{len(plan.subjects) - _MOST_SPECS:,} more subjects are in plan.json.", tone="muted"))
    return Section(id="settings", title="Settings", blocks=tuple(blocks))


_MOST_SPECS = 100
_MOST_SESSIONS = 20


def _sessions(data: RunData) -> list[tuple[str, str]]:
    """What each process that worked on the run said of itself."""
    return [
        ("Started" if mark.kind == "start" else "Ended", _facts(mark.facts)) for mark in data.marks[:_MOST_SESSIONS]
    ]


def _facts(facts: Mapping[str, Any]) -> str:
    """A mark may come to say more; whatever it says is shown."""
    time = facts.get("time")
    told = [moment(time) if isinstance(time, int | float) else "at an unknown time"]
    for key, value in facts.items():
        if key not in ("type", "v", "time") and value is not None:
            told.append(f"{visible(key, 40)} {visible(value if isinstance(value, str) else _compact(value), 300)}")
    return "; ".join(told)


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _spec(what: str, spec: SubjectSpec | ScorerSpec) -> Block:
    name = spec.name or spec.kind
    title = f"{what} {visible(name, 80)}: {visible(spec.kind, 80)}"
    options: dict[str, JsonValue] = dict(spec.options)
    if not options and not spec.revision:
        return Code(title=title, text="no options", language="text")
    text = json.dumps(options | ({"revision": spec.revision} if spec.revision else {}), ensure_ascii=False, indent=2)
    return Code(title=title, text=shown(text[:_LONG_OPTIONS]), language="json")


def headline(summary: Summary) -> str:
    """The one sentence under the title."""
    scores = [subject for subject in summary.judged if subject.score is not None and not subject.bound]
    if not scores:
        return "Nothing has been scored yet."
    best = max(scores, key=lambda subject: subject.score or 0.0)
    interval = f" ({span(best.interval)})" if best.interval else ", interval undefined"
    more = "" if len(summary.judged) == 1 else f" of {len(summary.judged):,} subjects"
    return f"Highest score{more}: {visible(best.subject, 60)} with {percent(best.score)}{interval}."
