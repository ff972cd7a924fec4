import asyncio


class FakeClock:
    """A clock that jumps to the next moment that is waited for, once nothing else can happen."""

    def __init__(self):
        self._now = 0.0
        self._waiting = []

    def now(self):
        return self._now

    async def sleep_until(self, moment):
        if moment <= self._now:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append((moment, waiter))
        await waiter

    async def sleep(self, duration):
        await self.sleep_until(self._now + duration)

    async def drive(self, coroutine):
        task = asyncio.ensure_future(coroutine)
        await settle()
        while not task.done():
            self._go_on()
            await settle()
        return task.result()

    def _go_on(self):
        self._waiting = [(moment, waiter) for moment, waiter in self._waiting if not waiter.done()]
        assert self._waiting, "everybody waits, and nothing will ever happen"
        self._now = min(moment for moment, _ in self._waiting)
        for moment, waiter in self._waiting:
            if moment <= self._now:
                waiter.set_result(None)


async def settle():
    for _ in range(100):
        await asyncio.sleep(0)
