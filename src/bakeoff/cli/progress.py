"""Show the progress of a run: bars on a terminal, or else a line now and then."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Self

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Column

from bakeoff._kernel.clock import Delay
from bakeoff._kernel.text import count_of, part_of, visible
from bakeoff.engine.run_control import RunControl
from bakeoff.plan import Plan
from bakeoff.record import NO_USAGE, Record, Usage
from bakeoff.report.formatting import duration, known_cost
from bakeoff.verdict import LOST, Verdict

_LINE_SECONDS = 10.0
_SAME_SECONDS = 30.0  # between two notes on why trials of one subject wait
_REASON = 200  # characters of a reason
_MAX_SUBJECTS = 12  # that have a bar of their own
_NAME = 28  # characters of a name in front of its bar
_NAMED = 3  # trials in flight that are named


@dataclass(slots=True)
class RunProgress:
    """The number of trials that finished so far, by result."""

    total: int
    subjects: tuple[str, ...] = ()
    control: RunControl = field(default_factory=RunControl)
    before: int = 0  # trials that earlier processes of this run finished
    done: int = 0
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    done_by: Counter[str] = field(default_factory=Counter)
    passed_by: Counter[str] = field(default_factory=Counter)
    spent: Usage = NO_USAGE
    started: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, plan: Plan, control: RunControl) -> Self:
        """Start counting the trials of a plan, and start the clock."""
        return cls(plan.size, tuple(spec.name for spec in plan.subjects), control)

    def add(self, record: Record) -> None:
        """Count a finished trial."""
        verdict = record.verdict
        self.done += 1
        self.verdicts[verdict] += 1
        self.done_by[record.subject] += 1
        if verdict is Verdict.PASS:
            self.passed_by[record.subject] += 1
        if record.spent != NO_USAGE:
            self.spent += record.spent

    @property
    def finished(self) -> int:
        """Return the number of finished trials, including those of earlier processes."""
        return self.before + self.done

    def details(self) -> str:
        """Return the numbers of failed, lost and waiting trials, the cost, and the remaining time."""
        parts = [f"{self.verdicts[Verdict.FAIL] + self.verdicts[Verdict.TIMEOUT]} failed"]
        if lost := sum(self.verdicts[verdict] for verdict in LOST):
            parts.append(f"{lost} lost")
        if delays := [*self.control.delays.values()]:
            longest = max(delays, key=lambda delay: delay.most_seconds)
            reason = visible(longest.reason, 80)
            parts.append(f"{len(delays)} waiting, at most {duration(longest.most_seconds)} ({reason})")
        if self.spent.cost is not None:
            parts.append(known_cost(self.spent))
        if (decisions := self.control.decisions) is not None:
            parts.append(f"{part_of(decisions.decided, decisions.pairs, 'pair')} decided")
        if self.done and self.finished < self.total:
            left = (time.monotonic() - self.started) / self.done * (self.total - self.finished)
            parts.append(f"{'about' if decisions is None else 'at most'} {duration(left)} left")
        return ", ".join(parts)

    def about(self, subject: str) -> str:
        """Return the results of one subject so far, and the cases that it is working on."""
        cases = [visible(case, _NAME) for name, case in list(self.control.in_flight.values()) if name == subject]
        busy = f"; now {_few(cases)}" if cases else ""
        return f"{self.passed_by[subject]:,} passed{busy}"


def _few(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


@asynccontextmanager
async def show_progress(console: Console, progress: RunProgress) -> AsyncIterator[Callable[[], None]]:
    """Show bars or lines, as the output requires. Call the yielded function after each record."""
    if console.is_terminal:
        with Bars(console, progress):
            yield lambda: None
        return
    lines = Lines(console, progress)
    beat = asyncio.create_task(lines.repeat())
    try:
        yield lines.update
    finally:
        beat.cancel()
        with suppress(asyncio.CancelledError):
            await beat


class DelayNotes:
    """Notes on why trials wait, printed when a subject's calls are retried for a new reason.

    `once` reports a subject whose calls are all refused, or a cluster node that is left out.
    """

    def __init__(self, console: Console, seconds: float = _SAME_SECONDS) -> None:
        self._console = console
        self._seconds = seconds
        self._told: dict[str, tuple[str, float]] = {}
        self._said: set[tuple[str, str]] = set()

    def __call__(self, subject: str, delay: Delay) -> None:
        reason, now = visible(delay.reason, _REASON), time.monotonic()
        told, at = self._told.get(subject, ("", -self._seconds))
        if reason == told or now < at + self._seconds:
            return
        self._told[subject] = reason, now
        self._print(subject, f"{reason}; trying again, for at most {duration(delay.most_seconds)}")

    def once(self, reasons: Mapping[str, str], consequence: str) -> None:
        """Print what happened to a subject or node, with the consequence. Each is printed only once."""
        for name, reason in reasons.items():
            if (name, consequence) not in self._said:
                self._said.add((name, consequence))
                self._print(name, f"{visible(reason, _REASON)}; {consequence}")

    def _print(self, name: str, text: str) -> None:
        line = text if text.startswith(name) else f"{visible(name, _NAME)}: {text}"
        self._console.print(line, markup=False, highlight=False)


class Bars(Progress):
    """Progress bars, one for all trials and one for each subject. They read the counts only when drawn."""

    def __init__(self, console: Console, progress: RunProgress) -> None:
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            # Each bar keeps to one line: text that does not fit is cut.
            TextColumn("{task.fields[details]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
        )
        super().__init__(*columns, console=console, transient=True)
        self._progress = progress
        self._all = self.add_task("trials", total=progress.total, details="")
        alone = len(progress.subjects) < 2 or len(progress.subjects) > _MAX_SUBJECTS
        self._own = {
            name: self.add_task(f"  {visible(name, _NAME)}", total=progress.total // len(progress.subjects), details="")
            for name in (() if alone else progress.subjects)
        }

    def get_renderables(self) -> Iterable[RenderableType]:
        if self.task_ids:  # empty while the base class is being initialised
            progress = self._progress
            self.update(self._all, completed=progress.finished, details=progress.details())
            for subject, task in getattr(self, "_own", {}).items():
                # For a resumed run, only the new trials of each subject are known.
                self.update(task, completed=progress.done_by[subject], details=progress.about(subject))
        return super().get_renderables()


class Lines:
    """Lines for logs, one every few seconds."""

    def __init__(self, console: Console, progress: RunProgress, seconds: float = _LINE_SECONDS) -> None:
        self._console = console
        self._progress = progress
        self._seconds = seconds
        self._next = time.monotonic() + seconds

    def update(self) -> None:
        if time.monotonic() >= self._next:
            self._print()

    async def repeat(self) -> None:
        """Print the trials in flight at intervals while none of them ends."""
        while True:
            await asyncio.sleep(max(self._seconds / 10, self._next + self._seconds - time.monotonic()))
            if time.monotonic() >= self._next + self._seconds and self._progress.control.in_flight:
                flying = self._progress.control.in_flight.values()
                busy = [f"{visible(name, _NAME)} on {visible(case, _NAME)}" for name, case in flying]
                self._print(f"; in flight: {_few(busy)}")

    def _print(self, more: str = "") -> None:
        self._next = time.monotonic() + self._seconds
        progress = self._progress
        done = f"{progress.finished}/{count_of(progress.total, 'trial')}"
        self._console.print(f"{done}, {progress.details()}{more}", markup=False)
