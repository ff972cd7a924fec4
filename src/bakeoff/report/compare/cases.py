"""Find what changed in one case: its numbers, and its output, tools, transcript and files line by line."""

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Literal

from pydantic import JsonValue

from bakeoff._kernel.model import FrozenModel
from bakeoff.record import NO_USAGE, Record, ToolCall, Transcript
from bakeoff.report.formatting import as_text
from bakeoff.report.reasons import why
from bakeoff.report.run_records import RunRecords
from bakeoff.stats.differences import UNCHANGED
from bakeoff.verdict import Verdict

Outcome = Literal["win", "tie", "loss", "not scored"]

_MAX_TEXT_LENGTH = 20_000  # characters of a text that are compared
_MAX_LINES = 400
_SHOWN_LINES = 60  # of one difference
_MAX_LINE_LENGTH = 300
_MAX_FILES = 10


class Side(FrozenModel):
    """The rounds of a case in one arm."""

    rounds: int
    score: float | None
    verdicts: dict[Verdict, int]
    cost: float | None
    seconds: float | None
    tokens: int
    tool_calls: float  # per round, like cost, time and tokens
    why: str = ""  # of the first round that did not pass


class CaseChange(FrozenModel):
    """One case in both arms, and the change of its score."""

    case: str
    outcome: Outcome
    baseline: Side
    candidate: Side

    @property
    def difference(self) -> float | None:
        """Return candidate minus baseline; None if either has no score."""
        if self.baseline.score is None or self.candidate.score is None:
            return None
        return self.candidate.score - self.baseline.score


class TextChange(FrozenModel):
    """A unified diff, cut to a readable length."""

    what: str
    lines: tuple[str, ...]


class CaseDetail(FrozenModel):
    """The round of a case that best shows what changed."""

    case: str
    round: int
    changes: tuple[TextChange, ...]


def case_change(case: str, baseline: RunRecords, before: str, candidate: RunRecords, after: str) -> CaseChange:
    """Compare the rounds of one case by subject `before` with the rounds by subject `after`."""
    old, new = _side(case, baseline, before), _side(case, candidate, after)
    outcome: Outcome = "not scored"
    if old.score is not None and new.score is not None:
        difference = new.score - old.score
        outcome = "tie" if abs(difference) <= UNCHANGED else "win" if difference > 0 else "loss"
    return CaseChange(case=case, outcome=outcome, baseline=old, candidate=new)


def case_detail(case: str, baseline: RunRecords, before: str, candidate: RunRecords, after: str) -> CaseDetail | None:
    """Compare the first round of a case that ended differently, or else the first common round."""
    chosen = _telling_pair(baseline.rounds(before, case), list(candidate.rounds(after, case)))
    if chosen is None:
        return None
    old, new = chosen
    return CaseDetail(case=case, round=old.round, changes=tuple(_changes(old, new)))


def _side(case: str, records: RunRecords, subject: str) -> Side:
    verdicts: Counter[Verdict] = Counter()
    usage, seconds, timed, calls, reason = NO_USAGE, 0.0, 0, 0, ""
    for record in records.rounds(subject, case):
        verdicts[record.verdict] += 1
        usage += record.used
        seconds += record.seconds
        timed += record.timed
        calls += len(record.transcript.tool_calls) if record.transcript else 0
        if not reason and record.verdict is not Verdict.PASS:
            reason = why(record)
    rounds = verdicts.total()
    return Side(
        rounds=rounds,
        score=records.case_verdict(subject, case).score,
        verdicts=dict(verdicts),
        cost=None if usage.cost is None or not rounds else usage.cost / rounds,
        seconds=seconds / timed if timed else None,
        tokens=usage.tokens // rounds if rounds else 0,
        tool_calls=calls / rounds if rounds else 0.0,
        why=reason,
    )


def _telling_pair(baseline: Iterable[Record], candidate: list[Record]) -> tuple[Record, Record] | None:
    others = {record.round: record for record in candidate}
    first = None
    for record in baseline:
        other = others.get(record.round)
        if other is not None and record.verdict is not other.verdict:
            return record, other
        if other is not None and first is None:
            first = record, other
    return first


def _changes(old: Record, new: Record) -> Iterator[TextChange]:
    before, after = old.transcript or Transcript(), new.transcript or Transcript()
    pairs = [
        ("output", as_text(before.output), as_text(after.output)),
        ("tools", _tools(before), _tools(after)),
        ("transcript", _said(before), _said(after)),
    ]
    names = sorted(old.artefacts.keys() | new.artefacts.keys())
    pairs += [(f"file {name}", old.artefacts.get(name, ""), new.artefacts.get(name, "")) for name in names[:_MAX_FILES]]
    for what, was, now in pairs:
        if lines := text_difference(was, now):
            yield TextChange(what=what, lines=lines)


def text_difference(was: str, now: str) -> tuple[str, ...]:
    """Return a unified diff of two texts of any size in bounded time; nothing if they are equal."""
    if was == now:
        return ()
    marked = difflib.unified_diff(_lines(was), _lines(now), lineterm="", n=2)
    lines = [line[:_MAX_LINE_LENGTH] for line in islice(marked, 2, None)]  # without the names of the two files
    if not lines and _is_whole(was) and _is_whole(now):
        return ("… only line breaks differ",)
    if not lines:
        return (f"… they differ after the first {_MAX_TEXT_LENGTH:,} characters or {_MAX_LINES} lines",)
    if len(lines) > _SHOWN_LINES:
        return (*lines[:_SHOWN_LINES], f"… {len(lines) - _SHOWN_LINES} more lines")
    return tuple(lines)


def _lines(text: str) -> list[str]:
    return text[:_MAX_TEXT_LENGTH].splitlines()[:_MAX_LINES]


def _is_whole(text: str) -> bool:
    """Tell whether all of a text is compared."""
    return len(text) <= _MAX_TEXT_LENGTH and len(text.splitlines()) <= _MAX_LINES


def _tools(transcript: Transcript) -> str:
    return "\n".join(f"{call.name}{' (error)' if call.error is not None else ''}" for call in transcript.tool_calls)


def _said(transcript: Transcript) -> str:
    """Return every step in a few lines, so that a diff shows where two conversations diverge."""
    lines = []
    for part in (part for step in transcript.steps for part in step.parts):
        if isinstance(part, ToolCall):
            result = f"error {part.error}" if part.error is not None else _short(part.result)
            lines.append(f"call {part.name} {_short(part.arguments)}\n  gave {result}")
        else:
            lines.append(f"{part.type} {part.text[:_MAX_TEXT_LENGTH]}")
    return "\n".join(lines)


def _short(value: JsonValue) -> str:
    return as_text(value)[:_MAX_LINE_LENGTH].replace("\n", " ")
