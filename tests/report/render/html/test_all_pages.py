"""Test what holds on every page: one mark for each subject, counts that agree with their nouns, and room for names."""

import re
from pathlib import Path

import pytest
from playwright.async_api import Page

from bakeoff.report.compare.comparison import CompareRequest, compare_sources
from bakeoff.report.compare.description import describe_comparison
from bakeoff.report.readers import open_source
from bakeoff.report.reasons import normalised
from bakeoff.report.render.html.index_page import read_entries, write_index, write_leaderboard
from bakeoff.report.render.html.render import write_report_page
from bakeoff.report.render.html.run_page import write_run_page

from ...runs import plan_of, run_of
from .browser import Chromium, opened, until

pytestmark = pytest.mark.full

SUBJECTS = ("opus", "sonnet", "haiku", "mini", "qwen", "gemini", "codex", "nop")
LONG = "component-suite-with-a-very-long-name-that-somebody-chose-for-good-reasons"


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two runs of eight subjects in another order, with every kind of page."""
    results = tmp_path_factory.mktemp("all") / "results"
    values = {name: (lambda case, _, at=at: float((case + at) % 3 > 0)) for at, name in enumerate(SUBJECTS)}
    runs = [
        run_of(results / "runs" / f"2026-10-0{number}T12-00-00-{LONG}", plan_of(8, names, name=LONG), values)
        for number, names in enumerate((SUBJECTS, SUBJECTS[::-1]), 1)
    ]
    pages = {"run": write_run_page(runs[0]), "other run": write_run_page(runs[1])}
    pages["leaderboard"] = write_leaderboard(results, results / "leaderboard.html")
    report = compare_sources(open_source(runs[0].path), open_source(runs[1].path), CompareRequest(most_details=1))
    pages["comparison"] = write_report_page(results / "comparison.html", describe_comparison(report))
    pages["index"] = write_index(results / "index.html", read_entries(results))
    return pages


MARKS = """() => Object.fromEntries([...document.querySelectorAll("tbody svg.subject")].map((mark) => [
  mark.parentElement.textContent.trim().split(/\\s/)[0],
  `${mark.getAttribute("class").match(/series-\\d+/)[0]} ${mark.querySelector("use").getAttribute("href")}`,
]))"""


def test_a_subject_has_the_same_colour_and_shape_on_every_page(chromium: Chromium, everything: dict[str, Path]) -> None:
    async def look(page: Page) -> dict[str, dict[str, str]]:
        found = {}
        for name, path in everything.items():
            await opened(page, path)
            found[name] = await page.evaluate(MARKS)
        return found

    found = chromium(look)
    first = found["run"]
    assert set(first) == set(SUBJECTS)
    for name, marks in found.items():
        assert marks.items() <= first.items(), name
        assert len(marks) >= 7, name


def test_the_marks_of_plots_are_those_of_tables(chromium: Chromium, everything: dict[str, Path]) -> None:
    drawn = """() => Object.fromEntries([...document.querySelectorAll("#tradeoffs g.spot")].map((spot) => [
      spot.querySelector("title").textContent.split(":")[0],
      `${spot.getAttribute("class").match(/series-\\d+/)[0]} ${spot.querySelector("use").getAttribute("href")}`,
    ]))"""

    async def look(page: Page) -> tuple[dict[str, str], dict[str, str]]:
        await opened(page, everything["leaderboard"])
        return await page.evaluate(drawn), await page.evaluate(MARKS)

    plotted, listed = chromium(look)
    assert len(plotted) == 7
    assert plotted == listed


@pytest.mark.parametrize("width", [390, 700, 1000, 1150, 1320, 1400])
def test_no_page_scrolls_sideways_with_long_names(width: int, chromium: Chromium, everything: dict[str, Path]) -> None:
    async def look(page: Page) -> dict[str, int]:
        wider = {}
        for name, path in everything.items():
            await opened(page, path)
            wider[name] = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
            if name == "index" and width >= 1000:
                table = "document.querySelector('#run-table .window')"
                wider["its table"] = await page.evaluate(f"{table}.scrollWidth - {table}.clientWidth")
        return wider

    assert max(chromium(look, width=width).values()) <= 0


def test_a_comparison_of_eight_subjects_is_closed_until_one_is_opened(
    chromium: Chromium, everything: dict[str, Path]
) -> None:
    async def look(page: Page) -> tuple[int, int, bool, int]:
        await opened(page, everything["comparison"])
        height = await page.evaluate("document.documentElement.scrollHeight")
        closed = await page.locator("details.chapter:not([open])").count()
        await page.locator("#differences tbody a").nth(3).click()
        await until(page, "document.querySelector('#pair-4 > details').open")
        visible = await page.locator("#pair-4 table").first.is_visible()
        await page.get_by_role("button", name="Open all").click()
        await page.get_by_role("button", name="Close all").wait_for()
        return height, closed, visible, await page.locator("details.chapter:not([open])").count()

    height, closed, visible, left = chromium(look)
    assert height < 3000
    assert closed >= 8
    assert visible
    assert left == 0


def test_the_index_leads_to_the_leaderboard_and_gives_the_interval_of_a_difference(
    chromium: Chromium, everything: dict[str, Path]
) -> None:
    async def look(page: Page) -> tuple[str, str, str]:
        await opened(page, everything["index"])
        for place in (0, 2):
            await page.locator("#run-table input").nth(place).check()
        around = await page.locator("#compare .around").inner_text()
        address = await page.evaluate("location.hash")
        await page.reload()
        await page.wait_for_selector("#compare .around")
        assert await page.evaluate("location.hash") == address
        await page.go_back()
        await until(page, "document.querySelector('#compare').textContent.includes('Tick one more')")
        await page.locator(".onward a").click()
        await page.wait_for_selector("html[data-ready=yes]", state="attached")
        return around, address, await page.locator("h1").inner_text()

    around, address, title = chromium(look)
    assert re.fullmatch(r"95 %: [+−]\d+\.\d to [+−]\d+\.\d", around)
    assert address.count("tick=") == 2
    assert title == "Leaderboard"


def test_one_of_anything_is_not_a_plural(tmp_path: Path, chromium: Chromium) -> None:
    results = tmp_path / "results"
    for number, value in enumerate((0.0, 1.0)):
        folder = results / "runs" / f"run-{number}"
        write_run_page(run_of(folder, plan_of(1, ["solo"], name="one"), {"solo": lambda *_, value=value: value}))
    first, second = (open_source(results / "runs" / f"run-{number}") for number in (0, 1))
    report = compare_sources(first, second)
    pages = [
        results / "runs" / "run-0" / "report.html",
        write_leaderboard(results, results / "leaderboard.html"),
        write_report_page(results / "comparison.html", describe_comparison(report)),
        write_index(results / "index.html", list(read_entries(results))[:1]),
    ]

    async def look(page: Page) -> list[str]:
        texts = []
        for path in pages:
            await opened(page, path)
            texts.append(await page.evaluate("document.body.textContent"))
        await opened(page, pages[0], "#t=0")
        await page.locator("#trial-body h3").first.wait_for()
        return [*texts, await page.locator("#trial").inner_text()]

    things = "runs|cases|trials|subjects|rounds|scores|rows|tests|steps|calls|lines|files|tokens|marks|groups|pairs"
    wrong = [found for text in chromium(look) for found in re.findall(rf"(?<![\d.,])1 (?:\w+ )?(?:{things})\b", text)]
    assert wrong == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("HTTP 503 from 10.0.0.1 after 3.5 s, 1ebb3ef78a70103f", "HTTP 503 from 10.0.9.77 after 41 s, 99aa99aa"),
        ("expected 'a' but got 'b' at line 7", "expected 'c d' but got 'e' at line 81"),
        ("/tmp/ws-1/tests/test_a.py: KeyError: 'x'", "/tmp/ws-22/more/tests/test_a.py: KeyError: 'yy'"),
        (
            "session 0b2c7f3a-1111-4222-8333-944445555666 is gone",
            "session 9f2c7f3a-1111-4222-8333-944445555666 is gone",
        ),
    ],
)
def test_messages_of_one_cause_become_equal(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


def test_messages_of_different_causes_stay_different() -> None:
    told = ("HTTP 503 from the provider", "HTTP 429 from the provider", "KeyError: 'x'", "TypeError: 'x'")
    assert len({normalised(one) for one in told}) == len(told)
    assert normalised("HTTP 503 after 3 s") == "HTTP 503 after N s"
