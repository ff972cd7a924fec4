"""Draft cases from tools, and write them as YAML: alone, as a whole configuration, or added to an existing one."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations, count
from pathlib import Path
from typing import Any, Self

import yaml
from pydantic import JsonValue

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import visible
from bakeoff._kernel.yaml import parse_yaml, read_yaml
from bakeoff.doors.mcp.examples import SCHEMA_NAME
from bakeoff.doors.mcp.generate.values import GeneratedValue, Maker, Surroundings, suggested_values
from bakeoff.doors.mcp.generate.wording import (
    common_prefixes,
    is_known,
    is_vague,
    name_words,
    negatives,
    request_for,
    wording,
)
from bakeoff.errors import UsageError
from bakeoff.mcp import ServerSpec, ServerTool
from bakeoff.mcp.tools import is_destructive
from bakeoff.scorers.matchers import has_matcher

_MAX_NUMBER = 10**18  # some YAML readers change larger numbers, or read them as texts
_ALIKE = 0.5  # the share of common words in two names that makes tools confusable


class Draft(FrozenModel):
    """A case that a person should check before relying on it."""

    name: str
    prompt: str
    server: str | None = None
    tool: str | None = None  # None: no tool is right
    parameters: dict[str, JsonValue] = {}  # as in a configuration, with matchers
    values: dict[str, JsonValue] = {}  # the values that the prompt names
    tags: tuple[str, ...] = ()
    destructive: bool = False

    def as_case(self) -> dict[str, JsonValue]:
        """Return the draft as a configuration writes a case."""
        case: dict[str, JsonValue] = {"name": self.name, "prompt": self.prompt}
        if self.tool is None:
            case["expectedOutput"] = None
        else:
            case["expectedOutput"] = {"serverName": self.server, "toolName": self.tool, "parameters": self.parameters}
        if self.destructive:
            case["executeTools"] = False
        return {**case, "tags": list(self.tags)} if self.tags else case


@dataclass(frozen=True, slots=True)
class DraftRequest:
    """The number of drafts for each tool, for confusable pairs, and for requests that fit no tool."""

    per_tool: int = 2
    pairs: int = 3
    negatives: int = 3


_USUAL = DraftRequest()


@dataclass(frozen=True, slots=True)
class _DraftContext:
    """The names, prompts and surroundings that all drafts of a suite share."""

    prefixes: frozenset[str]
    around: Mapping[str, Surroundings]
    names: set[str] = field(default_factory=set)
    prompts: set[str] = field(default_factory=set)

    def of(self, tool: ServerTool) -> Iterator[Draft]:
        """Yield a draft with the required parameters, then some with one more parameter or another choice."""
        around = self.around.get(tool.server, Surroundings())
        maker = Maker(
            tool.input_schema, lambda name, schema: (*around.values(name, tool), *suggested_values(name, schema))
        )
        seen: list[dict[str, GeneratedValue]] = []
        for made in _variants(maker):
            values = {name: each.value for name, each in made.items() if each.sure}
            # All values are validated together: schemas may forbid combinations. Unsure values match anything.
            if maker.optional and is_vague(tool, made, self.prefixes):
                continue
            if made in seen or (len(values) == len(made) and not maker.allows(tool.input_schema, values)):
                continue
            seen.append(made)
            expected: dict[str, JsonValue] = {}
            for name, each in made.items():  # a value that looks like a matcher is expected literally
                literal: JsonValue = {"value": each.value, "exact": True} if has_matcher(each.value) else each.value
                expected[name] = literal if each.sure else {"any": True}
            yield Draft(
                name=self.new_name(tool.name),
                prompt=self.new_prompt(tool, values, rest=len(values) < len(made)),
                server=tool.server,
                tool=tool.name,
                parameters=expected | _defaults(tool.input_schema, made),
                values=values,
                destructive=is_destructive(tool),
            )

    def new_prompt(self, tool: ServerTool, values: Mapping[str, JsonValue], *, rest: bool) -> str:
        """Return a new prompt for these values. With `rest`, the model chooses further values."""
        prompt = request_for(tool, values, self.prefixes, self.prompts, rest=rest)
        self.prompts.add(prompt)
        return prompt

    def new_name(self, text: str) -> str:
        """Return a name for a case that is not taken yet."""
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", text)[:60]
        name = next(name for number in count(1) if (name := f"{plain}-{number}") not in self.names)
        self.names.add(name)
        return name


def draft_cases(
    tools: Sequence[ServerTool],
    wanted: DraftRequest = _USUAL,
    *,
    taken: Sequence[str] = (),
    around: Mapping[str, Surroundings] | None = None,
) -> tuple[list[Draft], list[str]]:
    """Return the drafts, and a sentence for each tool without one.

    `taken` are the names of existing cases; `around` maps servers to the files they work on.
    """
    drafting = _DraftContext(common_prefixes(tools), around or {}, set(taken))
    drafts: list[Draft] = []
    problems: list[str] = []
    for tool in tools:
        if "deprecated" in tool.description.casefold():
            problems.append(f"{visible(tool.server)}/{visible(tool.name)}: it is deprecated, so it has no case")
            continue
        made = [draft for draft, _ in zip(drafting.of(tool), range(wanted.per_tool), strict=False)]
        drafts += made
        if not made:
            place = f"{visible(tool.server)}/{visible(tool.name)}"
            problems.append(f"{place}: no parameters were found that match its schema")
    first = {(draft.server, draft.tool): draft for draft in reversed(drafts)}
    drafts += list(_pairs(tools, first, drafting))[: wanted.pairs]
    known = [value for draft in drafts for value in draft.values.values()]
    found = list(negatives(tools, known))[: wanted.negatives]
    drafts += [Draft(name=drafting.new_name("no-tool"), prompt=prompt, tags=("negative",)) for prompt in found]
    return drafts, problems


def _variants(maker: Maker) -> Iterator[dict[str, GeneratedValue]]:
    """Yield the values of calls: the required ones, then one optional parameter or another choice at a time.

    Leave out optional parameters without a natural phrase, because a person would not ask for them.
    """
    required = _plain(maker.parameters())
    yield required
    known = [name for name, schema in maker.optional.items() if is_known(name, schema)]
    for name in known:
        made = _plain(maker.parameters([name]))
        if made[name].sure and made[name].value not in ("", [], {}):
            yield made
    for name in chain(required, known):
        for choice in maker.choices(name)[1:]:
            yield _plain(maker.parameters([] if name in required else [name], {name: choice}))


def _plain(made: Mapping[str, GeneratedValue]) -> dict[str, GeneratedValue]:
    """Mark values as unsure if a configuration or a terminal would change them."""
    empty: tuple[JsonValue, ...] = ({}, [{}])  # the schema says nothing about the content
    return {
        name: GeneratedValue(each.value, each.sure and each.value not in empty and _is_plain(each.value))
        for name, each in made.items()
    }


def _is_plain(value: JsonValue) -> bool:
    """Return True if a value survives YAML, terminals and the expansion of variables unchanged."""
    if isinstance(value, str):
        return value.isprintable() and "${" not in value and len(value) <= 1_000
    if isinstance(value, int | float):
        return abs(value) < _MAX_NUMBER
    if isinstance(value, list):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(_is_plain(name) and _is_plain(inner) for name, inner in value.items())
    return True


def _defaults(schema: Mapping[str, JsonValue], made: Mapping[str, GeneratedValue]) -> dict[str, JsonValue]:
    """Return a matcher for each optional parameter that a call may also give, with its default value."""
    properties = schema.get("properties")
    found: dict[str, JsonValue] = {}
    for name, part in properties.items() if isinstance(properties, dict) else ():
        default = part.get("default") if isinstance(part, dict) else None
        if name not in made and default is not None and _is_plain(default) and not has_matcher(default):
            found[name] = {"value": default, "optional": True}
    return found


def _pairs(
    tools: Sequence[ServerTool], drafts: Mapping[tuple[str | None, str | None], Draft], drafting: _DraftContext
) -> Iterator[Draft]:
    """Yield a draft for one of two tools with similar names, whose prompt makes clear which one is meant."""
    used: set[str] = set()
    for one, other in sorted(combinations(tools, 2), key=_likeness, reverse=True):
        draft = drafts.get((one.server, one.name))
        mine, others = _own_words(one, other), _own_words(other, one)
        if _likeness((one, other)) < _ALIKE or not mine or not others or draft is None or one.name in used:
            continue
        used.add(one.name)
        hint = f"I mean the {_plain_words(mine)}, not the {_plain_words(others)}."
        yield draft.model_copy(
            update={
                "name": drafting.new_name(f"{one.name}-not-{other.name}"),
                "prompt": f"{draft.prompt} {hint}",
                "tags": ("confusable",),
            }
        )


def _likeness(pair: tuple[ServerTool, ServerTool]) -> float:
    one, other = (set(name_words(tool.name)) for tool in pair)
    return len(one & other) / max(1, len(one | other))


def _own_words(one: ServerTool, other: ServerTool) -> list[str]:
    """Return the words of a tool's name that another lacks; none if they include a verb."""
    others = {word.removesuffix("s") for word in name_words(other.name)}
    lacking = [word for word in name_words(one.name) if word.removesuffix("s") not in others]
    verbs = {verb for listed in wording()["verbs"].values() for verb in listed.split()}
    return [] if verbs & set(lacking) else lacking


def _plain_words(words: Sequence[str]) -> str:
    nouns = wording()["nouns"]
    return visible(" ".join(nouns.get(word, word) for word in words), 80).replace("${", "$ {")


# Texts that every YAML reader reads as texts without quotes. All others are quoted.
_PLAIN_TEXT = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*[.?!]?")
_NO_TEXT = re.compile(r"null|true|false|yes|no|on|off|y|n", re.IGNORECASE)
_SECONDS = 300  # for one answer, as in the examples: the embedded model is slow on a busy machine
_LINE_END = re.compile("\r\n|[\r\n\x85\u2028\u2029]")  # all line ends of YAML


class _Dumper(yaml.SafeDumper):
    """A YAML dumper that indents lists and writes no aliases, which are hard to read."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the signature of the base class
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - the signature of the base class
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = _PLAIN_TEXT.fullmatch(text) and not _NO_TEXT.fullmatch(text)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _text)


def cases_text(drafts: Sequence[Draft]) -> str:
    """Return `testCases:` with the drafts, to copy into a configuration."""
    return _dump({"testCases": [draft.as_case() for draft in drafts]})


@dataclass(frozen=True, slots=True)
class Frame:
    """A configuration without its cases. Its variables are not expanded: they may be secrets."""

    models: JsonValue
    servers: JsonValue
    providers: Mapping[str, JsonValue] = field(default_factory=dict)

    @classmethod
    def given(cls, servers: Sequence[ServerSpec], models: Sequence[str]) -> Self:
        """Make the frame of a new configuration from servers that are not in a file yet."""
        return cls(list(models), [server.model_dump(mode="json", exclude_defaults=True) for server in servers])

    @classmethod
    def of_file(cls, file: Path, folder: Path) -> Self:
        """Read the frame of a configuration, for a new file in `folder`.

        The file is read again, because a parsed suite has its variables expanded. Servers that are programs keep the
        working folder that they had in `file`.
        """
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
    """Return a complete configuration that can be evaluated, with a first line by which editors find its schema."""
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
    return f"# yaml-language-server: $schema=./{SCHEMA_NAME}\n{_dump(config)}"


def added_to(text: str, drafts: Sequence[Draft], file: Path) -> str:
    """Return the text of a file with the drafts after its cases, and otherwise unchanged.

    Raises `UsageError` if the result does not contain the old and the new cases, as with unusual YAML.
    """
    line_end = "\r\n" if "\r\n" in text else "\n"
    if not _LINE_END.match(text, max(0, len(text) - 1)):
        text += line_end
    tokens = _tokens_of_cases(text, file)
    column = next(token for token in tokens if isinstance(token, yaml.BlockEntryToken)).start_mark.column
    end = _end_of_line(text, tokens[-1])
    cases = [draft.as_case() for draft in drafts]
    new = _dump(cases)
    indented = "".join(f"{' ' * column}{line}{line_end}" for line in new.splitlines())
    made = f"{text[:end]}{indented}{text[end:]}"
    before, after = parse_yaml(text, file).value, parse_yaml(made, file).value
    assert isinstance(before, dict)
    old = before["testCases"]
    assert isinstance(old, list), "the file has cases"
    if after != {**before, "testCases": [*old, *cases]}:
        raise UsageError(f"{file}: cases cannot be added to this file: leave out -o, and copy them")
    return made


def _tokens_of_cases(text: str, file: Path) -> list[yaml.Token]:
    """Return the visible tokens of the cases. Nodes do not suffice, because an alias has the position of its anchor."""
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
    """Return the end of a token's line, including empty lines that belong to a multi-line text."""
    end: int = last.end_mark.index
    if last.end_mark.column == 0:
        assert isinstance(last, yaml.ScalarToken), "only block texts include the end of their line"
        if not last.value[-2:].strip("\n"):
            return end
        end = len(text[:end].rstrip("\r\n"))
    found = _LINE_END.search(text, end)
    return len(text) if found is None else found.end()


def _dump(value: Any) -> str:
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return text
