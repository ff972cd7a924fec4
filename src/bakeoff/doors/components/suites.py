"""Suites: a folder each with a prompt, a reference and tests. Found, read whole, and frozen."""

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
from bakeoff.plan import Files, RelativePath, TakenPath

RunnerName = Literal["vitest", "pytest", "junit"]

DEFAULT_FOLDER = Path("tests")
SUITE_FILE = "suite.toml"
_LARGEST = 1024 * 1024  # bytes of one file of a suite
_TESTS = ("test.ts", "test.svelte.ts")
_VALIDATORS = ("validator.ts", "validator.py")
_VALIDATOR_ENDINGS = (".ts", ".py")  # which say what runs it
_SIGNS = ("Reference.svelte", "prompt.md", *_TESTS, SUITE_FILE)  # a folder with none of these was not meant as a suite
_LANGUAGES = {".svelte": "svelte", ".py": "python", ".ts": "ts", ".tsx": "tsx", ".js": "js", ".jsx": "jsx"}


def bundled_folder() -> Path:
    """The suites that travel with the package."""
    return Path(bundled.__file__).parent / "components"


class Layout(FrozenModel):
    """What `suite.toml` may say; without it, the files of a Svelte suite."""

    runner: RunnerName = "vitest"
    component: TakenPath = Field(
        default="Component.svelte", description="the file that tests import, as it is handed in"
    )
    reference: RelativePath = "Reference.svelte"
    test: RelativePath | None = None
    prompt: RelativePath = "prompt.md"
    language: str | None = Field(default=None, description="of the component; its ending says where left out")
    validator: RelativePath | None = None
    wrong: RelativePath | None = Field(default=None, description="an answer that must fail, for `bakeoff verify`")
    files: tuple[RelativePath, ...] = Field(default=(), description="what the tests need besides")
    command: tuple[str, ...] = Field(default=(), description="for runner `junit`: the program that runs the tests")
    report: TakenPath = Field(default="report.xml", description="where that program writes JUnit XML")
    canary: str | None = Field(default=None, description="for runner `junit`: the name of a test that must fail")
    seconds: PositiveFloat = Field(default=30.0, description="for one run of the tests")

    @model_validator(mode="after")
    def _command_where_it_is_used(self) -> "Layout":
        if (self.runner == "junit") != bool(self.command):
            raise ValueError("`command` goes with runner 'junit', and with no other")
        if self.canary is not None and self.runner != "junit":
            raise ValueError("`canary` is for runner 'junit': the others draw one of their own")
        if self.validator is not None and Path(self.validator).suffix not in _VALIDATOR_ENDINGS:
            raise ValueError(f"`validator` is {self.validator!r}, and must end in {' or '.join(_VALIDATOR_ENDINGS)}")
        graded = [name for name in (self.test, self.validator, *self.files) if name]
        if self.component in graded or len(set(graded)) < len(graded):
            raise ValueError("component, test, validator and files must all have names of their own")
        return self


@dataclass(frozen=True, slots=True)
class Suite:
    """One suite, read whole: nothing of it is looked at again once a run has begun."""

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

    @property
    def component_file(self) -> str:
        return self.layout.component

    @property
    def language(self) -> str:
        return self.layout.language or _LANGUAGES.get(Path(self.component_file).suffix, "")

    @property
    def hidden(self) -> Files:
        """What only graders see."""
        validator = {self.validator_file: self.validator} if self.validator_file and self.validator is not None else {}
        return {**(self.support or {}), **validator, self.test_file: self.test_content}

    @property
    def needs_node(self) -> bool:
        return self.layout.runner == "vitest" or (self.validator_file or "").endswith(".ts")


@dataclass(frozen=True, slots=True)
class Found:
    """The suites of a folder, by name, and a sentence about each that had to be left out."""

    folder: Path
    suites: tuple[Suite, ...]
    warnings: tuple[str, ...] = ()


class _Unfit(Exception):
    """Why a folder cannot be used as a suite."""


def find_suites(folder: Path | None, only: Iterable[str] = ()) -> Found:
    """The suites of a folder; where none is named, those of `tests/`, or else the bundled ones."""
    if folder is not None:
        found = discover(folder)
    else:
        own = discover(DEFAULT_FOLDER) if DEFAULT_FOLDER.is_dir() else Found(DEFAULT_FOLDER, ())
        found = own if own.suites or own.warnings else discover(bundled_folder())
    if not found.suites:
        reasons = "".join(f"\n{warning}" for warning in found.warnings)
        raise UsageError(
            f"{found.folder} has no suite: a suite is a folder with prompt.md, Reference.svelte and test.ts, "
            f"or with {SUITE_FILE}{reasons}"
        )
    return _chosen(found, tuple(only))


def _chosen(found: Found, only: tuple[str, ...]) -> Found:
    if not only:
        return found
    names = [suite.name for suite in found.suites]
    for name in only:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
            raise UsageError(f"no suite {name!r} in {found.folder}: {hint}")
    return Found(found.folder, tuple(suite for suite in found.suites if suite.name in only), found.warnings)


def discover(folder: Path) -> Found:
    """Every suite in a folder, sorted by name. One that is incomplete is left out with a warning."""
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    except OSError as error:
        raise UsageError(f"suites folder {folder} cannot be read: {error.strerror}") from error
    suites: list[Suite] = []
    warnings: list[str] = []
    for name in names:
        directory = folder / name
        if not any((directory / sign).exists() for sign in _SIGNS):
            continue
        try:
            suites.append(_read(name, directory))
        except _Unfit as why:
            warnings.append(f"suite {name!r} is left out: {why}")
    return Found(folder, tuple(suites), tuple(warnings))


def _read(name: str, directory: Path) -> Suite:
    if not name.strip() or not name.isprintable():
        raise _Unfit("its name has characters that cannot be shown; rename the folder")
    layout = _layout(directory)
    test_file = layout.test or _present(directory, _TESTS)
    wanted = [layout.prompt, layout.reference, test_file or _TESTS[0], *layout.files]
    wanted += [layout.validator] if layout.validator else []
    missing = [file for file in wanted if not (directory / file).is_file()]
    if missing or test_file is None:
        raise _Unfit(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing in {directory}")
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
    )
    if layout.component in suite.hidden:
        raise _Unfit(f"its component and a file of its tests are both called {layout.component!r}; rename one")
    return suite


def _present(directory: Path, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if (directory / name).is_file()), None)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise _Unfit(f"{path} has more than {_LARGEST:,} bytes")
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise _Unfit(f"{path} is not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise _Unfit(f"{path} cannot be read: {error.strerror}") from error


def _layout(directory: Path) -> Layout:
    """The layout a `suite.toml` describes. A mistake in it stops everything: it is a configuration, and ours to fix."""
    path = directory / SUITE_FILE
    if not path.exists():
        return Layout()
    if not path.is_file():
        raise _Unfit(f"{path} is not a file")
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
            told = item["msg"].removeprefix("Value error, ")
            yield f"{place}: {key}: {told} (got {item['input']!r})" if key else f"{place}: {told}"


def _line_of(key: str, text: str) -> int:
    pattern = re.compile(rf"""\s*\[*\s*["']?{re.escape(key)}["']?\s*[=.\]]""")
    return next((number for number, line in enumerate(text.splitlines(), 1) if pattern.match(line)), 1)
