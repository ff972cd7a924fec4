"""Answers that forge what their process reports: with the twins of the tests none of them passes."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from bakeoff.grading.cases import GradedCase, graded_case
from bakeoff.grading.grades import Grade, compare_runs, run_answer
from bakeoff.grading.references import OpenReferences, ReferenceRun, reference_of
from bakeoff.plan import Case, Grading
from bakeoff.sandbox import choose_sandbox
from bakeoff.toolchains.exercises import ExerciseToolchain
from bakeoff.toolchains.vitest import VitestToolchain

from .candidates import COUNTER_TEST, counter
from .conftest import SECONDS

pytestmark = [pytest.mark.full, pytest.mark.asyncio(loop_scope="module")]


JEST_TEST = """import { expect, it } from '@jest/globals';
import { double, list } from './double.ts';
it('doubles', () => { expect(double(4)).toBe(8); });
it('doubles again', () => { expect(double(5)).toEqual(10); });
it('lists', () => { expect(list()).toEqual([1, { a: 2 }]); });
it('lists a number', () => { expect(list()[0]).toBe(1); });
"""
DOUBLE = "export const double = (x: number): any => x * 2;\nexport const list = (): any => [1, { a: 2 }];\n"
NOTHING = "export const double = (x: number): any => 0;\nexport const list = (): any => ['nothing'];\n"


def case(runner: str, test: str, **more: Any) -> GradedCase:
    vitest = runner == "vitest"
    solution, tests = ("Component.svelte", "test.ts") if vitest else ("double.ts", "double.test.ts")
    reference = {solution: counter() if vitest else DOUBLE}
    grading = {"runner": runner, "solution": [solution], "tests": [tests], "seconds": SECONDS}
    settings = Grading.model_validate(grading if vitest else {**grading, "track": "typescript"})
    return graded_case(Case(id=runner, prompt="?", hidden={tests: test}, reference=reference, grading=settings))


# Only a whole Vitest or Jest can mock; at the end, it moves no twin.
CASES = {
    "vitest": case("vitest", COUNTER_TEST),
    "whole vitest": case("vitest", f"{COUNTER_TEST}vi.mock('./nothing', () => ({{}}));\n"),
    "jest": case("jest", JEST_TEST),
    "whole jest": case("jest", f"{JEST_TEST}jest.mock('./nothing', () => ({{}}), {{ virtual: true }});\n"),
}


class Grader:
    """The opened toolchains, and the references that they have run."""

    def __init__(self, resources: dict[str, Any]) -> None:
        self.resources = resources

    async def reference(self, kind: str) -> ReferenceRun:
        found = await reference_of(CASES[kind.removeprefix("whole ")], self.resources)
        assert found is not None
        assert len(found.twins.proven) == len(found.names)
        return found

    async def grade(self, kind: str, answer: str) -> Grade:
        graded, reference = CASES[kind], await self.reference(kind)
        run = await run_answer(graded, reference, {graded.settings.solution[0]: answer}, self.resources)
        return compare_runs(graded, reference, run)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def grader(needs_program: Callable[[str], str], shared_folder: Path) -> AsyncIterator[Grader]:
    needs_program("node")
    needs_program("npm")
    folder = shared_folder / "references-of-forgeries"
    folder.mkdir(exist_ok=True)
    toolchains = (VitestToolchain, ExerciseToolchain)
    made = [kind(lambda: choose_sandbox("auto"), slots=2) for kind in toolchains]
    async with AsyncExitStack() as stack:
        opened = {each.key: await stack.enter_async_context(each.open()) for each in made}
        yield Grader({**opened, "references": OpenReferences(folder, "bakeoff verify")})


def page(script: str) -> str:
    """A component with all that the queries look for and nothing that is right."""
    return f'<script module>{script}</script><button>count</button><p data-testid="double">?</p>'


FORGED_REPORT = """const fs = process.getBuiltinModule('node:fs');
  const tests = [%s].map((name) => ({ name, state: 'passed' }));
  const report = JSON.stringify({ tests, error: '' }) + '\\n';
  for (let fd = 3; fd < 64; fd++) try { fs.writeSync(fd, report); } catch {}
  process.reallyExit(0);"""
COUNTER_NAMES = "'Counter > starts where it is told to', 'Counter > counts clicks', 'Counter > the double > is shown'"
ANY_TEXT = """const any = new Proxy({}, { get: (_, key) => (key === 'includes' ? () => true : () => any) });
  RegExp.prototype.test = () => true; String.prototype.includes = () => true; String.prototype.match = () => ['']; """
COMPONENTS = {
    "extends expect": page(
        "expect.extend({ toHaveTextContent: () => ({ pass: true, message: () => '' }) });",
    ),
    "patches what expect returns": page(
        "const real = Object.getPrototypeOf(expect(1));"
        " Object.defineProperty(real, 'toHaveTextContent', { value() {}, configurable: true });"
    ),
    "tells Vitest that failing is right": page("").replace(
        "<button>", "<script>globalThis.__vitest_worker__.current.fails = true;</script><button>"
    ),
    "lies about every text": page(ANY_TEXT),
    "lies in the implementation of the page": page(
        f"{ANY_TEXT} const symbol = Object.getOwnPropertySymbols(document.body).find((s) => s.description === 'impl');"
        " let proto = document.body[symbol];"
        " while (!Object.hasOwn(proto, 'textContent')) proto = Object.getPrototypeOf(proto);"
        " Object.defineProperty(proto, 'textContent', { get: () => 'count 2', set() {}, configurable: true });"
    ),
    "answers every query": page(
        f"{ANY_TEXT} const own = document.createElement('button');"
        " Object.defineProperty(own, 'textContent', { get: () => any });"
        " document.body.querySelectorAll = document.body.querySelector = () => [own];"
    ),
    "writes the report itself": page(FORGED_REPORT % COUNTER_NAMES),
    "starts a process by a request": page(
        "process.env.NODE_OPTIONS = '--import=data:text/javascript,process.exit(0)';"
        " const asked = new XMLHttpRequest(); asked.open('GET', 'http://localhost/', false); asked.send();"
    ),
}
REWRITE = "(text: string) => text.replaceAll('\"failed\"', '\"passed\"')"
JEST_NAMES = "'doubles', 'doubles again', 'lists', 'lists a number'"
SOLUTIONS = {
    "rewrites the report on its way": "const write = (Buffer.prototype as any).utf8Write;"
    f" const rewrite = {REWRITE};"
    " (Buffer.prototype as any).utf8Write = function (text: string, ...more: any[])"
    " { return write.call(this, rewrite(text), ...more); };"
    f" const stringify = JSON.stringify; JSON.stringify = (...a: any) => rewrite((stringify as any)(...a));{NOTHING}",
    "extends expect": "const pass = () => ({ pass: true, message: () => '' });"
    f" (globalThis as any).expect.extend({{ toBe: pass, toEqual: pass }});\n{NOTHING}",
    "makes all things equal": f"Object.is = () => true; (Array as any).isArray = () => false;\n{NOTHING}",
    "returns what equals everything": """const all: any = { $$typeof: Symbol.for('jest.asymmetricMatcher'),
      asymmetricMatch: () => true, toString: () => 'all', toAsymmetricMatcher: () => 'all' }; all[0] = 1;
      Object.is = () => true; export const double = (x: number): any => all; export const list = (): any => all;""",
    "takes the tests out of Jest": """for (const s of Object.getOwnPropertySymbols(globalThis)) {
      const state = (globalThis as any)[s]; if (state?.rootDescribeBlock) setTimeout(() => {}, 0);
      if (state?.rootDescribeBlock) Promise.resolve().then(() => { const visit = (block: any) =>
        { for (const each of block.children) { if (each.children) visit(each); else each.fn = () => {}; } };
        visit(state.rootDescribeBlock); }); }
    """
    + NOTHING,
    "writes the report itself": f"{FORGED_REPORT.replace('process.', '(process as any).') % JEST_NAMES}\n{NOTHING}",
    "changes what arrays become": "(Array.prototype as any).toJSON = function ()"
    f" {{ return this.map((each: any) => ({{ ...each, state: 'passed' }})); }};\n{NOTHING}",
}
FORGERIES = [
    *(("vitest", name, text) for name, text in COMPONENTS.items()),
    *(("jest", name, text) for name, text in SOLUTIONS.items()),
]
WHOLE = [("whole vitest", name) for name in ("extends expect", "tells Vitest that failing is right")]
WHOLE += [("whole jest", name) for name in ("makes all things equal",)]


@pytest.mark.parametrize("kind", CASES)
async def test_a_right_answer_passes_with_a_helper_on_a_prototype(grader: Grader, kind: str) -> None:
    helper = "(String.prototype as any).shout = function () { return this.toUpperCase() + '!'; };"
    answer = f"{helper}\n{DOUBLE}" if "jest" in kind else counter(more=helper)
    grade = await grader.grade(kind, answer)
    assert grade.ok, grade


@pytest.mark.parametrize(("kind", "name", "answer"), FORGERIES)
async def test_a_forger_fails(grader: Grader, kind: str, name: str, answer: str) -> None:
    grade = await grader.grade(kind, answer)
    assert not grade.ok, grade
    assert not grade.passed, grade


@pytest.mark.parametrize(("kind", "name"), WHOLE)
async def test_a_forger_fails_in_a_whole_test_runner(grader: Grader, kind: str, name: str) -> None:
    grade = await grader.grade(kind, (SOLUTIONS if "jest" in kind else COMPONENTS)[name])
    assert not grade.ok, grade
    assert not grade.passed, grade


@pytest.mark.parametrize(
    ("kind", "name", "answer"), [each for each in FORGERIES if (f"whole {each[0]}", each[1]) not in WHOLE]
)
async def test_every_other_forger_fails_in_a_whole_runner(grader: Grader, kind: str, name: str, answer: str) -> None:
    grade = await grader.grade(f"whole {kind}", answer)
    assert not grade.ok, grade
