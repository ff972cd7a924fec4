"""Give each subject one colour and one shape, which are the same on every page.

They depend on the name alone, because pages are written one by one and passed on: a run's page does not know which
other subjects the index shows. Two subjects may therefore share a colour; names stand beside all marks.
"""

import hashlib
from typing import NamedTuple

from bakeoff.report.formatting import visible

COLOURS, SHAPES = 12, 8
"""The numbers of `--series-…` in the style sheet and of symbols `mark-…` in the page."""

_NAME = 200  # characters, as pages show names


class Mark(NamedTuple):
    """A subject's colour and shape; the colour of controls is a neutral one."""

    colour: int
    shape: int


def mark_of(subject: str, *, control: bool = False) -> Mark:
    """Return the mark of a subject."""
    first, second = hashlib.blake2b(visible(subject, _NAME).encode(errors="replace"), digest_size=2).digest()
    return Mark(COLOURS if control else first % COLOURS, second % SHAPES)
