"""React, Vue and plain TypeScript, in warm workers and in a whole Vitest, and a suite in a real browser."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bakeoff.doors.components.suites import bundled_folder, find_suites
from bakeoff.errors import InfraError
from bakeoff.plan import Framework
from bakeoff.sandbox import choose_sandbox
from bakeoff.toolchains.vitest import BrowserToolchain, OpenBrowser, VitestToolchain

from .conftest import SECONDS

pytestmark = pytest.mark.full

LIBRARIES = {"react": "@testing-library/react", "vue": "@testing-library/vue"}


def counter_test(framework: Framework, component: str, rendered: str) -> str:
    return f"""
import {{ render, screen }} from '{LIBRARIES[framework]}';
import userEvent from '@testing-library/user-event';
import Counter from './{component}';
it('counts', async () => {{
  {rendered}
  await userEvent.setup().click(screen.getByRole('button'));
  expect(screen.getByRole('button')).toHaveTextContent('count 3');
}});
it('begins on an empty page', () => {{
  {rendered}
  expect(screen.getAllByRole('button')).toHaveLength(1);
}});
"""


REACT = {
    "Component.tsx": """
import { useState } from 'react';
export default function Counter({ start = 0 }: { start?: number }) {
  const [count, setCount] = useState<number>(start);
  return <button onClick={() => setCount((now) => now + 1)}>count {count}</button>;
}
""",
    "test.tsx": counter_test("react", "Component", "render(<Counter start={2} />);"),
}
VUE = {
    "Component.vue": """
<script setup lang="ts">
import { ref } from 'vue';
const props = withDefaults(defineProps<{ start?: number }>(), { start: 0 });
const count = ref<number>(props.start);
</script>
<template><button :class="{ big: (count as number) > 2 }" @click="count++">count {{ count }}</button></template>
<style scoped>button { color: red; }</style>
""",
    "test.ts": counter_test("vue", "Component.vue", "render(Counter, { props: { start: 2 } });"),
}
TYPESCRIPT = {
    "solution.ts": "export const double = (x: number): number => x * 2;\n",
    "test.ts": "import { double } from './solution';\nit('doubles', () => { expect(double(2)).toBe(4); });\n"
    "it('has a page', () => { document.title = 'a'; expect(document.title).toBe('a'); });\n",
}


@pytest.mark.parametrize(
    ("framework", "files", "broken", "problem"),
    [
        ("react", REACT, "export default () => <p>", "Component.tsx:1:"),
        ("vue", VUE, "<template><p>{{ 1 + }}</p></template>", "Component.vue"),
        ("typescript", TYPESCRIPT, "export const double = (", "solution.ts:1:"),
    ],
)
async def test_a_framework_has_workers_of_its_own(
    node_toolchain: Path, framework: Framework, files: dict[str, str], broken: str, problem: str
) -> None:
    component = next(iter(files))
    async with VitestToolchain(lambda: choose_sandbox("auto"), framework=framework).open() as vitest:
        right = await vitest.run(files, seconds=SECONDS)
        assert right.ok, right
        assert len(right.tests) == 2
        faulty = files[component].replace("+ 1", "+ 2").replace("* 2", "* 3").replace("count++", "count--")
        wrong = await vitest.run({**files, component: faulty}, seconds=SECONDS)
        assert [test.state for test in wrong.tests] == ["failed", "passed"], wrong
        found = await vitest.run({**files, component: broken}, seconds=SECONDS)
        assert found.error is not None
        assert problem in found.error, found.error


@pytest.mark.parametrize(("framework", "files"), [("react", REACT), ("vue", VUE)])
async def test_a_whole_vitest_has_the_plugin_of_the_framework(
    node_toolchain: Path, framework: Framework, files: dict[str, str]
) -> None:
    test = next(name for name in files if name.startswith("test"))
    mocking = {**files, test: f"{files[test]}vi.mock('./nothing', () => ({{}}));\n"}
    async with VitestToolchain(lambda: choose_sandbox("auto"), framework=framework).open() as vitest:
        run = await vitest.run(mocking, seconds=SECONDS)
        assert run.ok, run


async def test_a_suite_that_needs_layout_runs_in_chromium(
    node_toolchain: Path, needs_program: Callable[[str], str]
) -> None:
    needs_program("chromium")
    (suite,) = find_suites(bundled_folder(), ["browser-split-pane"]).suites
    assert suite.wrong is not None
    async with BrowserToolchain(lambda: choose_sandbox("auto"), 2, framework="react").open() as browser:
        files = {**suite.hidden, suite.component_file: suite.reference}
        right = await browser.run(files, tests=[suite.test_file], seconds=SECONDS)
        assert right.ok, right
        assert len(right.tests) == 8
        wrong = await browser.run(
            {**files, suite.component_file: suite.wrong}, tests=[suite.test_file], seconds=SECONDS
        )
        assert {test.name.partition(" > ")[2] for test in wrong.tests if test.state == "failed"} >= {
            "keeps large content inside of its view",
            "goes as far as the views allow",
        }


async def test_a_browser_that_does_not_start_is_no_fault_of_the_answer(
    node_toolchain: Path, needs_program: Callable[[str], str]
) -> None:
    needs_program("chromium")
    (suite,) = find_suites(bundled_folder(), ["browser-split-pane"]).suites
    files = {**suite.hidden, suite.component_file: suite.reference}
    sandbox = choose_sandbox("auto")
    broken = OpenBrowser(sandbox, node_toolchain, "react", "/bin/false")
    with pytest.raises(InfraError, match="/bin/false does not start in the"):
        await broken.run(files, tests=[suite.test_file], seconds=SECONDS)
    async with BrowserToolchain(lambda: sandbox, framework="react").open() as browser:
        assert browser.chromium != broken.chromium
        await browser.check_browser()  # does not raise: what an answer says of the browser is not believed
