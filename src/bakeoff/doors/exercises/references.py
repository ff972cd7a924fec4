"""What each exercise's example solution does in its tests: the names that count, known once and kept by content."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bakeoff._version import __version__
from bakeoff.cache import cache_folder
from bakeoff.doors.exercises.cases import Grading
from bakeoff.doors.exercises.runners import run_tests
from bakeoff.errors import GraderError
from bakeoff.files import write_atomically
from bakeoff.frozen import Frozen, fingerprint
from bakeoff.toolchains.outcome import TestRun

REFERENCES = "exercises:references"


class ReferenceRun(Frozen):
    """The tests that an example ran, in their order."""

    names: tuple[str, ...]
    skipped: tuple[str, ...] = ()  # by the exercise itself, and so by every solution

    @property
    def counted(self) -> tuple[str, ...]:
        left_out = set(self.skipped)
        return tuple(name for name in self.names if name not in left_out)


class References:
    """The resource."""

    key = REFERENCES

    @asynccontextmanager
    async def open(self) -> AsyncIterator["OpenReferences"]:
        yield OpenReferences(cache_folder() / "exercise-references")


@dataclass(frozen=True, slots=True)
class OpenReferences:
    """Examples that have been run, in this process or an earlier one."""

    folder: Path
    _known: dict[str, ReferenceRun] = field(default_factory=dict)
    _busy: dict[str, asyncio.Lock] = field(default_factory=dict)

    async def run_of(self, grading: Grading, resources: Mapping[str, Any]) -> ReferenceRun | None:
        """What the example ran; None where an exercise has none. One that fails its tests says nothing of agents."""
        if not grading.reference:
            return None
        key = _key(grading)
        async with self._busy.setdefault(key, asyncio.Lock()):
            if key not in self._known:
                self._known[key] = self._kept(key) or await self._run(key, grading, resources)
        return self._known[key]

    async def _run(self, key: str, grading: Grading, resources: Mapping[str, Any]) -> ReferenceRun:
        run = await run_tests(grading.reference, grading, resources)
        if (why := reference_problem(grading, run)) is not None:
            raise GraderError(
                f"exercise {grading.exercise!r}: its own example does not pass its tests ({why}): "
                f"`bakeoff agents verify --exercise {grading.exercise}` tells more"
            )
        reference = as_reference(run)
        with contextlib.suppress(OSError):  # a cache that cannot be written only costs time
            write_atomically(self.folder / f"{key}.json", reference.model_dump_json().encode())
        return reference

    def _kept(self, key: str) -> ReferenceRun | None:
        try:
            kept = ReferenceRun.model_validate_json((self.folder / f"{key}.json").read_bytes())
        except (OSError, ValidationError):
            return None
        return kept if kept.counted else None


def as_reference(run: TestRun) -> ReferenceRun:
    skipped = tuple(test.name for test in run.tests if test.state == "skipped")
    return ReferenceRun(names=tuple(test.name for test in run.tests), skipped=skipped)


def reference_problem(grading: Grading, run: TestRun) -> str | None:
    """Why a run cannot serve as an exercise's reference."""
    if run.tampered is not None or run.error is not None:
        return run.tampered or run.error
    if run.stop != "finished":
        return f"it was ended: {run.stop}"
    failed = [test for test in run.tests if test.state == "failed"]
    if failed:
        return f"failed: {', '.join(test.name for test in failed)}; {failed[0].message[:500]}"
    if grading.has_canary and not run.canary_seen:
        return "a test that had to fail was not seen failing"
    return None if any(test.state == "passed" for test in run.tests) else "no test ran"


def _key(grading: Grading) -> str:
    return fingerprint(
        __version__, grading.track, grading.command, grading.tests, grading.files, grading.reference, grading.solution
    )
