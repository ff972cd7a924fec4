"""How numbers and untrusted texts are written for people."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bakeoff.stats import Interval

UNKNOWN = "–"


def visible(text: str, longest: int = 200) -> str:
    """Untrusted text on one line: control characters are shown, never emitted."""
    shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text[: longest + 1])
    return shown if len(text) <= longest else f"{shown[:longest]}…"


def percent(share: float | None) -> str:
    return UNKNOWN if share is None else f"{100 * share:.1f} %"


def span(interval: "Interval | None") -> str:
    return "undefined" if interval is None else f"{100 * interval.low:.1f}–{100 * interval.high:.1f}"


def cost(dollars: float | None) -> str:
    if dollars is None:
        return UNKNOWN
    from bakeoff.models.prices import format_cost

    return format_cost(dollars)


def duration(seconds: float | None) -> str:
    if seconds is None:
        return UNKNOWN
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def judging_note(tokens: int, usd: float | None) -> str:
    """What scorers used, which is nobody's score and is paid for all the same."""
    return f"judges used {tokens:,} tokens ({cost(usd)}), which are in no subject's cost"


def replay_note(replayed: int, finished: int) -> str:
    """What a reader of costs and times has to know."""
    return f"{replayed:,} of {finished:,} trials were answered from recordings"
