"""A run folder of someone else runs nothing before its reader has agreed."""

import os
import pty
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bakeoff.engine.trust import what_runs
from bakeoff.plan import Case, Grading, Plan, ScorerSpec, SubjectSpec
from bakeoff.storage import own_runs
from bakeoff.storage.own_runs import state_folder

from ..report.runs import record_of, write_run
from ..warm_bakeoff import PROGRAM, Bakeoff

MODULE = "from pathlib import Path\nPath('was-run').touch()\ndef answer(prompt):\n    return prompt\n"


def a_plan(**changes: object) -> Plan:
    usual = {
        "name": "shared",
        "cases": (Case(id="one", prompt="hi", expected="hi"),),
        "subjects": (SubjectSpec(kind="function", name="mine", options={"target": "theirs:answer"}),),
        "scorers": (ScorerSpec(kind="exact"),),
    }
    return Plan.model_validate(usual | changes)


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run that someone else made, beside the module that its plan names."""
    plan = a_plan()
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("XDG_STATE_HOME", str(tmp_path / "state of another user"))
        run = write_run(tmp_path / "results" / "runs" / "shared", plan, [record_of(next(plan.trials()), output="hi")])
    (tmp_path / "theirs.py").write_text(MODULE)
    return run.path


COMMANDS = [
    ("resume", "shared"),
    ("resume", "shared", "--dry-run"),
    ("rescore", "shared"),
    ("rescore", "shared", "--scorer", "exact"),
    ("selfcheck", "shared"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_run_of_someone_else_needs_trust(
    bakeoff: Bakeoff, tmp_path: Path, theirs: Path, words: tuple[str, ...]
) -> None:
    done = bakeoff(*words)
    assert done.returncode == 2, done.stderr
    assert f"error: run {theirs.name} was not started by you in this place" in done.stderr
    assert "  function: theirs:answer\n" in done.stderr
    assert "add --trust" in done.stderr
    assert not (tmp_path / "was-run").exists()


def test_the_sandbox_is_not_for_someone_else_to_choose(bakeoff: Bakeoff, tmp_path: Path, theirs: Path) -> None:
    journal = theirs / "journal.jsonl"
    start = b'{"type":"start","v":1,"sandbox_wanted":"docker"}\n'
    journal.write_bytes(start)
    environment = {"BAKEOFF_DOCKER": str(tmp_path / "nowhere")}
    refused = bakeoff("resume", theirs.name, "--trust", "--sandbox", "docker", **environment)
    assert refused.returncode == 2, "there is no such sandbox here"
    done = bakeoff("resume", theirs.name, "--trust", **environment)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", [COMMANDS[0], COMMANDS[2], COMMANDS[4]], ids=" ".join)
def test_with_trust_it_is_run(bakeoff: Bakeoff, tmp_path: Path, theirs: Path, words: tuple[str, ...]) -> None:
    assert theirs.exists()
    done = bakeoff(*words, "--trust")
    assert done.returncode in (0, 3), done.stderr
    assert (tmp_path / "was-run").exists()


def test_a_run_that_was_trusted_once_is_known(bakeoff: Bakeoff, theirs: Path) -> None:
    """It is this user's from then on."""
    assert bakeoff("resume", theirs.name, "--trust").returncode == 0
    assert bakeoff("resume", theirs.name).returncode == 0


@pytest.mark.parametrize(
    "words", [("report",), ("runs", "show"), ("runs", "check"), ("export",), ("build",), ("leaderboard",)], ids=" ".join
)
def test_looking_at_a_run_runs_nothing(bakeoff: Bakeoff, tmp_path: Path, theirs: Path, words: tuple[str, ...]) -> None:
    named = () if words in (("build",), ("leaderboard",)) else (theirs.name,)
    opened = ("--no-open",) if words in (("report",), ("build",)) else ()
    assert bakeoff(*words, *named, *opened).returncode in (0, 3)
    assert not (tmp_path / "was-run").exists()


def own_run(bakeoff: Bakeoff, tmp_path: Path) -> Path:
    """A run that was started here, by this user."""
    script = tmp_path / "start.py"
    script.write_text(
        "import asyncio, sys\nfrom pathlib import Path\nfrom bakeoff import Plan, RunOptions, run\n"
        f"plan = Plan.model_validate_json({a_plan().model_dump_json()!r})\n"
        "async def main():\n    return [record async for record in run(plan, RunOptions(results=Path('results')))]\n"
        "asyncio.run(main())\n"
    )
    (tmp_path / "theirs.py").write_text(MODULE)
    subprocess.run([sys.executable, str(script)], cwd=tmp_path, check=True)
    [folder] = (tmp_path / "results" / "runs").iterdir()
    assert bakeoff("resume", folder.name).returncode == 0, "this one asks nothing"
    return folder


def asks(bakeoff: Bakeoff, name: str) -> str:
    done = bakeoff("resume", name)
    assert done.returncode == 2, done.stdout
    return done.stderr


def test_an_own_run_whose_plan_was_changed_is_asked_about_again(bakeoff: Bakeoff, tmp_path: Path) -> None:
    plan = own_run(bakeoff, tmp_path) / "plan.json"
    plan.write_text(plan.read_text().replace("theirs:answer", "os:system"))
    (plan.parent / "seal.json").unlink()  # it would refuse the plan before anybody is asked
    told = asks(bakeoff, plan.parent.name)
    assert "has another plan than the one that you started" in told
    assert "function: os:system" in told


def test_a_copy_of_an_own_run_is_not_that_run(bakeoff: Bakeoff, tmp_path: Path) -> None:
    own = own_run(bakeoff, tmp_path)
    shutil.copytree(own, own.with_name("copy"))
    assert "was not started by you" in asks(bakeoff, "copy")


def test_a_run_in_the_place_of_an_own_one_is_asked_about(bakeoff: Bakeoff, tmp_path: Path, theirs: Path) -> None:
    kept = theirs.rename(tmp_path / "kept")
    own = own_run(bakeoff, tmp_path)
    shutil.rmtree(own)
    changed = (kept / "plan.json").read_text().replace("theirs:answer", "theirs:other")
    (kept / "plan.json").write_text(changed)
    (kept / "seal.json").unlink()
    kept.rename(own)
    assert "has another plan" in asks(bakeoff, own.name)


def test_a_link_to_a_foreign_run_is_foreign(bakeoff: Bakeoff, tmp_path: Path, theirs: Path) -> None:
    hidden = theirs.rename(tmp_path / "elsewhere")
    theirs.symlink_to(hidden)
    assert "was not started by you" in asks(bakeoff, "latest")


def test_names_may_mean_something_else_in_another_folder(bakeoff: Bakeoff, tmp_path: Path) -> None:
    own = own_run(bakeoff, tmp_path)
    (elsewhere := tmp_path / "elsewhere").mkdir()
    done = subprocess.run([PROGRAM, "resume", own], cwd=elsewhere, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"was started in {tmp_path}" in done.stderr


def test_a_marker_that_others_may_write_is_none(bakeoff: Bakeoff, tmp_path: Path) -> None:
    own = own_run(bakeoff, tmp_path)
    for marker in (state_folder() / "runs-made-here").iterdir():
        # Tests beside this one write markers too, each under a hidden name at first.
        if not marker.name.startswith(".") and own.name in marker.read_text():
            assert marker.stat().st_mode & 0o777 == 0o600
            marker.chmod(0o666)
    assert "was not started by you" in asks(bakeoff, own.name)


def test_a_state_folder_that_cannot_be_written_is_told(bakeoff: Bakeoff, tmp_path: Path, theirs: Path) -> None:
    (tmp_path / "state").write_text("a file")
    done = bakeoff("resume", theirs.name, "--trust", XDG_STATE_HOME=str(tmp_path / "state"))
    assert done.returncode == 0, done.stderr
    assert "could not be noted in your state folder (XDG_STATE_HOME): to resume it, add --trust" in done.stderr


def test_old_markers_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    markers = state_folder() / "runs-made-here"
    markers.mkdir(parents=True)
    monkeypatch.setattr(own_runs, "MAX_KEPT", 10)
    for number in range(15):
        (markers / f"{number}.json").touch()
    write_run(tmp_path / "run", a_plan(), [])
    assert len(list(markers.iterdir())) == 10


def in_a_terminal(words: tuple[str, ...], folder: Path, answer: bytes) -> tuple[int, str]:
    """Run `bakeoff` in a terminal, and type the answer when it asks."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.environ.update(TERM="xterm", COLUMNS="120", LC_ALL="C.UTF-8")
        os.environ.pop("CI", None)
        os.execv(PROGRAM, [str(PROGRAM), *words])
    said, answered = b"", False
    while select.select([terminal], [], [], 60)[0]:
        try:
            said += os.read(terminal, 4096)
        except OSError:  # it has ended
            break
        if b"Run it?" in said and not answered:
            answered = True
            os.write(terminal, answer)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.decode(errors="replace")


@pytest.mark.parametrize(("answer", "runs"), [(b"y\r", True), (b"n\r", False), (b"\r", False), (b"\x03", False)])
def test_a_person_is_asked_in_a_terminal(tmp_path: Path, theirs: Path, answer: bytes, runs: bool) -> None:
    code, said = in_a_terminal(("resume", theirs.name, "--no-open"), tmp_path, answer)
    assert "function: theirs:answer" in said
    assert (tmp_path / "was-run").exists() is runs
    assert (code == 0) is runs


def named(**changes: object) -> list[str]:
    return what_runs(a_plan(**changes))


SERVED = "TOKEN=${MY_KEY} ./serve --port 1"
LOGIN = {"command": ["sh", "-c", "x y"], "home": {"login": [".ssh/id"]}, "install": {"command": "no"}}
MCP_SERVER = {"name": "s", "command": "./serve", "args": ["--port", "1"], "env": {"TOKEN": "${MY_KEY}"}}


@pytest.mark.parametrize(
    ("kind", "options", "lines"),
    [
        ("scripted", {"answers": {"one": "os:system"}}, []),
        ("scripted", {"file": "/srv/private.json"}, ["your file: /srv/private.json"]),
        ("scripted", {"target": "theirs:reply"}, ["function: theirs:reply"]),
        ("nop", {}, []),
        ("model", {"model": "openai:gpt-5"}, ["model: openai:gpt-5"]),
        (
            "model",
            {"model": "x:y", "providers": {"x": {"base_url": "http://evil", "key_variable": "OPENAI_API_KEY"}}},
            ["model: x:y", "address: http://evil", "your variable: OPENAI_API_KEY"],
        ),
        (
            "agent",
            {"model": "a:b", "mcp": [MCP_SERVER, "stdio:rm -rf ."]},
            [
                "model: a:b",
                "command: TOKEN=${MY_KEY} ./serve --port 1",
                "your variable: MY_KEY",
                "server: stdio:rm -rf .",
            ],
        ),
        (
            "cli-agent",
            {
                "definition": {
                    "command": ["sh", "-c", "x y"],
                    "home": {"login": [".ssh/id"]},
                    "install": {"command": "no"},
                }
            },
            ["command: sh -c 'x y'", "your file: ~/.ssh/id"],
        ),
        (
            "command",
            {"argv": ["sh", "-c", "x"], "sandbox": "none"},
            ["command, as you, without a sandbox: sh -c x"],
        ),
        ("of a plugin", {}, ["subject 'mine' of the kind 'of a plugin'"]),
    ],
)
def test_what_a_subject_uses_is_listed(kind: str, options: dict[str, object], lines: list[str]) -> None:
    assert named(subjects=(SubjectSpec(kind=kind, name="mine", options=options),)) == lines


@pytest.mark.parametrize(
    ("scorer", "lines"),
    [
        (ScorerSpec(kind="command", options={"argv": ["sh", "-c", "true"]}), ["command: sh -c true"]),
        (ScorerSpec(kind="function", options={"target": "a.b:c"}), ["function: a.b:c"]),
        (ScorerSpec(kind="structured", options={"fields": {"x": {"compare": "a:b"}}}), ["function: a:b"]),
        (ScorerSpec(kind="judge", options={"model": "m"}), ["model: m"]),
    ],
)
def test_what_a_scorer_uses_is_listed(scorer: ScorerSpec, lines: list[str]) -> None:
    assert named(scorers=(scorer,), subjects=(SubjectSpec(kind="nop", name="nop"),)) == lines


def test_tests_of_cases_and_settings_are_listed_once() -> None:
    grading = Grading(runner="command", solution=("a",), tests=("t",), seconds=1, command=("make test",))
    cases = tuple(Case(id=str(number), prompt="", grading=grading) for number in range(3))
    settings = {"servers": [MCP_SERVER, MCP_SERVER]}
    subjects = (SubjectSpec(kind="nop", name="nop"),)
    assert named(cases=cases, settings=settings, subjects=subjects) == [
        f"command: {SERVED}",
        "your variable: MY_KEY",
        "the tests of 3 cases, in the sandbox",
        "command: 'make test'",
    ]


def test_control_characters_of_a_command_are_shown(
    bakeoff: Bakeoff, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    evil = ScorerSpec(kind="command", options={"argv": ["evil", "\x1b[2K\r\u202e"]})
    write_run(tmp_path / "results" / "runs" / "shared", a_plan(scorers=(evil,)), [])
    monkeypatch.undo()
    told = asks(bakeoff, "shared")
    assert "\\x1b[2K\\r\\u202e" in told
    assert "\x1b" not in told


def test_a_plan_that_runs_nothing_needs_no_trust(
    bakeoff: Bakeoff, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    subject = SubjectSpec(kind="scripted", name="mine", options={"default": "hi"})
    write_run(tmp_path / "results" / "runs" / "shared", a_plan(subjects=(subject,)), [])
    monkeypatch.undo()
    assert bakeoff("resume", "shared").returncode == 0
