"""`bakeoff mcp evaluate` as people type it: where it looks, what it prints, and what it leaves with."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bakeoff.doors.mcp_suite.find import find_configs, suite_environment
from bakeoff.errors import UsageError

from .conftest import BMI, call, desk

PROGRAM = "import sys; from bakeoff.cli.{module} import main; main()"


def command(*words: str, module: str = "main", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", PROGRAM.format(module=module), *words]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120, cwd=cwd)


def test_the_nearest_configuration_above_is_evaluated_and_a_pass_is_0(write_suite: Callable[..., Path]) -> None:
    write_suite()
    below = Path("some/where")
    below.mkdir(parents=True)
    done = command("evaluate", "--no-open", module="mcp", cwd=below)
    assert done.returncode == 0, done.stderr
    assert "100.0 % (1/1)" in done.stdout
    assert "1 of 1 cells passed at 100.0 % of 1 rounds: passed" in done.stdout
    assert sorted(path.suffix for path in (below / "mcp-report").iterdir()) == [".html", ".json", ".log", ".md"]


def test_a_failure_is_1_and_a_run_that_is_taken_up_again_is_judged_by_its_suite(
    write_suite: Callable[..., Path], script: Callable[..., str]
) -> None:
    write_suite(modelsToTest=[script(("", "null"))], testRound=2)
    done = command("mcp", "evaluate", "--junit", "junit.xml", "--markdown", "pull-request.md")
    assert done.returncode == 1, done.stderr
    assert "0.0 % (0/2)" in done.stdout
    assert "no tool was called, expected 'health / calculate-bmi'" in Path("pull-request.md").read_text()
    assert Path("junit.xml").read_text().count("<failure ") == 1, "a test case is a case with a model"
    again = command("resume", "latest")
    assert again.returncode == 1
    assert len(list(Path("mcp-report").glob("*.json"))) == 1, "its own files are replaced"
    assert command("mcp", "evaluate", "--exit-zero").returncode == 0


def test_a_wrong_configuration_is_2_with_its_place_and_nothing_is_called(write_suite: Callable[..., Path]) -> None:
    file = write_suite(testRounds=3, mcpServers=[desk("health", "lives")])
    done = command("mcp", "evaluate", str(file))
    assert done.returncode == 2
    assert f"{file}:1: " in done.stderr
    assert "did you mean 'testRound'" in done.stderr
    assert not Path("lives").exists()
    assert not Path("results").exists()


def test_a_server_that_is_not_there_is_3(write_suite: Callable[..., Path]) -> None:
    write_suite(mcpServers=[{"name": "gone", "command": "no-such-program-anywhere"}])
    done = command("mcp", "evaluate")
    assert done.returncode == 3
    assert "'gone'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_is_every_suite_below_it_with_one_report_over_all(
    write_suite: Callable[..., Path], script: Callable[..., str]
) -> None:
    write_suite("suites/one.yaml")
    write_suite("suites/deeper/two.yml", modelsToTest=[script(("", "null"))], passThreshold=None)
    write_suite("suites/node_modules/not.yaml")
    write_suite("suites/.hidden/not.yaml")
    Path("suites/other.yaml").write_text("name: not a suite\n")
    done = command("mcp", "evaluate", "suites", "--json", "--no-open")
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert [report["bakeoff"]["suite"] for report in told] == ["suites/deeper/two.yml", "suites/one.yaml"]
    assert "two.yml: passThreshold is not set: every round has to pass" in done.stderr
    [combined] = Path("mcp-report").glob("combined-report-*.json")
    summary = json.loads(combined.read_bytes())["summary"]
    assert summary == {
        "allPass": False,
        "suites": 2,
        "totalTests": 2,
        "passedTests": 1,
        "failedTests": 1,
        "undecidedTests": 0,
    }
    assert {path.suffix for path in Path("mcp-report").glob("combined-report-*")} == {".json", ".md", ".html"}
    assert {path.name.split("-2")[0] for path in Path("mcp-report").glob("*.log")} == {"one", "two"}


def test_an_expected_tool_that_nobody_offers_is_a_warning_with_near_names(write_suite: Callable[..., Path]) -> None:
    wanted = {**BMI, "toolName": "calculate-bmj"}
    write_suite(testCases=[{"prompt": "BMI?", "expectedOutput": wanted}])
    done = command("mcp", "evaluate")
    assert done.returncode == 1
    assert "warning: " in done.stderr
    assert "did you mean 'calculate-bmi'?" in done.stderr


def test_where_configurations_are_looked_for(nobody: None) -> None:
    with pytest.raises(UsageError, match="bakeoff mcp init"):
        find_configs(None)
    with pytest.raises(UsageError, match="is not there"):
        find_configs(Path("nothing.yaml"))
    Path("empty").mkdir()
    with pytest.raises(UsageError, match="no YAML file"):
        find_configs(Path("empty"))


def test_variables_beside_the_configuration_win_over_those_here(nobody: None, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("suite").mkdir()
    Path(".env").write_text("A=here\nB=here\nC=here\n")
    Path("suite/.env").write_text("B=beside\nC=beside\n")
    monkeypatch.setenv("C", "set")
    found = suite_environment(Path("suite"))
    assert [found[name] for name in "ABC"] == ["here", "beside", "set"]


def test_a_variable_fills_in_a_model_and_one_that_is_not_set_is_named(write_suite: Callable[..., Path]) -> None:
    write_suite(modelsToTest=["scripted:${REPLY_OF_THE_MODEL}"])
    done = command("mcp", "evaluate")
    assert done.returncode == 2
    assert "${REPLY_OF_THE_MODEL} is not set" in done.stderr
    Path(".env").write_text(f"REPLY_OF_THE_MODEL='{call(**BMI)}'\n")
    assert command("mcp", "evaluate").returncode == 0
