"""Test what the warm Vitest says of components, and that it says what a fresh one does."""

import asyncio
import contextlib
import os
import random
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from bakeoff.toolchains.outcome import TestRun
from bakeoff.toolchains.vitest import OpenVitest

from .candidates import CANDIDATES, COUNTER_TEST, Candidate, counter
from .conftest import RIGHT, SECONDS, below, processes_called

pytestmark = [pytest.mark.full, pytest.mark.asyncio(loop_scope="module")]

Opening = Callable[..., AbstractAsyncContextManager[OpenVitest]]

FEATURES_TEST = """
import { createRawSnippet, flushSync, tick } from 'svelte';
import { get, writable } from 'svelte/store';
import { act, fireEvent, render, screen, waitFor } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { label } from './labels';
import Component from './Component.svelte';

let made = 0;
beforeAll(() => { made = 100; });
beforeEach(() => { made += 1; });
afterEach(() => { vi.useRealTimers(); vi.restoreAllMocks(); });

describe('hooks', () => {
  const seen: number[] = [];
  beforeEach(() => { seen.push(made); });
  test('run in order', () => { expect(seen).toHaveLength(1); });
  test.skip('skipped', () => {});
  test.todo('to do');
  test.fails('fails as it should', () => { expect(1).toBe(2); });
  test('keeps its page to itself', () => { expect(document.body.innerHTML).toBe(''); });
});
describe.each([['a', 1], ['b', 2]])('each %s', (name, value) => {
  it(`has ${name}`, ({ task }) => { expect(task.name).toContain(name); expect(value).toBeGreaterThan(0); });
});
test('timers are faked', async () => {
  vi.useFakeTimers();
  const heard = vi.fn();
  render(Component, { ondone: heard, wait: 5000 });
  await vi.advanceTimersByTimeAsync(5000);
  expect(heard).toHaveBeenCalledOnce();
});
test('spies see through', () => {
  const spy = vi.spyOn(console, 'log').mockImplementation(() => {});
  render(Component, { log: 'hello' });
  expect(spy).toHaveBeenCalledWith('hello');
});
test('snippets, attributes and styles', async () => {
  const children = createRawSnippet(() => ({ render: () => '<em>inner</em>' }));
  const { rerender, container, unmount } = render(Component, { children });
  expect(screen.getByText('inner')).toBeInTheDocument();
  await rerender({ big: true });
  expect(container.querySelector('section')).toHaveClass('big');
  expect(container.querySelector('section')).toHaveStyle({ width: '5px' });
  unmount();
  expect(container).toBeEmptyDOMElement();
});
test('input is bound', async () => {
  render(Component);
  await userEvent.type(screen.getByRole('textbox'), 'abc');
  await fireEvent.keyDown(window, { key: 'x' });
  await waitFor(() => expect(screen.getByTestId('echo')).toHaveTextContent('abc x'));
});
test('stores, modules and environment', async () => {
  const store = writable(1);
  store.set(2);
  await tick();
  flushSync();
  expect([get(store), label, import.meta.env.MODE, typeof window.fetch]).toEqual([2, 'a label', 'test', 'function']);
  expect(new Request('http://localhost/x').url).toBe('http://localhost/x');
  expect(new FormData()).toBeInstanceOf(FormData);
  expect(await new Response('text').text()).toBe('text');
  document.cookie = 'a=b';
  expect(document.cookie).toContain('a=b');
  await act();
});
test('an assertion too few', () => { expect.assertions(2); expect(1).toBe(1); });
test('soft', () => { expect.soft(1).toBe(2); expect.soft(2).toBe(3); });
test('polls', async () => { let n = 0; await expect.poll(() => ++n).toBe(3); });
test('matches in part', () => { expect({ a: 1, b: [2] }).toMatchObject({ b: [expect.any(Number)] }); });
test('throws', () => { expect(() => { throw new TypeError('so'); }).toThrowError(/so/); });
test('fails with an object', () => { expect({ a: 1 }).toEqual({ a: 2 }); });
test('has an id', () => { render(Component); expect(screen.getByTestId('id').textContent).toMatch(/^c\\d+$/); });
"""
FEATURES = {
    "labels.ts": "import type { Nothing } from './nowhere';\nexport const label: string = 'a label';\n",
    "test.ts": FEATURES_TEST,
    "Component.svelte": """<script lang="ts">
  import { untrack, type Snippet } from 'svelte';
  import { cubicOut } from 'svelte/easing';
  import { SvelteMap } from 'svelte/reactivity';
  interface Props { wait?: number; ondone?: () => void; log?: string; big?: boolean; children?: Snippet }
  let { wait = 0, ondone, log, big = false, children }: Props = $props();
  const id = $props.id();
  let typed = $state('');
  let pressed = $state('');
  const map = new SvelteMap<string, number>([['a', 1]]);
  if (log) console.log(log);
  $effect(() => {
    const timer = setTimeout(() => untrack(() => ondone?.()), wait);
    return () => clearTimeout(timer);
  });
</script>
<svelte:window onkeydown={(event) => { pressed = event.key; }} />
<section class={['plain', { big }]} style:width="5px" data-ease={cubicOut(1)}>{@render children?.()}</section>
<input bind:value={typed} />
<p data-testid="echo">{typed} {pressed}</p>
{#if map.get('a')}<p data-testid="id">{id}</p>{/if}
""",
}
TROUBLED_TEST = """
describe('first', () => {
  beforeAll(() => { throw new Error('no first'); });
  test('never runs', () => {});
});
describe('nothing in it', () => {});
test('is too slow', async () => { await new Promise(() => {}); }, 200);
test('throws no error', () => { throw 'text'; });
test('has its own globals', () => {
  vi.stubGlobal('innerWidth', 5);
  vi.stubEnv('WORD', 'b');
  expect([window.innerWidth, process.env.WORD, import.meta.env.WORD]).toEqual([5, 'b', 'b']);
  expect([import.meta.env.DEV, import.meta.env.PROD, import.meta.env.MODE]).toEqual([true, false, 'test']);
});
test('breaks in a handler', () => {
  const button = document.createElement('button');
  button.addEventListener('click', () => { throw new Error('in a handler'); });
  button.click();
});
"""
MOCKED = {
    "Component.svelte": "<script>import { word } from './word';</script><p>{word}</p>",
    "word.ts": "export const word = 'real';",
    "test.ts": """
import { render, screen } from '@testing-library/svelte';
import Component from './Component.svelte';
vi.mock('./word', () => ({ word: 'mocked' }));
test('mocks', () => { render(Component); expect(screen.getByText('mocked')).toBeInTheDocument(); });
""",
}


def verdict(run: TestRun) -> tuple[object, ...]:
    states = tuple((test.name, test.state, test.message) for test in run.tests)
    return states, run.error is None, run.stop


async def test_a_right_component_passes(vitest: OpenVitest) -> None:
    run = await vitest.run(RIGHT, seconds=SECONDS)
    assert run.ok, run
    assert [test.name for test in run.tests] == [
        "Counter > starts where it is told to",
        "Counter > counts clicks",
        "Counter > the double > is shown",
    ]


async def test_a_failed_test_says_what_was_expected(vitest: OpenVitest) -> None:
    run = await vitest.run({**RIGHT, "Component.svelte": counter(double="count * 3")}, seconds=SECONDS)
    assert not run.ok
    assert [test.state for test in run.tests] == ["passed", "passed", "failed"]
    assert "Expected element to have text content:\n  /^8$/\nReceived:\n  12" in run.tests[2].message


async def test_a_component_that_does_not_compile_is_an_error_with_its_line(vitest: OpenVitest) -> None:
    run = await vitest.run({**RIGHT, "Component.svelte": "<p>\n{#if}"}, seconds=SECONDS)
    assert run == TestRun(error="Component.svelte:2:5 Expected whitespace", seconds=run.seconds)
    assert not run.ok


async def test_a_missing_component_or_test_is_an_error(vitest: OpenVitest) -> None:
    run = await vitest.run({"test.ts": COUNTER_TEST}, seconds=SECONDS)
    assert run.error == "Cannot find module './Component.svelte' imported from 'test.ts'"
    run = await vitest.run({"Component.svelte": counter()}, seconds=SECONDS)
    assert run.error == "there is no test.ts, test.tsx or test.svelte.ts"


async def test_what_suites_use_of_vitest_and_svelte_works_as_in_a_fresh_vitest(vitest: OpenVitest) -> None:
    warm = await vitest.run(FEATURES, seconds=SECONDS)
    fresh = await vitest.run_whole(FEATURES, "test.ts", 120.0)
    assert len(warm.tests) == 19
    failed = [test.name for test in warm.tests if test.state == "failed"]
    assert failed == ["an assertion too few", "soft", "fails with an object"]
    assert verdict(warm) == verdict(fresh)


async def test_trouble_beside_the_tests_is_told_as_in_a_fresh_vitest(vitest: OpenVitest) -> None:
    files = {"Component.svelte": "", "test.ts": TROUBLED_TEST}
    warm = await vitest.run(files, seconds=SECONDS)
    fresh = await vitest.run_whole(files, "test.ts", 120.0)
    assert warm.error is not None
    for words in ("no first", "No test found in suite nothing in it", "Uncaught Exception: in a handler"):
        assert words in warm.error
    assert not warm.ok
    assert verdict(warm) == verdict(fresh)


async def test_only_one_test_of_a_suite_can_be_run(vitest: OpenVitest) -> None:
    files = {**RIGHT, "test.ts": COUNTER_TEST.replace("test('counts", "test.only('counts")}
    run = await vitest.run(files, seconds=SECONDS)
    assert [test.state for test in run.tests] == ["skipped", "passed", "skipped"]
    assert run.ok


async def test_a_suite_that_mocks_modules_is_given_to_a_fresh_vitest(vitest: OpenVitest) -> None:
    run = await vitest.run(MOCKED, seconds=120.0)
    assert run.ok, run
    assert [test.name for test in run.tests] == ["mocks"]


async def test_the_test_file_can_have_another_name(vitest: OpenVitest) -> None:
    files = {"Component.svelte": counter(), "counter.test.ts": COUNTER_TEST}
    run = await vitest.run(files, seconds=SECONDS, tests=["counter.test.ts"])
    assert run.ok, run
    mocking = f"{COUNTER_TEST}\nvi.mock('./nothing', () => ({{}}));"
    fresh = await vitest.run({**files, "counter.test.ts": mocking}, seconds=SECONDS, tests=["counter.test.ts"])
    assert [test.name for test in fresh.tests] == [test.name for test in run.tests]
    assert fresh.ok, fresh
    missing = await vitest.run(files, seconds=SECONDS, tests=["other.test.ts"])
    assert missing.error == "there is no other.test.ts"


async def test_half_a_character_is_no_reason_to_disbelieve_a_run(vitest: OpenVitest) -> None:
    long = "throw new Error('x'.repeat(3999) + '\\u{1F600}'.repeat(9))"
    source = f"test('long', () => {{ {long}; }}); test('half \\ud83d', () => {{ throw new Error('\\ud83d'); }});"
    files = {"Component.svelte": "", "test.ts": source}
    for run in (
        await vitest.run(files, seconds=SECONDS),
        await vitest.run_whole(files, "test.ts", 120.0),
    ):
        assert [test.name for test in run.tests] == ["long", "half \ufffd"]
        assert run.tests[1].message == "\ufffd"


async def test_a_test_may_replace_chance_time_and_even_what_is_built_in(vitest: OpenVitest) -> None:
    warm = """
    test('chance', () => { vi.spyOn(Math, 'random').mockReturnValue(0.5); expect(Math.random()).toBe(0.5); });
    test('now', () => { vi.spyOn(Date, 'now').mockReturnValue(7); expect(Date.now()).toBe(7); });
    test('time', () => {
      vi.useFakeTimers();
      vi.setSystemTime(new Date(0));
      expect([new Date().getTime(), Date.now()]).toEqual([0, 0]);
      vi.useRealTimers();
    });
    test('errors have names', () => {
      const error = new Error('a');
      error.name = 'B';
      error.toString = () => 'c';
      expect([error.name, `${error}`]).toEqual(['B', 'c']);
    });
    describe('', () => { test('inner', () => {}); });
    """
    run = await vitest.run({"Component.svelte": "", "test.ts": warm}, seconds=SECONDS)
    assert run.ok, run
    assert run.tests[-1].name == " > inner"
    spying = "test('text', () => { vi.spyOn(JSON, 'parse').mockReturnValue(1); expect(JSON.parse('2')).toBe(1); });"
    assert (await vitest.run({"Component.svelte": "", "test.ts": spying}, seconds=SECONDS)).ok


@pytest.mark.parametrize(
    "body",
    [
        "expect(__dirname).toContain('/')",
        "expect(import.meta.filename).toContain('test.ts')",
        "globalThis.expect(vi).toBe(globalThis.vi)",
        "expect((await import('./text.ts?raw')).default).toBe('export {}')",
        "expect((await import('svelte/compiler')).compile).toBeTypeOf('function')",
    ],
)
async def test_a_suite_that_needs_more_than_a_worker_has_it(vitest: OpenVitest, body: str) -> None:
    files = {
        "Component.svelte": "",
        "text.ts": "export {}",
        "test.ts": f"test('more', async () => {{ {body}; }}, 60_000);",
    }
    run = await vitest.run(files, seconds=SECONDS)
    assert run.ok, run


async def test_a_run_whose_tests_are_all_skipped_is_not_ok(vitest: OpenVitest) -> None:
    run = await vitest.run({"Component.svelte": "", "test.ts": "test.skip('a', () => {});"}, seconds=SECONDS)
    assert [test.state for test in run.tests] == ["skipped"]
    assert not run.ok


async def test_a_component_may_ask_where_it_runs(vitest: OpenVitest) -> None:
    component = f"<script module>import {{ BROWSER }} from 'esm-env'; void BROWSER;</script>{counter()}"
    run = await vitest.run({**RIGHT, "Component.svelte": component}, seconds=SECONDS)
    assert run.ok, run


async def test_what_runs_out_of_time_on_a_busy_machine_has_half_of_its_time_again(opened: Opening) -> None:
    slow = "test('slow', async () => { await new Promise((done) => setTimeout(done, 4000)); });"
    async with opened(slots=2) as vitest:
        vitest.is_busy = lambda: False
        run = await vitest.run({"Component.svelte": "", "test.ts": slow}, seconds=3.0)
        assert (run.stop, run.error) == ("timeout", "the tests did not end within 3 s")
        vitest.is_busy = lambda: True
        run = await vitest.run({"Component.svelte": "", "test.ts": slow}, seconds=3.0)
        assert run.ok, run


async def test_a_worker_that_somebody_else_killed_is_not_the_candidates_fault(opened: Opening) -> None:
    slow = "test('slow', async () => { await new Promise((done) => setTimeout(done, 2000)); });"
    async with opened() as vitest:
        ours = below(os.getpid()) & set(processes_called("start.cjs"))
        running = asyncio.create_task(vitest.run({"Component.svelte": "", "test.ts": slow}, seconds=SECONDS))
        while vitest._workers._waiting[0].alive and len(below(os.getpid()) & set(processes_called("start.cjs"))) <= len(
            ours
        ):
            await asyncio.sleep(0.01)
        for pid in [pid for pid in ours if not below(pid)]:  # the worker, not what watches over it
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        run = await running
        assert run.ok, run


async def test_the_compilers_own_limit_is_named(opened: Opening) -> None:
    async with opened() as vitest:
        vitest.is_busy = lambda: False
        run = await vitest.run(RIGHT, seconds=0.0001)
        assert run.error == "it was not compiled within 0.0001 s"
        assert (await vitest.run(RIGHT, seconds=SECONDS)).ok


async def test_every_kind_of_candidate_fares_as_in_a_fresh_vitest(vitest: OpenVitest) -> None:
    chosen = [CANDIDATES[number] for number in (0, 6, 10, 25)]
    for candidate in chosen:
        warm = await vitest.run(candidate.files, seconds=SECONDS)
        fresh = await vitest.run_whole(candidate.files, candidate.test_name, 120.0)
        assert verdict(warm) == verdict(fresh), candidate.name


async def test_forty_candidates_fare_alike_in_three_orders_through_the_same_slots(vitest: OpenVitest) -> None:
    async def verdicts(order: list[Candidate]) -> dict[str, tuple[object, ...]]:
        runs = await asyncio.gather(*(vitest.run(candidate.files, seconds=SECONDS) for candidate in order))
        return {candidate.name: verdict(run) for candidate, run in zip(order, runs, strict=True)}

    first = await verdicts(list(CANDIDATES))
    assert sum(name.endswith("right") for name in first) == sum(states_passed(states) for states in first.values())
    for seed in (1, 2):
        order = list(CANDIDATES)
        random.Random(seed).shuffle(order)
        assert await verdicts(order) == first


def states_passed(found: tuple[object, ...]) -> bool:
    states, no_error, *_ = found
    assert isinstance(states, tuple)
    return bool(states) and bool(no_error) and all(state == "passed" for _, state, _ in states)


@pytest.mark.parametrize("sandbox_kind", ["process", "bwrap"])
@pytest.mark.usefixtures("nothing_is_left_running")
async def test_it_works_in_each_sandbox_and_leaves_no_process(opened: Opening, sandbox_kind: str) -> None:
    async with opened(sandbox_kind) as vitest:
        assert (await vitest.run(RIGHT, seconds=SECONDS)).ok
        assert len(below(os.getpid())) > 2


async def test_a_worker_that_died_while_it_waited_is_replaced(opened: Opening) -> None:
    async with opened() as vitest:
        for pid in below(os.getpid()) & set(processes_called("start.cjs")):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        while vitest._workers._waiting[0].alive:
            await asyncio.sleep(0.01)
        assert (await vitest.run(RIGHT, seconds=SECONDS)).ok


@pytest.mark.usefixtures("nothing_is_left_running")
async def test_a_cancelled_run_leaves_no_process_and_frees_its_slot(opened: Opening) -> None:
    endless = {**RIGHT, "Component.svelte": counter(more="while (true) {}")}
    async with opened() as vitest:
        task = asyncio.create_task(vitest.run(endless, seconds=SECONDS))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await vitest.run(RIGHT, seconds=SECONDS)).ok


@pytest.mark.usefixtures("nothing_is_left_running")
async def test_closing_in_the_middle_of_a_run_leaves_no_process(opened: Opening) -> None:
    endless = {**RIGHT, "Component.svelte": counter(more="while (true) {}")}

    async def work(started: asyncio.Event) -> None:
        async with opened() as vitest:
            started.set()
            await vitest.run(endless, seconds=SECONDS)

    started = asyncio.Event()
    task = asyncio.create_task(work(started))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_toolchain_is_read_only(node_toolchain: Path) -> None:
    files = [path for path in node_toolchain.rglob("*.js") if path.is_file()]
    assert len(files) > 1000
    assert not [path for path in files if path.stat().st_mode & 0o222]
