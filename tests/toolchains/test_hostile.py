"""Components that attack: each fails, within its limit, and alone."""

import asyncio
import json
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from bakeoff.protocols import Place
from bakeoff.sandbox import open_place
from bakeoff.toolchains import OpenVitest, TestRun
from bakeoff.toolchains.outcome import RunStop

from .candidates import counter
from .conftest import RIGHT, SECONDS, below, processes_called

pytestmark = pytest.mark.asyncio(loop_scope="module")
LIMIT = 3.0


@dataclass(frozen=True, slots=True)
class Attack:
    """`more` goes into the script of a right counter; a run of it must end as told."""

    more: str
    stop: RunStop = "finished"
    says: str = ""
    step: str = "count += 1"
    double: str = "count * 2"
    seconds: float = SECONDS


WRONG = "count * 7"
YES = "new Proxy(function () {}, { get: (t, k) => (k === 'then' ? undefined : YES), apply: () => YES })"
ATTACKS = {
    "loops in its script": Attack("while (true) {}", "timeout", seconds=LIMIT),
    "loops in an effect": Attack("$effect(() => { while (count >= 0) {} });", "timeout", seconds=LIMIT),
    "loops in a handler": Attack("", "timeout", step="while (true) {}", seconds=LIMIT),
    # Slowly enough to meet the limit of time before that of memory, on a slow machine too.
    "never ends its microtasks": Attack(
        "const again = async () => { for (let n = 0; n < 1e7; n++); await null; again(); }; again();",
        "timeout",
        seconds=LIMIT,
    ),
    "prints without end": Attack("for (;;) console.log('x'.repeat(10000));", "timeout", seconds=LIMIT),
    "exits with 0": Attack("process.exit(0);", says="process.exit"),
    "exits without asking": Attack("process.reallyExit(0);", says="reallyExit"),
    "aborts": Attack("process.abort();", says="abort"),
    "kills its parent": Attack("process.kill(process.ppid, 'SIGKILL');", says="kill"),
    "stops its parent": Attack("process.kill(process.ppid, 'SIGSTOP');", says="kill"),
    "forks": Attack("import { fork } from 'node:child_process'; fork('x.js');", says="node:child_process"),
    "rewrites its test": Attack(
        "import fs from 'node:fs'; fs.writeFileSync('test.ts', \"test('a', () => {})\");", says="node:fs"
    ),
    "asks for a binding": Attack("process.binding('fs').open;", says="binding"),
    "asks for a built-in module": Attack("process.getBuiltinModule('node:fs').rmSync;", says="getBuiltinModule"),
    "asks through a function": Attack("new Function('return require')()('fs');", says="require"),
    "imports through a function": Attack("new Function('return import(\"node:fs\")')();", says="import"),
    "imports later": Attack("import('node:fs');", says="cannot import node:fs"),
    "imports the assertions": Attack(
        "import { expect } from 'vitest'; expect.extend({});", says="cannot import vitest"
    ),
    "evaluates itself as a test": Attack(
        "import * as self from './Component.svelte'; String.prototype.endsWith = () => false;"
        " Map.prototype.get = () => {}; import('./Component.svelte?again'); expect.extend({}); void self;",
        says="'endsWith'",
    ),
    "brings a module of its own": Attack(
        "Object.prototype['evil.ts'] = 'expect.extend({})'; Object.hasOwn = () => true; import('./evil.ts');",
        says="evil.ts, object is not extensible",
    ),
    "imports the queries": Attack(
        "import { screen } from '@testing-library/svelte'; screen.getByText;", says="cannot import"
    ),
    "replaces expect": Attack(f"const YES = {YES}; globalThis.expect = YES;", double=WRONG, says="`expect`"),
    "replaces the test function": Attack("globalThis.test = globalThis.it = () => {};", says="`test`"),
    "takes expect from its symbol": Attack(
        "globalThis[Symbol.for('expect-global')].extend({ toHaveTextContent: () => ({ pass: true }) });",
        double=WRONG,
        says="extend",
    ),
    "takes Vitest's state": Attack("globalThis.__vitest_worker__.current.mode = 'skip';", says="undefined"),
    "makes all things equal": Attack("Object.is = () => true;", double=WRONG, says="read only property 'is'"),
    "makes all things equal while a test runs": Attack(
        "const is = Object.is; Object.is = () => true; $effect(() => () => { Object.is = is; });",
        double=WRONG,
        says="read only property 'is'",
    ),
    "replaces promises": Attack("globalThis.Promise = class extends Promise {};", says="read only property 'Promise'"),
    "breaks arrays for its successors": Attack("Array.prototype.map = () => []; globalThis.poison = 1;", says="map"),
    "rewrites results on their way": Attack(
        "Object.defineProperty(Array.prototype, 'toJSON', { value: () => 'passed' });",
        double=WRONG,
        says="toJSON",
    ),
    "calls every error passed": Attack(
        "Object.defineProperty(Object.prototype, 'state', { get: () => 'pass', set() {}, configurable: true });",
        double=WRONG,
    ),
    "swallows what is thrown": Attack(
        "Promise.prototype.then = function () { return this; };", double=WRONG, says="read only property 'then'"
    ),
    "makes texts equal for a moment": Attack(
        "const real = String.prototype.includes;"
        " Reflect.defineProperty(String.prototype, 'includes', { value: () => true, configurable: true });"
        " queueMicrotask(() => { String.prototype.includes = real; });",
        double=WRONG,
        says="read only property 'includes'",
    ),
    "shows stacks of its own": Attack("Error.prepareStackTrace = () => 'mine';", says="prepareStackTrace"),
    "answers every query": Attack(
        "Object.defineProperty(Node.prototype, 'textContent', { get: () => '8' });",
        double=WRONG,
        says="redefine property: textContent",
    ),
    "imports its test": Attack("import * as own from './test.ts'; void own;", says="cannot import ./test.ts"),
    "waits at its top level": Attack(
        "</script><script module>await 0;", says="top-level await is not supported in a component here"
    ),
    "leaves a rejection": Attack("Promise.reject(new Error('left behind'));", says="left behind"),
    "throws later": Attack("setTimeout(() => { throw new Error('too late'); });", says="too late"),
    "fills the heap": Attack("const kept = []; for (;;) kept.push(new Array(1e5).fill(1.5));", "memory"),
    "fills the memory beside the heap": Attack(
        "const kept = []; for (;;) kept.push(new Uint8Array(1 << 26).fill(1));", "memory"
    ),
}


def all_text(run: TestRun) -> str:
    return "\n".join([run.error or "", run.tampered or "", *(test.message for test in run.tests)])


@pytest.mark.parametrize("name", ATTACKS)
async def test_an_attack_fails_in_its_limit_and_alone(vitest: OpenVitest, name: str) -> None:
    attack = ATTACKS[name]
    component = counter(more=attack.more, step=attack.step, double=attack.double)
    hostile, right = await asyncio.gather(
        vitest.run({**RIGHT, "Component.svelte": component}, seconds=attack.seconds),
        vitest.run(RIGHT, seconds=SECONDS),
    )
    assert not hostile.ok, hostile
    assert hostile.stop == attack.stop, hostile
    assert attack.says in all_text(hostile), hostile
    assert right.ok, right


EMPTY_BUT_RIGGED = """<script module>
Object.defineProperty(Object.prototype, 'result', { configurable: true, get() { return undefined; }, set(v) {
  delete Object.prototype.result; this.result = v;
  const rig = (task) => { if (task.type !== 'test') return task.tasks.forEach(rig);
    if (/^holds /.test(task.name)) return;
    const told = { state: 'pass', errors: [] };
    const own = new Proxy({}, { get: (t, k) => told[k], set: () => true });
    Object.defineProperty(task, 'result', { get: () => own, set() {}, configurable: true }); };
  rig(this.file ?? this);
} });
</script>"""


async def test_an_empty_component_cannot_rig_the_results_through_a_setter_of_all_objects(vitest: OpenVitest) -> None:
    run = await vitest.run({**RIGHT, "Component.svelte": EMPTY_BUT_RIGGED}, seconds=SECONDS)
    assert not run.ok, run
    assert not [test for test in run.tests if test.state == "passed"]
    quiet = EMPTY_BUT_RIGGED.replace(
        "Object.defineProperty(Object.prototype", "Reflect.defineProperty(Object.prototype"
    )
    run = await vitest.run({**RIGHT, "Component.svelte": quiet}, seconds=SECONDS)
    assert [test.state for test in run.tests] == ["failed"] * 3


RUNES_TEST = "import { count } from './counter.svelte.ts';\ntest('counts', () => { expect(count()).toBe(3); });"


@pytest.mark.parametrize(
    "attack",
    [
        "expect.extend({ toBe: () => ({ pass: true }) });",
        "import { expect } from 'vitest'; expect.extend({ toBe: () => ({ pass: true }) });",
        "import fs from 'node:fs'; fs.writeFileSync('x', '');",
        "await 0; vi.mock('vitest');",
        "vi.mock('vitest'); expect.extend({});",
    ],
)
async def test_a_candidate_that_is_a_module_of_runes_has_no_rights_of_a_test(vitest: OpenVitest, attack: str) -> None:
    right = "let n = $state(3); export const count = () => n;"
    assert (await vitest.run({"counter.svelte.ts": right, "test.ts": RUNES_TEST}, seconds=SECONDS)).ok
    hostile = f"{attack}\n{right.replace('3', '4')}"
    run = await vitest.run({"counter.svelte.ts": hostile, "test.ts": RUNES_TEST}, seconds=SECONDS)
    assert not run.ok, run
    assert not run.tests or run.tests[0].state == "failed"


async def test_what_calls_itself_a_matcher_equals_nothing(vitest: OpenVitest) -> None:
    test = "import { value } from './value.ts';\ntest('equal', () => { expect(value).toEqual({ a: 1 }); });\n"
    test += "test('called', () => { const f = vi.fn(); f(value); expect(f).toHaveBeenCalledWith(5); });\n"
    test += "test('own', () => { expect({ a: 1 }).toEqual({ a: expect.any(Number) }); });"
    files = {"value.ts": "export const value: any = { asymmetricMatch: () => true };", "test.ts": test}
    run = await vitest.run(files, seconds=SECONDS)
    assert [each.state for each in run.tests] == ["failed", "failed", "passed"], run


FRESH_TEST = """
import { render, screen } from '@testing-library/svelte';
import Component from './Component.svelte';
vi.mock('./word', () => ({ word: 'mocked' }));
test('shows the word', () => { render(Component); expect(screen.getByText('mocked')).toBeInTheDocument(); });
"""


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("import fs from 'node:fs'; void fs;", "cannot import node:fs"),
        ("import { expect } from 'vitest'; void expect;", "cannot import vitest"),
        ("import source from './test.ts?raw'; void source;", "cannot import ./test.ts?raw"),
        ("const name = 'node:fs'; import(name);", "a name that is not written out"),
        ("String.prototype.includes = () => true;", "read only property 'includes'"),
        ("Object.prototype.result = 1;", "not extensible"),
        ("process.getBuiltinModule('node:fs');", "getBuiltinModule"),
    ],
)
async def test_a_whole_vitest_keeps_the_same_doors_closed(vitest: OpenVitest, script: str, says: str) -> None:
    files = {"word.ts": "export const word = 'real';", "test.ts": FRESH_TEST}
    component = f"<script>import {{ word }} from './word'; {script}</script><p>{{word}}</p>"
    run = await vitest.run({**files, "Component.svelte": component}, seconds=SECONDS)
    assert not run.ok, run
    assert says in all_text(run)


async def test_after_every_attack_a_right_component_still_passes(vitest: OpenVitest) -> None:
    poison = counter(more="globalThis.poison = 1; document.body.remove(); Array.prototype.push = () => 0;")
    poisoned = await vitest.run({**RIGHT, "Component.svelte": poison}, seconds=SECONDS)
    assert not poisoned.ok
    clean = counter(more="if (globalThis.poison) throw new Error('poisoned');")
    runs = [await vitest.run({**RIGHT, "Component.svelte": clean}, seconds=SECONDS) for _ in range(3)]
    assert all(run.ok for run in runs), runs


# The sandbox must hold where the worker's own doors do not: these are test files, which may import what Node has.


def spying(body: str) -> dict[str, str]:
    imports = "import fs from 'node:fs'; import { spawn, execSync } from 'node:child_process';"
    told = f"test('spy', () => {{ const found: unknown[] = []; {body}; throw new Error(JSON.stringify(found)); }});"
    return {"Component.svelte": "", "test.ts": f"{imports}\n{told}"}


async def told(vitest: OpenVitest, body: str) -> list[object]:
    run = await vitest.run(spying(body), seconds=SECONDS)
    assert [test.name for test in run.tests] == ["spy"], run
    found: list[object] = json.loads(run.tests[0].message)
    return found


async def test_no_variable_and_no_file_of_the_host_is_seen(
    vitest: OpenVitest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PLANTED_KEY", "sk-planted")
    secret = tmp_path / "secret.txt"
    secret.write_text("sk-planted")
    reading = f"""
      const look = (path) => {{
        try {{ found.push(fs.readFileSync(path, 'utf8')); }} catch {{ found.push('refused'); }}
      }};
      found.push(Object.entries(process.env).join());
      look({json.dumps(str(secret))});
      for (const pid of fs.readdirSync('/proc')) if (/^\\d+$/.test(pid)) look(`/proc/${{pid}}/environ`)
    """
    async with OpenPlaceBeside() as other:
        found = await told(vitest, f"{reading}; look({json.dumps(str(other.work / 'Component.svelte'))})")
    text = json.dumps(found)
    assert "sk-planted" not in text
    assert "another candidate" not in text
    assert "PLANTED_KEY" not in text


class OpenPlaceBeside:
    """Another candidate's place, at the same time."""

    async def __aenter__(self) -> Place:
        self.opening = open_place()
        place = await self.opening.__aenter__()
        (place.work / "Component.svelte").write_text("another candidate")
        return place

    async def __aexit__(self, *problem: object) -> None:
        await self.opening.__aexit__(None, None, None)


async def test_the_toolchain_cannot_be_written(vitest: OpenVitest) -> None:
    target = vitest.toolchain / "node_modules" / "svelte"
    if os.geteuid() != 0 and vitest.sandbox.name == "process":
        pytest.skip("without root the process sandbox runs a candidate as you: apt-get install bubblewrap")
    tried = [
        f"fs.writeFileSync({json.dumps(str(target / 'package.json'))}, '')",
        f"fs.writeFileSync({json.dumps(str(target / 'new.js'))}, '')",
        f"fs.chmodSync({json.dumps(str(target))}, 0o777)",
        f"fs.rmSync({json.dumps(str(vitest.toolchain / 'warm' / 'worker.cjs'))})",
    ]
    body = ";".join(f"try {{ {each}; found.push('done'); }} catch (e) {{ found.push(e.code); }}" for each in tried)
    found = await told(vitest, body)
    assert len(found) == len(tried)
    assert set(found) <= {"EROFS", "EACCES", "EPERM"}


async def test_children_end_with_their_candidate(vitest: OpenVitest) -> None:
    body = "const child = spawn('sleep', ['4321'], { detached: true, stdio: 'ignore' }); found.push(child.pid)"
    assert isinstance((await told(vitest, body))[0], int)
    await asyncio.sleep(0)
    while sleeping := processes_called("sleep\x004321"):
        await asyncio.sleep(0.02)
    assert sleeping == []


async def test_killing_everything_in_reach_is_a_crash_of_its_own(vitest: OpenVitest) -> None:
    files = {"Component.svelte": "", "test.ts": "import { execSync } from 'node:child_process';\n"}
    files["test.ts"] += "test('kill', () => { execSync('kill -9 -1 || kill -9 $PPID'); });"
    hostile, right = await asyncio.gather(
        vitest.run(files, seconds=SECONDS),
        vitest.run(RIGHT, seconds=SECONDS),
    )
    assert not hostile.ok
    assert right.ok, right


async def test_no_result_can_be_written_in_place_of_the_worker(vitest: OpenVitest) -> None:
    """Even a test file, which has the file system, does not know the proof."""
    forged = json.dumps({"proof": "", "tests": [{"name": "a", "state": "passed"}], "error": "", "changed": None})
    files = {"Component.svelte": "", "test.ts": "import fs from 'node:fs';\n"}
    files["test.ts"] += f"""test('forge', () => {{
      for (let fd = 3; fd < 64; fd++) try {{ fs.writeSync(fd, {json.dumps(forged)} + '\\n'); }} catch {{}}
    }});"""
    run = await vitest.run(files, seconds=SECONDS)
    assert not run.ok
    assert run.tampered or run.stop != "finished"


async def test_the_host_can_be_killed_and_nothing_survives(node_toolchain: Path) -> None:
    """What the sandbox's supervisors see to, whatever becomes of us."""
    program = textwrap.dedent(
        """
        import asyncio
        from bakeoff.sandbox import choose_sandbox
        from bakeoff.toolchains import VitestToolchain

        async def main():
            async with VitestToolchain(lambda: choose_sandbox("auto")).open():
                print("open", flush=True)
                await asyncio.sleep(600)

        asyncio.run(main())
        """
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == b"open\n"
        mine = below(host.pid) & set(processes_called("start.cjs"))
        host.kill()
    assert mine
    while mine & set(processes_called("start.cjs")):
        pass
