"""Group the items of a suite that differ only in their row, and name the subjects that the groups stand for.

The subjects of a session's run are the functions under test, once for each set of pytest's parameters. A function has
no stable identity beyond its module, its qualified name and its source: these are a subject's key. Suites with the same
parameters, such as the names of models, share a subject, so that their scores stand together.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from bakeoff._kernel.model import fingerprint
from bakeoff.doors.pytest.rows import EvalRow
from bakeoff.doors.pytest.suite import DescribedSuite
from bakeoff.plan import SubjectSpec
from bakeoff.report.suites.outcomes import subject_name

MAX_SUBJECTS = 20
"""The number of sets of parameters above which a suite treats them as cases instead of subjects."""


@dataclass(eq=False, slots=True)
class Group:
    """A suite with one set of parameters."""

    described: DescribedSuite
    rows: list[EvalRow]
    location: tuple[str, int | None, str]  # file, line, and what stands before the name of an item
    file: Path
    around: tuple[str, str]  # the parts of a case's id before and after the row's id
    parameters: str = ""  # of pytest's; the case is the same for all of them
    holder: Callable[[], Any] | None = None  # makes the object that a method is bound to
    serial: str | None = None  # why one case is run at a time
    captures: bool = False  # its function reads its own output or logs, with a fixture of pytest
    borrows: bool = False  # its cases run on the loop of their async fixtures
    lasting: bool = True  # its fixtures stay the same for the whole session
    skipped: str | None = None
    hooks: Any = None  # pytest's hooks for the file of the suite
    scorers: Mapping[str, str] = field(default_factory=dict)  # digests by name
    following: Any = None  # the item after the running one; xdist has already taken it from its queue

    @property
    def suite(self) -> str:
        """Return the suite's name with its class, as classes may have suites of the same name."""
        return f"{self.location[2]}{self.described.name}"

    def case_id(self, row: EvalRow) -> str:
        """Return the id of a row in the run, which is the same for all sets of parameters that are subjects."""
        return f"{self.around[0]}{row.id}{self.around[1]}"


def by_group(items: Iterable[Any]) -> dict[Group, list[Any]]:
    """Return the suite evals among the items, by group."""
    found: dict[Group, list[Any]] = {}
    for item in items:
        if isinstance(group := getattr(item, "group", None), Group):
            found.setdefault(group, []).append(item)
    return found


def serial_notes(items: Iterable[object]) -> list[str]:
    """Return a line for each suite that runs one case at a time, with the reason."""
    serial = (group for group in by_group(items) if group.serial)
    return [f"evals: {group.described.name} runs one case at a time: {group.serial}" for group in serial]


def subjects_of(groups: Iterable[Group]) -> dict[str, SubjectSpec]:
    """Return the subjects by their parameters; one of them always has no parameters."""
    functions: dict[str, dict[str, JsonValue]] = {"": {}}
    for group in groups:
        functions.setdefault(group.parameters, {})[group.around[0].rstrip("[")] = _identity(group.described.function)
    return {
        parameters: SubjectSpec(
            kind="eval", name=subject_name(parameters), options={"functions": found} if found else {}
        )
        for parameters, found in functions.items()
    }


def _identity(function: Callable[..., Any]) -> dict[str, JsonValue]:
    inside = inspect.unwrap(function)
    try:
        source = fingerprint(inspect.getsource(inside))[:16]
    except (OSError, TypeError):  # made at run time, or not a function
        source = "unknown"
    kind = type(inside)
    return {
        "module": str(getattr(inside, "__module__", kind.__module__)),
        "name": str(getattr(inside, "__qualname__", kind.__qualname__)),
        "source": source,
    }
