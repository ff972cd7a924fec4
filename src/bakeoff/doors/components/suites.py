"""Find and read suites: folders with a prompt, a reference and tests."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from bakeoff import bundled
from bakeoff.doors.components.suite_layout import (
    COMPONENTS,
    SUITE_FILE,
    TESTS,
    Layout,
    Unusable,
    is_file,
    present_of,
    read_layout,
    text_of,
)
from bakeoff.errors import UsageError
from bakeoff.plan import Files

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
    """The suites of a folder by name, and the reason why each other one is left out."""

    folder: Path
    suites: tuple[ComponentSuite, ...]
    left_out: tuple[tuple[str, str], ...] = ()  # name and reason

    @property
    def warnings(self) -> tuple[str, ...]:
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
            near = get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
            raise UsageError(f"no suite {name!r} in {found.folder}: {hint}")
    return FoundSuites(found.folder, tuple(suite for suite in found.suites if suite.name in only))


def discover(folder: Path) -> FoundSuites:
    """Read every suite in a folder, sorted by name. One that is incomplete, or has a mistake, is left out."""
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    except OSError as error:
        raise UsageError(f"suites folder {folder} cannot be read: {error.strerror}") from error
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
    missing = [file for file in wanted if not is_file(directory / file)]
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
