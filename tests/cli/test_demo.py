"""`bakeoff demo` and what can be done with the run it leaves."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ..warm_bakeoff import Bakeoff

pytestmark = pytest.mark.full


def test_the_demo_exits_0_and_prints_every_denominator(demo: "subprocess.CompletedProcess[str]") -> None:
    assert demo.returncode == 0, demo.stderr
    rows = {line.split()[0]: line for line in demo.stdout.splitlines() if line.strip()}
    assert "100.0 %" in rows["oracle"]
    assert "20/20" in rows["oracle"]
    assert "9/20" in rows["scripted"]
    assert "0/20" in rows["nop"]
    assert "/20" in rows["smollm2"], "a real model was asked"
    assert "10 cases × 4 subjects × 2 rounds" in demo.stdout
    assert "process sandbox" in demo.stderr


def test_a_dry_run_prints_the_plan_and_makes_no_folder(bakeoff: Bakeoff, tmp_path: Path) -> None:
    done = bakeoff("demo", "--quick", "--dry-run")
    assert done.returncode == 0
    assert "80 trials = 10 cases × 4 subjects × 2 rounds" in done.stdout
    assert "capital-of-france" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_of_the_whole_demo_prints_commands_that_exist_and_makes_no_folder(
    bakeoff: Bakeoff, tmp_path: Path
) -> None:
    done = bakeoff("demo", "--dry-run")
    assert done.returncode == 0
    commands = [shlex.split(line) for line in done.stdout.splitlines()]
    assert [command[1] for command in commands[:4]] == ["eval", "run", "agents", "mcp"]
    assert commands[4][0] == "pytest"
    assert list(tmp_path.iterdir()) == []


def test_outputs_of_one_run_are_refused_for_the_whole_demo(bakeoff: Bakeoff, tmp_path: Path) -> None:
    done = bakeoff("demo", "--json")
    assert (done.returncode, "--json is for one run" in done.stderr) == (2, True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["eval", "components", "agents", "mcp", "pytest"])
def test_a_start_is_written_once_and_overwritten_only_by_force(bakeoff: Bakeoff, tmp_path: Path, kind: str) -> None:
    done = bakeoff("init", kind, "start")
    assert (done.returncode, "Now try:\n  cd start" in done.stdout) == (0, True)
    written = {path: path.read_bytes() for path in (tmp_path / "start").rglob("*") if path.is_file()}
    assert written
    assert bakeoff("init", kind, "start").returncode == 0, "nothing has changed"
    changed = next(iter(written))
    changed.write_text("mine")
    refused = bakeoff("init", kind, "start")
    assert (refused.returncode, changed.read_text()) == (2, "mine")
    assert f"{changed.relative_to(tmp_path)} would be overwritten" in refused.stderr
    assert bakeoff("init", kind, "start", "--force").returncode == 0
    assert changed.read_bytes() == written[changed]


def test_an_unknown_start_is_refused_with_those_that_exist(bakeoff: Bakeoff) -> None:
    done = bakeoff("init", "everything")
    assert done.returncode == 2
    assert "'pytest'" in done.stderr


def test_the_embedded_model_is_served_to_a_command_that_is_told_where(bakeoff: Bakeoff) -> None:
    script = (
        "import json, os, urllib.request as r; u = os.environ['OPENAI_BASE_URL'] + '/models'; "
        "h = {'Authorization': 'Bearer ' + os.environ['OPENAI_API_KEY']}; "
        "print(json.load(r.urlopen(r.Request(u, headers=h)))['data'][0]['object']); raise SystemExit(7)"
    )
    done = bakeoff("models", "serve", "--", sys.executable, "-c", script)
    assert (done.returncode, "model" in done.stdout) == (7, True), done.stderr


@pytest.mark.parametrize(
    ("words", "problem"),
    [(("--model", "nosuch"), "nosuch"), (("--", "no-such-program"), "'no-such-program' cannot be started")],
)
def test_what_cannot_be_served_is_named(bakeoff: Bakeoff, words: tuple[str, ...], problem: str) -> None:
    done = bakeoff("models", "serve", *words)
    assert (done.returncode, problem in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr


def test_json_output_is_json_and_nothing_else(bakeoff: Bakeoff, answered_once: dict[str, str]) -> None:
    done = bakeoff("demo", "--quick", "--sandbox", "process", "--json", **answered_once)
    told = json.loads(done.stdout)
    assert [subject["subject"] for subject in told["summary"]["subjects"]] == ["oracle", "scripted", "nop", "smollm2"]
    assert told["summary"]["subjects"][1]["verdicts"] == {"pass": 9, "fail": 11}


def test_a_finished_run_is_listed_shown_checked_and_deleted(
    bakeoff: Bakeoff, demo: "subprocess.CompletedProcess[str]", tmp_path: Path
) -> None:
    [listed] = json.loads(bakeoff("runs", "list", "--json").stdout)
    assert listed | {"run": ""} == {
        "run": "",
        "state": "failed",
        "scored": "80/80",
        "subjects": 4,
        "best": "55.0 %",
        "cost": "$0.00",
        "history": [0.55],
        "damaged": 0,
    }
    shown = bakeoff("runs", "show", listed["run"])
    assert shown.returncode == 0
    assert "contains: missing: 'green'" in shown.stdout
    assert bakeoff("runs", "check").stdout.splitlines()[0].endswith("80 records, 0 damaged lines")
    assert bakeoff("runs", "delete", listed["run"]).returncode == 2, "nobody is there to be asked"
    assert bakeoff("runs", "delete", listed["run"], "--yes").returncode == 0
    assert list((tmp_path / "results" / "runs").iterdir()) == []


def test_resuming_a_finished_run_runs_nothing_again(
    bakeoff: Bakeoff, demo: "subprocess.CompletedProcess[str]", tmp_path: Path
) -> None:
    [folder] = (tmp_path / "results" / "runs").iterdir()
    records = (folder / "journal.jsonl").read_text().count('"type":"record"')
    done = bakeoff("resume", "--trust", "--sandbox", "process")
    assert done.returncode == 1, "nop and scripted failed trials"
    assert (folder / "journal.jsonl").read_text().count('"type":"record"') == records == 80


def test_exit_codes_can_be_changed(bakeoff: Bakeoff, demo: "subprocess.CompletedProcess[str]") -> None:
    assert bakeoff("resume", "--trust", "--exit-zero").returncode == 0
    assert bakeoff("resume", "--trust", "--fail-under", "0").returncode == 0
    assert bakeoff("resume", "--trust", "--fail-under", "0.9").returncode == 1


def test_rescoring_with_another_scorer_makes_no_new_attempt(
    bakeoff: Bakeoff, demo: "subprocess.CompletedProcess[str]", tmp_path: Path
) -> None:
    [folder] = (tmp_path / "results" / "runs").iterdir()
    scorer = '{"kind": "regex", "options": {"pattern": "."}}'
    done = bakeoff("rescore", "latest", "--trust", "--scorer", scorer, "--json")
    assert done.returncode == 1, done.stderr
    by_name = {subject["subject"]: subject for subject in json.loads(done.stdout)["summary"]["subjects"]}
    assert by_name["oracle"]["verdicts"] == {"recorded": 20}, "a pattern says nothing about references"
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    records = [line["record"] for line in lines if line["type"] == "record"]
    started: dict[str, set[float]] = {}
    for record in records:
        started.setdefault(record["attempt_key"], set()).add(record["started"])
    assert len(records) == 160
    assert {len(times) for times in started.values()} == {1}, "each attempt was made once"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("resume",), "there are no runs"),
        (("runs", "show", "nosuch"), 'no run "nosuch"'),
        (("demo", "--sandbox", "nosuch"), "is not one of 'auto'"),
        (("demo", "--jobs", "0"), "--jobs"),
        (("nosuch",), "no such command"),
    ],
)
def test_a_mistake_is_told_in_a_sentence_with_exit_code_2(
    bakeoff: Bakeoff, arguments: tuple[str, ...], words: str
) -> None:
    done = bakeoff(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_doctor_names_keys_and_never_shows_them(bakeoff: Bakeoff) -> None:
    done = bakeoff("doctor", "--json", OPENAI_API_KEY="sk-very-secret-value")
    findings = {finding["what"]: finding for finding in json.loads(done.stdout)}
    assert findings["keys"]["found"] == "OPENAI_API_KEY"
    assert "sk-very-secret-value" not in done.stdout
    assert {"Python", "Node", "browser", "sandbox: process", "disk"} <= set(findings)
    assert all(finding["ok"] or finding["advice"] for finding in findings.values()), "each gap says what to do"
    assert bakeoff("doctor").returncode == 0


def test_a_scorer_that_is_not_json_is_named(bakeoff: Bakeoff, demo: "subprocess.CompletedProcess[str]") -> None:
    done = bakeoff("rescore", "--trust", "--scorer", "{")
    assert done.returncode == 2
    assert "--scorer '{'" in done.stderr


def test_a_reader_that_goes_away_is_no_failure(bakeoff: Bakeoff, demo: "subprocess.CompletedProcess[str]") -> None:
    assert demo.returncode == 0
    piped = f"{sys.executable} -m bakeoff runs show | true; exit ${{PIPESTATUS[0]}}"
    folder = json.loads(bakeoff("runs", "list", "--json").stdout)
    assert folder
    done = subprocess.run(["bash", "-c", piped], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


def test_what_names_hold_is_never_taken_for_markup(bakeoff: Bakeoff) -> None:
    done = bakeoff("runs", "list", "--results", "a[/b]")
    assert (done.returncode, "a[/b]" in done.stderr) == (0, True), done.stderr
