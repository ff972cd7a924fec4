"""The page of one run, as a reader meets it."""

import base64
import hashlib
import json
import re
import stat
from pathlib import Path

import pytest
from playwright.async_api import Page

from bakeoff.errors import RunFolderError
from bakeoff.plan import Plan
from bakeoff.report.blocks import Column, Datum, DoorParts, Facts, Section, Table
from bakeoff.report.render.html.run_data import RunData
from bakeoff.report.render.html.run_page import write_run_page
from bakeoff.storage.run_folder import RunFolder

from .browser import Chromium, opened, until
from .generator import line_of, plan_of, records_of, write_lines, write_run

pytestmark = pytest.mark.full


def test_the_page_is_private_and_lies_beside_the_journal(tmp_path: Path) -> None:
    page = write_run_page(write_run(tmp_path / "run", plan_of(2)))
    assert page == tmp_path / "run" / "report.html"
    assert stat.S_IMODE(page.stat().st_mode) == 0o600


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", plan_of(3))
    one, other = write_run_page(run, tmp_path / "1.html"), write_run_page(run, tmp_path / "2.html")
    assert one.read_bytes() == other.read_bytes()


def test_the_policy_lets_only_our_own_style_and_script_act(run_page: Path) -> None:
    html = run_page.read_text("utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)
    assert policy is not None
    rules = policy[1].replace("&#39;", "'")
    assert rules.startswith("default-src 'none'; ")
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in rules
    assert "unsafe" not in rules
    assert re.findall(r'(?:src|href)="(?:https?:)?//', html) == []
    assert " style=" not in html


def test_every_denominator_is_printed(chromium: Chromium, run_page: Path) -> None:
    async def look(page: Page) -> list[str]:
        await opened(page, run_page)
        return await page.locator("#overview tbody tr").first.locator("th, td").all_inner_texts()

    name, score, interval, passed, lost, spent, seconds, at_k, hat_k, missing, tokens = chromium(look)
    for estimate in (at_k, hat_k):
        assert re.fullmatch(r"\d+\.\d %\s\(\d+\.\d–\d+\.\d over \d+ cases\)", estimate)
    assert name == "opus"
    assert re.fullmatch(r"\d+\.\d %", score)
    assert re.search(r"\d+\.\d–\d+\.\d", interval)
    assert re.fullmatch(r"\d+/\d+", passed)
    assert (lost, missing) == ("0", "0")
    assert spent.startswith("$")
    assert seconds.endswith(" s")
    assert re.fullmatch(r"[\d,]+", tokens)


def test_a_plot_has_its_numbers_in_a_table_behind_it(chromium: Chromium, run_page: Path) -> None:
    async def look(page: Page) -> tuple[int, int, int]:
        await opened(page, run_page)
        figures = page.locator("#tradeoffs figure.plot")
        marks, rows = figures.locator("svg .mark"), figures.locator("details.numbers tbody tr")
        return await figures.count(), await marks.count(), await rows.count()

    assert chromium(look) == (2, 8, 8)


def test_a_cell_of_the_matrix_opens_its_trial_with_the_whole_transcript(chromium: Chromium, run_page: Path) -> None:
    async def look(page: Page) -> tuple[str, str, str]:
        await opened(page, run_page)
        await page.locator("#matrix a.cell").first.click()
        body = page.locator("#trial-body")
        await body.locator("h3", has_text="Steps").wait_for()
        text = await body.inner_text()
        await page.keyboard.press("Escape")
        await page.locator("#trial:not([open])").wait_for(state="attached")
        return await page.locator("#trial-title").inner_text(), text, await page.evaluate("location.hash")

    title, text, place = chromium(look)
    assert title == "" or title == "case-00000"
    for part in ("Prompt", "Scores", "reasoning", "run_tests", "Arguments", "Result", "solution.py", "tokens in"):
        assert part in text
    assert place == ""


async def searched_all(page: Page) -> None:
    """Wait until what was said has been searched too."""
    await until(page, "!document.querySelector('#trial-count').textContent.includes('search')")


def test_the_list_is_searched_filtered_and_sorted(chromium: Chromium, run_page: Path) -> None:
    async def look(page: Page) -> tuple[str, str, str, list[str]]:
        await opened(page, run_page)
        everything = await page.locator("#trial-count").inner_text()
        await page.locator("#trial-filters [name=text]").fill("case-00003")
        await searched_all(page)
        searched = await page.locator("#trial-count").inner_text()
        await page.locator("#trial-filters [name=subject]").select_option(label="mini")
        await searched_all(page)
        filtered = await page.locator("#trial-count").inner_text()
        await page.locator("#trial-filters [name=text]").fill("")
        await page.get_by_role("button", name="Time", exact=True).last.click()
        times = await page.locator("#trial-table tbody tr td:nth-child(6)").all_inner_texts()
        return everything, searched, filtered, times

    everything, searched, filtered, times = chromium(look)
    assert everything == "96 of 96 recorded trials"
    assert searched == "8 of 96 recorded trials"
    assert filtered == "2 of 96 recorded trials"
    seconds = [float(time.removesuffix(" s")) for time in times]
    assert seconds == sorted(seconds, reverse=True)


def test_everything_can_be_reached_with_the_keyboard(chromium: Chromium, run_page: Path) -> None:
    async def look(page: Page) -> tuple[str, str, str]:
        await opened(page, run_page)
        await page.keyboard.press("Tab")
        first = await page.evaluate("document.activeElement.textContent")
        await page.locator("#trial-table tbody a").first.focus()
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await page.locator("#trial-body h3").first.wait_for()
        focused = await page.evaluate("document.activeElement.id")
        await page.keyboard.press("j")
        await until(page, "location.hash === '#t=2'")
        await page.keyboard.press("Escape")
        return first, focused, await page.evaluate("document.activeElement.getAttribute('href')")

    assert chromium(look) == ("Skip to content", "trial-title", "#t=1")


def test_a_link_to_a_trial_opens_it(chromium: Chromium, run_page: Path) -> None:
    async def look(page: Page) -> str:
        await opened(page, run_page, "#t=5")
        await page.locator("#trial-body h3").first.wait_for()
        return await page.locator("#trial-sub").inner_text()

    assert "sonnet" in chromium(look)


def test_colours_can_be_switched(chromium: Chromium, run_page: Path) -> None:
    async def look(page: Page) -> list[str]:
        await opened(page, run_page)
        colour = "getComputedStyle(document.body).backgroundColor"
        before = await page.evaluate(colour)
        await page.locator("#theme").click()
        return [before, await page.evaluate(colour)]

    light, dark = chromium(look)
    assert light != dark


def test_a_run_that_has_not_started_has_a_page_too(chromium: Chromium, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    folder.plan_file.write_text(plan_of(2).model_dump_json())
    made = write_run_page(folder)

    async def look(page: Page) -> str:
        await opened(page, made)
        await page.locator("#matrix .cell").first.wait_for()
        return await page.locator(".headline").inner_text()

    assert chromium(look) == "Nothing has been run yet. 8 of 8 trials have no score: 8 not run."


def test_what_cannot_be_read_is_said_on_the_page(tmp_path: Path) -> None:
    plan = plan_of(2)
    lines = [line_of(record) for record in records_of(plan)]
    foreign = json.loads(json.dumps(lines[0]))
    foreign["record"]["attempt_key"] = "f" * 32
    run = write_lines(tmp_path / "run", plan, [*lines, b"not json", foreign])
    with run.journal_file.open("ab") as file:
        file.write(b'{"type":"rec')
    html = write_run_page(run).read_text("utf-8")
    assert "1 line of the journal cannot be read and is left out" in html
    assert "ends in the middle of a line" in html
    assert "1 record belongs to an earlier version of the plan" in html


def test_a_door_adds_sections_as_data(tmp_path: Path, chromium: Chromium) -> None:
    def parts(data: RunData) -> DoorParts:
        rows = tuple((f"row {number}", Datum(text=str(number), sort=number)) for number in range(2000))
        table = Table(columns=(Column(title="Name"), Column(title="Number", align="end")), rows=rows, caption="Long")
        facts = Facts(pairs=(("cases", str(data.summary.cases)),))
        return DoorParts(
            verdict="The door says no.",
            first=(Section(id="own", title="Of the door", blocks=(facts, table)),),
            after=(Section(id="later", title="Later", blocks=()),),
        )

    made = write_run_page(write_run(tmp_path / "run", plan_of(2)), parts=parts)

    async def look(page: Page) -> tuple[int, str]:
        await opened(page, made, "#own")
        rows = page.locator("#own .virtual tbody tr:not(.gap)")
        await rows.first.wait_for()
        await page.locator("#own .virtual button", has_text="Number").click()
        sections = await page.locator("main > section").evaluate_all("all => all.map(one => one.id)")
        assert " ".join(sections) == "overview matrix failures own later tradeoffs costs settings trials"
        assert "The door says no." in await page.locator("header.masthead, main").first.inner_text()
        return await rows.count(), await rows.first.inner_text()

    drawn, first = chromium(look)
    assert drawn < 100
    assert first.split() == ["row", "1999", "1999"]


@pytest.mark.parametrize("plan", [plan_of(2).model_copy(update={"rounds": 10**15}), plan_of(0)])
def test_a_plan_that_no_page_can_show_is_refused_with_a_sentence(plan: Plan, tmp_path: Path) -> None:
    run = write_lines(tmp_path / "run", plan, [])
    with pytest.raises(RunFolderError, match=r"run run (plans|cannot be shown)"):
        write_run_page(run)
