"""Which MCP server, as data: a program that talks over its standard streams, or an address."""

import re
import shlex
from collections.abc import Iterable
from itertools import chain, count
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeAlias
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, PositiveFloat, PositiveInt, ValidationError, field_validator, model_validator

from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import UsageError
from bakeoff.plan import Name
from bakeoff.storage.redaction import secrets_in


class HubLimits(FrozenModel):
    """Bounds for each server of a hub."""

    startup_seconds: PositiveFloat = Field(default=30.0, description="to start, shake hands and list all tools")
    call_seconds: PositiveFloat = Field(default=60.0, description="for a call that brings no limit of its own")
    close_seconds: PositiveFloat = Field(default=2.0, description="to leave by itself when it is no longer needed")
    deaths_in_a_row: PositiveInt = Field(default=2, description="without an answer in between; so one restart is made")
    tools: PositiveInt = 1_000
    pages: PositiveInt = 1_000
    list_bytes: PositiveInt = Field(default=2_000_000, description="all tools of a server together, as JSON")
    schema_bytes: PositiveInt = 200_000
    schema_depth: PositiveInt = 64
    name_length: PositiveInt = 128
    message_bytes: PositiveInt = Field(default=8_000_000, description="one message; a longer one ends the connection")
    result_bytes: PositiveInt = Field(default=1_000_000, description="one tool result, as JSON")


Transport: TypeAlias = Literal["stdio", "sse", "http"]

DEFAULT_URL = "https://mcp.svelte.dev/mcp"
DEFAULT_COMMAND = "npx -y @sveltejs/mcp"

# Other tools' words for streamable HTTP, so that their settings can be copied as they are.
_ALSO_HTTP = {"streamable-http", "streamablehttp", "streamable_http"}
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LAUNCHERS = {"npx", "bunx", "pnpx", "uvx", "pipx"}


class ServerSpec(FrozenModel):
    """One server. `command` makes it a stdio server, `url` one that is reached over HTTP.

    Without `transport`, a URL whose path ends in /sse is the old SSE transport, any other is streamable HTTP.
    """

    name: Name
    transport: Transport = Field(default="stdio", description="follows from `command` or `url` when absent")
    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default={}, repr=False, description="added to the few variables a server is given")
    cwd: Path | None = None
    url: str | None = Field(default=None, repr=False)
    headers: dict[str, str] = Field(default={}, repr=False)

    @model_validator(mode="before")
    @classmethod
    def _infer_transport(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        given = data.get("transport")
        if isinstance(given, str) and given.lower() in _ALSO_HTTP:
            return {**data, "transport": "http"}
        if given is not None:
            return data
        return {**data, "transport": _inferred(data.get("url"))}

    @field_validator("command", "args", "env")
    @classmethod
    def _no_nul(cls, value: Any) -> Any:
        texts = (
            [value]
            if isinstance(value, str)
            else [*value.keys(), *value.values()]
            if isinstance(value, dict)
            else value
        )
        for text in texts or ():
            if "\0" in text:
                raise ValueError(f"{text!r} holds a NUL character, which no program can be given: remove it")
        return value

    @field_validator("env")
    @classmethod
    def _variable_names(cls, env: dict[str, str]) -> dict[str, str]:
        for name in env:
            if not name or "=" in name:
                raise ValueError(f"{name!r} is not the name of an environment variable: use one without '='")
        return env

    @field_validator("url")
    @classmethod
    def _http_address(cls, url: str | None) -> str | None:
        if url is None:
            return None
        parts = _split(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or not url.isprintable() or " " in url:
            raise ValueError(f"{shown_url(url)!r} is no address of a server: write it as https://host/path")
        return url

    @field_validator("headers")
    @classmethod
    def _sendable(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not _TOKEN.fullmatch(name):
                raise ValueError(f"{name!r} is not the name of a header: use letters, digits and '-'")
            # The value is likely a secret, so only its place is named.
            if not value.isascii() or not value.isprintable():
                raise ValueError(
                    f"the value of header {name!r} holds a line break or a letter outside ASCII: remove it"
                )
        return headers

    @model_validator(mode="after")
    def _one_way_to_reach_it(self) -> "ServerSpec":
        if (self.command is None) == (self.url is None):
            given = "both `command` and `url`" if self.command else "neither `command` nor `url`"
            raise ValueError(f"server {self.name!r} has {given}: give one of them")
        if (self.transport == "stdio") != (self.command is not None):
            wanted = "`command`" if self.transport == "stdio" else "`url`"
            raise ValueError(f"server {self.name!r}: transport {self.transport!r} needs {wanted}")
        foreign = ("headers",) if self.command else ("args", "env", "cwd")
        for field in foreign:
            if getattr(self, field):
                raise ValueError(f"server {self.name!r}: `{field}` has no meaning for transport {self.transport!r}")
        if self.command is not None and not self.command.strip():
            raise ValueError(f"server {self.name!r}: `command` is empty: name the program that is the server")
        return self

    @property
    def address(self) -> str:
        """Where it is, for people; without what may be secret."""
        if self.url is not None:
            return shown_url(self.url)
        return shlex.join([self.command or "", *self.args])

    @property
    def secrets(self) -> dict[str, str]:
        """What must not be shown or written: give it to the run's `Redactor`."""
        inside_url = urlsplit(self.url).password if self.url else None
        return {**secrets_in(self.env), **self.headers, **({"url password": inside_url} if inside_url else {})}


class NamelessServer(ServerSpec):
    """One that nobody gave a name: the one it has was derived, and a hub may make it another."""


def told_apart(specs: Iterable[ServerSpec]) -> tuple[ServerSpec, ...]:
    """The same, where derived names that are taken have a number: python3, python3-2. Given names stay as they are."""
    specs = tuple(specs)
    taken = {spec.name for spec in specs if not isinstance(spec, NamelessServer)}
    apart: list[ServerSpec] = []
    for spec in specs:
        if isinstance(spec, NamelessServer):
            numbered = (f"{spec.name}-{number}" for number in count(2))
            name = next(name for name in chain([spec.name], numbered) if name not in taken)
            taken.add(name)
            spec = spec.model_copy(update={"name": name})
        apart.append(spec)
    return tuple(apart)


def parse_mcp_option(text: str) -> ServerSpec | None:
    """The server that `none`, `http[:URL]` or `stdio[:COMMAND]` stands for; a bare URL is taken too."""
    kind, _, rest = text.partition(":")
    if text == "none":
        return None
    if kind in ("http", "https") and rest.startswith("//"):
        kind, rest = "http", text
    if kind == "http":
        url = rest or DEFAULT_URL
        return _made(text, name=_split(url).hostname or "server", url=url)
    if kind == "stdio":
        return _stdio(text, rest or DEFAULT_COMMAND)
    raise UsageError(
        f"{text!r} is no MCP server: write none, http, http:https://host/mcp, stdio, or 'stdio:npx -y package'"
    )


def shown_url(url: str) -> str:
    """Without user, password, query and fragment, any of which may hold a token."""
    parts = _split(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:  # such as a bracket that is never closed
        return SplitResult("", "", "", "", "")


def _inferred(url: object) -> Transport:
    if not isinstance(url, str):
        return "stdio"
    return "sse" if _split(url).path.rstrip("/").endswith("/sse") else "http"


def _stdio(text: str, line: str) -> ServerSpec:
    try:
        words = shlex.split(line)
    except ValueError as problem:
        raise UsageError(f"the command in {text!r} cannot be read ({problem}): close its quotes") from problem
    if not words:
        raise UsageError(f"{text!r} names no command: write 'stdio:npx -y package' or just stdio")
    return _made(text, name=_name_of(words), command=words[0], args=tuple(words[1:]))


def _name_of(words: list[str]) -> str:
    """The package that a launcher fetches, else the program."""
    program = PurePosixPath(words[0]).name
    packages = [word for word in words[1:] if not word.startswith("-")]
    return packages[0] if program in _LAUNCHERS and packages else program


def _made(text: str, **fields: Any) -> ServerSpec:
    try:
        return NamelessServer(**fields)
    except ValidationError as problem:
        reasons = "; ".join(str(error["msg"]).removeprefix("Value error, ") for error in problem.errors())
        raise UsageError(f"--mcp {text!r}: {reasons}") from problem
