"""What the `cheat` subject tries at this door, in the language of the component that is asked for."""

from collections.abc import Mapping
from pathlib import PurePosixPath

from bakeoff.plan import Case
from bakeoff.subjects.cheat import Attack, Submission

_EXITS = {".svelte": "<script>\nprocess.exit(0);\n</script>\n", ".py": "import os\nos._exit(0)\n"}
_LOOPS = {".svelte": "<script>\nwhile (true) {}\n</script>\n", ".py": "while True:\n    pass\n"}
_PATCHES = {
    ".svelte": (
        "<script>\nconst always = new Proxy(() => always, { get: () => always });\n"
        "globalThis.expect = always;\n</script>\n"
    ),
    ".py": "import pytest\n\npytest.raises = lambda *given, **more: None\n",
}


def _answer(case: Case, texts: Mapping[str, str]) -> Submission:
    return Submission(files={name: texts.get(PurePosixPath(name).suffix, "") for name in case.collect})


def exit_early(case: Case) -> Submission:
    """The component ends the process with exit code 0 before any test can run."""
    return _answer(case, _EXITS)


def loop_forever(case: Case) -> Submission:
    """The component never lets a test begin."""
    return _answer(case, _LOOPS)


def patch_expect(case: Case) -> Submission:
    """The component has every assertion succeed."""
    return _answer(case, _PATCHES)


ATTACKS: Mapping[str, Attack] = {
    "exit-early": exit_early,
    "loop-forever": loop_forever,
    "patch-expect": patch_expect,
}
