"""Write the bundled examples and the JSON Schema of a configuration."""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from bakeoff._kernel.files import write_atomically
from bakeoff._kernel.text import near_names
from bakeoff.doors.mcp.cases import OF_A_CASE, OF_A_TURN
from bakeoff.doors.mcp.config import CONFIG_NAME, SuiteConfig
from bakeoff.errors import UsageError
from bakeoff.scorers.matchers import Matcher

SCHEMA_NAME = "mcp-testing-framework.schema.json"
_ALSO_HTTP = ["streamable-http", "streamableHttp"]


_IMPORT = {
    "title": "Import",
    "description": "The servers of a client's file, such as .mcp.json.",
    "type": "object",
    "properties": {
        "import": {"type": "string", "minLength": 1, "description": "a path from the folder of this file"},
        "only": {"type": "array", "items": {"type": "string"}, "description": "names of servers; absent: all"},
    },
    "required": ["import"],
    "additionalProperties": False,
}


def published_schema() -> str:
    """Return the schema file of the package. A test compares it with `config_schema`."""
    return resources.files("bakeoff.bundled").joinpath("mcp", SCHEMA_NAME).read_text("utf-8")


def schema_text() -> str:
    return json.dumps(config_schema(), indent=2, ensure_ascii=False) + "\n"


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema of what `read_suite` accepts."""
    schema = SuiteConfig.model_json_schema()
    shapes = schema["$defs"]
    shapes["Matcher"] = Matcher.model_json_schema()
    for name in ("McpCase", "McpTurn"):
        _accept_forms_of_calls(shapes[name])
    _accept_turns(shapes["McpCase"], shapes["McpTurn"])
    shapes["EndCheck"]["oneOf"] = [{"required": [name]} for name in ("command", "query", "function")]
    # Any value is accepted but a matcher with misspelt keys. The matcher is listed so that editors offer its keys.
    misspelt = {"pattern": "^(value|opt|case|one|reg|app|any|exa)"}
    resembling = {"type": "object", "required": ["value"], "minProperties": 2, "propertyNames": misspelt}
    shapes["ExpectedCall"]["properties"]["parameters"]["additionalProperties"] = {
        "anyOf": [{"$ref": "#/$defs/Matcher"}, {"not": resembling}]
    }
    server = shapes["ServerSpec"]
    server["properties"]["transport"]["enum"] += _ALSO_HTTP
    server["properties"]["transport"].pop("default", None)
    server["oneOf"] = [{"required": ["command"]}, {"required": ["url"]}]
    shapes["Import"] = _IMPORT
    schema["properties"]["mcpServers"]["items"] = {
        "anyOf": [{"$ref": "#/$defs/ServerSpec"}, {"$ref": "#/$defs/Import"}]
    }
    _accept_forms_of_providers(schema["properties"], shapes["ProviderConfig"])
    # Settings for all models and, under their names, for single models.
    del shapes["SuiteModelSettings"]
    single = {"patternProperties": {"[:/]": {"$ref": "#/$defs/ModelSettings"}}}
    schema["properties"]["modelSettings"] = {**shapes["ModelSettings"], **single}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "MCP evaluation",
        "description": "Test how well models understand the tools of MCP servers: prompts and the expected calls.",
    }


def _accept_forms_of_calls(shape: dict[str, Any]) -> None:
    """Accept one call, several or none, under either of two names."""
    call = {"$ref": "#/$defs/ExpectedCall"}
    expected = {
        "description": shape["properties"]["expectedOutput"]["description"],
        "anyOf": [call, {"type": "array", "items": call, "minItems": 1}, {"type": "null"}],
    }
    for name in ("expectedOutput", "expectedToolUsage"):
        shape["properties"][name] = expected
    shape["properties"]["alternatives"]["items"] = {"anyOf": expected["anyOf"]}
    shape["required"] = ["prompt"]
    shape["oneOf"] = [{"required": [name]} for name in ("expectedOutput", "expectedToolUsage")]


def _accept_turns(case: dict[str, Any], turn: dict[str, Any]) -> None:
    """Accept turns instead of a prompt. Keys of a whole case are not accepted in a turn, nor the other way round."""
    case["properties"]["turns"] |= {"minItems": 1}
    case["properties"]["turns"].pop("default", None)
    alone = {"required": case.pop("required"), "oneOf": case.pop("oneOf"), "not": {"required": ["turns"]}}
    own = [{"required": [name]} for name in OF_A_TURN]
    case["oneOf"] = [alone, {"required": ["turns"], "not": {"anyOf": own}}]
    for name in OF_A_CASE:
        del turn["properties"][name]


def _accept_forms_of_providers(properties: dict[str, Any], shape: dict[str, Any]) -> None:
    """Accept the short form too, and all names of the keys."""
    given = shape["properties"]
    for name, others in {"target": ("class", "module"), "baseUrl": ("base_url", "url")}.items():
        given.update(dict.fromkeys(others, given[name]))
    given.update(dict.fromkeys(("key_variable", "apiKeyEnv"), given["apiKeyVariable"]))
    short = {"type": "string", "description": "`module:Class`, or the address of an OpenAI-compatible API"}
    properties["providers"]["additionalProperties"] = {"anyOf": [short, {"$ref": "#/$defs/ProviderConfig"}]}


_FOR_EVERYONE = 0o644
_PYTHON = "command: python\n"  # in bundled configurations; replaced by the running interpreter, which has the packages
_REMARK = re.compile(r"  # (noqa|type: ignore)[^\n]*")
_KITCHEN = {"kitchen.py": "servers/kitchen.py"}


@dataclass(frozen=True, slots=True)
class Example:
    """The files of an example besides the schema, and the commands to try."""

    about: str
    files: Mapping[str, str]
    then: tuple[str, ...] = ("bakeoff mcp evaluate", "bakeoff mcp lint")

    @property
    def contents(self) -> dict[str, str]:
        bundled = resources.files("bakeoff.bundled").joinpath("mcp")
        texts = {name: bundled.joinpath(source).read_text("utf-8") for name, source in self.files.items()}
        texts[SCHEMA_NAME] = bundled.joinpath(SCHEMA_NAME).read_text("utf-8")
        return {name: _as_written(name, text) for name, text in texts.items()}


def _own(folder: str, *names: str) -> dict[str, str]:
    # Not README.md, which most projects have already.
    return {**{name: f"{folder}/{name}" for name in names}, "EXAMPLE.md": f"{folder}/README.md"}


EXAMPLES: dict[str, Example] = {
    "getting-started": Example(
        "one server, five cases, the embedded model",
        {**_own("getting_started", CONFIG_NAME), **_KITCHEN},
        ("bakeoff mcp evaluate", "bakeoff mcp lint", "bakeoff mcp generate"),
    ),
    "several-servers": Example(
        "two servers whose tools overlap",
        {**_own("several_servers", CONFIG_NAME), **_KITCHEN, "calendar_server.py": "servers/calendar.py"},
    ),
    "custom-provider": Example(
        "three ways to add your own models",
        {**_own("custom_provider", CONFIG_NAME, "keyword_provider.py", "with_register.py"), **_KITCHEN},
        ("bakeoff mcp evaluate", "python with_register.py"),
    ),
    "directory-suite": Example(
        "a folder of suites with executed tools",
        {**_own("directory_suite", "timers.yaml", "shopping.yaml"), **_KITCHEN},
        ("bakeoff mcp evaluate .",),
    ),
}


def write_example(name: str, folder: Path, *, force: bool = False) -> list[Path]:
    """Write all files of an example, or none. Existing files are overwritten only with `force`."""
    return write_example_files(find_example(name).contents, folder, force=force)


def write_example_files(contents: Mapping[str, str], folder: Path, *, force: bool = False) -> list[Path]:
    """Write all files, by their paths in a folder, or none. Other files there are overwritten only with `force`."""
    paths = {folder / relative: text for relative, text in contents.items()}
    taken = [path for path, text in paths.items() if path.exists() and not _is(path, text)]
    if taken and not force:
        names = ", ".join(str(path) for path in taken)
        raise UsageError(f"{names} would be overwritten: name another folder, or add --force")
    try:
        for path, text in paths.items():
            write_atomically(path, text.encode(), _FOR_EVERYONE)
    except OSError as error:
        raise UsageError(f"{error.filename or folder} cannot be written: {error.strerror}") from error
    return list(paths)


def find_example(name: str) -> Example:
    if name not in EXAMPLES:
        raise UsageError(f"there is no example {name!r}{near_names(name, EXAMPLES)}")
    return EXAMPLES[name]


def _as_written(name: str, text: str) -> str:
    """Return a file with the running Python interpreter, and without comments for our own linters.

    A `python` on the path may lack the packages that the server needs.
    """
    if name.endswith(".py"):
        return _REMARK.sub("", text)
    named = json.dumps(sys.executable, ensure_ascii=False)  # JSON texts are YAML texts
    return text.replace(_PYTHON, f"command: {named} # any Python that has the package `mcp`\n")


def _is(path: Path, text: str) -> bool:
    try:
        return path.read_bytes() == text.encode()
    except OSError:
        return False
