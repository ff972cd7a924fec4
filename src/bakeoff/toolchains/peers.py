"""A program of ours that runs in a sandbox, in a place of its own, and talks through a socket in its work folder.

The program is started with the socket's name as its last word, connects once, and says a line when it is ready.
After that each side says one line at a time. Nobody else can connect: the socket is closed behind the first.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bakeoff.errors import InfraError
from bakeoff.plan import Limits
from bakeoff.protocols import Command, Completed, Sandbox
from bakeoff.sandbox import open_place

SOCKET = "socket"
LONGEST_ANSWER = 16 << 20
LIFETIME_SECONDS = 7 * 24 * 3600.0  # each question has a limit of its own
READY_SECONDS = 60.0
LAST_WORDS_SECONDS = 5.0  # between the end of the connection and the end of its process
_TAIL = 2000


class PeerGone(Exception):
    """The program ended, or said something that is no answer; `completed` is how it ended, where that is known."""

    def __init__(self, completed: Completed | None) -> None:
        super().__init__("it ended without an answer")
        self.completed = completed


class Peer:
    """One such program, from its start to its end; `close` must be awaited."""

    def __init__(self, sandbox: Sandbox, argv: Sequence[str], *, readable: tuple[Path, ...], limits: Limits) -> None:
        self._sandbox, self._argv, self._readable, self._limits = sandbox, tuple(argv), readable, limits
        self._connected: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]]
        self._connected = asyncio.get_running_loop().create_future()
        self._life = asyncio.create_task(self._live())
        self._readiness = asyncio.create_task(self._become_ready())

    async def _live(self) -> Completed:
        async with open_place() as place:
            with socket.socket(socket.AF_UNIX) as listening:
                listening.setblocking(False)
                listening.bind(str(place.work / SOCKET))
                listening.listen(1)
                if place.uid is not None:
                    os.chown(place.work / SOCKET, place.uid, place.uid)
                accepting = asyncio.create_task(self._accept(listening))
                try:
                    argv = (*self._argv, SOCKET)
                    command = Command(argv, place, LIFETIME_SECONDS, self._limits, readable=self._readable)
                    return await self._sandbox.run(command)
                finally:
                    accepting.cancel()
                    await asyncio.wait([accepting])
                    self._hang_up()

    async def _accept(self, listening: socket.socket) -> None:
        connection, _ = await asyncio.get_running_loop().sock_accept(listening)
        listening.close()
        streams = await asyncio.open_unix_connection(sock=connection, limit=LONGEST_ANSWER)
        self._connected.set_result(streams)

    def _hang_up(self) -> None:
        if not self._connected.done():
            self._connected.cancel()
        elif not self._connected.cancelled():
            self._connected.result()[1].close()

    async def _become_ready(self) -> None:
        try:
            async with asyncio.timeout(READY_SECONDS):
                waited: list[asyncio.Future[Any]] = [self._connected, self._life]
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
                if self._connected.done() and not self._connected.cancelled():
                    reader, _ = self._connected.result()
                    if await reader.readline():
                        return
                raise InfraError(f"{self._argv[0]} did not start: {_last_words(await self._life)}")
        except TimeoutError as problem:
            raise InfraError(f"{self._argv[0]} was not ready within {READY_SECONDS:.0f} s") from problem

    async def ready(self) -> None:
        """Wait until it can be asked; raises `InfraError` where it never can."""
        await asyncio.shield(self._readiness)

    @property
    def alive(self) -> bool:
        return not self._life.done()

    async def ask(self, question: bytes, *, seconds: float) -> bytes:
        """Its answer; raises `TimeoutError` or `PeerGone`. One question at a time."""
        await self.ready()
        reader, writer = self._connected.result()
        try:
            async with asyncio.timeout(seconds):
                writer.write(question + b"\n")
                await writer.drain()
                answer = await reader.readline()
        except (ConnectionError, ValueError) as problem:  # ValueError: a line beyond any answer's length
            raise PeerGone(await self._end()) from problem
        if not answer.endswith(b"\n"):
            raise PeerGone(await self._end())
        return answer

    async def _end(self) -> Completed | None:
        """How it ended, given that it has hung up."""
        await asyncio.wait([self._life], timeout=LAST_WORDS_SECONDS)
        return self._life.result() if self._life.done() else None

    async def close(self) -> None:
        """End it with everything it started."""
        self._life.cancel()
        self._readiness.cancel()
        await asyncio.wait([self._life, self._readiness])
        for task in (self._life, self._readiness):
            with contextlib.suppress(asyncio.CancelledError, InfraError, OSError):
                task.result()
        self._hang_up()


def _last_words(completed: Completed) -> str:
    text = completed.stderr.decode(errors="replace").strip()[-_TAIL:]
    return text or f"it ended by {completed.stop} with exit code {completed.exit_code}"
