"""Run Python of the user: one call per line of standard input, one answer per line of standard output.

It runs as a process of its own and imports nothing of ours.
"""

import asyncio
import importlib.util
import inspect
import json
import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

_MODULES = ("collections", "datetime", "json", "math", "os", "random", "re", "sys")  # known to short code
_loaded: dict[str, Any] = {}


def _function(call: dict[str, Any]) -> Callable[..., Any]:
    """Return the function of a file, or one with the given code as its body or its result."""
    if file := call.get("file"):
        found = getattr(_module(Path(file)), call["name"], None)
        if found is None:
            raise LookupError(f"{file} has no function {call['name']!r}")
        return found  # type: ignore[no-any-return]
    names = {name: __import__(name) for name in _MODULES}
    code, arguments = call["code"].strip("\n"), ", ".join(call["names"])
    if "\n" not in code:
        try:
            return eval(f"lambda {arguments}: ({code}\n)", names)  # type: ignore[no-any-return]  # noqa: S307
        except SyntaxError:
            pass  # a statement, such as `return …`
    exec(f"def main({arguments}):\n{textwrap.indent(textwrap.dedent(code), '    ')}", names)  # noqa: S102
    return names["main"]  # type: ignore[return-value]


def _module(file: Path) -> Any:
    if str(file) not in _loaded:
        sys.path.insert(0, str(file.parent))
        spec = importlib.util.spec_from_file_location(file.stem, file)
        if spec is None or spec.loader is None:
            raise ImportError(f"{file} is not a module")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        _loaded[str(file)] = module
    return _loaded[str(file)]


def _answer(call: dict[str, Any]) -> str:
    try:
        function = _function(call)
    except Exception as error:  # noqa: BLE001 - any code of the user
        return json.dumps({"broken": f"{type(error).__name__}: {error}"})
    try:
        value = function(*call["args"])
        if inspect.isawaitable(value):

            async def awaited() -> Any:
                return await value

            value = asyncio.run(awaited())
        return json.dumps({"value": value}, default=lambda each: getattr(each, "__dict__", None) or str(each))
    except Exception as error:  # noqa: BLE001 - any code of the user
        return json.dumps({"error": f"{type(error).__name__}: {error}"})


def main() -> None:
    """Answer calls until the end of standard input. What the code prints goes to standard error."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        for line in sys.stdin:
            answers.write(_answer(json.loads(line)) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
