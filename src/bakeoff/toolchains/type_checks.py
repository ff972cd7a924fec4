"""Check the types of TypeScript exercises and run their type tests. Both read an answer and never run it."""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path

from bakeoff.protocols import Command, Sandbox
from bakeoff.sandbox import open_place, put_files
from bakeoff.toolchains.tracks import matches
from bakeoff.toolchains.workers import COMPILER_LIMITS, Peer, PeerGone, parse_answer

TYPE_TESTS = ("*.tst.*",)
_NAMED = 3
_FAILURE = re.compile(r"^Error: (.+)$(?s:.*?)^ +at (?:\./)?(.+)$", re.MULTILINE)


class TypeChecker:
    """Keep a process with TypeScript in it. It is started when it is first needed, and `close` ends it.

    Args:
        sandbox: Where the process runs.
        toolchain: The installed folder with its script.
    """

    def __init__(self, sandbox: Sandbox, toolchain: Path) -> None:
        self._sandbox, self._toolchain = sandbox, toolchain
        self._peer: Peer | None = None
        self._asking = asyncio.Lock()

    async def check(self, files: Mapping[str, str], seconds: float) -> str | None:
        """Return the type errors in these files and the type tests that fail as one text, or None if there are none."""
        errors = await self._compile(files, seconds)
        if errors is None and any(matches(name, TYPE_TESTS) for name in files):
            return await self._run_type_tests(files, seconds)
        return errors

    async def _compile(self, files: Mapping[str, str], seconds: float) -> str | None:
        """Return what the compiler finds.

        Types can be written that take forever. Such a check ends with an error, and the next answer gets a new process.
        A process that ended had served others before, so the answer is checked once more, by a new one.
        """
        async with self._asking:
            for _ in range(2):
                try:
                    found = parse_answer(await self._started().ask(dict(files), seconds=seconds))
                    return _told(found["errors"], found["count"])
                except TimeoutError:
                    await self._end()
                    return f"type errors: its types were not checked within {seconds:g} s"
                except PeerGone:
                    await self._end()
                except BaseException:
                    await self._end()
                    raise
        return "type errors: TypeScript ended while it checked the types"

    async def _run_type_tests(self, files: Mapping[str, str], seconds: float) -> str | None:
        async with open_place() as place:
            put_files(place, {name: text.encode(errors="replace") for name, text in files.items()})
            (place.work / "node_modules").symlink_to(self._toolchain / "node_modules")
            argv = ("node", str(self._toolchain / "node_modules" / "tstyche" / "build" / "bin.js"))
            env = {"TSTYCHE_NO_COLOR": "true", "TSTYCHE_STORE_PATH": str(place.tmp)}
            command = Command(argv, place, seconds, COMPILER_LIMITS, env, readable=(self._toolchain,), graded=True)
            done = await self._sandbox.run(command)
        if done.stop != "exited":
            return f"type errors: its type tests were ended by the {done.stop} limit"
        return None if done.exit_code == 0 else f"type errors: {_failures(done.stderr.decode(errors='replace'))}"

    def _started(self) -> Peer:
        if self._peer is None:
            argv = ("node", str(self._toolchain / "types.cjs"))
            self._peer = Peer(self._sandbox, argv, readable=(self._toolchain,), limits=COMPILER_LIMITS)
        return self._peer

    async def _end(self) -> None:
        if self._peer is not None:
            peer, self._peer = self._peer, None
            await peer.close()

    async def close(self) -> None:
        async with self._asking:
            await self._end()


def _told(errors: list[str], count: int) -> str | None:
    if not count:
        return None
    more = f"; and {count - _NAMED} more" if count > _NAMED else ""
    return f"type errors: {'; '.join(errors[:_NAMED])}{more}"


def _failures(printed: str) -> str:
    """Return the type tests that fail, each with its place; everything printed if there is none."""
    found = [f"{place}: {what}" for what, place in _FAILURE.findall(printed)]
    more = f"; and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return "; ".join(found[:_NAMED]) + more or printed.strip()[-1000:] or "the type tests fail"
