"""Stop a run: draining lets trials in flight finish, stopping cancels them. Both leave a run that can be resumed."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff._kernel.clock import Delay

if TYPE_CHECKING:
    from bakeoff.stats.sequential import PairDecisions

_SHORT_SECONDS = 2.0


class RunControl:
    """Let the caller of a run watch and stop it.

    Attributes:
        draining: no further trials are started.
        stopped: trials in flight have been cancelled too.
        finished_before: trials that were finished when the run was resumed.
        sandbox: the name of the sandbox that commands run in; None where the plan needs none.
        guarantees: what the kernel of this machine holds commands to in that sandbox.
        in_flight: subject and case of each running trial, by the trial's index in the plan.
        delays: what running trials are waiting for now, by the trial's index in the plan.
        cut_off: subjects of trials that were cancelled after they had to wait, and the reason of the last wait.
        on_delay: called with the subject of a trial when it begins to wait.
        refused: subjects whose provider refuses every call, and the reason; none of their trials is started.
        redact: takes secrets out of texts that are shown while the run goes on; `run` sets it.
        left_out: Ray nodes that joined during the run and cannot run its trials, and why.
        left_behind: folders of trials that could not be removed, and why.
        upload_problem: why the object store does not have all of the run at its end; None if it has.
        taken_over: True if another process has taken over the run in the object store.
        decisions: the comparisons so far, of a run that ends when they are decided; None for other runs.
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
        """Register the callback that cancels the trials in flight. It is called at once if `stop` was called before."""
        self._cancel = cancel
        if self.stopped:
            cancel()

    def drain(self) -> None:
        """Start no further trials."""
        self.draining = True
        self._changed.set()

    def stop(self) -> None:
        """Start no further trials, and cancel those in flight."""
        self.stopped = True
        self.drain()
        waited = {trial: reason for trial, reason in self._last_waits.items() if trial in self.in_flight}
        self.cut_off.update({self.in_flight[trial][0]: reason for trial, reason in waited.items()})
        if self._cancel:
            self._cancel()

    def interrupt(self) -> None:
        """Drain on the first call and stop on the second, as Ctrl-C does."""
        self.stop() if self.draining else self.drain()

    async def wait(self, trial: int, delay: Delay) -> bool:
        """Let a trial wait before it tries again, and show that it does.

        While the run is draining, only short waits are made: the trials in flight are to be finished soon. Return False
        if the wait was cut short.
        """
        self.begin_wait(trial, delay)
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

    def begin_wait(self, trial: int, delay: Delay) -> None:
        """Show that a trial waits."""
        delay = replace(delay, reason=self.redact(delay.reason))  # providers repeat keys in their errors
        self.delays[trial] = delay
        self._last_waits[trial] = delay.reason
        if self.on_delay is not None and trial in self.in_flight:
            self.on_delay(self.in_flight[trial][0], delay)

    def end_wait(self, trial: int) -> None:
        """Show that a trial no longer waits."""
        self.delays.pop(trial, None)

    async def until_draining(self) -> None:
        """Wait until no further trials are to be started."""
        await self._changed.wait()
