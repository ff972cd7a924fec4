"""Real sandboxes for the tests: docker's engine is started here when none runs, and stopped by its pid."""

import contextlib
import shutil
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from tests.sandbox.docker_engine import IMAGE, NoEngine, engine_with_image

from bakeoff.protocols import Place, Sandbox
from bakeoff.sandbox import choose_sandbox, open_place


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with open_place() as opened:
        yield opened


@pytest.fixture
def sandbox_on(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Sandbox]:
    """Make a sandbox by its name, or skip with the sentence that says what to install."""

    def make(sandbox_kind: str) -> Sandbox:
        if sandbox_kind == "bwrap" and not shutil.which("bwrap"):
            pytest.skip("needs bubblewrap: apt-get install bubblewrap")
        if sandbox_kind == "docker":
            monkeypatch.setenv("DOCKER_HOST", request.getfixturevalue("docker_engine"))
            monkeypatch.setenv("BAKEOFF_DOCKER_IMAGE", IMAGE)
        return choose_sandbox(sandbox_kind)

    return make


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[str]:
    """The address of an engine that has the test image; each test process that starts one has it for itself."""
    with contextlib.ExitStack() as stack:
        try:
            address = stack.enter_context(engine_with_image())
        except NoEngine as problem:
            pytest.skip(str(problem))
        yield address
