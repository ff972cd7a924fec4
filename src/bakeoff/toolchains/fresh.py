"""One candidate through a whole `vitest run`: for suites that mock modules or keep snapshots, and to compare with."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from bakeoff._kernel.model import FrozenModel
from bakeoff.plan import Limits
from bakeoff.protocols import Command, Completed, Sandbox
from bakeoff.sandbox import open_place, put_files
from bakeoff.toolchains.canary import Canary, named_like, plain, well_formed
from bakeoff.toolchains.outcome import RunStop, TestOutcome, TestRun

LIMITS = Limits(memory_mb=2048, processes=256, disk_mb=256, output_kb=4096)
_TEST_FILE = re.compile(r"test\.(?:svelte\.)?[jt]s")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ONLY = re.compile(r"\b(?:test|it|describe|suite)(?:\s*\.\s*\w+)*\s*\.\s*only\b")
_STOPS: dict[str, RunStop] = {"timeout": "timeout", "memory": "memory", "output": "output"}


# On one line, so that the suite's own lines keep their numbers but for one. Every check must fail.
_CANARY = (
    "import {{ test as t_{id}, expect as e_{id}, vi as v_{id} }} from 'vitest'; t_{id}{only}({name}, () => {{"
    " const lone = document.createElement('p'); lone.textContent = {word}; let last; for (const check of ["
    " () => e_{id}(lone).toBeInTheDocument(), () => e_{id}(lone).toHaveTextContent({other}),"
    " () => e_{id}(v_{id}.fn()).toHaveBeenCalled(), () => e_{id}([{word}]).toEqual([{other}]),"
    " () => e_{id}({word}).toContain({other}), () => e_{id}(null).toBeTruthy(),"
    " () => e_{id}(lone).not.toHaveTextContent({word}), () => e_{id}({word}).toBe({other}),"
    " ]) {{ try {{ check(); }} catch (error) {{ last = error; continue; }} return; }} throw last; }});"
)


class _Report(FrozenModel):
    tests: tuple[TestOutcome, ...]
    error: str


async def run_fresh(
    sandbox: Sandbox, toolchain: Path, files: Mapping[str, str], *, seconds: float, test: str | None = None
) -> TestRun:
    entry = test or next((name for name in files if _TEST_FILE.fullmatch(name)), None)
    if entry is None or entry not in files:
        return TestRun(error=f"there is no {test or 'test.ts or test.svelte.ts'}")
    canary = Canary(name=named_like(files[entry]))
    with_canary = {**files, entry: _add(canary, files[entry])}
    job = json.dumps({"proof": canary.proof, "test": entry}).encode()
    async with open_place() as place:
        put_files(place, {name: text.encode() for name, text in with_canary.items()})
        (place.work / "node_modules").symlink_to(toolchain / "node_modules")
        argv = ("node", str(toolchain / "fresh.mjs"))
        command = Command(argv, place, seconds, LIMITS, stdin=job, readable=(toolchain,))
        done = await sandbox.run(command)
    return _judged(canary, done)


def _add(canary: Canary, source: str) -> str:
    """First or last; imports are hoisted wherever they stand."""
    only = ".only" if _ONLY.search(_COMMENT.sub("", source)) else ""
    given = {"name": canary.name, "word": canary.word, "other": f"{canary.word}!"}
    test = _CANARY.format(id=canary.word, only=only, **{key: json.dumps(text) for key, text in given.items()})
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
        report = _Report.model_validate_json(well_formed(text))
    except ValidationError:
        return TestRun(error="what came back is no result", seconds=done.seconds, tampered="its result is not Vitest's")
    tests = [test.model_copy(update={"message": plain(test.message)}) for test in report.tests]
    return canary.judge(tests, error=plain(report.error) or None, seconds=done.seconds)
