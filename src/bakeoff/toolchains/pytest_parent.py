"""Stand between the host and the process that runs the tests. `pytest_runner.py` passes this text to Python.

Only this process has the proof and the output that the host reads, and it never imports anything of a candidate. The
process that does is newly started, not forked, so it holds no copy. When it reports the start of a test, it gets a
random word, and its result counts only with that word and in that order.

A failure before `begun` is written, or before that process is ready, is not the candidate's doing.
"""

import contextlib
import ctypes
import json
import os
import secrets
import subprocess
import sys
from typing import IO, Any

LONGEST_LINE = 256 << 10
MOST_TESTS = 100_000
PR_SET_DUMPABLE = 4


class NotPytests(Exception):
    """A message does not come from the harness."""


def close_to_others() -> None:
    """Keep processes of the same user from reading our memory and opening our descriptors, which Linux allows."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


class Dialogue:
    """Our side of the dialogue between the two processes, one line at a time."""

    def __init__(self, child: "subprocess.Popen[bytes]") -> None:
        assert child.stdin is not None
        assert child.stdout is not None
        self.to: IO[bytes] = child.stdin
        self.since: IO[bytes] = child.stdout

    def say(self, what: object) -> None:
        with contextlib.suppress(BrokenPipeError):  # it has ended, and the next read will show that
            self.to.write(json.dumps(what).encode() + b"\n")
            self.to.flush()

    def read(self) -> dict[str, Any] | None:
        """Read the next message; return None at the end."""
        line = self.since.readline(LONGEST_LINE)
        if not line:
            return None
        try:
            message = json.loads(line)
        except ValueError:
            raise NotPytests from None
        if not isinstance(message, dict):
            raise NotPytests
        return message

    def read_with_new_token(self) -> dict[str, Any] | None:
        word = secrets.token_hex(8)
        self.say(word)
        message = self.read()
        if message is not None and message.pop("word", None) != word:
            raise NotPytests
        return message


def text_in(message: dict[str, Any], name: str) -> str:
    value = message.get(name)
    if not isinstance(value, str):
        raise NotPytests
    return value.encode(errors="replace").decode()


def result_in(message: dict[str, Any], name: str) -> dict[str, Any]:
    state, seconds = message.get("state"), message.get("seconds")
    if state not in ("passed", "failed", "skipped") or not isinstance(seconds, float) or not 0 <= seconds < 1e9:
        raise NotPytests
    return {"name": name, "state": state, "message": text_in(message, "message"), "seconds": seconds}


def follow(dialogue: Dialogue, tests: list[dict[str, Any]]) -> dict[str, str] | None:
    """Collect the result of every test. Return the last message, or None if the process ended before it."""
    while (message := dialogue.read()) is not None:
        if "starts" not in message:
            last = dialogue.read_with_new_token()
            return last and {name: text_in(last, name) for name in ("error", "interrupted", "changed", "odd")}
        name = text_in(message, "starts")
        result = dialogue.read_with_new_token()
        if result is None:
            return None
        tests.append(result_in(result, name))
        if len(tests) > MOST_TESTS:
            raise NotPytests
    return None


def main() -> None:
    close_to_others()
    job = json.load(sys.stdin)
    proof, harness = job.pop("proof"), job.pop("harness")
    sys.stdout.write(job.pop("begun"))  # from here on the candidate may be the cause of any failure
    sys.stdout.flush()
    argv = [sys.executable, "-I", "-B", "-c", harness]
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    dialogue = Dialogue(child)
    dialogue.say(job)
    tests: list[dict[str, Any]] = []
    result: dict[str, Any] = {"tests": tests, "exit_code": None, "forged": False, "ready": False}
    try:
        result["ready"] = dialogue.read() == {"ready": True}
        last = follow(dialogue, tests) if result["ready"] else None
        result |= last if last is not None else {"exit_code": child.wait()}
    except NotPytests:
        result["forged"] = True
    child.kill()
    sys.stdout.write(proof + json.dumps(result))
    sys.stdout.flush()
    os._exit(0)


main()
