"""Progress of a run: a bar on a terminal, a line now and then elsewhere."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from bakeoff.record import LOST, NO_USAGE, Record, Usage, Verdict
from bakeoff.report.words import cost, duration

_LINE_SECONDS = 10.0


@dataclass(slots=True)
class News:
    """What has happened so far."""

    total: int
    before: int = 0  # finished by earlier processes of this run
    done: int = 0
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    spent: Usage = NO_USAGE
    started: float = field(default_factory=time.monotonic)

    def add(self, record: Record) -> None:
        self.done += 1
        self.verdicts[record.verdict] += 1
        if record.spent != NO_USAGE:
            self.spent += record.spent

    @property
    def finished(self) -> int:
        return self.before + self.done

    @property
    def failed(self) -> int:
        return self.verdicts[Verdict.FAIL] + self.verdicts[Verdict.TIMEOUT]

    @property
    def lost(self) -> int:
        return sum(self.verdicts[verdict] for verdict in LOST)

    @property
    def seconds_left(self) -> float | None:
        if not self.done:
            return None
        return (time.monotonic() - self.started) / self.done * (self.total - self.finished)

    def details(self) -> str:
        parts = [f"{self.failed} failed"]
        if self.lost:
            parts.append(f"{self.lost} lost")
        if self.spent.cost is not None:
            parts.append(cost(self.spent.cost))
        return ", ".join(parts)


@contextmanager
def show_progress(console: Console, news: News) -> Iterator[Callable[[], None]]:
    """A display that fits where the output goes; call what it gives after each record."""
    if not console.is_terminal:
        yield Lines(console, news).told
        return
    with Bar(console, news):
        yield lambda: None


class Bar(Progress):
    """A bar that looks at the news when it is drawn, so that a record costs it nothing."""

    def __init__(self, console: Console, news: News) -> None:
        columns = (
            TextColumn("trials"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[details]}"),
            TimeRemainingColumn(),
        )
        super().__init__(*columns, console=console, transient=True)
        self._news = news
        self.add_task("trials", total=news.total, details="")

    def get_renderables(self) -> Iterable[RenderableType]:
        for task in self.task_ids:  # none yet while this object is being made
            self.update(task, completed=self._news.finished, details=self._news.details())
        return super().get_renderables()


class Lines:
    """A line every few seconds, for logs."""

    def __init__(self, console: Console, news: News) -> None:
        self._console = console
        self._news = news
        self._next = time.monotonic() + _LINE_SECONDS

    def told(self) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _LINE_SECONDS
        news = self._news
        left = news.seconds_left
        about = f", about {duration(left)} left" if left else ""
        self._console.print(f"{news.finished}/{news.total} trials, {news.details()}{about}")
