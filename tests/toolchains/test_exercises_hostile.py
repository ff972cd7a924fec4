"""Solutions of exercises that attack: each fails, within its limit, and alone."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from bakeoff.sandbox import choose_sandbox
from bakeoff.toolchains.exercises import ExerciseToolchain, OpenExercises
from bakeoff.toolchains.outcome import RunStop, TestRun
from bakeoff.toolchains.tracks import PYTHON, TYPESCRIPT

from .conftest import SECONDS

pytestmark = [pytest.mark.full, pytest.mark.asyncio(loop_scope="module")]

LIMIT = 3.0
TEST = """import { expect, it, xit } from '@jest/globals';
import { double, list } from './double.ts';
it('doubles', () => { expect(double(4)).toBe(8); });
xit('lists', () => { expect(list()).toEqual([1, { a: 2 }]); });
"""
RIGHT = "export const double = (x: number) => x * 2;\nexport const list = (): unknown => [1, { a: 2 }];\n"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def typescript(needs_program: Callable[[str], str]) -> AsyncIterator[OpenExercises]:
    needs_program("node")
    needs_program("npm")
    async with ExerciseToolchain(lambda: choose_sandbox("auto"), TYPESCRIPT, slots=2).open() as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def python() -> AsyncIterator[OpenExercises]:
    async with ExerciseToolchain(lambda: choose_sandbox("auto"), PYTHON).open() as opened:
        yield opened


async def solve(opened: OpenExercises, solution: str, *, seconds: float = SECONDS, test: str = TEST) -> TestRun:
    files = {"double.ts": solution, "double.test.ts": test}
    return await opened.run(files, tests=["double.test.ts"], seconds=seconds)


@dataclass(frozen=True, slots=True)
class Attack:
    """`code` goes before a right solution."""

    code: str
    says: str = ""
    stop: RunStop = "finished"
    seconds: float = SECONDS


ATTACKS = {
    "loops": Attack("while (true) {}", stop="timeout", seconds=LIMIT),
    "never ends its microtasks": Attack(
        "const again = (): Promise<void> => Promise.resolve().then(again); again();", stop="timeout", seconds=LIMIT
    ),
    "exits with 0": Attack("process.exit(0);", "process.exit"),
    "exits without asking": Attack("(process as any).reallyExit(0);", "ended with exit code 0", stop="crashed"),
    "kills its parent": Attack("process.kill(process.ppid, 'SIGKILL');", "sends no signals"),
    "starts a process": Attack(
        "(process as any).getBuiltinModule('node:child_process').spawnSync('true');", "restricted"
    ),
    "starts a thread": Attack(
        "new ((process as any).getBuiltinModule('node:worker_threads').Worker)('1', { eval: true });", "restricted"
    ),
    "asks for a binding": Attack("(process as any).binding('fs').open;", "binding"),
    "walks to another package": Attack("require('../node_modules/expect');", "Cannot find module"),
    "imports what is not there": Attack("import 'no-such-package';", "cannot import no-such-package"),
    "leaves a rejection": Attack("void Promise.reject(new Error('left behind'));", "left behind"),
    "throws later": Attack("setTimeout(() => { throw new Error('too late'); });", "too late"),
    "fills the heap": Attack("const kept = []; for (;;) kept.push(new Array(1e5).fill(1.5));", stop="memory"),
}


def all_text(run: TestRun) -> str:
    return "\n".join([run.error or "", run.tampered or "", *(test.message for test in run.tests)])


@pytest.mark.parametrize("name", ATTACKS)
async def test_an_attack_fails_in_its_limit_and_alone(typescript: OpenExercises, name: str) -> None:
    attack = ATTACKS[name]
    hostile, right = await asyncio.gather(
        solve(typescript, f"{attack.code}\n{RIGHT}", seconds=attack.seconds), solve(typescript, RIGHT)
    )
    assert not hostile.ok, hostile
    assert hostile.stop == attack.stop, hostile
    assert attack.says in all_text(hostile), hostile
    assert right.ok, right


# What a whole Jest can reach: these tests import the file system.


async def told(opened: OpenExercises, body: str) -> list[object]:
    test = "import fs from 'node:fs'; import { spawnSync } from 'node:child_process';\n"
    test += f"it('spy', () => {{ const found: unknown[] = []; {body}; throw new Error(JSON.stringify(found)); }});"
    run = await solve(opened, RIGHT, test=test)
    assert [each.name for each in run.tests] == ["spy"], run
    found: list[object] = json.loads(run.tests[0].message)
    return found


async def test_no_variable_and_no_home_of_the_host_is_seen(
    typescript: OpenExercises, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".credentials").write_text("sk-planted")
    monkeypatch.setenv("PLANTED_KEY", "sk-planted")
    monkeypatch.setenv("HOME", str(tmp_path))
    body = f"""
      const look = (path: string) => {{
        try {{ found.push(fs.readFileSync(path, 'utf8')); }} catch {{ found.push('refused'); }}
      }};
      found.push(Object.entries(process.env).join());
      look(`${{process.env.HOME}}/.credentials`);
      look({json.dumps(str(tmp_path / ".credentials"))});
      for (const pid of ['self', process.pid, process.ppid]) look(`/proc/${{pid}}/environ`)
    """
    found = json.dumps(await told(typescript, body))
    assert "HOME" in found
    assert "sk-planted" not in found
    assert "PLANTED_KEY" not in found


async def test_the_packages_cannot_be_written(typescript: OpenExercises) -> None:
    if os.geteuid() != 0 and choose_sandbox("auto").name == "process":
        pytest.skip("without root the process sandbox runs a candidate as you: apt-get install bubblewrap")
    body = """
      const expecting = require.resolve('expect');
      for (const path of [expecting, `${expecting}.new`]) {
        try { fs.writeFileSync(path, ''); found.push('done'); } catch (e) { found.push((e as any).code); }
      }
    """
    found = await told(typescript, body)
    assert len(found) == 2
    assert set(found) == {"ERR_ACCESS_DENIED"}


async def test_a_whole_jest_starts_no_process(typescript: OpenExercises) -> None:
    body = "try { spawnSync('true'); } catch (e) { found.push((e as any).code); }"
    assert await told(typescript, body) == ["ERR_ACCESS_DENIED"]


WHOLE = "jest.mock('./other', () => ({}), { virtual: true });\n"


@pytest.mark.parametrize(
    "more",
    [
        "import fs from 'node:fs'; fs.writeFileSync('x', 'y'); fs.readFileSync('double.test.ts');",
        "import { equals } from '@jest/expect-utils'; void equals;",
        "import { inspect } from 'node:util'; void inspect;",
        "(globalThis as any).expect(1).toBe(1);",
    ],
)
async def test_what_a_plain_jest_lets_a_solution_do_it_may_do_here(typescript: OpenExercises, more: str) -> None:
    run = await solve(typescript, f"{more}\n{RIGHT}")
    assert run.ok, run


async def test_a_test_may_replace_what_is_built_in(typescript: OpenExercises) -> None:
    test = f"{TEST.replace('expect, it', 'expect, it, jest')}it('counts', () => {{\n"
    test += "  const spy = jest.spyOn(Array.prototype, 'map'); double(2); expect(spy).not.toHaveBeenCalled();\n"
    test += "  spy.mockRestore(); });\n"
    run = await solve(typescript, RIGHT, test=test)
    assert run.ok, run
    assert len(run.tests) == 3


async def test_a_whole_jest_ends_at_its_limit(typescript: OpenExercises) -> None:
    test = TEST.replace("expect, it, xit", "expect, it, jest, xit") + WHOLE
    assert (await solve(typescript, "while (true) {}", test=test, seconds=LIMIT)).stop == "timeout"


PYTHON_ATTACKS = {
    "exits": "import os; os._exit(0)",
    "exits politely": "import sys; sys.modules['conftest'] = None; raise SystemExit(0)",
    "prints a result": 'print(\'{"tests": [], "error": "", "changed": null}\'); import os; os._exit(0)',
    "replaces the test": "import pathlib\nfor p in pathlib.Path('.').glob('*'): p.write_text('def test_a(): pass')",
}


@pytest.mark.parametrize("name", PYTHON_ATTACKS)
async def test_an_attack_in_python_fails(python: OpenExercises, name: str) -> None:
    files = {"double_test.py": "from double import double\n\n\ndef test_doubles():\n    assert double(4) == 8\n"}
    files["conftest.py"] = "raise RuntimeError('a conftest.py was loaded')"
    right = files | {"double.py": "def double(x):\n    return x * 2\n"}
    assert (await python.run(right, tests=["double_test.py"], seconds=SECONDS)).ok
    wrong = files | {"double.py": f"{PYTHON_ATTACKS[name]}\ndef double(x):\n    return x * 7\n"}
    assert not (await python.run(wrong, tests=["double_test.py"], seconds=SECONDS)).ok
