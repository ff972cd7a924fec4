"""Run one of our servers, for `servers.py` to attack: `python served.py NAME FOLDER`.

It prints a JSON object first: its port, the headers of somebody who may ask, and a path that answers 200.
"""

import asyncio
import json
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from bakeoff.plan import Plan

SERVERS = ("viewer", "labels", "meter", "relay")
_SAID = json.dumps({"choices": [{"message": {"role": "assistant", "content": "yes"}}], "usage": {}}).encode()


def tell(port: int, path: str = "/", **headers: str) -> None:
    print(json.dumps({"port": port, "path": path, "headers": headers}), flush=True)


def tell_address(address: str) -> None:
    """Tell the address that a page of ours was opened with."""
    parts = urlsplit(address)
    assert parts.port is not None
    tell(parts.port, Cookie=f"bakeoff-{parts.port}={parse_qs(parts.query)['token'][0]}")


def viewer(folder: Path) -> None:
    from bakeoff.report.view import serve

    run(folder / "runs" / "one")
    serve(folder, 0, tell_address)


def a_plan() -> "Plan":
    from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec

    subjects, scorers = (SubjectSpec(kind="nop", name="n"),), (ScorerSpec(kind="exact"),)
    return Plan(name="one", cases=(Case(id="c", prompt="p"),), subjects=subjects, scorers=scorers)


def run(folder: Path) -> None:
    """Write a run that has just begun."""
    from bakeoff.storage.journal import JournalWriter
    from bakeoff.storage.redaction import Redactor
    from bakeoff.storage.run_folder import RunFolder

    found = RunFolder(folder)
    folder.mkdir(parents=True)
    found.write_plan(a_plan(), Redactor({}))
    with JournalWriter(found.journal_file, Redactor({})) as journal:
        journal.append("start", bakeoff="0.1.0", time=1.0, sandbox="process")


def labels(folder: Path) -> None:
    from bakeoff.report.view import make_label_app, serve_app
    from bakeoff.report.view.label import Labelling

    work = Labelling((), a_plan(), folder / "labels.jsonl", "me")
    # `/finish` would end it, as it should.
    serve_app(lambda port, token, _: make_label_app(work, "me", port, token, lambda: None), 0, tell_address)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer as a provider does, whatever is asked."""
    with suppress(OSError, asyncio.IncompleteReadError):
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")), 0)
        await reader.readexactly(length)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n")
        writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(_SAID), b"" if head.startswith(b"head") else _SAID))
    writer.close()


async def meter(_: Path) -> None:
    from bakeoff._kernel.clock import Clock
    from bakeoff.meter import Meter, Upstream
    from bakeoff.models.providers import BUILT_IN
    from bakeoff.plan import Limits
    from bakeoff.protocols import Task

    def free(usage: object) -> None:
        del usage

    provider = await asyncio.start_server(_answer, "127.0.0.1", 0, limit=1 << 20)
    base = f"http://127.0.0.1:{provider.sockets[0].getsockname()[1]}/v1"
    known = {"case_id": "c", "subject": "s", "trial_id": "t", "round": 0, "seed": 0}
    task = Task(prompt="p", limits=Limits(), spend=free, count=free, resources={}, clock=Clock(36_000.0), **known)  # type: ignore[arg-type]
    upstream = Upstream("openai", BUILT_IN["openai"], base, "sk-canary", "OPENAI_API_KEY", None)
    async with Meter().open() as opened, opened.open_trial(task, [upstream]) as trial:
        tell(trial.port, "/openai/v1/models", authorization=f"Bearer {trial.token}")
        await asyncio.Event().wait()


async def relay(folder: Path) -> None:
    from bakeoff.models.embedded.relay import start_relay

    llama = folder.parent / "llama.sock"
    await asyncio.start_unix_server(_answer, llama, limit=1 << 20)
    listening = socket.create_server(("127.0.0.1", 0), backlog=512)
    start_relay(str(llama), listening, forced_calls=True)
    tell(listening.getsockname()[1], "/v1/models")
    await asyncio.Event().wait()


def main(name: str, folder: str) -> None:
    found: dict[str, Callable[[Path], object]] = {each.__name__: each for each in (viewer, labels, meter, relay)}
    running = found[name](Path(folder))
    if asyncio.iscoroutine(running):
        asyncio.run(running)


if __name__ == "__main__":
    main(*sys.argv[1:])
