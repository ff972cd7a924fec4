"""Read `suite.toml`: the files of a suite and how it is graded. What it leaves out is found from the files."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue, PositiveFloat, ValidationError, model_validator

from bakeoff._kernel.files import open_file
from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import in_our_words
from bakeoff.plan import Framework, RelativePath, TakenPath

RunnerName = Literal["vitest", "pytest", "junit"]

SUITE_FILE = "suite.toml"
TESTS = ("test.ts", "test.tsx", "test.svelte.ts")
COMPONENTS = {
    "Reference.svelte": "Component.svelte",
    "Reference.tsx": "Component.tsx",
    "Reference.vue": "Component.vue",
    "Reference.ts": "solution.ts",
}
"""The names of references that need no `suite.toml`, and the file that the tests then import."""
_REFERENCES = {
    "svelte": "Reference.svelte",
    "react": "Reference.tsx",
    "vue": "Reference.vue",
    "typescript": "Reference.ts",
}
_IMPORTED = re.compile(r"""["']\./(Component\.svelte|Component\.vue|Component|solution)(?:\.[jt]sx?)?["']""")
_IMPORTS = {"Component.svelte": "svelte", "Component.vue": "vue", "Component": "react", "solution": "typescript"}
_LARGEST = 1024 * 1024  # bytes of one file of a suite
_VALIDATOR_ENDINGS = (".ts", ".py")  # they decide what runs it


class Unusable(Exception):
    """A folder cannot be used as a suite, for this reason."""


class Layout(FrozenModel):
    """The contents of `suite.toml`. The defaults are the files of a Svelte suite."""

    runner: RunnerName = "vitest"
    component: TakenPath = Field(
        default="Component.svelte", description="the file that tests import and the model hands in"
    )
    reference: RelativePath = "Reference.svelte"
    test: RelativePath | None = None
    prompt: RelativePath = "prompt.md"
    framework: Framework | None = Field(
        default=None, description="for runner `vitest`; by default the ending of the component decides"
    )
    browser: bool = Field(default=False, description="for runner `vitest`: run the tests in Chromium, with layout")
    language: str | None = Field(default=None, description="of the component; by default its ending decides")
    validator: RelativePath | None = None
    wrong: RelativePath | None = Field(default=None, description="an answer that must fail, for `bakeoff verify`")
    files: tuple[RelativePath, ...] = Field(default=(), description="further files that the tests need")
    command: tuple[str, ...] = Field(default=(), description="for runner `junit`: the program that runs the tests")
    report: TakenPath = Field(default="report.xml", description="where that program writes JUnit XML")
    canary: str | None = Field(default=None, description="for runner `junit`: the name of a test that must fail")
    seconds: PositiveFloat = Field(default=30.0, description="limit of one run of the tests")
    processes: bool | None = Field(
        default=None,
        description="for runner `pytest`: answers may start processes; by default if tests or reference do",
    )

    @model_validator(mode="after")
    def _check_fields(self) -> "Layout":
        if (self.runner == "junit") != bool(self.command):
            raise ValueError("`command` is required for runner 'junit', and not allowed for others")
        if (self.framework is not None or self.browser) and self.runner != "vitest":
            raise ValueError("`framework` and `browser` are for runner 'vitest' only")
        if self.canary is not None and self.runner != "junit":
            raise ValueError("`canary` is for runner 'junit' only: the others need none")
        if self.validator is not None and Path(self.validator).suffix not in _VALIDATOR_ENDINGS:
            raise ValueError(f"`validator` is {self.validator!r}, and must end in {' or '.join(_VALIDATOR_ENDINGS)}")
        graded = [name for name in (self.test, self.validator, *self.files) if name]
        if self.component in graded or len(set(graded)) < len(graded):
            raise ValueError("component, test, validator and files must have different names")
        return self


def read_layout(directory: Path) -> Layout:
    """Read the layout of a suite from its `suite.toml`, if it has one, and from the names of its files."""
    path = directory / SUITE_FILE
    if not path.exists():
        return Layout.model_validate(_names(directory, {}))
    if not path.is_file():
        raise Unusable(f"{path} is not a file")
    text = text_of(path)
    try:
        written = tomllib.loads(text)
        Layout.model_validate(written)  # first, so that only what was written is complained about
        return Layout.model_validate({**_names(directory, written), **written})
    except tomllib.TOMLDecodeError as error:
        raise Unusable(f"{path}: {error}") from error
    except ValidationError as error:
        raise Unusable("; ".join(_problems(path, text, error))) from error


def _names(directory: Path, written: Mapping[str, JsonValue]) -> dict[str, str]:
    """Return the names of reference and component, and of a Python test, as far as `suite.toml` leaves them out."""
    if written.get("runner") == "pytest":
        component = str(written.get("component", "solution.py"))
        return {"reference": "reference.py", "component": component, "test": f"test_{Path(component).stem}.py"}
    reference = str(written.get("reference") or _reference(directory, written))
    return {
        "reference": reference,
        "component": COMPONENTS.get(f"Reference{Path(reference).suffix}", "Component.svelte"),
    }


def _reference(directory: Path, written: Mapping[str, JsonValue]) -> str:
    """Return the name of the reference: the one that fits component and framework, or the only one that is there."""
    found = [name for name in COMPONENTS if (directory / name).is_file()]
    by_ending = f"Reference{Path(str(written.get('component', ''))).suffix}"
    by_framework = _REFERENCES.get(str(written.get("framework")), "")
    for name in (by_ending, by_framework):
        if name in found:
            return name
    if by_framework:  # these two are of no other framework; a hook of React may be in Reference.ts
        found = [name for name in found if name not in {"Reference.svelte", "Reference.vue"}]
    if len(found) > 1:
        raise Unusable(
            f"it has {' and '.join(found)} in {directory}: keep one, or name it as `reference` in {SUITE_FILE}"
        )
    expected = by_ending if by_ending in COMPONENTS else by_framework or _expected_reference(directory)
    return found[0] if found else expected


def _expected_reference(directory: Path) -> str:
    """Return the name of a reference that is missing, as the tests or the wrong answer tell it."""
    test = present_of(directory, TESTS)
    if test and (imported := _IMPORTED.search(text_of(directory / test))):
        return _REFERENCES[_IMPORTS[imported[1]]]
    if wrong := present_of(directory, tuple(f"wrong{Path(name).suffix}" for name in COMPONENTS)):
        return f"Reference{Path(wrong).suffix}"
    return "Reference.tsx" if test == "test.tsx" else "Reference.svelte"


def _problems(path: Path, text: str, error: ValidationError) -> Iterator[str]:
    keys = list(Layout.model_fields)
    for item in error.errors(include_url=False):
        key = str(item["loc"][0]) if item["loc"] else ""
        place = f"{path}:{_line_of(key, text)}" if key else str(path)
        if item["type"] == "extra_forbidden":
            near = get_close_matches(key, keys, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(keys)}"
            yield f"{place}: unknown key {key!r}; {hint}"
        else:
            yield f"{place}: {key + ': ' if key else ''}{in_our_words(item)}"


def _line_of(key: str, text: str) -> int:
    pattern = re.compile(rf"""\s*\[*\s*["']?{re.escape(key)}["']?\s*[=.\]]""")
    return next((number for number, line in enumerate(text.splitlines(), 1) if pattern.match(line)), 1)


def is_file(path: Path) -> bool:
    """Return whether there is such a file. There is none with a name that is too long to have one."""
    try:
        return path.is_file()
    except OSError:
        return False


def present_of(directory: Path, names: tuple[str, ...]) -> str | None:
    """Return the first of some names that a file of the folder has."""
    return next((name for name in names if (directory / name).is_file()), None)


def text_of(path: Path) -> str:
    """Return the text of a file of a suite. Raise `Unusable` where it has none."""
    try:
        with open_file(path) as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise Unusable(f"{path} has more than {_LARGEST:,} bytes")
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise Unusable(f"{path} is not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise Unusable(f"{path} cannot be read: {error.strerror}") from error
