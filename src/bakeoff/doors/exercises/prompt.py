"""What an agent is asked: the task, the exercise's own words, where it stands, and what the user adds."""

import platform
import shutil
import subprocess
from functools import cache

from bakeoff.doors.exercises.exercises import Exercise

_BASE = """\
Solve the programming exercise below by editing files in the current folder.

- Write your solution to {solution}. You may add source files beside {it}.
- Do not change tests, configuration or dependencies: they are replaced by the original ones before your work is graded.
- Every test counts, also those that are marked to be skipped.
- Nobody will answer questions. Decide yourself, finish the work, and stop."""

_SHOWN = 60  # files that are listed
_SECONDS = 10.0


def build_prompt(exercise: Exercise, custom: str | None = None, command: str | None = None) -> str:
    parts = [
        _BASE.format(solution=_listed(exercise.solution), it="it" if len(exercise.solution) == 1 else "them"),
        f"# Exercise: {exercise.name}\n\n{exercise.instructions}",
        _environment(exercise, command),
        *(f"# From the project's {name}\n\n{text}" for name, text in exercise.notes.items()),
    ]
    if custom and custom.strip():
        parts.append(custom.strip())
    return "\n\n".join(parts) + "\n"


def _environment(exercise: Exercise, command: str | None) -> str:
    names = [name for name in exercise.files if not name.startswith(".docs/")]
    more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    lines = [
        f"- Language: {exercise.track.language} ({', '.join(versions(node=exercise.track.node))})",
        f"- Files here: {_listed(names[:_SHOWN])}{more}",
        f"- Tests: {_listed(exercise.tests)}",
    ]
    if test_command := command or exercise.track.command:
        lines.append(f"- Test command: `{test_command}`")
    return "\n".join(["# Environment", "", *lines])


def _listed(names: "tuple[str, ...] | list[str]") -> str:
    return ", ".join(f"`{name}`" for name in names)


@cache
def versions(*, node: bool) -> tuple[str, ...]:
    """Of the languages that an agent finds here."""
    found = [f"Python {platform.python_version()}"]
    program = shutil.which("node") if node else None
    if program is not None:
        try:
            done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return tuple(found)
        found.insert(0, f"Node {done.stdout.strip().removeprefix('v')[:20]}")
    return tuple(found)
