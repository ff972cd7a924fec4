"""Declare commands and their options.

A subclass of `Flags` holds the options of one purpose. `command` expands a parameter of such a type into one option
for each field. `add_lazily` adds a command whose module is imported when the command is used. Start-up must stay fast,
so this module imports nothing heavy.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import wraps
from importlib import import_module
from typing import Annotated, Any, ClassVar, TypeVar, get_args

import typer
from typer import Option
from typer.core import TyperCommand, TyperGroup

from bakeoff._kernel.environment import hide_our_memory
from bakeoff.options import RunOptions

PASSED, FAILED, UNDECIDED, INTERRUPTED = 0, 1, 3, 130
"""The exit codes of commands that run something; errors of usage and configuration exit with 2."""

_Function = TypeVar("_Function", bound=Callable[..., int | None])

FIRST_OPTIONS = {
    "Choose": "--agent --model --subject --prompt --suite --suites --exercise --exercises --case --mcp --with --rounds "
    "--subject-a --subject-b",
    "Run": "--check --dry-run --watch --jobs --max-cost",
    "Decide": "--fail-under --gate --until-decided --margin --undecidable",
    "Results": "--json --junit --html",
    "Logs of other tools": "--scorer --scale --threshold --format",
}
"""The options that people use first, by the title above them in a long help; the others follow under `Advanced`."""
_LONG_HELP = 18  # options; a shorter help is one list


@dataclass(slots=True)
class _Declared:
    """The declaration of an option, used as the default of a field or parameter."""

    default: Any
    text: str
    names: tuple[str, ...]
    settings: dict[str, Any]

    def option(self, name: str, hint: Any, default: Any) -> Any:
        """Return the option for typer. By default, the option is named after the field."""
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

    Options that are off by default have no `--no-…` form. Options that take lists can be repeated.
    """
    return _Declared(default, text, names, settings)


class Flags:
    """A group of options, one for each field. Unlike a dataclass, it does not slow start-up."""

    def __init__(self, **given: Any) -> None:
        vars(self).update({name: _default(getattr(type(self), name)) for name in self.hints()} | given)

    @classmethod
    def hints(cls) -> dict[str, Any]:
        """Return the types of all fields; the fields of base classes come first."""
        return {
            name: hint for base in reversed(cls.__mro__) for name, hint in vars(base).get("__annotations__", {}).items()
        }

    def values(self) -> dict[str, Any]:
        """Return the fields that are set, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def options(self, **more: Any) -> RunOptions:
        """Convert these flags to run options."""
        known = {one.name for one in fields(RunOptions)}
        return RunOptions(**{name: value for name, value in self.values().items() if name in known}, **more)


def command(group: typer.Typer, name: str) -> Callable[[_Function], _Function]:
    """Add the decorated function to a group as a command.

    The function returns the exit code, or None for 0. Its keyword-only parameters are the options. A class of flags is
    expanded to one option for each of its fields. The docstring is the help, and its last paragraph the example:
    `Example: bakeoff …`.
    """

    def add(function: _Function) -> _Function:
        groups: dict[str, type[Flags]] = {}
        expanded: list[inspect.Parameter] = []
        defaults = function.__kwdefaults__ or {}
        for parameter, hint in function.__annotations__.items():
            if isinstance(hint, type) and issubclass(hint, Flags):
                groups[parameter] = hint
                expanded += [_parameter(field, one, getattr(hint, field)) for field, one in hint.hints().items()]
            elif parameter != "return":
                expanded.append(_parameter(parameter, hint, defaults.get(parameter, inspect.Parameter.empty)))

        @wraps(function)
        def call(**given: Any) -> None:
            if ":/" in str(given.get("results")):
                given["results"] = import_module("bakeoff.storage.store_copy").results_folder(given["results"])
            for parameter, flags in groups.items():
                given[parameter] = flags(**{field: given.pop(field) for field in flags.hints()})
            hide_our_memory()
            with import_module("bakeoff.cli.console").telling_of_damage():
                code = function(**given)
            raise typer.Exit(code or 0)

        vars(call).update(
            __signature__=inspect.Signature(expanded),
            __annotations__={parameter.name: parameter.annotation for parameter in expanded},
        )
        text, example = split_help(inspect.getdoc(function) or "")
        short = first_sentence(text)
        group.command(name, cls=GroupedCommand, help=text, short_help=short, epilog=example)(call)
        # Code that calls the function itself gets the same defaults as the command line.
        function.__kwdefaults__ = {parameter: _default(declared) for parameter, declared in defaults.items()}
        return function

    return add


class GroupedCommand(TyperCommand):
    """A command whose help, if it is long, shows the options in groups: those of `FIRST_OPTIONS`, then the others."""

    def grouped(self, parameters: Iterable[Any]) -> dict[str, list[Any]]:
        """Return the parameters by the title above them, in the order of the help."""
        shown = [each for each in parameters if not getattr(each, "hidden", False)]
        found = {"Arguments": [each for each in shown if each.param_type_name == "argument"]}
        options = {each.opts[0]: each for each in shown if each.param_type_name == "option"}
        is_long = len(options) > _LONG_HELP
        for title, names in FIRST_OPTIONS.items() if is_long else ():
            found[title] = [options.pop(name) for name in names.split() if name in options]
        found["Advanced" if is_long else "Options"] = list(options.values())
        return {title: group for title, group in found.items() if group}

    def format_options(self, ctx: Any, formatter: Any) -> None:
        for title, group in self.grouped(self.get_params(ctx)).items():
            with formatter.section(title):
                formatter.write_dl([each.get_help_record(ctx) for each in group])


class GroupedCommands(TyperGroup):
    """A group that lists its commands under the titles that they were added with."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        titles: dict[str, list[tuple[str, str]]] = {}
        names = self.list_commands(ctx)
        for name in names:
            child = self.commands[name]
            row = name.ljust(max(map(len, names))), child.get_short_help_str(1000)
            titles.setdefault(getattr(child, "rich_help_panel", None) or "Commands", []).append(row)
        for title, rows in titles.items():
            with formatter.section(title):
                formatter.write_dl(rows)


class LazyCommand(TyperCommand):
    """A placeholder for a command or group, with a name and a line of help, imported when used.

    `home` is the module to import, or `module:attribute` for a group other than its `app`. The
    command with this name is taken from the group or, if there is none, the group itself is used.
    """

    home: ClassVar[str]

    def load(self) -> Any:
        """Return the command or group that this placeholder stands for."""
        module, _, attribute = self.home.partition(":")
        group = typer.main.get_group(getattr(import_module(module), attribute or "app"))
        return group.commands.get(str(self.name), group)

    def make_context(self, *args: Any, **settings: Any) -> Any:
        return self.load().make_context(*args, **settings)


def add_lazily(
    group: typer.Typer, package: str, commands: Iterable[tuple[str, str, str]], titles: Mapping[str, str] | None = None
) -> None:
    """Add commands and groups that are imported when they are used.

    Each tuple has a name, a line of help, and a module of the package (see `LazyCommand.home`). `titles` has the
    title above a command and those after it.
    """
    title = "Commands"
    for name, text, module in commands:
        title = (titles or {}).get(name, title)
        command_class = type("LazyCommand", (LazyCommand,), {"home": f"{package}.{module}"})
        group.command(name, short_help=text, cls=command_class, rich_help_panel=title)(lambda: None)


def subcommands(command: Any) -> dict[str, Any]:
    """Return the commands of a group by name, with their modules imported; empty for a single command."""
    commands = getattr(command, "commands", {})
    return {name: child.load() if isinstance(child, LazyCommand) else child for name, child in commands.items()}


def group_of(text: str = "", example: str = "", **settings: Any) -> typer.Typer:
    """Return a group of commands with its help and an example.

    Omit the help if the commands belong to another group, or if a callback has a docstring.
    """
    if text:
        settings |= {"help": text, "short_help": first_sentence(text)}
    if example:
        settings["epilog"] = split_help(f"\n\nExample: {example}")[1]
    settings["context_settings"] = {"help_option_names": ["--help", "-h"], **settings.get("context_settings", {})}
    # The rich-formatted help takes three times as long to appear.
    return typer.Typer(rich_markup_mode=None, **{"no_args_is_help": True, "cls": GroupedCommands, **settings})


def split_help(text: str) -> tuple[str, str | None]:
    """Split a help text into its description and its example, which is shown below the options."""
    text, found, example = text.partition("\n\nExample: ")
    lines = "\n".join(f"  {line.strip()}" for line in example.splitlines())
    return text, f"\b\nExample:\n{lines}" if found else None


def first_sentence(text: str) -> str:
    """Return the first sentence of a help text, uncut, for the list of commands."""
    return re.split(r"(?<=[.?]) ", " ".join(text.partition("\n\n")[0].split()), maxsplit=1)[0]


def _parameter(name: str, hint: Any, declared: Any) -> inspect.Parameter:
    default = _default(declared)
    if isinstance(declared, _Declared):
        hint = Annotated[hint, declared.option(name, hint, default)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _default(declared: Any) -> Any:
    return declared.default if isinstance(declared, _Declared) else declared
