"""A real Chromium, driven from tests that are not coroutines: Playwright's loop lives in a thread of its own."""

import asyncio
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from playwright.async_api import Browser, Page, async_playwright

from bakeoff._kernel.environment import cache_folder

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP rebound.test 127.0.0.1",  # a foreign name that was made to point at this machine
]
OURS = ("file:", "data:", "blob:", "http://127.0.0.1:", "http://localhost:", "http://rebound.test:")
AXE = "axe-core@4.14.0"
LOOKS = {"390 light": (390, False), "390 dark": (390, True), "1400 light": (1400, False), "1400 dark": (1400, True)}
"""The widths and themes in which pages are audited."""

Found = TypeVar("Found")
Look = Callable[[Page], Awaitable[Found]]


class Chromium:
    """`chromium(look, width=…, dark=…)` opens a fresh page and gives what `look(page)` returns.

    It fails if a script of the page broke, if a dialog came up, or if anything was asked of the network.
    """

    def __init__(self, program: str) -> None:
        self._program = program
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="chromium", daemon=True)
        self._thread.start()
        self._stop = asyncio.Event()
        self._browser: Browser | None = None
        started = threading.Event()
        self._life = asyncio.run_coroutine_threadsafe(self._live(started), self._loop)
        if not started.wait(120):
            self._life.result(1)

    async def _live(self, started: threading.Event) -> None:
        async with async_playwright() as playwright:
            self._browser = await playwright.chromium.launch(executable_path=self._program, args=ARGUMENTS)
            started.set()
            await self._stop.wait()
            await self._browser.close()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._life.result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    def __call__(self, look: Look[Found], **options: Any) -> Found:
        return self._run(self._look(look, **options))

    def _run(self, work: Coroutine[Any, Any, Found]) -> Found:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(180)

    async def _look(self, look: Look[Found], *, width: int = 1024, height: int = 900, dark: bool = False) -> Found:
        assert self._browser is not None
        troubles: list[str] = []
        context = await self._browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )
        try:
            page = await context.new_page()
            page.on("pageerror", lambda error: troubles.append(f"script: {error}"))
            page.on("dialog", lambda dialog: troubles.append(f"dialog: {dialog.message}"))
            page.on("request", lambda asked: None if asked.url.startswith(OURS) else troubles.append(asked.url))
            found = await look(page)
        finally:
            await context.close()
        assert troubles == []
        return found


async def opened(page: Page, path: Path, place: str = "") -> None:
    """Load one of our files and wait until its data can be used."""
    await page.goto(path.as_uri() + place)
    await page.wait_for_selector("html[data-ready=yes]", state="attached")


async def until(page: Page, expression: str, seconds: float = 30) -> None:
    """Wait for it to become true. Playwright's own way evaluates text inside the page, which our policy forbids."""
    for _ in range(int(seconds * 20)):
        if await page.evaluate(expression):
            return
        await page.wait_for_timeout(50)
    raise AssertionError(f"{expression} did not become true within {seconds:g} seconds")


def axe_source(npm: Callable[[], str]) -> str:
    """The source of axe-core, fetched once into the cache."""
    kept = cache_folder() / "tests" / AXE / "axe.min.js"
    if not kept.exists():
        with tempfile.TemporaryDirectory() as folder:
            install = [npm(), "install", "--no-save", "--no-package-lock", "--no-audit", "--no-fund", AXE]
            subprocess.run(install, cwd=folder, check=True, capture_output=True, timeout=240, env={**os.environ})
            kept.parent.mkdir(parents=True, exist_ok=True)
            mine = kept.with_name(f"{os.getpid()}.js")  # several workers may fetch it at one time
            shutil.copy(Path(folder) / "node_modules" / "axe-core" / kept.name, mine)
            mine.replace(kept)
    return kept.read_text("utf-8")


async def violations(page: Page, axe: str) -> list[str]:
    """Return everything that axe-core calls a violation, however slight."""
    await page.evaluate(axe)  # the debugger's own way in, which the page's policy does not bind
    found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:200]} {one['nodes'][0]['failureSummary']}"
        for one in found["violations"]
    ]
