"""Describe a run's numbers as sections of its page."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from bakeoff.models.prices import MILLION, Price, format_cost, format_mtok_cost
from bakeoff.plan import ScorerSpec, SubjectSpec
from bakeoff.record import Verdict
from bakeoff.report.blocks import Block, Code, Column, Datum, Facts, Quote, Section, Table, Text, Tone, Value
from bakeoff.report.formatting import UNKNOWN, cost, percent, shown, span, visible
from bakeoff.report.html.drawing import moment
from bakeoff.report.html.render import NAME
from bakeoff.report.html.run_data import Bill, FailureClass, FailureCount, RunData
from bakeoff.report.run_summary import summary_table
from bakeoff.report.scores import score_plots, score_point
from bakeoff.report.summary import SubjectSummary, Summary

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
    return Section("overview", "Overview", (*_warnings(data), summary_table(data.summary)))


def _warnings(data: RunData) -> list[Block]:
    found = []
    if data.damaged:
        lines = "line" if data.damaged == 1 else "lines"
        why = f": {data.first_damage}" if data.first_damage else ""
        where = "journal" if data.marks or why else "file"
        found.append(f"{data.damaged:,} {lines} of the {where} cannot be read and are left out{why}")
    if data.torn:
        found.append("The journal ends in the middle of a line: a process was killed while writing.")
    if data.unscored:
        trials = "1 trial was" if data.unscored == 1 else f"{data.unscored:,} trials were"
        found.append(f"{trials} attempted but not yet scored by the plan's current scorers, and count as not run.")
    if data.foreign:
        found.append(f"{data.foreign:,} records belong to an earlier version of the plan and are left out.")
    return [Text(text=sentence, tone="lost") for sentence in found]


def tradeoffs(data: RunData) -> Section | None:
    """Plot scores against cost and time."""
    scored = [subject for subject in data.summary.subjects if subject.score is not None]
    bound = frozenset(visible(subject.subject, NAME) for subject in scored if subject.bound)
    costs_and_times = data.costs_and_times.by_subject
    priced = tuple(
        score_point(subject, paid, costs_and_times[subject.subject].costs.interval())
        for subject in scored
        if (paid := subject.cost_per_trial) is not None
    )
    timed = tuple(
        score_point(subject, subject.seconds, costs_and_times[subject.subject].times.interval())
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
        Column(title="Per trial", align="end"),
        Column(title="Input tokens", align="end"),
        Column(title="Cached", align="end"),
        Column(title="Output tokens", align="end"),
        Column(title="Recorded attempts", align="end", help="the price of the recorded conversations"),
        Column(title="With a cache", align="end", help="the same conversations with cached prefixes"),
        Column(title="Saving", align="end"),
        Column(title="Cache reads", align="end"),
        Column(title="Cache writes", align="end"),
    )
    notes = (
        "With a cache: simulated for each conversation. The prefix is read at the read price, the rest is written "
        "at the write price (a tenth and five quarters of the input price if a model has none).",
    )
    table = Table(columns=columns, rows=tuple(rows), caption="Money and tokens, by subject", notes=notes)
    return Section(id="costs", title="Cost", blocks=(table, *_prices(data)))


def _cost_row(subject: SubjectSummary, bill: Bill) -> tuple[Value, ...]:
    spent = subject.spent
    priced = bill.price is not None
    saving = bill.total - bill.simulated
    return (
        Datum(text=Quote(subject.subject), tone="strong"),
        Datum(text=cost(spent.cost), sort=spent.cost, tone="strong"),
        Datum(text=cost(subject.cost_per_trial), sort=subject.cost_per_trial),
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
    return [Table(columns=columns, rows=rows, caption="Prices used, in USD per million tokens")]


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
        text = "Nothing failed." if data.summary.complete else "Nothing failed so far."
        return Section(id="failures", title="Failures", blocks=(Text(text=text),))
    columns = (
        Column(title="Outcome"),
        Column(title="Class"),
        Column(title="Cause"),
        Column(title="Trials", align="end"),
        Column(title="Subjects"),
        Column(title="Example"),
    )
    ordered = sorted(data.failures.items(), key=lambda item: -item[1].subjects.total())
    rows = tuple(_failure_row(kind, count) for kind, count in ordered)
    return Section(
        id="failures",
        title="Failures",
        blocks=(Table(columns=columns, rows=rows, caption="Trials that did not pass, by class"),),
    )


def _failure_row(kind: FailureClass, count: FailureCount) -> tuple[Value, ...]:
    causes = {
        Verdict.INFRA: "infrastructure or provider",
        Verdict.BUDGET: "limits of the run",
        Verdict.GRADER: "scorer",
    }
    most = count.subjects.most_common(4)
    more = f" and {len(count.subjects) - 4} more" if len(count.subjects) > 4 else ""
    subjects = ", ".join(f"{visible(name, 40)} ({number:,})" for name, number in most) + more
    return (
        Datum(text=kind.verdict, tone=tone_of(kind.verdict)),
        kind.name,
        causes.get(kind.verdict, "subject"),
        Datum(text=f"{count.subjects.total():,}", sort=count.subjects.total()),
        subjects,
        Datum(text=count.example or "open a trial", href=f"#t={count.trial}"),
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
    """Return the start and end marks of the processes that worked on the run."""
    return [
        ("Started" if mark.kind == "start" else "Ended", _facts(mark.facts)) for mark in data.marks[:_MOST_SESSIONS]
    ]


def _facts(facts: Mapping[str, Any]) -> str:
    """Return all facts of a mark, also those that newer versions add."""
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
    """Return the sentence below the title."""
    scores = [subject for subject in summary.judged if subject.score is not None and not subject.bound]
    if not scores:
        return "Nothing has been scored yet."
    best = max(scores, key=lambda subject: subject.score or 0.0)
    interval = f" ({span(best.interval)})" if best.interval else ", interval undefined"
    more = "" if len(summary.judged) == 1 else f" of {len(summary.judged):,} subjects"
    return f"Highest score{more}: {visible(best.subject, 60)} with {percent(best.score)}{interval}."
