"""Find out from its source what a test depends on. Where the source does not tell, it depends on more."""

import ast
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from bakeoff._kernel.model import fingerprint

ANYTHING = "*"
"""Stands for every file: what a module uses cannot be told from its imports."""

_SUITES = frozenset(("eval_suite", "describe_eval"))
_LOADS_ANYTHING = frozenset(
    ("import_module", "__import__", "exec", "eval", "runpy", "subprocess", "multiprocessing", "entry_points")
) | {"create_subprocess_exec", "create_subprocess_shell", "spec_from_file_location", "iter_modules", "walk_packages"}


class _WithoutData(ast.NodeTransformer):
    """Removes `data=…` of suites: each row is compared for itself."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
        if called in _SUITES:
            node.keywords = [keyword for keyword in node.keywords if keyword.arg != "data"]
        return node


class TestParts:
    """The statements of a test file, and which of them a test uses."""

    __test__ = False  # not a test of pytest's

    def __init__(self, source: str) -> None:
        self._binding: dict[str, list[int]] = {}  # the statements that bind a name
        self._always: set[int] = set()
        self._texts: list[str] = []
        self._uses: list[set[str]] = []
        for place, given in enumerate(ast.parse(source).body):
            statement = _WithoutData().visit(given)
            self._texts.append(ast.dump(statement))
            self._uses.append(set(_words(statement)))
            bound = _bound(statement)
            for name in bound or ():
                self._binding.setdefault(name, []).append(place)
            if bound is None or any(map(_is_for_all, bound)) or _is_fixture(statement):
                self._always.add(place)

    def digest(self, name: str) -> str:
        """Return a hash of all that the test or class of this name uses in the file, without the rows of suites."""
        used: set[int] = set()
        waiting = {*self._always, *self._binding.get(name, range(len(self._texts)))}
        while waiting:
            place = waiting.pop()
            used.add(place)
            waiting |= {other for word in self._uses[place] for other in self._binding.get(word, ())} - used
        return fingerprint(*(self._texts[place] for place in sorted(used)))


def _words(statement: ast.AST) -> Iterator[str]:
    """Yield every name, argument and text: fixtures are asked for by arguments and by texts."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _bound(statement: ast.stmt) -> list[str] | None:
    """Return the names that a statement does nothing but bind; None if it may do anything else."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            bound = [(alias.asname or alias.name).partition(".")[0] for alias in names]
            return None if "*" in bound else bound
        case ast.Assign(targets=targets) if all(isinstance(target, ast.Name) for target in targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.AugAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Expr(value=ast.Constant()):
            return []  # a docstring
    return None


def _is_for_all(name: str) -> bool:
    return name.startswith(("pytest", "setup_", "teardown_", "setUp", "tearDown"))


def _is_fixture(statement: ast.stmt) -> bool:
    decorators = getattr(statement, "decorator_list", ())
    return any("fixture" in ast.dump(decorator) for decorator in decorators)


@cache
def _imports(path: str) -> frozenset[tuple[int, str]]:
    """Return what a file imports as names with their number of leading dots, and `ANYTHING` if it may load more."""
    found: set[tuple[int, str]] = set()
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return frozenset({(0, ANYTHING)})
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {(0, alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = f"{node.module}." if node.module else ""
            found |= {(node.level, f"{base}{alias.name}") for alias in node.names}
        if _loads_anything(node):
            found.add((0, ANYTHING))
    return frozenset(found)


def _loads_anything(node: ast.AST) -> bool:
    match node:
        case ast.Name(id=word) | ast.Attribute(attr=word) | ast.alias(name=word):
            return word in _LOADS_ANYTHING
        case ast.Constant(value=str(text)):
            return text.endswith(".py")  # a program to be started
    return False


def loaded_files() -> dict[str, str]:
    """Return the source files of all modules that are loaded, by the names of the modules."""
    found = ((name, getattr(module, "__file__", None)) for name, module in list(sys.modules.items()))
    return {name: file for name, file in found if isinstance(file, str)}


def imported_files(path: str, loaded: Mapping[str, str]) -> set[str]:
    """Return the files that a file imports, directly or through others; with `ANYTHING` if that is not all.

    Args:
        path: The file to begin with. It is not among those returned, unless it is imported again.
        loaded: The files of modules that count, by the names of the modules.
    """
    names = {file: name for name, file in loaded.items()}
    found: set[str] = set()
    waiting = [path]
    while waiting:
        file = waiting.pop()
        for level, name in _imports(file):
            if name == ANYTHING:
                found.add(ANYTHING)
                continue
            new = {loaded[each] for each in _prefixes(level, name, names.get(file, "")) if each in loaded} - found
            found |= new
            waiting += new
    return found


def _prefixes(level: int, name: str, importer: str) -> Iterator[str]:
    """Yield the modules that an import loads: each package on the way, and what may be a module at its end."""
    if level:
        module = sys.modules.get(importer)
        package = (getattr(module, "__package__", None) or "").split(".")
        name = ".".join([*package[: len(package) - level + 1], name])
    parts = name.split(".")
    yield from (".".join(parts[: end + 1]) for end in range(len(parts)))
