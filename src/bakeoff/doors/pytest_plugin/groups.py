"""The items of a suite that differ in nothing but their row."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from bakeoff.doors.pytest_plugin.rows import Row
from bakeoff.doors.pytest_plugin.suite import Described


@dataclass(eq=False, slots=True)
class Group:
    """A suite with one set of parameters."""

    described: Described
    rows: list[Row]
    location: tuple[str, int | None, str]  # file, line, and what stands before the name of an item
    file: Path
    around: tuple[str, str]  # of a row's id in the id of its case
    parameters: str = ""  # of pytest's; the case is the same for all of them
    holder: Callable[[], Any] | None = None  # makes the object that a method is bound to
    serial: str | None = None  # why one case is run at a time
    skipped: str | None = None
    error: BaseException | None = None  # what the user's code raised when it was asked for rows
    places: dict[str, int] = field(default_factory=dict)
    stem: Any = None  # of pytest's ids: what they have in common
    hooks: Any = None  # pytest's, as they are for the file of the suite
    keywords: dict[str, Literal[1]] | None = None  # of reports
    last: Any = None  # the light item that was run last
    reports: bool | None = None  # whether items make reports of their own
    unnoticed: bool | None = None  # whether a phase that does nothing may be left out

    def __post_init__(self) -> None:
        self.places = {row.id: place for place, row in enumerate(self.rows)}

    @property
    def suite(self) -> str:
        """Its name, after that of its class: two classes may have a suite of one name."""
        return f"{self.location[2]}{self.described.name}"

    def case_id(self, row: Row) -> str:
        return f"{self.around[0]}{row.id}{self.around[1]}"


def serial_notes(items: Iterable[object]) -> list[str]:
    """Which suites run one case at a time, and why."""
    groups = dict.fromkeys(group for item in items if isinstance(group := getattr(item, "group", None), Group))
    return [
        f"evals: {group.described.name} runs one case at a time: {group.serial}" for group in groups if group.serial
    ]
