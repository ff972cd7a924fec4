"""Send our servers what no browser sends: broken, huge, smuggled and unfinished requests, and connections without end.

A server must answer with no 5xx, print nothing, keep serving others meanwhile, and give back memory and descriptors.
"""

import argparse
import asyncio
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts.hostile.http_corpus import BODIES, HEADERS, METHODS, TARGETS, WHOLE

SERVERS = ("viewer", "labels", "meter", "relay")
HALF_OPEN = 500
_AT_ONCE = 16
_ANSWER_SECONDS = 0.4  # for a request that may be incomplete, and so has no answer
_GROWTH_BYTES = 30 << 20


@dataclass
class Server:
    """A server of ours in a process of its own."""

    name: str
    process: "subprocess.Popen[str]"
    port: int
    path: str
    headers: Mapping[str, str]
    log: Path
    statuses: Counter[int] = field(default_factory=Counter)
    server_errors: list[bytes] = field(default_factory=list)

    @property
    def head(self) -> str:
        """Return the headers of somebody who may ask."""
        return "".join(
            f"{name}: {value}\r\n" for name, value in {"Host": f"127.0.0.1:{self.port}", **self.headers}.items()
        )

    def resident(self) -> int:
        """Return how many bytes of memory it has."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("utf-8")
        return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmRSS"))

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    async def healthy(self) -> float | None:
        """Ask for something that is there, and return the seconds, or None if it was not given in ten."""
        started = time.perf_counter()
        with suppress(OSError, TimeoutError):
            answer = await self.ask(f"GET {self.path} HTTP/1.1\r\n{self.head}\r\n".encode(), 10)
            if answer[9:12] in (b"200", b"400"):  # a login answers once only
                return time.perf_counter() - started
        return None

    async def ask(self, request: bytes, seconds: float) -> bytes:
        """Return the head of the answer."""
        async with self.connected() as (reader, writer):
            writer.write(request)
            try:
                async with asyncio.timeout(seconds):
                    return await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError as error:
                return error.partial

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()


@contextmanager
def serving(name: str) -> Iterator[Server]:
    """Start a server, and end it after the block."""
    with tempfile.TemporaryDirectory() as folder, Path(folder, "log").open("w+") as log:
        command = [sys.executable, str(Path(__file__).with_name("served.py")), name, str(Path(folder, "results"))]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process:
            try:
                assert process.stdout is not None
                told: dict[str, Any] = json.loads(process.stdout.readline())
                yield Server(name, process, told["port"], told["path"], told["headers"], Path(folder, "log"))
            finally:
                process.terminate()


def request(chance: random.Random, server: Server) -> bytes:
    """Make up one request, or several in a row."""
    if chance.random() < 0.1:
        return chance.choice(WHOLE).encode("latin-1", "replace")
    target = server.path if chance.random() < 0.2 else chance.choice(TARGETS)
    headers = [chance.choice(HEADERS) for _ in range(chance.randrange(4))]
    version = chance.choice(["HTTP/1.1"] * 6 + ["HTTP/1.0"])
    first = f"{chance.choice(METHODS)} {target} {version}\r\n"
    body = chance.choice(BODIES).encode("utf-8", "surrogatepass")
    if body and chance.random() < 0.6:
        headers.append(f"Content-Length: {len(body)}")
    named = server.head if chance.random() < 0.8 else ""
    lines = "".join(f"{line}\r\n" for line in headers)
    made = f"{first}{named}{lines}\r\n".encode("utf-8", "surrogatepass" if chance.random() < 0.5 else "replace") + body
    if chance.random() < 0.1:
        made = made * chance.randrange(2, 30)
    if chance.random() < 0.2:  # damage
        place = chance.randrange(len(made))
        made = made[:place] + chance.randbytes(chance.randrange(3)) + made[place + chance.randrange(9) :]
    return made


async def fuzz(server: Server, count: int, seed: int) -> None:
    """Send requests, and count the statuses of the answers."""
    chance, free = random.Random(seed), asyncio.Semaphore(_AT_ONCE)

    async def one(sent: bytes) -> None:
        async with free:
            answer = b""
            with suppress(OSError, TimeoutError, asyncio.LimitOverrunError):
                answer = await server.ask(sent, _ANSWER_SECONDS)
        status = int(answer[9:12]) if answer[9:12].isdigit() else 0
        server.statuses[status] += 1
        if status >= 500:
            server.server_errors.append(sent[:300])

    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            await free.acquire()
            free.release()
            group.create_task(one(request(chance, server)))


def half_requests(server: Server) -> list[bytes]:
    """Return beginnings of requests that leave the server waiting, each in another place."""
    named = f"Host: 127.0.0.1:{server.port}\r\n" if server.name == "meter" else server.head  # an agent may harm itself
    head = f"POST {server.path} HTTP/1.1\r\n{named}"
    page = "/runs/one" if server.name == "viewer" else server.path
    return [
        b"",
        b"GET /",
        head.encode(),
        f"{head}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{".encode(),
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        f"GET {page} HTTP/1.1\r\n{named}\r\n".encode() * 8,  # of which nothing is read
        b"\x16\x03\x01\x02\x00",
    ]


async def hold_half_open(server: Server, count: int) -> float | None:
    """Keep connections half-open, and return the longest of ten requests meanwhile, or None if one was not served."""
    kinds = half_requests(server)
    held: list[asyncio.StreamWriter] = []
    try:
        for number in range(count):
            with suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", server.port)
                held.append(writer)
                writer.write(kinds[number % len(kinds)])
        took = [await server.healthy() for _ in range(10)]
        return None if None in took else max(each for each in took if each is not None)
    finally:
        for writer in held:
            writer.transport.abort()


async def median_milliseconds(server: Server) -> float:
    """Return the median time of refused requests on one connection that is kept."""
    took = []
    async with server.connected() as (reader, writer):
        for _ in range(50):
            started = time.perf_counter()
            writer.write(f"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode())
            lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
            length = next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), None)
            await (reader.readuntil(b"\r\n0\r\n\r\n") if length is None else reader.readexactly(length))
            took.append(time.perf_counter() - started)
            if b"connection: close" in lines:
                break
    return statistics.median(took) * 1000


async def attack(server: Server, count: int, half_open: int) -> tuple[dict[str, float], list[str]]:
    """Return figures, and what went wrong."""
    wrong: list[str] = []
    await fuzz(server, min(count, 500), seed=0)  # what is loaded and cached once
    memory, descriptors = server.resident(), server.descriptors()
    await fuzz(server, count, seed=1)
    longest = await hold_half_open(server, half_open)
    if longest is None:
        wrong.append(f"was not reached beside {half_open} half-open connections")
    for _ in range(100):
        if server.descriptors() <= descriptors + 2:
            break
        await asyncio.sleep(0.1)
    else:
        wrong.append(f"keeps {server.descriptors() - descriptors} descriptors")
    growth = server.resident() - memory
    if growth > _GROWTH_BYTES:
        wrong.append(f"has grown by {growth >> 20} MiB")
    if server.process.poll() is not None or await server.healthy() is None:
        wrong.append("no longer serves")
    if errors := server.server_errors:
        wrong.append(f"answered {len(errors)} times with 5xx, such as to {errors[0]!r}")
    if said := server.log.read_text("utf-8", "replace").strip():
        wrong.append(f"printed {said[-500:]}")
    figures = {
        "requests": count,
        "5xx": len(server.server_errors),
        "growth-mib": growth / (1 << 20),
        "longest-beside-half-open-ms": (longest or 0) * 1000,
        "median-ms": await median_milliseconds(server),
    }
    return figures, wrong


def run(*, long: bool, names: tuple[str, ...] = SERVERS) -> tuple[dict[str, float], list[str]]:
    """Attack each server, and return figures by name, and a sentence for each failure."""
    figures: dict[str, float] = {}
    failures: list[str] = []
    for name in names:
        with serving(name) as server:
            found, wrong = asyncio.run(attack(server, 20_000 if long else 300, HALF_OPEN))
        figures |= {f"{name}-{key}": round(value, 1) for key, value in found.items()}
        failures += [f"{name} {sentence}" for sentence in wrong]
    figures["server-failures"] = len(failures)
    return figures, failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="20,000 requests to each server, not 300")
    parser.add_argument("names", nargs="*", metavar="SERVER", default=SERVERS, help=", ".join(SERVERS))
    options = parser.parse_args()
    figures, failures = run(long=options.long, names=tuple(options.names))
    print(*(f"{name:40} {value:12,.1f}" for name, value in figures.items()), sep="\n")
    print(*(f"✗ {failure}" for failure in failures), sep="\n")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
