"""`bakeoff run --pictures`: what components look like, side by side on the page of each trial."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page

from ...report.render.html.browser import Chromium
from ...warm_bakeoff import Bakeoff
from .small_suites import calling, scripted, write_suites

pytestmark = pytest.mark.full

CARD = {
    "prompt.md": "A card with a greeting.\n",
    "Reference.tsx": (
        "export default function Card({ name, onOpen }: { name: string; onOpen: () => void }) {\n"
        "  return <button onClick={onOpen} style={{ padding: 20 }}>Hello {name.toUpperCase()}</button>;\n}\n"
    ),
    "test.tsx": (
        'import { render, screen } from "@testing-library/react";\n'
        'import { expect, it } from "vitest";\n'
        'import Card from "./Component";\n\n'
        'it("greets", () => {\n'
        '  render(<Card name="ada" onOpen={() => {}} />);\n'
        '  expect(screen.getByRole("button")).toHaveTextContent("Hello ADA");\n'
        "});\n"
    ),
    "picture.tsx": "export default { name: 'grace', onOpen: () => {} };\n",
}
BROKEN = "export default function Card() {\n  throw new Error('<img src=x onerror=alert(1)> no card');\n}\n"


async def look(page: Page) -> list[Any]:
    found: list[Any] = await page.evaluate(
        """async () => {
          const figures = [...document.querySelectorAll('#trial .pictures figure')];
          await Promise.all(figures.map((each) => each.querySelector('img')?.decode()));
          return figures.map((each) => {
            const image = each.querySelector('img');
            const shown = { wide: image?.naturalWidth ?? null, source: image?.src.slice(0, 22) ?? null };
            return { own: each.ariaCurrent === 'true', text: each.innerText, ...shown };
          });
        }"""
    )
    return found


def test_components_are_pictured_side_by_side_and_a_broken_one_says_why(
    bakeoff: Bakeoff, tmp_path: Path, needs_program: Callable[[str], str]
) -> None:
    browser = needs_program("chromium")
    write_suites(tmp_path / "tests", card=CARD)
    broken = scripted(tmp_path / "broken.json", [calling("ResultWrite", BROKEN)])
    done = bakeoff("run", "--model", "oracle", "--model", "nop", "--model", broken, "--pictures", "--no-open")
    assert done.returncode == 1, done.stderr  # as without pictures
    assert "taking 2 pictures" in done.stderr
    [folder] = (tmp_path / "results" / "runs").iterdir()
    assert sorted(path.suffix for path in (folder / "pictures").iterdir()) == [".png", ".txt"]

    async def first_trial(page: Page) -> list[Any]:
        await page.goto(f"{(folder / 'report.html').as_uri()}#t=0")
        await page.wait_for_selector("#trial .pictures")
        return await look(page)

    chromium = Chromium(browser)
    try:
        own, *others = chromium(first_trial)
    finally:
        chromium.close()
    assert own == {"own": True, "text": own["text"], "wide": 480, "source": "data:image/png;base64,"}
    assert own["text"].startswith("oracle")
    said = " ".join(other["text"] for other in others)
    assert "No picture: it threw an error: <img src=x onerror=alert(1)> no card" in said
    assert "No picture: nothing was handed in" in said
    assert [other["wide"] for other in others] == [None, None]
