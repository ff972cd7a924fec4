"""The reference of the Python API: signature and docstring of each public name."""

import inspect
import re
from types import ModuleType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from scripts.docs_site.markdown import code, table

import bakeoff
import bakeoff.scorers

_WIDTH = 90  # characters of a line of code on a page
_MODULES = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z_])")


def api_reference() -> str:
    """Return a section for each public name of `bakeoff` and of `bakeoff.scorers`."""
    return f"{_section(bakeoff, 'Signatures')}\n\n{_section(bakeoff.scorers, 'Signatures of scorers')}"


def _section(module: ModuleType, title: str) -> str:
    names = [name for name in module.__all__ if not name.startswith("__")]
    return "\n\n".join([f"## {title}", *(_name(module.__name__, name, getattr(module, name)) for name in names)])


def _name(module: str, name: str, value: Any) -> str:
    is_model = isinstance(value, type) and issubclass(value, BaseModel)
    called = "" if is_model else f"\n\n{name}{signature(value)}"
    parts = [f"### {name}", f"```text\nfrom {module} import {name}{called}\n```", _docstring(value)]
    if is_model and (fields := _fields(value)):
        parts.append(fields)
    return "\n\n".join(part for part in parts if part)


def signature(value: Any) -> str:
    """Return the parameters of something that is called, one a line if they are long."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parameters = [each.replace(annotation=_shown(each.annotation)) for each in found.parameters.values()]
    short = found.replace(parameters=parameters, return_annotation=_shown(found.return_annotation))
    text = _without_addresses(str(short))
    if len(text) < _WIDTH:
        return text
    written = [_without_addresses(str(each)) for each in parameters]
    kinds = [each.kind for each in parameters]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        written.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    lines = "".join(f"    {each},\n" for each in written)
    return f"(\n{lines}){text.rpartition(')')[2]}"


class _Shown(str):
    """A type that is written without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _shown(annotation: Any) -> Any:
    return annotation if annotation is inspect.Parameter.empty else _Shown(_type(annotation))


def _type(annotation: Any) -> str:
    """Return a type without its modules and validators."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(arguments[0])
    if origin in (Union, UnionType):
        return " | ".join(map(_type, arguments))
    if annotation is NoneType:
        return "None"
    if origin is Literal:
        return _MODULES.sub("", str(annotation))
    if not arguments:
        return _MODULES.sub("", inspect.formatannotation(annotation)).replace("'", "")
    return f"{getattr(origin, '__name__', origin)}[{', '.join(map(_argument, arguments))}]"


def _argument(argument: Any) -> str:
    if isinstance(argument, list):
        return f"[{', '.join(map(_argument, argument))}]"
    return "..." if argument is ... else _type(argument)


def _without_addresses(text: str) -> str:
    return re.sub(r"<[^<>]*>", "…", text)


def _docstring(value: Any) -> str:
    """Return a docstring as Markdown, its arguments as a list."""
    text = inspect.cleandoc(value.__doc__ or "")
    return re.sub(r"^Args:\n((?: {4}.*\n?)+)", lambda found: _list(found[1]), text, flags=re.MULTILINE)


def _list(arguments: str) -> str:
    return re.sub(r"^ {4}(\*{0,2}\w+): ", r"- `\1`: ", arguments, flags=re.MULTILINE)


def _fields(model: type[BaseModel]) -> str:
    rows = [
        (code(name), code(_type(field.annotation)), _default(field), field.description or "")
        for name, field in model.model_fields.items()
    ]
    return table(("field", "type", "default", ""), rows) if rows else ""


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    return "" if value in (None, "", (), {}) or isinstance(value, BaseModel) else code(repr(value))
