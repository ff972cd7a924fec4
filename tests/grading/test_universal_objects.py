"""Answers that agree or disagree with everything, on suites whose expected texts are as short as `"0"`."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from bakeoff.engine.resources import open_resources
from bakeoff.grading.cases import graded_case, toolchains_for
from bakeoff.grading.grades import Grade, grade_answer
from bakeoff.grading.references import OpenReferences, reference_of
from bakeoff.plan import Case, Grading
from bakeoff.sandbox import choose_sandbox

pytestmark = pytest.mark.full

PYTHON = Case(
    id="short texts",
    prompt="",
    hidden={
        "test_show.py": "from show import is_even, show\n\n\n"
        + "\n\n".join(f'def test_{n}():\n    assert "{n}" in show({n})\n' for n in (0, 1, 7))
        + '\n\ndef test_whole():\n    assert show(4) == "<4>"\n'
        + "\n\ndef test_even():\n    assert is_even(12)\n\n\ndef test_odd():\n    assert not is_even(7)\n"
    },
    reference={"show.py": "def show(n):\n    return f'<{n}>'\n\n\ndef is_even(n):\n    return n % 2 == 0\n"},
    grading=Grading(runner="pytest", solution=("show.py",), tests=("test_show.py",), seconds=30.0),
)
_BOTH = "\ndef show(n):\n    return A()\n\n\ndef is_even(n):\n    return A()\n"
OBJECTS = {
    "it contains everything": "class A:\n    __contains__ = __eq__ = lambda *a: True\n    __hash__ = None\n",
    "it contains nothing": "class A:\n    __contains__ = __eq__ = __bool__ = lambda *a: False\n    __hash__ = None\n",
    "a text that contains everything": (
        "class A(str):\n    __contains__ = __eq__ = lambda *a: True\n    __hash__ = None\n"
    ),
    "a text that is never another one": (
        "class A(str):\n    __contains__ = __eq__ = __ne__ = lambda *a: True\n    __hash__ = None\n"
    ),
    "a list of itself": (
        "class A(list):\n    __iter__ = lambda s: iter([s])\n    __eq__ = __contains__ = lambda *a: True\n"
        "    __hash__ = None\n"
    ),
    "every method agrees": (
        "class M(type):\n    def __getattr__(c, name):\n        return lambda *a: True\n"
        "class A(metaclass=M):\n"
        "    __eq__ = __ne__ = __contains__ = __lt__ = __gt__ = __le__ = __ge__ = lambda *a: True\n"
        "    __getattr__ = lambda s, name: A()\n    __call__ = lambda *a, **k: A()\n    __hash__ = None\n"
    ),
    "it agrees at first, and disagrees later": (
        "class A:\n    asked = 0\n    def __contains__(s, _):\n        A.asked += 1\n        return A.asked % 2 == 1\n"
        "    __eq__ = __bool__ = lambda s, *a: s.__contains__(0)\n    __hash__ = None\n"
    ),
    "all digits at once": "class A(str):\n    __new__ = lambda c: str.__new__(c, '0123456789')\n",
}
BILLS = {
    "invoice": {"total": 12, "items": 3},
    "parcel": {"weight": 50, "price": 9},
    "weather": {"mean": 14, "top": 19},
}
SVELTE = Case(
    id="short texts in Svelte",
    prompt="",
    hidden={
        "test.ts": (
            'import { render, screen } from "@testing-library/svelte";\n'
            'import userEvent from "@testing-library/user-event";\n'
            'import { describe, expect, it } from "vitest";\n'
            'import Component from "./Component.svelte";\n\n'
            'describe("button", () => {\n'
            + "".join(
                f'  it("counts {clicks}", async () => {{\n    render(Component);\n'
                f'    const button = screen.getByRole("button");\n'
                f"    for (let n = 0; n < {clicks}; n++) await userEvent.click(button);\n"
                f'    expect(button).toHaveTextContent("{clicks}");\n  }});\n'
                for clicks in (0, 1, 2, 3)
            )
            + "});\n"
        )
    },
    reference={
        "Component.svelte": "<script>\n  let count = $state(0);\n</script>\n"
        "<button onclick={() => count++}>{count}</button>\n"
    },
    grading=Grading(runner="vitest", solution=("Component.svelte",), tests=("test.ts",), seconds=60.0),
)
SCRIPTS = {
    "texts include everything": "String.prototype.includes = () => true; String.prototype.indexOf = () => 0;",
    "nothing is included": "String.prototype.includes = () => false;",
    "a patched textContent": (
        "const all = { toString: () => '0123456789', includes: () => true, replace() { return this; }, trim() "
        "{ return this; } }; Object.defineProperty(Node.prototype, 'textContent', { get: () => all, set() {} });"
    ),
    "all digits at once": (
        "Object.defineProperty(Node.prototype, 'textContent', { get: () => '0123456789', set() {} });"
    ),
    "a text with a property of its own": (
        "const text = Object.assign(new String('0'), { includes: () => true, match: () => ['0'], replace() "
        "{ return this; }, trim() { return this; } }); Object.defineProperty(Node.prototype, 'textContent', "
        "{ get: () => text, set() {} });"
    ),
    "a global expect": (
        "const yes = new Proxy(() => yes, { get: (_, name) => (name === 'then' ? undefined : yes) }); "
        "globalThis.expect = yes;"
    ),
    "every matcher agrees": (
        "const { expect } = await import('vitest'); expect.extend({ toHaveTextContent: () => "
        "({ pass: true, message: () => '' }) });"
    ),
    "every matcher agrees with negations as well": (
        "const { expect } = await import('vitest'); expect.extend({ toHaveTextContent() { return "
        "{ pass: !this.isNot, message: () => '' }; } });"
    ),
    "a getter of the prototype": (
        "Object.defineProperty(HTMLElement.prototype, 'textContent', { get: () => ({ includes: () => true, replace() "
        "{ return this; }, trim() { return this; }, match: () => ['x'] }) });"
    ),
    "a shadowed body": (
        "const body = document.body; Object.defineProperty(document, 'body', { get: () => new Proxy(body, { get: "
        "(on, name) => (name === 'textContent' ? '0123456789' : Reflect.get(on, name, on)) }) });"
    ),
    "patterns match everything": "RegExp.prototype.test = () => true; RegExp.prototype.exec = () => ['x'];",
}


KEYS = Case(
    id="values behind keys",
    prompt="",
    hidden={
        "test_bill.py": "from bill import invoice, parcel, weather\n"
        + "".join(
            f"\n\ndef test_{name}():\n    expected = {expected}\n    got = {name}()\n"
            + "".join(f'    assert got["{key}"] == expected["{key}"]\n' for key in expected)
            for name, expected in BILLS.items()
        )
    },
    reference={"bill.py": "\n".join(f"def {name}():\n    return {bill}\n" for name, bill in BILLS.items())},
    grading=Grading(runner="pytest", solution=("bill.py",), tests=("test_bill.py",), seconds=30.0),
)
"""A bill in place of another one has none of the keys, so that the test fails before it asserts anything."""


async def grades(case: Case, answers: Mapping[str, Mapping[str, str]], rung: str, cache: Path) -> dict[str, Grade]:
    graded = graded_case(case)
    async with open_resources(toolchains_for([case], lambda: choose_sandbox(rung), 2)) as opened:
        resources = {**opened.opened, "references": OpenReferences(cache, "verify")}
        reference = await reference_of(graded, resources)
        assert reference is not None
        assert reference.unproven == ()
        return {name: await grade_answer(graded, files, resources) for name, files in answers.items()}


@pytest.mark.parametrize("rung", ["process", "bwrap"])
async def test_objects_that_agree_or_disagree_with_everything_pass_no_suite(rung: str, tmp_path: Path) -> None:
    answers = {name: {"show.py": text + _BOTH} for name, text in OBJECTS.items()}
    found = await grades(PYTHON, {"right": PYTHON.reference, **answers}, rung, tmp_path)
    assert found.pop("right").ok
    assert [name for name, grade in found.items() if grade.ok] == []
    assert {name: list(grade.passed) for name, grade in found.items() if grade.passed.total() > 2} == {}


@pytest.mark.parametrize("rung", ["process", "bwrap"])
async def test_components_that_make_every_assertion_agree_pass_no_suite(rung: str, tmp_path: Path) -> None:
    button = "<script module>\n{}\n</script>\n<button>?</button>\n"
    answers = {name: {"Component.svelte": button.replace("{}", text)} for name, text in SCRIPTS.items()}
    found = await grades(SVELTE, {"right": SVELTE.reference, **answers}, rung, tmp_path)
    assert found.pop("right").ok
    assert [name for name, grade in found.items() if grade.ok] == []
    assert {name: list(grade.passed) for name, grade in found.items() if grade.passed} == {}


async def test_an_object_with_every_key_is_found_out_where_twins_could_fail_by_themselves(tmp_path: Path) -> None:
    every = "class A:\n    __eq__ = lambda *a: True\n    __getitem__ = lambda *a: A()\n\n\n"
    answers = {"every key": {"bill.py": f"{every}invoice = parcel = weather = lambda: A()\n"}}
    for draw in range(3):
        found = await grades(KEYS, {"right": KEYS.reference, **answers}, "process", tmp_path / str(draw))
        assert found["right"].ok
        assert not found["every key"].passed
