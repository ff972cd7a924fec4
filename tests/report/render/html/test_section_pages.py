"""The pages of `bakeoff compare` and `bakeoff leaderboard`, as a reader meets them."""

import json
import re
import stat
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from playwright.async_api import Page

from bakeoff.errors import RunFolderError
from bakeoff.report.blocks import Column, Datum, Difference, ForestPlot, Report, Section, Table, TextSpan
from bakeoff.report.compare.comparison import CompareReport, CompareRequest, compare_sources
from bakeoff.report.compare.description import describe_comparison
from bakeoff.report.leaderboard import describe_leaderboard, rank_sources
from bakeoff.report.readers import Source, open_source
from bakeoff.report.render.html.drawing import WIDTH, forest
from bakeoff.report.render.html.render import file_link, write_report_page

from ...runs import Values, plan_of, record_of, run_of, source, write_run
from .browser import Chromium, opened, until

pytestmark = pytest.mark.full


def pair_of(tmp_path: Path, old: Values, new: Values, cases: int = 20) -> tuple[Source, Source]:
    before = run_of(tmp_path / "before", plan_of(cases, list(old)), old)
    after = run_of(tmp_path / "after", plan_of(cases, list(new)), new)
    return source(before), source(after)


def test_a_comparison_opens_with_its_verdict_and_every_denominator(
    chromium: Chromium, compare_page: Path, one_comparison: CompareReport
) -> None:
    async def look(page: Page) -> tuple[str, str, list[str]]:
        await opened(page, compare_page)
        head = page.locator(".title")
        return (
            await head.locator("h1").inner_text(),
            await head.locator(".chip").inner_text(),
            await page.locator(".tiles dd").all_inner_texts(),
        )

    [pair] = one_comparison.pairs
    compared = pair.comparison
    title, verdict, tiles = chromium(look)
    assert title == "opus against haiku"
    assert verdict.lower() == {0: "gate passed", 1: "gate failed", 3: "gate undecided"}[pair.exit_code]
    assert compared.difference is not None
    assert f"{100 * compared.difference:+.1f} points" in tiles[0]
    assert f"{compared.wins} · {compared.ties} · {compared.losses}" in tiles[1]
    assert f"of {compared.cases} cases in pairs" in tiles[1]


def test_a_difference_is_drawn_with_its_interval_and_has_its_numbers_behind_it(
    chromium: Chromium, compare_page: Path, one_comparison: CompareReport
) -> None:
    async def look(page: Page) -> tuple[int, int, int, str]:
        await opened(page, compare_page)
        plot = page.locator("#difference figure.forest")
        return (
            await plot.locator(".whisker").count(),
            await plot.locator(".zero").count(),
            await plot.locator(".margin").count(),
            await plot.locator("details.numbers tbody").text_content() or "",
        )

    interval = one_comparison.pairs[0].comparison.interval
    assert interval is not None
    line_and_caps, zero, margin, numbers = chromium(look)
    assert (line_and_caps, zero, margin) == (3, 1, 1)
    assert f"{100 * interval.low:+.3g} to {100 * interval.high:+.3g}" in numbers


def test_every_case_is_listed_worst_first_and_leads_to_what_changed_in_it(
    chromium: Chromium, compare_page: Path, one_comparison: CompareReport
) -> None:
    async def look(page: Page) -> tuple[list[str], str, list[str], str]:
        await opened(page, compare_page)
        outcomes = await page.locator("#cases tbody tr td:nth-child(2)").all_inner_texts()
        await page.locator("#cases tbody a").first.click()
        await until(page, "document.querySelector(location.hash) !== null")
        change = page.locator(await page.evaluate("location.hash"))
        lines = await change.locator("pre .add, pre .remove").all_text_contents()
        return outcomes, await change.locator("h3").inner_text(), lines, await change.inner_text()

    outcomes, title, lines, text = chromium(look)
    [pair] = one_comparison.pairs
    assert len(outcomes) == pair.comparison.cases == 14
    assert [outcome.strip() for outcome in outcomes] == sorted(
        (outcome.strip() for outcome in outcomes), key=["worse", "not scored", "better", "same"].index
    )
    assert title.startswith(pair.details[0].case)
    assert {line[0] for line in lines} == {"+", "-"}
    for part in ("Verdicts", "Reason", "Cost", "transcript", "file solution.py"):
        assert part in text


def test_what_was_not_the_same_and_what_has_no_partner_is_named(chromium: Chromium, compare_page: Path) -> None:
    async def look(page: Page) -> tuple[str, list[str], str]:
        await opened(page, compare_page)
        return (
            await page.locator("#circumstances").inner_text(),
            await page.locator("#unmatched tbody tr").all_inner_texts(),
            await page.locator("#difference > .notes").first.text_content() or "",
        )

    circumstances, alone, notes = chromium(look)
    assert re.search(r"rounds\s+2\s+3", circumstances)
    assert re.search(r"model\s+maker/haiku\s+maker/opus", circumstances)
    assert [re.split(r"\s*\t\s*", row.strip()) for row in alone] == [
        ["case-00001", "with changed content, and so not compared"],
        ["case-00000", "only in the baseline"],
        ["case-00016", "only in the candidate"],
    ]
    assert "Of the candidate, 6 of 48 trials were answered from recordings." in notes


def test_several_subjects_are_drawn_together_and_each_has_its_part(chromium: Chromium, several_page: Path) -> None:
    async def look(page: Page) -> tuple[list[str], int, list[str], int]:
        await opened(page, several_page)
        menu = await page.locator(".top nav a").all_inner_texts()
        marks = await page.locator("#differences .difference").count()
        await page.locator("#differences tbody a").nth(2).click()
        there = await page.evaluate("document.querySelector(location.hash).querySelector('h2').textContent")
        ids = await page.evaluate("[...document.querySelectorAll('[id]')].map((one) => one.id)")
        return menu, marks, [there], len(ids) - len(set(ids))

    menu, marks, there, twice = chromium(look)
    assert menu == ["Differences", *(f"Undecidable: {name}" for name in ("opus", "sonnet", "haiku", "mini"))]
    assert marks == 4
    assert there == ["Undecidable: haiku"]
    assert twice == 0, "an id that is there twice leads astray"


def test_the_leaderboard_shows_ties_costs_times_and_both_intervals(chromium: Chromium, leaderboard_page: Path) -> None:
    async def look(page: Page) -> tuple[list[str], int, int, str]:
        await opened(page, leaderboard_page)
        plots = page.locator("#tradeoffs figure.plot")
        return (
            await page.locator("#ranking tbody tr").first.locator("th, td").all_inner_texts(),
            await plots.nth(1).locator(".frontier").count(),
            await plots.nth(1).locator(".whisker").count(),
            await plots.nth(1).locator("details.numbers thead").text_content() or "",
        )

    row, frontier, whiskers, head = chromium(look)
    assert row[0] == "sonnet"
    assert re.fullmatch(r"1(–\d)?", row[1])
    assert re.fullmatch(r"[a-z]( [a-z])*", row[2])
    assert re.search(r"\d+\.\d–\d+\.\d", row[4])
    assert row[7].startswith("$")
    assert row[8].endswith(" s")
    assert row[9].startswith("$")
    assert frontier == 1
    assert whiskers == 7 * 6, "each of seven marks has a line and two ends each way"
    assert head.count("95 % interval") == 2


def test_numbers_lead_to_the_run_they_come_from(chromium: Chromium, leaderboard_page: Path) -> None:
    async def look(page: Page) -> list[tuple[str, str]]:
        await opened(page, leaderboard_page)
        links = page.locator("#provenance tbody a")
        return [(await one.inner_text(), await one.get_attribute("href") or "") for one in await links.all()]

    links = chromium(look)
    assert len(links) == 7
    for name, href in links:
        assert not href.startswith("/")
        target = (leaderboard_page.parent / unquote(href)).resolve()
        assert target.is_file()
        assert target.parent.name == name
        assert target.name == ("report.html" if name.endswith("parsers") else "journal.jsonl"), (
            "the page if there is one"
        )


def test_a_run_that_is_gone_is_told_by_its_path(tmp_path: Path) -> None:
    assert file_link(tmp_path / "page.html", "results/runs/gone") is None
    odd = tmp_path / "javascript:alert(1) #?.jsonl"
    odd.write_text("")
    assert file_link(tmp_path / "page.html", str(odd)) == "javascript%3Aalert%281%29%20%23%3F.jsonl"
    assert file_link(tmp_path / "page.html", "nul\0byte") is None


def test_what_the_person_writes_for_others_can_be_read_by_them(compare_page: Path, leaderboard_page: Path) -> None:
    assert {stat.S_IMODE(page.stat().st_mode) for page in (compare_page, leaderboard_page)} == {0o644}


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match=r"file/x\.html cannot be written"):
        write_report_page(tmp_path / "file" / "x.html", Report("x", ()))


def test_the_same_comparison_gives_the_same_bytes(tmp_path: Path, one_comparison: CompareReport) -> None:
    one, other = (
        write_report_page(tmp_path / name, describe_comparison(one_comparison)) for name in ("1.html", "2.html")
    )
    assert one.read_bytes() == other.read_bytes()


def test_light_and_dark_can_be_chosen_and_tables_sorted_by_keyboard(chromium: Chromium, leaderboard_page: Path) -> None:
    async def look(page: Page) -> tuple[str, str, list[str]]:
        await opened(page, leaderboard_page)
        await page.keyboard.press("Tab")
        first = await page.evaluate("document.activeElement.textContent")
        await page.locator("#theme").focus()
        await page.keyboard.press("Enter")
        theme = await page.evaluate("document.documentElement.dataset.theme")
        await page.locator("#ranking").get_by_role("button", name="Time").focus()
        await page.keyboard.press("Enter")
        return first, theme, await page.locator("#ranking tbody td:nth-last-child(2)").all_inner_texts()

    first, theme, times = chromium(look)
    assert first == "Skip to content"
    assert theme == "dark"
    seconds = [float(time.removesuffix(" s")) for time in times]
    assert seconds == sorted(seconds, reverse=True)


def test_thousands_of_cases_are_drawn_only_where_they_are_seen(chromium: Chromium, tmp_path: Path) -> None:
    old: Values = {"s": lambda case, round_: float(case % 2)}
    new: Values = {"s": lambda case, round_: float(case % 3 == 0)}
    report = compare_sources(*pair_of(tmp_path, old, new, cases=1500), CompareRequest(most_details=0))
    path = write_report_page(tmp_path / "page.html", describe_comparison(report))

    async def look(page: Page) -> tuple[str | None, int, str]:
        await opened(page, path)
        rows = page.locator("#cases tbody tr:not(.gap)")
        total = await page.locator("#cases table").get_attribute("aria-rowcount")
        return total, await rows.count(), await rows.first.inner_text()

    total, drawn, first = chromium(look)
    assert total == "1501"
    assert drawn < 150
    assert "worse" in first


def test_a_long_table_draws_intervals_trails_and_chips_as_a_short_one_does(chromium: Chromium, tmp_path: Path) -> None:
    row = (
        Datum(text="x", tone="pass"),
        Datum(text="0.5", span=TextSpan(value=0.5, low=0.2, high=0.8)),
        Datum(text="3 runs", trail=(0.1, 0.9, 0.5)),
    )
    titles = tuple(Column(title=title) for title in ("a", "b", "c"))
    sections = [
        Section(id=name, title=name, blocks=(Table(columns=titles, rows=(row,) * rows, caption=name),))
        for name, rows in (("short", 2), ("long", 600))
    ]
    path = write_report_page(tmp_path / "page.html", Report("Tables", tuple(sections)))

    async def look(page: Page) -> list[list[str]]:
        await opened(page, path)
        drawn = "[...document.querySelectorAll(`#${id} tbody tr:not(.gap):nth-of-type(2) [class]`)]"
        # The place of lines too, not only that they are there.
        told = "one.getAttribute('class') + (one.getAttribute('points') ?? one.getAttribute('viewBox') ?? '')"
        found: list[list[str]] = await page.evaluate(f"['short', 'long'].map((id) => {drawn}.map((one) => {told}))")
        return found

    def marks(classes: list[str]) -> set[str]:
        return {
            name.strip() for name in classes if name.startswith(("chip", "track", "spark", "rail", "range", "here"))
        }

    short, long = map(marks, chromium(look))
    assert short == long
    assert short == {"chip tone-pass", "track0 0 108 14", "rail", "range", "here", "spark0 0 120 22"}


def test_a_replayed_trial_is_marked_in_the_overview_the_list_and_its_own_page(
    chromium: Chromium, two_runs: tuple[Path, Path]
) -> None:
    report = two_runs[1] / "report.html"

    async def look(page: Page) -> tuple[str, str, str, str]:
        await opened(page, report, "#t=0")
        await page.locator("#trial-body h3").first.wait_for()
        mine = await page.locator("#trial").inner_text()
        await page.goto(report.as_uri() + "#t=100")
        await page.reload()
        await page.locator("#trial-body h3").first.wait_for()
        other = await page.locator("#trial").inner_text()
        await page.locator("#trial-close").click()
        notes = await page.locator("#overview .notes").text_content() or ""
        return mine, other, notes, await page.locator("#trial-table tbody tr:not(.gap)").first.inner_text()

    mine, other, notes, row = chromium(look)
    assert "replayed" in mine.split("Scores")[0]
    assert "replayed from recordings" in mine
    assert "replayed" not in other
    assert "24 of 192 trials were answered from recordings (opus 6, sonnet 6, haiku 6, mini 6)" in notes
    assert "replayed" in row


def test_a_run_without_replays_does_not_speak_of_them(chromium: Chromium, run_page: Path) -> None:
    async def look(page: Page) -> str:
        await opened(page, run_page)
        return await page.locator("#main").inner_text()

    text = chromium(look)
    assert "replayed" not in text
    assert "recordings" not in text


def test_every_verdict_and_an_undefined_interval_can_be_shown(tmp_path: Path) -> None:
    always: Values = {"s": lambda case, round_: 1.0}
    never: Values = {"s": lambda case, round_: 0.0}
    for number, (old, new, cases, word) in enumerate(
        [(never, always, 20, "Gate passed"), (always, never, 20, "Gate failed"), (never, always, 1, "Gate passed")]
    ):
        report = compare_sources(*pair_of(tmp_path / str(number), old, new, cases))
        html = write_report_page(tmp_path / f"{number}.html", describe_comparison(report)).read_text()
        assert re.search(rf'<span class="chip tone-\w+">{word}</span>', html)
        assert ("the interval needs 2 cases" in html) == (cases == 1)


def test_runs_without_a_common_case_are_said_to_be_unpaired(tmp_path: Path, two_runs: tuple[Path, Path]) -> None:
    alone = write_run(tmp_path / "alone", plan_of(3, ["opus"]), [record_of(t) for t in plan_of(3, ["opus"]).trials()])
    report = compare_sources(open_source(two_runs[0]), source(alone), CompareRequest(subjects=("opus", "opus")))
    html = write_report_page(tmp_path / "page.html", describe_comparison(report)).read_text()
    assert "Paired difference" not in html
    assert "the comparison is unpaired" in html


def test_a_board_of_one_subject_without_costs_is_a_page_too(tmp_path: Path) -> None:
    plan = plan_of(1, ["s"])
    bare = [record_of(trial, spent={}, transcript=None) for trial in plan.trials()]
    ranked = rank_sources([source(write_run(tmp_path / "run", plan, bare))])
    board = ranked.model_copy(update={"unreadable": ("results/runs/x cannot be read",)})
    html = write_report_page(tmp_path / "board.html", describe_leaderboard(board)).read_text()
    assert 'id="tradeoffs"' not in html, "one mark is no plot"
    assert "results/runs/x cannot be read" in html


@pytest.mark.parametrize("ends", [(-1.0, 1.0), (0.0, 0.0), (-0.001, 0.002), (0.4, 0.9)])
def test_differences_of_any_size_stay_on_the_canvas(ends: tuple[float, float]) -> None:
    data: Any = forest(ForestPlot("t", (Difference("x", sum(ends) / 2, ends, ends),), margin=0.3)).data
    shares = [*data["ticks"], *data["drawn"][0].interval, -0.3, 0.3]
    assert all(0 <= data["at"](share) <= WIDTH for share in shares)
    assert len(data["ticks"]) <= 9


def test_every_column_of_the_cases_is_seen_on_a_small_screen(chromium: Chromium, compare_page: Path) -> None:
    async def look(page: Page) -> int:
        await opened(page, compare_page)
        table = page.locator("#cases .scroll")
        hidden: int = await table.evaluate("(shown) => shown.scrollWidth - shown.clientWidth")
        return hidden

    assert chromium(look, width=1024) == 0


ORDER = "() => [...document.querySelectorAll('#ranking tbody th')].map((one) => one.textContent.trim())"


def test_the_order_of_a_plain_table_is_kept_in_the_address(chromium: Chromium, leaderboard_page: Path) -> None:
    async def look(page: Page) -> tuple[str, list[list[str]]]:
        await opened(page, leaderboard_page)
        orders = [await page.evaluate(ORDER)]
        for _ in range(2):
            await page.locator("#ranking th button").get_by_text("Subject", exact=True).click()
            orders.append(await page.evaluate(ORDER))
        address = await page.evaluate("location.hash")
        await page.reload()
        await page.wait_for_selector("html[data-ready=yes]", state="attached")
        orders.append(await page.evaluate(ORDER))
        for expected in (orders[1], orders[0]):
            await page.go_back()
            await until(
                page, f"JSON.stringify(({ORDER})()) === {json.dumps(json.dumps(expected, separators=(',', ':')))}"
            )
        return address, orders

    address, (given, up, down, again) = chromium(look)
    assert address == "#sort.ranking=-Subject"
    assert given != up == sorted(up)
    assert again == down == up[::-1]


@pytest.mark.parametrize("width", [390, 1280])
def test_all_intervals_of_a_table_share_one_axis(width: int, chromium: Chromium, tmp_path: Path) -> None:
    shares = (TextSpan(1.0, 0.2, 1.0), TextSpan(0.05, 0.0, 0.1), TextSpan(0.5))
    texts = ("22.4–100.0", "0–9", "needs 2 cases")
    rows = tuple((text, Datum(text=text, span=span), *"123456789") for text, span in zip(texts, shares, strict=True))
    columns = (Column("Name"), Column("95 % interval", align="end"), *(Column(f"More {n}") for n in range(9)))
    table = Table(caption="Ranges", columns=columns, rows=rows)
    report = Report(title="Report", headline="", sections=(Section(id="one", title="One", blocks=(table,)),))
    path = write_report_page(tmp_path / "report.html", report)
    places = """() => [...document.querySelectorAll(".track, .track-ends")].map((one) => {
      const box = one.getBoundingClientRect();
      return `${Math.round(box.left)} to ${Math.round(box.right)}`;
    }).filter((one) => one !== "0 to 0")"""

    cut = """() => [...document.querySelectorAll("td, tbody th")]
      .filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent.trim())"""

    async def look(page: Page) -> tuple[list[str], list[str]]:
        await opened(page, path)
        return await page.evaluate(places), await page.evaluate(cut)

    found, wider = chromium(look, width=width)
    assert wider == [], "a text reaches into the next column"
    assert len(found) == (3 if width == 390 else 4)
    assert len(set(found)) == 1
