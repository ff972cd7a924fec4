"""Stop a run: draining lets trials in flight finish, stopping cancels them. Both leave a run that can be resumed."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bakeoff.stats.decisions import PairDecisions


class RunControl:
    """Let the caller of a run watch and stop it.

    Attributes:
        draining: no further trials are started.
        stopped: trials in flight have been cancelled too.
        finished_before: trials that were finished when the run was resumed.
        sandbox: the name of the sandbox that commands run in; None where the plan needs none.
        in_flight: subject and case of each running trial, by the trial's index in the plan.
        decisions: the comparisons so far, of a run that ends when they are decided; None for other runs.
    """

    def __init__(self) -> None:
        self.draining = False
        self.stopped = False
        self.finished_before = 0
        self.sandbox: str | None = None
        self.in_flight: dict[int, tuple[str, str]] = {}
        self.decisions: PairDecisions | None = None
        self._changed = asyncio.Event()
        self._cancel: Callable[[], object] | None = None

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
        if self._cancel:
            self._cancel()

    def interrupt(self) -> None:
        """Drain on the first call and stop on the second, as Ctrl-C does."""
        self.stop() if self.draining else self.drain()

    async def sleep(self, seconds: float) -> bool:
        """Sleep, but return early when the run is being stopped. Return True after a full sleep."""
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return True
        return False
