"""Format numbers and untrusted texts for people."""

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from pydantic import JsonValue

from bakeoff._kernel.text import count_of, part_of
from bakeoff.record import Usage
from bakeoff.stats.intervals import TOO_SMALL, Interval

UNKNOWN = "–"
NO_INTERVAL = "needs 2 cases"
"""The text shown instead of an interval for fewer than two cases or clusters."""

MAX_TEXT_LENGTH = 1024 * 1024
"""The longest text on a page, in characters; the journal has the rest."""

# Control characters become their pictures; characters that reverse the direction of text become escapes.
_PICTURES = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\n\t"} | {0x7F: "␡"}
_NUMBERS = {
    code: f"\\u{code:04x}"
    for code in (*range(0x80, 0xA0), 0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}
_SHOWN = _PICTURES | _NUMBERS
_UNSHOWN = re.compile("[" + "".join(map(re.escape, map(chr, _SHOWN))) + "]")


def shown(text: str) -> str:
    """Return untrusted multi-line text in a form that is safe to show."""
    text = text.replace("\r\n", "\n")
    cut = len(text) - MAX_TEXT_LENGTH
    text = text[:MAX_TEXT_LENGTH]
    if _UNSHOWN.search(text):
        text = text.translate(_SHOWN)
    return text if cut <= 0 else f"{text}\n… {cut:,} more characters are in the journal"


def as_text(value: JsonValue) -> str:
    """Return any output as text: a string as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, indent=1, ensure_ascii=False)


def sentence(text: str) -> str:
    """Return a text with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."


def percent(share: float | None) -> str:
    """Return a share between 0 and 1 in percent, or a dash if it is unknown."""
    return UNKNOWN if share is None else f"{100 * share:.1f} %"


def points(share: float | None) -> str:
    """Return a difference of scores in percentage points, with its sign."""
    return UNKNOWN if share is None else f"{100 * share:+.1f}"


def p_value(chance: float | None) -> str:
    """Return a p-value with two digits, or a dash if there is none."""
    return UNKNOWN if chance is None else f"{chance:.2g}"


def points_range(interval: Interval | None) -> str:
    """Return the interval of a difference, in points."""
    return f"{points(interval.low)} to {points(interval.high)}" if interval else NO_INTERVAL


def interval_notes(intervals: Iterable[Interval | None]) -> Iterator[str]:
    """Yield how intervals were computed, or that they are rough because there are too few cases."""
    known = [interval for interval in intervals if interval]
    if not all(interval.promised for interval in known):
        yield f"Intervals are rough: {TOO_SMALL}."
    elif known:
        yield f"Intervals: {', '.join(sorted({interval.method for interval in known}))}."


def span(interval: Interval | None) -> str:
    """Return the interval of a score in percent, without the sign."""
    return NO_INTERVAL if interval is None else f"{100 * interval.low:.1f}–{100 * interval.high:.1f}"


def cost(dollars: float | None, *, estimated: bool = False) -> str:
    """Return dollars with as many digits as matter; `≈` marks estimates."""
    if dollars is None:
        return UNKNOWN
    from bakeoff.models.prices import format_cost

    return f"{'≈ ' if estimated else ''}{format_cost(dollars)}"


def token_count(tokens: int, *, estimated: bool = False) -> str:
    """Return a number of tokens; 0 means that they were not counted."""
    return f"{'≈ ' if estimated else ''}{tokens:,}" if tokens else UNKNOWN


def duration(seconds: float | None) -> str:
    """Return seconds in the unit that a person would use."""
    if seconds is None:
        return UNKNOWN
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def utc(seconds: float | None) -> datetime | None:
    """Return a time in UTC, or None if it is unknown or outside the calendar."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def known_cost(usage: Usage, *, estimated: bool = False) -> str:
    """Return the known part of a cost; `≥` says that there are also tokens without a price."""
    text = cost(usage.cost, estimated=estimated)
    return text if usage.cost is None or not usage.unpriced else f"≥ {text}"


def money(usage: Usage, *, estimated: bool = False) -> str:
    """Return a cost in words: the known part, and the number of tokens without a price."""
    if not usage.tokens_without_price:
        return cost(usage.cost, estimated=estimated)
    tokens = f"{count_of(usage.tokens_without_price, 'token')} without a price"
    known = "an unknown amount" if usage.cost is None else f"at least {cost(usage.cost, estimated=estimated)}"
    return f"{known} ({tokens})"


def paid_tile(title: str, usage: Usage, *, estimated: bool = False) -> tuple[str, str, str]:
    """Return the title, cost and tokens of a usage, for the top of a page."""
    left = usage.tokens_without_price
    tokens = f"{token_count(usage.tokens, estimated=estimated)} tokens" if usage.tokens else ""
    return title, known_cost(usage, estimated=estimated), f"{tokens}, {left:,} without a price" if left else tokens


def judging_note(usage: Usage, whose: str = "subject") -> str:
    """Say how many tokens the judges used and what they cost, which is in the cost of no subject or suite."""
    return f"judges used {count_of(usage.tokens, 'token')} for {money(usage)}, which is in no {whose}'s cost"


def replay_note(replayed: int, finished: int) -> str:
    """Say how many trials were answered from recordings, which matters for costs and times."""
    return f"{part_of(replayed, finished, 'trial', 'was/were')} answered from recordings"
