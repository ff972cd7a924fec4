"""`@replayable`: a local tool whose results are recorded and replayed as answers of models are."""

import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import JsonValue, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from bakeoff.errors import UsageError
from bakeoff.replay.store import Request, Tape, tape_on
from bakeoff.storage.redaction import Redactor, secrets_within

KIND = "tools"
_Function = TypeVar("_Function", bound=Callable[..., Any])


@typing.overload
def replayable(function: _Function, /) -> _Function: ...


@typing.overload
def replayable(*, version: str | int | None = None) -> Callable[[_Function], _Function]: ...


def replayable(function: Any = None, /, *, version: str | int | None = None) -> Any:
    """Record what the function returns, and replay it, while replay is on; otherwise it is called as ever.

    A recording is found by the function's name, its arguments and the version: raise that when the function changes.
    """
    if function is None:
        return lambda decorated: replayable_with(decorated, version)
    return replayable_with(function, version)


def replayable_with(function: Callable[..., Any], version: str | int | None) -> Callable[..., Any]:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(f"@replayable: {function.__qualname__} gives its results bit by bit: return them as a list")
    tool = _Tool(function, version)

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def asked_later(*args: Any, **kwargs: Any) -> Any:
            with _Played(tool, args, kwargs) as played:
                if not played.found:
                    played.keep(await function(*args, **kwargs))
            return played.result

        return asked_later

    @functools.wraps(function)
    def asked(*args: Any, **kwargs: Any) -> Any:
        with _Played(tool, args, kwargs) as played:
            if not played.found:
                played.keep(function(*args, **kwargs))
        return played.result

    return asked


class _Tool:
    """A function, with the words for its arguments and results."""

    def __init__(self, function: Callable[..., Any], version: str | int | None) -> None:
        self.function = function
        self.name = f"{function.__module__}.{function.__qualname__}"
        self.version = version
        self.signature = inspect.signature(function)

    @functools.cached_property
    def results(self) -> TypeAdapter[Any]:
        """By the annotation, where there is one that pydantic knows, so that objects come back as objects."""
        try:
            return TypeAdapter(typing.get_type_hints(self.function).get("return", Any))
        except (NameError, TypeError, PydanticUserError):  # names that are imported for type checkers only, for one
            return TypeAdapter(Any)

    def question(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = {name: value for name, value in bound.arguments.items() if name not in ("self", "cls")}
        try:
            arguments = from_json(to_json(given, fallback=_kind, inf_nan_mode="strings", bytes_mode="base64"))
        except ValueError as error:
            raise UsageError(f"@replayable: what {self.name} is given cannot be recorded: {error}") from error
        asked = {"function": self.name, "arguments": arguments}
        return asked if self.version is None else {**asked, "version": self.version}

    def written(self, result: Any) -> JsonValue:
        """The result as JSON that gives it back; else the recorded run and the replayed one would differ."""
        try:
            data: JsonValue = from_json(self.results.dump_json(result, warnings=False))
            same = bool(self.results.validate_python(data) == result)
        except (PydanticSerializationError, ValidationError, ValueError, TypeError):
            data, same = None, False
        if not same:
            raise UsageError(
                f"@replayable: {self.name} returned a {type(result).__name__} that JSON does not give back as it was: "
                "return plain data, or annotate the function with a pydantic model or a dataclass"
            )
        return data


def _kind(value: Any) -> str:
    """Stands for what is no data; unlike its `repr` it is the same in every process."""
    return f"<{type(value).__qualname__}>"


class _Played:
    """One call: found on the tape, or made and kept there. What the function raises is not kept."""

    def __init__(self, tool: _Tool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._tool = tool
        self._tape: Tape | None = tape_on()
        self._request: Request | None = None
        self._secrets: Redactor | None = None
        self._arguments = (args, kwargs)
        self.found = False
        self._kept = False
        self.result: Any = None

    def __enter__(self) -> "_Played":
        if self._tape is None:
            return self
        question = self._tool.question(*self._arguments)
        self._secrets = Redactor(secrets_within(question["arguments"]))
        request = self._tape.request(KIND, question, self._secrets)
        self._request = request
        recorded = self._tape.find(request)
        if recorded is not None:
            self.found = self._kept = True
            self.result = self._tool.results.validate_python(recorded.answer.get("result"))
        return self

    def keep(self, result: Any) -> None:
        self.result = result
        if self._tape is not None and self._request is not None:
            self._tape.keep(self._request, {"result": self._tool.written(result)}, self._secrets)
        self._kept = True

    def __exit__(self, *_: object) -> None:
        if not self._kept and self._request is not None:
            self._request.give_back()
