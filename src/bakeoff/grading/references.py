"""Run the tests of each case on its reference, and record which tests count for answers."""

import asyncio
import contextlib
import platform
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from bakeoff import toolchains
from bakeoff._kernel.environment import cache_folder
from bakeoff._kernel.files import read_file, write_atomically
from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff._version import __version__
from bakeoff.errors import GraderError, InfraError
from bakeoff.grading.cases import GradedCase, confirming_runner, installation_of, run_tests, type_errors
from bakeoff.grading.twins import Twins, find_twins
from bakeoff.record import ProvenTests
from bakeoff.toolchains.outcome import TestRun

REFERENCES = "references"
_ADVICE = (
    "only a negation of them fails: compare what the answer gives with a literal value",
    "no other expected value makes the reference fail: write what they expect as a literal value in an assertion",
)
_NO_TWINS = (
    "nothing that they expect could be changed: twins are made of tests for pytest, unittest, Jest and Vitest, and of "
    "those in Go, Rust, Java and C++, which expect literal values"
)
_SOURCE_SUFFIXES = {".py", ".js", ".mjs", ".cjs", ".ts", ".json", ".svelte"}


class ReferenceRun(FrozenModel):
    """The tests that a reference ran, in order."""

    names: tuple[str, ...]
    skipped: tuple[str, ...] = ()  # skipped by themselves, and so for every answer
    twins: Twins = Twins()
    broken: tuple[str, ...] = ()
    """Tests that the reference itself fails, by the suite's own fault. They count, and the suite is unfit."""
    shown: tuple[str, ...] = ()  # visible tests, if a share of the tests is hidden
    type_errors: str | None = None  # if the reference has any, those of answers do not count
    confirming: "ReferenceRun | None" = None
    """For a case with a command: its run with our own runner, which confirms the command, if it passes there."""

    @classmethod
    def of(cls, run: TestRun) -> Self:
        """Make the record from a test run of the reference, without twins."""
        skipped, broken = ([test.name for test in run.tests if test.state == state] for state in ("skipped", "failed"))
        return cls(names=tuple(test.name for test in run.tests), skipped=tuple(skipped), broken=tuple(broken))

    @property
    def proven(self) -> tuple[str, ...]:
        """Return the proven tests. An object that equals everything, or nothing, fails them."""
        run = self.confirming or self
        return tuple(run.names[place] for place in sorted(run.twins.proven))

    @property
    def unproven(self) -> tuple[str, ...]:
        """Return the unproven tests. An object that equals everything may pass them."""
        run = self.confirming or self
        proven, counted = run.twins.proven, set(run.counted)
        return tuple(name for place, name in enumerate(run.names) if place not in proven and name in counted)

    @property
    def proven_tests(self) -> ProvenTests:
        """Return how many of the counted tests are proven."""
        total = len((self.confirming or self).counted)
        return ProvenTests(proven=total - len(self.unproven), total=total)

    @property
    def advice(self) -> dict[str, tuple[str, ...]]:
        """Return advice on how to make tests provable, with the names of the tests."""
        run = self.confirming or self
        if not run.twins.twins:
            return {_NO_TWINS: self.unproven} if self.unproven else {}
        negated = {run.names[place] for place in run.twins.places("negation")}
        parts = [tuple(name for name in self.unproven if (name in negated) is wanted) for wanted in (True, False)]
        return {advice: names for advice, names in zip(_ADVICE, parts, strict=True) if names}

    @property
    def hidden(self) -> Counter[str]:
        """Return the counted tests that are hidden from the subject."""
        return Counter(self.counted) - Counter(self.shown) if self.shown else Counter()

    @property
    def counted(self) -> tuple[str, ...]:
        """Return the tests that an answer can pass or fail."""
        skipped = set(self.skipped)
        return tuple(name for name in self.names if name not in skipped)


@dataclass(frozen=True, slots=True)
class References:
    """The resource that keeps the runs of references.

    Args:
        verify_command: The command, without the case name, that shows why a reference fails.
    """

    verify_command: str
    key = REFERENCES

    @asynccontextmanager
    async def open(self) -> AsyncIterator["OpenReferences"]:
        yield OpenReferences(cache_folder() / "references", self.verify_command)


@dataclass(frozen=True, slots=True)
class OpenReferences:
    """The runs of references, kept in memory and in a cache on disk."""

    folder: Path
    verify_command: str
    _known: dict[str, ReferenceRun] = field(default_factory=dict)
    _locks: dict[str, asyncio.Lock] = field(default_factory=dict)

    async def get(self, key: str, run: Callable[[], Awaitable[ReferenceRun]]) -> ReferenceRun:
        """Return the stored run of a key, or call `run`. Equal keys never run at the same time."""
        async with self._locks.setdefault(key, asyncio.Lock()):
            if key not in self._known:
                path, stored = self.folder / f"{key}.json", None
                with contextlib.suppress(OSError, ValidationError):
                    stored = ReferenceRun.model_validate_json(read_file(path))
                if stored is None or not stored.counted:
                    stored = await run()
                    with contextlib.suppress(OSError):  # an unwritable cache only costs time
                        write_atomically(path, stored.model_dump_json().encode())
                self._known[key] = stored
        return self._known[key]


async def reference_of(case: GradedCase, resources: Mapping[str, Any]) -> ReferenceRun | None:
    """Return the run of the reference, or None. Raise `GraderError` if it fails its own tests."""
    if not case.reference:
        return None

    async def run() -> ReferenceRun:
        found = await run_tests(case, case.reference, resources)
        if (why := reference_problem(found)) is not None and not is_partly_usable(case, found):
            raise GraderError(
                f"case {case.name!r}: its reference does not pass its own tests ({why}): "
                f"`{resources[REFERENCES].verify_command} {case.name}` shows more"
            )
        return await _completed(case, found, resources)

    return await _stored(case, resources, run)


async def keep_reference(case: GradedCase, run: TestRun, resources: Mapping[str, Any]) -> ReferenceRun:
    """Return the stored run of the reference. If there is none, search for twins and store it."""
    return await _stored(case, resources, lambda: _completed(case, run, resources))


async def always_skipped(case: GradedCase, resources: Mapping[str, Any]) -> frozenset[str]:
    """Return, for a case without a reference, the tests that are always skipped."""

    async def run() -> ReferenceRun:
        return ReferenceRun.of(await run_tests(case, {}, resources))

    return frozenset((await _stored(case, resources, run)).skipped)


async def _stored(
    case: GradedCase, resources: Mapping[str, Any], run: Callable[[], Awaitable[ReferenceRun]]
) -> ReferenceRun:
    references: OpenReferences = resources[REFERENCES]
    return await references.get(reference_key(case, installation_of(case, resources)), run)


def reference_key(case: GradedCase, installation: str) -> str:
    """Return a key of all data that affects which tests a reference runs, and their names."""
    settings = case.settings.model_dump(mode="json", exclude={"seconds", "validator"})
    return fingerprint(grading_digest(), installation, settings, case.files, case.reference)


async def _completed(case: GradedCase, run: TestRun, resources: Mapping[str, Any]) -> ReferenceRun:
    """Return the run of the reference with all data that answers are compared with."""
    found = await _with_twins(case, run, resources)
    shown = TestRun()  # the tests that the subject sees
    if case.settings.shown_tests:
        shown = await run_tests(case, case.reference, resources, case.settings.shown_tests)
        if (why := reference_problem(shown)) is not None:  # the hidden tests were not removed cleanly
            raise GraderError(f"case {case.name!r}: its reference does not pass without the hidden tests ({why})")
    names, types = tuple(test.name for test in shown.tests), await type_errors(case, case.reference, resources)
    return found.model_copy(update={"shown": names, "type_errors": types})


async def _with_twins(case: GradedCase, run: TestRun, resources: Mapping[str, Any]) -> ReferenceRun:
    """Return the run of the reference, with the twins of its tests.

    If an exercise has a command, the twins are made for our own, faster runner, which confirms the
    command. If our runner cannot run the reference, the twins are made for the command.
    """
    if case.settings.command and not case.is_exercise:
        return ReferenceRun.of(run)
    own = await _run_confirming(case, resources)
    plain = own or run
    seconds = min(case.settings.seconds, max(10.0, 5 * plain.seconds))  # a perturbed test may never end

    async def run_reference(tests: Mapping[str, str]) -> TestRun:
        return await run_tests(case, case.reference, resources, tests, seconds=seconds, confirm=own is not None)

    twins = await find_twins(case.test_files, plain, run_reference)
    found = ReferenceRun.of(plain).model_copy(update={"twins": twins})
    return found if own is None else ReferenceRun.of(run).model_copy(update={"confirming": found})


async def _run_confirming(case: GradedCase, resources: Mapping[str, Any]) -> TestRun | None:
    """Return the reference's run in our own runner; None if it fails there."""
    if confirming_runner(case, resources) is None:
        return None
    try:
        run = await run_tests(case, case.reference, resources, confirm=True)
    except InfraError as error:
        if not error.permanent:
            raise
        return None
    return run if reference_problem(run) is None else None


def is_partly_usable(case: GradedCase, run: TestRun) -> bool:
    """Return True if some tests count although the reference fails others, as in a suite."""
    ran = run.tampered is None and run.error is None and run.stop == "finished"
    return ran and not case.is_exercise and any(test.state == "passed" for test in run.tests)


def reference_problem(run: TestRun) -> str | None:
    """Return why a run cannot serve as a reference, or None."""
    if run.tampered is not None or run.error is not None:
        return run.tampered or run.error
    if run.stop != "finished":
        return f"it was ended: {run.stop}"
    failed = [test for test in run.tests if test.state == "failed"]
    if failed:
        return f"failed: {', '.join(test.name for test in failed)}; {failed[0].message[:500]}".removesuffix("; ")
    return None if any(test.state == "passed" for test in run.tests) else "no test ran"


@cache
def grading_digest() -> str:
    """Return a digest of the code that runs and grades tests. Other code may give other results."""
    folder = Path(toolchains.__file__).parent
    sources = {
        str(path.relative_to(folder.parent)): path.read_text(encoding="utf-8")
        for path in sorted([*folder.rglob("*"), *Path(__file__).parent.rglob("*")])
        if path.suffix in _SOURCE_SUFFIXES and path.is_file()
    }
    return fingerprint(__version__, sources, platform.python_version())
