"""Run JavaScript and Python of the user's own in one lasting process for each language, one call at a time.

The code runs as the user, without a sandbox, as functions do that a configuration names as `module:function`.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from bakeoff._kernel.imports import command_revision
from bakeoff.errors import GraderError, UsageError
from bakeoff.sandbox.confinement import FOREVER_SECONDS, unconfined_command
from bakeoff.sandbox.supervisor_client import SupervisedProcess, supervised_process

Language: TypeAlias = Literal["javascript", "python"]
LANGUAGES: dict[str, Language] = {".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".py": "python"}
"""The languages of files, by their endings."""

FILE = "file://"
_MAX_ANSWER_LENGTH = 64 << 20
_SECONDS_NOW = 120.0


class CodeResult(NamedTuple):
    """The value that code returned, or the error that it raised."""

    value: Any = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class UserCode:
    """Code of the user with the names of its arguments: an expression, the body of a function, or `file://path[:function]`."""

    language: Language
    text: str
    names: tuple[str, ...] = ("output", "context")
    usual: str = ""  # the function of a file in Python that names none
    method: str = ""  # of a class in JavaScript
    options: Any = None  # for that class

    @property
    def worker(self) -> "CodeWorker":
        """Return the resource that runs it."""
        return CodeWorker(self.language)

    def line(self, arguments: Sequence[Any]) -> bytes:
        """Return a call as the line that a worker reads."""
        source = {"code": self.text, "names": self.names}
        if self.text.startswith(FILE):
            path, name = split_path(self.text)
            source = {
                "file": str(Path(path).absolute()),
                "name": name or (self.usual if self.language == "python" else ""),
            }
        call = {**source, "args": arguments, "method": self.method, "options": self.options}
        return json.dumps(call, default=str).encode() + b"\n"

    async def called(self, resources: Mapping[str, Any], *arguments: Any) -> CodeResult:
        """Return the result of the code, which the run's worker calls. Raise GraderError outside of a run."""
        worker: OpenCodeWorker | None = resources.get(self.worker.key)
        if worker is None:
            raise GraderError(f"{self} runs only as a part of a run")
        return await worker.call(self, *arguments)

    def call_now(self, *calls: Sequence[Any]) -> list[Any]:
        """Run the code in a process of its own, before a run begins: once for each list of arguments.

        Raise UsageError if it fails.
        """
        argv, lines = argv_of(self.language), b"".join(map(self.line, calls))
        try:
            done = subprocess.run(argv, input=lines, capture_output=True, timeout=_SECONDS_NOW, check=False)
            said = done.stdout.splitlines()
            results = [_read(said[at] if at < len(said) else b"", self) for at in range(len(calls))]
        except subprocess.TimeoutExpired as late:
            raise UsageError(f"{self} takes longer than {_SECONDS_NOW:g} s") from late
        except GraderError as problem:
            raise UsageError(str(problem)) from problem
        if wrong := [error for _, error in results if error is not None]:
            raise UsageError(f"{self}: {wrong[0]}")
        return [value for value, _ in results]

    def __str__(self) -> str:
        first, *more = self.text.strip().splitlines() or [""]
        return f"`{first[:80]}{' …' if more or len(first) > 80 else ''}`"


def split_path(text: str) -> tuple[str, str]:
    """Return the path and the function of `file://path[:function]`; the function may be empty."""
    path, colon, name = text.removeprefix(FILE).rpartition(":")
    return (path, name) if colon and Path(path).suffix in LANGUAGES else (text.removeprefix(FILE), "")


def code_revision(texts: Iterable[str]) -> str:
    """Return a hash of the files among these texts, empty without one: an edited file is other code."""
    files = [Path(split_path(text)[0]).absolute() for text in texts if text.startswith(FILE)]
    return command_revision(list(map(str, files)), Path("/"))


def argv_of(language: Language) -> list[str]:
    """Return the command of a worker. Raise UsageError if this machine cannot run the language."""
    here = Path(__file__).parent
    if language == "python":
        return [sys.executable, str(here / "user_code_worker.py")]
    if shutil.which("node") is None:
        raise UsageError("JavaScript needs Node, and there is no `node` on PATH: install Node 20 or newer")
    return ["node", str(here / "javascript" / "user_code.mjs")]


@dataclass(frozen=True, slots=True)
class CodeWorker:
    """The resource of a run that executes code of one language."""

    language: Language

    @property
    def key(self) -> str:
        """Return the name under which trials find it."""
        return f"code in {self.language}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator["OpenCodeWorker"]:
        """Yield a worker, whose process starts with the first call and ends with the block."""
        worker = OpenCodeWorker(self.language)
        try:
            yield worker
        finally:
            await worker.end()


@dataclass(slots=True)
class OpenCodeWorker:
    """A process that answers calls. One that is interrupted or ends is started again for the next call."""

    language: Language
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _process: SupervisedProcess | None = None

    async def call(self, code: UserCode, *arguments: Any) -> CodeResult:
        """Return the result of the code. Raise GraderError if it cannot be loaded, or ends its process."""
        line = code.line(arguments)
        async with self._lock:
            try:
                process = self._process or await self._started()
                process.stdin.write(line)
                await process.stdin.drain()
                return _read(await process.stdout.readline(), code)
            except (OSError, ValueError) as error:
                await self.end()
                raise GraderError(f"{code}: its process gave no answer: {error}") from error
            except BaseException:  # also a request to stop waiting
                await self.end()
                raise

    async def end(self) -> None:
        """End the process, if there is one."""
        stack, self._stack, self._process = self._stack, AsyncExitStack(), None
        await stack.aclose()

    async def _started(self) -> SupervisedProcess:
        argv = argv_of(self.language)
        order, _ = unconfined_command(argv, env=os.environ, cwd=Path.cwd(), seconds=FOREVER_SECONDS)
        process = await self._stack.enter_async_context(supervised_process(order, limit=_MAX_ANSWER_LENGTH))
        printing = asyncio.create_task(_discard(process.stderr))
        self._stack.callback(printing.cancel)
        self._process = process
        return process


async def _discard(stream: asyncio.StreamReader) -> None:
    """Read what the code prints, so that it never waits for a reader."""
    while await stream.read(1 << 16):
        pass


def _read(line: bytes, code: UserCode) -> CodeResult:
    if not line.strip():
        raise GraderError(f"{code}: its process ended without an answer")
    said = json.loads(line)
    if "broken" in said:
        raise GraderError(f"{code} cannot be run: {said['broken']}")
    return CodeResult(said.get("value"), said.get("error"))
