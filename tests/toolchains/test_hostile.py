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
from bakeoff.toolchains.outcome import RunStop, TestRun
from bakeoff.toolchains.vitest import OpenVitest

from .candidates import counter
from .conftest import RIGHT, SECONDS, below, processes_called

pytestmark = [pytest.mark.full, pytest.mark.asyncio(loop_scope="module")]

LIMIT = 3.0


@dataclass(frozen=True, slots=True)
class Attack:
    """`more` goes into the script of a right counter; a run of it must end as told."""

    more: str
    stop: RunStop = "finished"
    says: str = ""
    seconds: float = SECONDS


ATTACKS = {
    "loops in its script": Attack("while (true) {}", "timeout", seconds=LIMIT),
    "loops in an effect": Attack("$effect(() => { while (count >= 0) {} });", "timeout", seconds=LIMIT),
    # Slowly enough to meet the limit of time before that of memory, on a slow machine too.
    "never ends its microtasks": Attack(
        "const again = async () => { for (let n = 0; n < 1e7; n++); await null; again(); }; again();",
        "timeout",
        seconds=LIMIT,
    ),
    "prints without end": Attack("for (;;) console.log('x'.repeat(10000));", "timeout", seconds=LIMIT),
    "exits with 0": Attack("process.exit(0);", says="process.exit"),
    "exits without asking": Attack("process.reallyExit(0);", "crashed", says="ended with exit code 0 before its tests"),
    "aborts": Attack("process.abort();", "crashed", says="before its tests did"),
    "kills its parent": Attack("process.kill(process.ppid, 'SIGKILL');", says="sends no signals"),
    "starts a process": Attack("process.getBuiltinModule('node:child_process').spawnSync('true');", says="restricted"),
    "starts a thread": Attack(
        "const { Worker } = process.getBuiltinModule('node:worker_threads'); new Worker('1', { eval: true });",
        says="restricted",
    ),
    "asks for a binding": Attack("process.binding('spawn_sync');", says="binding"),
    "reads a file": Attack("process.getBuiltinModule('node:fs').readFileSync('/etc/passwd');", says="restricted"),
    "asks synchronously": Attack(
        "const asked = new XMLHttpRequest(); asked.open('GET', 'http://localhost/', false); asked.send();",
        says="restricted",
    ),
    "imports what is not there": Attack("import 'no-such-package';", says="cannot import no-such-package"),
    "breaks arrays": Attack("Array.prototype.push = () => 0; globalThis.poison = 1;"),
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
    component = counter(more=attack.more)
    hostile, right = await asyncio.gather(
        vitest.run({**RIGHT, "Component.svelte": component}, seconds=attack.seconds),
        vitest.run(RIGHT, seconds=SECONDS),
    )
    assert not hostile.ok, hostile
    assert hostile.stop == attack.stop, hostile
    assert attack.says in all_text(hostile), hostile
    assert right.ok, right


MODULE_TEST = "import { count } from './counter.svelte.ts';\ntest('counts', () => { expect(count()).toBe(3); });"


@pytest.mark.parametrize(
    "more",
    [
        "import { expect } from 'vitest'; void expect;",
        "import fs from 'node:fs'; fs.writeFileSync('x', ''); fs.readFileSync('test.ts');",
        "import { parse } from 'svelte/compiler'; void parse;",
        "await 0;",
        "import text from './counter.svelte.ts?raw'; void text;",
    ],
)
async def test_what_a_plain_vitest_lets_a_module_do_it_may_do_here(vitest: OpenVitest, more: str) -> None:
    source = f"{more}\nlet n = $state(3); export const count = () => n;"
    run = await vitest.run({"counter.svelte.ts": source, "test.ts": MODULE_TEST}, seconds=SECONDS)
    assert run.ok, run


async def test_a_whole_vitest_starts_no_process_and_reads_no_file_of_others(vitest: OpenVitest) -> None:
    test = """import fs from 'node:fs'; import { spawnSync } from 'node:child_process';
      test('spawn', () => { process.env.NODE_OPTIONS = '--import=data:,'; spawnSync('true'); });
      test('read', () => { fs.readFileSync('/etc/passwd'); });
      test('ask', () => { const x = new XMLHttpRequest(); x.open('GET', 'http://localhost/', false); x.send(); });
      test('own', () => { fs.writeFileSync('own', '1'); expect(fs.readFileSync('own', 'utf8')).toBe('1'); });"""
    run = await vitest.run({"Component.svelte": "", "test.ts": test}, seconds=SECONDS)
    assert [each.state for each in run.tests] == ["failed", "failed", "failed", "passed"], run
    assert all("restricted" in each.message for each in run.tests[:3]), run


async def test_after_every_attack_a_right_component_still_passes(vitest: OpenVitest) -> None:
    poison = counter(more="globalThis.poison = 1; document.body.remove(); Array.prototype.push = () => 0;")
    poisoned = await vitest.run({**RIGHT, "Component.svelte": poison}, seconds=SECONDS)
    assert not poisoned.ok
    clean = counter(more="if (globalThis.poison) throw new Error('poisoned');")
    runs = [await vitest.run({**RIGHT, "Component.svelte": clean}, seconds=SECONDS) for _ in range(3)]
    assert all(run.ok for run in runs), runs


# What a whole Vitest can reach: these tests import the file system.


def spying(body: str) -> dict[str, str]:
    imports = "import fs from 'node:fs';"
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
      for (const pid of ['self', process.pid, process.ppid]) look(`/proc/${{pid}}/environ`)
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
        f"fs.rmSync({json.dumps(str(vitest.toolchain / 'warm' / 'svelte.cjs'))})",
    ]
    body = ";".join(f"try {{ {each}; found.push('done'); }} catch (e) {{ found.push(e.code); }}" for each in tried)
    found = await told(vitest, body)
    assert len(found) == len(tried)
    assert set(found) == {"ERR_ACCESS_DENIED"}


async def test_the_host_can_be_killed_and_nothing_survives(node_toolchain: Path) -> None:
    """The supervisors of the sandbox end everything, even if the host is killed."""
    program = textwrap.dedent(
        """
        import asyncio
        from bakeoff.sandbox import choose_sandbox
        from bakeoff.toolchains.vitest import VitestToolchain

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
