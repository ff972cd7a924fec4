"""Describe what this door adds to a run page: verdict, pass rates, confused tools, and expected beside actual calls.

Every run page already has the matrix of cases and models, and all rounds with filters.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import zip_longest

from pydantic import JsonValue

from bakeoff._kernel.text import count_of, part_of, visible
from bakeoff.doors.mcp.coverage import Coverage
from bakeoff.doors.mcp.outcome import CallOutcome, CellOutcome, Confusion, called_in, most_confused, pooled
from bakeoff.doors.mcp.plan import McpPlanSettings, mode_of
from bakeoff.doors.mcp.results.report import (
    expected_output,
    expected_turns,
    failed_turn,
    failure_reason,
    response_of,
)
from bakeoff.mcp.prompt import system_prompt
from bakeoff.plan import Case, Plan
from bakeoff.record import Record
from bakeoff.report.blocks import (
    Block,
    BulletList,
    Code,
    Datum,
    DoorParts,
    Fragment,
    Phrase,
    Quote,
    Section,
    Table,
    TextBlock,
    Tone,
    Value,
    columns,
    heading,
)
from bakeoff.report.compare.tool_versions import VersionReport, version_sections
from bakeoff.report.formatting import percent
from bakeoff.report.gates import GateEvidence, GateState, decide_gate
from bakeoff.scorers.mcp.calls import turns_in
from bakeoff.scorers.mcp.execution import EndResult, end_results_in
from bakeoff.verdict import Verdict

_PACKAGE = "bakeoff.doors.mcp"
_NAME = 120
_MAX_LENGTH = 4_000  # characters of a reply or a description
_MAX_ANSWERS = 200  # wrong answers beside the expected ones: more would make the page slow
TONES: dict[GateState, Tone] = {GateState.PASSED: "pass", GateState.FAILED: "fail", GateState.UNDECIDED: "lost"}


def page_parts(
    plan: Plan,
    settings: McpPlanSettings,
    outcome: CallOutcome,
    found: Sequence[Confusion],
    since: VersionReport | None = None,
) -> DoorParts:
    """Return what the page of a run adds, from the outcome of its cells and its confusion matrices (`found`).

    `since` compares it with the run before, if the tools have changed.
    """
    coverage = settings.coverage
    decision = decide_gate(evidence_of(outcome, coverage, plan.rounds))
    lead = f"A cell is one case and one model; it passes at {percent(outcome.threshold)} of its rounds."
    notes = [TextBlock(text=f"Warning: {visible(warning, 1_000)}", tone="muted") for warning in settings.warnings]
    after = [_tools_section(plan, settings)]
    if coverage is not None:
        _, *tables = uncovered_blocks(coverage)
        after.insert(0, Section("coverage", "Coverage", tuple(tables), f"{coverage.sentence}."))
    return DoorParts(
        gate=decision.state,
        verdict=str(decision),
        first=(
            Section("cells", "Pass rates", (*rate_tables(outcome), *notes), lead),
            *(version_sections(since) if since else ()),
            *_confusion_sections(settings, found),
            *_answers_section(plan, outcome),
        ),
        after=tuple(after),
    )


def verdict_sentence(outcome: CallOutcome, rounds: int) -> str:
    """Return how many cells passed and how many must, as part of a sentence."""
    share = percent(outcome.threshold)
    needed = "" if outcome.rule == "all" else f"; {share} of them must"
    some = f" {share} of {count_of(rounds, 'round')}"
    times = "" if rounds == 1 else " every round" if outcome.threshold == 1 else some
    return f"{outcome.passed} of {count_of(len(outcome.cells), 'case–model pair')} passed{times}{needed}{outcome.alone}"


def rate_tables(outcome: CallOutcome) -> Iterator[Table]:
    """Yield the pass rates by case and model, those of turns, and those of end states."""
    yield pass_rates(outcome)
    yield from turn_rates(outcome)
    yield from end_state_table(outcome)


def pass_rates(outcome: CallOutcome) -> Table:
    """Return the pass rates as a table with a row for each case and a column for each model."""
    models = dict.fromkeys(cell.model for cell in outcome.cells)
    rows: list[tuple[Value, ...]] = []
    for case, cells in outcome.by_case():
        by_model = {cell.model: cell for cell in cells}
        rows.append((Quote(case), *(rate_of(by_model.get(model), "not needed") for model in models)))
    titles = columns("case", *(f"{visible(model, 60)}>" for model in models))
    return Table(titles, tuple(rows), "Pass rates by case and model", splits=True)


def rate_of(cell: CellOutcome | None, absent: str) -> Datum:
    """Return the pass rate of a cell with its rounds. `absent` stands for a cell that was not run."""
    if cell is None:
        return Datum(absent, tone="muted")
    rate = f"{percent(cell.pass_rate)} ({cell.passed}/{cell.scored}{cell.lost})"
    return Datum(rate, cell.pass_rate, TONES[cell.state])


def turn_rates(outcome: CallOutcome) -> Iterator[Table]:
    """Yield a table that says how many rounds passed each turn, if cases have several."""
    rows: list[tuple[Value, ...]] = []
    most = 0
    for cell in outcome.cells:
        rounds = [turns for record in cell.records if (turns := turns_in(record))]
        if rounds:
            asked = [sum(len(turns) > at for turns in rounds) for at in range(max(map(len, rounds)))]
            good = [sum(len(turns) > at and not turns[at].reason for turns in rounds) for at in range(len(asked))]
            most = max(most, len(asked))
            rates = [Datum(f"{passed}/{of}", passed / of) for passed, of in zip(good, asked, strict=True)]
            rows.append((Quote(cell.case), Quote(cell.model), *rates))
    if rows:
        filled = tuple((*row, *[Datum("not asked", tone="muted")] * (most + 2 - len(row))) for row in rows)
        titles = columns("case", "model", *(f"turn {number}>" for number in range(1, most + 1)))
        yield Table(titles, filled, "Rounds that passed each turn, of those that were asked it")


def end_state_table(outcome: CallOutcome) -> Iterator[Table]:
    """Yield a table with a line for each check of an end state, if cases have some."""
    rows: list[tuple[Value, ...]] = []
    for cell in outcome.cells:
        by_check: dict[str, list[EndResult]] = {}
        for result in (each for record in cell.records for each in end_results_in(record)):
            by_check.setdefault(result.check, []).append(result)
        for check, results in by_check.items():
            passed = sum(each.passed for each in results)
            reason = next((each.reason for each in results if not each.passed), "")
            rate = Datum(
                f"{passed}/{len(results)}", passed / len(results), "pass" if passed == len(results) else "fail"
            )
            rows.append((Quote(cell.case), Quote(cell.model), Quote(check), rate, Quote(visible(reason, 300))))
    if rows:
        yield Table(columns("case", "model", "end state", "passed>", "why not"), tuple(rows), "End states")


def _confusion_sections(settings: McpPlanSettings, found: Sequence[Confusion]) -> Iterator[Section]:
    """Yield the matrices of expected and called tools, and the most confused pairs with their descriptions."""
    shown = [one for one in found if one.counts]
    if not shown:
        return
    single = len(shown) == 1
    matrices = [_matrix(one, folded=not single) for one in shown]
    if not single:
        matrices.insert(0, _matrix(pooled(shown)))
    lead = "Rows are wanted tools, columns are called tools, and cells count rounds. The diagonal is correct."
    yield Section(id="confusion", title="Tool confusion", lead=lead, blocks=tuple(matrices))
    pairs = most_confused(found, settings.tools)
    if not pairs:
        return
    data: list[JsonValue] = [
        {
            "title": f"{visible(pair.wanted, _NAME)} → {visible(pair.called, _NAME)}",
            "about": f"{count_of(pair.rounds, 'round')}; {visible(', '.join(pair.models), 300)}",
            "wanted": visible(pair.wanted, _NAME),
            "called": visible(pair.called, _NAME),
            "wanted_words": pair.wantedDescription[:_MAX_LENGTH] or "–",
            "called_words": pair.calledDescription[:_MAX_LENGTH] or "–",
        }
        for pair in pairs
    ]
    block = Fragment(package=_PACKAGE, template="confused.html", data={"pairs": data})
    lead = "What models read about both tools. If the descriptions do not show the difference, models cannot see it."
    yield Section(id="confused", title="Most confused tools", lead=lead, blocks=(block,))


def _matrix(one: Confusion, *, folded: bool = False) -> Block:
    """Return the matrix of one model, as a block that pages render."""
    called = one.called()
    data: dict[str, JsonValue] = {
        "model": visible(one.model, _NAME),
        "folded": folded,
        "columns": [visible(name, _NAME) for name in called],
        "rows": [
            {"name": visible(name, _NAME), "cells": [_count(one, name, other) for other in called]}
            for name in one.wanted()
        ],
    }
    return Fragment(package=_PACKAGE, template="confusion.html", data=data)


def _count(one: Confusion, wanted: str, called: str) -> JsonValue:
    """Return one cell of a matrix, with a sentence for its tooltip."""
    count, total = one.counts.get((wanted, called), 0), one.rounds[wanted]
    tone = "none" if not count else "pass" if wanted == called else "fail" if 2 * count >= total else "partial"
    rounds = part_of(count, total, "round")
    note = f"{visible(called, _NAME)} was called in {rounds} that wanted {visible(wanted, _NAME)}"
    return {"text": str(count) if count else "·", "tone": tone, "note": note}


def _answers_section(plan: Plan, outcome: CallOutcome) -> Iterator[Section]:
    """Yield the wrong answers beside the expected calls, if there are any."""
    cases = {case.id: case for case in plan.cases}
    wrong = [answer for cell in outcome.cells for answer in _wrong_answers(plan, cases[cell.case], cell)]
    if not wrong:
        return
    more = len(wrong) - _MAX_ANSWERS
    rest = f"{count_of(more, 'more is', 'more are')} in the JSON report."
    notes = (TextBlock(text=rest, tone="muted"),) if more > 0 else ()
    block = Fragment(package=_PACKAGE, template="answers.html", data={"answers": wrong[:_MAX_ANSWERS]})
    lead = (
        "Each wrong answer once, with its rounds and the reason. Lines that differ are marked, even if the "
        "configuration says how to compare them."
    )
    yield Section(id="answers", title="Expected and actual", lead=lead, blocks=(block, *notes))


def _wrong_answers(plan: Plan, case: Case, cell: CellOutcome) -> Iterator[JsonValue]:
    """Yield the answers of one cell that did not pass, without repetitions."""
    grouped: dict[tuple[str, str, str], list[Record]] = {}
    for record in cell.records:
        if record.verdict is not Verdict.PASS:
            wanted = expected_output(case, failed_turn(record))
            key = _written(wanted), _actual(record, wanted), failure_reason(record) or ""
            grouped.setdefault(key, []).append(record)
    for (wanted_text, actual, reason), records in grouped.items():
        expected, shown = side_by_side(wanted_text, actual)
        trial = plan.find(case.id, cell.model, records[0].round)
        yield {
            "case": visible(case.id, _NAME),
            "model": visible(cell.model, _NAME),
            "rounds": ", ".join(str(record.round + 1) for record in records),
            "href": f"#t={trial.index}" if trial else "",
            "prompts": [turn.prompt[:_MAX_LENGTH] for turn in expected_turns(case)] or [case.prompt[:_MAX_LENGTH]],
            "failed": failed_turn(records[0]) or 0,
            "reason": visible(reason, 1_000),
            "expected": expected,
            "actual": shown,
        }


def _actual(record: Record, wanted: JsonValue) -> str:
    """Return the call that the scorer read in the failed turn, or the whole reply if it contains no call."""
    turns = turns_in(record)
    read = turns[-1].called if failed_turn(record) else called_in(record)
    calls: list[JsonValue] = [call.model_dump(mode="json") for call in read]
    if calls:
        return _written(in_order_of(wanted, calls[0] if len(calls) == 1 else calls))[:_MAX_LENGTH]
    said = response_of(record)
    return said[:_MAX_LENGTH] if said else "(no answer)"


def in_order_of(wanted: JsonValue, value: JsonValue) -> JsonValue:
    """Return the value with its keys in the order of the expected value, because order does not count."""
    if isinstance(wanted, dict) and isinstance(value, dict):
        names = [*(name for name in wanted if name in value), *(name for name in value if name not in wanted)]
        return {name: in_order_of(wanted.get(name), value[name]) for name in names}
    if isinstance(wanted, list) and isinstance(value, list):
        return [in_order_of(*pair) for pair in zip_longest(wanted[: len(value)], value)]
    return value


def _written(value: JsonValue) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def side_by_side(expected: str, actual: str) -> tuple[list[JsonValue], list[JsonValue]]:
    """Return the lines of both texts, and mark the lines that the other text does not have."""
    left, right = expected.splitlines() or [""], actual.splitlines() or [""]
    lefts: list[JsonValue] = []
    rights: list[JsonValue] = []
    for what, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        kinds = ("", "") if what == "equal" else ("remove", "add")
        lefts += [{"text": line, "kind": kinds[0]} for line in left[a:b]]
        rights += [{"text": line, "kind": kinds[1]} for line in right[c:d]]
    return lefts, rights


def evidence_of(outcome: CallOutcome, coverage: Coverage | None, rounds: int) -> GateEvidence:
    """Return the evidence for the suite's gate. It fails if too little is covered, however good the answers are."""
    short = [coverage.sentence] if coverage is not None and not coverage.passed else []
    said = "; ".join((verdict_sentence(outcome, rounds), *short))
    return replace(outcome.evidence, broken=short, sentence=said)


def coverage_blocks(coverage: Coverage) -> Iterator[Block]:
    """Describe what the cases exercise, for Markdown and the terminal."""
    lacks = f"; no case for {coverage.first_gaps}" if coverage.uncovered else ""
    yield TextBlock(text=f"{coverage.sentence}{lacks}.", tone="plain" if coverage.passed else "fail")


def uncovered_blocks(coverage: Coverage) -> Iterator[Block]:
    """Describe coverage in full: the figures, and a table of what no case exercises."""
    yield TextBlock(text=f"{coverage.sentence}.", tone="plain" if coverage.passed else "fail")
    rows: list[tuple[Value, ...]] = [
        (
            visible(each.tool, _NAME),
            visible(each.server, _NAME),
            "no case at all" if each.noCase else visible(", ".join(each.parameters), 500) or "–",
            "; ".join(
                f"{visible(name, _NAME)}: {visible(json.dumps(values, ensure_ascii=False)[1:-1], 300)}"
                for name, values in each.enumValues.items()
            )
            or "–",
        )
        for each in coverage.uncovered
    ]
    if rows:
        yield Table(columns("Tool", "Server", "Parameters", "Enum values"), tuple(rows), "What no case exercises")


def _tools_section(plan: Plan, settings: McpPlanSettings) -> Section:
    """Return the offered tools, and in `json` mode the system prompt."""
    rows = tuple(
        (visible(tool.name, _NAME), visible(tool.server, _NAME), visible(tool.description, 500) or "–")
        for tool in settings.tools
    )
    blocks: list[Block] = [Table(columns("Tool", "Server", "Description"), rows, "Offered tools")]
    if mode_of(plan) == "json":
        text = system_prompt(settings.tools, sequences=settings.sequences)
        blocks.append(Code(text=text[:200_000], language="markdown", title="System prompt"))
    return Section(id="tools", title="Tools", lead=f"Hash: {settings.tools_hash}", blocks=tuple(blocks))


_MAX_REASONS = 3
_MAX_NAMES = 2
_MAX_REASON_LENGTH = 300


def reasons(outcome: CallOutcome, most: int = _MAX_REASONS) -> Iterator[Block]:
    """Yield the most frequent reasons of failed rounds, and then of lost rounds."""
    records = [record for cell in outcome.cells for record in cell.records if record.verdict is not Verdict.PASS]
    for title, counted in (("Why rounds failed", True), ("Lost rounds, which count neither way", False)):
        own = [record for record in records if record.verdict.counts is counted]
        if own:
            yield heading(title, level=4)
            yield BulletList(tuple(_most_frequent(own, most)))


def _most_frequent(records: Sequence[Record], most: int) -> Iterator[Phrase]:
    """Yield the most frequent reasons with the cases and models that have them."""
    grouped: dict[str, list[Record]] = {}
    for record in records:
        reason = record.failure.message if record.failure is not None else failure_reason(record)
        grouped.setdefault((reason or "").removeprefix(f"{record.subject}: ")[:_MAX_REASON_LENGTH], []).append(record)
    by_count = sorted(grouped.items(), key=lambda item: -len(item[1]))
    for reason, own in by_count[:most]:
        models, cases = ([*dict.fromkeys(getattr(record, name) for record in own)] for name in ("subject", "case"))
        where = " (", Quote(_names(cases, "case")), "; ", Quote(_names(models, "model")), ")"
        yield (f"{count_of(len(own), 'round')}: ", Quote(reason), *where)
    if len(by_count) > most:
        rest = sum(len(own) for _, own in by_count[most:])
        others = count_of(len(by_count) - most, "other reason")
        yield f"{count_of(rest, 'round')}: {others}; the report has all"


def _names(names: Sequence[str], kind: str) -> str:
    return ", ".join(visible(name, 40) for name in names) if len(names) <= _MAX_NAMES else count_of(len(names), kind)
