"""Agents in YAML: what placeholders become, what a wrong file is told, and that what ships is in order."""

import json
from pathlib import Path
from typing import Any

import pytest

from bakeoff.doors import agents as exercises
from bakeoff.doors.agents.agents import agent_statuses, known_agents, read_agent
from bakeoff.errors import UsageError
from bakeoff.sandbox import choose_sandbox
from bakeoff.subjects.agent_definition import AgentDefinition, Values

from .small_tracks import agent_file

PROMPT = "Do {model} and {sourceFiles} ${HOME}"
FULL = Values(
    {"model": "m1", "provider": "openai", "instructions": PROMPT},
    {"sourceFiles": ["a.ts", "b.ts"], "testFiles": ["a.test.ts"]},
    {"KEY": "k"},
)
BARE = Values({"provider": "openai", "instructions": "do it"})


@pytest.mark.parametrize(
    ("element", "full", "bare"),
    [
        ("{model}", ["m1"], []),
        ("{#model}--model{/model}", ["--model"], []),
        ("{#model}{provider}/{model}{/model}", ["openai/m1"], []),
        ("{sourceFiles}", ["a.ts", "b.ts"], []),
        ("--file={sourceFiles}", ["--file=a.ts", "--file=b.ts"], []),
        ("{testFiles:-none}", ["a.test.ts"], ["none"]),
        ("{model:-usual}", ["m1"], ["usual"]),
        ("plain", ["plain"], ["plain"]),
        ("", [""], [""]),
        ('{"json": 1}', ['{"json": 1}'], ['{"json": 1}']),
    ],
)
def test_elements_expand_repeat_or_go(element: str, full: list[str], bare: list[str]) -> None:
    assert list(FULL.expand_command([element])) == full
    assert list(BARE.expand_command([element])) == bare


def test_nothing_in_the_instructions_is_taken_for_a_placeholder() -> None:
    assert FULL.expand_command(["-p", "{instructions}"]) == ("-p", PROMPT)


def test_variables_come_from_the_environment_or_their_default_and_are_unset_otherwise() -> None:
    given = {"A": "${KEY}", "B": "${NONE:-d}", "C": "${NONE}", "D": "{model}", "E": "${NONE:-}"}
    assert FULL.expand_variables(given) == {"A": "k", "B": "d", "D": "m1"}


def test_the_known_command_lines_come_out_as_they_are_typed() -> None:
    agents = known_agents()
    expected = {
        "claude": "claude --verbose --dangerously-skip-permissions --model M -p P",
        "aider": "aider --yes-always --no-auto-commits --no-check-update --model M --file=S --read=T --message P",
        "goose": "goose run --with-builtin developer --text P",
        "codex": "codex exec --skip-git-repo-check --yolo -m M P",
        "copilot": "copilot --allow-all-tools --no-color --add-dir . -p P",
        "gemini": "gemini --skip-trust --model M -y -p P",
        "opencode": "opencode run -m openai/M P",
        "qwen": "qwen -y -m M -p P",
        "cursor": "cursor-agent --yolo --model M -p P S",
        "kimi": "kimi --print --output-format text --model M -p P",
        "vibe": "vibe --prompt P --auto-approve",
        "grok": "grok -p P -m M --permission-mode bypassPermissions",
        "amp": "amp --dangerously-allow-all -x P",
        "mini": "mini -m M -t P -y --exit-immediately",
    }
    assert list(agents) == list(expected)
    for name, line in expected.items():
        texts = {"model": "M", "provider": agents[name].default_provider, "instructions": "P"}
        values = Values(texts, {"sourceFiles": ["S"], "testFiles": ["T"]})
        assert " ".join(values.expand_command(agents[name].command)) == line


def test_without_a_model_nothing_is_said_of_one() -> None:
    for agent in known_agents().values():
        words = Values({"provider": "p", "instructions": "P"}).expand_command(agent.command)
        assert not {"--model", "-m", "M", ""} & set(words), agent.name


def test_the_shipped_schema_is_that_of_the_code() -> None:
    about = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Agent",
        "description": "A command-line coding agent, as `bakeoff agents run --agent-file` reads it.",
    }
    made = {**AgentDefinition.model_json_schema(by_alias=True), **about}
    published = Path(exercises.__file__).with_name("shipped") / "agents.schema.json"
    assert published.read_text() == json.dumps(made, indent=2) + "\n"
    assert made["required"] == ["name", "defaultProvider", "install", "command"]


def test_everything_wrong_with_a_file_is_told_at_its_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("name: Mine!\ninstall: {method: magic}\ncomand: []\ncommand: ['{modell}']\ndefaultProvider: x\n")
    with pytest.raises(UsageError) as told:
        read_agent(file)
    text = str(told.value)
    assert f"{file}:1: name: 'Mine!'" in text
    assert f"{file}:2: install.method" in text
    assert f"{file}:3: comand: is not a key that is known here: did you mean 'command'?" in text
    assert "{modell} is not a placeholder" in text


def test_a_control_cannot_be_replaced_but_a_shipped_agent_can(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="one of the controls"):
        known_agents([agent_file(tmp_path, "oracle", "true")])
    assert known_agents([agent_file(tmp_path, "claude", "true")])["claude"].command[0] == "sh"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"defaultProvider": ""}, "defaultProvider: '': must not be empty"),
        ({"defaultProvider": " "}, "defaultProvider: ' ' is not a provider name"),
        ({"command": ["sh", "-c", "a\0b"]}, "command[2]: it contains a NUL character"),
        ({"env": {"A": "a\0b"}}, "env.A: it contains a NUL character"),
        ({"command": ["{model}", "-p"]}, "command: '{model}' names the program"),
        ({"command": [""]}, "command: '' names the program"),
        ({"home": {"files": {"a": "", "a/b": ""}}}, "files and home.files have both 'a' and 'a/b'"),
        (
            {"home": {"files": {"a": ""}}, "meter": {"openai": {"files": {"a/b/c": ""}}}},
            "files, home.files and meter.openai.files have both 'a' and 'a/b/c'",
        ),
    ],
)
def test_what_could_only_fail_later_is_told_when_it_is_read(tmp_path: Path, more: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as error:
        read_agent(agent_file(tmp_path, "mine", "true", **more))
    assert told in str(error.value)


def test_a_local_file_is_read_from_beside_the_agents_file(tmp_path: Path) -> None:
    (tmp_path / "fixer.py").write_text("print('{model}')\n")
    agent = read_agent(agent_file(tmp_path, "mine", "true", files={"bin/fixer.py": "fixer.py"}))
    assert agent.files == {"bin/fixer.py": "print('{model}')\n"}
    (tmp_path / "image.png").write_bytes(b"\x89PNG\xff")
    (tmp_path / "long.txt").write_text("x" * 1_000_001)
    for path, why in (
        ("no.py", "cannot be read: No such file"),
        ("image.png", "cannot be read: it is not a UTF-8 text"),
        ("long.txt", "is longer than 1,000,000 characters"),
    ):
        with pytest.raises(UsageError, match=rf"files\.f: .*{path} {why}"):
            read_agent(agent_file(tmp_path, "mine", "true", files={"f": path}))


@pytest.mark.parametrize("path", ["../.ssh/id", "/etc/passwd"])
def test_a_home_is_given_nothing_from_outside_of_it(tmp_path: Path, path: str) -> None:
    with pytest.raises(UsageError, match=r"home\.login"):
        read_agent(agent_file(tmp_path, "mine", "true", home={"login": [path]}))


async def test_the_list_says_what_is_installed_and_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("MINE_KEY", "OTHER_KEY"):
        monkeypatch.delenv(name, raising=False)
    here = read_agent(
        agent_file(
            tmp_path,
            "here",
            "true",
            version={"command": ["sh", "-c", "echo here 1.2; touch $HOME/left; exit 0"]},
            require=[["MINE_KEY", "OTHER_KEY"]],
        )
    )
    there = here.model_copy(update={"name": "there", "command": ("no-such-program",), "version": None})
    sandbox = choose_sandbox("process")
    one, other = await agent_statuses({"here": here, "there": there}, sandbox)
    assert (one.installed, one.version, one.missing) == (True, "here 1.2", ("MINE_KEY or OTHER_KEY",))
    assert (other.installed, other.version, other.ready) == (False, None, False)
    monkeypatch.setenv("OTHER_KEY", "k")
    assert (await agent_statuses({"here": here}, sandbox))[0].ready


@pytest.mark.parametrize("sandbox", ["process", "bwrap"])
async def test_the_list_says_why_an_agent_does_not_start_in_the_sandbox(sandbox: str) -> None:
    about = {"name": "x", "defaultProvider": "p", "install": {"method": "other"}, "command": ["sh"]}
    script = "echo 'Error: Missing optional dependency x. Reinstall it' >&2; echo '    at main (x.js:1:2)' >&2; exit 3"
    failing = AgentDefinition.model_validate({**about, "version": {"command": ["sh", "-c", script]}})
    [status] = await agent_statuses({"x": failing}, choose_sandbox(sandbox))
    assert (status.installed, status.version, status.ready) == (True, None, False)
    assert status.problem == (
        f"it does not start in the {sandbox} sandbox (exit code 3): Error: Missing optional dependency x. Reinstall it"
    )


def test_an_agent_without_a_model_of_its_own_says_what_to_type() -> None:
    mini = known_agents()["mini"]
    assert mini.lacks_model(None) == "it has no model of its own: add --model, for instance --model openai/gpt-5-mini"
    assert mini.lacks_model("openai/gpt-4o") is None
    assert [name for name, agent in known_agents().items() if agent.model.required] == ["goose", "mini"]
