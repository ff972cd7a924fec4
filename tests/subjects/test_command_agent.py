"""Agents that are commands: what is said before they run, what they cannot claim, and what is never written."""

import json
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bakeoff._kernel.clock import Clock
from bakeoff.errors import InfraError, UsageError
from bakeoff.plan import Limits, SubjectSpec
from bakeoff.protocols import Task
from bakeoff.record import Transcript
from bakeoff.sandbox import choose_sandbox
from bakeoff.sandbox.places import open_workspace
from bakeoff.sandbox.programs import program_path, program_roots, without_homes
from bakeoff.storage.redaction import Redactor
from bakeoff.subjects.agent_program import last_words, login_secrets
from bakeoff.subjects.agent_run import agent_run_in, patch_in, stderr_in
from bakeoff.subjects.command_agent import CLI_AGENT, CommandAgent, TaskFiles

TOKEN = "oat01-9f8e7d6c5b4a39281706f5e4d3c2b1a0"
FILES = {"double.py": "def double(n): ...\n", "double_test.py": "def test_one(): ...\n"}
RULE = {"env": {"OPENAI_BASE_URL": "{meterUrl}", "OPENAI_API_KEY": "{meterToken}"}}


def agent_of(*command: str, provider: str = "nobody", limited: bool = False, **about: Any) -> CommandAgent:
    options = {name: about.pop(name) for name in ("use_login", "network") if name in about}
    definition = {
        "name": "mine",
        "defaultProvider": provider,
        "install": {"method": "other", "command": "get mine"},
        "command": list(command) or ["sh", "-c", "true"],
        **about,
    }
    spec = SubjectSpec(kind=CLI_AGENT, name="mine", options={"definition": definition, "provider": provider, **options})
    return CommandAgent.from_spec(spec, limited=limited)


async def attempted(agent: CommandAgent, sandbox_kind: str = "process", prompt: str = "solve it") -> Transcript:
    limits = Limits()
    async with open_workspace(choose_sandbox(sandbox_kind), FILES, limits) as workspace:
        task = Task(
            prompt=prompt,
            case_id="c",
            subject="mine",
            trial_id="t",
            round=0,
            seed=0,
            limits=limits,
            spend=print,
            count=print,
            own_workspace=workspace,
            clock=Clock(limits.attempt_seconds),
        )
        return await agent.attempt(task)


@pytest.fixture
def tool(tmp_path: Path) -> Callable[[str, str], Path]:
    def make(path: str, script: str) -> Path:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(script)
        file.chmod(file.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        return file

    return make


# --- what an agent cannot claim -----------------------------------------------------------------------------------


@pytest.mark.parametrize("sandbox_kind", ["process", "bwrap"])
async def test_an_agent_that_has_worked_and_ends_as_if_it_were_not_there_has_failed(sandbox_kind: str) -> None:
    agent = agent_of("sh", "-c", 'if [ "$1" = hard ]; then exit 127; fi', "sh", "{instructions}")
    await attempted(agent, sandbox_kind, prompt="easy")
    run = agent_run_in(await attempted(agent, sandbox_kind, prompt="hard"))
    assert (run.exit_code, run.stop) == (127, "exited")


async def test_an_unmetered_agent_that_never_worked_is_nobodys_failure_and_quoted() -> None:
    agent = agent_of("sh", "-c", "echo 'No auth type is selected' >&2; echo log > agent.log; exit 3")
    agent = replace(agent, files={"c": TaskFiles(answer=("*.py",))})
    with pytest.raises(
        InfraError, match=r"`sh` never started: it changed nothing, and ended with exit code 3: No auth type is"
    ) as raised:
        await attempted(agent)
    assert raised.value.permanent
    assert raised.value.transcript is not None
    assert "No auth type" in stderr_in(raised.value.transcript)


async def test_an_agent_that_has_worked_cannot_leave_out_a_case_because_it_never_says_its_version() -> None:
    script = 'if [ "$1" = hard ]; then exit 1; fi'
    version = {"command": ["sh", "-c", "exit 1"]}
    agent = agent_of("sh", "-c", script, "sh", "{instructions}", version=version)
    await attempted(agent, prompt="easy")
    assert agent_run_in(await attempted(agent, prompt="hard")).exit_code == 1


@pytest.mark.parametrize("work", ["true", "echo 'x = 1' > double.py; exit 1"])
async def test_an_agent_that_has_worked_cannot_leave_out_what_it_does_not_solve(work: str) -> None:
    gives_up = "echo 'not logged in' >&2; exit 1"
    agent = agent_of("sh", "-c", f'if [ "$1" = hard ]; then {gives_up}; else {work}; fi', "sh", "{instructions}")
    with pytest.raises(InfraError, match="not logged in") as raised:  # nothing is known of it yet
        await attempted(agent, prompt="hard")
    assert raised.value.stops_subject, "or it could give up first, and work later"
    await attempted(agent, prompt="easy")
    assert agent_run_in(await attempted(agent, prompt="hard")).exit_code == 1


@pytest.mark.parametrize("sandbox_kind", ["process", "bwrap"])
@pytest.mark.parametrize("first", ["#!/no/such/interpreter", "#!/usr/bin/env no-such-interpreter"])
async def test_an_agent_that_cannot_be_started_is_nobodys_failure(
    first: str, sandbox_kind: str, tool: Callable[[str, str], Path]
) -> None:
    program = tool("bin/agent", f"{first}\n")
    with pytest.raises(InfraError, match="could not be started in the sandbox") as raised:
        await attempted(agent_of(str(program)), sandbox_kind)
    assert raised.value.permanent


NO_START = {
    "exits at once": (["sh", "-c", "exit 1"], "ended with exit code 1"),
    "exits with a usage": (["sh", "-c", "echo 'usage: mine [-p]' >&2; exit 2"], r"exit code 2: usage: mine \[-p\]"),
    "says nothing, exits with 255": (["sh", "-c", "exit 255"], "ended with exit code 255"),
    "claims to be missing": (["sh", "-c", "exit 127"], "ended with exit code 127"),
    "claims to be forbidden": (["sh", "-c", "exit 126"], "ended with exit code 126"),
    "script is missing": (["python3", "no/fixer.py"], "can't open file"),
    "script of sh is missing": (["sh", "no/fixer.sh"], "fixer.sh"),
    "module of Python is missing": (["python3", "-m", "no_such_module"], "No module named no_such_module"),
    "import fails": (["python3", "-c", "import no_such_module"], "ModuleNotFoundError: No module named"),
    "syntax error": (["python3", "-c", "print("], "SyntaxError"),
    "crashes": (["python3", "-c", "raise RuntimeError('broken build')"], "RuntimeError: broken build"),
    "unknown option": (["python3", "--no-such-option"], "ended with exit code 2"),
    "module of Node is missing": (["node", "-e", "require('no-such-module')"], "Cannot find module"),
    "library is missing": (["sh", "-c", "LD_PRELOAD= /lib64/ld-linux-x86-64.so.2 /no/such"], "/no/such"),
    "aborts": (["sh", "-c", "kill -ABRT $$"], "ended with exit code -6"),
    "segmentation fault": (["sh", "-c", "kill -SEGV $$"], "ended with exit code -11"),
    "killed": (["sh", "-c", "kill -KILL $$"], "ended with exit code -9"),
    "leaves only a log": (["sh", "-c", "echo starting > agent.log; exit 1"], "ended with exit code 1"),
    "cannot write its settings": (["sh", "-c", "echo x > /usr/mine.json || exit 4"], "mine.json"),
    "lacks a key": (["sh", "-c", "echo 'API key not set' >&2; exit 1"], "API key not set"),
}
"""The command of an agent that fails to start, and words of the reason, by the way in which it fails."""


@pytest.mark.parametrize("sandbox_kind", ["process", "bwrap"])
@pytest.mark.parametrize("way", NO_START)
async def test_an_agent_that_never_started_is_nobodys_failure(way: str, sandbox_kind: str) -> None:
    command, reason = NO_START[way]
    agent = replace(agent_of(*command), files={"c": TaskFiles(answer=("*.py",))})
    with pytest.raises(InfraError, match=f"never started.*{reason}") as raised:
        await attempted(agent, sandbox_kind)
    assert raised.value.permanent
    assert raised.value.transcript is not None


@pytest.mark.parametrize("sandbox_kind", ["process", "bwrap"])
@pytest.mark.parametrize(
    ("kind", "content", "mode"),
    [("wrong architecture", b"\x7fELF\x02\x01\x01" + bytes(57), 0o755), ("no permission", b"#!/bin/sh\n", 0o644)],
)
async def test_a_program_that_the_system_does_not_start_is_nobodys_failure(
    kind: str, content: bytes, mode: int, sandbox_kind: str, tmp_path: Path
) -> None:
    program = tmp_path / "agent"
    program.write_bytes(content)
    program.chmod(mode)
    agent = agent_of(str(program))
    if kind == "no permission":
        assert "is not installed" in agent.lacks()[0]
    else:
        with pytest.raises(InfraError, match=f"`{program}` (never started|could not be started)"):
            await attempted(agent, sandbox_kind)


@pytest.mark.parametrize("does", ["echo 'all done'", "true", "echo 'x = 1' > double.py; exit 1"])
async def test_an_agent_that_starts_and_does_nothing_right_has_failed(does: str) -> None:
    assert agent_run_in(await attempted(agent_of("sh", "-c", does))).stop == "exited"


async def test_the_third_failed_start_in_a_row_stops_the_agent() -> None:
    agent, stopped = agent_of("sh", "-c", "exit 1"), []
    for _ in range(3):
        with pytest.raises(InfraError, match="never started") as raised:
            await attempted(agent)
        stopped.append(raised.value.stops_subject)
    assert stopped == [False, False, True]


@pytest.mark.parametrize("sandbox_kind", ["process", "bwrap"])
async def test_a_local_script_is_copied_into_home(sandbox_kind: str) -> None:
    script = "#!/bin/sh\necho 'return {n} * 2' > double.py; echo \"from $HOME\"\n"
    agent = agent_of("sh", "{home}/bin/fixer.sh", files={"bin/fixer.sh": script})
    transcript = await attempted(agent, sandbox_kind)
    assert agent_run_in(transcript).touched == ("double.py",)
    assert "return {n} * 2" in patch_in(transcript), "placeholders of a script are its own"


def test_a_script_that_no_trial_would_see_is_told_before_the_run(tool: Callable[[str, str], Path]) -> None:
    script = tool("fixer.sh", "exit 0\n")
    agent = replace(agent_of("sh", str(script)), sandbox=lambda: choose_sandbox("bwrap"))
    assert agent.lacks() == [
        f"{script} cannot be seen in the sandbox: write `files: {{fixer.sh: {script}}}` into the agent's file, "
        "and `{home}/fixer.sh` in its command"
    ]
    assert replace(agent, sandbox=lambda: choose_sandbox("process")).lacks() == []


@pytest.mark.parametrize("letter", ["x", "é"])
async def test_a_prompt_that_no_program_can_be_given_is_nobodys_failure_and_named(letter: str) -> None:
    agent = agent_of("sh", "-c", 'printf %s "$1" | wc -c', "sh", "{instructions}")
    size = len(letter.encode())
    assert (await attempted(agent, prompt=letter * (130_000 // size))).output == "130000\n"
    with pytest.raises(InfraError, match=r"the prompt is longer than .* --custom-instruction") as raised:
        await attempted(agent, prompt=letter * (132_000 // size))
    assert raised.value.permanent


@pytest.mark.parametrize("junk", ["touch a$n", "head -c 30000 /dev/zero | tr '\\000' 'a' > a$n", "echo > a$n.pth"])
async def test_a_change_to_the_tests_cannot_be_hidden_in_a_heap_of_files(junk: str) -> None:
    script = f"for n in $(seq 700); do {junk}; done; echo 'pass # changed' > double_test.py; echo 'x = 1' > conftest.py"
    transcript = await attempted(agent_of("sh", "-c", script))
    run = agent_run_in(transcript)
    assert len(run.touched) == 200
    assert {"double_test.py", "conftest.py"} <= set(run.touched)
    assert "double.py" not in (*run.touched, *run.refused), "there was room to see that nobody touched it"
    patch = patch_in(transcript)
    assert "-def test_one(): ..." in patch
    assert "+x = 1" in patch


async def test_a_file_that_is_blown_up_does_not_hide_what_it_has_lost() -> None:
    script = (
        "{ for n in $(seq 9000); do echo \"# line $n\"; done; echo 'pass'; } > double_test.py; echo x > conftest.py"
    )
    patch = patch_in(await attempted(agent_of("sh", "-c", script)))
    assert "-def test_one(): ..." in patch
    assert "+++ b/conftest.py" in patch
    assert len(patch) < 60_000


# --- what is said before anything runs ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("about", "sentence"),
    [
        ({"meter": {"opnai": RULE}}, "meter.opnai: no provider 'opnai'; did you mean 'openai'?"),
        ({"meter": {"openai": {**RULE, "upstream": "opnai"}}}, "meter.openai.upstream: no provider 'opnai'"),
        ({"meter": {"groq": RULE}}, "`meter` has no rule for provider 'openai', only for groq"),
        (
            {"meter": {"groq": RULE}, "providers": {"openai": {}}},
            "meter.groq: the agent has no such provider: it has openai",
        ),
    ],
)
def test_a_meter_that_nobody_would_use_is_refused(about: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as told:
        agent_of(provider="openai", **about)
    assert sentence in str(told.value)


def test_an_agent_runs_unmetered_with_a_provider_that_is_named_and_has_no_rule() -> None:
    agent = agent_of(provider="groq", meter={"openai": RULE}, providers={"openai": {}, "groq": {}})
    assert agent.lacks() == []
    assert agent.needs.resources == ()


def test_a_key_that_the_meter_cannot_use_takes_the_users_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", TOKEN)
    about: dict[str, Any] = {
        "provider": "anthropic",
        "meter": {"anthropic": {}},
        "require": [["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"]],
    }
    assert agent_of(**about).lacks() == [
        "it cannot be metered: provider 'anthropic' has no key: set ANTHROPIC_API_KEY; "
        "or add --use-login to run it unmetered, with what it has"
    ]
    assert agent_of(use_login=True, **about).lacks() == []


def test_a_budget_and_recordings_need_an_agent_that_is_metered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-some-key-0123456789")
    metered: dict[str, Any] = {"provider": "openai", "meter": {"openai": RULE}}
    assert agent_of(limited=True, **metered).lacks() == []
    assert agent_of(limited=True, **metered).offline().only_recordings
    [told] = agent_of(limited=True).lacks()
    assert told == "it is not metered with nobody, so nobody counts what it spends: leave out --max-cost"
    with pytest.raises(UsageError, match=r"not metered with nobody.*leave out --replay strict"):
        agent_of().offline()
    with pytest.raises(UsageError, match="`no-such-program` is not installed: `get mine`"):
        agent_of("no-such-program", **metered).offline()


# --- programs that are named from where the user is ---------------------------------------------------------------


@pytest.mark.parametrize("sandbox_kind", ["process", "bwrap"])
async def test_a_program_is_found_from_the_folder_that_the_user_is_in(
    sandbox_kind: str, tmp_path: Path, tool: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    tool("agent.sh", "#!/bin/sh\necho ${1:-hello}\n")
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)  # where we are root, agents are not
    monkeypatch.chdir(tmp_path)
    agent = agent_of("./agent.sh", version={"command": ["./agent.sh", "7.1"]})
    assert agent.lacks() == []
    transcript = await attempted(agent, sandbox_kind)
    assert transcript.output == "hello\n"
    assert agent_run_in(transcript).version == "7.1"


# --- programs of version managers ---------------------------------------------------------------------------------

MANAGER = '#!/bin/sh\n[ "$1 $2" = "which agent" ] && echo "{real}"\n'


@pytest.mark.parametrize("sandbox_kind", ["process", "bwrap"])
async def test_the_program_behind_a_shim_is_run(
    sandbox_kind: str, tmp_path: Path, tool: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = tmp_path / ".pyenv/versions/3.11.0"
    tool(".pyenv/versions/3.11.0/lib/said", "hello from behind")
    real = tool(".pyenv/versions/3.11.0/bin/agent", f"#!/bin/sh\ncat {prefix}/lib/said\n")
    shims = tool(".pyenv/shims/agent", "#!/bin/sh\nexec /no/such/manager exec agent\n").parent
    tool(".pyenv/bin/pyenv", MANAGER.format(real=real))
    monkeypatch.setenv("PATH", f"{shims}:{os.environ['PATH']}")
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)  # where we are root, agents are not
    agent = agent_of("agent")
    assert agent.lacks() == []
    assert (await attempted(agent, sandbox_kind)).output == "hello from behind"


# Where a script of npm lies, the link in PATH that leads there, and who made them.
PREFIXES = {
    "npm-global": ("me/.npm-global/lib/node_modules/@x/agent/bin/agent", "me/.npm-global/bin/agent"),
    "toolcache": (
        "toolcache/node/20.1.0/x64/lib/node_modules/@x/agent/bin/agent",
        "toolcache/node/20.1.0/x64/bin/agent",
    ),
    "nvm": (
        "me/.nvm/versions/node/v20/lib/node_modules/@x/agent/bin/agent",
        "me/.nvm/versions/node/v20/bin/agent",
    ),
    "homebrew": ("brew/lib/node_modules/@x/agent/bin/agent", "brew/bin/agent"),
    "cellar": ("brew/Cellar/agent/1.0/libexec/lib/node_modules/@x/agent/bin/agent", "brew/bin/agent"),
    "home itself": ("me/lib/node_modules/@x/agent/bin/agent", "me/bin/agent"),
}


@pytest.mark.parametrize("sandbox_kind", ["process", "bwrap"])
@pytest.mark.parametrize("maker", PREFIXES)
async def test_an_agent_of_any_npm_prefix_finds_its_modules_and_nothing_of_home(
    maker: str, sandbox_kind: str, tmp_path: Path, tool: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    target, link = PREFIXES[maker]
    looking = 'cat "$(dirname "$(dirname "$0")")/said"; cat {home}/secret 2> /dev/null || echo " and no secret"\n'
    script = tool(target, f"#!/bin/sh\n{looking.format(home=tmp_path / 'me')}")
    (script.parents[1] / "said").write_text("found")
    secret = tool("me/secret", "the secret")
    (tmp_path / link).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / link).symlink_to(os.path.relpath(script, (tmp_path / link).parent))
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    monkeypatch.setenv("PATH", f"{(tmp_path / link).parent}:{os.environ['PATH']}")
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)  # where we are root, agents are not
    assert secret.is_file()
    shown = program_roots(program_path("agent") or "")
    assert not [root for root in shown if (tmp_path / "me").is_relative_to(root)], shown
    said = str((await attempted(agent_of("agent"), sandbox_kind)).output)
    assert said.startswith("found")
    if sandbox_kind == "bwrap":  # `process` may show what every user may read
        assert said == "found and no secret\n"


@pytest.mark.parametrize("private", ["home", "project"])
def test_a_toolchain_around_home_or_the_project_shows_its_libraries_and_never_those(
    private: str, tmp_path: Path, tool: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "me").mkdir()
    if private == "home":
        monkeypatch.setenv("HOME", str(tmp_path / "me"))
    else:
        monkeypatch.chdir(tmp_path / "me")
    tool("me/bin/node", "")
    modules = tool("me/lib/node_modules/npm/index.js", "").parents[1]
    assert without_homes([tmp_path / "me/bin/node", tmp_path / "me", tmp_path, Path("/usr")]) == (
        tmp_path / "me/bin/node",
        modules,
        Path("/usr"),
    )


def test_the_program_behind_a_link_of_volta_is_found(
    tmp_path: Path, tool: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    package = ".volta/tools/image/packages/@x/agent"
    script = tool(f"{package}/lib/node_modules/@x/agent/bin/agent", "#!/bin/sh\n")
    (tmp_path / package / "bin").mkdir()
    (tmp_path / package / "bin/agent").symlink_to("../lib/node_modules/@x/agent/bin/agent")
    shim = tool(".volta/bin/volta-shim", "#!/bin/sh\nexit 127\n")
    (shim.parent / "agent").symlink_to("volta-shim")
    tool(".volta/bin/volta", MANAGER.format(real=tmp_path / package / "bin/agent"))
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
    assert program_path("agent") == str(script)
    assert program_roots(str(script)) == (script, tmp_path / package / "lib/node_modules")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("Error: Missing optional dependency x\n    at main (x.js:1)\n\nNode.js v20.20.2\n", "Error: Missing optional"),
        ("warming up\nNo auth type is selected.\n", "No auth type is selected."),
        ("ValueError: No default model set.\n", "ValueError: No default model set."),
        ("\x1b[31mred\x1b[0m\n\n", "[31mred[0m"),
        ("", ""),
    ],
)
def test_the_last_words_of_a_program_say_why_it_ended(said: str, words: str) -> None:
    assert last_words(said).startswith(words)
    assert last_words(said).isprintable()


def test_a_shim_with_nothing_behind_it_is_told(
    tool: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    shim = tool("env/shims/agent", "#!/bin/sh\nexit 127\n")
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
    [told] = agent_of("agent").lacks()
    assert told == f"`agent` is only a shim, {shim}, with no program behind it: choose a version that has one"


# --- what no file may hold ----------------------------------------------------------------------------------------


def test_all_that_an_agent_is_given_of_the_users_is_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".mine").mkdir()
    (tmp_path / ".mine/login.json").write_text(json.dumps({"oauth": {"accessToken": TOKEN}, "theme": "daltonized"}))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PLAIN_NAME", "no name for a secret")
    monkeypatch.setenv("SOME_URL", "https://example.org/v1")
    about: dict[str, Any] = {
        "home": {"login": [".mine"]},
        "env": {"A": "<${PLAIN_NAME}>", "B": "${SOME_URL:-x}"},
        "providers": {"nobody": {"env": {"C": "${UNSET:-${PLAIN_NAME}}"}}},
    }
    assert agent_of(**about).secrets() == {"PLAIN_NAME": "no name for a secret"}
    found = agent_of(use_login=True, **about).secrets()
    assert found == {"PLAIN_NAME": "no name for a secret", ".mine/login.json.1": TOKEN}
    assert TOKEN not in Redactor(found).text(f"I was given {TOKEN}")


@pytest.mark.parametrize(
    ("content", "secrets"),
    [
        ('{"a": [{"refresh_token": "short-one"}], "model": "claude-3-5-sonnet-20241022"}', {"short-one"}),
        (f'{{"id": "{TOKEN}", "project": "/srv/mine/project_number_17_of_mine", "date": "2026-01-01"}}', {TOKEN}),
        (f"[default]\napi_key = '{TOKEN}'\nregion = eu-central-1\n", {TOKEN}),
        (f"//registry.example/:_authToken={TOKEN}\n", {TOKEN}),
        ("only-this\n", {"only-this"}),
        ("\x00\xff{", set()),
    ],
)
def test_secrets_are_found_in_a_login_however_it_is_written(content: str, secrets: set[str]) -> None:
    found = set(login_secrets({"login": content.encode("latin-1")}).values())
    assert {text for text in found if TOKEN in text or text in secrets} >= secrets
    assert not any("sonnet" in text or "project" in text or "central" in text for text in found)


def test_a_huge_login_gives_its_named_secrets_first() -> None:
    heap = {f"id{number}": f"{number:06}{TOKEN}" for number in range(1000)}
    found = login_secrets({"login": json.dumps({**heap, "token": "the real one"}).encode()})
    assert len(found) == 64
    assert "the real one" in found.values()
