"""Run one test file with pytest, in a process of its own. `pytest_runner.py` passes this text to Python.

The candidate is imported here, so nothing here is secret: there is no proof, and nothing tells which tests must fail.
The test file is not on disk. It comes through a pipe, is compiled before the candidate is imported, and is then
deleted.
"""
# ruff: noqa: E402, PTH109, PTH118, PTH119, PTH123

import ast
import builtins
import json
import operator
import os
import random
import sys
import tempfile
import traceback
import types
from collections.abc import Callable, Generator, Iterator
from typing import Any

_asked = os.fdopen(os.dup(0), "rb")
_answers = os.dup(1)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.dup2(2, 1)
_write, _dumps, _loads = os.write, json.dumps, json.loads
LONGEST = 4000


def say(**what: object) -> None:
    line = _dumps(what).encode() + b"\n"
    while line:
        line = line[_write(_answers, line) :]


def hear() -> Any:
    return _loads(_asked.readline())


job = hear()
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # suites run without the other plugins that are installed
sys.path[:0] = [folder for folder in job["folders"] if folder not in sys.path]

import _pytest.assertion.rewrite
import _pytest.outcomes
import _pytest.python
import _pytest.raises
import _pytest.reports
import _pytest.runner
import pluggy
import pluggy._callers
import pluggy._hooks
import pluggy._manager
import pytest

# ------------------------------------------------------------------------------------- values that equal everything

SCALARS = {int, float, str, bytes, bool, complex, type(None), type, types.FunctionType, range}
ROWS = (list, tuple, set, frozenset)
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "In": lambda left, right: left in right,
    "NotIn": lambda left, right: left not in right,
}
OPPOSITES = {"NotEq": "Eq", "Lt": "GtE", "LtE": "Gt", "Gt": "LtE", "GtE": "Lt"}
_equal, _mro, _members = operator.eq, type.__dict__["__mro__"].__get__, type.__dict__["__dict__"].__get__
_random = random.SystemRandom()
odd: list[str] = []
test_codes: dict[str, list[types.CodeType]] = {}


def holds(operation: Callable[[Any, Any], Any], left: Any, right: Any) -> bool:
    try:
        return bool(operation(left, right))
    except BaseException:  # noqa: BLE001 - the candidate's own methods may raise whatever they like
        return False


def is_true(value: object) -> bool:
    return holds(lambda given, _: given, value, None)


def equality_of(value: object) -> Any:
    return next(_members(each)["__eq__"] for each in _mro(type(value)) if "__eq__" in _members(each))


def with_own_equality(value: object) -> Iterator[object]:
    """Yield, of a value and all in it, those whose class defines equality in Python."""
    left, seen = [value], 0
    while left and seen < 10_000:
        each, seen = left.pop(), seen + 1
        if type(each) in SCALARS:
            continue
        own = equality_of(each)
        if type(own) is not types.WrapperDescriptorType or own.__name__ != "__eq__":
            yield each
        elif isinstance(each, dict):
            left += [*dict.keys(each), *dict.values(each)]
        elif isinstance(each, ROWS) and not set(map(type, each)) <= SCALARS:
            left += each


def far() -> list[list[Any]]:
    """Return random values of many kinds. A value that equals all of one kind equals anything."""
    drawn = [(_random.randrange(10**12, 10**13), f"{_random.randrange(10**12):x}") for _ in range(2)]
    numbers = [drawn[0][0], drawn[0][0] + 1]
    words = [word for _, word in drawn]
    built: list[list[Any]] = [
        [word.encode() for word in words],
        [[word] for word in words],
        [(word,) for word in words],
    ]
    return [[object()], numbers, [number + 0.5 for number in numbers], words, *built, [{word: 1} for word in words]]


def near(value: Any) -> list[object]:
    """Return other values of the same plain type."""
    if type(value) in (int, float, complex):
        return [value + 1, value + 2]
    if type(value) is bool:
        return [not value]
    if type(value) in (str, list, tuple):
        more: Any = "~" if type(value) is str else type(value)([object()])
        return [value + more, more + value]
    return [{**value, object(): 1}] if type(value) is dict else []


def is_the_suites(value: object, imports: set[str], module: types.ModuleType) -> bool:
    """Tell whether a value that equals everything comes from the tests, such as `unittest.mock.ANY`."""
    names = getattr(equality_of(value), "__globals__", None)
    if names is vars(module):
        return True
    home = names.get("__name__") if type(names) is dict else None
    if type(home) is not str or vars(sys.modules.get(home, module)) is not names or home == "__main__":
        return False
    origin = str(names.get("__file__") or os.getcwd())
    root = home.partition(".")[0]
    known = home in imports or (root in imports and root not in sys.stdlib_module_names)
    return known and not origin.startswith(os.getcwd() + os.sep) and origin != os.getcwd()


class Watch:
    """Replace the comparisons of the test file: return the same results, and note impossible ones."""

    def __init__(self, tree: ast.Module) -> None:
        self.imports = set(imports_of(tree))
        self.module = types.ModuleType("")

    def compared(self, name: str, left: Any, right: Any) -> Any:
        result = OPERATIONS[name](left, right)
        self.look(left, right)
        opposite = OPPOSITES.get(name)
        if opposite and not {type(left), type(right)} <= SCALARS and is_true(result):
            both = holds(OPERATIONS[opposite], left, right)
            odd.extend(
                [about(right if type(left) in SCALARS else left, "is both equal and not, or less and not")] * both
            )
        return result

    def called(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            __tracebackhide__ = True
            if len(args) > 1:
                self.look(args[0], args[1])
            return method(*args, **options)

        return call

    def look(self, left: object, right: object) -> None:
        if type(left) in SCALARS and type(right) in SCALARS:
            return
        for value, other in ((left, right), (right, left)):
            for number, each in enumerate(with_own_equality(value)):
                if number > 100 or self.is_odd(each, other if each is value else None):
                    break

    def is_odd(self, value: object, other: object) -> bool:
        if is_the_suites(value, self.imports, self.module):
            return False
        close = [] if "_pytest" in str(getattr(equality_of(value), "__module__", "")) else near(other)
        if any(kind and all(holds(_equal, value, each) for each in kind) for kind in (*far(), close)):
            odd.append(about(value, "equals whatever it is compared with"))
            return True
        return False


def about(value: object, what: str) -> str:
    return f"a `{type(value).__name__}` {what}"[:200]


def imports_of(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)


class Watched(ast.NodeTransformer):
    """Route comparisons and unittest's assertions through the watch, after pytest's rewriting to keep its messages."""

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        name = type(node.ops[0]).__name__
        if len(node.ops) > 1 or name not in OPERATIONS:
            return node
        args = [ast.Constant(name), node.left, node.comparators[0]]
        return ast.copy_location(ast.Call(ast.Name("@compared", ast.Load()), args, []), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr.startswith("assert") and len(node.args) > 1:
            node.func = ast.copy_location(ast.Call(ast.Name("@called", ast.Load()), [node.func], []), node.func)
        return node


MAY_BE_WRAPPED = ("globals(", "metaclass", "__init_subclass__", "setattr(")


def plain_tests(source: str, tree: ast.Module) -> set[str]:
    """Return the qualified names of test functions that nothing wraps: such a test must run its own code."""
    if any(each in source for each in MAY_BE_WRAPPED):
        return set()
    again = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return {name for name in defined_in(tree.body, "") if name.rpartition(".")[2] not in again}


def defined_in(body: list[ast.stmt], prefix: str) -> Iterator[str]:
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if not all("pytest.mark." in ast.unparse(each) for each in node.decorator_list):
            continue
        if isinstance(node, ast.ClassDef):
            yield from defined_in(node.body, f"{prefix}{node.name}.")
        else:
            yield f"{prefix}{node.name}"


def codes_in(code: types.CodeType) -> Iterator[tuple[str, types.CodeType]]:
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield each.co_qualname, each
            yield from codes_in(each)


def compiled(path: str) -> tuple[types.CodeType, Watch]:
    source = job.pop("source")
    tree = ast.parse(source, path)
    watch = Watch(tree)
    plain = plain_tests(source, tree)
    _pytest.assertion.rewrite.rewrite_asserts(tree, source.encode(), path)
    tree = ast.fix_missing_locations(Watched().visit(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.stmt):  # pytest's rewriting leaves ends before their beginnings
            node.end_lineno, node.end_col_offset = node.lineno, node.col_offset
    code = compile(tree, path, "exec", dont_inherit=True)
    for name, each in codes_in(code):
        if name in plain:
            test_codes.setdefault(name, []).append(each)
    return code, watch


class Prepared(pytest.Module):
    """The test file, which is not on disk."""

    def _getobj(self) -> types.ModuleType:
        path = str(self.path)
        module = types.ModuleType(self.path.stem)
        module.__file__ = path
        try:
            code, watch = compiled(path)
            watch.module = sys.modules[module.__name__] = module
            vars(module).update({"@compared": watch.compared, "@called": watch.called})
            exec(code, vars(module))  # noqa: S102 - runs the module
        except pytest.skip.Exception as skipped:
            if skipped.allow_module_level:
                raise
            raise self.CollectError("pytest.skip was called outside of a test") from None
        except Exception as error:  # noqa: BLE001 - whatever the candidate raises
            raise self.CollectError("".join(traceback.format_exception_only(error)).strip()) from None
        except BaseException as error:  # noqa: BLE001 - whatever the candidate raises
            what = f"{type(error).__name__} was raised while the solution was imported: {error}"
            raise self.CollectError(what.removesuffix(": ")) from None
        return module


# ----------------------------------------------------------------------------------- functions that the tests rely on

MODULES = (
    *(_pytest.assertion.rewrite, _pytest.assertion.util, _pytest.outcomes, _pytest.python, _pytest.raises),
    *(_pytest.reports, _pytest.runner, pluggy._callers, pluggy._hooks, pluggy._manager, pytest, operator),
    sys.modules[__name__],
)
MADE = (types.FunctionType, types.BuiltinFunctionType, type, property, staticmethod, classmethod)


def made() -> Iterator[tuple[str, object, object]]:
    """Yield every function and class of those modules, and those in classes, each with its code."""
    for module in MODULES:
        for name, value in list(vars(module).items()):
            if callable(value):
                yield f"{module.__name__}.{name}", value, getattr(value, "__code__", None)
            if isinstance(value, type) and value.__module__ == module.__name__:
                for inner, member in list(vars(value).items()):
                    if isinstance(member, MADE):
                        yield f"{module.__name__}.{name}.{inner}", member, getattr(member, "__code__", None)


def changed() -> str:
    """Return the name of the first thing that was replaced, or an empty text."""
    now = vars(builtins)
    for name, value in _builtins.items():
        if now.get(name) is not value and name != "_":
            return name
    found = {name: (value, code) for name, value, code in made()}
    for name, value, code in _made:
        other, other_code = found.get(name, (None, None))
        if other is not value or other_code is not code:
            return name
    return ""


# ------------------------------------------------------------------------------------------------------------- the run


class Plugin:
    """Report every test when it starts and when it ends."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self.interrupted = ""
        self.known: dict[str, Any] = {}
        self.hooks: list[tuple[object, object]] = []
        self.replaced = ""
        self.tests: dict[pytest.Item, tuple[object, object]] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self.hooks = hooks_of(session)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if [*map(id_pair, hooks_of(session))] != [*map(id_pair, self.hooks)]:
            self.replaced = "pytest's hooks"
        if set(session.items) != set(self.tests):
            self.replaced = "the list of the tests"
        for item in self.tests:
            self.look_at(item)

    def look_at(self, item: pytest.Item) -> None:
        """Check that a test is the function that was collected."""
        if function_of(item) not in (self.tests.get(item), None):
            self.replaced = name_of(item.nodeid)

    def pytest_pycollect_makemodule(self, module_path: Any, parent: Any) -> pytest.Module:
        return Prepared.from_parent(parent, path=module_path)

    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        module = next((item.getparent(Prepared) for item in items), None)
        for name in job["outside"] if module else ():
            function = getattr(module.obj, name)  # type: ignore[union-attr]
            items.insert(
                _random.randint(0, len(items)), pytest.Function.from_parent(session, name=name, callobj=function)
            )
        for item in items:
            self.tests[item] = found = function_of(item) or (None, None)
            own = test_codes.get(qualified(item))
            if own is not None and not any(each is found[1] for each in own):
                self.replaced = name_of(item.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.errors.append(str(report.longrepr)[:LONGEST])

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        name = name_of(item.nodeid)
        self.look_at(item)
        say(starts=name)
        word = hear()
        self.known = {"state": "passed", "message": "", "seconds": 0.0}
        try:
            return (yield)
        except BaseException as error:  # an exception that pytest lets through ends the run
            self.interrupted = f"{type(error).__name__} was raised in {name}"
            self.known |= {"state": "failed", "message": self.interrupted}
            raise
        finally:
            self.look_at(item)
            say(word=word, **self.known)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.known["seconds"] += float(report.duration)
        if report.failed:
            self.known |= {"state": "failed", "message": text_of(report)}
        elif report.skipped and self.known["state"] == "passed":
            self.known["state"] = "skipped"


def function_of(item: pytest.Item) -> tuple[object, object] | None:
    """Return the function that a test calls, with its code. Tests of unittest lose it once they have run."""
    made = vars(item).get("_obj")
    function = getattr(made, "__func__", made)
    return None if made is None else (function, getattr(function, "__code__", None))


def qualified(item: pytest.Item) -> str:
    classes = [each.name for each in item.listchain() if isinstance(each, pytest.Class)]
    return ".".join([*classes, getattr(item, "originalname", None) or item.name])


def hooks_of(session: pytest.Session) -> list[tuple[object, object]]:
    callers = [each for each in vars(session.config.hook).values() if isinstance(each, pluggy.HookCaller)]
    return [(each, each.function) for caller in callers for each in caller.get_hookimpls()]


def id_pair(pair: tuple[object, object]) -> tuple[int, int]:
    return id(pair[0]), id(pair[1])


def name_of(nodeid: str) -> str:
    """Return `TestA > test_b[1]` for `test_x.py::TestA::test_b[1]`."""
    head, _, tail = nodeid.partition("::")
    return tail.replace("::", " > ") or head


def text_of(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash:
        return str(crash.message)[:LONGEST]
    lines = str(report.longrepr or "").splitlines()
    told = [line[1:].removeprefix("   ") for line in lines if line.startswith("E ")]
    return "\n".join(told or lines)[:LONGEST]


def main() -> None:
    private = tempfile.mkdtemp()
    path = os.path.join(private, os.path.basename(job.pop("file")))
    with open(path, "w", encoding="utf-8"):
        pass  # pytest wants an existing path; its content is never read
    sys.path.insert(0, os.getcwd())
    plugin = Plugin()
    options = ["-p", "no:cacheprovider", "-p", "no:junitxml", "--noconftest", "-c", os.devnull, "--rootdir", private]
    options += ["--confcutdir", private]
    code = int(pytest.main([*options, "-q", "--color=no", "--import-mode=importlib", path], plugins=[plugin]))
    if code not in (0, 1, 2, 5):
        plugin.errors.append(f"pytest ended with code {code}")
    replaced = changed() or plugin.replaced
    say(ends=True)
    last = {"error": "\n".join(plugin.errors)[:LONGEST], "interrupted": plugin.interrupted[:LONGEST]}
    say(word=hear(), **last, changed=replaced, odd=odd[0] if odd else "")


def refuse_takeovers() -> None:
    """Refuse, from here on, to watch all calls, to search all objects, and to write to memory."""

    # It uses only constants of its own code: even if our global names are changed, each path ends in an error.
    def look(event: str, given: tuple[Any, ...]) -> None:
        if event[:7] == "ctypes.":
            raise ImportError("ctypes is not at hand while a solution is tested")
        if event in (
            *("sys.setprofile", "sys.settrace", "sys.monitoring.register_callback", "sys._current_frames"),
            *("gc.get_objects", "gc.get_referrers", "gc.get_referents", "sys.addaudithook"),
        ):
            raise RuntimeError(f"{event} is refused while a solution is tested")
        if event == "object.__setattr__" and given[1] == "__code__":
            old, new = given[0].__code__, given[2]  # `types.coroutine` changes flags
            if (new.co_code, new.co_consts, new.co_names) != (old.co_code, old.co_consts, old.co_names):
                raise RuntimeError("a function's code cannot be replaced while a solution is tested")

    sys.addaudithook(look)


_builtins = dict(vars(builtins))
_made = list(made())
refuse_takeovers()
say(ready=True)  # nothing of the candidate's has been imported yet
main()
