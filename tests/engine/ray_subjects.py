"""Subjects for trials on Ray nodes. A test copies this file into its folder, where all nodes find it."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from bakeoff import Needs, Plan, Registry, RunOptions, Task, Transcript, Usage, default_registry
from bakeoff.models.rate_limit import RateLimiter, slots_of

MAX_CALLS = 2


def upper(prompt: str) -> str:
    if prompt == "raise":
        raise ValueError("this prompt is not for me")
    return prompt.upper()


def score_that_breaks(given: object) -> float:
    return 7.0


async def hold(prompt: str) -> str:
    """Note which process runs the trial, and wait until the test lets it go on."""
    (Path(f"started-{prompt}-{os.getpid()}")).touch()
    try:
        while not Path("go-on").exists():
            await asyncio.sleep(0.05)
    except asyncio.CancelledError:
        (Path(f"cancelled-{prompt}-{os.getpid()}")).touch()
        raise
    return "done"


def die(prompt: str) -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    return prompt


def tell_secret(prompt: str) -> str:
    secret = os.environ["TEST_API_KEY"]
    print(f"{prompt}: the key is {secret}", flush=True)
    return f"the key is {secret}"


def find_key(prompt: str) -> str:
    """Return the commands of the processes that were started with a key in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is another user's
            if prompt.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes()[:80].decode(errors="replace"))
    return f"found: {found}"


@dataclass(frozen=True)
class Provider:
    """A provider that takes few calls at a time, and says so if there are more."""

    key: str = "provider-of-test"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[RateLimiter]:
        yield RateLimiter(MAX_CALLS, slots=slots_of("of-test", MAX_CALLS))


class Caller:
    """Ask the provider ten times. Each answer costs a dollar."""

    needs = Needs(resources=(Provider(),))

    async def attempt(self, task: Task) -> Transcript:
        for _ in range(10):
            await task.resources[Provider().key].run(self.call, task.clock)
            task.spend(Usage(requests=1, cost=1.0))
        return Transcript(output="done")

    async def call(self) -> None:
        calls = Path("calls")
        mine = calls / f"in-flight-{uuid4()}"
        mine.touch()
        in_flight = len(list(calls.glob("in-flight-*")))
        (calls / f"seen-{in_flight}").touch()
        await asyncio.sleep(0.02)
        mine.unlink()


def registry(plan: Plan, options: RunOptions) -> Registry:
    return default_registry().with_subject("caller", lambda _: Caller())
