"""Check the types of TypeScript exercises, in a process that reads an answer and never runs it."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from bakeoff.protocols import Sandbox
from bakeoff.toolchains.workers import COMPILER_LIMITS, Peer, PeerGone, parse_answer

_NAMED = 3


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
        """Return the type errors in these files as one text, or None if there are none.

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
