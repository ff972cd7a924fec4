"""Two small suites in Python and one in Svelte, written where a test wants them, and models that play a script."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ADDER = {
    "suite.toml": 'runner = "pytest"\ncomponent = "adder.py"\nreference = "reference.py"\ntest = "test_adder.py"\n',
    "prompt.md": "Write `add(a, b)`.\n",
    "reference.py": "def add(a, b):\n    return a + b\n",
    "wrong.py": "def add(a, b):\n    return a\n",
    "test_adder.py": (
        "from adder import add\n\n\n"
        "def test_small():\n    assert add(1, 2) == 3\n\n\n"
        "def test_nothing_to_add():\n    assert add(5, 0) == 5\n"
    ),
}
SHOUT = {
    "suite.toml": 'runner = "pytest"\ncomponent = "shout.py"\nreference = "reference.py"\ntest = "test_shout.py"\n',
    "prompt.md": "Write `shout(text)` without `upper`.\n",
    "reference.py": "def shout(text):\n    return text.swapcase() if text.islower() else text\n",
    "test_shout.py": "from shout import shout\n\n\ndef test_shout():\n    assert shout('ab') == 'AB'\n",
    "validator.py": (
        "def validate(code):\n"
        "    if 'BROKEN' in code:\n        raise RuntimeError('no idea')\n"
        "    used = 'upper' in code\n"
        "    return {'valid': not used, 'errors': ['it uses upper'] if used else []}\n"
    ),
}
WORDS = {
    "suite.toml": (
        'runner = "junit"\ncomponent = "words.txt"\nreference = "reference.txt"\ntest = "expected.txt"\n'
        'files = ["check.py"]\ncommand = ["python3", "check.py"]\ncanary = "must fail"\n'
    ),
    "prompt.md": "Write two words, one on each line.\n",
    "reference.txt": "one\ntwo\n",
    "wrong.txt": "one\nthree\n",
    "expected.txt": "one\ntwo\n",
    "check.py": (
        "wanted, found = [open(name).read().split() for name in ('expected.txt', 'words.txt')]\n"
        "found += [''] * len(wanted)\n"
        "def case(name, fine):\n"
        "    inside = '' if fine else '<failure message=\"another word\"/>'\n"
        '    return f\'<testcase classname="words" name="{name}">{inside}</testcase>\'\n'
        "cases = [case(name, name == word) for name, word in zip(wanted, found)]\n"
        "cases.append('<testcase name=\"must fail\"><failure/></testcase>')\n"
        "open('report.xml', 'w').write(f'<testsuite>{\"\".join(cases)}</testsuite>')\n"
    ),
}
BUTTON = {
    "prompt.md": "A button that counts its clicks.\n",
    "Reference.svelte": (
        "<script>\n  let count = $state(0);\n</script>\n<button onclick={() => count++}>{count}</button>\n"
    ),
    "wrong.svelte": "<button>0</button>\n",
    "test.ts": (
        'import { render, screen } from "@testing-library/svelte";\n'
        'import userEvent from "@testing-library/user-event";\n'
        'import { describe, expect, it } from "vitest";\n'
        'import Component from "./Component.svelte";\n\n'
        'describe("button", () => {\n'
        '  it("starts at none", () => {\n'
        "    render(Component);\n"
        '    expect(screen.getByRole("button")).toHaveTextContent("0");\n'
        "  });\n"
        '  it("counts", async () => {\n'
        "    render(Component);\n"
        '    await userEvent.click(screen.getByRole("button"));\n'
        '    expect(screen.getByRole("button")).toHaveTextContent("1");\n'
        "  });\n"
        "});\n"
    ),
    "validator.ts": (
        "export function validate(code: string): { valid: boolean; errors: string[] } {\n"
        "  const old = code.includes('on:click');\n"
        "  return { valid: !old, errors: old ? ['write onclick'] : [] };\n"
        "}\n"
    ),
}


def write_suites(folder: Path, **suites: dict[str, str]) -> Path:
    for name, files in suites.items():
        (folder / name).mkdir(parents=True)
        for file, text in files.items():
            (folder / name / file).write_text(text)
    return folder


def scripted(path: Path, replies: Sequence[dict[str, Any]]) -> str:
    """The name of a model that gives these replies."""
    path.write_text(json.dumps({"replies": replies}))
    return f"scripted:{path}"


def calling(tool: str, content: str, **more: Any) -> dict[str, Any]:
    return {"call": [{"name": tool, "arguments": {"content": content}}], **more}
