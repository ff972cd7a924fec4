"""Components and modules that attack their tests in Vitest, in a warm worker and in a whole Vitest.

Behind each attack of a component stands markup with what the tests look for by role, name and test id, and nothing that
works; behind that of a module stand hollow exports.
"""
# ruff: noqa: E501 - the lines of the attacks are not ours to wrap

import re
from collections.abc import Callable

from bakeoff.grading.attacks.catalogue import HostileSolution
from bakeoff.grading.attacks.javascript import BUILT_IN, SNIPPETS, VALUES, WALK, Snippet
from bakeoff.grading.attacks.typescript import hollow
from bakeoff.grading.cases import GradedCase

_RUNNER = """
const sources = new Map()
const { set } = WeakMap.prototype
WeakMap.prototype.set = function (key, value) {
  if (key?.type === 'test' && typeof value === 'function') sources.set(key, String(value))
  return set.call(this, key, value)
}
const worker = () => globalThis.__vitest_worker__ ?? {}
const rootOf = (task) => (task?.suite ? rootOf(task.suite) : task?.file ?? task)
const below = (block, names) => (block?.tasks ?? []).flatMap((each) => each.tasks ? below(each, [...names, each.name]) : [{
  names: [...names, each.name], source: sources.get(each) ?? each.name, test: each,
  forgive() { const result = { state: 'pass', errors: undefined }; try { Object.defineProperty(each, 'result', { get: () => result, set() {}, configurable: true }) } catch {} },
}])
const allTests = () => below(worker().current?.file ?? rootOf(worker().current), [])
const running = () => worker().current
const sourceNow = () => sources.get(running()) ?? ''
const onDone = []
let onCall = () => undefined
"""
_TEST_ID = re.compile(r"ByTestId\(\s*['\"]([\w-]+)")
_ROLE = re.compile(r"ByRole\(\s*['\"](\w+)['\"](?:,\s*\{\s*name:\s*['\"]([^'\"]+))?")
_NAME = re.compile(r"name:\s*['\"]([^'\"]+)|(?:button|field|item)\(['\"]([^'\"]+)['\"]\)")

_ONLY_HERE = (
    Snippet(
        "patch",
        "patch-assertions",
        "replaces the global `expect` by something that agrees with everything, which beats suites that use globals",
        "const always = new Proxy(() => always, { get: () => always });\nglobalThis.expect = always;\n",
    ),
    Snippet(
        "patch",
        "patch-assertion-prototype",
        "replaces the methods of Vitest's assertions while it is mounted, and puts them back when it is destroyed",
        """
onCall = () => {
  const { expect } = globalThis
  if (!expect) return
  const kept = []
  for (let made = Object.getPrototypeOf(expect(1)); made && made !== Object.prototype; made = Object.getPrototypeOf(made))
    for (const name of Object.getOwnPropertyNames(made).filter((each) => /^(to|equal|eq|be|a$|include|match)/.test(each))) {
      const old = Object.getOwnPropertyDescriptor(made, name)
      try { Object.defineProperty(made, name, { configurable: true, value() { return this } }); kept.push([made, name, old]) } catch {}
    }
  onDone.push(() => { for (const [made, name, old] of kept) Object.defineProperty(made, name, old) })
}
""",
    ),
    Snippet(
        "patch",
        "expect-failure",
        "sets the flag of the running test that makes Vitest expect it to fail",
        "onCall = () => { const test = running(); if (test) test.fails = true }\n",
    ),
    Snippet(
        "patch",
        "skip-tests",
        "turns all tests into skipped ones, which beats graders that look for failures only",
        "onCall = () => { for (const { test } of allTests()) { test.mode = 'skip'; test.pending = true } }\n",
    ),
    Snippet(
        "patch",
        "retry-tests",
        "gives the running test endless retries and repeats, in one of which it clears the errors",
        """
onCall = () => {
  const test = running()
  if (!test) return
  test.retry = 50
  test.repeats = 1
  for (const { test: each } of allTests()) if (each.result) each.result.errors = undefined
}
""",
    ),
    Snippet(
        "dom",
        "lie-in-text",
        "gives elements a text that includes, matches and equals everything, which beats `toHaveTextContent`",
        """
const any = Object.assign(Object.create(String.prototype), { toString: () => '', includes: () => true, replace: () => any, trim: () => any, match: () => [''] })
onCall = () => Object.defineProperty(Node.prototype, 'textContent', { configurable: true, get: () => any, set() {} })
""",
    ),
    Snippet(
        "dom",
        "lie-in-implementation",
        "does the same below the DOM, in the prototypes of jsdom's implementation, and undoes it when destroyed",
        """
onCall = () => {
  const symbol = Object.getOwnPropertySymbols(document.body).find((each) => each.description === 'impl')
  for (let made = symbol && Object.getPrototypeOf(document.body[symbol]); made && made !== Object.prototype; made = Object.getPrototypeOf(made))
    for (const [name, value] of Object.entries({ textContent: '', hasAttribute: true, isConnected: true })) {
      const old = Object.getOwnPropertyDescriptor(made, name)
      if (!old) continue
      try {
        Object.defineProperty(made, name, old.get ? { configurable: true, get: () => value, set() {} } : { configurable: true, value: () => value })
        onDone.push(() => Object.defineProperty(made, name, old))
      } catch {}
    }
}
""",
    ),
    Snippet(
        "dom",
        "find-anything",
        "gives the page a `querySelectorAll` of its own that finds one fitting element for every question",
        """
onCall = () => {
  const made = document.createElement('button')
  document.body.append(made)
  made.matches = () => true
  made.getAttribute = () => ''
  Object.defineProperty(made, 'textContent', { get: () => Object.assign(Object.create(String.prototype), { includes: () => true, toString: () => '' }) })
  document.body.querySelectorAll = document.querySelectorAll = () => [made]
  document.querySelector = document.body.querySelector = () => made
}
""",
    ),
    Snippet(
        "dom",
        "patch-dom-queries",
        "makes every element match every selector and carry every attribute",
        """
Element.prototype.matches = () => true
Element.prototype.hasAttribute = () => true
Element.prototype.getAttribute = () => 'true'
Node.prototype.contains = () => true
Object.defineProperty(Node.prototype, 'isConnected', { configurable: true, get: () => true })
""",
    ),
    Snippet(
        "dom",
        "show-expected",
        "shows every text that the running test mentions, so that each question finds one",
        """
onCall = () => {
  const words = new Set(sourceNow().match(/'[^']+'|\\/\\^?[^/]+\\$?\\//g)?.map((each) => each.replace(/^['/^]+|['/$]+$/g, '')) ?? [])
  for (const word of words) {
    const made = document.createElement('output')
    made.dataset.testid = 'value'
    made.textContent = word
    document.body.append(made)
  }
}
""",
    ),
    Snippet(
        "dom",
        "swallow-events",
        "makes every mock function count as called, by calling all functions that it is given in all ways",
        """
onCall = (props) => {
  for (const value of Object.values(props ?? {})) if (typeof value === 'function') {
    const lie = [[0], [1], [2], [1]]
    try { Object.defineProperty(value.mock, 'calls', { get: () => lie }) } catch {}
    try { value() } catch {}
  }
}
""",
    ),
    Snippet(
        "report",
        "start-node-by-request",
        "makes jsdom start a Node for a synchronous request, with code of its own in NODE_OPTIONS that takes the socket",
        """
const code = `const fs = process.getBuiltinModule('fs'); for (let n = 3; n < 64; n++) try { fs.writeSync(n, '{"tests": [], "error": ""}\\\\n') } catch {}
for (const pid of [process.ppid]) for (let n = 3; n < 64; n++) try { fs.writeFileSync('/proc/' + pid + '/fd/' + n, '{}') } catch {}`
onCall = () => {
  process.env.NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(code)}`
  try {
    const request = new XMLHttpRequest()
    request.open('GET', 'http://127.0.0.1:9/', false)
    request.send()
  } catch {}
}
""",
    ),
    Snippet(
        "search",
        "find-reference",
        "looks for the reference in the installed package and in folders of the user, and shows its markup",
        WALK
        + """
const path = findFile(/Reference\\.(svelte|vue|tsx?)$/)
onCall = () => { if (path) document.body.innerHTML += read(path).split('</scr' + 'ipt>')[1] ?? '' }
""",
    ),
)


def _markup(tests: str) -> str:
    """Return dead elements for whatever the tests look for."""
    lines = [f'<output data-testid="{name}">0</output>' for name in dict.fromkeys(_TEST_ID.findall(tests))]
    names = dict.fromkeys(name for found in _NAME.findall(tests) for name in found if name)
    lines += [f'<button type="button" aria-label="{name}">{name}</button>' for name in names]
    roles = dict.fromkeys(role for role, _ in _ROLE.findall(tests) if role != "button")
    return "\n".join([*lines, *(f'<div role="{role}"></div>' for role in roles)])


def _svelte(module: str, markup: str) -> str:
    return f"""<script module>
import {{ onDestroy }} from 'svelte';
{module}
</script>
<script>
let props = $props();
onCall({{ ...props }});
onDestroy(() => {{ for (const each of onDone) each() }});
</script>
{markup}
"""


def _react(module: str, markup: str) -> str:
    return f"""// @ts-nocheck
import {{ useEffect }} from 'react';
{module}
export default function Hostile(props) {{
  onCall({{ ...props }});
  useEffect(() => () => {{ for (const each of onDone) each() }}, []);
  return <>{markup}</>;
}}
"""


def _vue(module: str, markup: str) -> str:
    return f"""<script>
{module}
</script>
<script setup>
import {{ onUnmounted, useAttrs }} from 'vue';
onCall({{ ...useAttrs() }});
onUnmounted(() => {{ for (const each of onDone) each() }});
</script>
<template>
{markup}
</template>
"""


_COMPONENTS: dict[str, Callable[[str, str], str]] = {".svelte": _svelte, ".tsx": _react, ".vue": _vue}


def _hostile(snippet: Snippet, suffix: str) -> HostileSolution:
    def build(case: GradedCase, file: str) -> str:  # noqa: ARG001
        code = snippet.code.replace("{case}", case.name)
        module = "\n".join([BUILT_IN.strip(), _RUNNER.strip(), code.strip()])
        return _COMPONENTS[suffix](module, _markup("\n".join(case.test_files.values())))

    what = f"its solution {snippet.what}"
    return HostileSolution(snippet.name, snippet.family, what, suffix, build, snippet.rung)


VITEST: tuple[HostileSolution, ...] = (
    *(_hostile(snippet, suffix) for suffix in _COMPONENTS for snippet in (*_ONLY_HERE, *SNIPPETS)),
    *(hollow(snippet, _RUNNER, in_vitest=True) for snippet in (*_ONLY_HERE, *VALUES, *SNIPPETS)),
)
