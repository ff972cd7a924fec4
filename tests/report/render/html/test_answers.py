"""The matrix of answers on the page of an eval: what cells show, filters, columns, keyboard, hostile answers."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page

from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.record import Failure, Phase, Record, Score, Step, Text, Transcript
from bakeoff.report.blocks import DoorParts
from bakeoff.report.render.html.run_page import write_run_page

from .browser import Chromium, opened, until, violations
from .generator import as_line, line_of, write_lines

pytestmark = pytest.mark.full

PROMPTS = ("short", "long")
SUBJECTS = ("opus", "haiku")
HOSTILE = (
    '<img src=x onerror="alert(1)"><script>alert(2)</script> **bold** [click](javascript:alert(3)) '
    "[site](https://evil.example/) ![p](https://evil.example/p.png)\n\n| a table |\n|---|\n| " + "w" * 10_000
)
Answer = Callable[[int, str, str], str]


def plan_of(cases: int, *, prompts: tuple[str, ...] = PROMPTS, rounds: int = 1) -> Plan:
    """Cases × prompts × two subjects and a control, as `bakeoff eval` plans them."""

    def case(number: int, prompt: str) -> Case:
        name, several = f"ticket {number}", len(prompts) > 1
        return Case(
            id=f"{name} · {prompt}" if several else name,
            prompt=f"{prompt}: what is ticket {number} about?",
            expected=f"topic-{number % 3}",
            variables={"ticket": f"my order {number}", "customer": {"id": number}},
            tags={"language": ("en", "de")[number % 2], **({"prompt": prompt} if several else {})},
        )

    subjects = [SubjectSpec(kind="scripted", name=name) for name in SUBJECTS]
    return Plan(
        name="tickets",
        cases=tuple(case(number, prompt) for number in range(cases) for prompt in prompts),
        subjects=(*subjects, SubjectSpec(kind="nop", name="nop")),
        scorers=(ScorerSpec(kind="contains"),),
        rounds=rounds,
    )


def usual(number: int, prompt: str, subject: str) -> str:
    """Return Markdown, JSON or a text; haiku gets every second case wrong with the short prompt."""
    wrong = subject == "haiku" and prompt == "short" and number % 2
    topic = "nothing" if wrong else f"topic-{number % 3}"
    return (f"**{topic}** it is", json.dumps({"topic": topic}), f"It is {topic}.")[number % 3]


def write_page(folder: Path, plan: Plan, answer: Answer = usual, lost: int | None = None) -> Path:
    """Write the page of a run in which each trial gave this answer, except a lost one."""

    def record(place: int) -> Record:
        trial = plan.trial(place)
        said = answer(int(trial.case.name.split()[1]), trial.case.tags.get("prompt", ""), trial.subject.name)
        text = "" if trial.subject.kind == "nop" else said
        failure = Failure(kind="infra", type="InfraError", message="answered 503") if place == lost else None
        right = float(str(trial.case.expected) in text)
        return Record(
            **trial.identity,
            started=1.7e9,
            threshold=1.0,
            attempt=Phase(seconds=0.1, failure=failure),
            transcript=None if failure else Transcript(output=text, steps=(Step(parts=(Text(text=text),)),)),
            scores=()
            if failure
            else (Score(name="contains", value=right, reason="" if right else "not in the answer"),),
        )

    run = write_lines(folder, plan, [as_line(line_of(record(place))) for place in range(plan.size)])
    return write_run_page(run, parts=lambda _: DoorParts(answers=True))


@pytest.fixture(scope="module")
def page_of_answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_page(tmp_path_factory.mktemp("answers") / "run", plan_of(12), lost=4)


async def read_whole(page: Page) -> Locator:
    """Wait until the cells have their answers; return the rows."""
    await until(page, "![...document.querySelectorAll('.answers .reply')].some((one) => one.textContent === '')")
    return page.locator(".answers tbody tr:not(.gap)")


async def shown(page: Page) -> list[str]:
    return await page.locator(".answers tbody th strong").all_inner_texts()


def test_each_cell_has_the_answer_with_its_score_and_each_case_what_was_expected(
    chromium: Chromium, page_of_answers: Path
) -> None:
    async def look(page: Page) -> tuple[list[str], list[str], str, str]:
        await opened(page, page_of_answers)
        rows = await read_whole(page)
        heads = await page.locator(".answers thead th").all_inner_texts()
        cells = await rows.nth(1).locator("th, td").all_inner_texts()
        bold = await rows.nth(0).locator("td .markdown strong").first.inner_text()
        return heads, cells, bold, await page.locator("#hidden-columns").inner_text()

    heads, cells, bold, hidden = chromium(look)
    assert [head.split() for head in heads] == [
        ["Case"],
        ["short", "opus", "100.0", "%", "×"],
        ["short", "haiku", "50.0", "%", "×"],
        ["long", "opus", "100.0", "%", "×"],
        ["long", "haiku", "100.0", "%", "×"],
    ]
    case, right, wrong, lost, _ = cells
    assert [part.strip() for part in case.splitlines() if part.strip()] == [
        "ticket 1",
        "expected: topic-1",
        "ticket: my order 1",
        'customer: { "id": 1 }',
    ]
    assert "100" in right
    assert '{"topic": "topic-1"}' in right
    assert "contains: not in the answer" in wrong
    assert '{"topic": "nothing"}' in wrong
    assert "lost" not in lost
    assert bold == "topic-0", "Markdown is rendered"
    assert hidden.split() == ["Hidden:", "short", "·", "nop", "long", "·", "nop"]


def test_the_matrix_is_filtered_by_outcome_differences_tags_and_words(
    chromium: Chromium, page_of_answers: Path
) -> None:
    async def look(page: Page) -> dict[str, list[str]]:
        await opened(page, page_of_answers)
        form, found = page.locator("#answer-filters"), {}
        for kind in ("failed", "outcomes", "answers"):
            await form.locator("[name=show]").select_option(kind)
            await until(page, "!document.querySelector('#answer-count').textContent.includes('reading')")
            found[kind] = await shown(page)
        await form.locator("[name=show]").select_option("")
        await form.locator("[data-tag=language]").select_option(label="de")
        found["tag"] = await shown(page)
        assert await form.locator("[data-tag]").count() == 1, "prompts are columns"
        await form.locator("[data-tag=language]").select_option("")
        for words in ("it is topic-2", "my order 11"):
            await form.locator("[name=text]").fill(words)
            await until(page, "!document.querySelector('#answer-count').textContent.includes('reading')")
            found[words] = await shown(page)
        return found

    odd = [f"ticket {number}" for number in range(1, 12, 2)]
    found = chromium(look)
    assert found["failed"] == ["ticket 0", *odd], "a lost answer is no success"
    assert found["outcomes"] == ["ticket 0", *odd]
    assert found["answers"] == ["ticket 0", *odd]
    assert found["tag"] == odd
    assert found["it is topic-2"] == [f"ticket {number}" for number in (2, 5, 8, 11)]
    assert found["my order 11"] == ["ticket 11"]


def test_columns_are_hidden_shown_and_compared_and_the_address_keeps_it(
    chromium: Chromium, page_of_answers: Path
) -> None:
    async def look(page: Page) -> tuple[list[str], list[str], list[str], int]:
        await opened(page, page_of_answers)
        await page.get_by_role("button", name="Hide long · opus").click()
        await page.get_by_role("button", name="Show short · nop").click()
        await page.locator("#answer-filters [name=against]").select_option(label="short · opus")
        await page.reload()
        await page.wait_for_selector("html[data-ready=yes]", state="attached")
        rows = await read_whole(page)
        heads = await page.locator(".answers thead .sort").all_inner_texts()
        cells = await rows.nth(1).locator("td .reply").all_inner_texts()
        changes = await rows.nth(1).locator("ins, del").all_inner_texts()
        return heads, cells, changes, await rows.nth(0).locator("ins, del").count()

    heads, cells, changes, same = chromium(look)
    assert [head.split()[:2] for head in heads[1:]] == [
        ["short", "opus"],
        ["short", "haiku"],
        ["short", "nop"],
        ["long", "haiku"],
    ]
    assert cells[2:] == ["no answer", "Same as short · opus."]
    assert changes == ["topic-1", "nothing"]
    assert same == 0


def test_cells_tell_what_changed_since_the_last_run_of_the_plan(chromium: Chromium, tmp_path: Path) -> None:
    def better(number: int, prompt: str, subject: str) -> str:
        return usual(number, "long" if number == 5 else prompt, subject)

    first = tmp_path / "runs" / "2026-10-01T12-00-00-tickets"
    before, other = write_page(first, plan_of(12)), plan_of(12).model_copy(update={"name": "other tickets"})
    write_page(tmp_path / "runs" / "2026-10-01T13-00-00-tickets", other, better)
    after = write_page(tmp_path / "runs" / "2026-10-02T12-00-00-tickets", plan_of(12), better)
    write_page(tmp_path / "runs" / "2026-10-03T12-00-00-tickets", plan_of(12))

    async def look(page: Page) -> tuple[list[str], list[str], str, int]:
        await opened(page, after)
        await page.locator("#answer-filters [name=show]").select_option("changed")
        was, run = page.locator(".answers .was"), ""
        said, run = await was.all_inner_texts(), await was.first.get_attribute("title") or ""
        found = await shown(page)
        await opened(page, before)
        return found, said, run, await page.locator("#answer-filters option[value=changed]").count()

    found, said, run, offered = chromium(look)
    assert (found, said, run) == (["ticket 5"], ["was 0"], f"in {first.name}")
    assert offered == 0, "the first run has none before it"


def test_the_matrix_is_read_with_the_keyboard_and_a_click_shows_the_whole_answer(
    chromium: Chromium, page_of_answers: Path
) -> None:
    async def look(page: Page) -> tuple[str, str, str, str]:
        await opened(page, page_of_answers)
        rows = await read_whole(page)
        await rows.nth(0).locator("a.cell").first.focus()
        for key in ("ArrowDown", "ArrowRight", "Enter"):
            await page.keyboard.press(key)
        await page.locator("#trial-body h3").first.wait_for()
        first, text = await page.locator("#trial-title").inner_text(), await page.locator("#trial-body").inner_text()
        await page.keyboard.press("j")
        await until(page, "document.querySelector('#trial-title').textContent === 'ticket 2 · short'")
        below = await page.locator("#trial-sub").inner_text()
        await page.keyboard.press("Escape")
        await rows.nth(3).locator("td .reply").nth(2).click()
        await page.locator("#trial-body h3").first.wait_for()
        return first, text, below, await page.locator("#trial-title").inner_text()

    first, text, below, clicked = chromium(look)
    assert first == "ticket 1 · short"
    assert text.index("what is ticket 1 about?") < text.index("Expected") < text.index('{"topic": "nothing"}')
    assert below.startswith("haiku"), "j goes down the column"
    assert clicked == "ticket 3 · long"


def test_a_phone_shows_one_column_at_a_time(chromium: Chromium, page_of_answers: Path) -> None:
    async def look(page: Page) -> tuple[int, str, int]:
        await opened(page, page_of_answers)
        await page.locator("#answer-filters [name=column]").select_option(label="long · haiku")
        rows = await read_whole(page)
        wider: int = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        return await rows.nth(1).locator("td").count(), await rows.nth(1).locator("td .reply").inner_text(), wider

    assert chromium(look, width=400) == (1, '{"topic": "topic-1"}', 0)


def test_hostile_answers_stay_text_and_nobody_is_kept_out(chromium: Chromium, axe: str, tmp_path: Path) -> None:
    empty_lines = "\n" * 5_000
    made = write_page(
        tmp_path / "run", plan_of(3, prompts=("one",)), lambda number, *_: f"{empty_lines}{HOSTILE} {number}"
    )

    async def look(page: Page) -> tuple[str, int, list[str]]:
        await opened(page, made)
        rows = await read_whole(page)
        matrix = page.locator(".answers")
        active = await matrix.locator("img, script, iframe, .reply a, .reply [tabindex]").count()
        return await rows.nth(0).locator("td .reply").first.inner_text(), active, await violations(page, axe)

    for width, dark in ((1280, False), (400, True)):
        text, active, barriers = chromium(look, width=width, dark=dark)
        assert '<img src=x onerror="alert(1)"><script>alert(2)</script> bold' in text
        assert (active, barriers) == (0, [])


def test_2000_cases_are_drawn_as_they_are_scrolled_to(chromium: Chromium, tmp_path: Path) -> None:
    made = write_page(tmp_path / "run", plan_of(2_000))

    async def look(page: Page) -> tuple[float, int, float, str]:
        await opened(page, made)
        ready = float(await page.evaluate("performance.now()")) / 1000
        rows = await read_whole(page)
        await page.locator("#matrix-table .window").evaluate("(window) => { window.scrollTop = window.scrollHeight; }")
        await rows.filter(has_text="ticket 1999").wait_for()
        await read_whole(page)
        elements = await page.evaluate("document.querySelectorAll('*').length")
        began = float(await page.evaluate("performance.now()"))
        await page.locator("#answer-filters [name=text]").fill("my order 1234")
        await until(page, "document.querySelector('#answer-count').textContent === '1 of 2,000 cases'")
        seconds = (float(await page.evaluate("performance.now()")) - began) / 1000
        return ready, elements, seconds, await rows.last.inner_text()

    ready, elements, seconds, last = chromium(look)
    assert made.stat().st_size < 2_000_000
    assert ready < 3
    assert elements < 6_000
    assert seconds < 5
    assert "ticket 1234" in last
