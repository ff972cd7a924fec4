"""Test what readers of `mcp-report/` see: in a browser, in Markdown and in the log."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page
from pydantic import JsonValue

from bakeoff.doors.mcp.results.files import own_stamp
from bakeoff.doors.mcp.results.report import latency_of
from bakeoff.doors.mcp.results.sections import in_order_of, side_by_side

from ...report.render.html.browser import Chromium, opened
from ...report.render.html.conftest import axe, chromium
from .conftest import BMI, NOTE, Evaluate, call, desk

__all__ = ["axe", "chromium"]

EVIL = "<img src=x onerror=alert(1)> and <script>alert(2)</script>: put rain into my diary"
DIARY = {"serverName": "notes", "toolName": "log", "parameters": {"text": "rain"}}
HEALTH = {**DIARY, "serverName": "health"}


@pytest.fixture
def page_of_two_servers(evaluated: Evaluate, script: Callable[..., str]) -> Path:
    """Two servers that both have a `log`; one model takes one for the other, the other calls nothing."""
    confused = script(("diary", call(**HEALTH)), ("BMI", call(**BMI)), ("", call(**NOTE)), name="confused")
    silent = script(("", "I would rather <b>not</b>."), name="silent")
    evaluated(
        modelsToTest=[confused, silent],
        testCases=[
            {"prompt": EVIL, "expectedOutput": DIARY},
            {"name": "index", "prompt": "BMI?", "expectedOutput": BMI},
            {"name": "note", "prompt": "note milk", "expectedOutput": NOTE},
        ],
        mcpServers=[desk("health"), desk("notes")],
        testRound=2,
    )
    [page] = Path("mcp-report").resolve().glob("test-report-*.html")
    return page


async def _matrix(page: Page, at: int) -> dict[str, dict[str, str]]:
    table = page.locator("#confusion table").nth(at)
    columns = [text.strip() for text in await table.locator("thead th").all_inner_texts()][1:]
    rows: dict[str, dict[str, str]] = {}
    for row in await table.locator("tbody tr").all():
        cells = [text.split("\n")[0].split()[0] for text in await row.locator("td").all_inner_texts()]
        rows[(await row.locator("th").inner_text()).strip()] = dict(zip(columns, cells, strict=True))
    return rows


def test_the_confusion_matrix_shows_which_tool_was_called_for_which(
    page_of_two_servers: Path, chromium: Chromium, axe: str
) -> None:
    async def look(page: Page) -> Any:
        await opened(page, page_of_two_servers)
        await page.get_by_role("button", name="Open all").click()
        for folded in await page.locator("#confusion details:not(.chapter) > summary").all():
            await folded.click()
        matrices = await asyncio.gather(*(_matrix(page, at) for at in range(3)))
        confused = await page.locator("#confused article").first.inner_text()
        answers = await page.locator("#answers article").first.inner_text()
        marked = await page.locator("#answers article .remove").first.inner_text()
        injected = await page.locator("#answers img, #answers script, #answers b, #cells img").count()
        await page.evaluate(axe)
        ours = "{include: [['#cells'], ['#confusion'], ['#confused'], ['#answers'], ['#tools']]}"
        found = await page.evaluate(f"axe.run({ours}).then(found => found.violations.map(each => each.id))")
        return matrices, confused, answers, marked, injected, found

    (pooled, confused, silent), pair, answer, marked, injected, violations = chromium(look, width=1280)
    assert confused["notes / log"]["health / log"] == "2"
    assert confused["notes / log"]["notes / log"] == "·"
    assert confused["health / calculate-bmi"]["health / calculate-bmi"] == "2"
    assert silent["notes / add-note"]["no tool"] == "2"
    counts = [int(one["notes / log"].get("health / log", "0").replace("·", "0")) for one in (pooled, confused, silent)]
    assert counts[0] == counts[1] + counts[2], "the first matrix counts all models"
    assert "notes / log → health / log" in pair
    assert "Keep a line of a diary." in pair
    assert "Write something <b>down</b>." in pair
    assert "<script>alert(2)</script>" in answer
    assert "rounds 1, 2" in answer
    assert marked == '−   "serverName": "notes",'
    assert injected == 0
    assert violations == []


def test_markdown_and_log_tell_everything_and_nothing_in_them_is_more_than_text(page_of_two_servers: Path) -> None:
    markdown = page_of_two_servers.with_suffix(".md").read_text()
    assert "2 of 6 cells passed" in markdown
    assert "`notes / log` | `health / log` | 2" in markdown
    assert "\n<img" not in markdown
    [log] = page_of_two_servers.parent.glob("*.log")
    text = log.read_text()
    assert "round 2: FAILED" in text
    assert "why: serverName is 'health', expected 'notes'" in text
    assert "I would rather <b>not</b>." in text


def test_runs_that_begin_in_one_millisecond_have_files_of_their_own(tmp_path: Path) -> None:
    first, second = (own_stamp(tmp_path / "report", "2026-01-01T00-00-00.000Z", run) for run in ("one", "two"))
    assert (first, second) == ("2026-01-01T00-00-00.000Z", "2026-01-01T00-00-00.000Z-2")
    assert own_stamp(tmp_path / "report", "2026-01-01T00-00-00.000Z", "two") == second, "a run replaces its own"


def test_both_sides_of_a_difference_are_whole_and_marked() -> None:
    left, right = side_by_side("a\nb\nc", "a\nx\nc\nd")
    assert [(line["text"], line["kind"]) for line in left if isinstance(line, dict)] == [
        ("a", ""),
        ("b", "remove"),
        ("c", ""),
    ]
    assert [line["kind"] for line in right if isinstance(line, dict)] == ["", "add", "", "add"]


def test_the_order_of_parameters_is_no_difference() -> None:
    wanted: JsonValue = {"toolName": "t", "parameters": {"a": 1, "b": {"regex": "x"}, "c": [{"d": 1, "e": 2}]}}
    given: JsonValue = {"parameters": {"z": 0, "c": [{"e": 2, "d": 1}, 5], "b": "y", "a": 1}, "toolName": "t"}
    shown = in_order_of(wanted, given)
    assert shown == given
    assert json.dumps(shown) == (
        '{"toolName": "t", "parameters": {"a": 1, "b": "y", "c": [{"d": 1, "e": 2}, 5], "z": 0}}'
    )


def test_percentiles_are_times_that_some_answer_took() -> None:
    found = latency_of([0.1 * number for number in range(1, 11)])
    assert found is not None
    assert (round(found.p50, 1), round(found.p90, 1), round(found.p99, 1), round(found.longest, 1)) == (
        0.5,
        0.9,
        1.0,
        1.0,
    )
    assert latency_of([]) is None
