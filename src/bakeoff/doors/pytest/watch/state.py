"""What a cycle is told and what it tells, and which tests a change concerns."""

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.watch import GONE
from bakeoff.doors.pytest.watch.reads import ROWS
from bakeoff.doors.pytest.watch.source import ANYTHING
from bakeoff.report.suites.outcomes import EvalOutcome

_FOR_ALL = ("conftest.py", "__init__.py")  # new files with these names change others


class KeptTest(FrozenModel):
    """The last result of a test."""

    fingerprint: str  # of its row, and of what it uses in its own file
    failed: bool = False
    outcomes: tuple[EvalOutcome, ...] = ()


class Cycle(FrozenModel):
    """What a cycle is told."""

    number: int
    all: bool = True
    stale: tuple[str, ...] = ()  # test files that use something that has changed
    tests: dict[str, KeptTest] = {}

    def keeps(self, nodeid: str, file: str, fingerprint: str) -> bool:
        """Tell whether a test need not be run again."""
        known = self.tests.get(nodeid)
        if self.all or known is None:
            return False
        return not known.failed and known.fingerprint == fingerprint and file not in self.stale


class WatchMessages(FrozenModel):
    """What a cycle tells at its end."""

    complete: bool = True  # everything could be collected
    run: str | None = None  # the folder in which it is kept
    tests: dict[str, KeptTest] = {}
    imports: dict[str, frozenset[str]] = {}
    reads: dict[str, frozenset[str]] = {}

    def after(self, earlier: Self) -> Self:
        """Return this with the files that earlier cycles have used: a cycle runs only some of the tests."""
        imports = {test: files | earlier.imports.get(test, frozenset()) for test, files in self.imports.items()}
        reads = {path: by | self.reads.get(path, frozenset()) for path, by in earlier.reads.items()}
        return self.model_copy(update={"imports": imports, "reads": {**self.reads, **reads}})

    @property
    def files(self) -> set[str]:
        """Return all files whose changes count, besides source files of the project."""
        imported = (file for files in self.imports.values() for file in files)
        return {*self.reads, *self.imports, *imported} - {ANYTHING}


def stale_tests(changed: Mapping[str, str | None], told: WatchMessages) -> set[str] | None:
    """Return the test files that use a changed file; None if every test may.

    A test file that has changed itself is not among them, unless others import it: its tests are compared one by one.

    Args:
        changed: The paths that changed, with their states before.
        told: What the cycles before have used.
    """
    stale: set[str] = set()
    for path, before in changed.items():
        readers = told.reads.get(path, frozenset({path}) if path.endswith(".py") else frozenset())
        for reader in readers - {ROWS}:
            users = _users(reader, told)
            is_new = reader == path and before in (None, GONE)
            if reader == ANYTHING or (not users and not is_new and reader not in told.imports):
                return None
            if is_new and Path(path).name in _FOR_ALL:
                return None
            stale |= users
            stale |= {reader} if reader != path and reader in told.imports else set()  # a test file and what it reads
            stale |= {test for test, files in told.imports.items() if ANYTHING in files and test != path}
    return stale


def _users(module: str, told: WatchMessages) -> set[str]:
    return {test for test, files in told.imports.items() if module in files}
