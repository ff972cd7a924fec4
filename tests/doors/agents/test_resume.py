"""A run that is killed half way: what is finished is kept, only the rest is done, and all that was spent is booked."""

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from bakeoff.record import Record
from bakeoff.storage.journal import SpentTokens
from bakeoff.storage.run_folder import RunFolder

from .small_tracks import Files, agent_file, write_track

pytestmark = pytest.mark.full

EXERCISES, ROUNDS, AGENTS, CALLS, JOBS = 20, 2, 2, 2, 2
TRIALS = EXERCISES * ROUNDS * AGENTS
INPUT, OUTPUT = 10, 5

# Every language with a command of its own is an exercise; a test that is a line of shell costs next to nothing.
NUMBER: Files = {
    ".docs/instructions.md": "Write down the number.\n",
    ".meta/config.json": json.dumps(
        {"files": {"solution": ["number.txt"], "test": ["number_test.sh"], "example": [".meta/number.txt"]}}
    ),
    ".meta/number.txt": "42\n",
    "number.txt": "0\n",
    "number_test.sh": 'test "$(cat number.txt)" = 42\n',
}
ASKING = """\
import http.client, json, os, sys
_, _, host, base = os.environ["OPENAI_BASE_URL"].split("/", 3)
headers = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"}
for said in ("almost", sys.argv[1]):
    connection = http.client.HTTPConnection(host)
    asked = json.dumps({"model": "gpt-4o", "messages": []})
    connection.request("POST", "/" + base + "/chat/completions", asked, headers)
    assert connection.getresponse().read()
    open("number.txt", "w").write(said)
"""
METERED = {
    "defaultProvider": "openai",
    "require": ["OPENAI_API_KEY"],
    "meter": {"openai": {"env": {"OPENAI_BASE_URL": "{meterUrl}", "OPENAI_API_KEY": "{meterToken}"}}},
}


@dataclass
class HaltingProvider:
    """Answers so many requests; all that come later are held until it is told to drop them and go on."""

    most: int
    answered: int = 0
    held: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    going_on: threading.Event = field(default_factory=threading.Event)
    turn: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                if provider.may_answer():
                    usage = {"prompt_tokens": INPUT, "completion_tokens": OUTPUT}
                    choice = {"index": 0, "message": {"role": "assistant", "content": "42"}, "finish_reason": "stop"}
                    body = json.dumps({"model": "gpt-4o", "choices": [choice], "usage": usage}).encode()
                    self.send_response(200)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                else:
                    provider.held.release()
                    provider.going_on.wait()
                    self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:
                """Nobody reads it."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)

    def may_answer(self) -> bool:
        with self.turn:
            allowed = self.answered < self.most or self.going_on.is_set()
            self.answered += allowed
        return allowed

    def __enter__(self) -> "HaltingProvider":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.going_on.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"


def records_in(folder: Path) -> list[Record]:
    return [entry for entry in RunFolder(folder).entries() if isinstance(entry, Record)]


def requests_by_trial(folder: Path) -> Counter[str]:
    booked: Counter[str] = Counter()
    for entry in RunFolder(folder).entries():
        if isinstance(entry, SpentTokens):
            booked[entry.trial] += entry.usage.requests
    return booked


def words_of_run(folder: Path) -> list[str]:
    exercises = {f"number_{place:02}": NUMBER for place in range(EXERCISES)}
    write_track(folder / "track", slug="numbers", **exercises)
    words = ["agents", "run", "--exercises", "track", "--test-command", "sh number_test.sh", "--no-open"]
    words += ["--rounds", str(ROUNDS), "--jobs", str(JOBS)]
    for name, number in (("good", "42"), ("poor", "41")):
        command = [sys.executable, "-I", "-S", "-c", ASKING, number]
        file = agent_file(folder, name, "", **METERED, command=command)
        words += ["--agent", name, "--agent-file", str(file)]
    return words


@pytest.mark.timeout(280)
def test_a_run_that_was_killed_goes_on_without_losing_or_repeating_a_trial(tmp_path: Path) -> None:
    bakeoff = [sys.executable, "-m", "bakeoff"]
    words = words_of_run(tmp_path)
    most = TRIALS * CALLS // 2 + 1  # an odd number: one of the trials that are killed has had its first answer
    with HaltingProvider(most) as provider:
        env = {**os.environ, "OPENAI_API_KEY": "sk-canary-77", "OPENAI_BASE_URL": provider.url, "NO_COLOR": "1"}
        with subprocess.Popen([*bakeoff, *words], cwd=tmp_path, env=env, stdin=subprocess.DEVNULL) as process:
            for _ in range(JOBS):
                while not provider.held.acquire(timeout=1):
                    assert process.poll() is None
            [folder] = (tmp_path / "results" / "runs").iterdir()
            while requests_by_trial(folder).total() < most:  # a line of the journal is written by a thread of its own
                assert process.poll() is None
            process.kill()
        before, booked = records_in(folder), requests_by_trial(folder)
        provider.going_on.set()
        done = subprocess.run(
            [*bakeoff, "resume", "--json"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
    assert done.returncode == 1, done.stderr
    after = records_in(folder)
    assert len(before) == most // CALLS
    assert after[: len(before)] == before
    assert len(after) == len({record.attempt_key for record in after}) == TRIALS
    assert booked.total() == most  # the killed trials' answers among them
    everything = RunFolder(folder).spent()
    assert everything.requests == provider.answered == TRIALS * CALLS + most % CALLS
    assert (everything.input, everything.output) == (INPUT * provider.answered, OUTPUT * provider.answered)
    spent = Counter(record.spent.requests for record in after)
    assert spent == {CALLS: TRIALS - 1, CALLS + 1: 1}  # the record of a trial has what was spent when it was killed
    told = json.loads(done.stdout)["summary"]["subjects"]
    assert {each["subject"]: each["score"] for each in told} == {"good": 1.0, "poor": 0.0}
