"""Drafts as YAML: by themselves, as a whole configuration, or among the cases of one that is there."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from bakeoff.doors.mcp_suite.generate.cases import Draft
from bakeoff.errors import UsageError
from bakeoff.mcp import ServerSpec

# What every reader of YAML takes for a text as it stands; all else is quoted.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*[.?!]?")
_NO_TEXT = re.compile(r"null|true|false|yes|no|on|off|y|n", re.IGNORECASE)


class _Dumper(yaml.SafeDumper):
    """Without aliases, which would be hard to read, and with lists set in."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - its shape
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - its shape
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = _PLAIN.fullmatch(text) and not _NO_TEXT.fullmatch(text)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _text)


def cases_text(drafts: Sequence[Draft]) -> str:
    """`testCases:` and its list, for somebody to copy."""
    return _dumped({"testCases": [draft.as_case() for draft in drafts]})


def whole_config(drafts: Sequence[Draft], servers: Sequence[ServerSpec], models: Sequence[str]) -> str:
    """A configuration that can be evaluated as it is."""
    about: dict[str, Any] = {"testRound": 3, "modelsToTest": list(models)}
    about["testCases"] = [draft.as_case() for draft in drafts]
    about["mcpServers"] = [_server(server) for server in servers]
    return _dumped(about)


def added_to(text: str, drafts: Sequence[Draft], file: Path) -> str:
    """The same file with the drafts behind its cases; nothing else in it changes."""
    cases = _cases_node(text, file)
    lines = text.splitlines(keepends=True)
    last = cases.value[-1].end_mark
    end = last.line if last.column == 0 else last.line + 1
    while end > 0 and not _says_something(lines[end - 1]):
        end -= 1
    lines[end - 1] = lines[end - 1].rstrip("\r\n") + "\n"
    column = cases.value[0].start_mark.column - 2
    new = _dumped([draft.as_case() for draft in drafts])
    indented = [f"{' ' * max(0, column)}{line}\n" for line in new.splitlines()]
    return "".join([*lines[:end], *indented, *lines[end:]])


def _cases_node(text: str, file: Path) -> yaml.SequenceNode:
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    found = next((value for name, value in pairs if name.value == "testCases"), None)
    if not isinstance(found, yaml.SequenceNode) or found.flow_style or not found.value:
        raise UsageError(f"{file}: its testCases are no list with a `-` before each: write them so, or leave out -o")
    return found


def _says_something(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _server(spec: ServerSpec) -> dict[str, Any]:
    if spec.url is not None:
        return {"name": spec.name, "url": spec.url}
    return {"name": spec.name, "command": spec.command, "args": list(spec.args)}


def _dumped(value: Any) -> str:
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return text
