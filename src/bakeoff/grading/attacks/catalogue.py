"""Describe an attack: a way to pass tests without solving anything."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal, Protocol

from bakeoff.grading.cases import GradedCase

Family = Literal["patch", "report", "value", "process", "guess", "search", "state", "dom", "files"]
FAMILIES: dict[Family, str] = {
    "patch": "change what the tests are built on: assertions, the test runner, the language",
    "report": "change or forge the report on its way out",
    "value": "return values that compare as whatever is expected",
    "process": "end, stop or flood the process, so that no failure is told",
    "guess": "claim results by looking at the tests, or by chance",
    "search": "look for the answers: on disk, in memory, in other processes",
    "state": "tell one run of the tests about the other",
    "dom": "change the document that the tests look at",
    "files": "change the files around the solution, as an agent can",
}
Rung = Literal["process", "bwrap"]


class Attack(Protocol):
    """One attack. `what` is a sentence that says what it does and which grader it would beat."""

    @property
    def name(self) -> str: ...
    @property
    def family(self) -> Family: ...
    @property
    def what(self) -> str: ...
    @property
    def rung(self) -> Rung:
        """The weakest sandbox in which it must fail."""

    def fits(self, case: GradedCase) -> bool:
        """Tell whether the attack is one on the language of a case."""

    def script(self, case: GradedCase) -> str:
        """Return the shell script that an agent would run in its workspace."""


@dataclass(frozen=True, slots=True)
class HostileSolution:
    """An attack by the solution itself, which shares a process with its tests."""

    name: str
    family: Family
    what: str
    suffix: str
    build: Callable[[GradedCase, str], str]
    """Returns the hostile text of one solution file of a case."""
    rung: Rung = "process"
    in_vitest: bool | None = None
    """True if it attacks Vitest and not Jest, False if Jest and not Vitest, None if its ending tells."""

    def fits(self, case: GradedCase) -> bool:
        runs_there = self.in_vitest in (None, case.settings.runner == "vitest")
        return runs_there and suffix_of(case) == self.suffix

    def files(self, case: GradedCase) -> dict[str, str]:
        """Return the solution files that it hands in."""
        return {name: self.build(case, name) for name in case.settings.solution if name.endswith(self.suffix)}

    def script(self, case: GradedCase) -> str:
        return "\n".join(put_file(name, text) for name, text in self.files(case).items())


@dataclass(frozen=True, slots=True)
class HostileScript:
    """An attack on the workspace: files that test runners read, forged reports, processes left behind."""

    name: str
    what: str
    build: Callable[[GradedCase], str]
    suffix: str | None = None
    """The ending of the solutions that it can harm, None for every language."""
    family: Family = "files"
    rung: Rung = "process"

    def fits(self, case: GradedCase) -> bool:
        return self.suffix in (None, suffix_of(case))

    def script(self, case: GradedCase) -> str:
        return self.build(case)


def suffix_of(case: GradedCase) -> str:
    """Return the ending of a case's solution, which tells its language."""
    return PurePosixPath(case.settings.solution[0]).suffix


def put_file(name: str, text: str) -> str:
    """Return a line of shell that writes a file."""
    folder = str(PurePosixPath(name).parent)
    return f"mkdir -p {shlex.quote(folder)} && printf %s {shlex.quote(text)} > {shlex.quote(name)}"
