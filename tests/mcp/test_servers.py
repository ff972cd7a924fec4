"""Test which server is meant, and what is said of entries that mean none."""

import base64
import json

import pytest
from pydantic import ValidationError

from bakeoff.errors import UsageError
from bakeoff.mcp import McpHub, ServerSpec, parse_mcp_option
from bakeoff.mcp.servers import with_unique_names
from bakeoff.storage.redaction import Redactor


@pytest.mark.parametrize(
    ("fields", "transport"),
    [
        ({"command": "server"}, "stdio"),
        ({"url": "https://host/mcp"}, "http"),
        ({"url": "https://host/sse"}, "sse"),
        ({"url": "https://host/a/sse/?x=1"}, "sse"),
        ({"url": "https://host/sse-like"}, "sse"),
        ({"url": "https://assets.host/classes"}, "http"),
        ({"url": "https://host/sse", "transport": "http"}, "http"),
        ({"url": "https://host/mcp", "transport": "sse"}, "sse"),
        ({"url": "https://host/mcp", "transport": "streamable-http"}, "http"),
        ({"url": "https://host/mcp", "transport": "streamableHttp"}, "http"),
    ],
)
def test_the_transport_follows_from_the_entry(fields: dict[str, str], transport: str) -> None:
    assert ServerSpec.model_validate({"name": "s", **fields}).transport == transport


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "neither `command` nor `url`: give one of them"),
        ({"command": "a", "url": "https://b/"}, "both `command` and `url`: give one of them"),
        ({"command": " "}, "name the program to start"),
        ({"command": "a", "transport": "sse"}, "transport 'sse' needs `url`"),
        ({"url": "https://b/", "transport": "stdio"}, "transport 'stdio' needs `command`"),
        ({"command": "a", "headers": {"X": "y"}}, "`headers` has no meaning for transport 'stdio'"),
        ({"url": "https://b/", "env": {"X": "y"}}, "`env` has no meaning for transport 'http'"),
        ({"url": "ftp://b/"}, "'ftp://b/' is not the address of a server: write it as https://host/path"),
        ({"url": "https://"}, "is not the address of a server"),
        ({"url": "http://[::1/mcp"}, "is not the address of a server"),
        ({"command": "a", "args": ["b\0c"]}, "NUL"),
        ({"command": "a", "env": {"A=B": "c"}}, "'A=B' is not the name of an environment variable"),
        ({"command": "a", "env": {"A": "b\0"}}, "NUL"),
        ({"url": "https://b/", "headers": {"X Y": "z"}}, "'X Y' is not the name of a header"),
        ({"url": "https://b/", "headers": {"X": "a\r\nEvil: b"}}, "the value of header 'X' contains a line break"),
        ({"command": "a", "transport": "pigeon"}, "'stdio', 'sse' or 'http'"),
        ({"command": "a", "colour": "red"}, "colour"),
    ],
)
def test_an_entry_that_means_no_server_is_refused_with_the_way_out(fields: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ServerSpec.model_validate({"name": "s", **fields})
    assert sentence in str(caught.value)


def test_the_backslash_words_of_a_pattern_are_no_nul() -> None:
    assert ServerSpec(name="s", command="a", args=(r"[\x00-\x1f]",)).args == (r"[\x00-\x1f]",)


def test_the_address_of_a_program_has_no_keys() -> None:
    spec = ServerSpec(
        name="a", command="x", args=("--api-key", "canary-4711", "--token=canary-4712", "--port=80800800")
    )
    assert spec.address == "x --api-key '***' '--token=***' --port=80800800"
    assert set(spec.shown_to_nobody.values()) == {"canary-4711", "canary-4712"}


@pytest.mark.parametrize(
    "fields",
    [
        {"url": "https://host/mcp", "headers": {"Authorization": "Bearer {}"}},
        {"url": "https://host/mcp", "headers": {"X-Auth": "token {}"}},
        {"url": "https://host/mcp?api_key={}&page=1"},
        {"url": "https://{}@host/mcp"},
        {"url": "https://me:{}@host/mcp"},
        {"command": "x", "args": ["--database", "https://me:{}@host/"]},
        {"command": "x", "args": ["--database=postgres://me:{}@host/"]},
        {"command": "x", "env": {"DATABASE": "postgres://me:{}@host/"}},
        {"command": "x", "env": {"AUTH_HEADER": "Bearer {}"}},
    ],
)
def test_a_key_that_a_server_repeats_without_what_stood_around_it_is_redacted(fields: dict[str, object]) -> None:
    key = "Zq8Wv3Lp0Xn5Rt7Yb2Kd"
    spec = ServerSpec.model_validate_json(json.dumps({"name": "s", **fields}).replace("{}", key))
    assert key not in Redactor(spec.shown_to_nobody).text(f"you sent {key}, thank you")


def test_the_password_of_a_basic_header_is_redacted() -> None:
    header = "Basic " + base64.b64encode(b"me:Zq8Wv3Lp0Xn5Rt7Y").decode()
    spec = ServerSpec(name="s", url="https://host/mcp", headers={"Authorization": header})
    assert "Zq8W" not in Redactor(spec.shown_to_nobody).text("your password is Zq8Wv3Lp0Xn5Rt7Y")


@pytest.mark.parametrize(
    ("text", "name", "address"),
    [
        ("http", "mcp.svelte.dev", "https://mcp.svelte.dev/mcp"),
        ("http:https://host:8080/x", "host", "https://host:8080/x"),
        ("https://host/sse", "host", "https://host/sse"),
        ("http://127.0.0.1:9/mcp", "127.0.0.1", "http://127.0.0.1:9/mcp"),
        ("stdio", "@sveltejs/mcp", "npx -y @sveltejs/mcp"),
        ("stdio:/opt/bin/my-server --port 'a b'", "my-server", "/opt/bin/my-server --port 'a b'"),
        ("stdio:uvx mcp-server-time", "mcp-server-time", "uvx mcp-server-time"),
    ],
)
def test_the_option_names_a_server(text: str, name: str, address: str) -> None:
    spec = parse_mcp_option(text)
    assert spec is not None
    assert (spec.name, spec.address) == (name, address)


def test_servers_that_nobody_named_get_numbers_and_given_names_stay() -> None:
    options = [parse_mcp_option(f"stdio:python3 {file}.py") for file in "abc"]
    given = ServerSpec(name="python3-2", command="x")
    apart = with_unique_names([*(spec for spec in options if spec), given])
    assert [spec.name for spec in apart] == ["python3", "python3-3", "python3-4", "python3-2"]
    assert apart[1].args == ("b.py",)
    McpHub([spec for spec in options if spec])  # which refuses two of one name


def test_the_option_none_names_no_server() -> None:
    assert parse_mcp_option("none") is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "write none, http"),
        ("htpp:https://host", "'htpp:https://host' is not an MCP server"),
        ("http:host/mcp", "'host/mcp' is not the address of a server: write it as https://host/path"),
        ("stdio:'unclosed", "close its quotes"),
        ("stdio: ", "names no command"),
    ],
)
def test_an_option_that_names_no_server_is_refused_with_the_way_out(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_mcp_option(text)
    assert sentence in str(caught.value)


def test_a_program_without_a_sandbox_is_asked_for_by_its_own_word() -> None:
    spec = parse_mcp_option("unsandboxed:docker run -i --rm my/server")
    assert spec is not None
    assert (spec.command, spec.sandbox) == ("docker", "none")
    assert spec.model_dump()["sandbox"] == "none"
    sandboxed = parse_mcp_option("stdio:docker run -i --rm my/server")
    assert sandboxed is not None
    assert "sandbox" not in sandboxed.model_dump(), "plans of older versions have the same fingerprint"
    with pytest.raises(UsageError, match="names no command"):
        parse_mcp_option("unsandboxed:")
