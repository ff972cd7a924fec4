"""Tell a command which runs had damaged lines, whichever of its readers came across them."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_NOTES: ContextVar[dict[str, int] | None] = ContextVar("damage", default=None)


def note_damage(run: str, lines: int) -> None:
    """Note that a reader left out damaged lines of a run. Nothing happens outside `collect_damage`."""
    notes = _NOTES.get()
    if notes is not None and lines:
        notes[run] = lines


@contextmanager
def collect_damage() -> Iterator[dict[str, int]]:
    """Collect how many damaged lines the readers inside find, by run."""
    found: dict[str, int] = {}
    token = _NOTES.set(found)
    try:
        yield found
    finally:
        _NOTES.reset(token)
