"""Warm Jest: as with Vitest, each candidate has a process of its own that was made ready before the candidate came.

A compiler that is kept turns TypeScript into scripts by Babel and runs none of them. A worker has Jest's runner,
assertions, mocks and timers loaded, takes one job and ends. What needs more of Jest than that (mocked modules,
snapshots, further packages) is run by a whole `jest`; the tests alone decide that, never the candidate.
"""

import json
import re
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from bakeoff.plan import Limits
from bakeoff.protocols import Command, Completed, Sandbox
from bakeoff.sandbox import open_place, put_files
from bakeoff.toolchains.canary import Canary
from bakeoff.toolchains.junit import ended_by_limit, last_words
from bakeoff.toolchains.node import WORKER_FLAGS
from bakeoff.toolchains.outcome import TestRun
from bakeoff.toolchains.peers import Peer, PeerGone
from bakeoff.toolchains.vitest import COMPILER_LIMITS, WORKER_LIMITS, OpenVitest, ended_without_answer, judge_answer

_GLOBALS = (
    *("afterAll", "afterEach", "beforeAll", "beforeEach", "describe", "expect", "fdescribe", "fit", "it", "jest"),
    *("test", "xdescribe", "xit", "xtest"),
)
_DECLARED = r"\bimport\b[^;'\"]*\b{0}\b[^;'\"]*\bfrom\b|\b(?:const|let|var|function|class)\s+{0}\b"
# On one line, so that the suite's own lines keep their numbers but for one. Every check must fail.
_CANARY = (
    "import {{ test as t_{id}, expect as e_{id}, jest as j_{id} }} from '@jest/globals'; t_{id}({name}, () => {{"
    " let last; for (const check of ["
    " () => e_{id}([{word}]).toEqual([{other}]), () => e_{id}({{ a: [{word}] }}).toStrictEqual({{ a: [{other}] }}),"
    " () => e_{id}({word}).toContain({other}), () => e_{id}({word}).toMatch({other}),"
    " () => e_{id}([{{ a: {word} }}]).toMatchObject([{{ a: {other} }}]), () => e_{id}(1).toBeGreaterThan(2),"
    " () => e_{id}(1).toBeCloseTo(2), () => e_{id}(null).toBeTruthy(), () => e_{id}({word}).toBeUndefined(),"
    " () => e_{id}(() => 1).toThrow(), () => e_{id}(j_{id}.fn()).toHaveBeenCalled(),"
    " () => e_{id}({word}).not.toBe({word}), () => e_{id}({word}).toBe({other}),"
    " ]) {{ try {{ check(); }} catch (error) {{ last = error; continue; }} return; }} throw last; }});"
)
FRESH_LIMITS = Limits(memory_mb=2048, processes=256, disk_mb=256, output_kb=4096)


class OpenJest(OpenVitest):
    """The same pool of workers, with Jest in them."""

    async def run_file(
        self, files: Mapping[str, str], *, test_file: str, trusted: Collection[str], seconds: float
    ) -> TestRun:
        question = {"files": dict(files), "entry": test_file, "tests": list(trusted)}
        async with self._slots:
            started = time.monotonic()
            try:
                prepared = await self._compile(question, seconds)
            except TimeoutError:
                error = f"the solution was not compiled within {seconds:.0f} s"
                return TestRun(error=error, stop="timeout", seconds=time.monotonic() - started)
            except PeerGone as gone:
                return ended_without_answer(gone.completed, time.monotonic() - started)
            if "fresh" in prepared:
                return await run_whole_jest(self.sandbox, self.toolchain, question, seconds=seconds)
            return await self._test(prepared, seconds)

    def _new_worker(self) -> Peer:
        argv = ("node", *WORKER_FLAGS, str(self.toolchain / "worker.cjs"))
        return Peer(self.sandbox, argv, readable=(self.toolchain,), limits=WORKER_LIMITS)

    def _new_compiler(self) -> Peer:
        argv = ("node", str(self.toolchain / "compiler.cjs"))
        return Peer(self.sandbox, argv, readable=(self.toolchain,), limits=COMPILER_LIMITS)


async def run_whole_jest(sandbox: Sandbox, toolchain: Path, question: Mapping[str, Any], *, seconds: float) -> TestRun:
    """One `jest` for one candidate, with our configuration; of `package.json` and the like it sees nothing."""
    canary = Canary()
    files, entry = question["files"], question["entry"]
    given = {**files, **{name: with_globals(files[name]) for name in question["tests"]}}
    given[entry] = with_canary(canary, given[entry])
    job = json.dumps({"proof": canary.proof, "entry": entry, "tests": question["tests"]}).encode()
    async with open_place() as place:
        put_files(place, {name: text.encode() for name, text in given.items()})
        argv = ("node", str(toolchain / "fresh.cjs"))
        done = await sandbox.run(Command(argv, place, seconds, FRESH_LIMITS, stdin=job, readable=(toolchain,)))
    return _judged_whole(canary, done)


def with_canary(canary: Canary, source: str) -> str:
    """First or last; imports are hoisted wherever they stand."""
    given = {"name": canary.name, "word": canary.word, "other": f"{canary.word}!"}
    test = _CANARY.format(id=canary.word, **{key: json.dumps(text) for key, text in given.items()})
    return f"{test}\n{source}" if canary.place < 0.5 else f"{source}\n{test}\n"


def with_globals(source: str) -> str:
    """What Jest would put among the globals, where a candidate could take hold of it, imported by the test alone."""
    used = [name for name in _GLOBALS if re.search(rf"(?<![\w.$]){name}\b", source)]
    wanted = [name for name in used if not re.search(_DECLARED.format(name), source)]
    return f"import {{ {', '.join(wanted)} }} from '@jest/globals'; {source}" if wanted else source


def _judged_whole(canary: Canary, done: Completed) -> TestRun:
    if done.stop != "exited":
        return ended_by_limit(done)
    _, found, text = done.stdout.decode(errors="replace").partition(canary.proof)
    if not found:
        error = f"Jest ended with exit code {done.exit_code} and no result: {last_words(done)}"
        return TestRun(error=error, stop="crashed", seconds=done.seconds)
    report = json.dumps({"proof": canary.proof}).encode()[:-1] + b", " + text.strip().encode()[1:]
    return judge_answer(canary, report, done.seconds)
