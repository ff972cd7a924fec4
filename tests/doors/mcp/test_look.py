"""`bakeoff mcp list`, `snapshot` and `diff`: a server as its author looks at it."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from jsonschema.validators import validator_for  # type: ignore[import-untyped]

from bakeoff.doors.mcp.config import read_suite
from bakeoff.doors.mcp.plan import EvaluationRequest, build_plan, full_environment, settings_of
from bakeoff.doors.mcp.servers import hidden_headers, parse_headers, suite_with_headers, with_headers
from bakeoff.errors import UsageError
from bakeoff.mcp import ServerSpec
from bakeoff.mcp.changes import ToolChange, changes
from bakeoff.mcp.servers import with_variables
from bakeoff.mcp.snapshot import PlacedSnapshot, ServerEntry, Snapshot, ToolEntry
from bakeoff.report.blocks import Code
from bakeoff.report.exports.sarif import changes_as_sarif
from bakeoff.report.tools import change_blocks, fails
from bakeoff.storage.redaction import secrets_in

from ...warm_bakeoff import PROGRAM, Bakeoff
from .test_lint import sarif_schema

ROOT = Path(__file__).parents[3]


def test_headers_go_to_servers_at_a_url_and_their_values_to_no_file() -> None:
    program = ServerSpec(name="a", command="x")
    web = ServerSpec(name="b", url="https://host/mcp", headers={"authorization": "old", "X-Kept": "1"})
    headers, secrets = hidden_headers(["Authorization: Bearer abc:def", "X-Tenant: ${TENANT}"])
    assert headers == {"Authorization": "Bearer ${BAKEOFF_SECRET_HEADER_AUTHORIZATION}", "X-Tenant": "${TENANT}"}
    assert secrets == {"BAKEOFF_SECRET_HEADER_AUTHORIZATION": "abc:def"}
    changed = with_headers([program, web], headers)
    assert changed[0] == program
    assert changed[1].headers == {"X-Kept": "1", **headers}
    with pytest.raises(UsageError, match="is for a server at a URL, and there is none"):
        with_headers([program], headers)
    with pytest.raises(UsageError) as caught:
        parse_headers(["secret-without-a-colon"])
    assert "secret" not in str(caught.value)
    with pytest.raises(UsageError) as bad:
        with_headers([web], {"Bad Name": "hush-hush"})
    assert "hush" not in str(bad.value)


def test_a_plan_of_an_evaluation_with_headers_holds_no_value(write_suite: Callable[..., Path]) -> None:
    file = write_suite(mcpServers=[{"name": "web", "url": "https://host/mcp"}])
    suite = suite_with_headers(read_suite(file, {}), ["Authorization: Bearer hush-hush-hush"])
    plan = build_plan(suite, EvaluationRequest(path=file))
    assert "hush" not in plan.model_dump_json()
    assert secrets_in(suite.environment) == {"BAKEOFF_SECRET_HEADER_AUTHORIZATION": "hush-hush-hush"}
    (spec,) = settings_of(plan).servers
    assert with_variables(spec, full_environment(suite)).headers == {"Authorization": "Bearer hush-hush-hush"}
    with pytest.raises(UsageError, match="set BAKEOFF_SECRET_HEADER_AUTHORIZATION"):
        with_variables(spec, {})


@pytest.fixture
def kitchen(bakeoff: Bakeoff, tmp_path: Path, nobody: None) -> Path:
    done = bakeoff("mcp", "init", ".")
    assert done.returncode == 0, done.stderr
    return Path("kitchen.py")


@pytest.mark.full
def test_a_server_is_listed_and_compared_with_its_snapshot(bakeoff: Bakeoff, kitchen: Path) -> None:
    listed = bakeoff("mcp", "list")
    assert listed.returncode == 0, listed.stderr
    assert "convert_temperature" in listed.stdout
    assert '"celsius" | "fahrenheit"' in listed.stdout
    assert list(json.loads(bakeoff("mcp", "list", "kitchen", "--json").stdout)["servers"]) == ["kitchen"]

    assert bakeoff("mcp", "diff").returncode == 2, "there is no snapshot yet"
    assert bakeoff("mcp", "snapshot").returncode == 0
    same = bakeoff("mcp", "diff", "--fail-on", "cosmetic")
    assert (same.returncode, "Nothing changed." in same.stdout) == (0, True)
    kitchen.write_text(kitchen.read_text().replace("le=600", "le=60").replace("Find a recipe", "Look up a recipe"))
    changed = bakeoff("mcp", "diff", "--sarif", "diff.sarif")
    assert changed.returncode == 1
    assert "maximum: 600 became 60" in changed.stdout
    assert "+ Look up a recipe that uses an ingredient." in changed.stdout
    assert bakeoff("mcp", "diff", "--fail-on", "never", "--json").returncode == 0
    lines = Path("mcp-snapshot.json").read_text().splitlines()
    for result in json.loads(Path("diff.sarif").read_text())["runs"][0]["results"]:
        location = result["locations"][0]
        line = lines[location["physicalLocation"]["region"]["startLine"] - 1]
        assert location["logicalLocations"][0]["fullyQualifiedName"].split("/")[1].split(":")[0] in line


@pytest.mark.full
def test_hostile_texts_of_a_server_are_shown_safely(bakeoff: Bakeoff, nobody: None) -> None:
    Path("evil.py").write_text(
        "from mcp.server import MCPServer\n"
        "server = MCPServer('evil', instructions='in\\x1b[31mred')\n"
        "@server.tool(description='De\\x1b[2Jscribed\\u202e')\n"
        "def wipe(name: str = 'x') -> str: return 'gone\\x1b]0;title\\x07'\n"
        "@server.resource('note://{id}', description='\\x1b[8mhidden')\n"
        "def note(id: str) -> str: return id\n"
        "@server.prompt(description='\\x9b31mred')\n"
        "def greet(who: str) -> str: return who\n"
        "server.run('stdio')\n"
    )
    command = shlex.join([sys.executable, "evil.py"])
    shown = [
        bakeoff("mcp", "list", "--command", command),
        bakeoff("mcp", "snapshot", "--command", command, "-o", "-"),
        bakeoff("mcp", "list", "--json", "--command", command),
    ]
    for done in shown:
        assert done.returncode == 0, done.stderr
        assert not {"\x1b", "\x9b", "\u202e", "\x07"} & set(done.stdout + done.stderr)
    assert "note://{id}" in shown[0].stdout
    assert "greet" in shown[0].stdout


def test_changes_as_sarif_follow_its_schema_and_text_marks_the_words() -> None:
    before, after = (
        Snapshot(servers={"s": ServerEntry(tools={"t": ToolEntry(description=text, inputSchema={"type": "object"})})})
        for text in ("Old words.\nSame line.", "New words.\nSame line.")
    )
    found = (
        *changes(before, after),
        ToolChange(level="breaking", kind="tool-removed", server="s", part="tool", name="x", what="it was removed"),
    )
    log = changes_as_sarif(found, PlacedSnapshot(before))
    schema = sarif_schema()
    assert [error.message for error in validator_for(schema)(schema).iter_errors(log)] == []
    assert [result["level"] for result in log["runs"][0]["results"]] == ["warning", "error"]
    assert "physicalLocation" not in log["runs"][0]["results"][0]["locations"][0]
    (words,) = [block for block in change_blocks(found) if isinstance(block, Code)]
    assert words.text.splitlines() == ["- Old words.", "+ New words.", "  Same line."]
    levels = ("breaking", "risky", "cosmetic", "never")
    assert [fails(found[:1], level) for level in levels] == [False, True, True, False]
    assert [fails(found, level) for level in levels] == [True, True, True, False]


def test_texts_of_servers_are_neither_links_nor_placeholders_in_sarif() -> None:
    name = "[free](https://evil.example){0}\u202e"
    change = ToolChange(level="risky", kind="tool-added", server="s", part="tool", name=name, what="it is new")
    (result,) = changes_as_sarif([change], PlacedSnapshot(Snapshot(servers={})))["runs"][0]["results"]
    assert "[free] (https://evil.example){{0}}\\u202e" in result["message"]["text"]
    assert "\u202e" not in json.dumps(result, ensure_ascii=False)


def test_snapshots_show_no_secret_that_a_server_repeats(bakeoff: Bakeoff, nobody: None) -> None:
    Path("leaky.py").write_text(
        "import os\nfrom mcp.server import MCPServer\nserver = MCPServer('leaky')\n"
        "@server.tool(description='With ' + os.environ['API_TOKEN'])\n"
        "def look() -> str: return 'With ' + os.environ['API_TOKEN']\nserver.run('stdio')\n"
    )
    leaky = {"command": sys.executable, "args": ["leaky.py"], "env": {"API_TOKEN": "canary-4711-canary"}}
    Path(".mcp.json").write_text(json.dumps({"mcpServers": {"leaky": leaky}}))
    done = bakeoff("mcp", "snapshot", ".mcp.json", "-o", "-")
    assert done.returncode == 0, done.stderr
    assert "With [redacted " in done.stdout
    assert "canary" not in done.stdout


@pytest.mark.full
def test_the_hooks_for_pre_commit_are_commands_that_exist() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    for hook in hooks:
        program, *words = shlex.split(hook["entry"])
        assert program == PROGRAM.name
        done = subprocess.run([PROGRAM, *words, "--help"], capture_output=True, check=False)
        assert done.returncode == 0
