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
from bakeoff.toolchains import ExerciseToolchain, OpenExercises, TestRun
from bakeoff.toolchains.outcome import RunStop
from bakeoff.toolchains.tracks import PYTHON, TYPESCRIPT

from .conftest import SECONDS, processes_called

pytestmark = pytest.mark.asyncio(loop_scope="module")
LIMIT = 3.0
TEST = """import { expect, it, xit } from '@jest/globals';
import { double, list } from './double.ts';
it('doubles', () => { expect(double(4)).toBe(8); });
xit('lists', () => { expect(list()).toEqual([1, { a: 2 }]); });
"""
RIGHT = "export const double = (x: number) => x * 2;\nexport const list = (): unknown => [1, { a: 2 }];\n"
WRONG = "export const double = (x: number) => x * 7;\nexport const list = (): unknown => 'nothing';\n"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def typescript(needs_program: Callable[[str], str]) -> AsyncIterator[OpenExercises]:
    needs_program("node")
    needs_program("npm")
    async with ExerciseToolchain(lambda: choose_sandbox("auto"), TYPESCRIPT, slots=2, say=print).open() as opened:
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
    """`code` goes before a solution, a wrong one unless the attack is that it works at all."""

    code: str
    says: str = ""
    stop: RunStop = "finished"
    base: str = WRONG
    seconds: float = SECONDS


MOMENT = """const is = Object.is;
const equal = (): any => { Object.is = () => { Object.is = is; return true; }; return 'garbage'; };
export const double = (x: number) => equal();
export const list = () => [1, { a: 2 }];
"""
MATCHES_ALL = "{ $$typeof: Symbol.for('jest.asymmetricMatcher'), asymmetricMatch: () => true }"
ATTACKS = {
    "loops": Attack("while (true) {}", stop="timeout", seconds=LIMIT),
    "never ends its microtasks": Attack(
        "const again = (): Promise<void> => Promise.resolve().then(again); again();", stop="timeout", seconds=LIMIT
    ),
    "exits with 0": Attack("process.exit(0);", "process.exit"),
    "exits without asking": Attack("(process as any).reallyExit(0);", "reallyExit"),
    "kills its parent": Attack("process.kill(process.ppid, 'SIGKILL');", "kill", base=RIGHT),
    "imports the file system": Attack("import fs from 'node:fs'; fs.writeFileSync('x', '');", "cannot import node:fs"),
    "starts a process": Attack(
        "import { spawn } from 'child_process'; spawn('sleep', ['4321'], { detached: true });",
        "cannot import child_pro",
    ),
    "imports the assertions": Attack("import { expect } from '@jest/globals'; expect.extend({});", "cannot import"),
    "imports the runner": Attack("require('jest-circus').getState();", "cannot import jest-circus"),
    "imports later": Attack("void import('node:fs').then((fs) => fs.rmSync('x'));", "cannot import node:fs"),
    "imports through a function": Attack(
        "void new Function('return import(\"node:fs\")')();", "dynamic import callback", base=RIGHT
    ),
    "asks through a function": Attack("new Function('return require')()('fs');", "require"),
    "asks for a binding": Attack("(process as any).binding('fs').open;", "binding"),
    "asks for a built-in module": Attack("(process as any).getBuiltinModule('node:fs').rmSync;", "getBuiltinModule"),
    "walks to another package": Attack("require('../node_modules/expect');", "Cannot find module"),
    "takes Jest's matchers from their symbol": Attack(
        "(globalThis as any)[Symbol.for('$$jest-matchers-object')].matchers.toBe = () => ({ pass: true });", "matchers"
    ),
    "looks for the runner's state": Attack(
        "for (const s of Object.getOwnPropertySymbols(globalThis))"
        " { const v = (globalThis as any)[s]; if (v?.rootDescribeBlock) v.rootDescribeBlock.children = []; }",
    ),
    "replaces expect": Attack("(globalThis as any).expect = () => ({ toBe() {}, toEqual() {} });"),
    "replaces the test function": Attack("(globalThis as any).it = (globalThis as any).test = () => {};"),
    "makes all things equal": Attack("Object.is = () => true;", "read only property 'is'"),
    "makes things equal for a moment": Attack("", "read only property 'is'", base=MOMENT),
    "adds a matcher to every array": Attack(
        "(Array.prototype as any).asymmetricMatch = () => true;", "Cannot add property asymmetricMatch", base=RIGHT
    ),
    "adds to every object": Attack(
        "(Object.prototype as any).status = 'done';", "Cannot add property status", base=RIGHT
    ),
    "watches every list": Attack(
        "Object.defineProperty(Array.prototype, '0', { set(v) { if (v?.fn) v.fn = () => {}; }, configurable: true });",
        "Cannot define property 0",
    ),
    "returns what equals everything": Attack(
        "", base=f"export const double = (x: number) => x * 2;\nexport const list = () => ({MATCHES_ALL});"
    ),
    "stops the clock": Attack("Date.now = () => 0;", "read only property 'now'", base=RIGHT),
    "stops the precise clock": Attack("(performance as any).now = () => 0;", "read only property 'now'", base=RIGHT),
    "has a clock of its own": Attack(
        "globalThis.Date = class extends Date {} as any;", "read only property 'Date'", base=RIGHT
    ),
    "replaces promises": Attack(
        "globalThis.Promise = class extends Promise<any> {} as any;", "read only property 'Promise'", base=RIGHT
    ),
    "rewrites results on their way": Attack(
        "Object.defineProperty(Array.prototype, 'toJSON', { value: () => 'passed' });", "Cannot define property toJSON"
    ),
    "reads functions from the stack": Attack(
        "Error.prepareStackTrace = (_e, sites) => { for (const site of sites) site.getFunction(); return ''; };",
        "read only property 'prepareStackTrace'",
    ),
    "leaves a rejection": Attack("void Promise.reject(new Error('left behind'));", "left behind", base=RIGHT),
    "throws later": Attack("setTimeout(() => { throw new Error('too late'); });", "too late", base=RIGHT),
    "fills the heap": Attack("const kept = []; for (;;) kept.push(new Array(1e5).fill(1.5));", stop="memory"),
    "hands in a test of its own": Attack("export const it = 1; describe('x', () => {});", "describe is not defined"),
}


def all_text(run: TestRun) -> str:
    return "\n".join([run.error or "", run.tampered or "", *(test.message for test in run.tests)])


@pytest.mark.parametrize("name", ATTACKS)
async def test_an_attack_fails_in_its_limit_and_alone(typescript: OpenExercises, name: str) -> None:
    attack = ATTACKS[name]
    hostile, right = await asyncio.gather(
        solve(typescript, f"{attack.code}\n{attack.base}", seconds=attack.seconds), solve(typescript, RIGHT)
    )
    assert not hostile.ok, hostile
    assert hostile.stop == attack.stop, hostile
    assert attack.says in all_text(hostile), hostile
    assert right.ok, right


# The sandbox must hold where the worker's own doors do not: a test that imports these is run by a whole Jest.


async def told(opened: OpenExercises, body: str) -> list[object]:
    test = "import fs from 'node:fs'; import { spawn } from 'node:child_process';\n"
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
      for (const pid of fs.readdirSync('/proc')) if (/^\\d+$/.test(pid)) look(`/proc/${{pid}}/environ`)
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
    assert {str(each) for each in found} <= {"EROFS", "EACCES", "EPERM"}


async def test_a_process_left_behind_ends_with_its_candidate(typescript: OpenExercises) -> None:
    body = "const child = spawn('sleep', ['4322'], { detached: true, stdio: 'ignore' }); found.push(child.pid)"
    assert isinstance((await told(typescript, body))[0], int)
    while sleeping := processes_called("sleep\x004322"):
        await asyncio.sleep(0.02)
    assert sleeping == []


WHOLE = "jest.mock('./other', () => ({}), { virtual: true });\n"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("process.exit(0);", "process.exit"),
        ("import fs from 'node:fs'; fs.writeSync(1, '{\"tests\": []}');", "cannot import node:fs"),
        ("import { expect } from 'expect'; expect.extend({});", "cannot import expect"),
        ("import { execSync } from 'child_process'; execSync('true');", "cannot import child_process"),
        ("expect.extend({ toEqual: () => ({ pass: true, message: () => '' }) });", "expect is not defined"),
        ("jest.mock('./double.test');", "cannot import @jest/globals"),
        ("module.parent!.require('@jest/globals');", "of null"),
        ("(require as any).main.require('@jest/globals');", "of undefined"),
        ("Object.values((require as any).cache).find(Boolean).require('@jest/globals');", "of undefined"),
        ("require(`${process.cwd()}/../../usr/x`);", "cannot import"),
        ("(globalThis as any)[Symbol.for('$$jest-matchers-object')].matchers;", "matchers"),
        (
            "throw Error(`${Object.getOwnPropertySymbols(globalThis).some((s) => (globalThis as any)[s]?.seed)}`);",
            "false",
        ),
        ("Object.is = () => true;", "read only property 'is'"),
        ("(process as any).mainModule.require('fs');", "reading 'require'"),
        ("new (require as any).constructor('return process')().getBuiltinModule('fs');", "getBuiltinModule"),
    ],
)
async def test_a_whole_jest_is_no_way_around(typescript: OpenExercises, code: str, says: str) -> None:
    test = TEST.replace("expect, it, xit", "expect, it, jest, xit") + WHOLE
    assert (await solve(typescript, RIGHT, test=test)).ok
    run = await solve(typescript, f"{code}\n{RIGHT}", test=test)
    assert not run.ok, run
    assert says in all_text(run)


WHOLE_FORGERIES = {
    "equals everything": f"export const double = (x: number) => x * 2; export const list = () => ({MATCHES_ALL});",
    "equal for a moment": MOMENT,
    "matchers of its own": "(globalThis as any).expect?.extend({ toEqual: () => ({ pass: true, message: () => '' }) });"
    " export const double = (x: number) => x * 2; export const list = () => 0;",
}


@pytest.mark.parametrize("name", WHOLE_FORGERIES)
async def test_a_whole_jest_believes_no_forgery(typescript: OpenExercises, name: str) -> None:
    test = TEST.replace("import { expect, it, xit } from '@jest/globals';\n", "") + WHOLE
    assert (await solve(typescript, RIGHT, test=test)).ok
    assert not (await solve(typescript, WHOLE_FORGERIES[name], test=test)).ok


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
