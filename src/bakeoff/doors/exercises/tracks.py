"""Tracks: what a language's exercises look like, and which names in them belong to tests, configuration and tools."""

import fnmatch
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

TEST_PATTERNS = ("*.test.*", "*_test.*", "*.spec.*", "*_spec.*", "test_*", "*Test.*", "*Tests.*", "*-test.*")
EXAMPLES = ("proof.ci", "example", "exemplar", "reference", "proof")
"""What the known-good solution is called in `.meta`, where no configuration says so."""

_TOOL_NAMES = (
    *("package.json", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock*", "*.config.*", "tsconfig*.json"),
    *("conftest.py", "sitecustomize.py", "usercustomize.py", "pytest.ini", "tox.ini", "setup.cfg", "setup.py"),
    *("pyproject.toml", "*.pth", "jest.*", "vitest.*", "babel.*", "eslint*", "Makefile", "Cargo.toml", "go.mod"),
    *("jest-*", "vitest-*", "requirements*.txt", "Pipfile*", "*.d.ts", "*.snap", "noxfile.py", "manage.py", "*.lock"),
)
_TOOL_FOLDERS = frozenset(
    {"node_modules", "__mocks__", "__tests__", "__snapshots__", "test", "tests", ".git", ".meta", ".docs", ".yarn"}
)
_RUNNERS = frozenset({"pytest", "_pytest", "pluggy", "iniconfig", "packaging", "jest", "vitest"})


@dataclass(frozen=True, slots=True)
class Track:
    """One language. `command` is what people type to run an exercise's tests; None where we know of none."""

    slug: str
    language: str
    suffixes: tuple[str, ...]
    command: str | None = None
    fence: str = ""
    node: bool = False


_NODE_COMMAND = "corepack yarn && corepack yarn test"
TYPESCRIPT = Track("typescript", "TypeScript", (".ts", ".tsx"), _NODE_COMMAND, "ts", node=True)
JAVASCRIPT = Track("javascript", "JavaScript", (".js", ".jsx", ".mjs"), "npm install && npm test", "js", node=True)
PYTHON = Track("python", "Python", (".py",), "pytest", "python")
KNOWN = {track.slug: track for track in (TYPESCRIPT, JAVASCRIPT, PYTHON)}


def track_of(slug: str | None, names: Iterable[str]) -> Track:
    """By the track's own word, or else by what its files end with."""
    if slug in KNOWN:
        return KNOWN[slug]
    suffixes = [PurePosixPath(name).suffix for name in names]
    for track in KNOWN.values():
        if slug is None and any(suffix in track.suffixes for suffix in suffixes):
            return track
    found = tuple(dict.fromkeys(suffix for suffix in suffixes if suffix and suffix not in (".json", ".md", ".toml")))
    return Track(slug or "unknown", (slug or "unknown").capitalize(), found)


def is_test_name(path: str) -> bool:
    name = PurePosixPath(path).name
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in TEST_PATTERNS)


def is_protected_name(path: str) -> bool:
    """Whether a file of this name would be read by tests, configuration or tools, and not by the solution alone."""
    pure = PurePosixPath(path)
    hidden = any(part.startswith(".") for part in pure.parts)
    tool = any(fnmatch.fnmatchcase(pure.name, pattern) for pattern in _TOOL_NAMES) or pure.stem in _RUNNERS
    # Beside the solution it would be imported instead of Python's own, also by the tests.
    standard = pure.suffix == ".py" and pure.stem in sys.stdlib_module_names
    return hidden or tool or standard or bool(_TOOL_FOLDERS & set(pure.parts[:-1])) or is_test_name(path)
