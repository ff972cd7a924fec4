"""`bakeoff mcp evaluate` as people type it: where it looks, what it prints, and what it leaves with."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import junitparser
import pytest

from bakeoff.doors import door_of
from bakeoff.doors.mcp.config import read_suite, suite_environment
from bakeoff.doors.mcp.plan import EvaluationRequest, build_plan
from bakeoff.doors.mcp.suites import find_configs, find_suites
from bakeoff.errors import UsageError
from bakeoff.options import RunOptions
from bakeoff.storage.run_folder import RunFolder

from ...engine.test_shards import summary_of
from ...warm_bakeoff import PROGRAM, Bakeoff
from .conftest import BMI, SERVERS, call, desk

pytestmark = pytest.mark.journey

MCTEST = PROGRAM.with_name("mctest")


def test_the_nearest_configuration_above_is_evaluated_and_a_pass_is_0(write_suite: Callable[..., Path]) -> None:
    write_suite()
    below = Path("some/where")
    below.mkdir(parents=True)
    done = subprocess.run([MCTEST, "evaluate", "--no-open"], cwd=below, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "100.0 % (1/1)" in done.stdout
    assert "Passed: 1 of 1 case–model pair passed." in done.stdout
    assert sorted(path.suffix for path in (below / "mcp-report").iterdir()) == [".html", ".json", ".log", ".md"]


def test_a_failure_is_1_and_a_run_that_is_taken_up_again_is_judged_by_its_suite(
    bakeoff: Bakeoff, write_suite: Callable[..., Path], script: Callable[..., str]
) -> None:
    write_suite(modelsToTest=[script(("", "null"))], testRound=2)
    done = bakeoff("mcp", "evaluate", "--junit", "junit.xml", "--markdown", "-o", "pull-request.md")
    assert done.returncode == 1, done.stderr
    assert "0.0 % (0/2)" in done.stdout
    assert "no tool was called, expected 'health / calculate-bmi'" in Path("pull-request.md").read_text()
    assert Path("junit.xml").read_text().count("<failure ") == 2, "of the case with its model, and of the gate"
    again = bakeoff("resume", "latest")
    assert again.returncode == 1
    assert len(list(Path("mcp-report").glob("*.json"))) == 1, "its own files are replaced"
    assert bakeoff("mcp", "evaluate", "--exit-zero").returncode == 0


def test_a_run_is_not_resumed_with_another_version_of_its_server(
    bakeoff: Bakeoff, write_suite: Callable[..., Path]
) -> None:
    server = Path("desk.py")
    server.write_text((SERVERS / "desk.py").read_text())
    words = {"name": "health", "command": sys.executable, "args": ["desk.py", "health"]}
    write_suite(mcpServers=[words], executeTools=True)
    done = bakeoff("mcp", "evaluate", "--no-open")
    assert done.returncode == 0, done.stderr
    assert bakeoff("resume", "latest", "--no-open").returncode == 0
    server.write_text(server.read_text() + "\n# edited\n")
    changed = bakeoff("resume", "latest", "--no-open")
    assert changed.returncode == 2
    assert "server 'health': changed since the run began" in changed.stderr
    assert bakeoff("mcp", "evaluate", "--no-open").returncode == 0
    assert bakeoff("rescore", "latest").returncode == 0


def test_the_limit_of_a_suite_holds_for_who_goes_on_with_it(write_suite: Callable[..., Path]) -> None:
    suite = read_suite(write_suite(concurrencyLimit=3, retryConfig={"maxRetries": 5}), {})
    plan = build_plan(suite, EvaluationRequest())
    taken_up = [door_of(plan).options(plan, RunOptions(jobs=jobs)) for jobs in (8, 2)]
    assert [(options.jobs, options.retries) for options in taken_up] == [(3, 5), (2, 5)]


def test_a_wrong_configuration_is_2_with_its_place_and_nothing_is_called(
    bakeoff: Bakeoff, write_suite: Callable[..., Path]
) -> None:
    file = write_suite(testRounds=3, mcpServers=[desk("health", "lives")])
    done = bakeoff("mcp", "evaluate", str(file))
    assert done.returncode == 2
    assert f"{file}:1: " in done.stderr
    assert "did you mean 'testRound'" in done.stderr
    assert not Path("lives").exists()
    assert not Path("results").exists()


def test_a_server_that_is_not_there_is_3(bakeoff: Bakeoff, write_suite: Callable[..., Path]) -> None:
    write_suite(mcpServers=[{"name": "gone", "command": "no-such-program-anywhere"}])
    done = bakeoff("mcp", "evaluate")
    assert done.returncode == 3
    assert "'gone'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("mode", ["json", "agent"])
def test_a_server_is_started_once(bakeoff: Bakeoff, write_suite: Callable[..., Path], mode: str) -> None:
    asked = [{"name": BMI["toolName"], "arguments": BMI["parameters"]}]
    steps = [{"step": 0, "call": asked}, {"step": 1, "say": "done"}]
    Path("agent.json").write_text(json.dumps({"replies": steps if mode == "agent" else [{"say": call(**BMI)}]}))
    write_suite(
        mode=mode,
        modelsToTest=["scripted:agent.json"],
        mcpServers=[desk("health", "lives")],
        executeTools=True,
        testRound=4,
    )
    done = bakeoff("mcp", "evaluate", "--no-open")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(Path("lives").read_text().split()) == 1


def test_a_folder_is_every_suite_below_it_with_one_report_over_all(
    bakeoff: Bakeoff, write_suite: Callable[..., Path], script: Callable[..., str]
) -> None:
    write_suite("suites/one.yaml")
    write_suite("suites/deeper/two.yml", modelsToTest=[script(("", "null"))], passThreshold=None)
    write_suite("suites/node_modules/not.yaml")
    write_suite("suites/.hidden/not.yaml")
    Path("suites/other.yaml").write_text("name: not a suite\n")
    done = bakeoff("mcp", "evaluate", "suites", "--json", "--no-open")
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert [report["bakeoff"]["suite"] for report in told] == ["suites/deeper/two.yml", "suites/one.yaml"]
    assert "two.yml: passThreshold is not set: every round must pass" in done.stderr
    [combined] = Path("mcp-report").glob("combined-report-*.json")
    summary = json.loads(combined.read_bytes())["summary"]
    assert summary == {
        "allPass": False,
        "suites": 2,
        "totalTests": 2,
        "passedTests": 1,
        "failedTests": 1,
        "undecidedTests": 0,
        "notRun": [],
    }
    assert {path.suffix for path in Path("mcp-report").glob("combined-report-*")} == {".json", ".md", ".html"}
    assert {path.name.split("-2")[0] for path in Path("mcp-report").glob("*.log")} == {"one", "two"}


def test_tables_of_several_suites_have_their_names_and_a_summary_at_the_end(
    bakeoff: Bakeoff, write_suite: Callable[..., Path], script: Callable[..., str]
) -> None:
    write_suite("suites/one.yaml")
    write_suite("suites/two.yaml", modelsToTest=[script(("", "null"))])
    write_suite("suites/wrong.yaml", testRound=0)
    done = bakeoff("mcp", "evaluate", "suites", "--no-open", "--exit-zero")
    assert done.returncode == 2, done.stderr
    first, _, rest = done.stdout.partition("\nsuites/two.yaml\n")
    assert "\nsuites/one.yaml\n" in first
    assert rest.endswith(
        "1 of 3 suites passed:\n  suites/one.yaml: passed\n  suites/two.yaml: failed\n  suites/wrong.yaml: not run\n"
    )


def test_a_suite_whose_server_does_not_start_keeps_the_report_over_all_from_saying_passed(
    bakeoff: Bakeoff, write_suite: Callable[..., Path]
) -> None:
    write_suite("suites/bad.yaml", mcpServers=[{"name": "gone", "command": "no-such-program-anywhere"}])
    write_suite("suites/good.yaml")
    done = bakeoff("mcp", "evaluate", "suites", "--json", "--no-open")
    assert done.returncode == 3, done.stderr
    assert [report["bakeoff"]["suite"] for report in json.loads(done.stdout)] == ["suites/good.yaml"], "a list"
    [combined] = Path("mcp-report").glob("combined-report-*.json")
    summary = json.loads(combined.read_bytes())["summary"]
    assert (summary["allPass"], summary["suites"], summary["notRun"]) == (False, 2, ["suites/bad.yaml"])
    assert (summary["totalTests"], summary["passedTests"]) == (1, 1)
    assert "| `suites/bad.yaml` | not run | – |" in combined.with_suffix(".md").read_text()
    page = combined.with_suffix(".html").read_text()
    assert "1 of 1 cells passed in 2 suites; 1 not run" in page
    assert ">suites/bad.yaml<" in page
    assert page.count('<span class="chip tone-lost">undecided</span>') == 1, "above all suites"
    assert page.count('<span class="chip tone-lost">not run</span>') == 1


def test_suites_that_are_wrong_do_not_keep_the_others_of_a_folder_from_running(
    bakeoff: Bakeoff, write_suite: Callable[..., Path]
) -> None:
    impossible = {**BMI, "parameters": {"weightKg": "ninety", "heightM": 1.8}}
    write_suite("suites/a.yaml", testRounds=3)
    write_suite("suites/b.yaml", testCases=[{"prompt": "BMI?", "expectedOutput": impossible}])
    write_suite("suites/c.yaml")
    done = bakeoff("mcp", "evaluate", "suites", "--json", "--no-open")
    assert done.returncode == 2, done.stderr
    assert [report["bakeoff"]["suite"] for report in json.loads(done.stdout)] == ["suites/c.yaml"]
    assert "error: suites/a.yaml:1: " in done.stderr
    assert "error: suites/b.yaml:1: testCases[0].expectedOutput.parameters.weightKg" in done.stderr
    [combined] = Path("mcp-report").glob("combined-report-*.json")
    summary = json.loads(combined.read_bytes())["summary"]
    assert (summary["allPass"], summary["notRun"]) == (False, ["suites/a.yaml", "suites/b.yaml"])
    dry = bakeoff("mcp", "evaluate", "suites", "--dry-run")
    assert (dry.returncode, "suites/c.yaml: a cell passes" in dry.stdout) == (2, True)


@pytest.mark.parametrize("left", [None, "testcases"])
def test_a_suite_of_a_folder_that_lost_its_cases_is_named_and_not_left_out(
    bakeoff: Bakeoff, write_suite: Callable[..., Path], left: str | None
) -> None:
    write_suite("suites/a.yaml")
    lost = write_suite("suites/b.yaml")
    lost.write_text(lost.read_text().replace("testCases", left or "x-cases"))
    done = bakeoff("mcp", "evaluate", "suites", "--no-open")
    assert done.returncode == 2, done.stderr
    assert "error: suites/b.yaml" in done.stderr
    assert "testCases" in done.stderr
    assert bakeoff("mcp", "evaluate", "suites/a.yaml", "--no-open").returncode == 0


def test_a_cell_that_lost_rounds_leaves_undecided_is_not_shown_as_passed(
    bakeoff: Bakeoff, write_suite: Callable[..., Path]
) -> None:
    write_suite("suites/good.yaml")
    write_suite(
        "suites/tired.yaml",
        testRound=2,
        concurrencyLimit=1,
        modelsToTest=["tired:x"],
        providers={"tired": {"target": "provider_that_tires:Tired", "options": {"reply": call(**BMI)}}},
    )
    Path("suites/provider_that_tires.py").write_text(
        "from bakeoff.models.rate_limit import ProviderBusy\n"
        "class Tired:\n"
        "    def __init__(self, settings):\n"
        "        self.replies = [settings.options['reply']]\n"
        "    def create_message(self, system, message):\n"
        "        if not self.replies:\n"
        "            raise ProviderBusy('come back later')\n"
        "        return self.replies.pop()\n"
    )
    done = bakeoff("mcp", "evaluate", "suites", "--no-open")
    assert done.returncode == 3, done.stderr
    [page] = Path("mcp-report").glob("combined-report-*.html")
    assert '<span class="tone-lost">100.0 % (1/1, 1 lost)</span>' in page.read_text()
    assert "| `suites/tired.yaml` | undecided | 0/1 |" in page.with_suffix(".md").read_text()


def cases_named(*names: str) -> list[dict[str, object]]:
    return [{"name": name, "prompt": f"what is {name}?", "expectedOutput": BMI} for name in names]


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (("--case", "sum"), ["one"]),
        (("--case", "sum", "--case", "index"), ["one", "two"]),
        (("--case", "1"), ["one", "two"]),
        (("--prompt", "IS INDEX"), ["two"]),
        (("--model", "scripted:null", "--case", "both"), ["two"]),
    ],
)
def test_of_a_folder_the_suites_are_left_that_have_what_is_asked_for(
    bakeoff: Bakeoff, write_suite: Callable[..., Path], words: tuple[str, ...], left: list[str]
) -> None:
    write_suite("suites/one.yaml", testCases=cases_named("sum", "both"))
    write_suite("suites/two.yaml", testCases=cases_named("index", "both"), modelsToTest=["scripted:null"])
    done = bakeoff("mcp", "evaluate", "suites", "--dry-run", *words)
    assert done.returncode == 0, done.stderr
    assert [name for name in ("one", "two") if f"suites/{name}.yaml: a cell passes" in done.stdout] == left
    assert done.stdout.count("1 trial = 1 case × 1 subject × 1 round") == len(left)


def test_a_dry_run_of_several_suites_is_one_json_document(bakeoff: Bakeoff, write_suite: Callable[..., Path]) -> None:
    write_suite("suites/one.yaml", testCases=cases_named("sum"))
    write_suite("suites/two.yaml", testCases=cases_named("index"))
    plans = json.loads(bakeoff("mcp", "evaluate", "suites", "--dry-run", "--json").stdout)
    assert [(plan["file"], plan["trials"], plan["ran"]) for plan in plans] == [
        ("suites/one.yaml", 1, False),
        ("suites/two.yaml", 1, False),
    ]
    plan = json.loads(bakeoff("mcp", "evaluate", "suites/one.yaml", "--dry-run", "--json").stdout)
    assert plan["file"] == "suites/one.yaml"


def test_shards_skip_the_files_of_which_they_have_no_case_and_merge_as_one_run(
    bakeoff: Bakeoff, write_suite: Callable[..., Path]
) -> None:
    for name, cases in (("small", 1), ("large", 3)):
        prompts = [{"prompt": f"BMI {number}?", "expectedOutput": BMI} for number in range(cases)]
        write_suite(f"suites/{name}.yaml", testCases=prompts)
    for shard in ("1/3", "2/3", "3/3"):
        done = bakeoff("mcp", "evaluate", "suites", "--no-open", "--shard", shard, "--results", "parts")
        assert done.returncode == 0, done.stderr
        skipped = f"suites/small.yaml is skipped: shard {shard} has none of its 1 case" in done.stderr
        assert skipped == (shard != "1/3")
        assert f"for shard {shard[0]} of 3 alone (`bakeoff merge` decides the whole)" in " ".join(done.stdout.split())
    bakeoff("mcp", "evaluate", "suites", "--no-open", "--results", "whole")
    runs = {name: [str(run) for run in Path("parts/runs").glob(f"*{name}*")] for name in ("small", "large")}
    assert [len(found) for found in runs.values()] == [1, 3]
    for name, parts in runs.items():
        merged = bakeoff("merge", *parts, "--shards", "3", "-o", f"merged-{name}")
        assert merged.returncode == 0, merged.stderr
        assert f"merged {len(parts)} shard" in merged.stderr
        assert ("; 1 case left 2 shards empty" in merged.stderr) == (name == "small")
        [one], [other] = Path("whole/runs").glob(f"*{name}*"), Path(f"merged-{name}/runs").glob("*")
        assert summary_of(RunFolder(one)) == summary_of(RunFolder(other))
    done = bakeoff("mcp", "evaluate", "suites", "--no-open", "--shard", "1/4")
    assert done.returncode == 2
    assert "part it into at most" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("--case", "som"),
            "--case 'som' is not the name, number or tag of a case of any suite in suites: did you mean 'sum'?",
        ),
        (("--case", "sum", "--case", "nothing"), "--case 'nothing' is not the name"),
        (("--model", "scripted:nul"), "of any suite in suites: did you mean 'scripted:null'"),
        (("--prompt", "nowhere"), "--prompt, --case and --model leave nothing in suites: select more"),
        (("--model", "scripted:null", "--case", "sum"), "leave nothing in suites"),
    ],
)
def test_what_no_suite_of_a_folder_has_is_told_once(
    bakeoff: Bakeoff, write_suite: Callable[..., Path], words: tuple[str, ...], told: str
) -> None:
    write_suite("suites/one.yaml", testCases=cases_named("sum"))
    write_suite("suites/two.yaml", testCases=cases_named("index"), modelsToTest=["scripted:null"])
    done = bakeoff("mcp", "evaluate", "suites", "--dry-run", *words)
    assert done.returncode == 2
    assert told in " ".join(done.stderr.split())
    assert done.stderr.count("suites") == 1


def test_a_file_that_cannot_be_read_is_told_of_though_another_suite_has_what_is_asked_for(
    bakeoff: Bakeoff, write_suite: Callable[..., Path]
) -> None:
    write_suite("suites/one.yaml", testCases=cases_named("sum"))
    write_suite("suites/two.yaml", testRounds=1)
    done = bakeoff("mcp", "evaluate", "suites", "--case", "other")
    assert done.returncode == 2
    assert "did you mean 'testRound'" in done.stderr
    assert "--case" not in done.stderr, "the file may have it"


def test_one_junit_file_and_one_markdown_file_tell_of_all_suites_by_their_cells(
    bakeoff: Bakeoff, write_suite: Callable[..., Path], script: Callable[..., str]
) -> None:
    cases = [{"name": name, "prompt": name, "expectedOutput": BMI} for name in ("always", "never")]
    model = script(("always", call(**BMI)), ("", "null"))
    write_suite("suites/one.yaml", testCases=cases, modelsToTest=[model])
    write_suite("suites/two.yaml", testCases=cases, modelsToTest=[model], passThreshold=0)
    done = bakeoff("mcp", "evaluate", "suites", "--junit", "all.xml", "--markdown", "-o", "all.md", "--github")
    assert done.returncode == 1, done.stderr
    suites = {suite.name: suite for suite in junitparser.JUnitXml.fromfile("all.xml")}
    assert {name: (suite.tests, suite.failures) for name, suite in suites.items()} == {
        f"mcp one: {model}": (2, 1),
        "mcp one: gate": (1, 1),
        f"mcp two: {model}": (2, 0),
        "mcp two: gate": (1, 0),
    }
    markdown = Path("all.md").read_text()
    assert "mcp-one" in markdown
    assert "mcp-two" in markdown
    assert done.stderr.count("::error") == 1, "what passes by its threshold is no error"


def test_a_dry_run_shows_what_would_be_asked_and_starts_nothing(
    bakeoff: Bakeoff, write_suite: Callable[..., Path]
) -> None:
    write_suite(mcpServers=[{"name": "gone", "command": "no-such-program-anywhere"}], testRound=3, passThreshold=0.5)
    done = bakeoff("mcp", "evaluate", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "a cell passes at 50.0 % of its rounds" in done.stdout
    assert "3 trials = 1 case × 1 subject × 3 rounds" in done.stdout
    assert "nothing was run" in done.stdout
    assert not Path("results").exists()
    assert not Path("mcp-report").exists()


def test_cases_that_a_report_could_not_tell_apart_are_told_with_their_place(
    bakeoff: Bakeoff, write_suite: Callable[..., Path]
) -> None:
    names = ({"name": "2. hello", "prompt": "x"}, {"prompt": "hello"}, {"name": "a\tb", "prompt": "x"}, {"name": "a b"})
    write_suite(testCases=[{"prompt": "y", "expectedOutput": BMI, **given} for given in names])
    done = bakeoff("mcp", "evaluate")
    assert done.returncode == 2
    assert "yaml:1: testCases[1].prompt: it is shown as '2. hello', like testCases[0]" in done.stderr
    assert "yaml:1: testCases[3].name: it is shown as 'a b', like testCases[2]" in done.stderr


def test_a_place_for_reports_that_is_none_is_told_before_anything_runs(
    bakeoff: Bakeoff, write_suite: Callable[..., Path]
) -> None:
    write_suite()
    Path("taken").touch()
    done = bakeoff("mcp", "evaluate", "--report", "taken")
    assert (done.returncode, "--report taken is a file" in done.stderr) == (2, True)
    assert not Path("results").exists()


def test_an_expected_tool_that_nobody_offers_is_a_warning_with_near_names(
    bakeoff: Bakeoff, write_suite: Callable[..., Path]
) -> None:
    wanted = {**BMI, "toolName": "calculate-bmj"}
    write_suite(testCases=[{"prompt": "BMI?", "expectedOutput": wanted}])
    done = bakeoff("mcp", "evaluate")
    assert done.returncode == 1
    assert "warning: " in done.stderr
    assert "did you mean 'calculate-bmi'?" in done.stderr


def test_where_configurations_are_looked_for(nobody: None) -> None:
    with pytest.raises(UsageError, match="bakeoff mcp init"):
        find_configs(None)
    with pytest.raises(UsageError, match="does not exist"):
        find_configs(Path("nothing.yaml"))
    Path("empty").mkdir()
    with pytest.raises(UsageError, match="no YAML file"):
        find_configs(Path("empty"))


def test_suites_are_found_by_a_part_of_their_names_and_without_a_path_all_below_are_meant(
    nobody: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("animals/penguin.yaml", "animals/tiger.yml", "places/all.yaml"):
        file = Path("suites", name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("testCases: []\n")
    found = {
        name: [file.stem for file in find_suites(Path(name) if name else None)] for name in (None, "animal", "tig", "a")
    }
    assert found == {
        None: ["penguin", "tiger", "all"],
        "animal": ["penguin", "tiger"],
        "tig": ["tiger"],
        "a": ["penguin", "tiger", "all"],
    }
    assert find_suites(Path("suites/places")) == (Path("suites/places/all.yaml"),)
    with pytest.raises(UsageError, match=r"^tigre is no file or folder here, nor a part .*: did you mean 'tiger'?"):
        find_suites(Path("tigre"))
    with pytest.raises(UsageError, match="does not exist"):
        find_suites(Path("tiger.yaml"))
    Path("suites/animals/mcp-testing-framework.yaml").touch()
    Path("suites/animals/below").mkdir()
    monkeypatch.chdir("suites/animals/below")
    assert [file.parent.name for file in find_suites(None)] == ["animals"], "the nearest above"


def test_usage_names_the_command_that_was_typed() -> None:
    told = subprocess.run([MCTEST, "evaluate", "--help"], capture_output=True, text=True, check=True).stdout
    assert told.startswith("Usage: mctest evaluate [OPTIONS] [PATH]")


def test_variables_beside_the_configuration_win_over_those_here(nobody: None, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("suite").mkdir()
    Path(".env").write_text("A=here\nB=here\nC=here\n")
    Path("suite/.env").write_text("B=beside\nC=beside\n")
    monkeypatch.setenv("C", "set")
    found = suite_environment(Path("suite"))
    assert [found[name] for name in "ABC"] == ["here", "beside", "set"]


def test_a_variable_fills_in_a_model_and_one_that_is_not_set_is_named(
    bakeoff: Bakeoff, write_suite: Callable[..., Path]
) -> None:
    write_suite(modelsToTest=["scripted:${REPLY_OF_THE_MODEL}"])
    done = bakeoff("mcp", "evaluate")
    assert done.returncode == 2
    assert "${REPLY_OF_THE_MODEL} is not set" in done.stderr
    Path(".env").write_text(f"REPLY_OF_THE_MODEL='{call(**BMI)}'\n")
    assert bakeoff("mcp", "evaluate").returncode == 0


def test_models_are_compared_until_it_is_decided_and_cells_that_were_not_needed_are_left_out(
    bakeoff: Bakeoff, write_suite: Callable[..., Path], script: Callable[..., str]
) -> None:
    cases = [{"prompt": f"BMI {number}?", "expectedOutput": BMI} for number in range(20)]
    write_suite(testCases=cases, modelsToTest=[f"scripted:{call(**BMI)}", script(("", "null"))], suiteRule="ratio")
    done = bakeoff("mcp", "evaluate", "--until-decided", "--no-open")
    assert done.returncode == 1, done.stderr
    told = " ".join(done.stdout.split())
    assert "is better" in told
    assert "were not needed" in told
    [file] = Path("mcp-report").glob("test-report-*.json")
    report = json.loads(file.read_bytes())
    [pair] = report["bakeoff"]["comparisons"]["pairs"]
    assert pair["decision"] == "regressed"
    summary = report["summary"]
    assert summary["undecidedTests"] == 0
    assert 16 <= summary["totalTests"] < 40
    again = bakeoff("resume", "latest")
    assert again.returncode == 1
    assert json.loads(file.read_bytes())["summary"] == summary
