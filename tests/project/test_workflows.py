"""The action and the example workflows: whole, without secrets, and with nothing of a user's in a script.

Their scripts are run here as the runner would run them.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ACTION = ROOT / "action.yml"
WORKFLOWS = sorted((ROOT / "examples" / "workflows").glob("*.yml"))
FILES = [ACTION, *WORKFLOWS]
SECRET = re.compile(r"(?i)(sk-[a-z0-9]|ghp_|gho_|github_pat_|AKIA|xox[bp]-|-----BEGIN)")


def loaded(path: Path) -> dict[str, Any]:
    """`on` is a truth value in YAML 1.1, and a word to GitHub."""
    content = yaml.safe_load(path.read_text("utf-8"))
    assert isinstance(content, dict)
    return {"on" if key is True else str(key): value for key, value in content.items()}


def steps_of(path: Path) -> list[dict[str, Any]]:
    content = loaded(path)
    if path == ACTION:
        return list(content["runs"]["steps"])
    return [step for job in content["jobs"].values() for step in job["steps"]]


def script(path: Path, name: str) -> str:
    [found] = [step["run"] for step in steps_of(path) if step["name"] == name]
    return str(found)


EVERY = [pytest.param(path, step, id=f"{path.stem}: {step['name']}") for path in FILES for step in steps_of(path)]


def test_there_are_a_composite_action_and_two_workflows() -> None:
    assert loaded(ACTION)["runs"]["using"] == "composite"
    assert [path.name for path in WORKFLOWS] == ["benchmark.yml", "leaderboard.yml"]


@pytest.mark.parametrize(("path", "step"), EVERY)
def test_a_step_runs_a_script_or_uses_an_action_of_a_fixed_version(path: Path, step: dict[str, Any]) -> None:
    assert ("run" in step) != ("uses" in step)
    if "uses" in step:
        assert re.fullmatch(r"actions/[a-z-]+@v\d+(\.\d+)*|\./bakeoff", step["uses"])
    elif path == ACTION:
        assert step["shell"] == "bash"  # which a composite action has to say


@pytest.mark.parametrize(("path", "step"), [each for each in EVERY if "run" in each.values[1]])  # type: ignore[operator]
def test_a_script_is_fit_for_bash_and_nothing_is_written_into_it(path: Path, step: dict[str, Any]) -> None:
    assert "${{" not in step["run"]  # a branch called `"; rm -rf .` would be a part of the script
    done = subprocess.run(["bash", "-n", "-c", step["run"]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    if "\n" in step["run"].strip():
        assert step["run"].startswith("set -euo pipefail\n")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_secrets_are_named_and_never_written_down(path: Path) -> None:
    text = path.read_text("utf-8")
    assert not SECRET.search(text)
    for line in text.splitlines():
        if "secrets." in line:
            assert re.fullmatch(r"\s+([A-Z_]+): \$\{\{ secrets\.\1 \}\}", line)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_starts_on_demand_and_may_do_no_more_than_it_says(path: Path) -> None:
    content = loaded(path)
    assert set(content["on"]) == {"workflow_dispatch"}
    assert content["permissions"] in ({}, {"contents": "read"})
    for job in content["jobs"].values():
        assert job["timeout-minutes"] <= 120
        assert {"runs-on", "name", "steps"} <= set(job)
        for need in [job["needs"]] if "needs" in job else []:
            assert need in content["jobs"]
    for step in steps_of(path):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_every_input_has_a_description_is_used_and_is_one_that_workflows_give() -> None:
    inputs = loaded(ACTION)["inputs"]
    used = set(re.findall(r"inputs\.([a-z-]+)", ACTION.read_text("utf-8")))
    assert used == set(inputs)
    assert all(each["description"] and ("default" in each or each.get("required")) for each in inputs.values())
    given = [step["with"] for path in WORKFLOWS for step in steps_of(path) if step.get("uses") == "./bakeoff"]
    assert given
    assert [set(each) - set(inputs) for each in given] == [set()] * len(given)


def test_variables_of_scripts_are_set_where_they_are_used() -> None:
    known = {"HOME", "GITHUB_STEP_SUMMARY", "PATH"}
    for path in FILES:
        for step in steps_of(path):
            used = set(re.findall(r"\$\{?([A-Z][A-Z_]+)\b", step.get("run", "")))
            assert used - known <= set(step.get("env", {})), step["name"]


def run_script(text: str, folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "GITHUB_STEP_SUMMARY": str(folder / "summary.md"), **variables}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text]
    return subprocess.run(
        command, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=False
    )


def inputs_of_run(**given: str) -> dict[str, str]:
    """What the runner makes of the inputs: each one's default, unless it is given."""
    inputs = loaded(ACTION)["inputs"]
    [env] = [step["env"] for step in steps_of(ACTION) if step["name"] == "Run agents"]
    named = {name: value.removeprefix("${{ inputs.").removesuffix(" }}") for name, value in env.items()}
    return {name: given.get(name, inputs[key].get("default", "")) for name, key in named.items()}


def test_the_action_runs_agents_and_tells_github(tmp_path: Path) -> None:
    given = inputs_of_run(AGENTS="oracle,nop", EXERCISE="plant-rota", SANDBOX="auto")
    done = run_script(script(ACTION, "Run agents"), tmp_path, **given)
    assert done.returncode == 0, done.stderr
    assert "100.0 %" in done.stdout
    assert json.loads((tmp_path / "results" / "latest.json").read_text())["metadata"]["agent"] in ("oracle", "nop")
    assert "oracle" in (tmp_path / "summary.md").read_text()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("AGENTS", "$(touch${IFS}pwned)"),
        ("AGENTS", "`touch pwned`;touch pwned"),
        ("MODELS", "--sandbox=process"),
        ("ROUNDS", "1; touch pwned"),
        ("EXERCISES", "nowhere; touch pwned"),
        ("AGENT_FILES", "one.yaml\n$(touch pwned)"),
    ],
)
def test_what_an_input_holds_is_never_carried_out(tmp_path: Path, variable: str, value: str) -> None:
    given = inputs_of_run(**{"AGENTS": "claude", "EXERCISE": "plant-rota", "SANDBOX": "auto", variable: value})
    done = run_script(script(ACTION, "Run agents"), tmp_path, **given)
    assert done.returncode == 2
    assert [path.name for path in tmp_path.iterdir()] == []


def test_what_is_installed_does_not_see_the_keys(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("npm", "python"):
        (programs / name).write_text('#!/bin/sh\n{ echo "$0 $*"; env; } >> "$HOME/seen"\n')
        (programs / name).chmod(0o755)
    done = run_script(
        script(ACTION, "Install agents"),
        tmp_path,
        PATH=f"{programs}{os.pathsep}{os.environ['PATH']}",
        HOME=str(tmp_path),
        NPM_PACKAGES="@a/b@1 *",
        PYTHON_PACKAGES="c",
        OPENAI_API_KEY="canary-9d3f",
    )
    assert done.returncode == 0, done.stderr
    seen = (tmp_path / "seen").read_text()
    assert "npm install --global --no-audit --no-fund -- @a/b@1 *\n" in seen
    assert "pipx install -- c\n" in seen
    assert "canary" not in seen


def write_result(path: Path, agent: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    results = [{"exercise": "e", "overallSuccess": True}]
    summary = {"successRate": 100, "successCount": 1, "totalCount": 1}
    path.write_text(json.dumps({"metadata": {"agent": agent}, "summary": summary, "results": results}))


def test_the_benchmark_ends_with_a_leaderboard_of_all_agents(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_result(tmp_path / "results" / f"{name}.json", name)
    done = run_script(script(ROOT / "examples/workflows/benchmark.yml", "Rank agents"), tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "leaderboard" / "leaderboard.json").read_text())
    assert sorted(told["results"]) == ["one-default", "two-default"]
    assert "`two`" in (tmp_path / "summary.md").read_text()
    assert "one-default" in (tmp_path / "leaderboard" / "index.html").read_text()


def test_the_leaderboard_keeps_what_was_there_and_is_pushed_once(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        command = [
            "git",
            "-c",
            "init.defaultBranch=main",
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@example.com",
            *words,
        ]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    git("init", "--bare", "--quiet", "server/project")
    git("clone", "--quiet", "server/project", "here")
    write_result(tmp_path / "here" / "leaderboard" / "results" / "old.json", "old")
    git("-C", "here", "add", ".")
    git("-C", "here", "commit", "--quiet", "--message", "first")
    write_result(tmp_path / "new" / "new.json", "new")
    write_result(tmp_path / "new" / "latest.json", "new")
    workflow = ROOT / "examples/workflows/leaderboard.yml"
    ranked = run_script(script(workflow, "Rank agents"), tmp_path)
    assert ranked.returncode == 0, ranked.stderr
    where = {"SERVER": str(tmp_path / "server"), "REPOSITORY": "project", "BRANCH": "refs/heads/main"}
    for _ in range(2):  # a second time there is nothing to be committed
        done = run_script(script(workflow, "Commit it"), tmp_path, TOKEN="canary-9d3f", **where)
        assert done.returncode == 0, done.stderr
        assert "canary" not in done.stdout + done.stderr
    assert git("-C", "server/project", "log", "--format=%s", "main").split("\n")[:2] == [
        "docs: update the leaderboard",
        "first",
    ]
    told = json.loads(git("-C", "server/project", "show", "main:leaderboard/leaderboard.json"))
    assert sorted(told["results"]) == ["new-default", "old-default"]
    assert "latest.json" not in git("-C", "server/project", "ls-tree", "-r", "--name-only", "main")
