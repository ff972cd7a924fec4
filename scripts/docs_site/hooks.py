"""Serve MkDocs while it builds the site: add generated parts, files of the repository, and llms.txt."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation, Section
from mkdocs.structure.pages import Page
from scripts.docs_site.commands import command_reference, pytest_reference
from scripts.docs_site.keys import key_reference, schema_files, schema_reference
from scripts.docs_site.markdown import first_sentence
from scripts.docs_site.names import api_reference
from scripts.docs_site.rules import rule_reference

ROOT = Path(__file__).parents[2]
# Pages that lie outside of docs, where code hosts look for them.
FROM_ROOT = {"SECURITY.md": "security.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
# Files that pages link to, and that the site carries.
FILES = (
    "action.yml",
    "examples/workflows/benchmark.yml",
    "examples/workflows/evals.yml",
    "examples/workflows/leaderboard.yml",
)
GENERATED: dict[str, Callable[[], str]] = {
    "commands": command_reference,
    "pytest options": pytest_reference,
    "keys": key_reference,
    "schemas": schema_reference,
    "names": api_reference,
    "lint rules": rule_reference,
}
MARK = re.compile(r"^<!-- generated: ([\w ]+) -->$", re.MULTILINE)
# Code hosts want `\|` in the code of a table; Python-Markdown shows the backslash.
ROW, CODE = re.compile(r"^\|.*\|$", re.MULTILINE), re.compile(r"`[^`]+`")
LINK = re.compile(r"(\]\()((?:\.\./)*)([\w./-]+)(#[\w-]+)?(?=\))")

_pages: dict[str, str] = {}
_navigation: list[Navigation] = []


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and files that do not lie in docs."""
    for name, page in FROM_ROOT.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text("utf-8")))
    for name in FILES:
        files.append(File.generated(config, f"files/{Path(name).name}", content=(ROOT / name).read_text("utf-8")))
    for name, text in schema_files().items():
        files.append(File.generated(config, f"schemas/{name}", content=text))
    return files


def on_nav(nav: Navigation, **_: Any) -> Navigation:
    _navigation[:] = [nav]
    return nav


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Put generated parts in the place of their marks, and describe the page by its first sentence."""
    markdown = MARK.sub(lambda mark: GENERATED[mark[1]](), with_links_in_site(markdown, page.file.src_uri))
    markdown = ROW.sub(lambda row: CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0]), markdown)
    page.meta.setdefault("description", first_sentence(markdown))
    _pages[page.file.src_uri] = markdown
    return markdown


def with_links_in_site(markdown: str, page: str) -> str:
    """Return a page with links to files of the repository led to their copies in the site."""
    places = {**FROM_ROOT, **{name: f"files/{Path(name).name}" for name in FILES}}
    up = "../" * page.count("/")

    def led(link: re.Match[str]) -> str:
        start, above, path, anchor = link[1], link[2], link[3], link[4] or ""
        if page in FROM_ROOT.values():
            target = path.removeprefix("docs/") if path.startswith("docs/") else places.get(path)
        else:
            target = places.get(path) if above == up + "../" else None
        return f"{start}{up}{target}{anchor}" if target else link[0]

    return LINK.sub(led, markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Write llms.txt, and beside each page its Markdown, which llms.txt links to."""
    site = Path(config.site_dir)
    for name, markdown in _pages.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(markdown, "utf-8")
    lines = [f"# {config.site_name}", "", f"> {config.site_description}"]
    for item in _navigation[0].items:
        lines += ["", f"## {item.title}", ""] if isinstance(item, Section) else [""]
        lines += [_line(page) for page in _below(item)]
    (site / "llms.txt").write_text("\n".join(lines) + "\n", "utf-8")


def _below(item: Any) -> list[Page]:
    if isinstance(item, Section):
        return [page for child in item.children for page in _below(child)]
    return [item] if isinstance(item, Page) else []


def _line(page: Page) -> str:
    return f"- [{page.title}]({page.file.src_uri}): {page.meta.get('description') or page.title}"
