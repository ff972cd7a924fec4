"""A server of ours, started as a user would start it."""

import http.client
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from ...warm_bakeoff import PROGRAM
from ..render.html.browser import Chromium, axe_source
from ..render.html.generator import plan_of, write_run

HINT = "press Ctrl-C to stop; the address works only on this machine, and only with its token"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: str


@dataclass(frozen=True)
class Viewer:
    """`bakeoff view` on some port; `address` is what it printed."""

    address: str
    results: Path

    @property
    def port(self) -> int:
        port = urlsplit(self.address).port
        assert port is not None
        return port

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def ask(self, path: str = "/", method: str = "GET", **headers: str) -> Answer:
        """One request, with exactly these headers besides our Host."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in {"Host": self.host, **named}.items():
                connection.putheader(name, value)
            connection.endheaders()
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read().decode())
        finally:
            connection.close()

    @contextmanager
    def events(self, path: str) -> Iterator[Iterator[tuple[str, dict[str, Any]]]]:
        """The name and data of each event, as they come."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", path, headers={"Cookie": self.cookie()})
            answer = connection.getresponse()
            assert (answer.status, answer.getheader("Content-Type")) == (200, "text/event-stream; charset=utf-8")
            yield _events(answer)
        finally:
            connection.close()

    @property
    def token_path(self) -> str:
        return f"/?{urlsplit(self.address).query}"

    def cookie(self) -> str:
        return self.ask(self.token_path).headers["set-cookie"].split(";")[0]


def _events(lines: Iterable[bytes]) -> Iterator[tuple[str, dict[str, Any]]]:
    name = ""
    for line in lines:
        field, _, value = line.decode().strip().partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    write_run(tmp_path / "results" / "runs" / "one", plan_of(3))
    return tmp_path / "results"


@contextmanager
def viewing(results: Path) -> Iterator[Viewer]:
    """`bakeoff view`, ended by Ctrl-C, of which it makes no words."""
    command = [str(PROGRAM), "view", "--no-open", "--results", str(results)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True, env=environment) as process,
    ):
        try:
            assert process.stdout is not None
            yield Viewer(process.stdout.readline().strip(), results)
        finally:
            process.send_signal(signal.SIGINT)
            code = process.wait(30)
        said.seek(0)
        assert (code, said.read().splitlines()) == (0, [HINT])


@pytest.fixture
def viewer(results: Path) -> Iterator[Viewer]:
    with viewing(results) as viewer:
        yield viewer


@pytest.fixture(scope="session")
def chromium(needs_program: Callable[[str], str]) -> Iterator[Chromium]:
    browser = Chromium(needs_program("chromium"))
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def axe(needs_program: Callable[[str], str]) -> str:
    return axe_source(lambda: needs_program("npm"))
