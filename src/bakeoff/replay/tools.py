"""`@replayable`: record the results of a local tool, and replay them like model answers."""

import functools
import inspect
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import JsonValue, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from bakeoff._kernel.json import as_json
from bakeoff.errors import UsageError
from bakeoff.replay.application import ApplicationCall, active_store
from bakeoff.replay.store import Recording
from bakeoff.storage.redaction import Redactor, secrets_within

KIND = "tools"
_Function = TypeVar("_Function", bound=Callable[..., Any])


class ToolRecording(Recording):
    """The arguments and the `result` of one call of a tool."""

    kind: str = KIND
    answer: dict[str, Any]


@typing.overload
def replayable(function: _Function, /) -> _Function: ...


@typing.overload
def replayable(
    *,
    version: str | int | None = None,
    key: Callable[..., Any] | None = None,
    sanitize: Callable[[Any], Any] | None = None,
    errors: type[Exception] | tuple[type[Exception], ...] = (),
) -> Callable[[_Function], _Function]: ...


def replayable(
    function: Any = None,
    /,
    *,
    version: str | int | None = None,
    key: Callable[..., Any] | None = None,
    sanitize: Callable[[Any], Any] | None = None,
    errors: type[Exception] | tuple[type[Exception], ...] = (),
) -> Any:
    """Record and replay the results of a function while replay is on. Otherwise, just call it.

    A recording is found by the function's name, arguments and `version`. Change the version
    whenever the function changes, so that new results are recorded.

    Args:
        version: any value; it becomes part of the key.
        key: a function of the same arguments. Its result replaces them in the key and the
            recording.
        sanitize: a function that changes the result before it is recorded. The caller gets the
            original.
        errors: exceptions to record, and to raise again on replay. Others are not recorded.
    """
    if function is None:
        return functools.partial(replayable, version=version, key=key, sanitize=sanitize, errors=errors)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(f"@replayable: {function.__qualname__} is a generator: return its results as a list")
    tool = _RecordedTool(function, version, key, sanitize, errors if isinstance(errors, tuple) else (errors,))

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            with tool.recorded(args, kwargs) as outcome:
                if not outcome:
                    outcome.append(await function(*args, **kwargs))
            return outcome[0]

        return call_async

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with tool.recorded(args, kwargs) as outcome:
            if not outcome:
                outcome.append(function(*args, **kwargs))
        return outcome[0]

    return call


@dataclass
class _RecordedTool:
    """A function, and how to convert its arguments and results to and from JSON."""

    function: Callable[..., Any]
    version: str | int | None
    key: Callable[..., Any] | None
    sanitize: Callable[[Any], Any] | None
    errors: tuple[type[Exception], ...]

    def __post_init__(self) -> None:
        self.name = f"{self.function.__module__}.{self.function.__qualname__}"
        self.signature = inspect.signature(self.function)

    @contextmanager
    def recorded(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[list[Any]]:
        """Yield a list with the recorded result. If it is empty, the caller adds the real result.

        Calls that raise are recorded only for the chosen classes of errors.
        """
        store = active_store()
        if store is None:
            yield []
            return
        asked = self._question(args, kwargs)
        call = ApplicationCall(store, KIND, asked, Redactor(secrets_within(asked["arguments"])))
        recording = call.find(ToolRecording)
        if recording is not None:
            if (error := recording.answer.get("error")) is not None:
                raise self._error(error)
            yield [self._results.validate_python(recording.answer.get("result"))]
            return
        outcome: list[Any] = []
        try:
            yield outcome
            result = outcome[0] if self.sanitize is None else self.sanitize(outcome[0])
            call.keep(ToolRecording(asked=dict(call.key.asked), answer={"result": self._to_json(result)}))
        except self.errors as error:
            told = {"type": _name(type(error)), "arguments": as_json(list(error.args))}
            call.keep(ToolRecording(asked=dict(call.key.asked), answer={"error": told}))
            raise
        except BaseException:
            call.failed()
            raise

    @functools.cached_property
    def _results(self) -> TypeAdapter[Any]:
        """Return a reader that restores results by the return annotation, or else as plain data."""
        try:
            return TypeAdapter(typing.get_type_hints(self.function).get("return", Any))
        except (NameError, TypeError, PydanticUserError):  # names imported only for type checking
            return TypeAdapter(Any)

    def _error(self, told: dict[str, Any]) -> Exception:
        """Return a recorded error as an instance of its original class."""
        kinds = list(self.errors)
        for kind in kinds:
            kinds += (each for each in kind.__subclasses__() if each not in kinds)
        for kind in kinds:
            if _name(kind) == told["type"]:
                error = kind.__new__(kind, *told["arguments"])
                error.args = tuple(told["arguments"])
                return error
        raise UsageError(
            f"@replayable: {self.name} is recorded with a {told['type']}, which is not one of its `errors` any more: "
            "record it again with `--eval-replay=record`"
        )

    def _question(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given: Any = {name: value for name, value in bound.arguments.items() if name not in ("self", "cls")}
        if self.key is not None:
            given = {"key": self.key(*args, **kwargs)}
        try:
            # Replace objects that are not data by their type, which is the same in every process.
            data = to_json(
                given,
                fallback=lambda value: f"<{type(value).__qualname__}>",
                inf_nan_mode="strings",
                bytes_mode="base64",
            )
            arguments = from_json(data)
        except ValueError as error:
            raise UsageError(f"@replayable: the arguments of {self.name} cannot be recorded: {error}") from error
        asked = {"function": self.name, "arguments": arguments}
        return asked if self.version is None else {**asked, "version": self.version}

    def _to_json(self, result: Any) -> JsonValue:
        """Return the result as JSON. Refuse results that replay would not restore exactly."""
        try:
            data: JsonValue = from_json(self._results.dump_json(result, warnings=False))
            same = bool(self._results.validate_python(data) == result)
        except (PydanticSerializationError, ValidationError, ValueError, TypeError):
            data, same = None, False
        if not same:
            raise UsageError(
                f"@replayable: {self.name} returned a {type(result).__name__} that JSON does not preserve: "
                "return plain data, or annotate the function with a pydantic model or a dataclass"
            )
        return data


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
