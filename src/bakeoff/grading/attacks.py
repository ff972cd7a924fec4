"""Texts of the `cheat` subject: solutions that try to pass without solving anything, by the ending of their file."""

from collections.abc import Mapping
from pathlib import PurePosixPath

EXITS = {
    ".svelte": "<script>\nprocess.exit(0);\n</script>\n",
    ".py": "import os\nos._exit(0)\n",
    ".ts": "process.exit(0)\nexport {}\n",
}
"""End the process with exit code 0 before any test can run."""
LOOPS = {
    ".svelte": "<script>\nwhile (true) {}\n</script>\n",
    ".py": "while True:\n    pass\n",
    ".ts": "for (;;) {}\nexport {}\n",
}
"""Never let a test begin."""
PATCHES = {
    ".svelte": (
        "<script>\nconst always = new Proxy(() => always, { get: () => always });\n"
        "globalThis.expect = always;\n</script>\n"
    ),
    ".py": (
        "import _pytest.python\nimport pytest\n\n"
        "_pytest.python.Function.runtest = lambda self: None\npytest.raises = lambda *given, **more: None\n\n"
    ),
    ".ts": (
        "const fine = () => ({ pass: true, message: () => '' })\n"
        "const names = ['toBe', 'toEqual', 'toStrictEqual', 'toThrow', 'toBeLessThanOrEqual', 'toHaveLength']\n"
        "const matchers = Object.fromEntries(names.map((name) => [name, fine]))\n"
        "try { require('@jest/globals').expect.extend(matchers) } catch {}\n"
        "try { (globalThis as any).expect.extend(matchers) } catch {}\n"
        "for (const name of ['it', 'test']) try { (globalThis as any)[name] = () => {} } catch {}\n"
    ),
}
"""Make every assertion succeed. Without a guard, a stub behind these lines would pass every test."""


def text_for(name: str, texts: Mapping[str, str]) -> str:
    """Return the text in the language of a file, or an empty one for a language without it."""
    return texts.get(PurePosixPath(name).suffix, "")
