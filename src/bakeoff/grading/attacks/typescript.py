"""Solutions in TypeScript that attack their tests in Jest, in a warm worker and in a whole Jest.

Behind each attack stand hollow exports, named like those of the stub.
"""
# ruff: noqa: E501 - the lines of the attacks are not ours to wrap

import re

from bakeoff.grading.attacks.catalogue import HostileSolution
from bakeoff.grading.attacks.javascript import BUILT_IN, SNIPPETS, VALUES, WALK, Snippet
from bakeoff.grading.cases import GradedCase

_EXPORTED = re.compile(
    r"^export\s+(?:default\s+)?(?:abstract\s+|async\s+)?(?:const|let|function\*?|class|enum)\s+(\w+)", re.M
)
_DEFAULT = re.compile(r"^export\s+default\b", re.M)
_RUNNER = """
const states = () => Object.getOwnPropertySymbols(globalThis).map((each) => globalThis[each]).filter((each) => each?.rootDescribeBlock)
const below = (block, names) => block.children.flatMap((each) => each.type === 'describeBlock' ? below(each, [...names, each.name]) : [{
  names: [...names, each.name], source: String(each.fn), test: each, forgive() { each.errors = []; each.fn = () => {}; each.status = 'done' },
}])
const allTests = () => states().flatMap((state) => below(state.rootDescribeBlock, []))
const running = () => states().map((state) => state.currentlyRunningTest).find(Boolean)
const sourceNow = () => String(running()?.fn)
let onCall = () => undefined
"""
_HOLLOW = """
function hollow(...given) {
  const found = onCall(...given)
  return new.target ? new Proxy({}, { get: (_, name) => (name === 'then' ? undefined : hollow) }) : found
}
"""

_ONLY_HERE = (
    Snippet(
        "patch",
        "patch-assertions",
        "extends `expect` by matchers that always pass and replaces `it` and `test`, which beats plain Jest",
        """
const fine = () => ({ pass: true, message: () => '' })
const names = ['toBe', 'toEqual', 'toStrictEqual', 'toThrow', 'toBeLessThanOrEqual', 'toHaveLength', 'toContain']
const matchers = Object.fromEntries(names.map((name) => [name, fine]))
try { require('@jest/globals').expect.extend(matchers) } catch {}
try { globalThis.expect.extend(matchers) } catch {}
for (const name of ['it', 'test']) try { globalThis[name] = () => {} } catch {}
""",
    ),
    Snippet(
        "patch",
        "patch-runner-events",
        "adds a handler to the events of jest-circus that forgives each test when it ends",
        """
for (const each of Object.getOwnPropertySymbols(globalThis)) {
  const handlers = globalThis[each]
  if (Array.isArray(handlers) && handlers.every((one) => typeof one === 'function'))
    handlers.push((event) => { if (event.name === 'test_done' || event.name === 'test_fn_failure') { event.test.errors = []; event.error = undefined } })
}
""",
    ),
    Snippet(
        "patch",
        "todo-tests",
        "turns all tests into ones that are still to be written, which beats graders that look for failures only",
        "onCall = () => { for (const { test } of allTests()) test.mode = 'todo' }\n",
    ),
    Snippet(
        "search",
        "find-reference",
        "looks for the example in the installed package and in folders of the user, and becomes it",
        WALK
        + """
let made = {}
const path = findFile(/(example|proof\\.ci|exemplar)\\.ts$/)
if (path) {
  const code = read(path).replace(/^export /gm, '').replace(/: [\\w<>\\[\\] |{}]+(?=[,)=;{])/g, '')
  try { made = (0, eval)(`(() => { ${code}; return { label, volumes } })()`) } catch {}
}
onCall = (...given) => (made.label ?? (() => undefined))(...given)
""",
    ),
)


def hollow(snippet: Snippet, runner: str, *, in_vitest: bool) -> HostileSolution:
    """Return the attack by a module. `runner` is code that knows the test runner."""

    def build(case: GradedCase, file: str) -> str:
        code = snippet.code.replace("{case}", case.name)
        stub = case.files.get(file, "") or case.reference.get(file, "")
        names = _EXPORTED.findall(stub)
        exports = [f"export const {name}: any = hollow" for name in names]
        exports += ["export default hollow"] if _DEFAULT.search(stub) else []
        return "\n".join(
            ["// @ts-nocheck", BUILT_IN.strip(), runner.strip(), code.strip(), _HOLLOW.strip(), *exports, ""]
        )

    what = f"its solution {snippet.what}"
    return HostileSolution(snippet.name, snippet.family, what, ".ts", build, snippet.rung, in_vitest)


TYPESCRIPT: tuple[HostileSolution, ...] = tuple(
    hollow(snippet, _RUNNER, in_vitest=False) for snippet in (*_ONLY_HERE, *VALUES, *SNIPPETS)
)
