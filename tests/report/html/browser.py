"""A real Chromium, driven from tests that are not coroutines: Playwright's loop lives in a thread of its own."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from playwright.async_api import Browser, Page, async_playwright

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
