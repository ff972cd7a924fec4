"""The page of --eval-html in a real browser, and hostile text in every field of it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.async_api import Page
from tests.report.hostile import BREAKOUTS
from tests.report.render.html.browser import Chromium
from tests.report.suites.evals import broken, outcome, priced, record, suite

from bakeoff.record import Score, ToolCall
from bakeoff.report.gates import GateResult
from bakeoff.report.suites.files import write_html
from bakeoff.report.suites.numbers import SuiteTallies, summary_of
from bakeoff.report.suites.outcomes import EvalOutcome

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def chromium(needs_program: Callable[[str], str]) -> Iterator[Chromium]:
    browser = Chromium(needs_program("chromium"))
    yield browser
    browser.close()


def written(path: Path, outcomes: list[EvalOutcome], gates: tuple[GateResult, ...] = ()) -> Path:
    write_html(outcomes, summary_of(SuiteTallies.of(outcomes), gates), path)
    return path


def test_the_page_shows_suites_gates_and_worst_cases(chromium: Chromium, tmp_path: Path) -> None:
    rounds = tuple(record(value, round_=place) for place, value in enumerate((1.0, 0.0)))
    outcomes = [
        *suite([1.0, 0.6, 0.2]),
        priced(0.9),
        outcome(0.5, "tests/test_y.py::test_rounds[x]", records=rounds),
        outcome(None, "tests/test_y.py::test_rounds[y]", records=(broken(),), problem="Judge: ValueError: boom"),
    ]
    gate = GateResult(option="--eval-fail-under", met=False, sentence="mean score 0.640 over 5 cases, wanted 0.9")
    page = written(tmp_path / "evals.html", outcomes, (gate,))

    async def look(page_: Page) -> list[str]:
        await page_.goto(page.as_uri())
        return [await page_.locator(f"section#{name}").text_content() or "" for name in ("suites", "gates", "worst")]

    suites, gates, worst = chromium(look)
    assert "test_capitals" in suites
    assert "3/4" in suites
    assert "FAILED" in gates
    assert worst.index("test_rounds[y]") < worst.index("test_capitals[case-2]")


@pytest.mark.parametrize("text", BREAKOUTS.values(), ids=BREAKOUTS)
def test_hostile_text_is_inert(chromium: Chromium, tmp_path: Path, text: str) -> None:
    """The browser of these tests fails on dialogs, broken scripts and anything that is asked of the network."""
    calls = (ToolCall(name=text, arguments={text: text}, error=text),)
    scores = (Score(name=text[:200] or "x", value=0.0, reason=text, metadata={"x": text}),)
    hostile = outcome(
        0.0,
        f"tests/{text[:300]}.py::test[{text[:300]}]",
        suite=text,
        case=text,
        input=text,
        problem=text,
        record={"calls": calls, "scores": scores, "output": text},
    )
    gate = GateResult(option="--eval-baseline", met=None, sentence=text)
    page = written(tmp_path / "evals.html", [hostile, hostile], (gate,))

    async def look(page_: Page) -> int:
        await page_.goto(page.as_uri())
        await page_.goto(f"{page.as_uri()}#t=0")
        return await page_.locator("section#suites tbody tr").count()

    assert chromium(look) == 1
