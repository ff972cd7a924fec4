"""Test components with Vitest, in worker processes that are started in advance.

Suites that need a whole `vitest run`, for example for mocked modules or snapshots, get one. Suites
that need layout get a whole Vitest with Chromium for each run. Tests and component share a page;
page, browser and Vitest are one sandboxed command with its own folder. Since browsers start
processes, Node's permission model and the filter against processes cannot be used. Pictures of
components are taken in the same way after grading, and change no verdict.
"""

import base64
import binascii
import json
import re
import shutil
from asyncio import Semaphore
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from bakeoff._kernel.json import json_object
from bakeoff.errors import GraderError, InfraError
from bakeoff.plan import Framework, Limits
from bakeoff.protocols import Command, CommandResult, Sandbox
from bakeoff.sandbox import open_place
from bakeoff.storage.pictures import HEIGHT, MAX_BYTES, WIDTH, BadPictureError, Picture, encode_again
from bakeoff.toolchains.install import Say, install_vitest, permission_flags
from bakeoff.toolchains.outcome import TestRun, ValidationOutcome, last_output, stopped_by_limit, without_colours
from bakeoff.toolchains.validators import read_outcome
from bakeoff.toolchains.workers import (
    PeerGone,
    WorkerPool,
    ended_without_answer,
    parse_answer,
    read_last_line,
    run_script,
)

_WHOLE_SECONDS = 30.0  # to start a whole Vitest on a busy machine
_TEST_FILE = re.compile(r"test\.(?:svelte\.)?[jt]sx?")
_FRAMEWORKS: Mapping[str, Framework] = {".svelte": "svelte", ".tsx": "react", ".jsx": "react", ".vue": "vue"}

BROWSER_LIMITS = Limits(memory_mb=3072, processes=512, disk_mb=512, output_kb=4096)
_START_SECONDS = 30.0  # to start Vite and the browser on a busy machine
_NOT_LAUNCHED = "browserType.launch"
_ALONE = ("--headless", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu")
# Debian's `chromium` is a script that reads `/etc`, which sandboxes hide.
_PROGRAMS = ("/usr/lib/chromium/chromium", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
FONTS = Path("/etc/fonts")
_SECONDS = 90.0  # for compiling, starting a browser, and the inner limits


def framework_of(component: str) -> Framework:
    """Return the framework of a component by the suffix of its file."""
    return _FRAMEWORKS.get(PurePosixPath(component).suffix, "typescript")


@dataclass(frozen=True, slots=True)
class VitestToolchain:
    """The resource that tests components of one framework, with `slots` runs at a time."""

    sandbox: Callable[[], Sandbox]
    slots: int = 1
    framework: Framework = "svelte"

    @property
    def key(self) -> str:
        return f"vitest-{self.framework}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator["OpenVitest"]:
        """Install Vitest if needed, start workers, and yield the object that runs tests."""
        toolchain, sandbox = await install_vitest(), self.sandbox()
        flags = await permission_flags(sandbox)
        async with AsyncExitStack() as stack:
            opened = OpenVitest(sandbox, toolchain, self.slots, flags, self.framework)
            stack.push_async_callback(opened.close)
            await opened.warm_up()
            yield opened


class OpenVitest(WorkerPool):
    """Runs the tests of components, and validators in TypeScript."""

    worker_script, compiler_script, whole_script = "start.cjs", "compiler.mjs", "fresh.mjs"

    def __init__(
        self, sandbox: Sandbox, toolchain: Path, slots: int, flags: Sequence[str], framework: Framework
    ) -> None:
        self.settings = {"framework": framework}
        super().__init__(sandbox, toolchain, slots, flags)

    async def run(self, files: Mapping[str, str], *, tests: Sequence[str] = (), seconds: float) -> TestRun:
        """Run one test file: the one in `tests`, or else `test.ts`, `test.tsx` or `test.svelte.ts`."""
        entry = next((name for name in tests or files if tests or _TEST_FILE.fullmatch(name)), None)
        if entry is None or entry not in files:
            return TestRun(error=f"there is no {entry or 'test.ts, test.tsx or test.svelte.ts'}")
        run = await self.run_warm({"files": dict(files), "entry": entry}, seconds)
        return await self.run_whole(files, entry, seconds + _WHOLE_SECONDS) if run is None else run

    async def validate(self, code: str, source: str, seconds: float) -> ValidationOutcome:
        """Run a TypeScript validator. Raise `GraderError` if its result is invalid."""
        async with self._slots:
            try:
                prepared = await self.compile({"source": source}, seconds)
                if "error" in prepared:
                    raise GraderError(f"the validator does not compile: {prepared['error']}")
                async with self._workers.take() as worker:
                    return read_outcome(parse_answer(await worker.ask({**prepared, "code": code}, seconds=seconds)))
            except TimeoutError as problem:
                raise GraderError(f"the validator did not answer within {seconds:g} s") from problem
            except PeerGone as gone:
                why = ended_without_answer(gone.completed, 0.0).error
                raise GraderError(f"the validator gave no answer: {why}") from gone


def find_chromium() -> str:
    """Return the path of the installed browser. Raise `InfraError` if there is none."""
    found = next((path for name in _PROGRAMS if (path := shutil.which(name))), None)
    if found is None:
        raise InfraError(
            "no Chromium is installed, and suites with `browser = true` run in it: `apt-get install chromium`",
            permanent=True,
        )
    return found


async def chromium_in(sandbox: Sandbox) -> str:
    """Return the browser for a sandbox: this machine's or, for a container, its own."""
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


async def _run_with_browser(
    sandbox: Sandbox, script: Path, files: Mapping[str, str], job: bytes, seconds: float
) -> CommandResult:
    fonts = (FONTS,) if FONTS.is_dir() else ()
    return await run_script(sandbox, script, files, stdin=job, seconds=seconds, limits=BROWSER_LIMITS, readable=fonts)


class BrowserToolchain(VitestToolchain):
    """The resource that tests components in Chromium, with `slots` runs at a time."""

    __slots__ = ()

    @property
    def key(self) -> str:
        return f"browser-{self.framework}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator["OpenBrowser"]:  # type: ignore[override]
        sandbox = self.sandbox()
        chromium = await chromium_in(sandbox)
        yield OpenBrowser(sandbox, await install_vitest(), self.framework, chromium, Semaphore(self.slots))


@dataclass(frozen=True, slots=True)
class OpenBrowser:
    """Runs the tests of components in Chromium."""

    sandbox: Sandbox
    toolchain: Path
    framework: Framework
    chromium: str
    _slots: Semaphore = field(default_factory=lambda: Semaphore(1))

    async def run(self, files: Mapping[str, str], *, tests: Sequence[str] = (), seconds: float) -> TestRun:
        """Run the single test file in `tests`."""
        entry = next((name for name in tests if name in files), None)
        if entry is None:
            return TestRun(error=f"there is no {', '.join(tests) or 'test file'}")
        job = json.dumps({"entry": entry, "framework": self.framework, "chromium": self.chromium}).encode()
        async with self._slots:
            script, limit = self.toolchain / "browser.mjs", seconds + _START_SECONDS
            run = read_last_line(await _run_with_browser(self.sandbox, script, files, job, limit))
        if not run.tests and _NOT_LAUNCHED in (run.error or ""):
            await self.check_browser()
        return run

    async def check_browser(self) -> None:
        """Raise `InfraError` if the browser does not start. Components could fake this in a run."""
        argv = (self.chromium, *_ALONE, "--dump-dom", "about:blank")
        async with open_place() as place:
            done = await self.sandbox.run(Command(argv, place, _START_SECONDS, graded=True))
        if not done.ok:
            raise InfraError(f"{self.chromium} does not start in the {self.sandbox.name} sandbox: {last_output(done)}")


@dataclass(frozen=True, slots=True)
class PictureToolchain:
    """Takes pictures of components."""

    sandbox: Sandbox
    toolchain: Path
    chromium: str

    @classmethod
    async def ready(cls, sandbox: Sandbox, say: Say) -> "PictureToolchain":
        """Install what is needed. Raise `InfraError` if Node or Chromium is missing."""
        chromium = await chromium_in(sandbox)
        return cls(sandbox, await install_vitest(say), chromium)

    async def take(
        self, files: Mapping[str, str], component: str, framework: Framework, props: str | None = None
    ) -> Picture:
        """Render a component once, with properties exported by the module `props`."""
        if framework == "typescript":
            return Picture(problem="plain TypeScript has nothing to render")
        wanted = {"component": component, "props": props, "framework": framework, "chromium": self.chromium}
        job = {**wanted, "width": WIDTH, "height": HEIGHT, "bytes": MAX_BYTES}
        script, stdin = self.toolchain / "picture.mjs", json.dumps(job).encode()
        done = await _run_with_browser(self.sandbox, script, files, stdin, _SECONDS)
        if done.stop != "exited":
            return Picture(problem=stopped_by_limit(done).error or done.stop)
        return read_picture(done.stdout) or Picture(problem=f"the browser gave no picture: {last_output(done)}")


def read_picture(printed: bytes) -> Picture | None:
    """Return the picture in the last line of output, encoded again, or None."""
    lines = printed.splitlines()
    found = json_object(lines[-1]) if lines else None
    if found is None:
        return None
    if isinstance(problem := found.get("problem"), str) and problem:
        return Picture(problem=without_colours(problem))
    if not isinstance(encoded := found.get("png"), str):
        return None
    try:
        return Picture(png=encode_again(base64.b64decode(encoded, validate=True), width=WIDTH, height=HEIGHT))
    except (binascii.Error, ValueError, BadPictureError) as error:
        return Picture(problem=f"the browser gave no picture that can be shown: {error}")
