"""Test what continuous integration shows: JUnit XML, GitHub annotations and summaries, badges."""

import io
import re
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

import junitparser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bakeoff.cli.flags import OutputFlags
from bakeoff.errors import UsageError
from bakeoff.plan import Case, PassRule, Plan, Trial
from bakeoff.record import Record, Score, Transcript
from bakeoff.report.blocks import paragraph
from bakeoff.report.exports import ci
from bakeoff.report.exports.ci import (
    MAX_ANNOTATIONS,
    CiOutputs,
    CiRun,
    annotations,
    status_of,
    write_ci_outputs,
    write_junit_of_all,
    write_step_summary,
)
from bakeoff.report.exports.formats import badge, run_badge, score_badge
from bakeoff.report.render.markdown import to_markdown
from bakeoff.report.run_records import RunRecords
from bakeoff.report.run_summary import describe_run
from bakeoff.report.summary import summarise
from bakeoff.storage.run_folder import RunFolder
from bakeoff.verdict import Round, Verdict, case_verdict

from ..runs import lost, plan_of, record_of, run_of


def junit_of(plan: Plan, records: Iterable[Record]) -> junitparser.JUnitXml:
    file = io.StringIO()
    with RunRecords(plan, records) as shelf:
        write_junit_of_all("run", [("", None, shelf)], file)
    return junitparser.JUnitXml.fromstring(file.getvalue().encode())


def test_a_junit_parser_finds_a_suite_per_subject_and_each_kind_of_outcome() -> None:
    plan = plan_of(6, ["a", "b"])
    kinds = {"case-2": "infra", "case-3": "grader", "case-4": "budget"}
    records = [
        lost(trial, kinds[trial.case.id])
        if trial.case.id in kinds
        else record_of(trial, float(trial.case.id != "case-1"))
        for trial in plan.trials()
        if not (trial.case.id == "case-5" and trial.subject.name == "b")
    ]
    suites = {suite.name: suite for suite in junit_of(plan, records)}
    assert list(suites) == ["a", "b"]
    assert (suites["a"].tests, suites["a"].failures, suites["a"].errors, suites["a"].skipped) == (6, 1, 2, 1)
    assert suites["b"].skipped == 2, "what was not run is skipped too"
    cases = {case.name: case for case in suites["a"]}
    assert cases["case-0"].is_passed
    assert isinstance(cases["case-1"].result[0], junitparser.Failure)
    assert "exact: not case-1" in cases["case-1"].result[0].message
    assert isinstance(cases["case-2"].result[0], junitparser.Error)
    assert isinstance(cases["case-3"].result[0], junitparser.Error)
    assert isinstance(cases["case-4"].result[0], junitparser.Skipped)
    assert cases["case-0"].time == pytest.approx(0.5)
    properties = {found.name: found.value for found in cases["case-0"].child(junitparser.Properties)}
    assert properties["score"] == "1"
    assert properties["exact"] == "1"
    assert properties["cost"] == "0.010000"


def test_a_case_passes_when_all_its_rounds_do() -> None:
    plan = plan_of(2, ["a"], rounds=3)
    suite = next(iter(junit_of(plan, [record_of(t, float(t.index != 2)) for t in plan.trials()])))
    first, second = suite
    assert "round 2: fail" in first.result[0].message
    assert second.is_passed


def test_the_worst_round_decides_and_ours_is_never_a_failure() -> None:
    assert status([Verdict.PASS, Verdict.INFRA, Verdict.FAIL], 3) == "failure"
    assert status([Verdict.PASS, Verdict.GRADER], 2) == "error"
    assert status([Verdict.PASS], 2) == "skipped"
    assert status([Verdict.RECORDED], 1) == "passed"


def status(verdicts: list[Verdict], planned: int, share: float = 1.0) -> str:
    rounds = [Round(verdict, None, failed=False) for verdict in verdicts]
    return status_of(case_verdict(PassRule(gate="share", share=share), rounds, planned).verdict)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([Verdict.PASS, Verdict.FAIL], "passed"),
        ([Verdict.PASS, Verdict.INFRA], "passed"),
        ([Verdict.FAIL, Verdict.TIMEOUT], "failure"),
        ([Verdict.FAIL, Verdict.INFRA], "error"),
        ([Verdict.FAIL], "skipped"),
    ],
)
def test_a_case_that_needs_half_of_its_rounds_is_decided_by_them(verdicts: list[Verdict], expected: str) -> None:
    assert status(verdicts, 2, 0.5) == expected


def failing(trial: Trial, reason: str) -> Record:
    return record_of(trial, 0.0, scores=(Score(name="exact", value=0.0, reason=reason),))


def test_a_failure_is_told_whatever_its_reason_ends_in() -> None:
    plan = plan_of(1, ["s"])
    [suite] = junit_of(plan, [failing(plan.trial(0), "expected: pass")])
    [case] = suite
    assert case.result[0].message == "round 1: fail: exact: expected: pass"
    assert case.result[0].text == "round 1: fail: exact: expected: pass"


def test_the_rounds_that_decide_are_told_first_however_many_there_are() -> None:
    plan = plan_of(1, ["s"], rounds=60)
    kinds = {0: "infra", 24: "fail"} | dict.fromkeys(range(30, 60), "infra")
    records = [
        lost(trial, "infra") if kinds.get(trial.round) == "infra" else record_of(trial, float(trial.round not in kinds))
        for trial in plan.trials()
    ]
    [suite] = junit_of(plan, records)
    [case] = suite
    assert case.result[0].message == "round 25: fail: exact: not case-0"
    assert "and 12 more rounds that did not pass" in case.result[0].text
    assert "round 2: pass" not in case.result[0].text


def with_controls(*names: str) -> tuple[Plan, list[Record]]:
    """`nop` fails all, `oracle` knows all, and `s` passes all but the first."""
    plan = plan_of(12, names)
    records = [
        record_of(
            trial,
            {"nop": 0.0, "oracle": 1.0}.get(trial.subject.name, float(trial.case.id != "case-0")),
            bound=trial.subject.name == "oracle",
        )
        for trial in plan.trials()
    ]
    return plan, records


def test_controls_are_in_no_annotation_suite_list_of_failures_or_badge() -> None:
    plan, records = with_controls("nop", "oracle", "s")
    assert [suite.name for suite in junit_of(plan, records)] == ["s"]
    assert annotated(plan, records) == ["::error title=s%3A case-0 (round 1)::fail: exact: not case-0"]
    text = markdown_of(plan, records)
    assert "| `nop` (control) | 0.0 % |" in text, "the table of scores has everyone"
    assert "| fail | `case-0` | `s` |" in text
    assert "`nop` | 1 |" not in text
    assert "Controls test the cases; their failures do not count" in text
    assert "suite: 11/12 passed" in run_badge(summarise(plan, records))


def test_a_run_of_controls_alone_is_told_as_such() -> None:
    plan, records = with_controls("nop", "oracle")
    suites = {suite.name: suite for suite in junit_of(plan, records)}
    assert list(suites) == ["nop", "oracle"]
    assert [found.name for found in suites["nop"].properties()] == ["control", "ledger", "planned"]
    assert len(annotated(plan, records)) == MAX_ANNOTATIONS + 1
    assert "Every subject is a control" in markdown_of(plan, records)
    assert "suite: 12/24 passed (controls)" in run_badge(summarise(plan, records))


def markdown_of(plan: Plan, records: list[Record]) -> str:
    with RunRecords(plan, records) as shelf:
        return to_markdown(describe_run("the-run", shelf))


def test_nothing_is_said_to_have_passed_that_did_not() -> None:
    plan = plan_of(2, ["s"])
    assert "Nothing has been run yet." in markdown_of(plan, [])
    assert "Everything that ran passed." in markdown_of(plan, [record_of(plan.trial(0))])
    assert "Everything passed." in markdown_of(plan, [record_of(trial) for trial in plan.trials()])
    recorded = plan_of(2, ["s"], threshold=None)
    records = [record_of(trial, 0.0, threshold=None) for trial in recorded.trials()]
    text = markdown_of(recorded, records)
    assert "No threshold was set, so nothing passed or failed." in text
    assert "verything passed" not in text
    assert "suite: 2 scored, no threshold" in run_badge(summarise(recorded, records))


@given(st.text(max_size=40))
def test_any_text_makes_xml_that_can_be_read(text: str) -> None:
    plan = plan_of(1, ["s"])
    suites = junit_of(plan, [record_of(plan.trial(0), 0.0, scores=({"name": text, "value": 0.0, "reason": text},))])
    assert sum(len(list(suite)) for suite in suites) == 1
    assert ElementTree.fromstring(badge(text, text, "#555")).tag.endswith("svg")


def annotated(plan: Plan, records: Iterable[Record]) -> list[str]:
    with RunRecords(plan, records) as shelf:
        return list(annotations(shelf))


def test_failures_are_errors_losses_are_warnings_and_the_rest_is_counted() -> None:
    plan = plan_of(30, ["s"])
    records = [lost(t, "infra") if t.index < 2 else record_of(t, 0.0) for t in plan.trials()]
    lines = annotated(plan, records)
    assert len([line for line in lines if line.startswith("::error ")]) == MAX_ANNOTATIONS
    assert len([line for line in lines if line.startswith("::warning ")]) == 2
    assert lines[-1] == "::notice title=bakeoff::18 more trials did not pass; the summary and the run have them"
    assert "::error title=s%3A case-2 (round 1)::fail: exact: not case-2" in lines


@pytest.mark.parametrize(
    "attack", ["\n::set-env name=X::y", "\r::error::x", "%0A::stop-commands::t", "##[set-env name=X;]y"]
)
def test_no_text_ends_a_command_or_begins_another(attack: str) -> None:
    plan = plan_of(0, ["s, title=x::"], case_list=(Case(id="a,b::c", prompt="?"),))
    score = {"name": "exact", "value": 0.0, "reason": attack}
    [line] = annotated(plan, [record_of(plan.trial(0), 0.0, scores=(score,))])
    assert "\n" not in line
    assert "\r" not in line
    assert "##[" not in line
    found = re.fullmatch(r"::error title=([^:,]*)::(.*)", line)
    assert found, line
    assert "%0A::stop" not in found[2], "a percent sign of theirs is not an escape of ours"


def test_the_summary_goes_to_the_file_that_github_names_or_to_stdout(tmp_path: Path) -> None:
    out = io.StringIO()
    blocks = [paragraph("words")]
    write_step_summary(blocks, out, {})
    assert out.getvalue() == "words\n"
    place = tmp_path / "summary.md"
    place.write_text("before\n")
    write_step_summary(blocks, out, {"GITHUB_STEP_SUMMARY": str(place)})
    assert place.read_text() == "before\nwords\n"
    write_step_summary([paragraph("x" * 1500)] * 2000, out, {"GITHUB_STEP_SUMMARY": str(place)})
    assert place.stat().st_size < 1024 * 1024
    assert out.getvalue() == "words\n"
    with pytest.raises(UsageError, match="GITHUB_STEP_SUMMARY"):
        write_step_summary(blocks, out, {"GITHUB_STEP_SUMMARY": str(tmp_path)})


def test_a_pull_request_comment_has_every_denominator_and_the_failures() -> None:
    plan = plan_of(3, ["s"])
    records = [record_of(plan.trial(0), 1.0), record_of(plan.trial(1), 0.0), lost(plan.trial(2), "infra")]
    with RunRecords(plan, records) as shelf:
        text = to_markdown(describe_run("the-run", shelf))
    assert "| `s` | 50.0 % |" in text
    assert "| 1/2 | 1 infra | $0.0300 | 500 ms | 0 |" in text
    assert "| fail | `case-1` | `s` | 1 | `exact: not case-1` |" in text
    assert "| infra | `case-2` |" in text


def test_a_pull_request_comment_says_how_many_answers_were_recordings() -> None:
    plan = plan_of(3, ["s"])
    replayed = Transcript(output="x", metadata={"replayed": True})
    records = [record_of(plan.trial(0), transcript=replayed), record_of(plan.trial(1))]
    with RunRecords(plan, records) as shelf:
        text = to_markdown(describe_run("the-run", shelf))
    assert "- 1 of 2 trials was answered from recordings" in text


def test_badges_say_the_score_with_its_interval_or_what_passed() -> None:
    plan = plan_of(20, ["s", "t"])
    summary = summarise(plan, [record_of(trial, float(trial.index % 4 < 2)) for trial in plan.trials()])
    assert "s: 50.0 % (30–70)" in score_badge(summary.subjects[0])
    assert "suite: 20/40 passed" in run_badge(summary)
    nothing = summarise(plan, [])
    assert "s: –" in score_badge(nothing.subjects[0])
    assert "0/0 passed" in run_badge(nothing)


def test_a_badge_holds_nothing_that_acts() -> None:
    svg = badge("<script>alert(1)</script>", '"/><image href="x"/>', "#555")
    tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(svg).iter()}
    assert tags == {"svg", "title", "rect", "path", "g", "text"}
    assert len(badge("x" * 10_000_000, "y", "#555")) < 2000


def ci_run(tmp_path: Path) -> tuple[RunFolder, Plan]:
    plan = plan_of(3, ["s"])
    return run_of(tmp_path / "runs" / "one", plan, {"s": lambda case, round_: float(case > 0)}), plan


def test_a_run_of_any_door_leaves_what_was_asked_for_and_says_where(tmp_path: Path) -> None:
    run, plan = ci_run(tmp_path)
    out, summary = io.StringIO(), tmp_path / "summary.md"
    wanted = CiOutputs(junit=tmp_path / "new" / "x.xml", github=True)
    written = write_ci_outputs([CiRun(run, plan)], wanted, out, {"GITHUB_STEP_SUMMARY": str(summary)})
    assert written == (wanted.junit,)
    [suite] = junitparser.JUnitXml.fromfile(str(wanted.junit))
    assert (suite.name, suite.tests, suite.failures) == ("s", 3, 1)
    assert ci.markdown_of([CiRun(run, plan)]) == summary.read_text()
    assert summary.read_text().startswith("## Bakeoff: `one`")
    assert out.getvalue() == "::error title=s%3A case-0 (round 1)::fail: exact: not case-0\n"


def test_outside_github_its_summary_is_printed_and_no_file_is_made(tmp_path: Path) -> None:
    run, plan = ci_run(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    out = io.StringIO()
    assert write_ci_outputs([CiRun(run, plan)], CiOutputs(github=True), out, {}) == ()
    assert "## Bakeoff: `one`" in out.getvalue()
    assert write_ci_outputs([CiRun(run, plan)], CiOutputs(), out) == ()
    assert sorted(tmp_path.rglob("*")) == before


def test_a_place_that_cannot_be_written_to_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"--junit .* is a folder: name a file"):
        CiOutputs(junit=tmp_path)
    with pytest.raises(UsageError, match=r"--junit .*x.xml cannot be written: .*file is not a folder"):
        CiOutputs(junit=tmp_path / "file" / "x.xml")
    with pytest.raises(UsageError, match=r"-o .*x.md cannot be written: .*file is not a folder"):
        OutputFlags(markdown=True, output=tmp_path / "file" / "x.md").check()
    with pytest.raises(UsageError, match=r"--junit .*x.xml cannot be written: .*file is not a folder"):
        OutputFlags(junit=tmp_path / "file" / "x.xml").check()
    assert CiOutputs(junit=tmp_path / "a" / "b" / "x.xml")
