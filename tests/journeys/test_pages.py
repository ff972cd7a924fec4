"""The page of a run and the index, made by a command and opened in a real browser."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.async_api import Page

from ..doors.components.small_suites import ADDER, write_suites
from ..report.render.html.browser import Chromium
from ..warm_bakeoff import Bakeoff

pytestmark = pytest.mark.journey


def test_a_run_is_looked_at_from_the_index_to_its_prompts(
    bakeoff: Bakeoff, tmp_path: Path, needs_program: Callable[[str], str]
) -> None:
    write_suites(tmp_path / "tests", adder=ADDER)
    done = bakeoff("run", "--model", "oracle", "--model", "nop", "--no-open")
    assert done.returncode == 0, done.stdout + done.stderr
    browser = Chromium(needs_program("chromium"))

    async def look(page: Page) -> tuple[str, str]:
        await page.goto((tmp_path / "results" / "index.html").as_uri())
        index = await page.inner_text("body")
        await page.goto(next((tmp_path / "results" / "runs").glob("*/report.html")).as_uri())
        await page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        return index, await page.inner_text("body")

    try:
        index, report = browser(look)
    finally:
        browser.close()
    assert "components" in index
    assert "oracle" in report
    assert "Write `add(a, b)`." in report
