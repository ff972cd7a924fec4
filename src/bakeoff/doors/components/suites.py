"""Find and read suites: folders with a prompt, a reference and tests.

`suite.toml` names the files of a suite and says how it is graded. Anything that it does not say is
inferred from the names of the files.
"""

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue, PositiveFloat, ValidationError, model_validator

from bakeoff import bundled
from bakeoff._kernel.files import os_errors_explained, read_text
from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import in_our_words, near_names
from bakeoff.errors import UsageError
from bakeoff.plan import Files, Framework, RelativePath, TakenPath

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
_MAX_SIZE = 1024 * 1024  # bytes of one file of a suite
_VALIDATOR_ENDINGS = (".ts", ".py")  # they decide what runs it


class Unusable(Exception):
    """Raised for a folder that cannot be used as a suite; the message says why."""


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
    """Read the layout of a suite from its `suite.toml`, if it has one, and from the names of its files.

    The file has precedence over the names. Raises `Unusable`, with the lines of all problems, if
    the file is invalid.
    """
    path = directory / SUITE_FILE
    if not path.exists():
        return Layout.model_validate(_names(directory, {}))
    if not path.is_file():
        raise Unusable(f"{path} is not a file")
    text = text_of(path)
    try:
        written = tomllib.loads(text)
        Layout.model_validate(written)  # first, so that problems are reported only for written keys
        return Layout.model_validate({**_names(directory, written), **written})
    except tomllib.TOMLDecodeError as error:
        raise Unusable(f"{path}: {error}") from error
    except ValidationError as error:
        raise Unusable("; ".join(_problems(path, text, error))) from error


def _names(directory: Path, written: Mapping[str, JsonValue]) -> dict[str, str]:
    """Return the names of reference and component, and of a Python test, that `suite.toml` does not give."""
    if written.get("runner") == "pytest":
        component = str(written.get("component", "solution.py"))
        return {"reference": "reference.py", "component": component, "test": f"test_{Path(component).stem}.py"}
    reference = str(written.get("reference") or _reference(directory, written))
    return {
        "reference": reference,
        "component": COMPONENTS.get(f"Reference{Path(reference).suffix}", "Component.svelte"),
    }


def _reference(directory: Path, written: Mapping[str, JsonValue]) -> str:
    """Return the name of the reference: the one for the component and framework, or else the only one present."""
    found = [name for name in COMPONENTS if (directory / name).is_file()]
    by_ending = f"Reference{Path(str(written.get('component', ''))).suffix}"
    by_framework = _REFERENCES.get(str(written.get("framework")), "")
    for name in (by_ending, by_framework):
        if name in found:
            return name
    if by_framework:  # these two belong to one framework only; Reference.ts may be a React hook
        found = [name for name in found if name not in {"Reference.svelte", "Reference.vue"}]
    if len(found) > 1:
        raise Unusable(
            f"it has {' and '.join(found)} in {directory}: keep one, or name it as `reference` in {SUITE_FILE}"
        )
    expected = by_ending if by_ending in COMPONENTS else by_framework or _expected_reference(directory)
    return found[0] if found else expected


def _expected_reference(directory: Path) -> str:
    """Guess the name of a missing reference from the tests or the wrong answer."""
    test = present_of(directory, TESTS)
    if test and (imported := _IMPORTED.search(text_of(directory / test))):
        return _REFERENCES[_IMPORTS[imported[1]]]
    if wrong := present_of(directory, tuple(f"wrong{Path(name).suffix}" for name in COMPONENTS)):
        return f"Reference{Path(wrong).suffix}"
    return "Reference.tsx" if test == "test.tsx" else "Reference.svelte"


def _problems(path: Path, text: str, error: ValidationError) -> Iterator[str]:
    keys = list(Layout.model_fields)
    lines = text.splitlines()
    for item in error.errors(include_url=False):
        key = str(item["loc"][0]) if item["loc"] else ""
        assigned = re.compile(rf"""\s*\[*\s*["']?{re.escape(key)}["']?\s*[=.\]]""")
        line = next((number for number, line in enumerate(lines, 1) if assigned.match(line)), 1)
        place = f"{path}:{line}" if key else str(path)
        if item["type"] == "extra_forbidden":
            yield f"{place}: unknown key {key!r}{near_names(key, keys)}"
        else:
            yield f"{place}: {key + ': ' if key else ''}{in_our_words(item)}"


def present_of(directory: Path, names: tuple[str, ...]) -> str | None:
    """Return the first of these names that is a file in the folder."""
    return next((name for name in names if (directory / name).is_file()), None)


def text_of(path: Path) -> str:
    """Return the text of a file of a suite. Raise `Unusable` if it cannot be read as text."""
    return read_text(path, _MAX_SIZE, kind=Unusable).replace("\r\n", "\n")


DEFAULT_FOLDER = Path("tests")
_VALIDATORS = ("validator.ts", "validator.py")
_PICTURES = ("picture.ts", "picture.tsx", "picture.js", "picture.jsx")
_SIGNS = (*COMPONENTS, "prompt.md", *TESTS, SUITE_FILE)  # a folder with none of these is not a suite
_LANGUAGES = {
    ".svelte": "svelte",
    ".vue": "vue",
    ".py": "python",
    ".ts": "ts",
    ".tsx": "tsx",
    ".js": "js",
    ".jsx": "jsx",
}


def bundled_folder() -> Path:
    """Return the folder of the bundled suites."""
    return Path(bundled.__file__).parent / "components"


@dataclass(frozen=True, slots=True)
class ComponentSuite:
    """One suite, read completely, so that nothing is read again once a run has begun."""

    name: str
    directory: Path
    layout: Layout
    test_file: str
    prompt: str
    test_content: str
    reference: str
    validator_file: str | None = None
    validator: str | None = None
    wrong: str | None = None
    support: Files | None = None
    picture: Files | None = None

    @property
    def component_file(self) -> str:
        """Return the name of the file that the model writes."""
        return self.layout.component

    @property
    def language(self) -> str:
        """Return the language of the component, from `suite.toml` or else the file's suffix."""
        return self.layout.language or _LANGUAGES.get(Path(self.component_file).suffix, "")

    @property
    def hidden(self) -> Files:
        """Return the files that only graders see."""
        validator = {self.validator_file: self.validator} if self.validator_file and self.validator is not None else {}
        return {**(self.support or {}), **validator, self.test_file: self.test_content}

    @property
    def needs_node(self) -> bool:
        """Return True if the tests or the validator run in Node."""
        return self.layout.runner == "vitest" or (self.validator_file or "").endswith(".ts")


@dataclass(frozen=True, slots=True)
class FoundSuites:
    """The suites of a folder by name, and the reason for each one that is left out."""

    folder: Path
    suites: tuple[ComponentSuite, ...]
    left_out: tuple[tuple[str, str], ...] = ()  # name and reason

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return a sentence for each suite that is left out."""
        return tuple(f"suite {name!r} is left out: {why}" for name, why in self.left_out)


def find_suites(folder: Path | None, only: Iterable[str] = ()) -> FoundSuites:
    """Find suites.

    Args:
        folder: The folder of suites; None for `tests/` if it has suites, or else for the bundled ones.
        only: Names of the suites to use; all if empty.
    """
    if folder is not None:
        found = discover(folder)
    else:
        own = discover(DEFAULT_FOLDER) if DEFAULT_FOLDER.is_dir() else FoundSuites(DEFAULT_FOLDER, ())
        found = own if own.suites or own.left_out else discover(bundled_folder())
    if not found.suites:
        reasons = "".join(f"\n{warning}" for warning in found.warnings)
        raise UsageError(
            f"{found.folder} has no suite: a suite is a folder with prompt.md, a reference such as Reference.svelte "
            f"and test.ts, or with {SUITE_FILE}; `bakeoff suite new NAME` writes one{reasons}"
        )
    return _chosen(found, tuple(only))


def _chosen(found: FoundSuites, only: tuple[str, ...]) -> FoundSuites:
    if not only:
        return found
    names, left_out = [suite.name for suite in found.suites], dict(found.left_out)
    for name in only:
        if name in left_out:
            raise UsageError(f"suite {name!r} in {found.folder} cannot be used: {left_out[name]}")
        if name not in names:
            raise UsageError(f"no suite {name!r} in {found.folder}{near_names(name, names)}")
    return FoundSuites(found.folder, tuple(suite for suite in found.suites if suite.name in only))


def discover(folder: Path) -> FoundSuites:
    """Read every suite in a folder, sorted by name. Leave out incomplete and invalid suites."""
    with os_errors_explained(f"suites folder {folder}", "read", kind=UsageError):
        names = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    suites: list[ComponentSuite] = []
    left_out: list[tuple[str, str]] = []
    for name in names:
        directory = folder / name
        if not is_suite(directory):
            continue
        try:
            suites.append(_read(name, directory))
        except Unusable as why:
            left_out.append((name, str(why)))
    return FoundSuites(folder, tuple(suites), tuple(left_out))


def is_suite(folder: Path) -> bool:
    """Tell whether a folder is meant to be a suite, complete or not."""
    return any((folder / sign).exists() for sign in _SIGNS)


def _read(name: str, directory: Path) -> ComponentSuite:
    if not name.strip() or not name.isprintable():
        raise Unusable("its name has characters that cannot be printed; rename the folder")
    layout = read_layout(directory)
    test_file = layout.test or present_of(directory, TESTS)
    wanted = [layout.prompt, layout.reference, test_file or TESTS[0], *layout.files]
    wanted += [layout.validator] if layout.validator else []
    missing = [file for file in wanted if not os.path.isfile(directory / file)]  # noqa: PTH113 - false for a name that is too long
    if missing or test_file is None:
        raise Unusable(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing in {directory}")
    validator_file = layout.validator or present_of(directory, _VALIDATORS)
    wrong_file = layout.wrong or present_of(directory, (f"wrong{Path(layout.component).suffix}",))
    suite = ComponentSuite(
        name=name,
        directory=directory,
        layout=layout,
        test_file=test_file,
        prompt=text_of(directory / layout.prompt),
        test_content=text_of(directory / test_file),
        reference=text_of(directory / layout.reference),
        validator_file=validator_file,
        validator=text_of(directory / validator_file) if validator_file else None,
        wrong=text_of(directory / wrong_file) if wrong_file else None,
        support={file: text_of(directory / file) for file in layout.files},
        picture={file: text_of(directory / file) for file in filter(None, [present_of(directory, _PICTURES)])},
    )
    if layout.component in suite.hidden:
        raise Unusable(f"its component and a file of its tests are both called {layout.component!r}; rename one")
    return suite
