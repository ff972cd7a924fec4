"""Drafts as YAML: by themselves, as a whole configuration, or among the cases of one that is there."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import yaml
from pydantic import JsonValue

from bakeoff._kernel.yaml_with_lines import parse_yaml, read_yaml
from bakeoff.doors.mcp_suite.generate.drafts import Draft
from bakeoff.errors import UsageError
from bakeoff.mcp import ServerSpec

# What every reader of YAML takes for a text as it stands; all else is quoted.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*[.?!]?")
_NO_TEXT = re.compile(r"null|true|false|yes|no|on|off|y|n", re.IGNORECASE)
_LINE_END = re.compile("\r\n|[\r\n\x85\u2028\u2029]")  # what YAML ends a line with


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


@dataclass(frozen=True, slots=True)
class Frame:
    """What a configuration has besides its cases, as it is written: a `${NAME}` stays one, for it may be a secret."""

    models: JsonValue
    servers: JsonValue
    providers: Mapping[str, JsonValue] = field(default_factory=dict)

    @classmethod
    def given(cls, servers: Sequence[ServerSpec], models: Sequence[str]) -> Self:
        return cls(list(models), [server.model_dump(mode="json", exclude_defaults=True) for server in servers])

    @classmethod
    def of_file(cls, file: Path, folder: Path) -> Self:
        """That of a file, for one in a folder. It is read again: what is known of it has its variables filled in."""
        value = read_yaml(file).value
        assert isinstance(value, dict), "it has been read as a configuration"
        servers, providers = value["mcpServers"], value.get("providers")
        if file.parent.resolve() != folder.resolve() and isinstance(servers, list):
            servers = [_from_afar(server, file.parent.resolve(), folder.resolve()) for server in servers]
        return cls(value["modelsToTest"], servers, providers if isinstance(providers, dict) else {})


def _from_afar(server: JsonValue, home: Path, folder: Path) -> JsonValue:
    """Programs are started in the folder of their configuration; what they are given may lie there."""
    if not isinstance(server, dict) or server.get("command") is None:
        return server
    cwd = str(server.get("cwd") or "")
    return server if "${" in cwd else {**server, "cwd": os.path.relpath(home / cwd, folder)}


def whole_config(drafts: Sequence[Draft], frame: Frame) -> str:
    """A configuration that can be evaluated as it is."""
    about: dict[str, Any] = {"testRound": 3, "modelsToTest": frame.models}
    if frame.providers:
        about["providers"] = dict(frame.providers)
    about["testCases"] = [draft.as_case() for draft in drafts]
    about["mcpServers"] = frame.servers
    return _dumped(about)


def added_to(text: str, drafts: Sequence[Draft], file: Path) -> str:
    """The same file with the drafts behind its cases; nothing else in it changes."""
    line_end = "\r\n" if "\r\n" in text else "\n"
    if not _LINE_END.match(text, max(0, len(text) - 1)):
        text += line_end
    tokens = _tokens_of_cases(text, file)
    column = next(token for token in tokens if isinstance(token, yaml.BlockEntryToken)).start_mark.column
    end = _end_of_line(text, tokens[-1])
    new = _dumped([draft.as_case() for draft in drafts])
    indented = "".join(f"{' ' * column}{line}{line_end}" for line in new.splitlines())
    made = f"{text[:end]}{indented}{text[end:]}"
    if not _only_adds(text, drafts, made, file):
        raise UsageError(f"{file}: cases cannot be added to it as it is written: leave out -o, and copy them")
    return made


def _tokens_of_cases(text: str, file: Path) -> list[yaml.Token]:
    """Those that can be seen. Not nodes, because an alias has the place of what it stands for."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    found = next((value for name, value in pairs if name.value == "testCases"), None)
    if not isinstance(found, yaml.SequenceNode) or found.flow_style or not found.value:
        raise UsageError(f"{file}: its testCases are no list with a `-` before each: write them so, or leave out -o")
    start, end = found.start_mark.index, found.end_mark.index
    tokens = (token for token in yaml.scan(text, Loader=yaml.SafeLoader) if start <= token.start_mark.index < end)
    return [token for token in tokens if token.start_mark.index < token.end_mark.index]


def _end_of_line(text: str, last: yaml.Token) -> int:
    """Behind the line that a token ends on; of empty lines behind a text of several, only if they belong to it."""
    end: int = last.end_mark.index
    if last.end_mark.column == 0:
        assert isinstance(last, yaml.ScalarToken), "nothing else takes in the end of its line"
        if not last.value[-2:].strip("\n"):
            return end
        end = len(text[:end].rstrip("\r\n"))
    found = _LINE_END.search(text, end)
    return len(text) if found is None else found.end()


def _only_adds(text: str, drafts: Sequence[Draft], made: str, file: Path) -> bool:
    before, after = parse_yaml(text, file).value, parse_yaml(made, file).value
    assert isinstance(before, dict), "it has cases"
    cases = before["testCases"]
    assert isinstance(cases, list), "they are a list"
    return after == {**before, "testCases": [*cases, *(draft.as_case() for draft in drafts)]}


def _dumped(value: Any) -> str:
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return text
