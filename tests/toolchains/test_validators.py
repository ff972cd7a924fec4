"""Validators in both languages: what they say, and whose fault it is when they say nothing."""

from typing import Literal

import pytest

from bakeoff.errors import GraderError
from bakeoff.sandbox import choose_sandbox
from bakeoff.toolchains.outcome import ValidationOutcome
from bakeoff.toolchains.pytest_runner import PytestToolchain
from bakeoff.toolchains.validators import validate
from bakeoff.toolchains.vitest import OpenVitest

pytestmark = [pytest.mark.full, pytest.mark.asyncio(loop_scope="module")]

Kind = Literal["ts", "py"]
SECONDS = 60.0

GOOD: dict[Kind, str] = {
    "ts": """
import type { ValidationResult } from '../../lib/validator-runner';
import { Result } from './only-a-type';
export function validate(code: string): ValidationResult {
  const errors: string[] = [];
  if (code.includes('export let')) errors.push('use $props()' as string);
  const result: Result = { valid: errors.length === 0, errors };
  return result;
}
""",
    "py": """
def validate(code: str) -> dict:
    print("noise")
    errors = ["use $props()"] if "export let" in code else []
    return {"valid": not errors, "errors": errors}
""",
}
BAD: dict[str, tuple[Kind, str, str]] = {
    "throws": ("ts", "export function validate() { throw new Error('oh no'); }", "oh no"),
    "throws while it is loaded": ("ts", "throw new Error('early'); export const validate = 1;", "early"),
    "does not compile": ("ts", "export function validate( {", "does not compile"),
    "exports nothing": ("ts", "const a = 1;", "exports no function"),
    "returns nothing": ("ts", "export function validate() {}", "must return"),
    "returns no texts": ("ts", "export function validate() { return { valid: false, errors: [1] }; }", "must return"),
    "exits": ("ts", "export function validate() { process.exit(0); }", "process.exit"),
    "hangs": ("ts", "export function validate() { while (true) {} }", "within 3 s"),
    "raises": ("py", "def validate(code): raise ValueError('oh no')", "ValueError: oh no"),
    "is no Python": ("py", "def validate(", "SyntaxError"),
    "defines nothing": ("py", "a = 1", "defines no function"),
    "gives nothing back": ("py", "def validate(code): pass", "must return"),
    "gives back what is no JSON": ("py", "def validate(code): return {1, 2}", "TypeError"),
    "leaves": ("py", "import os\ndef validate(code): os._exit(0)", "without an answer"),
    "never ends": ("py", "def validate(code):\n    while True: pass", "timeout limit"),
}


@pytest.mark.parametrize("kind", ["ts", "py"])
async def test_a_validator_says_what_is_wrong(vitest: OpenVitest, kind: Kind) -> None:
    assert await validate(vitest, "let a;", GOOD[kind], kind, SECONDS) == ValidationOutcome(valid=True)
    outcome = await validate(vitest, "export let a;", GOOD[kind], kind, SECONDS)
    assert outcome == ValidationOutcome(valid=False, errors=("use $props()",))


@pytest.mark.parametrize("name", BAD)
async def test_a_validator_without_a_proper_answer_is_the_graders_fault(vitest: OpenVitest, name: str) -> None:
    kind, source, says = BAD[name]
    with pytest.raises(GraderError, match=says):
        await validate(vitest, "code", source, kind, 3.0 if name in {"hangs", "never ends"} else SECONDS)


async def test_a_validator_may_be_asynchronous_and_use_the_svelte_compiler(vitest: OpenVitest) -> None:
    source = """
import { parse } from 'svelte/compiler';
export async function validate(code: string) {
  const tree = parse(code, { modern: true });
  return { valid: tree.fragment.nodes.length > 0, errors: [] };
}
"""
    assert (await vitest.validate("<p>hello</p>", source, SECONDS)).valid
    assert not (await vitest.validate("", source, SECONDS)).valid


async def test_a_python_validator_sees_nothing_of_the_host(vitest: OpenVitest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_KEY", "sk-planted")
    source = "import os\ndef validate(code): return {'valid': False, 'errors': [str(dict(os.environ))]}"
    outcome = await validate(vitest, "", source, "py", SECONDS)
    assert "PATH" in outcome.errors[0]
    assert "sk-planted" not in outcome.errors[0]


async def test_typescript_needs_the_toolchain_that_has_node() -> None:
    async with PytestToolchain(lambda: choose_sandbox("auto")).open() as python:
        with pytest.raises(GraderError, match="needs the Vitest toolchain"):
            await validate(python, "", GOOD["ts"], "ts", SECONDS)
        assert (await validate(python, "", GOOD["py"], "py", SECONDS)).valid
