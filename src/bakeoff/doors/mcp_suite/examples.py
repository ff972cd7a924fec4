"""The bundled examples: which there are, and how one is written into a folder."""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import Any

from bakeoff._kernel.files import write_atomically
from bakeoff.doors.mcp_suite.config import CONFIG_NAME, SuiteConfig
from bakeoff.doors.mcp_suite.matching import Matcher
from bakeoff.errors import UsageError

SCHEMA_NAME = "mcp-testing-framework.schema.json"
_ALSO_HTTP = ["streamable-http", "streamableHttp"]


def published_schema() -> str:
    """The file that travels with the package; a test holds it to what `config_schema` says."""
    return resources.files("bakeoff.bundled").joinpath("mcp", SCHEMA_NAME).read_text("utf-8")


def schema_text() -> str:
    return json.dumps(config_schema(), indent=2, ensure_ascii=False) + "\n"


def config_schema() -> dict[str, Any]:
    """What `read_suite` takes, as far as a schema can say it."""
    schema = SuiteConfig.model_json_schema(by_alias=False)
    shapes = schema["$defs"]
    shapes["Matcher"] = Matcher.model_json_schema()
    _case(shapes["SuiteCase"])
    _call(shapes["ExpectedCall"])
    _server(shapes["ServerSpec"])
    _providers(schema["properties"], shapes["ProviderConfig"])
    _settings(schema["properties"], shapes["ModelSettings"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "MCP evaluation",
        "description": "How well models understand the tools of MCP servers: prompts, and the calls they lead to.",
    }


def _case(shape: dict[str, Any]) -> None:
    """One call, several, or none; under either of two names."""
    call = {"$ref": "#/$defs/ExpectedCall"}
    expected = {
        "description": shape["properties"]["expectedOutput"]["description"],
        "anyOf": [call, {"type": "array", "items": call, "minItems": 1}, {"type": "null"}],
    }
    for name in ("expectedOutput", "expectedToolUsage"):
        shape["properties"][name] = expected
    shape["required"] = ["prompt"]
    shape["oneOf"] = [{"required": [name]} for name in ("expectedOutput", "expectedToolUsage")]


def _call(shape: dict[str, Any]) -> None:
    """Any value may stand there; the matcher is named for editors to offer its keys."""
    shape["properties"]["parameters"]["additionalProperties"] = {"anyOf": [{"$ref": "#/$defs/Matcher"}, {}]}


def _server(shape: dict[str, Any]) -> None:
    shape["properties"]["transport"]["enum"] += _ALSO_HTTP
    shape["properties"]["transport"].pop("default", None)
    shape["oneOf"] = [{"required": ["command"]}, {"required": ["url"]}]


def _providers(properties: dict[str, Any], shape: dict[str, Any]) -> None:
    """By its short form too, and under every name that its keys have."""
    given = shape["properties"]
    for name, others in {"target": ("class", "module"), "baseUrl": ("base_url", "url")}.items():
        given.update(dict.fromkeys(others, given[name]))
    given.update(dict.fromkeys(("key_variable", "apiKeyEnv"), given["apiKeyVariable"]))
    short = {"type": "string", "description": "`module:Class`, or an address that speaks the OpenAI API"}
    properties["providers"]["additionalProperties"] = {"anyOf": [short, {"$ref": "#/$defs/ProviderConfig"}]}


def _settings(properties: dict[str, Any], shape: dict[str, Any]) -> None:
    """For all models, and beside these for single ones, under their names."""
    properties.pop("modelSettingsOf")
    of_one = {"$ref": "#/$defs/ModelSettings"}
    properties["modelSettings"] = {**shape, "patternProperties": {"[:/]": of_one}}


_FOR_EVERYONE = 0o644
_PYTHON = "command: python\n"  # in bundled configurations; becomes the interpreter that has bakeoff and its packages
_REMARK = re.compile(r"  # (noqa|type: ignore)[^\n]*")
_KITCHEN = {"kitchen.py": "servers/kitchen.py"}


@dataclass(frozen=True, slots=True)
class Example:
    """Which bundled file goes where, besides the schema, and what to try then."""

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
    # Not as README.md, which a project is likely to have.
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
        "models of your own, in three ways",
        {**_own("custom_provider", CONFIG_NAME, "keyword_provider.py", "with_register.py"), **_KITCHEN},
        ("bakeoff mcp evaluate", "python with_register.py"),
    ),
    "directory-suite": Example(
        "a folder of suites, and tools that are really called",
        {**_own("directory_suite", "timers.yaml", "shopping.yaml"), **_KITCHEN},
        ("bakeoff mcp evaluate .",),
    ),
}


def write_example(name: str, folder: Path, *, force: bool = False) -> list[Path]:
    """Write all files of an example, or none; what is there already is left alone unless `force` says otherwise."""
    contents = find_example(name).contents
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
        near = get_close_matches(name, EXAMPLES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(EXAMPLES)}"
        raise UsageError(f"there is no example {name!r}: {hint}")
    return EXAMPLES[name]


def _as_written(name: str, text: str) -> str:
    """With the Python that runs this: one on the path may be another, without the packages that the server needs.

    Without remarks to our own tools.
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
