"""Find and read suites: folders with a prompt, a reference and tests."""

import os
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from pydantic import Field, PositiveFloat, ValidationError, model_validator

from bakeoff import bundled
from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import UsageError
from bakeoff.plan import Files, Framework, RelativePath, TakenPath

RunnerName = Literal["vitest", "pytest", "junit"]

DEFAULT_FOLDER = Path("tests")
SUITE_FILE = "suite.toml"
_LARGEST = 1024 * 1024  # bytes of one file of a suite
_TESTS = ("test.ts", "test.tsx", "test.svelte.ts")
_COMPONENTS = {
    "Reference.svelte": "Component.svelte",
    "Reference.tsx": "Component.tsx",
    "Reference.vue": "Component.vue",
    "Reference.ts": "solution.ts",
}
"""The names of references that need no `suite.toml`, and the file that the tests then import."""
_VALIDATORS = ("validator.ts", "validator.py")
_VALIDATOR_ENDINGS = (".ts", ".py")  # they decide what runs it
_PICTURES = ("picture.ts", "picture.tsx", "picture.js", "picture.jsx")
_SIGNS = (*_COMPONENTS, "prompt.md", *_TESTS, SUITE_FILE)  # a folder with none of these is not a suite
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


@dataclass(frozen=True, slots=True)
class Suite:
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
        return self.layout.component

    @property
    def language(self) -> str:
        return self.layout.language or _LANGUAGES.get(Path(self.component_file).suffix, "")

    @property
    def hidden(self) -> Files:
        """Return the files that only graders see."""
        validator = {self.validator_file: self.validator} if self.validator_file and self.validator is not None else {}
        return {**(self.support or {}), **validator, self.test_file: self.test_content}

    @property
    def needs_node(self) -> bool:
        return self.layout.runner == "vitest" or (self.validator_file or "").endswith(".ts")


@dataclass(frozen=True, slots=True)
class FoundSuites:
    """The suites of a folder by name, and a warning about each that is left out."""

    folder: Path
    suites: tuple[Suite, ...]
    warnings: tuple[str, ...] = ()


class _Unusable(Exception):
    """A folder cannot be used as a suite, for this reason."""


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
        found = own if own.suites or own.warnings else discover(bundled_folder())
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
    names = [suite.name for suite in found.suites]
    for name in only:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
            raise UsageError(f"no suite {name!r} in {found.folder}: {hint}")
    return FoundSuites(found.folder, tuple(suite for suite in found.suites if suite.name in only), found.warnings)


def discover(folder: Path) -> FoundSuites:
    """Read every suite in a folder, sorted by name. An incomplete one is left out with a warning."""
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    except OSError as error:
        raise UsageError(f"suites folder {folder} cannot be read: {error.strerror}") from error
    suites: list[Suite] = []
    warnings: list[str] = []
    for name in names:
        directory = folder / name
        if not is_suite(directory):
            continue
        try:
            suites.append(_read(name, directory))
        except _Unusable as why:
            warnings.append(f"suite {name!r} is left out: {why}")
    return FoundSuites(folder, tuple(suites), tuple(warnings))


def is_suite(folder: Path) -> bool:
    """Tell whether a folder is meant to be a suite, complete or not."""
    return any((folder / sign).exists() for sign in _SIGNS)


def _read(name: str, directory: Path) -> Suite:
    if not name.strip() or not name.isprintable():
        raise _Unusable("its name has characters that cannot be printed; rename the folder")
    layout = _layout(directory)
    test_file = layout.test or _present(directory, _TESTS)
    wanted = [layout.prompt, layout.reference, test_file or _TESTS[0], *layout.files]
    wanted += [layout.validator] if layout.validator else []
    missing = [file for file in wanted if not (directory / file).is_file()]
    if missing or test_file is None:
        raise _Unusable(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing in {directory}")
    validator_file = layout.validator or _present(directory, _VALIDATORS)
    wrong_file = layout.wrong or _present(directory, (f"wrong{Path(layout.component).suffix}",))
    suite = Suite(
        name=name,
        directory=directory,
        layout=layout,
        test_file=test_file,
        prompt=_text(directory / layout.prompt),
        test_content=_text(directory / test_file),
        reference=_text(directory / layout.reference),
        validator_file=validator_file,
        validator=_text(directory / validator_file) if validator_file else None,
        wrong=_text(directory / wrong_file) if wrong_file else None,
        support={file: _text(directory / file) for file in layout.files},
        picture={file: _text(directory / file) for file in filter(None, [_present(directory, _PICTURES)])},
    )
    if layout.component in suite.hidden:
        raise _Unusable(f"its component and a file of its tests are both called {layout.component!r}; rename one")
    return suite


def _present(directory: Path, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if (directory / name).is_file()), None)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise _Unusable(f"{path} has more than {_LARGEST:,} bytes")
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise _Unusable(f"{path} is not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise _Unusable(f"{path} cannot be read: {error.strerror}") from error


def _layout(directory: Path) -> Layout:
    """Read the layout in `suite.toml`. A mistake in it is an error, not a warning, since the user wrote it."""
    path = directory / SUITE_FILE
    if not path.exists():
        reference = _present(directory, tuple(_COMPONENTS)) or "Reference.svelte"
        return Layout(reference=reference, component=_COMPONENTS[reference])
    if not path.is_file():
        raise _Unusable(f"{path} is not a file")
    text = _text(path)
    try:
        return Layout.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: {error}") from error
    except ValidationError as error:
        raise UsageError("\n".join(_problems(path, text, error))) from error


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
            message = item["msg"].removeprefix("Value error, ")
            yield f"{place}: {key}: {message} (got {item['input']!r})" if key else f"{place}: {message}"


def _line_of(key: str, text: str) -> int:
    pattern = re.compile(rf"""\s*\[*\s*["']?{re.escape(key)}["']?\s*[=.\]]""")
    return next((number for number, line in enumerate(text.splitlines(), 1) if pattern.match(line)), 1)
