"""Test components in a real browser: a whole Vitest with Chromium for each run, for suites that need layout.

Tests and component share a page. Page, browser and Vitest are one command in the sandbox, with a folder of their own.
The browser starts processes, so neither Node's permission model nor the filter that forbids processes can be used.
"""

import json
import shutil
from asyncio import Semaphore
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bakeoff.errors import InfraError
from bakeoff.plan import Framework, Limits
from bakeoff.protocols import Command, Sandbox
from bakeoff.sandbox import open_place, put_files
from bakeoff.toolchains.install import Say, install_vitest, quiet
from bakeoff.toolchains.outcome import TestRun, last_output, stopped_by_limit
from bakeoff.toolchains.workers import read_last_line

BROWSER_LIMITS = Limits(memory_mb=3072, processes=512, disk_mb=512, output_kb=4096)
_START_SECONDS = 30.0  # Vite and the browser take up to this long before the first test, on a busy machine
_NOT_LAUNCHED = "browserType.launch"
_ALONE = ("--headless", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu")
# Debian's `chromium` is a script that reads `/etc`, which a sandbox does not show.
_PROGRAMS = ("/usr/lib/chromium/chromium", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
FONTS = Path("/etc/fonts")


def find_chromium() -> str:
    """Return the browser that is installed. Raise `InfraError` if there is none."""
    found = next((path for name in _PROGRAMS if (path := shutil.which(name))), None)
    if found is None:
        raise InfraError(
            "no Chromium is installed, and suites with `browser = true` run in it: `apt-get install chromium`",
            permanent=True,
        )
    return found


async def chromium_in(sandbox: Sandbox) -> str:
    """Return the browser of a sandbox: the one that is installed here, except in a container, which has its own.

    Raise `InfraError` if there is none.
    """
    if sandbox.name != "docker":
        return find_chromium()
    search = f'for name in {" ".join(_PROGRAMS)}; do command -v "$name" && exit; done; exit 1'
    async with open_place() as place:
        done = await sandbox.run(Command(("/bin/sh", "-c", search), place, 30.0))
    if not done.ok:
        raise InfraError(
            "the image in BAKEOFF_DOCKER_IMAGE has no Chromium, and suites with `browser = true` run in it: "
            "use an image with the package `chromium`, or `--sandbox bwrap`",
            permanent=True,
        )
    return done.stdout.decode(errors="replace").split("\n", 1)[0]


@dataclass(frozen=True, slots=True)
class BrowserToolchain:
    """The resource that tests components of one framework in Chromium, in `slots` runs at a time."""

    sandbox: Callable[[], Sandbox]
    slots: int = 1
    say: Say = quiet
    framework: Framework = "svelte"

    @property
    def key(self) -> str:
        return f"browser-{self.framework}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator["OpenBrowser"]:
        sandbox = self.sandbox()
        chromium = await chromium_in(sandbox)
        yield OpenBrowser(sandbox, await install_vitest(self.say), self.framework, chromium, Semaphore(self.slots))


@dataclass(frozen=True, slots=True)
class OpenBrowser:
    """Run the tests of components in Chromium."""

    sandbox: Sandbox
    toolchain: Path
    framework: Framework
    chromium: str
    _slots: Semaphore = field(default_factory=lambda: Semaphore(1))

    async def run(self, files: Mapping[str, str], *, tests: Sequence[str] = (), seconds: float) -> TestRun:
        """Run the one test file in `tests`."""
        entry = next((name for name in tests if name in files), None)
        if entry is None:
            return TestRun(error=f"there is no {', '.join(tests) or 'test file'}")
        job = json.dumps({"entry": entry, "framework": self.framework, "chromium": self.chromium}).encode()
        readable = (self.toolchain, *((FONTS,) if FONTS.is_dir() else ()))
        async with self._slots, open_place() as place:
            put_files(place, {name: text.encode() for name, text in files.items()})
            (place.work / "node_modules").symlink_to(self.toolchain / "node_modules")
            argv = ("node", str(self.toolchain / "browser.mjs"))
            limit = seconds + _START_SECONDS
            command = Command(argv, place, limit, BROWSER_LIMITS, stdin=job, readable=readable, graded=True)
            done = await self.sandbox.run(command)
        run = stopped_by_limit(done) if done.stop != "exited" else read_last_line(done)
        if not run.tests and _NOT_LAUNCHED in (run.error or ""):
            await self.check_browser()
        return run

    async def check_browser(self) -> None:
        """Raise `InfraError` if the browser itself does not start, since a component can also throw what a run says."""
        argv = (self.chromium, *_ALONE, "--dump-dom", "about:blank")
        async with open_place() as place:
            done = await self.sandbox.run(Command(argv, place, _START_SECONDS, graded=True))
        if not done.ok:
            raise InfraError(f"{self.chromium} does not start in the {self.sandbox.name} sandbox: {last_output(done)}")
