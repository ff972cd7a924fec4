"""Name the subjects of a session's run: the functions under test, once for each set of pytest's parameters.

A function has no stable identity beyond its module, its qualified name and its source: these are a subject's key.
Suites with the same parameters, such as the names of models, share a subject, so that their scores stand together.
"""

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from bakeoff._kernel.model import fingerprint
from bakeoff.plan import SubjectSpec

if TYPE_CHECKING:
    from bakeoff.doors.pytest_plugin.groups import Group

SUBJECT = "evals"
"""The name of the subject without parameters: the project as it is."""

MOST_SUBJECTS = 20
"""A suite with more sets of parameters than this treats them as cases, not as subjects."""


def subject_name(parameters: str) -> str:
    """Return the name of the subject with these parameters, as pytest writes them in the id of a test."""
    return parameters if parameters and parameters != SUBJECT else f"[{parameters}]" if parameters else SUBJECT


def subjects_of(groups: "Iterable[Group]") -> dict[str, SubjectSpec]:
    """Return the subjects by their parameters. There is always one without."""
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
