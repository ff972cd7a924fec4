"""Only this machine's own browser, asked by the person, gets an answer."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Page

from ..render.html.browser import Chromium
from ..render.html.generator import plan_of, write_run
from .conftest import Viewer, viewing

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    """One for all of these tests, which change nothing."""
    results = tmp_path_factory.mktemp("guarded") / "results"
    write_run(results / "runs" / "one", plan_of(3))
    with viewing(results) as viewer:
        yield viewer


def test_the_printed_address_trades_its_token_for_a_cookie(viewer: Viewer) -> None:
    first = viewer.ask(viewer.token_path)
    assert (first.status, first.headers["location"]) == (303, "/")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {
        part.strip() for part in first.headers["set-cookie"].split(";")
    }
    page = viewer.ask(Cookie=viewer.cookie())
    assert page.status == 200
    assert "<title>Results · bakeoff</title>" in page.body


@pytest.mark.parametrize("path", ["/", "/runs/one", "/runs/one/events", "/?token=", "/?token=wrong", "/nowhere"])
def test_without_the_token_there_is_no_page(path: str, viewer: Viewer) -> None:
    answer = viewer.ask(path, Cookie="bakeoff-1=x")
    assert answer.status == 403
    assert "open the address that `bakeoff view` printed" in answer.body


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "0.0.0.0:{port}", ""]
)
def test_a_request_under_a_foreign_name_is_refused_even_with_the_token(host: str, viewer: Viewer) -> None:
    named = host.format(port=viewer.port)
    assert viewer.ask(viewer.token_path, Host=named).status in (400, 403)
    assert viewer.ask(Host=named, Cookie=viewer.cookie()).status in (400, 403)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_a_request_of_another_site_is_refused_even_with_the_cookie(headers: dict[str, str], viewer: Viewer) -> None:
    answer = viewer.ask(Cookie=viewer.cookie(), **headers)
    assert (answer.status, answer.body) == (403, "refused: another site asked\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed(method: str, viewer: Viewer) -> None:
    assert viewer.ask(method=method, Cookie=viewer.cookie()).status == 403


def test_there_are_no_websockets(viewer: Viewer) -> None:
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec_WebSocket_Version": "13",
        "Sec_WebSocket_Key": "eA==",
    }
    assert viewer.ask("/events", **upgrade).status == 403
    assert viewer.ask("/nowhere", Cookie=viewer.cookie(), **upgrade).status == 404


@pytest.mark.parametrize("path", ["[", "http://[", "http://evil.example/", "*"])
def test_an_address_that_is_no_path_is_refused_with_and_without_the_token(path: str, viewer: Viewer) -> None:
    assert viewer.ask(path).status == 400
    assert viewer.ask(f"{path}{viewer.token_path.removeprefix('/')}").status == 400


@pytest.mark.parametrize("name", ["..", "../..", "%2e%2e", "..%2f..%2fetc", "nothing", "one%2f..%2fone", "one%00"])
def test_only_runs_that_are_there_can_be_asked_for(name: str, viewer: Viewer) -> None:
    assert viewer.ask(f"/runs/{name}", Cookie=viewer.cookie()).status == 404


def test_a_token_in_an_address_leads_nowhere_else(viewer: Viewer) -> None:
    query = viewer.token_path.removeprefix("/")
    assert viewer.ask(f"//evil.example/{query}").headers["location"] == "/evil.example/"


def test_every_answer_forbids_framing_sniffing_and_keeping(viewer: Viewer) -> None:
    for answer in (viewer.ask(), viewer.ask(Cookie=viewer.cookie())):
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"


@pytest.fixture
def other_site(tmp_path: Path) -> Iterator[str]:
    """Another server on this machine, as a malicious page would have."""
    (tmp_path / "index.html").write_text("<!DOCTYPE html><title>other</title>")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=str(tmp_path))  # type: ignore[arg-type]

        def log_message(self, format: str, *arguments: object) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()


def test_another_site_in_the_same_browser_learns_nothing(viewer: Viewer, other_site: str, chromium: Chromium) -> None:
    async def look(page: Page) -> tuple[str, list[str]]:
        await page.goto(viewer.address)
        title = await page.title()
        await page.goto(other_site)
        attempts = """async (address) => {
          const tried = [];
          for (const mode of ["cors", "no-cors"]) {
            try {
              const answer = await fetch(address, { mode, credentials: "include" });
              tried.push((await answer.text()) ? "read" : "blank");
            } catch { tried.push("failed"); }
          }
          const frame = Object.assign(document.createElement("iframe"), { src: address });
          document.body.append(frame);
          await new Promise((done) => { frame.onload = done; });
          try { tried.push(frame.contentDocument ? frame.contentDocument.title || "blank" : "closed"); }
          catch { tried.push("closed"); }
          return tried;
        }"""
        return title, await page.evaluate(attempts, f"http://{viewer.host}/")

    title, tried = chromium(look)
    assert title == "Results · bakeoff"
    assert tried[0] == "failed"
    assert tried[1] in ("failed", "blank")
    assert tried[2] in ("closed", "blank")


def test_a_name_that_was_rebound_to_this_machine_gets_nothing(viewer: Viewer, chromium: Chromium) -> None:
    async def look(page: Page) -> tuple[int, str]:
        answer = await page.goto(f"http://rebound.test:{viewer.port}{viewer.token_path}")
        assert answer is not None
        return answer.status, await answer.text()

    assert chromium(look) == (403, "refused: the Host header is not this server's name\n")
