"""Read tests in Go, Rust, Java and C++. Each language has a module; `reader` is for all."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import PurePosixPath

from bakeoff.grading.written_tests import TestSource

_BY_SUFFIX = {".go": "go", ".rs": "rust", ".java": "java", ".cpp": "cpp"}


def read_compiled(files: Mapping[str, str]) -> list[tuple[str, TestSource]]:
    """Return the tests of a suite in a compiled language, each with the file of its values."""
    from bakeoff.grading.languages.reader import SuiteReader

    found = list[tuple[str, TestSource]]()
    for suffix, name in _BY_SUFFIX.items():
        chosen = {path: text for path, text in files.items() if PurePosixPath(path).suffix == suffix}
        if chosen:
            language = getattr(import_module(f"{__name__}.{name}"), name.upper())
            found += SuiteReader(language, chosen).read()
    return found
