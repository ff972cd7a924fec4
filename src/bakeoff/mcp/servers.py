"""Describe an MCP server as data: a program or an address, its secrets, and the variables in its settings."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import SplitResult, urlsplit

from pydantic import (
    AfterValidator,
    Field,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    field_validator,
    model_validator,
)

from bakeoff._kernel.environment import filled, variables_in
from bakeoff._kernel.model import FrozenModel, sparse_field
from bakeoff._kernel.text import expectation, free_name
from bakeoff.errors import UsageError
from bakeoff.plan import Name
from bakeoff.sandbox.confinement import LAUNCHERS, UserProgram
from bakeoff.storage.redaction import SHORTEST, secrets_in, secrets_inside

USER = re.compile(r"(?<=://)[^/?#@]+(?=@)")
QUERY = re.compile(r"(?<=\?)[^#]+")
_NAMED = re.compile(r"(-*[\w.-]+)(?:=|:\s*)(?:(?:bearer|basic|token) +)?(.+)", re.IGNORECASE)
"""Matches an argument with a name: `--api-key=…`, `API_KEY=…` or `Authorization: Bearer …`."""


def secret_arguments(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each argument with its secret part, or an empty string if it has none."""
    before = ""
    for argument in arguments:
        found = _NAMED.fullmatch(argument)
        option, value = found.groups() if found else (before if before.startswith("-") else "", argument)
        name = option.lstrip("-")
        named = name.lower() == "authorization" or secrets_in({name: value})
        address = USER.search(argument) or (QUERY.search(argument) if argument.startswith("http") else None)
        yield argument, value if named and not is_plain(value) else address[0] if address else ""
        before = argument


def inside_of(arguments: Iterable[str]) -> dict[str, str]:
    """Return the secrets inside arguments, such as a password in a URL."""
    found: dict[str, str] = {}
    for number, argument in enumerate(arguments, start=1):
        named = _NAMED.fullmatch(argument)
        values = (argument, named[2]) if named else (argument,)
        found |= {
            part: secret for value in values for part, secret in secrets_inside(f"argument {number}", value).items()
        }
    return found


def is_plain(value: str) -> bool:
    """Return True if a value cannot be a key: a path, a number, an option or a short text."""
    return len(value) < SHORTEST or value.isdecimal() or value.startswith(("-", ".", "/", "~")) or "${" in value


Transport: TypeAlias = Literal["stdio", "sse", "http"]
ServerSandbox: TypeAlias = Literal["auto", "bwrap", "process", "none"]

DEFAULT_URL = "https://mcp.svelte.dev/mcp"
DEFAULT_COMMAND = "npx -y @sveltejs/mcp"
UNSANDBOXED = "unsandboxed"

# Names of streamable HTTP in other tools, so that their settings work unchanged.
_ALSO_HTTP = {"streamable-http", "streamablehttp", "streamable_http"}
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SSE = re.compile(r"(?<![A-Za-z])sse(?![A-Za-z])")  # as a word: not in `assets`
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class HubLimits(FrozenModel):
    """Limits for each server of a hub, which may be hostile."""

    startup_seconds: PositiveFloat = Field(default=30.0, description="to start, shake hands and list all tools")
    call_seconds: PositiveFloat = Field(default=60.0, description="for a call without a limit of its own")
    close_seconds: PositiveFloat = Field(default=2.0, description="to exit by itself when it is no longer needed")
    deaths_in_a_row: PositiveInt = Field(
        default=2, description="deaths without an answer in between; 2 allows one restart"
    )
    tools: PositiveInt = 1_000
    pages: PositiveInt = 1_000
    list_bytes: PositiveInt = Field(default=2_000_000, description="all tools of a server together, as JSON")
    schema_bytes: PositiveInt = 200_000
    schema_depth: PositiveInt = 64
    name_length: PositiveInt = 128
    message_bytes: PositiveInt = Field(default=8_000_000, description="one message; a longer one ends the connection")
    result_bytes: PositiveInt = Field(default=1_000_000, description="one tool result, as JSON")


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError(f"{text!r} contains a NUL character, which no program can receive: remove it")
    return text


_Argument = Annotated[str, AfterValidator(_without_nul)]


def is_safe_endpoint(url: str) -> bool:
    """Return True if tokens can be sent safely: by https, or by http on this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK))


class OAuth(FrozenModel):
    """Settings for getting a server's token without a person."""

    tokenFile: Path | None = Field(default=None, description="a file with the token, or JSON with access_token")
    clientId: str | None = Field(default=None, min_length=1, description="of the client credentials grant")
    clientSecret: str | None = Field(default=None, min_length=1, repr=False)
    issuer: str | None = Field(default=None, description="the authorization server: the secret is sent nowhere else")
    scope: str | None = None

    @model_validator(mode="after")
    def _check_complete(self) -> "OAuth":
        credentials = (self.clientId, self.clientSecret, self.issuer)
        if (self.tokenFile is None) == (not any(credentials)):
            raise ValueError("write `tokenFile`, or `clientId`, `clientSecret` and `issuer`")
        if any(credentials) and not all(credentials):
            raise ValueError("client credentials need `clientId`, `clientSecret` and `issuer`")
        if self.issuer is not None and not is_http_address(self.issuer):
            raise ValueError(f"issuer {self.issuer!r} is not an address: write it as https://host")
        if self.issuer is not None and not is_safe_endpoint(self.issuer):
            raise ValueError(f"issuer {self.issuer!r} would get the secret in the clear: write it as https://host")
        return self


class ElicitationAnswer(FrozenModel):
    """A configured answer to a server's questions to the user that contain a text."""

    match: str = Field(default="", description="a part of the question, in any case; empty: every question")
    action: Literal["accept", "decline", "cancel"] = "accept"
    content: dict[str, str | int | float | bool | list[str] | None] = Field(
        default={}, description="the fields of the form, if it is accepted"
    )

    @model_validator(mode="after")
    def _check_content(self) -> "ElicitationAnswer":
        if self.content and self.action != "accept":
            raise ValueError(f"`content` has no meaning beside `action: {self.action}`: remove one")
        return self


class SamplingAnswer(FrozenModel):
    """A configured answer to a server's requests to the model that contain a text."""

    match: str = Field(default="", description="a part of what the server asks; empty: everything")
    reply: str


class ServerSpec(FrozenModel):
    """One server. It is a stdio server if it has a `command`, and an HTTP server if it has a `url`.

    Without `transport`, URLs with the word `sse` use the old SSE transport, others streamable HTTP.
    """

    name: Name
    transport: Transport = Field(default="stdio", description="follows from `command` or `url` when absent")
    command: _Argument | None = None
    args: tuple[_Argument, ...] = ()
    env: dict[_Argument, _Argument] = Field(
        default={}, repr=False, description="added to the few variables that a server gets"
    )
    cwd: Path | None = None
    sandbox: ServerSandbox = sparse_field(
        "auto", "where a program runs: the strongest sandbox that works here, one of them, or `none`: as you"
    )
    readable: tuple[Path, ...] = sparse_field((), "further files and folders that a program may read")
    writable: tuple[Path, ...] = sparse_field((), "files and folders that a program may change")
    url: str | None = Field(default=None, repr=False)
    headers: dict[str, str] = Field(default={}, repr=False)
    # Not written if unused, so that plans and fingerprints stay as in older versions.
    oauth: OAuth | None = sparse_field(None, repr=False)
    elicitation: tuple[ElicitationAnswer, ...] = sparse_field(
        (), "answers to questions of the server; the first that matches"
    )
    sampling: tuple[SamplingAnswer, ...] = sparse_field(
        (), "answers to requests for a model's text; the first that matches"
    )

    @model_validator(mode="before")
    @classmethod
    def _infer_transport(cls, data: Any) -> Any:
        """Derive the transport from `command` or `url`, and accept its other spellings."""
        if not isinstance(data, dict):
            return data
        given = data.get("transport")
        if isinstance(given, str) and given.lower() in _ALSO_HTTP:
            return {**data, "transport": "http"}
        if given is not None:
            return data
        url = data.get("url")
        if not isinstance(url, str):
            return {**data, "transport": "stdio"}
        return {**data, "transport": "sse" if _SSE.search(url) else "http"}

    @field_validator("env")
    @classmethod
    def _check_variable_names(cls, env: dict[str, str]) -> dict[str, str]:
        for name in env:
            if not name or "=" in name:
                raise ValueError(f"{name!r} is not the name of an environment variable: use one without '='")
        return env

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str | None) -> str | None:
        if url is not None and not is_http_address(url):
            raise ValueError(f"{shown_url(url)!r} is not the address of a server: write it as https://host/path")
        return url

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not _TOKEN.fullmatch(name):
                raise ValueError(f"{name!r} is not the name of a header: use letters, digits and '-'")
            # The value is likely a secret, so the message names only its place.
            if not value.isascii() or not value.isprintable():
                raise ValueError(
                    f"the value of header {name!r} contains a line break or a character outside ASCII: remove it"
                )
        return headers

    @model_validator(mode="after")
    def _check_transport(self) -> "ServerSpec":
        """Refuse settings that do not belong to the transport."""
        if (self.command is None) == (self.url is None):
            given = "both `command` and `url`" if self.command else "neither `command` nor `url`"
            raise ValueError(f"server {self.name!r} has {given}: give one of them")
        if (self.transport == "stdio") != (self.command is not None):
            wanted = "`command`" if self.transport == "stdio" else "`url`"
            raise ValueError(f"server {self.name!r}: transport {self.transport!r} needs {wanted}")
        of_programs = ("args", "env", "cwd", "readable", "writable", *(() if self.sandbox == "auto" else ("sandbox",)))
        for field in ("headers", "oauth") if self.command else of_programs:
            if getattr(self, field):
                raise ValueError(f"server {self.name!r}: `{field}` has no meaning for transport {self.transport!r}")
        if self.sandbox == "none" and (self.readable or self.writable):
            raise ValueError(f"server {self.name!r}: without a sandbox, it can read and change everything: remove one")
        if self.command is not None and not self.command.strip():
            raise ValueError(f"server {self.name!r}: `command` is empty: name the program to start")
        return self

    @property
    def program(self) -> UserProgram:
        """Return the program of a stdio server."""
        argv = (self.command or "", *self.args)
        return UserProgram(f"server {self.name!r}", argv, self.env, self.cwd, self.readable, self.writable)

    @property
    def address(self) -> str:
        """Return the URL or command line to show, without possibly secret parts."""
        if self.url is not None:
            return shown_url(self.url)
        shown = (text.replace(secret, "***") if secret else text for text, secret in secret_arguments(self.args))
        return shlex.join([self.command or "", *shown])

    @property
    def secrets(self) -> dict[str, str]:
        """Return the values that must not be shown or written, for the `Redactor` of a run."""
        password = urlsplit(self.url).password if self.url else None
        spelled = {"url password": password, "client secret": self.oauth.clientSecret if self.oauth else None}
        inside = [secrets_inside(name, value) for name, value in {**self.headers, "url": self.url or ""}.items()]
        found = {name: value for name, value in spelled.items() if value}
        return {
            name: value for each in (secrets_in(self.env), self.headers, *inside, found) for name, value in each.items()
        }

    @property
    def shown_to_nobody(self) -> dict[str, str]:
        """Return all secrets, including keys in arguments, which plans may have to contain."""
        keys = [secret for _, secret in secret_arguments(self.args) if secret]
        return {
            **self.secrets,
            **{f"argument {number}": key for number, key in enumerate(keys, 1)},
            **inside_of(self.args),
        }


class UnnamedServer(ServerSpec):
    """A server named after its command or URL. A hub may change that name."""


def with_unique_names(specs: Iterable[ServerSpec]) -> tuple[ServerSpec, ...]:
    """Number derived names that are taken: python3, python3-2. Keep names chosen by users."""
    specs = tuple(specs)
    taken = {spec.name for spec in specs if not isinstance(spec, UnnamedServer)}
    unique: list[ServerSpec] = []
    for spec in specs:
        if isinstance(spec, UnnamedServer):
            taken.add(name := free_name(spec.name, taken, "{}-{}"))
            spec = spec.model_copy(update={"name": name})
        unique.append(spec)
    return tuple(unique)


def parse_mcp_option(text: str) -> ServerSpec | None:
    """Return the server of an option: `none`, `http[:URL]`, `stdio[:COMMAND]`,
    `unsandboxed:COMMAND` or a URL.

    For `none`, return None. `http` and `stdio` mean the default server. Raise `UsageError` for
    other texts.
    """
    kind, _, rest = text.partition(":")
    if text == "none":
        return None
    if kind in ("http", "https") and rest.startswith("//"):
        kind, rest = "http", text
    if kind == "http":
        url = rest or DEFAULT_URL
        return _unnamed(text, name=_split(url).hostname or "server", url=url)
    if kind == "stdio":
        return _stdio(text, rest or DEFAULT_COMMAND)
    if kind == UNSANDBOXED:
        return _stdio(text, rest, sandbox="none")
    raise UsageError(
        f"{text!r} is not an MCP server: write none, http, http:https://host/mcp, stdio, or 'stdio:npx -y package', "
        "or 'unsandboxed:docker run -i image' for a program that you trust and that no sandbox can run"
    )


def shown_url(url: str) -> str:
    """Return a URL without user, password, query and fragment, which may contain tokens."""
    parts = _split(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def is_http_address(url: str) -> bool:
    """Return True for an HTTP address with a host, without spaces and control characters."""
    parts = _split(url)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and url.isprintable() and " " not in url


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:  # for example an unclosed bracket
        return SplitResult("", "", "", "", "")


def _stdio(text: str, line: str, **fields: Any) -> ServerSpec:
    try:
        words = shlex.split(line)
    except ValueError as problem:
        raise UsageError(f"the command in {text!r} cannot be read ({problem}): close its quotes") from problem
    if not words:
        raise UsageError(f"{text!r} names no command: write 'stdio:npx -y package' or just stdio")
    program = PurePosixPath(words[0]).name
    packages = [word for word in words[1:] if not word.startswith("-")]
    name = packages[0] if program in LAUNCHERS and packages else program
    return _unnamed(text, name=name, command=words[0], args=tuple(words[1:]), **fields)


def _unnamed(text: str, **fields: Any) -> ServerSpec:
    try:
        return UnnamedServer(**fields)
    except ValidationError as problem:
        reasons = "; ".join(expectation(error) for error in problem.errors())
        raise UsageError(f"--mcp {text!r}: {reasons}") from problem


def with_variables(spec: ServerSpec, environment: Mapping[str, str]) -> ServerSpec:
    """Return the server with all variables replaced. Raise `UsageError` if one is not set."""
    oauth = spec.oauth.model_dump(mode="json", exclude_none=True) if spec.oauth else {}
    given = (*spec.env.values(), *spec.headers.values(), *spec.args, spec.url or "", *oauth.values())
    missing = [name for name in variables_in(given) if name not in environment]
    if missing:
        raise UsageError(
            f"MCP server {spec.name!r} is given ${{{missing[0]}}}, which is not set: "
            f"set {missing[0]}, in the environment, in .env or in .env.local"
        )

    dumped = spec.model_dump()
    given_fields = {name: filled(dumped[name], environment) for name in ("env", "headers", "args", "url")}
    if oauth:
        given_fields["oauth"] = filled(oauth, environment)
    try:
        # Validate again, because a value may be invalid in a header.
        return type(spec).model_validate({**dumped, **given_fields})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise UsageError(f"MCP server {spec.name!r}: {expectation(first)}") from None  # the cause would show the value


def secrets_of(given: ServerSpec, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the server's secrets, including the values of the variables in its settings."""
    spec = with_variables(given, environment)
    named = {f"{spec.name}.{name}": value for name, value in spec.secrets.items()}  # servers may have the same headers
    inside = variables_in({**given.headers, **secrets_in(given.env)}.values())
    spelled = {name: environment[name] for name in variables_in((*given.args, given.url or ""))}
    keys = [secret for _, secret in secret_arguments(spec.args) if secret]
    among = {name: value for name, value in spelled.items() if any(value in key for key in keys)}
    filled_in = [text for text, was in zip(spec.args, given.args, strict=True) if text != was]
    among |= {f"{spec.name}.{name}": value for name, value in inside_of(filled_in).items()}
    return {**named, **{name: environment[name] for name in inside}, **secrets_in(spelled), **among}
