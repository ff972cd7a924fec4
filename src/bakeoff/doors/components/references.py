"""What each suite's reference does in its own tests: the names that count, known once and kept by content."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bakeoff._version import __version__
from bakeoff.cache import cache_folder
from bakeoff.doors.components.cases import Grading
from bakeoff.doors.components.runners import run_tests
from bakeoff.errors import GraderError
from bakeoff.files import write_atomically
from bakeoff.frozen import Frozen, fingerprint
from bakeoff.toolchains.outcome import TestRun

REFERENCES = "components:references"
"""Their key among a run's resources."""


class ReferenceRun(Frozen):
    """The tests that a reference ran, in their order."""

    names: tuple[str, ...]
    skipped: tuple[str, ...] = ()  # by the suite itself, and so by every candidate

    @property
    def counted(self) -> tuple[str, ...]:
        """All that a component can pass or fail."""
        left_out = set(self.skipped)
        return tuple(name for name in self.names if name not in left_out)


class References:
    """The resource."""

    key = REFERENCES

    @asynccontextmanager
    async def open(self) -> AsyncIterator["OpenReferences"]:
        yield OpenReferences(cache_folder() / "references")


@dataclass(frozen=True, slots=True)
class OpenReferences:
    """References that have been run, in this process or an earlier one."""

    folder: Path
    _known: dict[str, ReferenceRun] = field(default_factory=dict)
    _busy: dict[str, asyncio.Lock] = field(default_factory=dict)

    async def run_of(self, grading: Grading, resources: Mapping[str, Any]) -> ReferenceRun:
        """Run a reference unless that was done before. One that fails its own tests says nothing about a subject."""
        key = _key(grading)
        async with self._busy.setdefault(key, asyncio.Lock()):
            if key not in self._known:
                self._known[key] = self._kept(key) or await self._run(key, grading, resources)
        return self._known[key]

    async def _run(self, key: str, grading: Grading, resources: Mapping[str, Any]) -> ReferenceRun:
        run = await run_tests(grading.reference, grading, resources)
        if (why := reference_problem(grading, run)) is not None:
            raise GraderError(
                f"suite {grading.suite!r}: its reference does not pass its own tests ({why}): "
                f"`bakeoff verify --suite {grading.suite}` tells more"
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
    """Why a run cannot serve as a suite's reference."""
    if run.tampered is not None or run.error is not None:
        return run.tampered or run.error
    if run.stop != "finished":
        return f"it was ended: {run.stop}"
    failed = [test.name for test in run.tests if test.state == "failed"]
    if failed:
        return f"failed: {', '.join(failed)}"
    if grading.has_canary and not run.canary_seen:
        return "a test that had to fail was not seen failing"
    return None if any(test.state == "passed" for test in run.tests) else "no test ran"


def _key(grading: Grading) -> str:
    graded = json.dumps(
        [grading.runner, grading.command, grading.report, grading.canary, grading.component], sort_keys=True
    )
    return fingerprint(__version__, graded, grading.files, grading.reference)
