"""What a run page of this door shows besides: tools taken for each other, and expected beside actual calls.

The matrix of cases and models, every round and its filters are on every run page already.
"""

import json
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import TYPE_CHECKING

from pydantic import JsonValue

from bakeoff.doors.mcp_suite.confusion import Confusion, called_in, confused_pairs, confusions, descriptions
from bakeoff.doors.mcp_suite.outcome import CellOutcome, Outcome, outcome_of
from bakeoff.doors.mcp_suite.plan import Evaluation, evaluation_of
from bakeoff.doors.mcp_suite.prompt import system_prompt
from bakeoff.doors.mcp_suite.results.report import expected_output, response_of, why
from bakeoff.plan import Case, Plan
from bakeoff.record import Record, Verdict
from bakeoff.report.blocks import Block, Code, Column, Datum, Fragment, Section, Table, Text, Tone, Value
from bakeoff.report.words import percent, visible

if TYPE_CHECKING:
    from bakeoff.report.html.run_data import RunData


_PACKAGE = "bakeoff.doors.mcp_suite"
_NAME = 120
_LONGEST = 4_000  # characters of a reply or a description
_MOST_ANSWERS = 200  # wrong ones that are set beside what was expected: more would make the page heavy
_TONES: dict[str, Tone] = {"passed": "pass", "failed": "fail", "undecided": "lost"}


def mcp_sections(run: "RunData") -> tuple[Section, ...]:
    if run.folder is None:
        return ()
    evaluation = evaluation_of(run.plan)
    config = evaluation.config
    records = list(run.folder.latest_records(run.plan))
    outcome = outcome_of(run.plan, records, config.suiteRule, config.threshold, keep=True)
    return (
        _cells_section(outcome, evaluation.warnings),
        *_confusion_sections(evaluation, confusions(run.plan, records)),
        *_answers_section(run.plan, outcome),
        _tools_section(evaluation),
    )


def _cells_section(outcome: Outcome, warnings: Sequence[str]) -> Section:
    columns = (
        Column(title="Case"),
        Column(title="Model"),
        Column(title="Pass rate", align="end", help="of the rounds that say something about the model"),
        Column(title="Rounds", align="end", help="passed of scored, and those that were lost to others"),
        Column(title="Outcome"),
    )
    rule = "all of them have to" if outcome.rule == "all" else f"{percent(outcome.threshold)} of them have to"
    lead = f"A cell passes at {percent(outcome.threshold)} of its rounds; {rule}. The suite: {outcome.state}."
    table = Table(columns=columns, rows=tuple(map(_cell_row, outcome.cells)), caption="Cells: a case with a model")
    notes = tuple(Text(text=f"Warning: {visible(warning, 1_000)}", tone="muted") for warning in warnings)
    return Section(id="cells", title="Pass rates", lead=lead, blocks=(table, *notes))


def _cell_row(cell: CellOutcome) -> tuple[Value, ...]:
    lost = cell.rounds - cell.scored
    return (
        visible(cell.case, _NAME),
        visible(cell.model, _NAME),
        Datum(text=percent(cell.pass_rate), sort=cell.pass_rate),
        Datum(text=f"{cell.passed}/{cell.scored}" + (f", {lost} lost" if lost else ""), sort=cell.passed),
        Datum(text=cell.state, tone=_TONES[cell.state]),
    )


def _confusion_sections(evaluation: Evaluation, found: Sequence[Confusion]) -> Iterator[Section]:
    matrices = tuple(_matrix(one) for one in found if one.counts)
    if not matrices:
        return
    lead = "Rows are the tools that were wanted, columns those that were called, in rounds. The diagonal is right."
    yield Section(id="confusion", title="Tool confusion", lead=lead, blocks=matrices)
    pairs = confused_pairs(found)
    if not pairs:
        return
    words = descriptions(evaluation.tools)
    data: list[JsonValue] = [
        {
            "title": f"{visible(pair.wanted, _NAME)} → {visible(pair.called, _NAME)}",
            "about": f"{pair.rounds} rounds; {visible(', '.join(pair.models), 300)}",
            "wanted": visible(pair.wanted, _NAME),
            "called": visible(pair.called, _NAME),
            "wanted_words": words.get(pair.wanted, "")[:_LONGEST] or "–",
            "called_words": words.get(pair.called, "")[:_LONGEST] or "–",
        }
        for pair in pairs
    ]
    block = Fragment(package=_PACKAGE, template="confused.html", data={"pairs": data})
    lead = "What a model reads of the two: where the descriptions do not tell them apart, neither can it."
    yield Section(id="confused", title="Most confused tools", lead=lead, blocks=(block,))


def _matrix(one: Confusion) -> Block:
    wanted, called = one.wanted(), one.called()
    rows: list[JsonValue] = [
        {"name": visible(name, _NAME), "cells": [_count(one, name, other) for other in called]} for name in wanted
    ]
    data: dict[str, JsonValue] = {
        "model": visible(one.model, _NAME),
        "columns": [visible(name, _NAME) for name in called],
        "rows": rows,
    }
    return Fragment(package=_PACKAGE, template="confusion.html", data=data)


def _count(one: Confusion, wanted: str, called: str) -> JsonValue:
    count, total = one.counts.get((wanted, called), 0), one.rounds[wanted]
    tone = "none" if not count else "pass" if wanted == called else "fail" if 2 * count >= total else "partial"
    note = f"{visible(called, _NAME)} was called in {count} of {total} rounds that wanted {visible(wanted, _NAME)}"
    return {"text": str(count) if count else "·", "tone": tone, "note": note}


def _answers_section(plan: Plan, outcome: Outcome) -> Iterator[Section]:
    cases = {case.id: case for case in plan.cases}
    wrong = [answer for cell in outcome.cells for answer in _wrong_answers(plan, cases[cell.case], cell)]
    if not wrong:
        return
    more = len(wrong) - _MOST_ANSWERS
    notes = (Text(text=f"{more:,} more are in the JSON report.", tone="muted"),) if more > 0 else ()
    block = Fragment(package=_PACKAGE, template="answers.html", data={"answers": wrong[:_MOST_ANSWERS]})
    lead = (
        "Each wrong answer once, with the rounds that gave it and the reason. Lines that differ are marked, also where "
        "the configuration says how to compare instead of what with."
    )
    yield Section(id="answers", title="Expected and actual", lead=lead, blocks=(block, *notes))


def _wrong_answers(plan: Plan, case: Case, cell: CellOutcome) -> Iterator[JsonValue]:
    grouped: dict[tuple[str, str], list[Record]] = {}
    wanted = expected_output(case)
    for record in cell.records:
        if record.verdict is not Verdict.PASS:
            grouped.setdefault((_actual(record, wanted), why(record) or ""), []).append(record)
    for (actual, reason), records in grouped.items():
        expected, shown = side_by_side(_written(wanted), actual)
        trial = plan.find(case.id, cell.model, records[0].round)
        yield {
            "case": visible(case.id, _NAME),
            "model": visible(cell.model, _NAME),
            "rounds": ", ".join(str(record.round + 1) for record in records),
            "href": f"#t={trial.index}" if trial else "",
            "prompt": case.prompt[:_LONGEST],
            "reason": visible(reason, 1_000),
            "expected": expected,
            "actual": shown,
        }


def _actual(record: Record, wanted: JsonValue) -> str:
    """The call as it was understood; the reply itself where none was."""
    calls: list[JsonValue] = [call.model_dump(mode="json") for call in called_in(record)]
    if calls:
        return _written(in_order_of(wanted, calls[0] if len(calls) == 1 else calls))[:_LONGEST]
    said = response_of(record)
    return said[:_LONGEST] if said else "(no answer)"


def in_order_of(wanted: JsonValue, value: JsonValue) -> JsonValue:
    """With the keys of objects in the order of what was expected: it means nothing, and must not look as if it did."""
    if isinstance(wanted, dict) and isinstance(value, dict):
        names = [*(name for name in wanted if name in value), *(name for name in value if name not in wanted)]
        return {name: in_order_of(wanted.get(name), value[name]) for name in names}
    if isinstance(wanted, list) and isinstance(value, list):
        return [in_order_of(*pair) for pair in zip_longest(wanted[: len(value)], value)]
    return value


def _written(value: JsonValue) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def side_by_side(expected: str, actual: str) -> tuple[list[JsonValue], list[JsonValue]]:
    """Both texts as lines, each marked where the other has no such line."""
    left, right = expected.splitlines() or [""], actual.splitlines() or [""]
    lefts: list[JsonValue] = []
    rights: list[JsonValue] = []
    for what, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        kinds = ("", "") if what == "equal" else ("remove", "add")
        lefts += [{"text": line, "kind": kinds[0]} for line in left[a:b]]
        rights += [{"text": line, "kind": kinds[1]} for line in right[c:d]]
    return lefts, rights


def _tools_section(evaluation: Evaluation) -> Section:
    columns = (Column(title="Tool"), Column(title="Server"), Column(title="Description"))
    rows = tuple(
        (visible(tool.name, _NAME), visible(tool.server, _NAME), visible(tool.description, 500) or "–")
        for tool in evaluation.tools
    )
    blocks: list[Block] = [Table(columns=columns, rows=rows, caption="The tools that were offered")]
    if evaluation.config.mode == "json":
        text = system_prompt(evaluation.tools, sequences=evaluation.sequences)
        blocks.append(Code(text=text[:200_000], language="markdown", title="The system prompt"))
    return Section(id="tools", title="Tools", lead=f"Their hash: {evaluation.tools_hash}", blocks=tuple(blocks))
