"""Test what people do with the trials of a run: search for one, read it, share it, and compare two."""

from pathlib import Path

import pytest
from playwright.async_api import Page

from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec, Trial
from bakeoff.record import Phase, Reasoning, Record, Score, Step, Text, ToolCall, Transcript, Usage
from bakeoff.report.render.html.run_page import write_run_page

from ...runs import write_run
from .browser import Chromium, opened, until

pytestmark = pytest.mark.full

DEED = "window.__pwned=1"
SAID = f"""# Plan

I **fix** `parse.py` for {{subject}}:

1. Read the *tokens*
2. See [the manual](https://example.com/manual), [a trap](javascript:{DEED}), [another](data:text/html,x)

| a | b |
|---|---|
| 1 | 2 |

```python
def parse(text):
    return text.split(",")
```

> <img src=x onerror="{DEED}"> <script>{DEED}</script> ![spy](https://example.com/spy.png)
"""
PATCH = "--- a/parse.py\n+++ b/parse.py\n@@ -1 +1 @@\n-    return None\n+    return text.split(',')\n"
SUBJECTS = ("opus", "haiku", "oracle", "nop")
START = "def parse(text):\n    return None\n"


def plan_with_tags() -> Plan:
    tags = ({"area": "parser", "level": "easy"}, {"area": "parser", "level": "hard"}, {"area": "docs", "level": "easy"})
    cases = tuple(
        Case(
            id=f"case-{place}",
            prompt=f"Fix **number** {place}.",
            expected=f"answer {place}",
            files={"parse.py": START},
            hidden={"test.py": "secret"} if place == 5 else {},
            tags=tags[place % 3],
        )
        for place in range(6)
    )
    subjects = tuple(
        SubjectSpec(kind=name if name in ("oracle", "nop") else "agent", name=name, options={}) for name in SUBJECTS
    )
    return Plan(
        name="talks", cases=cases, subjects=subjects, scorers=(ScorerSpec(kind="exact"),), rounds=1, threshold=1.0
    )


def record_of(trial: Trial) -> Record:
    subject, place = trial.subject.name, int(trial.case.id[-1])
    value = {"opus": 1.0, "haiku": float(place % 2), "oracle": 1.0, "nop": 0.0}[subject]
    calls = 3 if subject == "opus" else 2
    steps = [
        Step(
            parts=(
                Reasoning(text="A thought."),
                Text(text=f"Step {number} of {subject}."),
                ToolCall(name="run", arguments={"n": number}, result=PATCH if number == 0 else "ok", duration_ms=500),
            ),
            usage=Usage(requests=1, input=100, output=10, cost=0.01),
            seconds=1.0,
        )
        for number in range(calls)
    ]
    if subject == "opus":
        steps.insert(1, Step(parts=(Text(text="Only opus waits."),), seconds=0.5))
    talks = subject in ("opus", "haiku")
    reason = f"expected 'answer {place}' but got 'reply {place * 7}' at line {place + 3}"
    return Record(
        case=trial.case.id,
        subject=subject,
        round=trial.round,
        attempt_key=trial.attempt_key,
        score_key=trial.score_key,
        started=1_700_000_000.0 + trial.index,
        threshold=1.0,
        bound=subject == "oracle",
        prepare=Phase(seconds=0.2),
        attempt=Phase(seconds=8.0 + place, waited=1.5),
        score=Phase(seconds=0.5),
        transcript=Transcript(
            output=SAID.replace("{subject}", subject) if talks else "nothing", steps=tuple(steps) if talks else ()
        ),
        artefacts={"parse.py": f"def parse(text):\n    return text.split('{subject}')\n"} if talks else {},
        scores=(Score(name="exact", value=value, reason="" if value == 1 else reason),),
    )


@pytest.fixture(scope="module")
def page_of_talks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plan = plan_with_tags()
    run = write_run(tmp_path_factory.mktemp("talks") / "2026-10-01T12-00-00-talks", plan, map(record_of, plan.trials()))
    return write_run_page(run)


async def rows(page: Page) -> list[str]:
    await until(page, "!document.querySelector('#trial-count').textContent.includes('search')")
    found: list[str] = await page.locator("#trial-table tbody tr:not(.gap)").evaluate_all(
        "all => all.map(row => `${row.cells[0].textContent} ${row.cells[1].textContent}`)"
    )
    return found


def test_what_was_said_can_be_searched(chromium: Chromium, page_of_talks: Path) -> None:
    async def look(page: Page) -> tuple[str, str, list[str]]:
        await opened(page, page_of_talks)
        await page.locator("#trial-filters [name=text]").fill("ONLY OPUS waits")
        await until(page, "document.querySelector('#trial-count').textContent === '6 of 24 recorded trials'")
        last = page.locator("#trial-table tbody tr:not(.gap)").first
        return await last.inner_text(), await page.evaluate("location.hash"), await rows(page)

    row, address, found = chromium(look)
    assert "Only opus waits." in row, "the words around the match are shown"
    assert address == "#q=ONLY+OPUS+waits"
    assert {one.split()[1] for one in found} == {"opus"}


def test_search_filters_order_and_the_open_trial_are_in_the_address(chromium: Chromium, page_of_talks: Path) -> None:
    async def look(page: Page) -> tuple[list[str], list[str], str, list[str]]:
        await opened(page, page_of_talks, "#tag=area%3Dparser&tag=level%3Dhard&sort=-Case")
        first = await rows(page)
        await page.locator("#trial-filters [name=subject]").select_option("opus")
        second = await rows(page)
        await page.locator("#trial-table tbody a").first.click()
        await page.locator("#trial[open] h3").first.wait_for()
        address = await page.evaluate("location.hash")
        await page.go_back()
        await page.locator("#trial:not([open])").wait_for(state="attached")
        assert await rows(page) == second, "the filters outlive the trial"
        await page.go_back()
        await until(page, "document.querySelector('#trial-filters [name=subject]').value === ''")
        return first, second, address, await rows(page)

    first, second, address, third = chromium(look)
    assert [one.split()[0] for one in first] == ["case-4"] * 4 + ["case-1"] * 4
    assert second == ["case-4 opus", "case-1 opus"]
    assert address == "#sort=-Case&subject=opus&tag=area%3Dparser&tag=level%3Dhard&t=16"
    assert third == first


def test_controls_come_last_in_the_list(chromium: Chromium, page_of_talks: Path) -> None:
    async def look(page: Page) -> list[str]:
        await opened(page, page_of_talks)
        return await rows(page)

    order = [one.split()[1] for one in chromium(look)]
    assert set(order[:12]) == {"opus", "haiku"}
    assert order[0] == "haiku", "what did not pass comes first"


async def open_trial(page: Page, path: Path, place: str) -> None:
    await opened(page, path, place)
    await page.locator("#trial-body h3").first.wait_for()


def test_a_trial_shows_what_was_expected_unless_it_is_hidden(chromium: Chromium, page_of_talks: Path) -> None:
    async def look(page: Page) -> tuple[str, str]:
        await open_trial(page, page_of_talks, "#t=0")
        shown = await page.locator("#trial-body").inner_text()
        await open_trial(page, page_of_talks, "#t=20")
        return shown, await page.locator("#trial-body").inner_text()

    shown, hidden = chromium(look)
    assert "Expected\n" in shown
    assert "answer 0" in shown
    assert "answer 5" not in hidden
    assert "Not shown: this case has hidden files" in hidden


def test_markdown_is_rendered_and_nothing_in_it_acts(chromium: Chromium, page_of_talks: Path) -> None:
    async def look(page: Page) -> tuple[dict[str, int], list[str], str, str, bool]:
        await open_trial(page, page_of_talks, "#t=0")
        text = page.locator("#trial-body > :not(.asked) .markdown").first
        parts = ("strong", "em", "ol > li", "table td", "pre .word", "blockquote", "img", "script")
        counts = {part: await text.locator(part).count() for part in parts}
        links = await text.locator("a").evaluate_all("all => all.map(one => one.href)")
        rendered = await text.inner_text()
        await page.locator("#trial-body > :not(.asked) .prose button").first.click()
        source = await page.locator("#trial-body > :not(.asked) .prose pre:visible").first.inner_text()
        return counts, links, rendered, source, await page.evaluate("'__pwned' in window")

    counts, links, rendered, source, pwned = chromium(look)  # fails if anything is asked of the network
    assert counts.pop("pre .word") >= 2
    assert counts == {"strong": 1, "em": 1, "ol > li": 2, "table td": 2, "blockquote": 1, "img": 0, "script": 0}
    assert links == ["https://example.com/manual"], "only http(s) becomes a link"
    assert "the manual (https://example.com/manual)" in rendered, "where a link leads can be read"
    assert "[picture: spy, https://example.com/spy.png]" in rendered
    assert "<script>" in rendered, "HTML stays text"
    assert source.startswith("# Plan")
    assert not pwned


HOSTILE = [
    "[" * 19_000,
    "**" * 9_000,
    "> " * 9_000 + "x",
    "".join(f"{' ' * depth}- x\n" for depth in range(180)),
    "|" * 9_000 + "\n" + "|-" * 4_000,
    "`" * 19_000,
    "[a](" * 4_000,
    "1. x\n" * 4_000,
    "- " * 9_000,
    "```\n" * 4_000,
]


def test_no_text_keeps_the_renderer_busy(chromium: Chromium, page_of_talks: Path) -> None:
    async def look(page: Page) -> list[int]:
        await opened(page, page_of_talks)
        return [await page.evaluate("text => prose(text).textContent.length", text) for text in HOSTILE]

    assert min(chromium(look)) > 0  # the browser gives up on a page that is busy for minutes


def test_patches_are_shown_as_patches(chromium: Chromium, page_of_talks: Path) -> None:
    async def look(page: Page) -> tuple[list[str], list[str]]:
        await open_trial(page, page_of_talks, "#t=0")
        return (
            await page.locator("#trial-body .add").all_inner_texts(),
            await page.locator("#trial-body .remove").all_inner_texts(),
        )

    added, removed = chromium(look)
    assert [line.strip() for line in added] == ["+    return text.split('opus')", "+    return text.split(',')"]
    assert [line.strip() for line in removed] == ["-    return None"] * 2


def test_the_time_of_a_trial_is_a_line_of_waiting_model_tools_and_grading(
    chromium: Chromium, page_of_talks: Path
) -> None:
    async def look(page: Page) -> tuple[str | None, int]:
        await open_trial(page, page_of_talks, "#t=0")
        line = page.locator("#trial-body .timeline")
        return await line.get_attribute("aria-label"), await line.locator("rect").count()

    words, pieces = chromium(look)
    assert words == (
        "Time: preparing 200 ms, waiting 1.5 s, model 3.5 s, tools 1.5 s, other work 1.5 s, grading 500 ms"
    )
    assert pieces == 2 + 4 + 3 + 2


def test_two_trials_stand_beside_each_other(chromium: Chromium, page_of_talks: Path) -> None:
    async def look(page: Page) -> tuple[str, list[list[str]], list[str], str, str]:
        await open_trial(page, page_of_talks, "#t=0")
        await page.locator("#trial-with").select_option(label="haiku (fail)")
        await page.locator("#trial.two table.both").wait_for()
        pairs = await page.locator("#trial-body .pair").evaluate_all(
            """all => all.map((pair) =>
                [...pair.children].map((one) => one.innerText.match(/Step . of [a-z]+|Only|no such/)[0]))"""
        )
        changed = await page.locator("#trial-body .add, #trial-body .remove").all_inner_texts()
        both = await page.locator("table.both").inner_text()
        address = await page.evaluate("location.hash")
        await page.go_back()
        await page.locator("#trial:not(.two) .timeline").wait_for()
        return address, pairs, changed, both, await page.locator("#trial-with").input_value()

    address, pairs, changed, both, beside = chromium(look)
    assert address == "#t=0&with=1"
    assert pairs == [
        ["Step 0 of opus", "Step 0 of haiku"],
        ["Only", "no such"],
        ["Step 1 of opus", "Step 1 of haiku"],
        ["Step 2 of opus", "no such"],
    ], "steps that do the same stand beside each other"
    assert "- I **fix** `parse.py` for opus:" in [line.strip() for line in changed]
    assert "+ I **fix** `parse.py` for haiku:" in [line.strip() for line in changed]
    assert both.split()[:3] == ["What", "opus", "haiku"]
    assert beside == ""


def test_the_matrix_can_be_sorted_by_each_subject(chromium: Chromium, page_of_talks: Path) -> None:
    async def look(page: Page) -> list[str]:
        await opened(page, page_of_talks)
        await page.locator("#matrix thead button", has_text="haiku").click()
        return await page.locator("#matrix tbody tr td:nth-child(3)").all_inner_texts()

    cells = [text.split()[0] for text in chromium(look)]
    assert cells == sorted(cells, key=float)


def test_failures_of_one_cause_are_one_row_and_controls_are_apart(chromium: Chromium, page_of_talks: Path) -> None:
    async def look(page: Page) -> tuple[list[str], str]:
        await opened(page, page_of_talks, "#failures")
        cells = await page.locator("#failures tbody tr").first.locator("th, td").all_inner_texts()
        assert await page.locator("#failures tbody tr").count() == 1
        return cells, await page.locator("#failures .lead").inner_text()

    cells, lead = chromium(look)
    assert cells[2] == "expected '…' but got '…' at line N"
    assert cells[4:7] == ["3", "3", "haiku (3)"]
    assert lead == "6 more are of controls, which only test the cases."


def test_the_first_screen_says_who_and_why_and_the_rest_is_folded_until_a_link_leads_there(
    chromium: Chromium, page_of_talks: Path
) -> None:
    async def look(page: Page) -> tuple[str, float, int, list[str], bool]:
        await opened(page, page_of_talks)
        why = page.locator(".whys li")
        ends = float(await page.evaluate("document.querySelector('#overview table').getBoundingClientRect().bottom"))
        closed = await page.locator("main > section > details.chapter:not([open])").count()
        await page.locator(".top nav a", has_text="Failures").click()
        opened_by_link = await page.locator("#failures table").is_visible()
        await why.locator("a").click()
        await page.locator("#trial-body h3").first.wait_for()
        sections = await page.locator("main > section").evaluate_all("all => all.map(one => one.id)")
        return await why.inner_text(), ends, closed, sections, opened_by_link

    why, ends, closed, sections, opened_by_link = chromium(look, width=1280, height=800)
    assert (
        " ".join(why.split())
        == "fail exact: expected 'answer 4' but got 'reply 28' at line 7 3 trials like this: haiku (3)"
    )
    assert ends < 800
    assert closed == len(sections) - 3, "all but the overview, the matrix and the trials"
    assert (sections[:3], sections[-1]) == (["overview", "matrix", "failures"], "trials")
    assert opened_by_link


def test_controls_are_not_drawn_in_plots(chromium: Chromium, page_of_talks: Path) -> None:
    async def look(page: Page) -> tuple[list[str], str]:
        await opened(page, page_of_talks, "#tradeoffs")
        plot = page.locator("#tradeoffs")
        return await plot.locator("figure").last.locator("svg .label").all_text_contents(), await plot.inner_text()

    drawn, text = chromium(look)
    assert sorted(drawn) == ["haiku", "opus"]
    assert "Not drawn: oracle, nop, which only test the cases." in text
