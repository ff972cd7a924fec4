"""The documentation site: it builds strictly, needs no network, and leaves nothing out."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import typer
import yaml
from playwright.async_api import Page
from scripts.plot_growth import plot

from bakeoff.cli.declare import subcommands
from bakeoff.cli.main import app
from bakeoff.mcp.lint import RULES

from ..made_once import made_once
from ..report.render.html.browser import Chromium

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
# Nothing listens there: a build that asks for anything fails.
NO_NETWORK = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
MAX_PICTURE_SIZE = 150_000


class Links(HTMLParser):
    """The anchors of a page, what it links to, and what it loads."""

    LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.anchors = {""}
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if values.get(self.LOADED.get(tag, "")):
            self.loads.append(values[self.LOADED[tag]])


@pytest.fixture(scope="session")
def site(shared_folder: Path) -> Path:
    def build(folder: Path) -> str:
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
        environment = {**os.environ, **NO_NETWORK, "NO_MKDOCS_2_WARNING": "1"}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stderr

    return made_once(shared_folder / "docs-site", build)[0]


@pytest.fixture(scope="session")
def pages(site: Path) -> dict[Path, Links]:
    return {page: Links(page) for page in sorted(site.rglob("*.html"))}


def test_every_page_is_in_the_navigation(site: Path) -> None:
    config = (ROOT / "mkdocs.yml").read_text("utf-8")
    listed = set(re.findall(r"[\w/-]+\.md", config[config.index("\nnav:") :]))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert pages - listed == set()


def test_pages_load_nothing_from_other_hosts(site: Path, pages: dict[Path, Links]) -> None:
    loaded = {load for page in pages.values() for load in page.loads}
    styles = "".join(path.read_text("utf-8") for path in site.rglob("*.css"))
    assert [load for load in loaded if urlsplit(load).netloc] == []
    assert re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//[^)]*", styles) == []
    scripts = "".join(path.read_text("utf-8") for path in pages)
    assert 'class="mermaid"' not in scripts, "the theme would load a script for diagrams from another host"


def broken_links(site: Path, pages: dict[Path, Links]) -> Iterator[str]:
    for page, found in pages.items():
        for link in (*found.links, *found.loads):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            # The page for unknown addresses begins its links at the root of the site.
            start = site if parts.path.startswith("/") else page.parent
            target = (start / unquote(parts.path).lstrip("/")).resolve() if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                yield f"{page.relative_to(site)}: {link} does not exist"
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{page.relative_to(site)}: {link} has no such anchor"


def test_every_link_and_anchor_within_the_site_exists(site: Path, pages: dict[Path, Links]) -> None:
    assert list(broken_links(site.resolve(), {page.resolve(): links for page, links in pages.items()})) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "b.html").write_text("<p id=here>", "utf-8")
    (tmp_path / "a.html").write_text("<a href=b.html#here><a href=b.html#there><a href=c.html>", "utf-8")
    pages = {page: Links(page) for page in sorted(tmp_path.glob("*.html"))}
    assert list(broken_links(tmp_path, pages)) == [
        "a.html: b.html#there has no such anchor",
        "a.html: c.html does not exist",
    ]


def test_links_to_other_sites_are_whole_https_addresses(pages: dict[Path, Links]) -> None:
    other = {link for page in pages.values() for link in page.links if urlsplit(link).scheme or urlsplit(link).netloc}
    assert [link for link in other if not re.fullmatch(r"https://[\w-]+(\.[\w-]+)+(/[\w./~#?&=%@:+,-]*)?", link)] == []


def test_llms_txt_has_a_line_for_every_page_of_the_navigation(site: Path) -> None:
    listed = re.findall(r"^- \[.+\]\((\S+)\): \S", (site / "llms.txt").read_text("utf-8"), re.MULTILINE)
    config = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert sorted(listed) == sorted(set(re.findall(r"[\w/-]+\.md", config[config.index("\nnav:") :])))
    assert [name for name in listed if not (site / name).is_file()] == []


def leaves(command: object, path: str) -> Iterator[tuple[str, object]]:
    below = subcommands(command)
    if not below:
        yield path, command
    for name, each in below.items():
        yield from leaves(each, f"{path} {name}")


def test_the_reference_has_every_command_with_its_options(site: Path) -> None:
    text = (site / "reference" / "cli.md").read_text("utf-8")
    sections = dict(re.findall(r"^## (bakeoff .+)\n((?:(?!^## ).*\n)*)", text, re.MULTILINE))
    for path, command in leaves(typer.main.get_command(app), "bakeoff"):
        every: list[Any] = [one for one in command.params if one.param_type_name == "option"]  # type: ignore[attr-defined]
        options = [one.opts[0] for one in every if not one.hidden]
        assert [
            option for option in options if not re.search(rf"`.*{option}\b.*`", sections[path]) and option != "--help"
        ] == [], path


def test_every_lint_rule_has_its_own_anchor(pages: dict[Path, Links], site: Path) -> None:
    assert set(RULES) <= pages[site / "reference" / "mcp-lint.html"].anchors


def test_the_reference_has_every_variable_that_users_may_set() -> None:
    text = "".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    read = set(re.findall(r"\"(BAKEOFF_[A-Z_]+)\"", text)) - {
        "BAKEOFF_SECRET_HEADER_",
    }  # for processes of our own
    page = (ROOT / "docs" / "reference" / "config.md").read_text("utf-8")
    assert read - set(re.findall(r"^\| `(BAKEOFF_\w+)`", page, re.MULTILINE)) == set()


def test_schemas_of_the_reference_are_files_of_the_site(site: Path) -> None:
    named = re.findall(r"\]\(\.\./(schemas/\S+?)\)", (site / "reference" / "schemas.md").read_text("utf-8"))
    assert {"schemas/plan.schema.json", "schemas/record.schema.json"} <= set(named)
    assert all(yaml.safe_load((site / name).read_text("utf-8"))["type"] == "object" for name in named)


def test_the_plot_of_growth_shows_the_figures_of_its_page() -> None:
    assert (ROOT / "docs" / "explanation" / "growth.svg").read_text("utf-8") == plot()


def test_pictures_are_small_and_say_what_they_show() -> None:
    docs = ROOT / "docs"
    large = [
        path.name
        for path in docs.rglob("*")
        if path.suffix in (".png", ".webp", ".svg") and path.stat().st_size > MAX_PICTURE_SIZE
    ]
    assert large == []
    shown = [
        found
        for page in docs.rglob("*.md")
        for found in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", page.read_text("utf-8"))
    ]
    assert [target for words, target in shown if len(words.split()) < 3] == []


def test_search_works_from_a_disk(site: Path, needs_program: Callable[[str], str]) -> None:
    async def look(page: Page) -> int:
        await page.goto((site / "index.html").as_uri())
        await page.click("input[name=query]")
        await page.keyboard.type("tool-name-clash")
        found = await page.wait_for_selector(".md-search-result__item a[href*='mcp-lint.html']")
        return 1 if found else 0

    chromium = Chromium(needs_program("chromium"))
    try:
        assert chromium(look) == 1  # it fails if anything is asked of the network
    finally:
        chromium.close()
