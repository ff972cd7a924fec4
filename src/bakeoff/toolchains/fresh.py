"""One candidate through a whole `vitest run`: for suites that mock modules or keep snapshots, and to compare with."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from bakeoff.frozen import Frozen
from bakeoff.limits import Limits
from bakeoff.protocols import Command, Completed, Sandbox
from bakeoff.sandbox import open_place, put_files
from bakeoff.toolchains.canary import Canary, plain
from bakeoff.toolchains.outcome import RunStop, TestOutcome, TestRun

LIMITS = Limits(memory_mb=2048, processes=256, disk_mb=256, output_kb=4096)
_TEST_FILE = re.compile(r"test\.(?:svelte\.)?[jt]s")
_STOPS: dict[str, RunStop] = {"timeout": "timeout", "memory": "memory", "output": "output"}


class _Report(Frozen):
    tests: tuple[TestOutcome, ...]
    error: str


async def run_fresh(sandbox: Sandbox, toolchain: Path, files: Mapping[str, str], *, seconds: float) -> TestRun:
    canary = Canary()
    with_canary = {name: _add(canary, text) if _TEST_FILE.fullmatch(name) else text for name, text in files.items()}
    async with open_place() as place:
        put_files(place, {name: text.encode() for name, text in with_canary.items()})
        (place.work / "node_modules").symlink_to(toolchain / "node_modules")
        argv = ("node", str(toolchain / "fresh.mjs"))
        command = Command(argv, place, seconds, LIMITS, stdin=canary.proof.encode(), readable=(toolchain,))
        done = await sandbox.run(command)
    return _judged(canary, done)


def _add(canary: Canary, source: str) -> str:
    """First or last; imports are hoisted wherever they stand."""
    only = ".only" if re.search(r"\.only\b", source) else ""
    name, word, other = (json.dumps(text) for text in (canary.name, canary.word, f"{canary.word}!"))
    test = f"import {{ test as t_{canary.word}, expect as e_{canary.word} }} from 'vitest';"
    test += f"t_{canary.word}{only}({name}, () => {{ e_{canary.word}({word}).toBe({other}); }});"
    return f"{test}\n{source}" if canary.place < 0.5 else f"{source}\n{test}\n"


def _judged(canary: Canary, done: Completed) -> TestRun:
    if done.stop != "exited":
        stop = _STOPS.get(done.stop, "crashed")
        return TestRun(error=f"ended by the {done.stop} limit", stop=stop, seconds=done.seconds)
    _, found, text = done.stdout.decode(errors="replace").partition(canary.proof)
    if not found:
        words = done.stderr.decode(errors="replace").strip()[-1000:]
        return TestRun(error=f"Vitest ended without a result: {words}", stop="crashed", seconds=done.seconds)
    try:
        report = _Report.model_validate_json(text)
    except ValidationError:
        return TestRun(error="what came back is no result", seconds=done.seconds, tampered="its result is not Vitest's")
    tests = [test.model_copy(update={"message": plain(test.message)}) for test in report.tests]
    return canary.judge(tests, error=plain(report.error) or None, seconds=done.seconds)
