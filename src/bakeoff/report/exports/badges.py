"""Draw badges as SVG, without a service: two texts on two rectangles."""

import unicodedata
from xml.sax.saxutils import escape, quoteattr

from bakeoff._kernel.text import visible
from bakeoff.grading.audit import Audit
from bakeoff.report.formatting import percent
from bakeoff.report.summary import SubjectSummary, Summary

_HEIGHT = 20
_PAD = 6
_MAX_TEXT_LENGTH = 60
_GREY, _GREEN, _AMBER, _RED = "#555", "#2a7d2e", "#8a6100", "#b3261e"  # white text on each has a contrast of 4.5:1


def score_badge(subject: SubjectSummary, label: str | None = None) -> str:
    """Return a badge with a subject's score and interval."""
    interval = subject.interval
    around = f" ({100 * interval.low:.0f}–{100 * interval.high:.0f})" if interval else ""
    return badge(label or subject.subject, f"{percent(subject.score)}{around}", _colour(subject.score))


def run_badge(summary: Summary, label: str | None = None) -> str:
    """Return a badge with the trials that passed. Controls count only if there is nothing else."""
    passed = sum(subject.passed for subject in summary.judged)
    scored = sum(subject.judged for subject in summary.judged)
    of_what = " (controls)" if summary.only_controls else ""
    if summary.threshold is None:
        return badge(label or summary.name, f"{scored} scored, no threshold{of_what}", _GREY)
    share = passed / scored if scored else None
    return badge(label or summary.name, f"{passed}/{scored} passed{of_what}", _colour(share))


def audit_badge(audit: Audit, label: str = "audit") -> str:
    """Return a badge with the cases that are fit for use and the share of mutants that their tests notice."""
    fit, all_cases = len(audit.cases) - len(audit.excluded), len(audit.cases)
    mutants = f", {audit.killed:.0%} of mutants found" if audit.killed is not None else ""
    return badge(label, f"{fit}/{all_cases} fit{mutants}", _colour(fit / all_cases if all_cases else None))


def badge(label: str, value: str, colour: str) -> str:
    """Return a badge with two texts side by side, the left one on grey."""
    left, right = visible(label, _MAX_TEXT_LENGTH), visible(value, _MAX_TEXT_LENGTH)
    first, second = _width(left), _width(right)
    whole = first + second
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{_HEIGHT}" role="img" '
        f"aria-label={quoteattr(f'{left}: {right}')}><title>{escape(f'{left}: {right}')}</title>"
        f'<rect width="{whole}" height="{_HEIGHT}" rx="3" fill="{_GREY}"/>'
        f'<path d="M{first} 0h{second - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{second - 3}z" fill="{colour}"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f"{_text(left, first / 2, first)}{_text(right, first + second / 2, second)}</g></svg>\n"
    )


def _text(text: str, middle: float, room: int) -> str:
    # The fixed length keeps the text inside with any font.
    return f'<text x="{middle:g}" y="14" textLength="{room - 2 * _PAD}">{escape(text)}</text>'


def _width(text: str) -> int:
    """Return the approximate width in Verdana at 11 pixels."""
    wide = sum(12 if unicodedata.east_asian_width(char) in "WF" else 4 if char in "iljt.,:|! " else 7 for char in text)
    return max(8, wide) + 2 * _PAD


def _colour(score: float | None) -> str:
    if score is None:
        return _GREY
    return _GREEN if score >= 0.75 else _AMBER if score >= 0.5 else _RED
