"""The reference of the command line: every command with its help, its usage and its options."""

import argparse
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import typer
from scripts.docs_site.markdown import code, table

from bakeoff.cli.declare import subcommands
from bakeoff.cli.main import app
from bakeoff.doors.pytest.options import add_options


def command_reference() -> str:
    """Return a section for each command, in the order of the help."""
    return "\n\n".join(_section(context) for context in _commands(typer.main.get_command(app), None, "bakeoff"))


def _commands(command: Any, parent: Any, name: str) -> Iterator[Any]:
    context = type(command).context_class(command, info_name=name, parent=parent)
    if not (below := subcommands(command)):
        yield context
    for each, child in below.items():
        if not child.hidden:
            yield from _commands(child, context, each)


def _section(context: Any) -> str:
    command = context.command
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [f"## {context.command_path}", command.help or "", f"```text\n{context.command_path} {usage}\n```"]
    for title, group in command.grouped(command.params).items():
        rows = [each.get_help_record(context) for each in group if each.name != "help"]
        parts += [table((title.lower(), ""), [(code(names), text) for names, text in rows])] if rows else []
    return "\n\n".join(parts)


def pytest_reference() -> str:
    """Return the options that the plugin adds to pytest."""
    parser = argparse.ArgumentParser()
    add_options(cast("Any", SimpleNamespace(addoption=parser.add_argument)))
    rows = []
    for option in parser._actions:
        if option.dest == "help" or option.help == argparse.SUPPRESS:
            continue
        value = "|".join(option.choices) if option.choices else option.metavar or ""
        rows.append((code(f"{option.option_strings[0]} {value}".strip()), str(option.help)))
    return table(("option", ""), rows)
