"""Find the event loop of the async fixtures that an async suite uses: its cases must run on the same loop.

pytest-asyncio has a runner for each scope, and anyio one for each backend. Both run their loops in pytest's thread
while pytest waits. Cases that run side by side on such a loop stand still between two tests.
"""

import inspect
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from bakeoff.errors import UsageError

_SCOPES = ("function", "class", "module", "package", "session")  # narrowest first
_Run = Callable[[Callable[[], Coroutine[Any, Any, None]]], object]


def async_fixtures(template: pytest.Function) -> list[Any]:
    """Return the definitions of the async fixtures that a test uses, its own and those of its fixtures."""
    found = (definitions[-1] for definitions in template._fixtureinfo.name2fixturedefs.values() if definitions)
    return [each for each in found if _is_async(each.func)]


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def runner_of(item: pytest.Function) -> tuple[object, _Run] | None:
    """Return the runner of the async fixtures of an item, and how it runs a coroutine; None if nobody runs them."""
    definitions = async_fixtures(item)
    if not definitions:
        return None
    if scopes := list(_asyncio_scopes(item, definitions)):
        runner = item._request.getfixturevalue(f"_{max(scopes, key=_SCOPES.index)}_scoped_runner")
        return runner, lambda make: runner.run(make())
    return _anyio_runner(item) if "anyio_backend" in item.fixturenames else None


def _asyncio_scopes(item: pytest.Function, definitions: list[Any]) -> Iterator[str]:
    """Yield the scopes of the loops on which pytest-asyncio runs these fixtures."""
    config = item.config
    if sys.modules.get("pytest_asyncio.plugin") not in config.pluginmanager.get_plugins():  # under whatever name
        return
    mode = config.getoption("asyncio_mode", None) or config.getini("asyncio_mode")
    for each in definitions:
        function = getattr(each.func, "__func__", each.func)
        if str(getattr(mode, "value", mode)) == "auto" or getattr(function, "_force_asyncio_fixture", False):
            default = config.getini("asyncio_default_fixture_loop_scope")
            yield str(getattr(function, "_loop_scope", None) or default or each.scope)


def _anyio_runner(item: pytest.Function) -> tuple[object, _Run]:
    from anyio.pytest_plugin import extract_backend_and_options, get_runner

    name, options = extract_backend_and_options(item._request.getfixturevalue("anyio_backend"))
    if name != "asyncio":
        raise UsageError(
            f"{item.name}: its async fixtures run on {name}, and evals need asyncio: "
            "let the fixture `anyio_backend` return 'asyncio'"
        )

    def run(make: Callable[[], Coroutine[Any, Any, None]]) -> None:
        with get_runner(name, options) as runner:
            runner.run_test(make, {})

    with get_runner(name, options) as runner:
        return runner, run
