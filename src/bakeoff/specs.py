"""From specs, which are data, to the objects they name: reading options and importing `module:attribute`."""

import hashlib
import importlib
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from bakeoff.errors import UsageError
from bakeoff.plan import ScorerSpec, SubjectSpec

Options = TypeVar("Options", bound=BaseModel)


def describe(spec: SubjectSpec | ScorerSpec) -> str:
    """How errors name a spec."""
    return f"subject {spec.name!r} ({spec.kind})" if isinstance(spec, SubjectSpec) else f"scorer {spec.kind!r}"


def read_options(spec: SubjectSpec | ScorerSpec, model: type[Options]) -> Options:
    """A spec's options as its kind declares them, or an error that names the spec, the option and the value."""
    try:
        return model.model_validate(spec.options)
    except ValidationError as error:
        allowed = ", ".join(model.model_fields) or "none"
        problems = "; ".join(
            f"option {'.'.join(map(str, item['loc']))}: {item['msg']} (got {item['input']!r})"
            for item in error.errors()
        )
        raise UsageError(f"{describe(spec)}: {problems}. Its options are: {allowed}") from error


def import_target(target: str, who: str) -> Any:
    """The function, or whatever else can be called, that `module:attribute` names."""
    found = import_object(target, who)
    if not callable(found):
        raise UsageError(f"{who}: {target!r} is not callable")
    return found


def import_object(target: str, who: str) -> Any:
    """The object that `module:attribute` names."""
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute or module_name.startswith("."):
        raise UsageError(f"{who}: {target!r} does not name a function: write it as `module:function`")
    try:
        found: Any = importlib.import_module(module_name)
    except (ImportError, SyntaxError) as error:
        raise UsageError(f"{who}: module {module_name!r} cannot be imported: {error}") from error
    try:
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        raise UsageError(
            f"{who}: {module_name!r} has no {attribute!r}; a function made inside another cannot be named"
        ) from error
    return found


def target_of(function: Callable[..., Any]) -> str:
    """How a function is named as `module:attribute`."""
    return f"{function.__module__}:{getattr(function, '__qualname__', type(function).__qualname__)}"


def revision_of(function: Callable[..., Any]) -> str:
    """Changes when the function's source does."""
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        source = ""
    return hashlib.blake2b(source.encode(), digest_size=8).hexdigest()
