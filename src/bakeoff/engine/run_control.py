"""Stopping a run: draining lets what is in flight finish, stopping does not. Both leave a run that can be resumed."""

import asyncio
from collections.abc import Callable


class RunControl:
    """Shared by a run and whoever watches it and may stop it."""

    def __init__(self) -> None:
        self.draining = False
        self.stopped = False
        self.finished_before = 0  # trials that were done when the run was taken up again
        self.sandbox: str | None = None  # the rung that commands run on, where the plan has any
        self.in_flight: dict[int, tuple[str, str]] = {}  # subject and case, by the trial's place in the plan
        self._change = asyncio.Event()
        self._give_up: Callable[[], object] | None = None

    def when_stopped(self, give_up: Callable[[], object]) -> None:
        """What to call on `stop`; the run registers how its work is cancelled."""
        self._give_up = give_up
        if self.stopped:
            give_up()

    def drain(self) -> None:
        """Start no further trials."""
        self.draining = True
        self._change.set()

    def stop(self) -> None:
        """Give up what is in flight too."""
        self.stopped = True
        self.drain()
        if self._give_up:
            self._give_up()

    def interrupt(self) -> None:
        """What Ctrl-C means: the first time drain, the second time stop."""
        self.stop() if self.draining else self.drain()

    async def sleep(self, seconds: float) -> bool:
        """Wait, but no longer than until the run is being stopped; whether it goes on."""
        try:
            await asyncio.wait_for(self._change.wait(), seconds)
        except TimeoutError:
            return True
        return False
