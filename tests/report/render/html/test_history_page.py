"""The page of `bakeoff history`, as a reader meets it."""

from pathlib import Path

import pytest
from playwright.async_api import Page

from bakeoff.report.history import describe_history, judge_history
from bakeoff.report.render.html.render import write_report_page

from ...test_history import nights
from .browser import Chromium, opened

pytestmark = pytest.mark.full


def test_a_page_opens_with_the_gate_and_shows_every_run_as_a_row_and_a_mark(chromium: Chromium, tmp_path: Path) -> None:
    report = judge_history(nights(tmp_path, *[0.95] * 4, 0.5, 0.5))
    page_file = write_report_page(tmp_path / "history.html", describe_history(report))

    async def look(page: Page) -> tuple[str, str, list[str], int]:
        await opened(page, page_file)
        return (
            await page.locator(".title .chip").inner_text(),
            await page.locator("body").inner_text(),
            await page.locator("#runs > :not(#scores-1) tbody td:last-child").all_inner_texts(),
            await page.locator("#scores-1 details.numbers tbody tr").count(),
        )

    badge, text, states, marks = chromium(look)
    assert badge == "Gate failed"
    assert "Gate failed: worse since night-04, 2023-11-18 22:13: -" in text
    assert [state.strip() for state in states] == ["baseline", *["not worse"] * 3, "worse", "worse"]
    assert marks == 6
