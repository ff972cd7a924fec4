"""A browser, an accessibility checker, and pages to look at."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bakeoff.cache import cache_folder
from bakeoff.report.html import read_entries, write_index, write_run_page
from bakeoff.rundir import RunFolder

from .browser import Chromium
from .generator import START, plan_of, write_run

AXE = "axe-core@4.14.0"


@pytest.fixture(scope="session")
def chromium(needs_program: Callable[[str], str]) -> Iterator[Chromium]:
    browser = Chromium(needs_program("chromium"))
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def axe(needs_program: Callable[[str], str]) -> str:
    """The source of axe-core, fetched once into the cache."""
    kept = cache_folder() / "tests" / AXE / "axe.min.js"
    if not kept.exists():
        npm = needs_program("npm")
        with tempfile.TemporaryDirectory() as folder:
            install = [npm, "install", "--no-save", "--no-package-lock", "--no-audit", "--no-fund", AXE]
            subprocess.run(install, cwd=folder, check=True, capture_output=True, timeout=240, env={**os.environ})
            kept.parent.mkdir(parents=True, exist_ok=True)
            mine = kept.with_name(f"{os.getpid()}.js")  # several workers may fetch it at one time
            shutil.copy(Path(folder) / "node_modules" / "axe-core" / kept.name, mine)
            mine.replace(kept)
    return kept.read_text("utf-8")


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with six runs of two plans, always the same to the byte."""
    folder = tmp_path_factory.mktemp("pages") / "results"
    for day in range(6):
        plan = plan_of(12, rounds=2, name=("parsers", "refactoring")[day % 2])
        write_run(
            folder / "runs" / f"2026-09-{21 + day}T12-00-00-{plan.name}", plan, seed=day, started=START + day * 86_400
        )
    return folder


@pytest.fixture(scope="session")
def run_page(results: Path) -> Path:
    (first, *_) = sorted((results / "runs").iterdir())
    return write_run_page(RunFolder(first), results.parent / "run.html")


@pytest.fixture(scope="session")
def index_page(results: Path, run_page: Path) -> Path:
    return write_index(results / "index.html", read_entries(results))
