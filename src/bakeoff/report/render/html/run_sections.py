"""Describe a run's numbers as sections of its page."""

import json
from collections.abc import Mapping
from itertools import starmap
from typing import Any

from pydantic import JsonValue

from bakeoff._kernel.text import count_of, visible
from bakeoff.models.prices import MILLION, Price, format_cost, format_mtok_cost
from bakeoff.plan import Plan, ScorerSpec, SubjectSpec
from bakeoff.report.blocks import Block, Code, Column, Datum, Facts, Section, Table, TextBlock, Tone, Value, columns
from bakeoff.report.formatting import UNKNOWN, cost, shown, token_count
from bakeoff.report.judges.calibration import calibration_table
from bakeoff.report.render.html.drawing import moment
from bakeoff.report.render.html.render import NAME
from bakeoff.report.render.html.run_data import Bill, FailureClass, FailureCount, RunData
from bakeoff.report.run_summary import summary_table
from bakeoff.report.scores import name_datum, tradeoff_plots
from bakeoff.report.summary import SubjectSummary
from bakeoff.verdict import Verdict

_LONG_OPTIONS = 20_000
_TONES: Mapping[Verdict, Tone] = {
    Verdict.PASS: "pass",
    Verdict.FAIL: "fail",
    Verdict.TIMEOUT: "timeout",
    Verdict.RECORDED: "plain",
}
_CAUSES = {
    Verdict.INFRA: "infrastructure or provider",
    Verdict.BUDGET: "limits of the run",
    Verdict.GRADER: "scorer",
}
_MAX_SPECS = 100
_MAX_SESSIONS = 20


def tone_of(verdict: Verdict) -> Tone:
    """Return the tone in which a verdict is shown; lost trials share one."""
    return _TONES.get(verdict, "lost")


def overview(data: RunData) -> Section:
    """Show the scores with their intervals, those that labels correct, and what is wrong with the journal."""
    corrected = calibration_table(data.judgements.calibrations(), data.name)
    tables = (summary_table(data.summary), *([corrected] if corrected else []))
    found = []
    if data.damaged:
        why = f": {data.first_damage}" if data.first_damage else ""
        verb = "is" if data.damaged == 1 else "are"
        where = "journal" if data.marks or why else "file"
        found.append(f"{count_of(data.damaged, 'line')} of the {where} cannot be read and {verb} left out{why}")
    if data.torn:
        found.append("The journal ends in the middle of a line: a process was killed while writing.")
    if data.unscored:
        trials = count_of(data.unscored, "trial was", "trials were")
        found.append(f"{trials} attempted but not yet scored by the plan's current scorers, and count as not run.")
    if data.foreign:
        found.append(
            f"{count_of(data.foreign, 'record belongs', 'records belong')} to an earlier version of the plan; left out."
        )
    return Section("overview", "Overview", (*[TextBlock(text, tone="lost") for text in found], *tables))


def tradeoffs(data: RunData) -> Section | None:
    """Plot scores against cost and time."""
    scored = [subject for subject in data.summary.subjects if subject.score is not None]
    spent = [data.costs_and_times.by_subject[one.subject] for one in scored]
    rows = [(one, its.costs.interval(), its.times.interval()) for one, its in zip(scored, spent, strict=True)]
    return tradeoff_plots(rows)


def costs(data: RunData) -> Section | None:
    """Show money and tokens by subject, and what a prompt cache would have saved; None if nothing was paid."""
    paid = [one for one in data.summary.subjects if one.spent.tokens or one.spent.cost is not None]
    if not paid:
        return None
    titles = (
        Column("Subject"),
        Column("Spent", "end", help="with retries and killed attempts"),
        *columns("Per trial>", "Input tokens>", "Cached>", "Output tokens>"),
        Column("Recorded attempts", "end", help="the price of the recorded conversations"),
        Column("With a cache", "end", help="the same conversations with cached prefixes"),
        *columns("Saving>", "Cache reads>", "Cache writes>"),
    )
    notes = (
        "With a cache: simulated for each conversation. The prefix is read at the read price, the rest is written "
        "at the write price (a tenth and five quarters of the input price if a model has none).",
    )
    rows = tuple(_cost_row(one, data.bills[one.subject]) for one in paid)
    tables = [Table(titles, rows, "Money and tokens, by subject", notes)]
    if prices := tuple(_price_row(name, bill.price) for name, bill in data.bills.items() if bill.price is not None):
        rates = columns("Input / MTok>", "Output / MTok>", "Cache read / MTok>", "Cache write / MTok>")
        titles = (*columns("Subject", "Price of"), *rates, *columns("Source", "Date"))
        tables.append(Table(titles, prices, "Prices used, in USD per million tokens"))
    return Section("costs", "Cost", tuple(tables))


def _cost_row(subject: SubjectSummary, bill: Bill) -> tuple[Value, ...]:
    spent, priced, guessed = subject.spent, bill.price is not None, bool(subject.estimated)
    saving = bill.total - bill.simulated
    share = f" ({100 * saving / bill.total:.0f} %)" if bill.total else ""
    saved = f"{'−' if saving < 0 else ''}{format_cost(abs(saving))}{share}"
    return (
        name_datum(subject),
        Datum(cost(spent.cost, estimated=guessed), sort=spent.cost, tone="strong"),
        Datum(cost(subject.cost_per_trial, estimated=guessed), sort=subject.cost_per_trial),
        *(
            Datum(token_count(used, estimated=guessed), sort=used)
            for used in (spent.input, spent.cache_read, spent.output)
        ),
        Datum(cost(bill.total if priced else None), sort=bill.total),
        Datum(cost(bill.simulated if priced else None), sort=bill.simulated),
        Datum(saved if priced else UNKNOWN, sort=saving),
        *(bill.hits, bill.writes),
    )


def _price_row(name: str, price: Price) -> tuple[Value, ...]:
    rates = (price.input, price.output, price.cache_read, price.cache_write)
    return (
        visible(name, NAME),
        visible(price.key, NAME),
        *(Datum(UNKNOWN if rate is None else format_mtok_cost(float(rate * MILLION))) for rate in rates),
        visible(price.source, NAME),
        str(price.date) if price.date else UNKNOWN,
    )


def failures(data: RunData) -> Section:
    """Group the trials that did not pass by their reason. Controls fail on purpose: they are listed if alone."""
    only_controls = not data.summary.judged
    found = {kind: count for kind, count in data.failures.items() if only_controls or not kind.control}
    controls = sum(count.subjects.total() for kind, count in data.failures.items() if kind not in found)
    lead = f"{count_of(controls, 'more is', 'more are')} of controls, which only test the cases." if controls else ""
    if not found:
        text = "Nothing failed." if data.summary.complete else "Nothing failed so far."
        return Section("failures", "Failures", (TextBlock(text),), lead)
    ordered = sorted(found.items(), key=lambda item: -item[1].subjects.total())
    titles = (
        *columns("Outcome", "Class"),
        Column("Reason", help="without what differs between trials: numbers, ids, paths and quoted texts"),
        *columns("Cause", "Trials>", "Cases>", "Subjects", "Example"),
    )
    rows = tuple(starmap(_failure_row, ordered))
    return Section("failures", "Failures", (Table(titles, rows, "Trials that did not pass, by reason"),), lead)


def _failure_row(kind: FailureClass, count: FailureCount) -> tuple[Value, ...]:
    most = count.subjects.most_common(4)
    more = f" and {len(count.subjects) - 4} more" if len(count.subjects) > 4 else ""
    return (
        Datum(kind.verdict, tone=tone_of(kind.verdict)),
        kind.name,
        kind.reason or UNKNOWN,
        _CAUSES.get(kind.verdict, "subject"),
        count.subjects.total(),
        len(count.cases),
        ", ".join(f"{visible(name, 40)} ({number:,})" for name, number in most) + more,
        Datum(count.example or "open a trial", href=f"#t={count.trial}"),
    )


def settings(data: RunData) -> Section:
    """Show the plan: cases, rounds, thresholds, the options of subjects and scorers, and when it ran."""
    plan = data.plan
    pairs = (
        ("Plan", visible(plan.name, NAME)),
        ("Run", visible(data.name, NAME)),
        ("Cases", f"{len(plan.cases):,}"),
        ("Rounds", f"{plan.rounds:,}"),
        ("Pass threshold", _thresholds(plan)),
        ("Seed", visible(str(plan.seed), NAME)),
        ("Trials planned", f"{data.summary.planned:,}"),
        *(("Started" if mark.kind == "start" else "Ended", _facts(mark.facts)) for mark in data.marks[:_MAX_SESSIONS]),
    )
    blocks: list[Block] = [Facts(pairs)]
    blocks += [_spec("subject", spec) for spec in plan.subjects[:_MAX_SPECS]]
    blocks += [_spec("scorer", spec) for spec in plan.every_scorer[:_MAX_SPECS]]
    if len(plan.subjects) > _MAX_SPECS:
        blocks.append(TextBlock(f"{len(plan.subjects) - _MAX_SPECS:,} more subjects are in plan.json.", tone="muted"))
    return Section("settings", "Settings", tuple(blocks))


def _thresholds(plan: Plan) -> str:
    """Return the threshold of all cases, or the lowest and the highest."""
    found = plan.thresholds
    if not found:
        return "none"
    shown = f"{found[0]:g}" if len(found) == 1 else f"{found[0]:g} to {found[-1]:g}, by case"
    without = any(case.pass_rule is not None and case.pass_rule.threshold is None for case in plan.cases)
    return f"{shown}; some cases have none" if without else shown


def _facts(facts: Mapping[str, Any]) -> str:
    """Return all facts of a mark, also those that newer versions add."""
    time = facts.get("time")
    told = [moment(time) if isinstance(time, int | float) else "at an unknown time"]
    for key, value in facts.items():
        if key not in ("type", "v", "time") and value is not None:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
            told.append(f"{visible(key, 40)} {visible(text, 300)}")
    return "; ".join(told)


def _spec(what: str, spec: SubjectSpec | ScorerSpec) -> Block:
    title = f"{what} {visible(spec.name or spec.kind, 80)}: {visible(spec.kind, 80)}"
    facts: dict[str, JsonValue] = {**spec.options, **({"revision": spec.revision} if spec.revision else {})}
    if not facts:
        return Code("no options", "text", title)
    return Code(shown(json.dumps(facts, ensure_ascii=False, indent=2)[:_LONG_OPTIONS]), "json", title)
