"""Keep a run within its limits, and stop it on request.

Draining lets running trials finish; stopping cancels them. Either way, the run can be resumed.
"""

import asyncio
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff._kernel.clock import Delay
from bakeoff._kernel.files import os_errors_explained
from bakeoff.errors import InfraError
from bakeoff.options import RunOptions
from bakeoff.record import NO_USAGE, Usage

if TYPE_CHECKING:
    from bakeoff.stats.sequential import PairDecisions


@dataclass(slots=True)
class Budget:
    """Compares the spending of a run, including that of earlier processes, with its limits."""

    options: RunOptions
    spent: Usage = NO_USAGE
    unpriced: bool = False  # some of the spending has an unknown cost
    started: float = field(default_factory=time.monotonic)

    def add(self, usage: Usage) -> None:
        """Count usage against the limits."""
        self.spent += usage
        self.unpriced = (
            self.unpriced or usage.unpriced > 0 or (usage.cost is None and bool(usage.requests or usage.tokens))
        )

    def exceeded(self) -> str | None:
        """Return a sentence about the limit that was reached, or None."""
        options, spent = self.options, self.spent
        if options.max_cost is not None and spent.cost is not None and spent.cost >= options.max_cost:
            return f"max_cost ${options.max_cost:g} is reached: ${spent.cost:g} spent"
        if options.max_cost is not None and self.unpriced:
            return "max_cost cannot be enforced: the cost of a call is unknown; set its model's price or drop the limit"
        if options.max_total_tokens is not None and spent.tokens >= options.max_total_tokens:
            return f"max_total_tokens {options.max_total_tokens} is reached: {spent.tokens} used"
        if options.max_seconds is not None and time.monotonic() - self.started >= options.max_seconds:
            return f"max_seconds {options.max_seconds:g} is reached"
        return None

    def fits(self, more: Usage) -> bool:
        """Return True if this usage is within the limits. Unknown costs exceed any cost limit."""
        options, spent = self.options, self.spent
        if options.max_cost is not None and (more.cost is None or (spent.cost or 0.0) + more.cost > options.max_cost):
            return False
        return options.max_total_tokens is None or spent.tokens + more.tokens <= options.max_total_tokens


class SharedBudget(Budget):
    """A budget that threads share and, with a file, processes too.

    Each process appends its spending to the file, and reads the spending of the others from it. The
    file stays open, so that deleting it loses nothing. If it cannot be opened, raise InfraError.
    """

    def __init__(self, options: RunOptions, ledger: Path | None = None) -> None:
        super().__init__(options)
        self._lock = threading.Lock()
        with os_errors_explained(
            f"{ledger}, in which workers of xdist count their spending,", "opened", kind=InfraError
        ):
            # Closed when the process ends, since a worker has only one session.
            self._ledger = None if ledger is None else os.open(ledger, os.O_RDWR | os.O_APPEND)
        self._read_to = 0

    def add(self, usage: Usage) -> None:
        """Add to the spending. `exceeded` reads the sum of all processes from the file, if there is one."""
        if self._ledger is not None:
            os.write(self._ledger, usage.model_dump_json(exclude_defaults=True).encode() + b"\n")
            return
        with self._lock:
            super().add(usage)

    def exceeded(self) -> str | None:
        """Return the limit that all processes together have reached, or None."""
        if self._ledger is not None:
            with self._lock:
                while whole := os.pread(self._ledger, 1 << 16, self._read_to).rpartition(b"\n")[0]:
                    for line in whole.splitlines():
                        super().add(Usage.model_validate_json(line))
                    self._read_to += len(whole) + 1
        return super().exceeded()


_SHORT_SECONDS = 2.0


class RunControl:
    """Lets the caller of a run watch and stop it.

    Attributes:
        draining: no further trials are started.
        stopped: running trials have been cancelled too.
        finished_before: trials that had finished when the run was resumed.
        sandbox: the name of the sandbox for commands; None if the plan needs none.
        guarantees: the limits that this machine's kernel enforces in that sandbox.
        in_flight: subject and case of each running trial, by its index in the plan.
        delays: the current waits of running trials, by their index in the plan.
        cut_off: subjects of trials that were cancelled after waiting, and why they waited last.
        on_delay: called with the subject of a trial when it begins to wait.
        refused: subjects whose provider refuses every call, and why; their trials do not start.
        redact: removes secrets from texts that are shown during the run; `run` sets it.
        left_out: Ray nodes that joined during the run and cannot run its trials, and why.
        left_behind: folders of trials that could not be removed, and why.
        upload_problem: why the object store does not have the whole run; None if it has.
        taken_over: True if another process has taken over the run in the object store.
        decisions: the comparisons so far in a run that can end early; None for other runs.
    """

    def __init__(self) -> None:
        self.draining = False
        self.stopped = False
        self.finished_before = 0
        self.sandbox: str | None = None
        self.guarantees = ""
        self.in_flight: dict[int, tuple[str, str]] = {}
        self.delays: dict[int, Delay] = {}
        self.cut_off: dict[str, str] = {}
        self.on_delay: Callable[[str, Delay], object] | None = None
        self.refused: dict[str, str] = {}
        self.redact: Callable[[str], str] = str
        self.left_out: dict[str, str] = {}
        self.left_behind: dict[Path, str] = {}
        self.upload_problem: str | None = None
        self.taken_over = False
        self.decisions: PairDecisions | None = None
        self._changed = asyncio.Event()
        self._cancel: Callable[[], object] | None = None
        self._last_waits: dict[int, str] = {}  # by the trial's index in the plan

    def on_stop(self, cancel: Callable[[], object]) -> None:
        """Register a callback that cancels running trials. If already stopped, call it now."""
        self._cancel = cancel
        if self.stopped:
            cancel()

    def drain(self) -> None:
        """Start no more trials."""
        self.draining = True
        self._changed.set()

    def stop(self) -> None:
        """Start no more trials, and cancel the running trials."""
        self.stopped = True
        self.drain()
        waited = {trial: reason for trial, reason in self._last_waits.items() if trial in self.in_flight}
        self.cut_off.update({self.in_flight[trial][0]: reason for trial, reason in waited.items()})
        if self._cancel:
            self._cancel()

    def interrupt(self) -> None:
        """Drain on the first call and stop on the second, as for Ctrl-C."""
        self.stop() if self.draining else self.drain()

    async def wait(self, trial: int, delay: Delay, who: str = "") -> bool:
        """Let a trial wait before its next try, and show the delay.

        Return False if the wait was cut short, as long waits are while the run is draining.
        """
        self.begin_wait(trial, delay, who)
        try:
            if delay.seconds <= _SHORT_SECONDS:
                await asyncio.sleep(delay.seconds)
                return True
            async with asyncio.timeout(delay.seconds):
                await self._changed.wait()
            return False
        except TimeoutError:
            return True
        finally:
            self.end_wait(trial)

    def begin_wait(self, trial: int, delay: Delay, who: str = "") -> None:
        """Show that a trial is waiting. `who` names the part that waits, if it is not the subject."""
        delay = replace(delay, reason=self.redact(delay.reason))  # errors of providers may contain keys
        self.delays[trial] = delay
        self._last_waits[trial] = delay.reason
        if self.on_delay is not None and trial in self.in_flight:
            self.on_delay(who or self.in_flight[trial][0], delay)

    def end_wait(self, trial: int) -> None:
        """Show that a trial no longer waits."""
        self.delays.pop(trial, None)

    async def until_draining(self) -> None:
        """Wait until the run starts no more trials."""
        await self._changed.wait()
