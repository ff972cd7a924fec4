"""A warm Vitest for the tests, and the components that they are hard on."""

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

import pytest
import pytest_asyncio

from bakeoff.protocols import Sandbox
from bakeoff.sandbox import choose_sandbox
from bakeoff.sandbox.supervisor_client import kernel_means
from bakeoff.toolchains.install import install_vitest
from bakeoff.toolchains.vitest import OpenVitest, VitestToolchain

from .candidates import COUNTER_TEST, counter

SECONDS = 60.0  # for what ends by itself, on a busy machine
RIGHT = {"Component.svelte": counter(), "test.ts": COUNTER_TEST}


@pytest.fixture(scope="session")
def node_toolchain(needs_program: Callable[[str], str]) -> Path:
    """The installed toolchain; the first test process of a machine installs it."""
    needs_program("node")
    needs_program("npm")
    return asyncio.run(install_vitest(print))


@pytest.fixture
def opened(node_toolchain: Path) -> Callable[..., AbstractAsyncContextManager[OpenVitest]]:
    """`async with opened("bwrap", slots=2) as vitest`."""

    def make(sandbox_kind: str = "auto", slots: int = 1) -> AbstractAsyncContextManager[OpenVitest]:
        return VitestToolchain(lambda: rung_or_skip(sandbox_kind), slots).open()

    return make


def rung_or_skip(sandbox_kind: str) -> Sandbox:
    if sandbox_kind == "bwrap" and not shutil.which("bwrap"):
        pytest.skip("needs bubblewrap: apt-get install bubblewrap")
    return choose_sandbox(sandbox_kind)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def vitest(node_toolchain: Path) -> AsyncIterator[OpenVitest]:
    """One for all tests of a module, with two slots."""
    async with VitestToolchain(lambda: choose_sandbox("auto"), slots=2).open() as opened:
        yield opened


def below(pid: int) -> set[int]:
    """The processes that a process started, and those they started."""
    found: set[int] = set()
    queue = [pid]
    while queue:
        for listing in Path(f"/proc/{queue.pop()}/task").glob("*/children"):
            with suppress(OSError):  # a thread that ended in between
                children = set(map(int, listing.read_text().split()))
                queue.extend(children)
                found |= children
    return found


def processes_called(words: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if words in path.read_text(errors="replace"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@pytest.fixture
def nothing_is_left_running() -> Iterator[None]:
    kernel_means()  # starts the server that supervisors are forked from, which stays
    before = below(os.getpid())
    yield
    deadline = time.monotonic() + 10
    while (left := below(os.getpid()) - before) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert left == set()
