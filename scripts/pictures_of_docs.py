"""Take the pictures of the documentation: `python -m scripts.pictures_of_docs [NAME …]`.

Each shows a real page: the commands of a tutorial (or of the picture itself) run in an empty folder, and Chromium opens
what they wrote.
"""

import argparse
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, sync_playwright
from scripts.docs_outputs import output_of, with_outputs

DOCS = Path(__file__).parents[1] / "docs"
MAX_SIZE = 150_000  # bytes of a picture
WIDTH, HEIGHT = 1200, 760


@dataclass(frozen=True, slots=True)
class Picture:
    """Which page to show, and how it is made."""

    shows: str  # a pattern; the newest file that matches
    tutorial: str = ""
    then: str = ""  # a command after the tutorial

    def make(self, folder: Path) -> Path:
        """Run the commands in a folder, and return the page to show."""
        if self.tutorial:
            with_outputs((DOCS / "tutorial" / self.tutorial).read_text("utf-8"), folder)
        here = folder / "here"
        here.mkdir(exist_ok=True)
        if self.then:
            output_of(self.then, here, "bash")
        found = sorted(here.glob(self.shows))
        if not found:
            raise SystemExit(f"✗ {self.shows}: no such file was written")
        return found[-1]


SUITES = " ".join(f"--suite python-{name}" for name in ("expression", "intervals", "task-plan", "ttl-cache"))
PICTURES = {
    "overview": Picture("results/runs/*/report.html", then="bakeoff demo --quick && bakeoff report latest --no-open"),
    "components": Picture(
        "results/runs/*/report.html", then=f"bakeoff run {SUITES} --model oracle --model nop --model cheat --no-open"
    ),
    "agents": Picture("results/runs/*/report.html", "agents.md"),
    "mcp": Picture("mcp-report/*.html", then="bakeoff mcp init . && bakeoff mcp evaluate --rounds 1"),
    "pytest": Picture("evals.html", "pytest.md"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(PICTURES)}; default: all")
    names = parser.parse_args().names or list(PICTURES)
    chromium = shutil.which("chromium") or sys.exit("✗ chromium is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name in names:
            with tempfile.TemporaryDirectory() as folder:
                page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
                take(page, PICTURES[name].make(Path(folder)), DOCS / "assets" / f"{name}.png")
                page.close()
        browser.close()


def take(page: Page, shown: Path, picture: Path) -> None:
    """Take the picture of a page, and refuse it if it is too large for a repository."""
    page.goto(shown.as_uri())
    page.wait_for_load_state("networkidle")
    data = page.screenshot()
    if len(data) > MAX_SIZE:
        raise SystemExit(f"✗ {picture.name} has {len(data):,} bytes, more than {MAX_SIZE:,}")
    picture.write_bytes(data)
    print(f"✓ {picture.relative_to(DOCS.parent)}, {len(data):,} bytes")


if __name__ == "__main__":
    main()
