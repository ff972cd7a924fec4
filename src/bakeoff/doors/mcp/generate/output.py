"""Write drafts as YAML: alone, as a complete configuration, or added to an existing one."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import yaml
from pydantic import JsonValue

from bakeoff._kernel.yaml import parse_yaml, read_yaml
from bakeoff.doors.mcp.examples import SCHEMA_NAME
from bakeoff.doors.mcp.generate.drafts import Draft
from bakeoff.errors import UsageError
from bakeoff.mcp import ServerSpec

# Texts that every YAML reader reads as texts without quotes. All others are quoted.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*[.?!]?")
_NO_TEXT = re.compile(r"null|true|false|yes|no|on|off|y|n", re.IGNORECASE)
_SECONDS = 300  # for one answer, as in the examples: the embedded model is slow on a busy machine
_LINE_END = re.compile("\r\n|[\r\n\x85\u2028\u2029]")  # all line ends of YAML


class _Dumper(yaml.SafeDumper):
    """Write no aliases, which are hard to read, and indent lists."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the signature of the base class
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - the signature of the base class
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = _PLAIN.fullmatch(text) and not _NO_TEXT.fullmatch(text)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _text)


def cases_text(drafts: Sequence[Draft]) -> str:
    """Return `testCases:` with the drafts, to copy into a configuration."""
    return _dump({"testCases": [draft.as_case() for draft in drafts]})


@dataclass(frozen=True, slots=True)
class Frame:
    """The rest of a configuration, unexpanded: a `${NAME}` may be a secret."""

    models: JsonValue
    servers: JsonValue
    providers: Mapping[str, JsonValue] = field(default_factory=dict)

    @classmethod
    def given(cls, servers: Sequence[ServerSpec], models: Sequence[str]) -> Self:
        return cls(list(models), [server.model_dump(mode="json", exclude_defaults=True) for server in servers])

    @classmethod
    def of_file(cls, file: Path, folder: Path) -> Self:
        """Read the frame of a file, for a new file in `folder`. Read the file again, because a suite has its variables
        expanded."""
        value = read_yaml(file).value
        assert isinstance(value, dict), "the file was read as a configuration before"
        servers, providers = value["mcpServers"], value.get("providers")
        if file.parent.resolve() != folder.resolve() and isinstance(servers, list):
            servers = [_moved(server, file.parent.resolve(), folder.resolve()) for server in servers]
        return cls(value["modelsToTest"], servers, providers if isinstance(providers, dict) else {})


def _moved(server: JsonValue, home: Path, folder: Path) -> JsonValue:
    """Keep the working folder of a program, which is the folder of its configuration."""
    if not isinstance(server, dict) or server.get("command") is None:
        return server
    cwd = str(server.get("cwd") or "")
    return server if "${" in cwd else {**server, "cwd": os.path.relpath(home / cwd, folder)}


def whole_config(drafts: Sequence[Draft], frame: Frame) -> str:
    """Return a complete configuration that can be evaluated."""
    config: dict[str, Any] = {
        "testRound": 3,
        "passThreshold": 1,
        "modelsToTest": frame.models,
        "modelSettings": {"timeout": _SECONDS},
    }
    if frame.providers:
        config["providers"] = dict(frame.providers)
    config["testCases"] = [draft.as_case() for draft in drafts]
    config["mcpServers"] = frame.servers
    return config_text(config)


def config_text(config: Mapping[str, Any]) -> str:
    """Return a configuration as YAML, with the line that names its schema to editors."""
    return f"# yaml-language-server: $schema=./{SCHEMA_NAME}\n{_dump(dict(config))}"


def added_to(text: str, drafts: Sequence[Draft], file: Path) -> str:
    """Return the text of the file with the drafts after its cases. Everything else stays unchanged."""
    line_end = "\r\n" if "\r\n" in text else "\n"
    if not _LINE_END.match(text, max(0, len(text) - 1)):
        text += line_end
    tokens = _tokens_of_cases(text, file)
    column = next(token for token in tokens if isinstance(token, yaml.BlockEntryToken)).start_mark.column
    end = _end_of_line(text, tokens[-1])
    new = _dump([draft.as_case() for draft in drafts])
    indented = "".join(f"{' ' * column}{line}{line_end}" for line in new.splitlines())
    made = f"{text[:end]}{indented}{text[end:]}"
    if not _only_adds(text, drafts, made, file):
        raise UsageError(f"{file}: cases cannot be added to this file: leave out -o, and copy them")
    return made


def _tokens_of_cases(text: str, file: Path) -> list[yaml.Token]:
    """Return the visible tokens of the cases. Nodes would not do: an alias has the position of its anchor."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    found = next((value for name, value in pairs if name.value == "testCases"), None)
    if not isinstance(found, yaml.SequenceNode) or found.flow_style or not found.value:
        raise UsageError(
            f"{file}: its testCases are not a list with a `-` before each case: write them so, or leave out -o"
        )
    start, end = found.start_mark.index, found.end_mark.index
    tokens = (token for token in yaml.scan(text, Loader=yaml.SafeLoader) if start <= token.start_mark.index < end)
    return [token for token in tokens if token.start_mark.index < token.end_mark.index]


def _end_of_line(text: str, last: yaml.Token) -> int:
    """Return the end of the line of a token. Empty lines after a multi-line text count only if they belong to it."""
    end: int = last.end_mark.index
    if last.end_mark.column == 0:
        assert isinstance(last, yaml.ScalarToken), "only block texts include the end of their line"
        if not last.value[-2:].strip("\n"):
            return end
        end = len(text[:end].rstrip("\r\n"))
    found = _LINE_END.search(text, end)
    return len(text) if found is None else found.end()


def _only_adds(text: str, drafts: Sequence[Draft], made: str, file: Path) -> bool:
    before, after = parse_yaml(text, file).value, parse_yaml(made, file).value
    assert isinstance(before, dict), "the file has cases"
    cases = before["testCases"]
    assert isinstance(cases, list), "the cases are a list"
    return after == {**before, "testCases": [*cases, *(draft.as_case() for draft in drafts)]}


def _dump(value: Any) -> str:
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return text
