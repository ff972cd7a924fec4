"""Group the items of a suite that differ only in their row."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from bakeoff.doors.pytest_plugin.rows import Row
from bakeoff.doors.pytest_plugin.suite import Described

if TYPE_CHECKING:
    import pytest


@dataclass(eq=False, slots=True)
class Group:
    """A suite with one set of parameters."""

    described: Described
    rows: list[Row]
    location: tuple[str, int | None, str]  # file, line, and what stands before the name of an item
    file: Path
    around: tuple[str, str]  # the parts of a case's id before and after the row's id
    parameters: str = ""  # of pytest's; the case is the same for all of them
    holder: Callable[[], Any] | None = None  # makes the object that a method is bound to
    serial: str | None = None  # why one case is run at a time
    skipped: str | None = None
    error: BaseException | None = None  # raised by the user's code when it was asked for rows
    stem: Any = None  # the common part of pytest's ids
    hooks: Any = None  # pytest's hooks for the file of the suite
    keywords: dict[str, Literal[1]] | None = None  # of reports
    last: Any = None  # the light item that was run last
    reports: bool | None = None  # whether items make reports of their own
    unnoticed: bool | None = None  # whether a phase that does nothing may be left out

    @property
    def suite(self) -> str:
        """Return the name of the suite after that of its class: two classes may have a suite of one name."""
        return f"{self.location[2]}{self.described.name}"

    def case_id(self, row: Row) -> str:
        return f"{self.around[0]}{row.id}{self.around[1]}"


def serial_notes(items: Iterable[object]) -> list[str]:
    """Return a line for each suite that runs one case at a time, with the reason."""
    groups = dict.fromkeys(group for item in items if isinstance(group := getattr(item, "group", None), Group))
    return [
        f"evals: {group.described.name} runs one case at a time: {group.serial}" for group in groups if group.serial
    ]


class GroupItem(Protocol):
    """What a session needs to know of an item."""

    group: Group
    row: Row
    session: "pytest.Session"

    def may_be_skipped(self) -> bool:
        """Return whether a mark of the item may keep pytest from running it."""
