"""`bakeoff agents` as someone types it."""

import json
import os
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest

from bakeoff.sandbox.process import has_landlock

from ...warm_bakeoff import PROGRAM, Bakeoff
from .small_tracks import DOUBLE, PAIR, RIGHT_DOUBLE, agent_file, bytes_of, overwrite, write_track

pytestmark = pytest.mark.journey

COMMIT = "0123456789" * 4


@pytest.fixture
def agents(bakeoff: Bakeoff) -> Bakeoff:
    """Calls `bakeoff agents …` in the test's folder and gives what came out."""
    return partial(bakeoff, "agents")


def test_a_run_ends_with_a_table_result_files_and_a_page(agents: Bakeoff, tmp_path: Path) -> None:
    track = write_track(tmp_path / "track", double=DOUBLE, pair=PAIR)
    (track / ".git").mkdir(exist_ok=True)
    (track / ".git" / "HEAD").write_text(f"{COMMIT}\n")
    before = bytes_of(track)
    script = f"[ -f double.py ] || exit 0\n{overwrite('double.py', RIGHT_DOUBLE)}"
    mine = agent_file(tmp_path, "mine", script)
    done = agents(
        *("run", "--exercises", "track", "--agent", "oracle", "--agent", "nop", "--agent", "mine"),
        *("--agent-file", str(mine), "--rounds", "2", "--no-open"),
    )
    assert done.returncode == 1, done.stderr
    assert "100.0 %" in done.stdout
    assert "50.0 %" in done.stdout
    latest = json.loads((tmp_path / "results" / "latest.json").read_text())
    assert latest["metadata"]["agent"] == "mine"
    origin = {key: latest["bakeoff"].get(key) for key in ("track", "language", "checkout", "commit")}
    assert origin == {"track": "python", "language": "Python", "checkout": "track", "commit": COMMIT}
    assert latest["summary"]["successRate"] == 50
    assert [len(entry["attempts"]) for entry in latest["results"]] == [2, 2]
    assert len(list((tmp_path / "results").glob("mine-default-nobody-*.json"))) == 1
    [page] = (tmp_path / "results").glob("runs/*/report.html")
    assert "Double a number" in page.read_text()
    assert f"python: track at {COMMIT[:10]}" in page.read_text()
    assert bytes_of(track) == before


def test_an_agent_whose_file_spells_out_a_key_is_refused_and_the_key_is_nowhere(
    agents: Bakeoff, tmp_path: Path
) -> None:
    write_track(tmp_path / "track", double=DOUBLE)
    key = "Zq8Wv3Lp0Xn5Rt7Yb2Kd"
    mine = agent_file(tmp_path, "mine", "env", env={"TOOL_TOKEN": key, "OPENAI_API_KEY": "not-needed-here"})
    done = agents("run", "--exercises", "track", "--agent", "mine", "--agent-file", str(mine), "--no-open")
    assert done.returncode == 2, done.stdout
    assert "contains the value of mine.env.TOOL_TOKEN" in done.stderr
    assert "OPENAI_API_KEY" not in done.stderr
    written = [path for path in tmp_path.rglob("*") if path.is_file() and key.encode() in path.read_bytes()]
    assert written == [mine]


def run_as_an_ordinary_user(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    ordinary = ["unshare", "-U", "--map-user=1000", "--map-group=1000", "--"] if os.geteuid() == 0 else []
    if ordinary and (not shutil.which("unshare") or subprocess.run([*ordinary, "true"], check=False).returncode):
        pytest.skip("needs an ordinary user, or unshare to become one")
    command = [*ordinary, str(PROGRAM), "agents", "run", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("agent", ["mine", "nop"])
def test_it_is_said_where_agents_could_read_the_examples_that_travel_with_us(agent: str, tmp_path: Path) -> None:
    mine = agent_file(tmp_path, "mine", "true")
    words = ("--agent", agent, "--agent-file", str(mine), "--exercise", "plant-rota", "--sandbox", "process", "--json")
    done = run_as_an_ordinary_user(tmp_path, *words)
    assert done.returncode == (0 if agent == "nop" else 1), done.stderr  # a control decides no exit code
    told = "the example solutions of the bundled exercises" in " ".join(done.stderr.split())
    assert told == (agent == "mine" and not has_landlock())


@pytest.mark.parametrize(
    "script",
    ["chmod 0 .", "chmod 0 . ..", "rm -rf -- ../work", "cd .. && mv work gone && ln -s gone work", "chmod 0 double.py"],
)
def test_an_agent_cannot_void_its_failure_by_what_it_does_to_its_folder(script: str, tmp_path: Path) -> None:
    """For an ordinary user, whose agents are that user; root may read whatever they do."""
    write_track(tmp_path / "track", double=DOUBLE)
    mine = agent_file(tmp_path, "mine", f"{script}; exit 0")
    words = ("--exercises", "track", "--agent", "mine", "--agent-file", str(mine), "--sandbox", "process", "--json")
    done = run_as_an_ordinary_user(tmp_path, *words)
    assert done.returncode == 1, done.stderr
    [subject] = json.loads(done.stdout)["summary"]["subjects"]
    assert subject["score"] == 0.0, subject


def test_an_agent_that_cannot_start_is_lost_with_the_reason_and_never_scored(
    bakeoff: Bakeoff, agents: Bakeoff, tmp_path: Path
) -> None:
    write_track(tmp_path / "track", one=DOUBLE, two=DOUBLE, three=DOUBLE, four=DOUBLE)
    about = {"name": "mine", "defaultProvider": "none", "install": {"method": "other"}}
    (tmp_path / "mine.yaml").write_text(json.dumps({**about, "command": ["python3", "no/fixer.py"]}))
    words = ("--exercises", "track", "--agent", "mine", "--agent-file", "mine.yaml", "--rounds", "2", "--no-open")
    done = agents("run", *words)
    assert done.returncode == 3, done.stderr
    assert "no further trial of it is started" in done.stderr
    [page] = (tmp_path / "results" / "runs").glob("*/report.html")
    reason = "never started: it changed nothing, and ended with exit code 2"
    assert reason in page.read_text()
    assert reason in bakeoff("runs", "show", page.parent.name).stdout
    [subject] = json.loads(bakeoff("runs", "show", page.parent.name, "--json").stdout)["summary"]["subjects"]
    assert (subject["score"], subject["lost_by"]) == (None, {"infra": 8})


def test_a_run_of_the_oracle_alone_is_a_success(agents: Bakeoff, tmp_path: Path) -> None:
    write_track(tmp_path / "track", double=DOUBLE)
    done = agents("run", "--exercises", "track", "--agent", "oracle", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["summary"]["subjects"][0]["score"] == 1.0


def test_instructions_are_printed_and_nothing_runs(agents: Bakeoff, tmp_path: Path) -> None:
    hostile = {**DOUBLE, ".docs/instructions.md": "Double \x1b[31mit\x1b[0m.\n"}
    track = write_track(tmp_path / "track", double=hostile)
    (track / "CLAUDE.md").write_text("House rules.\n")
    done = agents(
        *("run", "--exercises", "track", "--agent", "nop", "--print-instructions"),
        *("--custom-instruction", "Think of the tests."),
    )
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    for words in ("Double ", "House rules.", "Think of the tests.", "Test command: `pytest`", "Python 3."):
        assert words in done.stdout
    assert not (tmp_path / "results").exists()


def test_a_dry_run_shows_the_plan(agents: Bakeoff, tmp_path: Path) -> None:
    write_track(tmp_path / "track", double=DOUBLE, pair=PAIR)
    done = agents("run", "--exercises", "track", "--agent", "nop", "--agent", "cheat", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "cheat:edit-tests" in done.stdout
    assert "nothing was run" in done.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("run",), "no agent was named"),
        (("run", "--agent", "nobody"), "--agent 'nobody' is not known"),
        (("run", "--agent", "cluade", "--agent", "oracle:x"), "--agent 'cluade' and --agent 'oracle:x' are not known"),
        (("run", "--agent", "cheat:magic"), "no attack 'magic'"),
        (("run", "--agent", "nop", "--exercise", "doubel"), "did you mean 'double'"),
        (("run", "--agent", "nop", "--exercise", "0"), "asks for none"),
        (("run", "--agent", "nop", "--exercise", ","), "names no exercise"),
        (("run", "--agent", "nop", "--agent-file", "none.yaml"), "none.yaml cannot be read"),
        (("run", "--agent", "nop", "--agent-file", "/dev/zero"), "larger than 16 MB"),
        (("run", "--agent", "nop", "--agent-file", "/dev/null"), "is empty: an agent has name"),
        (("run", "--agent", "nop", "--timeout", "inf"), "--timeout"),
        (("run", "--agent", "nop", "--test-timeout", "nan"), "--test-timeout"),
        (("run", "--agent", "codex", "--model", "a\nb"), "--model 'a\\nb' is not a name"),
        (("run", "--agent", "codex", "--provider", ""), "--provider '' is not a name"),
        (("run", "--agent", "codex", "--model", "m" * 600), "at most 200"),
    ],
)
def test_what_is_wrong_is_told_before_anything_runs(
    agents: Bakeoff, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    write_track(tmp_path / "track", double=DOUBLE)
    done = agents(*words, "--exercises", "track")
    assert done.returncode == 2, done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "results").exists()


def test_verify_finds_examples_that_fail_and_stubs_that_pass(agents: Bakeoff, tmp_path: Path) -> None:
    lame = {**DOUBLE, "double.py": RIGHT_DOUBLE}
    wrong = {**DOUBLE, ".meta/example.py": "def double(number):\n    return 3\n"}
    without = {name: text for name, text in DOUBLE.items() if name != ".meta/example.py"}
    write_track(tmp_path / "track", double=DOUBLE, lame=lame, wrong=wrong, without=without)
    done = agents("verify", "--exercises", "track")
    assert done.returncode == 1, done.stderr
    assert "lame: the stub that agents start from passes already" in done.stdout
    assert "wrong: the example does not pass: failed: test_one" in done.stdout
    assert "without: it has no example" in done.stdout
    assert "1 of 4 exercises is fit for use" in done.stdout


def test_a_track_nobody_can_test_needs_a_command(agents: Bakeoff, tmp_path: Path) -> None:
    files = {"x.zig": "", "x_test.zig": "", ".docs/instructions.md": "do it"}
    write_track(tmp_path / "track", slug="zig", thing=files)
    done = agents("run", "--exercises", "track", "--agent", "nop")
    assert done.returncode == 2
    assert "--test-command" in done.stderr


def test_the_list_of_agents_is_there_for_people_and_programs(agents: Bakeoff, tmp_path: Path) -> None:
    mine = agent_file(tmp_path, "mine", "true", version={"command": ["sh", "-c", "echo 3.1"]})
    told = agents("list", "--agent-file", str(mine))
    assert told.returncode == 0, told.stderr
    assert "claude" in told.stdout
    assert "3.1" in told.stdout
    listed = json.loads(agents("list", "--json", "--agent-file", str(mine)).stdout)
    assert [agent["name"] for agent in listed][-1] == "mine"
    assert listed[-1]["ready"] is True


def test_changes_are_shown_while_an_agent_works(agents: Bakeoff, tmp_path: Path) -> None:
    write_track(tmp_path / "track", double=DOUBLE)
    mine = agent_file(tmp_path, "mine", f"{overwrite('double.py', RIGHT_DOUBLE)}printf '\\033[31mred' > red.py")
    done = agents(
        *("run", "--exercises", "track", "--agent", "mine", "--agent-file", str(mine)),
        *("--show-progress", "--no-open"),
    )
    assert done.returncode == 0, done.stderr
    assert "--- mine, double ---" in done.stderr
    assert "+    return number + number" in done.stderr
    assert "\x1b[31m" not in done.stderr


def test_agents_are_compared_until_it_is_decided_which_is_better(agents: Bakeoff, tmp_path: Path) -> None:
    write_track(tmp_path / "track", "python", **{f"double{number}": DOUBLE for number in range(12)})
    right = agent_file(tmp_path, "right", overwrite("double.py", RIGHT_DOUBLE))
    idle = agent_file(tmp_path, "idle", "true")
    done = agents(
        *("run", "--exercises", "track", "--exercise", "12", "--until-decided", "--no-open"),
        *("--agent", "right", "--agent-file", str(right), "--agent", "idle", "--agent-file", str(idle), "--json"),
    )
    assert done.returncode == 1, done.stderr
    summary = json.loads(done.stdout)["summary"]
    [pair] = summary["comparisons"]["pairs"]
    assert (pair["first"], pair["second"], pair["decision"]) == ("right", "idle", "regressed")
    assert sum(one["not_needed"] for one in summary["subjects"]) == summary["comparisons"]["trials_saved"] > 0
