"""The index over a results folder."""

import os
from pathlib import Path

import pytest
from playwright.async_api import Page

from bakeoff.report.blocks import Datum, DoorParts, IndexColumn
from bakeoff.report.render.html.index_page import (
    IndexEntry,
    Unreadable,
    cache_file,
    clean_up,
    page_is_current,
    read_entries,
    read_entry,
    write_current_page,
    write_index,
)
from bakeoff.report.render.html.run_data import RunData
from bakeoff.storage.journal import JournalWriter
from bakeoff.storage.redaction import Redactor
from bakeoff.storage.run_folder import RunFolder

from .browser import Chromium, opened
from .generator import line_of, plan_of, records_of, write_lines, write_run

pytestmark = pytest.mark.full


def test_rows_are_searched_and_filtered(chromium: Chromium, index_page: Path) -> None:
    async def look(page: Page) -> list[str]:
        await opened(page, index_page)
        shown = [await page.locator("#run-count").inner_text()]
        await page.locator("[name=text]").fill("refactoring maker/opus")
        shown.append(await page.locator("#run-count").inner_text())
        await page.locator("[name=text]").fill("")
        await page.locator("[name=title]").select_option(label="parsers")
        shown.append(await page.locator("#run-count").inner_text())
        return shown

    assert chromium(look) == ["24 of 24 rows", "3 of 24 rows", "12 of 24 rows"]


def test_names_of_subjects_and_the_last_column_are_whole_at_usual_widths(chromium: Chromium, tmp_path: Path) -> None:
    name = "anthropic:claude-haiku-4-5 with filesystem, svelte-mcp"
    plan = plan_of(8, subjects=2)
    named = plan.model_copy(update={"subjects": (plan.subjects[0].model_copy(update={"name": name}), plan.subjects[1])})
    write_run(tmp_path / "runs" / "2026-09-22T12-00-00-tickets-of-support", named)
    index = write_index(tmp_path / "index.html", read_entries(tmp_path))
    cut = """() => {
      const all = [...document.querySelectorAll('#run-table tbody td:nth-child(4) > span, #run-table .window')];
      const isCut = (one) => one.scrollWidth > one.clientWidth
        || (one.matches('span') && one.scrollHeight > one.clientHeight);
      return all.filter(isCut).map((one) => one.textContent);
    }"""

    async def look(page: Page) -> list[str]:
        await opened(page, index)
        found: list[str] = await page.evaluate(cut)
        return found

    assert [chromium(look, width=width) for width in (1280, 1400)] == [[], []]


def test_two_that_are_ticked_stand_side_by_side_with_the_command_that_judges_them(
    chromium: Chromium, index_page: Path
) -> None:
    async def look(page: Page) -> tuple[str, str, int]:
        await opened(page, index_page)
        boxes = page.locator("#run-table input[type=checkbox]")
        for place in (0, 1, 9):
            await boxes.nth(place).check()
        command = await page.locator("#compare code").inner_text()
        score = await page.locator("#compare tbody tr").first.inner_text()
        return command, score, await page.locator("#run-table input:checked").count()

    command, score, ticked = chromium(look)
    assert command.startswith(
        "bakeoff compare 2026-09-26T12-00-00-refactoring 2026-09-24T12-00-00-refactoring --subject-a="
    )
    assert "points" in score
    assert ticked == 2


def test_a_subject_has_a_history(chromium: Chromium, index_page: Path) -> None:
    async def look(page: Page) -> tuple[int, int, int]:
        await opened(page, index_page)
        rows = await page.locator("#history-table tbody tr:not(.gap)").count()
        await page.locator("#history-table tbody button").first.click()
        plot = page.locator("#history-plot")
        return rows, await plot.locator("svg .mark").count(), await plot.locator("tbody tr").count()

    assert chromium(look) == (8, 3, 3)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BAKEOFF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.usefixtures("cache")
def test_a_summary_is_kept_until_the_journal_changes(tmp_path: Path) -> None:
    run = write_run(tmp_path / "results" / "runs" / "one", plan_of(3))
    fresh = read_entry(run)
    kept = cache_file(run, "summary")
    marked = kept.read_text("utf-8").replace('"name":"generated"', '"name":"from the cache"')
    kept.write_text(marked, "utf-8")
    assert read_entry(run).summary.name == "from the cache"
    with JournalWriter(run.journal_file, Redactor({})) as writer:
        writer.append("end", reason="finished", time=1)
    assert read_entry(run) == fresh


@pytest.mark.usefixtures("cache")
def test_a_kept_summary_that_is_damaged_is_not_believed(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", plan_of(3))
    fresh = read_entry(run)
    kept = cache_file(run, "summary")
    kept.write_bytes(kept.read_bytes().partition(b"\n")[0] + b'\n{"key": "' + b"[" * 10_000)
    assert read_entry(run) == fresh


@pytest.mark.usefixtures("cache")
def test_nothing_that_came_with_a_run_folder_is_believed(tmp_path: Path) -> None:
    run = write_run(tmp_path / "theirs", plan_of(3))
    fresh = read_entry(run)
    before = sorted(path.name for path in run.path.iterdir())
    kept = cache_file(run, "summary")
    for name in (".summary.json", kept.name):
        (run.path / name).write_bytes(kept.read_bytes().replace(b'"generated"', b'"forged"'))
    received = run.path.rename(tmp_path / "ours")
    assert read_entry(RunFolder(received)).summary == fresh.summary
    assert before == ["journal.jsonl", "plan.json", "seal.json"], "nothing of ours is put into it"


def test_what_is_kept_is_bounded_and_the_oldest_goes_first(tmp_path: Path, cache: Path) -> None:
    runs = [write_run(tmp_path / "runs" / str(number), plan_of(2)) for number in range(4)]
    for number, run in enumerate(runs):
        read_entry(run)
        os.utime(cache_file(run, "summary"), ns=(number, number))
    size = 4096 * -(-cache_file(runs[0], "summary").stat().st_size // 4096)
    clean_up(2 * size)
    assert [cache_file(run, "summary").exists() for run in runs] == [False, False, True, True]
    assert read_entry(runs[0]).summary.cases == 2
    assert {path.stat().st_mode & 0o777 for path in (cache / "runs").iterdir()} == {0o600}


def test_a_run_that_cannot_be_read_is_named_and_the_others_are_shown(tmp_path: Path) -> None:
    results = tmp_path / "results"
    write_run(results / "runs" / "good", plan_of(3))
    write_lines(results / "runs" / "bad", b"{}", [])
    found = list(read_entries(results))
    assert [type(entry) for entry in found] == [Unreadable, IndexEntry]
    html = write_index(results / "index.html", found).read_text("utf-8")
    assert "Not shown" in html
    assert "plan.json cannot be read" in html


def test_an_index_over_nothing_says_so(chromium: Chromium, tmp_path: Path) -> None:
    made = write_index(tmp_path / "index.html", read_entries(tmp_path / "results"))

    async def look(page: Page) -> str:
        await opened(page, made)
        return await page.locator("main").inner_text()

    assert "0 runs" in chromium(look)


def test_a_door_adds_a_column(chromium: Chromium, tmp_path: Path) -> None:
    write_run(tmp_path / "results" / "runs" / "one", plan_of(2))
    values = {"one": Datum(text="on", tone="pass")}
    column = IndexColumn(id="mcp", title="MCP", values=values)
    made = write_index(tmp_path / "index.html", read_entries(tmp_path / "results"), columns=[column])

    async def look(page: Page) -> list[str]:
        await opened(page, made)
        return await page.locator("#run-table tbody tr:not(.gap) td:last-child").all_inner_texts()

    assert chromium(look) == ["on"] * 4


def test_where_nothing_can_be_kept_runs_are_still_indexed(tmp_path: Path, cache: Path) -> None:
    plan = plan_of(2)
    run = write_lines(tmp_path / "run", plan, [line_of(record) for record in records_of(plan)])
    cache.write_text("a file, where a folder should be")
    assert [read_entry(RunFolder(run.path)).summary.cases for _ in range(2)] == [2, 2]
    assert cache.is_file()


@pytest.mark.usefixtures("cache")
def test_a_page_is_out_of_date_if_anything_was_appended_while_it_was_made(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", plan_of(2))

    def appending(data: RunData) -> DoorParts:
        with run.journal_file.open("ab") as file:
            file.write(b'{"type":"end","v":1,"reason":"finished","time":1}\n')
        return DoorParts()

    page = write_current_page(run, parts=appending)
    assert page.stat().st_mtime_ns >= run.journal_file.stat().st_mtime_ns
    assert not page_is_current(run), "though it is newer than the journal"
    write_current_page(run)
    assert page_is_current(run)
    run.plan_file.write_bytes(run.plan_file.read_bytes() + b"\n")
    (run.path / "seal.json").unlink()  # it would refuse the plan
    assert not page_is_current(run), "the plan counts as well"
    page = write_current_page(run)
    page.write_bytes(b"someone else's")
    assert not page_is_current(run)
