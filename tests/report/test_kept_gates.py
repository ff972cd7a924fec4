"""Test that the verdict at the end of a run stays with it: in pages made again, in the index and in exports."""

import csv
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml

from bakeoff.engine.run_journal import RunJournal
from bakeoff.record import Record
from bakeoff.report.exports.formats import export_run
from bakeoff.report.gates import GateResult, gates_sentence
from bakeoff.report.history import describe_history, judge_history
from bakeoff.report.readers import Source, open_source
from bakeoff.report.render.html.index_page import IndexEntry, read_file_entries, write_page_of
from bakeoff.report.render.html.run_page import no_parts
from bakeoff.report.render.markdown import to_markdown
from bakeoff.storage.ledger import ShardsHere
from bakeoff.storage.redaction import Redactor

from ..warm_bakeoff import Bakeoff
from .runs import plan_of, record_of, source, write_run
from .suites.evals import file_bytes, suite

FAILED = GateResult(option="--eval-fail-under", met=False, sentence="mean score 0.5")
GREEN = "#2a7d2e"
PASSED = GateResult(option="--eval-fail-under", met=True, sentence="mean score 1.0")


def header_of(log: Path) -> Any:
    with zipfile.ZipFile(log) as members:
        return json.loads(members.read("header.json"))


def eval_file(folder: Path, **more: Any) -> Source:
    (folder / "evals.json").write_bytes(file_bytes(suite([1.0] * 4), **more))
    return open_source(folder / "evals.json")


@pytest.mark.parametrize(
    ("more", "state", "said"),
    [
        ({}, "passed", "scored 100.0 %"),
        ({"complete": False}, "incomplete", "Incomplete: the run was stopped before its end"),
        ({"gates": [FAILED]}, "failed", "The gate did not pass: --eval-fail-under FAILED: mean score 0.5."),
        ({"shards": ShardsHere(of=2, numbers=(1,))}, "incomplete", "Incomplete: shard 2 of 2 missing."),
        ({"complete": False, "gates": [PASSED]}, "undecided", "The gates passed, but the run was stopped before its"),
    ],
)
def test_the_page_and_the_index_of_a_file_show_its_gates_and_what_it_lacks(
    tmp_path: Path, more: dict[str, Any], state: str, said: str
) -> None:
    page = write_page_of(eval_file(tmp_path, **more), None, parts=no_parts).read_text()
    assert f"badge state-{state}" in page
    assert said in page
    [entry] = read_file_entries(tmp_path)
    assert isinstance(entry, IndexEntry)
    assert entry.state == state


def test_a_damaged_line_makes_a_run_undecided_whatever_its_gates_said(tmp_path: Path, bakeoff: Bakeoff) -> None:
    plan = plan_of(4, ["s"])
    run = write_run(tmp_path / "results" / "runs" / "2026-01-01T00-00-00-x", plan, map(record_of, plan.trials()))
    with RunJournal(run, Redactor({})) as journal:
        journal.end("finished", gates=[PASSED.model_dump(mode="json")])
    assert ": passed\n" in bakeoff("runs", "show", "latest").stdout
    lines = run.journal_file.read_bytes().splitlines(keepends=True)
    run.journal_file.write_bytes(b"".join([*lines[:2], lines[2][:100] + b"\n", *lines[3:]]))
    said = "The gates passed, but"
    assert (": undecided\n" in (told := bakeoff("runs", "show", "latest").stdout), said in told) == (True, True)
    page = write_page_of(source(run), None, parts=no_parts).read_text()
    assert ("badge state-undecided" in page, said in page) == (True, True)
    assert bakeoff("runs", "list").stdout.count("undecided") == 1


def test_exports_tell_what_is_missing(tmp_path: Path) -> None:
    plan = plan_of(4, ["s"])
    short = source(write_run(tmp_path / "run", plan, [record_of(trial, 1.0) for trial in [*plan.trials()][:3]]))
    export_run(short, "csv", str(tmp_path / "run.csv"))
    rows = list(csv.DictReader((tmp_path / "run.csv").read_text().splitlines()))
    assert {row["ledger"] for row in rows} == {"4 trials planned: 3 passed, 1 not run"}
    export_run(short, "badge", str(tmp_path / "run.svg"))
    assert "100.0 % (37–100), 1 of 4 missing" in (tmp_path / "run.svg").read_text()
    stopped = eval_file(tmp_path, complete=False)
    export_run(stopped, "csv", str(tmp_path / "file.csv"))
    assert "4 trials planned: 4 passed, incomplete" in (tmp_path / "file.csv").read_text()
    export_run(stopped, "badge", str(tmp_path / "file.svg"))
    assert ", incomplete" in (tmp_path / "file.svg").read_text()
    assert GREEN not in (tmp_path / "file.svg").read_text()
    export_run(stopped, "inspect", str(tmp_path / "file.eval"))
    assert header_of(tmp_path / "file.eval")["status"] == "cancelled"


def test_a_badge_is_red_if_the_gate_failed_and_the_step_summary_begins_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = eval_file(tmp_path, gates=[FAILED])
    export_run(failed, "badge", str(tmp_path / "file.svg"))
    assert "100.0 % (47–100), gate failed" in (svg := (tmp_path / "file.svg").read_text())
    assert GREEN not in svg
    export_run(eval_file(tmp_path, gates=[FAILED], complete=False), "badge", str(tmp_path / "file.svg"))
    assert "100.0 % (47–100), incomplete, gate failed" in (tmp_path / "file.svg").read_text()
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    export_run(failed, "github", "-")
    assert (tmp_path / "summary.md").read_text().startswith("Gate failed: The gate did not pass: --eval-fail-under")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, None),
        ({"complete": False}, "Gate undecided: the run was stopped before its end, or not all of it could be"),
        ({"gates": [FAILED]}, "Gate failed: The gate did not pass: --eval-fail-under FAILED: mean score 0.5."),
        ({"shards": ShardsHere(of=2, numbers=(1,))}, "Gate undecided: shard 2 of 2 missing"),
    ],
)
def test_exported_junit_and_markdown_fail_if_the_gate_did_not_pass(
    tmp_path: Path, more: dict[str, Any], said: str | None
) -> None:
    file = eval_file(tmp_path, **more)
    export_run(file, "junit", str(tmp_path / "x.xml"))
    export_run(file, "markdown", str(tmp_path / "x.md"))
    gates = [case for suite in JUnitXml.fromfile(str(tmp_path / "x.xml")) for case in suite if case.name == "gate"]
    assert [case.result[0].message.startswith(said or "?") for case in gates] == [True] * (said is not None)
    assert (tmp_path / "x.md").read_text().startswith("Gate") is (said is not None)


def test_exported_junit_of_a_run_with_a_lost_trial_has_an_undecided_gate(tmp_path: Path) -> None:
    plan = plan_of(4, ["s"])
    short = source(write_run(tmp_path / "run", plan, [record_of(trial, 1.0) for trial in [*plan.trials()][:3]]))
    export_run(short, "junit", str(tmp_path / "x.xml"))
    *_, gate = JUnitXml.fromfile(str(tmp_path / "x.xml"))
    assert (gate.name, gate.failures) == ("gate", 1)
    assert "1 of 4 undecided (1 not run)" in (tmp_path / "x.xml").read_text()


def test_several_gates_that_did_not_pass_are_all_named_the_worst_first() -> None:
    passed = GateResult(option="--eval-min-pass-rate", met=True, sentence="4 of 4")
    undecided = GateResult(option="--eval-baseline", met=None, sentence="no suite is in both runs")
    said = gates_sentence([passed, FAILED, undecided])
    worst = "2 of 3 gates did not pass: --eval-fail-under FAILED: mean score 0.5"
    assert said == f"{worst}; also --eval-baseline UNDECIDED."
    assert (
        gates_sentence([passed], ShardsHere(of=3, numbers=(2,)))
        == "The gate passed for shard 2 of 3 alone (`bakeoff merge` decides the whole)."
    )


def test_a_warning_of_a_gate_that_passed_is_in_the_first_sentence() -> None:
    found = GateResult(option="--eval-baseline", met=True, sentence="no regression", warning="BUT 1 CASE IS WORSE")
    assert gates_sentence([found]) == "The gate passed. BUT 1 CASE IS WORSE."


def test_no_run_of_an_undecided_history_is_called_not_worse(tmp_path: Path) -> None:
    plan = plan_of(12, ["s"])

    def night(number: int, lost: int) -> Source:
        records: list[Record] = [record_of(trial, 1.0, started=1e9 + number * 1e5) for trial in plan.trials()]
        return source(write_run(tmp_path / f"night-{number}", plan, records[lost:]))

    undecided = to_markdown(describe_history(judge_history([night(1, 0), night(2, 0), night(3, 4)])))
    assert "| undecided |" in undecided
    assert "| not worse |" not in undecided
