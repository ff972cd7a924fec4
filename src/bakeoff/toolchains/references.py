"""What references do in their own tests: the names that count, found once and kept by content."""

import asyncio
import contextlib
import platform
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from bakeoff._kernel.cache import cache_folder
from bakeoff._kernel.files import write_atomically
from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff._version import __version__
from bakeoff.toolchains.outcome import TestRun

_SOURCES = Path(__file__).parent
_WRITTEN = {".py", ".js", ".mjs", ".cjs", ".ts", ".json", ".svelte"}


class ReferenceRun(FrozenModel):
    """The tests that a reference ran, in their order."""

    names: tuple[str, ...]
    skipped: tuple[str, ...] = ()  # by the tests themselves, and so by every candidate
    confirmed: bool = True  # whatever runs tests a second time can run these, so it counts for candidates, too

    @property
    def counted(self) -> tuple[str, ...]:
        """All that a candidate can pass or fail."""
        left_out = set(self.skipped)
        return tuple(name for name in self.names if name not in left_out)


@dataclass(frozen=True, slots=True)
class References:
    """The resource: its key among a run's resources, and the folder's name in the cache."""

    key: str
    folder: str

    @asynccontextmanager
    async def open(self) -> AsyncIterator["OpenReferences"]:
        yield OpenReferences(cache_folder() / self.folder)


@dataclass(frozen=True, slots=True)
class OpenReferences:
    """References that have been run, in this process or an earlier one."""

    folder: Path
    _known: dict[str, ReferenceRun] = field(default_factory=dict)
    _busy: dict[str, asyncio.Lock] = field(default_factory=dict)

    async def of(self, key: str, run: Callable[[], Awaitable[ReferenceRun]]) -> ReferenceRun:
        """What is known under a key, or else what `run` finds; nobody runs one that another is running."""
        async with self._busy.setdefault(key, asyncio.Lock()):
            if key not in self._known:
                self._known[key] = self._kept(key) or await self._run(key, run)
        return self._known[key]

    async def _run(self, key: str, run: Callable[[], Awaitable[ReferenceRun]]) -> ReferenceRun:
        reference = await run()
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
    names = tuple(test.name for test in run.tests)
    return ReferenceRun(names=names, skipped=skipped, confirmed=run.unconfirmed is None)


def reference_problem(run: TestRun, *, canary: bool) -> str | None:
    """Why a run cannot serve as a reference; `canary` says whether a test that must fail is among its tests."""
    if run.tampered is not None or run.error is not None:
        return run.tampered or run.error
    if run.stop != "finished":
        return f"it was ended: {run.stop}"
    failed = [test for test in run.tests if test.state == "failed"]
    if failed:
        return f"failed: {', '.join(test.name for test in failed)}; {failed[0].message[:500]}".removesuffix("; ")
    if canary and not run.canary_seen:
        return "a test that had to fail was not seen failing"
    return None if any(test.state == "passed" for test in run.tests) else "no test ran"


@cache
def toolchains_digest() -> str:
    """Of all that runs tests here: another runner may give the same tests other names, so nothing is kept across."""
    sources = {
        str(path.relative_to(_SOURCES)): path.read_text(encoding="utf-8")
        for path in sorted(_SOURCES.rglob("*"))
        if path.suffix in _WRITTEN and path.is_file()
    }
    return fingerprint(__version__, sources, platform.python_version())
