"""Declare commands and their options without importing what carries the commands out.

A subclass of `Flags` holds the options of one purpose. `command` expands a parameter of such a type into one option
for each field. Start-up must stay fast, so this module imports nothing heavy.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from importlib import import_module
from typing import Annotated, Any, get_args

import typer
from typer import Option

from bakeoff._kernel.environment import hide_our_memory
from bakeoff.options import RunOptions


@dataclass(slots=True)
class _Declared:
    """An option that is declared as the default of a field or parameter."""

    default: Any
    text: str
    names: tuple[str, ...]
    settings: dict[str, Any]

    def option(self, name: str, hint: Any, default: Any) -> Any:
        """Return the option for typer. The name is that of the field unless others are declared."""
        names, text, settings = self.names, self.text, self.settings
        if default is False and not names:
            names = (f"--{name.replace('_', '-')}",)
        if get_args(hint)[:1] == (list[str],):
            settings, text = {"metavar": "NAME", **settings}, f"{text} Repeatable."
        elif int in (hint, *get_args(hint)):
            settings = {"metavar": "N", **settings}
        return Option(*names, help=text, **settings)


def flag(default: Any, text: str, *names: str, **settings: Any) -> Any:
    """Declare an option: its default, its help text, and the settings of `typer.Option`.

    Options that are off by default have no `--no-…` form, and options with a list can be repeated.
    """
    return _Declared(default, text, names, settings)


class Flags:
    """A group of options, one for each field. Unlike a dataclass, it takes no time at start-up."""

    def __init__(self, **given: Any) -> None:
        vars(self).update({name: _default(getattr(type(self), name)) for name in self.hints()} | given)

    @classmethod
    def hints(cls) -> dict[str, Any]:
        """Return the types of all fields, those of base classes first."""
        return {
            name: hint for base in reversed(cls.__mro__) for name, hint in vars(base).get("__annotations__", {}).items()
        }

    def values(self) -> dict[str, Any]:
        """Return the fields that are set, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def options(self, **more: Any) -> RunOptions:
        """Return the run options that these flags stand for."""
        known = {one.name for one in fields(RunOptions)}
        return RunOptions(**{name: value for name, value in self.values().items() if name in known}, **more)


def command(group: typer.Typer, name: str, home: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a command to a group. The decorated function has no body: it declares the options.

    The function of the same name in the module `home` carries the command out. It is imported when the command runs,
    gets the same parameters, and returns the exit code, or None for 0. A class of flags among the parameters stands
    for one option for each of its fields; a default of the parameter sets their defaults. The docstring is the help,
    and its last paragraph the example: `Example: bakeoff …`.
    """

    def add(declared: Callable[..., None]) -> Callable[..., None]:
        groups: dict[str, type[Flags]] = {}
        expanded: list[inspect.Parameter] = []
        for parameter, hint in declared.__annotations__.items():
            default = (declared.__kwdefaults__ or {}).get(parameter, inspect.Parameter.empty)
            if isinstance(hint, type) and issubclass(hint, Flags):
                groups[parameter] = hint
                values = vars(hint() if default is inspect.Parameter.empty else default)
                expanded += [
                    _parameter(field, field_hint, getattr(hint, field), values[field])
                    for field, field_hint in hint.hints().items()
                ]
            elif parameter != "return":
                expanded.append(_parameter(parameter, hint, default, _default(default)))

        @wraps(declared)
        def call(**given: Any) -> None:
            if ":/" in str(given.get("results")):
                given["results"] = import_module("bakeoff.storage.store_copy").results_folder(given["results"])
            for parameter, flags in groups.items():
                given[parameter] = flags(**{field: given.pop(field) for field in flags.hints()})
            hide_our_memory()
            carry_out = getattr(import_module(home), declared.__name__)
            with import_module("bakeoff.cli.console").telling_of_damage():
                code = carry_out(**given)
            raise typer.Exit(code or 0)

        vars(call).update(
            home=home,
            __signature__=inspect.Signature(expanded),
            __annotations__={parameter.name: parameter.annotation for parameter in expanded},
        )
        text, example = split_help(inspect.getdoc(declared) or "")
        group.command(name, help=text, short_help=first_sentence(text), epilog=example)(call)
        return declared

    return add


def group_of(text: str, example: str, **settings: Any) -> typer.Typer:
    """Return a group of commands with its help and an example. Without a text, the group's callback has the help."""
    _, shown = split_help(f"{text}\n\nExample: {example}")
    if text:
        settings |= {"help": text, "short_help": first_sentence(text)}
    settings["context_settings"] = {"help_option_names": ["--help", "-h"], **settings.get("context_settings", {})}
    # The rich-formatted help takes three times as long to appear.
    return typer.Typer(epilog=shown, rich_markup_mode=None, **{"no_args_is_help": True, **settings})


def split_help(text: str) -> tuple[str, str | None]:
    """Return a help text and, in the form that stands below the options, its example."""
    text, found, example = text.partition("\n\nExample: ")
    lines = "\n".join(f"  {line.strip()}" for line in example.splitlines())
    return text, f"\b\nExample:\n{lines}" if found else None


def first_sentence(text: str) -> str:
    """Return what a list of commands shows of a help text. Unlike typer's own choice, it is never cut."""
    return re.split(r"(?<=[.?]) ", " ".join(text.partition("\n\n")[0].split()), maxsplit=1)[0]


def _parameter(name: str, hint: Any, declared: Any, default: Any) -> inspect.Parameter:
    if isinstance(declared, _Declared):
        hint = Annotated[hint, declared.option(name, hint, default)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _default(declared: Any) -> Any:
    return declared.default if isinstance(declared, _Declared) else declared
