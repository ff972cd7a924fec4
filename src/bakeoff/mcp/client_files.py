"""Read the files in which MCP clients list servers: `mcp.json` of Claude, Cursor and others."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue, ValidationError

from bakeoff._kernel.files import read_text, with_home
from bakeoff._kernel.json import is_number
from bakeoff._kernel.text import in_our_words
from bakeoff._kernel.yaml import PlacedYaml, gathered, parse_yaml
from bakeoff.errors import UsageError
from bakeoff.mcp import ServerSpec

_MAX_FILE_SIZE = 4 * 1024 * 1024
# Strings stay, comments go: VS Code allows them.
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_FORM = re.compile(r"\$\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEYS = ("command", "args", "env", "cwd", "url", "headers", "sandbox", "readable", "writable")
_LISTS = ("args", "readable", "writable")
_KINDS = {**dict.fromkeys(_LISTS, "a list of texts"), **dict.fromkeys(("env", "headers"), "an object of texts")}
_NEEDED_ELSEWHERE = {
    "envFile": "is not read here: put its variables into .env, and name them in `env`",
    "headersHelper": "is not run here: put the token into .env, and name it in `headers`",
}


@dataclass(frozen=True, slots=True)
class ClientFile:
    """The servers of a client, as our configurations have them. `lines` has their lines by name."""

    file: Path
    servers: tuple[dict[str, JsonValue], ...]
    lines: Mapping[str, int]


def is_client_file(file: Path) -> bool:
    """Return True for a JSON file that has servers but no cases."""
    if file.suffix not in (".json", ".jsonc") or not file.is_file():
        return False
    value = _read(file).value
    return isinstance(value, dict) and "testCases" not in value and _section(value) is not None


def read_client_file(file: Path, environment: Mapping[str, str]) -> ClientFile:
    """Return the enabled servers of a client's file. One error lists all problems and their lines.

    `environment` decides if a default applies. Variables are kept, as their values may be secret.
    """
    placed = _read(file)
    found = _section(placed.value) if isinstance(placed.value, dict) else None
    if found is None:
        raise UsageError(f"{file}:1: this file names no MCP servers: it needs `mcpServers` or `servers`")
    key, entries = found
    problems: list[str] = []
    servers: list[dict[str, JsonValue]] = []
    lines: dict[str, int] = {}
    for name, entry in entries.items():
        place = (*key, name)
        if not isinstance(entry, dict):
            problems.append(placed.problem(place, "must be an object with `command` or `url`"))
            continue
        if entry.get("disabled") is True or entry.get("enabled") is False:
            continue
        read = _ServerEntry(placed, place, environment)
        servers.append(read.server(name, entry))
        problems += read.problems
        lines[name] = placed.lines.get(place, 1)
    gathered(problems)
    return ClientFile(file, tuple(servers), lines)


def _read(file: Path) -> PlacedYaml:
    """Read a JSON file with comments, and note the lines of its parts."""
    text = read_text(file, _MAX_FILE_SIZE, pipes=True)
    plain = _COMMENT.sub(lambda found: found[1] or re.sub(r"[^\n]", " ", found[0]), text)
    return parse_yaml(plain.replace("\t", "  "), file, "JSON")  # JSON is YAML, except for tabs between values


def _section(value: Mapping[str, JsonValue]) -> tuple[tuple[str, ...], dict[str, JsonValue]] | None:
    """Return the place and content of the server list, as in Claude, Cursor or VS Code."""
    for key in (("mcpServers",), ("servers",), ("mcp", "servers")):
        inner: Any = value
        for part in key:
            inner = inner.get(part) if isinstance(inner, dict) else None
        if isinstance(inner, dict):
            return key, inner
    return None


class _ServerEntry:
    """One server of a client's file."""

    def __init__(self, placed: PlacedYaml, place: tuple[str, ...], environment: Mapping[str, str]) -> None:
        self._placed, self._place, self._environment = placed, place, environment
        self.problems: list[str] = []
        folder = placed.file.resolve().parent
        self._workspace = folder.parent if folder.name in (".vscode", ".cursor", ".claude") else folder

    def server(self, name: str, entry: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return a client's entry in the form of our configuration, and add to `problems`."""
        given = {key: entry[key] for key in _KEYS if entry.get(key) not in (None, {}, [])}
        address = entry.get("serverUrl") or entry.get("httpUrl")  # names of other clients for `url`
        if "url" not in given and address:
            given["url"] = address
        for key, value in given.items():
            self._check_type(key, value)
        kind = entry.get("type") or entry.get("transport")
        if isinstance(kind, str) and kind != "stdio" and "url" in given:
            given["transport"] = "http" if kind == "streamable-http" else kind
        for key, why in _NEEDED_ELSEWHERE.items():
            if key in entry:
                self._problem(key, why)
        server = {"name": name, **{key: self._converted(value, key) for key, value in given.items()}}
        if "command" in server:  # clients start programs in the open folder
            server["cwd"] = str(self._workspace / str(server.get("cwd") or ""))
        return server

    def _check_type(self, key: str, value: JsonValue) -> None:
        """Report a value that is not a string here, where its line is known."""
        inner: list[JsonValue]
        if key in _LISTS:
            inner = value if isinstance(value, list) else [None]
        elif key in ("env", "headers"):
            inner = list(value.values()) if isinstance(value, dict) else [None]
        else:
            inner = [value]
        if all(isinstance(each, str) or (key == "env" and is_number(each)) for each in inner):
            return
        self._problem(key, f"has to be {_KINDS.get(key, 'a text')}")  # the value may be a secret

    def _converted(self, value: JsonValue, key: str) -> JsonValue:
        """Return a value with its variables in the form of our configurations."""
        if isinstance(value, dict):
            return {name: self._converted(inner, key) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._converted(inner, key) for inner in value]
        if key == "env" and is_number(value):
            return str(value)  # clients accept numbers there
        return _FORM.sub(lambda found: self._variable(found[1], key), value) if isinstance(value, str) else value

    def _variable(self, form: str, key: str) -> str:
        """Return a variable in our form, or its value if that is not a secret."""
        known = {
            "workspaceFolder": str(self._workspace),
            "userHome": str(Path.home()),
            "pathSeparator": "/",
            "/": "/",
        }
        if form in known:
            return known[form]
        kind, colon, rest = form.partition(":")
        if colon and kind == "env":
            return self._named(rest, form, key)
        if colon and kind == "input":
            return self._named(re.sub(r"[^A-Za-z0-9]", "_", rest).upper(), form, key)
        name, dash, default = form.partition(":-")
        if dash:
            return self._named(name, form, key) if self._environment.get(name) else default
        return self._named(form, form, key)

    def _named(self, name: str, form: str, key: str) -> str:
        """Return an environment variable in our form. Note a problem if it is unusable."""
        if not _NAME.fullmatch(name):
            self._problem(key, f"${{{form}}} is not a variable that is known here: write ${{NAME}}")
        elif name not in self._environment:
            what = f" for ${{{form}}}" if form != name else ""
            self._problem(key, f"${{{name}}} is not set{what}: set {name} in the environment, in .env or in .env.local")
        return f"${{{name}}}"

    def _problem(self, key: str, what: str) -> None:
        self.problems.append(self._placed.problem((*self._place, key), what))


def client_specs(file: Path, environment: Mapping[str, str]) -> list[ServerSpec]:
    """Return the servers of a client's file, with their variables."""
    found = read_client_file(file, environment)
    specs: list[ServerSpec] = []
    problems: list[str] = []
    for server in found.servers:
        try:
            specs.append(ServerSpec.model_validate(server))
        except ValidationError as error:
            where = f"{file}:{found.lines[str(server['name'])]}: {server['name']}"
            problems += [f"{where}: {in_our_words(item)}" for item in error.errors(include_url=False)]
    gathered(problems)
    return specs


def with_imports(placed: PlacedYaml, environment: Mapping[str, str]) -> PlacedYaml:
    """Replace entries `- import: mcp.json` of a configuration by the servers of that file.

    Errors about such a server name the line of the import.
    """
    assert isinstance(placed.value, dict)
    servers = placed.value.get("mcpServers")
    if not isinstance(servers, list) or not any(isinstance(each, dict) and "import" in each for each in servers):
        return placed
    expanded: list[JsonValue] = []
    lines = {key: line for key, line in placed.lines.items() if key[:1] != ("mcpServers",) or len(key) == 1}
    for at, server in enumerate(servers):
        old = ("mcpServers", at)
        inner = {key[2:]: line for key, line in placed.lines.items() if key[:2] == old}
        if isinstance(server, dict) and "import" in server:
            for each in _imported(placed, at, server, environment):
                lines["mcpServers", len(expanded)] = inner.get((), 1)
                expanded.append(each)
        else:
            lines |= {("mcpServers", len(expanded), *key): line for key, line in inner.items()}
            expanded.append(server)
    return PlacedYaml(placed.file, {**placed.value, "mcpServers": expanded}, lines)


def _imported(
    placed: PlacedYaml, at: int, entry: Mapping[str, JsonValue], environment: Mapping[str, str]
) -> Iterator[JsonValue]:
    """Yield the servers of one `import` entry. Raise `UsageError` with the entry's place."""
    key = ("mcpServers", at)
    file, only = entry["import"], entry.get("only")
    if not isinstance(file, str) or not file.strip():
        raise UsageError(placed.problem((*key, "import"), "must be the path of a file such as .mcp.json"))
    if unknown := [name for name in entry if name not in ("import", "only")]:
        raise UsageError(placed.problem((*key, unknown[0]), "has no meaning beside `import`: there is `only`"))
    if only is not None and not (isinstance(only, list) and only and all(isinstance(name, str) for name in only)):
        raise UsageError(placed.problem((*key, "only"), "must be a list of names of servers, at least one"))
    path = placed.file.parent / with_home(file)
    if not path.is_file():
        raise UsageError(placed.problem((*key, "import"), f"{file!r} does not exist: write a path from this folder"))
    found = read_client_file(path, environment)
    names = [str(server["name"]) for server in found.servers]
    for name in only or ():
        if name not in names:
            known = ", ".join(names) or "none"
            raise UsageError(placed.problem((*key, "only"), f"{name!r} is not a server of {file}: there are {known}"))
    yield from (server for server in found.servers if only is None or server["name"] in only)
