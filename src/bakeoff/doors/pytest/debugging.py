"""Run evals so that a debugger can stop in them: `--pdb`, `--trace` and `breakpoint()` with either.

One case at a time, in pytest's thread, without a time limit.
"""

import inspect
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NoReturn

import pytest
from _pytest.debugging import pytestPDB

from bakeoff._kernel.threads import is_async

SERIAL = "a debugger may stop in it"


def is_debugging(config: pytest.Config) -> bool:
    """Tell whether pytest was told to stop in tests."""
    return bool(config.getoption("usepdb", False) or config.getoption("trace", False))


async def call_here(function: "partial[Any]", *, trace: bool) -> Any:
    """Call a function in this thread. With `trace`, stop at its first line."""
    debugger: Any = pytestPDB._init_pdb("runcall") if trace else None  # type: ignore[no-untyped-call]
    if not is_async(function.func):
        return function() if debugger is None else debugger.runcall(function)
    coroutine = function()
    if debugger is None:
        return await coroutine
    # As `runcall`: the next function that is entered is the user's, and the debugger stops at its first line.
    debugger.reset()
    sys.settrace(debugger.trace_dispatch)
    try:
        return await coroutine
    finally:
        debugger.quitting = True
        sys.settrace(None)


def raise_at(error: BaseException, function: Callable[..., Any], names: Mapping[str, Any]) -> NoReturn:
    """Raise an error at the line of a function, with these names, so that a debugger stops in the user's file."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is not None:
        made = compile(
            "\n" * (code.co_firstlineno - 1) + "raise __error__.with_traceback(None)", code.co_filename, "exec"
        )
        known = getattr(inspect.unwrap(function), "__globals__", {})
        exec(made.replace(co_name=code.co_name), known, {**names, "__error__": error})  # noqa: S102 - our own code
    raise error
