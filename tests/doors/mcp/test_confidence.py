"""Test that secrets of a configuration reach servers and providers, and no file of a run."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import JsonValue

from bakeoff._kernel.environment import filled
from bakeoff.doors.mcp.config import SuiteConfig, read_suite
from bakeoff.doors.mcp.servers import split_secrets
from bakeoff.mcp.servers import with_variables

from ...warm_bakeoff import Bakeoff
from .conftest import BMI, call, desk

SECRET = "a-key-that-nobody-should-see"
PROVIDER = f"""\
class Mine:
    def __init__(self, settings):
        assert settings.options["api_key"] == "{SECRET}", "it was not told"

    def create_message(self, system, message):
        return '''{call(**BMI)}'''
"""


def files_with(secret: str) -> list[str]:
    written = [path for folder in ("results", "mcp-report") for path in Path(folder).rglob("*") if path.is_file()]
    assert len(written) > 4
    return [str(path) for path in written if secret.encode() in path.read_bytes()]


@pytest.mark.parametrize("exported", [True, False])
def test_a_variable_in_the_words_of_a_servers_command_reaches_it_and_no_file(
    bakeoff: Bakeoff, write_suite: Callable[..., Path], tmp_path: Path, exported: bool
) -> None:
    lives = tmp_path / "lives-of-a-server"  # where the server notes that it was started
    file = write_suite("suite/s.yaml", mcpServers=[{**desk("health", "${MY_TOKEN}"), "writable": [str(tmp_path)]}])
    environment = {"MY_TOKEN": str(lives)} if exported else {}
    if not exported:
        file.with_name(".env").write_text(f"MY_TOKEN={lives}\n")
    done = bakeoff("mcp", "evaluate", str(file), "--no-open", **environment)
    assert done.returncode == 0, done.stderr
    assert lives.exists()
    assert files_with(lives.name) == []


def test_arguments_that_a_server_repeats_are_in_no_file(bakeoff: Bakeoff, write_suite: Callable[..., Path]) -> None:
    Path("leaky.py").write_text(
        "import sys\nfrom mcp.server import MCPServer\nserver = MCPServer('leaky')\n"
        "@server.tool()\ndef look() -> str: return 'With ' + ' '.join(sys.argv)\nserver.run('stdio')\n"
    )
    look = {"serverName": "leaky", "toolName": "look", "parameters": {}}
    words = ["leaky.py", "--api-key", SECRET, "${PLAIN}", "--stage", "${STAGE}", "${FOLDER}"]
    write_suite(
        executeTools=True,
        modelsToTest=[f"scripted:{call(**look)}"],
        testCases=[{"prompt": "Look at production.", "expectedOutput": look, "expectedResults": "With leaky.py"}],
        mcpServers=[{"name": "leaky", "command": sys.executable, "args": words}],
    )
    other = "canary-4711-canary"
    done = bakeoff("mcp", "evaluate", "--no-open", PLAIN=other, STAGE="production", FOLDER="/some/where/else")
    assert done.returncode == 0, done.stdout + done.stderr
    assert files_with(SECRET) == files_with(other) == []
    assert SECRET not in done.stdout + done.stderr
    assert files_with("--stage production /some/where/else") != []


@pytest.mark.parametrize("told", [SECRET, "${MY_TOKEN}"])
def test_an_option_of_a_provider_reaches_it_and_no_file(
    bakeoff: Bakeoff, write_suite: Callable[..., Path], told: str
) -> None:
    Path("my_own_provider.py").write_text(PROVIDER)
    mine = {"target": "my_own_provider:Mine", "options": {"api_key": told}}
    write_suite(modelsToTest=["mine:x"], providers={"mine": mine})
    done = bakeoff("mcp", "evaluate", "--no-open", MY_TOKEN=SECRET)
    assert done.returncode == 0, done.stdout + done.stderr
    assert files_with(SECRET) == []


@pytest.mark.parametrize(
    "server",
    [
        {"name": "a", "url": f"https://host/mcp?api_key={SECRET}"},
        {"name": "a", "url": f"https://me:{SECRET}@host/mcp?x=1#there"},
        {"name": "a", "command": "x", "env": {"DATABASE_URL": f"postgres://me:{SECRET}@host/db", "PLAIN": "yes"}},
        {"name": "a", "url": "https://host/mcp", "headers": {"X-Mine": SECRET}},
        *(
            {"name": "a", "command": "x", "args": ["-y", "--path", "/a", *args, "last"]}
            for args in (
                ["--api-key", SECRET],
                [f"--api-key={SECRET}"],
                ["-e", f"GITHUB_TOKEN={SECRET}"],
                ["--header", f"Authorization: Bearer {SECRET}"],
                ["--header", f"X-Api-Key:{SECRET}"],
                [f"postgres://me:{SECRET}@host/db"],
                [f"https://host/mcp?api_key={SECRET}"],
            )
        ),
    ],
)
def test_what_is_spelled_out_is_taken_out_and_put_back(write_suite: Callable[..., Path], server: object) -> None:
    config = read_suite(write_suite(mcpServers=[server]), {}).config
    shut, secrets = split_secrets(config, Path())
    assert SECRET not in shut.model_dump_json(by_alias=True)
    opened = SuiteConfig.model_validate(json.loads(shut.model_dump_json(by_alias=True)))
    assert with_variables(opened.mcpServers[0], secrets) == config.mcpServers[0]


def test_arguments_that_are_no_secrets_stay_in_the_plan(write_suite: Callable[..., Path]) -> None:
    args = [
        "--max-tokens",
        "100000000",
        "--key-file",
        "/a/b/c.pem",
        "--sort",
        "descending",
        "https://host/mcp",
        "--token",
    ]
    config = read_suite(write_suite(mcpServers=[{"name": "a", "command": "x", "args": args}]), {}).config
    assert split_secrets(config, Path()) == (config, {})


def test_an_address_that_is_a_variable_is_checked_when_the_file_is_read(write_suite: Callable[..., Path]) -> None:
    file = write_suite(mcpServers=[{"name": "a", "url": "${WHERE}"}, {"name": "b", "url": "http://${HOST}/mcp"}])
    first, second = read_suite(file, {"WHERE": "https://host/sse", "HOST": "host:8000"}).config.mcpServers
    assert (first.url, first.transport) == ("https://host/sse", "sse")
    assert with_variables(second, {"HOST": "host:8000"}).url == "http://host:8000/mcp"


def test_variables_are_filled_in_anywhere_in_an_option() -> None:
    given: JsonValue = {"a": ["${X}", {"b": "x${X}${Y}"}], "c": 1}
    assert filled(given, {"X": "1"}) == {"a": ["1", {"b": "x1${Y}"}], "c": 1}
