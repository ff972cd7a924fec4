"""Stopping a run: draining lets what is in flight finish, stopping does not. Both leave a run that can be resumed."""

import asyncio
from collections.abc import Callable


class RunControl:
    """Shared by whoever may stop a run and the run itself."""

    def __init__(self) -> None:
        self.draining = False
        self.stopped = False
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

    async def sleep(self, seconds: float) -> None:
        """Wait, but no longer than until the run is being stopped."""
        try:
            await asyncio.wait_for(self._change.wait(), seconds)
        except TimeoutError:
            return
