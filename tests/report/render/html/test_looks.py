"""Test how pages look, and whether everyone can use them."""

import base64
import os
from pathlib import Path
from typing import Literal

import pytest
from playwright.async_api import Page

from .browser import Chromium, opened, violations

pytestmark = pytest.mark.full

REFERENCES = Path(__file__).with_name("references")
WIDTHS = (400, 1024, 1600)
AUDITED_LOOKS = ("400-light", "1600-dark")  # by axe-core: barriers depend on the width or on the colours
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
DIFFERENT = 0.03
"""The share of an eighth-size picture that may differ: letters are set a little differently by every version."""

# Draws pictures small, so that only what a reader would notice is compared; gives the share of different pixels.
COMPARE = """async ([one, other]) => {
  const load = async (data) => createImageBitmap(await (await fetch(`data:image/png;base64,${data}`)).blob());
  const [a, b] = [await load(one), await load(other)];
  if (Math.abs(a.height / a.width - b.height / b.width) > 0.04 * (a.height / a.width)) return 1;
  const [width, height] = [Math.round(b.width / 2), Math.round(b.height / 2)];
  const pixels = (image) => {
    const context = new OffscreenCanvas(width, height).getContext("2d");
    context.imageSmoothingQuality = "high";
    context.drawImage(image, 0, 0, width, height);
    return context.getImageData(0, 0, width, height).data;
  };
  const [p, q] = [pixels(a), pixels(b)];
  let different = 0;
  for (let at = 0; at < p.length; at += 4) {
    different += Math.max(...[0, 1, 2].map((channel) => Math.abs(p[at + channel] - q[at + channel]))) > 56;
  }
  return different / (p.length / 4);
}"""
SHRINK = """async (data) => {
  const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${data}`)).blob());
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [0.25 * image.width, 0.25 * image.height];
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/png").split(",")[1];
}"""


PLACES = {
    "run": ("run_page", ""),
    "trial": ("run_page", "#t=3"),
    "two trials": ("run_page", "#t=3&with=1"),
    "index": ("index_page", ""),
    "side by side": ("index_page", ""),
    "comparison": ("compare_page", ""),
    "leaderboard": ("leaderboard_page", ""),
}
"""Pages by the fixtures that make them, and where in them one looks."""

AUDITED = {**PLACES, "comparison of several": ("several_page", "")}


async def prepare(page: Page, name: str, path: Path, place: str) -> None:
    await opened(page, path, place)
    if name == "comparison of several":
        await page.get_by_role("button", name="Open all").click()
    if "trial" in name:
        await page.locator("#trial-body h3").first.wait_for()
        await page.evaluate("document.querySelectorAll('#trial-body details').forEach((one) => { one.open = true; })")
    if name == "side by side":
        for place_of_box in (0, 4):
            await page.locator("#run-table input").nth(place_of_box).check()
        await page.locator("#history-table tbody button").first.click()


@pytest.mark.parametrize("name", AUDITED)
def test_the_page_looks_as_it_was_approved_and_nobody_is_kept_out(
    name: str, request: pytest.FixtureRequest, chromium: Chromium, axe: str
) -> None:
    maker, place = AUDITED[name]
    path: Path = request.getfixturevalue(maker)
    pictures: dict[str, bytes] = {}

    async def look(page: Page) -> dict[str, list[str]]:
        barriers = {}
        for width in WIDTHS:
            await page.set_viewport_size({"width": width, "height": 900})
            await page.goto("about:blank")  # so that scripts start anew
            await prepare(page, name, path, place)
            wider: int = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wider <= 0, f"at {width} pixels the page scrolls sideways"
            for theme in THEMES:
                await page.emulate_media(color_scheme=theme)
                if name in PLACES:
                    pictures[f"{width}-{theme}"] = await page.screenshot(full_page="trial" not in name)
                if f"{width}-{theme}" in AUDITED_LOOKS:
                    barriers[f"{width}-{theme}"] = await violations(page, axe)
        return barriers

    assert {at: found for at, found in chromium(look).items() if found} == {}
    approve(name, pictures, chromium)


def approve(name: str, pictures: dict[str, bytes], chromium: Chromium) -> None:
    """Compare pictures with the references, all in one page."""
    references = {look: REFERENCES / f"{name.replace(' ', '-')}-{look}.png" for look in pictures}

    async def compare(page: Page) -> dict[str, float]:
        found = {}
        for look, picture in pictures.items():
            if os.environ.get("BAKEOFF_UPDATE_REFERENCES") == "1":
                references[look].parent.mkdir(exist_ok=True)
                references[look].write_bytes(base64.b64decode(await page.evaluate(SHRINK, encoded(picture))))
            found[look] = await page.evaluate(COMPARE, [encoded(picture), encoded(references[look].read_bytes())])
        return found

    different = {look: f"{share:.1%}" for look, share in chromium(compare).items() if share > DIFFERENT}
    assert not different, "look at what differs, then set BAKEOFF_UPDATE_REFERENCES=1"


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_a_page_that_changed_would_be_noticed(chromium: Chromium) -> None:
    kept = [(REFERENCES / f"run-1024-{theme}.png").read_bytes() for theme in ("light", "dark")]
    assert chromium(lambda page: page.evaluate(COMPARE, [encoded(picture) for picture in kept])) > DIFFERENT


@pytest.mark.parametrize(("maker", "plots"), [("run_page", 2), ("compare_page", 1), ("leaderboard_page", 2)])
def test_a_printed_page_shows_every_section_in_light_colours(
    maker: str, plots: int, chromium: Chromium, request: pytest.FixtureRequest
) -> None:
    path: Path = request.getfixturevalue(maker)

    async def look(page: Page) -> tuple[bool, str, int]:
        await opened(page, path)
        await page.emulate_media(media="print")
        await page.evaluate("dispatchEvent(new Event('beforeprint'))")
        visible = await page.locator(".top, .filters").first.is_visible()
        scheme = await page.evaluate("getComputedStyle(document.documentElement).colorScheme")
        return visible, scheme, await page.locator("details.numbers[open]").count()

    assert chromium(look, dark=True) == (False, "light", plots)
