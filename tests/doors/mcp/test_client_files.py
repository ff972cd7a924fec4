"""The servers of a client's mcp.json, in a configuration and by themselves."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bakeoff.doors.mcp.config import read_suite
from bakeoff.doors.mcp.plan import EvaluationRequest, build_plan
from bakeoff.errors import UsageError
from bakeoff.mcp.client_files import client_specs, is_client_file, read_client_file

from ...warm_bakeoff import Bakeoff
from .conftest import SERVERS, desk

CLAUDE = {
    "mcpServers": {
        "files": {"command": "npx", "args": ["-y", "server", "${HOME_DIR}"], "env": {"KEY": "${API_KEY:-none}"}},
        "web": {"type": "http", "url": "https://host/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
        "old": {"type": "sse", "url": "https://host/events"},
        "off": {"command": "nothing", "disabled": True},
    }
}
VS_CODE = """{
  // what the client asks for
  "inputs": [{"type": "promptString", "id": "api-key", "password": true}],
  "servers": {
\t"git": {
      "type": "stdio", "command": "uvx", /* a
      comment */ "args": ["server", "--root", "${workspaceFolder}", "http://not//a-comment"],
      "env": {"KEY": "${input:api-key}", "OTHER": "${env:OTHER}", "PORT": 80},
    },
  },
}"""


def test_servers_of_claude_and_cursor(tmp_path: Path) -> None:
    file = tmp_path / ".mcp.json"
    file.write_text(json.dumps(CLAUDE))
    files, web, old = client_specs(file, {"HOME_DIR": "/x", "TOKEN": "t"})
    assert (files.command, files.args, files.env) == ("npx", ("-y", "server", "${HOME_DIR}"), {"KEY": "none"})
    assert files.cwd == tmp_path
    assert (web.transport, web.headers) == ("http", {"Authorization": "Bearer ${TOKEN}"})
    assert old.transport == "sse"


def test_servers_of_vs_code_with_comments_inputs_and_folders(tmp_path: Path) -> None:
    file = tmp_path / ".vscode" / "mcp.json"
    file.parent.mkdir()
    file.write_text(VS_CODE)
    (git,) = client_specs(file, {"API_KEY": "k", "OTHER": "o"})
    assert git.args == ("server", "--root", str(tmp_path), "http://not//a-comment")
    assert git.env == {"KEY": "${API_KEY}", "OTHER": "${OTHER}", "PORT": "80"}
    assert git.cwd == tmp_path
    with pytest.raises(UsageError) as caught:
        client_specs(file, {})
    assert str(caught.value).splitlines() == [
        f"{file}:8: servers.git.env: ${{API_KEY}} is not set for ${{input:api-key}}: "
        "set API_KEY in the environment, in .env or in .env.local",
        f"{file}:8: servers.git.env: ${{OTHER}} is not set for ${{env:OTHER}}: "
        "set OTHER in the environment, in .env or in .env.local",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", ":1: this file names no MCP servers"),
        ('{"mcpServers": []}', ":1: this file names no MCP servers"),
        ('{"mcpServers":\n{"a": "x"}}', ":2: mcpServers.a: must be an object with `command` or `url`"),
        ('{"servers": {"a": {"command": "x",\n"envFile": ".e"}}}', ":2: servers.a.envFile: is not read here"),
        ('{"servers": {"a": {"command": "x", "args": ["${command:pick}"]}}}', "${command:pick} is not a variable"),
        ('{"servers": {"a": {}}}', "a: server 'a' has neither `command` nor `url`"),
        ('{"servers": {"a": {"command": 5, "url": 6}}}', "servers.a.url: has to be a text"),
        (
            '{"servers": {"a": {"command": "x",\n"args": ["y", 5]}}}',
            ":2: servers.a.args: has to be a list of texts",
        ),
        ('{"servers": {"a": {"command": "x", "env": ["y"]}}}', "a.env: has to be an object of texts"),
        ('{"servers": {"a": {"url": "file:///etc/passwd"}}}', "is not the address of a server"),
        ('{"mcpServers": {', "this is not JSON"),
    ],
)
def test_what_a_file_has_wrong_is_said_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        client_specs(file, {})
    assert message in str(caught.value)


def test_a_configuration_is_no_file_of_a_client(tmp_path: Path) -> None:
    names = {"a.json": {"mcpServers": {}}, "b.json": {"servers": {}}, "c.json": {"mcpServers": [], "testCases": []}}
    for name, value in names.items():
        (tmp_path / name).write_text(json.dumps(value))
    assert [is_client_file(tmp_path / name) for name in (*names, "none.json")] == [True, True, False, False]
    assert read_client_file(tmp_path / "a.json", {}).servers == ()
    with pytest.raises(UsageError, match="this file of a client has servers and no testCases: draft some with"):
        read_suite(tmp_path / "b.json", {})


def test_a_configuration_imports_servers_and_its_plan_has_no_secret_of_theirs(
    write_suite: Callable[..., Path], tmp_path: Path
) -> None:
    secret = {"API_KEY": "hush-hush-hush"}
    clients = {"mcpServers": {"notes": {**without_name(desk("notes")), "env": secret}, "more": {"command": "x"}}}
    Path("clients.json").write_text(json.dumps(clients))
    file = write_suite(mcpServers=[{"import": "clients.json", "only": ["notes"]}, desk("health")])
    suite = read_suite(file, {})
    assert [server.name for server in suite.config.mcpServers] == ["notes", "health"]
    assert suite.config.mcpServers[0].env == secret
    assert "hush" not in build_plan(suite, EvaluationRequest(path=file)).model_dump_json()


def without_name(server: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in server.items() if key != "name"}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"import": "none.json"}, "mcpServers[0].import: 'none.json' does not exist"),
        ({"import": 5}, "mcpServers[0].import: must be the path"),
        (
            {"import": "clients.json", "only": ["x"]},
            "'x' is not a server of clients.json: there are a",
        ),
        ({"import": "clients.json", "only": []}, "mcpServers[0].only: must be a list"),
        ({"import": "clients.json", "only": "a"}, "mcpServers[0].only: must be a list"),
        ({"import": "clients.json", "name": "a"}, "mcpServers[0].name: has no meaning beside `import`"),
    ],
)
def test_an_import_that_cannot_work_is_said_with_its_place(
    write_suite: Callable[..., Path], entry: dict[str, Any], message: str
) -> None:
    Path("clients.json").write_text('{"mcpServers": {"a": {"command": "x"}}}')
    with pytest.raises(UsageError) as caught:
        read_suite(write_suite(mcpServers=[entry]), {})
    assert message in str(caught.value)


def test_a_name_that_two_files_have_is_said_at_the_import(write_suite: Callable[..., Path]) -> None:
    Path("clients.json").write_text(json.dumps({"servers": {"health": {"command": "x"}}}))
    with pytest.raises(UsageError, match=r"mcpServers\[1\].name: 'health' is used twice"):
        read_suite(write_suite(mcpServers=[desk("health"), {"import": "clients.json"}]), {})


def test_the_file_of_a_client_can_be_listed_and_drafted_from_and_is_evaluated_by_import(
    bakeoff: Bakeoff, nobody: None
) -> None:
    program = {"command": sys.executable, "args": [str(SERVERS / "desk.py"), "health"], "env": {"API_KEY": "hush-hush"}}
    Path("clients.json").write_text(json.dumps({"mcpServers": {"desk": program}}))
    listed = bakeoff("mcp", "list", "--config", "clients.json")
    assert listed.returncode == 0, listed.stderr
    assert "calculate-bmi" in listed.stdout
    assert bakeoff("mcp", "lint", "clients.json", "--server", "none").returncode == 2
    drafted = bakeoff("mcp", "generate", "clients.json", "-o", "new/suite.yaml", "--per-tool", "1")
    assert drafted.returncode == 0, drafted.stderr
    text = Path("new/suite.yaml").read_text()
    assert 'import: "../clients.json"' in text
    assert "hush" not in text
    text = text.replace("local:smollm2", "scripted:null")
    Path("new/suite.yaml").write_text(text)
    done = bakeoff("mcp", "evaluate", "new/suite.yaml", "--rounds", "1", "--exit-zero", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["summary"]["totalTests"] > 0
