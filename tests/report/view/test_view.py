"""The served pages, and runs that go on while one looks."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.async_api import Page

from bakeoff.record import Record
from bakeoff.report.view.live import Progress
from bakeoff.rundir import RunFolder

from ..html.browser import Chromium, until
from ..html.generator import as_line, line_of, plan_of, records_of, write_lines
from .conftest import BAKEOFF, Viewer

PROGRAM = Path(__file__).parents[2] / "programs" / "killed_run.py"


@contextmanager
def started_run(folder: Path, cases: int) -> Iterator["subprocess.Popen[bytes]"]:
    """A run in a process of its own, once twenty more trials are on disk; killed at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    before = finished(folder)
    command = [sys.executable, str(PROGRAM), str(folder), str(cases)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            give_up = time.monotonic() + 60
            while finished(folder) < before + 20:
                assert time.monotonic() < give_up, "the run does not get going"
                time.sleep(0.02)
            yield process
        finally:
            process.kill()


def finished(folder: Path) -> int:
    return sum(isinstance(entry, Record) for entry in RunFolder(folder).entries())


def test_the_index_leads_to_a_run_and_back(viewer: Viewer, chromium: Chromium) -> None:
    async def look(page: Page) -> list[str]:
        await page.goto(viewer.address)
        titles = [await page.title()]
        await page.locator("#run-table tbody a").first.click()
        await page.wait_for_selector("html[data-ready=yes]", state="attached")
        titles.append(await page.title())
        await page.locator("a.brand").click()
        await page.wait_for_selector("#run-table", state="attached")
        return [*titles, page.url]

    index, run, address = chromium(look)
    assert index == "Results · bakeoff"
    assert run == "generated · one"
    assert address == f"http://{viewer.host}/"


def test_a_run_is_seen_to_move_and_to_be_killed(viewer: Viewer, chromium: Chromium) -> None:
    folder = viewer.results / "runs" / "live"
    with started_run(folder, 20_000) as process:

        async def look(page: Page) -> tuple[float, float, str, str]:
            await page.goto(viewer.address)
            await page.goto(f"http://{viewer.host}/runs/live")
            value = "Number(document.querySelector('#live-bar').value)"
            await until(page, f"{value} > 0")
            first = await page.evaluate(value)
            await until(page, f"{value} > {first}")
            second = await page.evaluate(value)
            process.kill()
            await until(page, "document.documentElement.dataset.live === 'stopped'")
            words = await page.locator("#live-words").inner_text()
            await page.get_by_role("button", name="Show the new numbers").click()
            await page.wait_for_selector("html[data-ready=yes]", state="attached")
            return first, second, words, await page.locator("#trial-count").inner_text()

        first, second, words, count = chromium(look)
    assert 0 < first < second
    assert "stopped before its end; go on with `bakeoff resume live`" in words
    assert "recorded trials" in count


def test_a_run_that_is_taken_up_again_is_running_again(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with started_run(folder.path, 5000):
        progress = Progress(folder)
        assert progress.update()
        assert progress.news()["state"] == "running"
    progress.update()
    stopped = progress.news()
    assert stopped["state"] == "stopped"
    with started_run(folder.path, 5000):
        assert progress.update()
        again = progress.news()
    assert again["state"] == "running"
    assert again["finished"] > stopped["finished"]


def test_numbers_are_those_of_the_latest_records_and_half_lines_are_waited_for(tmp_path: Path) -> None:
    plan = plan_of(2)
    lines = [as_line(line_of(record)) for record in records_of(plan)]
    run = write_lines(tmp_path / "run", plan, [b'{"type":"start","v":1}', *lines, *lines[:3], b"not json", b"[]"])
    progress = Progress(run)
    assert progress.update()
    assert not progress.update()
    assert progress.news()["finished"] == plan.size
    assert progress.news()["state"] == "stopped"
    end = b'{"type":"end","v":1,"reason":"finished"}\n'
    with run.journal_file.open("ab") as file:
        file.write(end[:10])
    assert not progress.update()
    with run.journal_file.open("ab") as file:
        file.write(end[10:])
    assert progress.update()
    assert progress.news()["words"] == "The run has ended: finished."


def test_a_journal_that_was_replaced_is_read_from_its_start(tmp_path: Path) -> None:
    plan = plan_of(2)
    lines = [as_line(line_of(record)) for record in records_of(plan)]
    run = write_lines(tmp_path / "run", plan, [*lines])
    progress = Progress(run)
    progress.update()
    run.journal_file.write_bytes(lines[0] + b"\n")
    progress.update()
    assert progress.news()["finished"] == 1


def test_a_run_that_cannot_be_shown_is_a_sentence(viewer: Viewer) -> None:
    write_lines(viewer.results / "runs" / "bad", b"{}", [])
    answer = viewer.ask("/runs/bad", Cookie=viewer.cookie())
    assert answer.status == 404
    assert "plan.json cannot be read" in answer.body
    assert viewer.ask("/runs/bad/events", Cookie=viewer.cookie()).status == 404


def test_a_port_that_is_taken_is_told_in_a_sentence(viewer: Viewer) -> None:
    command = [str(BAKEOFF), "view", "--no-open", "--port", str(viewer.port), "--results", str(viewer.results)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: port {viewer.port} cannot be used: Address already in use; leave --port out")
