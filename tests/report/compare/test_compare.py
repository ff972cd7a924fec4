"""`bakeoff compare`: the numbers, the verdict and what else was different."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from bakeoff.cli.compare import CompareFlags, run_compare
from bakeoff.cli.flags import LogFlags, ReportFlags
from bakeoff.errors import UsageError
from bakeoff.plan import Case, Limits, Plan, ScorerSpec, SubjectSpec
from bakeoff.record import Failure, Score
from bakeoff.report.compare.cases import text_difference
from bakeoff.report.compare.comparison import CompareReport, CompareRequest, compare_sources
from bakeoff.report.compare.description import describe_comparison
from bakeoff.report.exports.ci import harmless_in_logs, harmless_json
from bakeoff.report.gates import GateRule
from bakeoff.report.readers import open_source
from bakeoff.report.render.markdown import to_markdown
from bakeoff.stats.gates import GateVerdict

from ..runs import Values, lost, plan_of, record_of, run_of, source, write_run


def compared(tmp_path: Path, old: Values, new: Values, cases: int = 20, **more: Any) -> CompareReport:
    before = run_of(tmp_path / "before", plan_of(cases, list(old), rounds=2), old)
    after = run_of(tmp_path / "after", plan_of(cases, list(new), rounds=2), new)
    return compare_sources(source(before), source(after), CompareRequest(**more))


def test_two_runs_of_one_subject_are_paired_case_by_case(tmp_path: Path) -> None:
    report = compared(
        tmp_path, {"s": lambda case, round_: float(case < 5)}, {"s": lambda case, round_: float(case < 15)}
    )
    [pair] = report.pairs
    assert (pair.comparison.wins, pair.comparison.ties, pair.comparison.losses) == (10, 10, 0)
    assert pair.comparison.difference == pytest.approx(0.5)
    assert pair.ruling.verdict is GateVerdict.IMPROVED
    assert report.exit_code == 0
    assert [case.case for case in pair.cases if case.outcome == "win"] == [f"case-{n}" for n in range(5, 15)]


def test_a_regression_exits_1_and_its_worst_cases_come_first_line_by_line(tmp_path: Path) -> None:
    report = compared(
        tmp_path,
        {"s": lambda case, round_: 1.0},
        {"s": lambda case, round_: float(case >= 10)},
        most_details=2,
    )
    [pair] = report.pairs
    assert pair.ruling.verdict is GateVerdict.REGRESSED
    assert report.exit_code == 1
    assert [detail.case for detail in pair.details] == ["case-0", "case-1"]
    output, transcript = pair.details[0].changes
    assert output.lines[1:] == ("-answer 1.0", "+answer 0.0")
    assert transcript.what == "transcript"
    assert "+text answer 0.0" in transcript.lines


def test_no_difference_opens_the_gate_unless_undecidable_is_to_fail_and_no_margin_decides(tmp_path: Path) -> None:
    same: Values = {"s": lambda case, round_: float(case % 2)}
    assert compared(tmp_path, same, same, cases=200).exit_code == 0
    before, after = open_source(tmp_path / "before"), open_source(tmp_path / "after")
    assert compare_sources(before, after, CompareRequest(rule=GateRule("verdict", undecidable="fail"))).exit_code == 1
    assert (
        compare_sources(
            before, after, CompareRequest(rule=GateRule("verdict", margin=0.05, undecidable="fail"))
        ).exit_code
        == 0
    )


def test_the_regression_gate_asks_only_whether_it_is_worse_than_the_margin(tmp_path: Path) -> None:
    # Better or the same everywhere, but by a margin that two-sided equivalence cannot stay within.
    report = compared(
        tmp_path,
        {"s": lambda case, round_: 0.5},
        {"s": lambda case, round_: 0.5 + 0.5 * (case == 0) + 0.5 * (case == 1)},
        cases=30,
        rule=GateRule("verdict", margin=0.05, undecidable="fail"),
    )
    assert report.pairs[0].ruling.verdict is GateVerdict.UNDECIDABLE
    assert report.exit_code == 1
    before, after = open_source(tmp_path / "before"), open_source(tmp_path / "after")
    gated = compare_sources(before, after, CompareRequest(rule=GateRule("regression", margin=0.05, undecidable="fail")))
    assert gated.exit_code == 0
    assert "not worse by more than 5 points" in gated.pairs[0].gate
    without = compare_sources(before, after, CompareRequest(rule=GateRule("regression", undecidable="fail")))
    assert without.exit_code == 1, "without a margin nothing is ruled out"
    backwards = compare_sources(
        after, before, CompareRequest(rule=GateRule("regression", margin=0.05, undecidable="fail"))
    )
    assert backwards.exit_code == 1
    assert "not ruled out" in backwards.pairs[0].gate
    assert compare_sources(after, before, CompareRequest(rule=GateRule("regression", margin=0.05))).exit_code == 0


def test_too_many_trials_lost_to_infra_refuse_a_verdict(tmp_path: Path) -> None:
    plan = plan_of(20, ["s"])
    before = run_of(tmp_path / "before", plan, {"s": lambda case, round_: 0.0})
    records = [lost(trial, "infra") if trial.index < 3 else record_of(trial, 1.0) for trial in plan.trials()]
    after = write_run(tmp_path / "after", plan, records)
    report = compare_sources(source(before), source(after))
    [pair] = report.pairs
    assert pair.ruling.refused
    assert "3 of 20 trials" in pair.ruling.sentence
    assert report.exit_code == 3


def test_several_common_subjects_are_all_compared_and_holm_adjusts(tmp_path: Path) -> None:
    old: Values = {"a": lambda case, round_: float(case < 1), "b": lambda case, round_: float(case < 6)}
    new: Values = {"a": lambda case, round_: 1.0, "b": lambda case, round_: float(case < 12)}
    report = compared(tmp_path, old, new)
    assert [pair.candidate.subject for pair in report.pairs] == ["a", "b"]
    for pair in report.pairs:
        assert pair.ruling.p_value is not None
        assert pair.comparison.p_value is not None
        assert pair.ruling.p_value >= pair.comparison.p_value


def test_two_subjects_of_one_run_are_compared(tmp_path: Path) -> None:
    values: Values = {"a": lambda case, round_: 0.0, "b": lambda case, round_: 1.0, "c": lambda case, round_: 1.0}
    run = run_of(tmp_path / "run", plan_of(10, list(values)), values)
    here = source(run)
    assert compare_sources(here, here, CompareRequest(subjects=("a", "b"))).pairs[0].comparison.wins == 10
    with pytest.raises(UsageError, match=r"one run with 3 subjects \(a, b, c\).*--subject-a and --subject-b"):
        compare_sources(here, here)
    with pytest.raises(UsageError, match="has no subject 'x': it has a, b, c"):
        compare_sources(here, here, CompareRequest(subjects=("a", "x")))


def test_subjects_of_different_names_must_be_named(tmp_path: Path) -> None:
    old, new = plan_of(3, ["a", "b"]), plan_of(3, ["c", "d"])
    before = run_of(tmp_path / "before", old, {"a": lambda c, r: 1.0, "b": lambda c, r: 1.0})
    after = run_of(tmp_path / "after", new, {"c": lambda c, r: 1.0, "d": lambda c, r: 1.0})
    with pytest.raises(UsageError, match="no subject is in both: before has a, b; after has c, d"):
        compare_sources(source(before), source(after))


def test_an_edited_case_is_not_the_same_case_and_is_listed(tmp_path: Path) -> None:
    old = plan_of(6, ["s"])
    edited = (Case(id="case-0", prompt="Something else?"), *old.cases[1:5], Case(id="new", prompt="New?"))
    before = run_of(tmp_path / "before", old, {"s": lambda c, r: 1.0})
    after = run_of(tmp_path / "after", plan_of(0, ["s"], case_list=edited), {"s": lambda c, r: 1.0})
    report = compare_sources(source(before), source(after))
    [pair] = report.pairs
    assert pair.comparison.cases == 4
    assert pair.comparison.changed == ("case-0",)
    assert {key.id for key in pair.comparison.baseline_only} == {"case-0", "case-5"}
    text = to_markdown(describe_comparison(report))
    assert "1 with changed content, and so not compared" in text
    assert "| `case-0` | with changed content, and so not compared |" in text
    assert "| `new` | only in the candidate |" in text


def test_runs_without_a_common_case_are_compared_unpaired_and_labelled(tmp_path: Path) -> None:
    others = tuple(Case(id=f"other-{n}", prompt="?") for n in range(20))
    before = run_of(tmp_path / "before", plan_of(20, ["s"]), {"s": lambda c, r: 0.0})
    after = run_of(tmp_path / "after", plan_of(0, ["s"], case_list=others), {"s": lambda c, r: 1.0})
    report = compare_sources(source(before), source(after))
    assert not report.pairs[0].comparison.paired
    assert "unpaired" in to_markdown(describe_comparison(report))


def test_a_journal_without_a_plan_is_paired_by_names_and_the_report_says_so(tmp_path: Path) -> None:
    plan = plan_of(5, ["s"])
    run = run_of(tmp_path / "run", plan, {"s": lambda c, r: 1.0})
    alone = tmp_path / "alone.jsonl"
    alone.write_bytes(run_of(tmp_path / "other", plan, {"s": lambda c, r: 1.0}).journal_file.read_bytes())
    report = compare_sources(source(run), open_source(alone))
    assert report.pairs[0].comparison.cases == 5
    assert "paired by their ids only" in to_markdown(describe_comparison(report))


def test_every_difference_in_circumstances_is_named(tmp_path: Path) -> None:
    old = plan_of(3, ["s"])
    new = Plan(
        name="suite",
        cases=tuple(Case(id=case.id, prompt=case.prompt, limits=Limits(attempt_seconds=9.0)) for case in old.cases),
        subjects=(
            SubjectSpec(
                kind="model",
                name="s",
                options={"model": "local:x", "system": "Be brief.", "timeout": 5},
                revision="v2",
            ),
        ),
        scorers=(ScorerSpec(kind="contains"),),
        rounds=2,
        threshold=0.5,
    )
    before = run_of(tmp_path / "before", old, {"s": lambda c, r: 1.0}, sandbox="bwrap")
    records = [record_of(trial, 1.0) for trial in new.trials()]
    price = {"date": "2026-01-02", "source": "gateway", "key": "x"}
    told = {"price": price, "mcp_tools_hash": "abc", "network_policy": "none"}
    records = [
        record.model_copy(
            update={"transcript": record.transcript and record.transcript.model_copy(update={"metadata": told})}
        )
        for record in records
    ]
    after = write_run(tmp_path / "after", new, records)
    [pair] = compare_sources(source(before), source(after)).pairs
    assert pair.comparison.paired
    assert pair.comparison.cases == 3, "limits are a circumstance, not content"
    found = {mismatch.field: (mismatch.baseline, mismatch.candidate) for mismatch in pair.mismatches}
    assert found["model"] == (None, "local:x")
    assert found["agent_version"] == (None, "v2")
    assert found["sandbox"] == ("bwrap", "process")
    assert found["timeouts"] == ("attempt 300 s, score 120 s", "attempt 9 s, score 120 s, answer 5 s")
    assert found["network_policy"] == (None, "none")
    assert found["mcp_tools_hash"] == (None, "abc")
    assert found["price_date"] == (None, "gateway 2026-01-02")
    assert found.keys() >= {"prompt_hash", "scorers", "threshold", "rounds", "subject's settings"}


def test_identical_circumstances_have_no_mismatch(tmp_path: Path) -> None:
    same: Values = {"s": lambda case, round_: 1.0}
    assert compared(tmp_path, same, same).pairs[0].mismatches == ()


def test_a_report_survives_its_way_through_json(tmp_path: Path) -> None:
    report = compared(tmp_path, {"s": lambda case, round_: 0.0}, {"s": lambda case, round_: case / 20})
    assert CompareReport.model_validate_json(report.model_dump_json()).model_dump_json() == report.model_dump_json()


def test_texts_of_any_size_are_compared_in_bounded_time() -> None:
    long = "x\n" * 5_000_000
    assert text_difference(long, long) == ()
    assert text_difference(long, long + "y") == ("… they differ after the first 20,000 characters or 400 lines",)
    many = text_difference("\n".join(map(str, range(400))), "\n".join(map(str, range(1000, 1400))))
    assert len(many) == 61
    assert many[-1].endswith("more lines")


def test_controls_are_shown_but_decide_nothing_and_make_no_test_stricter(tmp_path: Path) -> None:
    for name, passed in (("before", 10), ("after", 17)):
        plan = plan_of(20, ["s", "oracle", "nop"])
        records = [
            record_of(
                trial,
                {"s": float(trial.case.id in CASES[:passed]), "oracle": 1.0, "nop": 0.0}[trial.subject.name],
                bound=trial.subject.name == "oracle",
            )
            for trial in plan.trials()
        ]
        write_run(tmp_path / name, plan, records)
    before, after = open_source(tmp_path / "before"), open_source(tmp_path / "after")
    report = compare_sources(before, after)
    judged, *controls = report.pairs
    assert judged.ruling.verdict is GateVerdict.IMPROVED
    assert judged.ruling.p_value == judged.comparison.p_value, "there is only one test"
    assert report.exit_code == 0
    assert [(pair.candidate.subject, pair.control, pair.exit_code) for pair in controls] == [
        ("oracle", True, 0),
        ("nop", True, 0),
    ]
    text = to_markdown(describe_comparison(report))
    assert "Undecidable (control): `nop`" in text
    assert "A control, which does not influence the exit code." in text
    assert "by Holm" not in text
    named = compare_sources(before, after, CompareRequest(subjects=("nop", "nop")))
    assert not named.pairs[0].control, "who names a control means it"


CASES = [f"case-{number}" for number in range(20)]


def test_scores_are_also_told_over_the_cases_that_were_compared(tmp_path: Path) -> None:
    plan = plan_of(20, ["s"])
    before = run_of(tmp_path / "before", plan, {"s": lambda case, round_: float(case > 0)})
    records = [record_of(trial, 1.0) if trial.index < 4 else lost(trial, "budget") for trial in plan.trials()]
    report = compare_sources(source(before), source(write_run(tmp_path / "after", plan, records)))
    text = to_markdown(describe_comparison(report))
    assert "95.0 %" in text
    assert "Over the 4 compared cases the baseline scored 75.0 %, the candidate 100.0 %" in text
    assert text.count("case-10") == 1, "a case stands in one list only"
    assert "too small to find any difference" in text


def test_what_a_comparison_would_find_is_unknown_where_nothing_varied(tmp_path: Path) -> None:
    same: Values = {"s": lambda case, round_: 1.0}
    report = compared(tmp_path, same, same)
    assert report.pairs[0].detectable is None
    assert "cannot be estimated" in to_markdown(describe_comparison(report))


def test_without_a_threshold_nothing_is_said_to_have_passed(tmp_path: Path) -> None:
    plan = plan_of(5, ["s"], threshold=None)
    for name in ("before", "after"):
        write_run(tmp_path / name, plan, [record_of(trial, 0.5, threshold=None) for trial in plan.trials()])
    report = compare_sources(open_source(tmp_path / "before"), open_source(tmp_path / "after"))
    text = to_markdown(describe_comparison(report))
    assert "–/5" in text
    assert "0/5" not in text


def test_a_removed_line_that_looks_like_a_header_is_shown() -> None:
    shown = text_difference("-- old comment\nselect 1", "++ new comment\nselect 1")
    assert shown[1:] == ("--- old comment", "+++ new comment", " select 1")


def test_texts_that_differ_in_line_breaks_alone_are_said_to() -> None:
    assert text_difference("abc\n", "abc") == text_difference("a\r\nb", "a\nb") == ("… only line breaks differ",)


def test_losses_are_told_by_whose_they_are_and_resuming_is_the_way_out(tmp_path: Path) -> None:
    plan = plan_of(20, ["s"])
    before = run_of(tmp_path / "before", plan, {"s": lambda case, round_: 1.0})
    broken = Failure(kind="grader", type="Broken", message="no")
    records = [
        record_of(trial, None, scores=(Score(name="exact", failure=broken),)) if trial.index < 3 else record_of(trial)
        for trial in plan.trials()
    ]
    [pair] = compare_sources(source(before), source(write_run(tmp_path / "after", plan, records))).pairs
    assert "the candidate lost 3 of 20 trials (15.0 %) to graders" in pair.ruling.sentence
    assert "bakeoff resume" in pair.gate
    assert "more cases" not in pair.gate


def test_one_subject_of_one_run_is_not_compared_with_itself(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", plan_of(3, ["a", "b"]), {"a": lambda c, r: 1.0, "b": lambda c, r: 1.0})
    with pytest.raises(UsageError, match=r"'a' would be compared with itself: .*--subject-b \(besides 'a': b\)"):
        compare_sources(source(run), source(run), CompareRequest(subjects=("a", None)))


def test_a_side_of_which_nothing_was_scored_is_said_to_be_empty(tmp_path: Path) -> None:
    plan = plan_of(5, ["s"])
    before = run_of(tmp_path / "before", plan, {"s": lambda case, round_: 1.0})
    report = compare_sources(source(before), source(write_run(tmp_path / "after", plan, [])))
    text = to_markdown(describe_comparison(report))
    assert "No trial of the candidate was scored: there is nothing to compare" in text
    assert "unpaired" not in text
    assert (report.exit_code, report.pairs[0].ruling.refused) == (3, True)


def test_an_unpaired_verdict_says_so_in_its_headline_and_at_the_gate(tmp_path: Path) -> None:
    edited = tuple(Case(id=name, prompt="Another question?") for name in CASES)
    before = run_of(tmp_path / "before", plan_of(20, ["s"]), {"s": lambda c, r: float(c % 2)})
    after = run_of(tmp_path / "after", plan_of(0, ["s"], case_list=edited), {"s": lambda c, r: 1.0})
    text = to_markdown(describe_comparison(compare_sources(source(before), source(after))))
    assert text.startswith(
        "Gate undecided: 20 cases of the baseline cannot be compared; 0 allowed (--allow-undecided): "
    )
    assert "an improvement is shown" not in text.partition("\n")[0], "what is missing could change that"
    assert "Unpaired: " in text
    assert "20 with changed content, and so not paired" in text


def test_tool_calls_are_those_of_a_round(tmp_path: Path) -> None:
    [pair] = compared(tmp_path, {"s": lambda c, r: 1.0}, {"s": lambda c, r: 0.0}).pairs
    assert {(case.baseline.rounds, case.baseline.tool_calls) for case in pair.cases} == {(2, 1.0)}


def test_every_verdict_comes_before_the_first_difference_and_all_fits_a_comment(tmp_path: Path) -> None:
    old, new = plan_of(20, [f"s{n}" for n in range(8)]), plan_of(20, [f"s{n}" for n in range(8)])
    write_run(tmp_path / "before", old, [record_of(trial, 1.0, output="old words " * 900) for trial in old.trials()])
    write_run(tmp_path / "after", new, [record_of(trial, 0.0, output="other\n" * 390) for trial in new.trials()])
    report = compare_sources(
        open_source(tmp_path / "before"), open_source(tmp_path / "after"), CompareRequest(most_details=20)
    )
    text = to_markdown(describe_comparison(report))
    assert len(text) <= 65_000
    assert text.count("## Regressed: ") == 8
    assert text.rindex("## Regressed: ") < text.index("```diff")
    assert "Left out" in text


def test_no_line_of_a_report_is_a_command_to_a_workflow() -> None:
    text = "  ::stop-commands::x\n::error::y\na ::b\n   x ##[error]z\n"
    assert harmless_in_logs(text) == " ·::stop-commands::x\n·::error::y\na ::b\n   x ##\\[error]z\n"
    told = {"lines": ["##[group]", "###[x"]}
    shown = harmless_json(json.dumps(told))
    assert "##[" not in shown
    assert json.loads(shown) == told


def hostile_runs(tmp_path: Path) -> tuple[str, str]:
    words = "::stop-commands::x\n  ::add-mask::e\nsame ##[error]z\n"
    plan = plan_of(2, ["s"])
    for name, last in (("before", "one"), ("after", "two")):
        reason = f"{'y' * 150} ::error title=owned::{last} ##[group]"
        records = [
            record_of(
                trial,
                float(last == "one"),
                output=words + last,
                scores=(Score(name="exact", value=float(last == "one"), reason=reason),),
            )
            for trial in plan.trials()
        ]
        write_run(tmp_path / name, plan, records)
    return str(tmp_path / "before"), str(tmp_path / "after")


@pytest.mark.parametrize("shape", [ReportFlags(), ReportFlags(markdown=True), ReportFlags(as_json=True)])
@pytest.mark.parametrize("width", ["40", "160"])
def test_texts_from_outside_give_no_commands_to_the_machine_that_logs_a_comparison(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, shape: ReportFlags, width: str
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", width)
    names = hostile_runs(tmp_path)
    run_compare(
        baseline=names[0], wanted=CompareFlags(candidate=names[1], results=tmp_path), logs=LogFlags(), shown_as=shape
    )
    printed = capsys.readouterr().out
    assert "add-mask" in printed
    assert [line for line in printed.splitlines() if line.lstrip().startswith("::")] == []
    assert "##[" not in printed


def test_a_run_whose_name_is_no_text_can_be_told_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = tmp_path / os.fsdecode(b"a\xff b")
    plan = plan_of(3, ["s"])
    run_of(odd, plan, {"s": lambda c, r: 1.0})
    run_of(tmp_path / "plain", plan, {"s": lambda c, r: 1.0})
    wanted = CompareFlags(candidate=str(tmp_path / "plain"), results=tmp_path)
    assert run_compare(baseline=str(odd), wanted=wanted, logs=LogFlags(), shown_as=ReportFlags(as_json=True)) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["pairs"][0]["baseline"]["source"] == r"a\udcff b"
    assert told["pairs"][0]["baseline"]["path"].endswith(r"a\udcff b")


def test_settings_that_differ_between_two_subjects_of_one_run_are_listed(tmp_path: Path) -> None:
    specs = tuple(
        SubjectSpec(kind="scripted", name=name, options={"temperature": heat, "top_p": 1})
        for name, heat in (("cold", 0), ("hot", 1.5))
    )
    plan = plan_of(5, ["cold", "hot"]).model_copy(update={"subjects": specs})
    here = source(run_of(tmp_path / "run", plan, {"cold": lambda c, r: 1.0, "hot": lambda c, r: 0.0}))
    [pair] = compare_sources(here, here).pairs
    assert [(found.field, found.baseline, found.candidate) for found in pair.mismatches] == [
        ("temperature", "0", "1.5")
    ]
    assert "| temperature | `0` | `1.5` |" in to_markdown(describe_comparison(compare_sources(here, here)))


def test_several_subjects_have_their_table_first_and_one_exit_code(tmp_path: Path) -> None:
    old: Values = {name: lambda case, round_: float(case < 18) for name in ("a", "b")}
    new: Values = {"a": lambda case, round_: float(case < 17), "b": lambda case, round_: float(case < 6)}
    report = compared(tmp_path, old, new)
    assert report.exit_code == 1
    text = to_markdown(describe_comparison(report))
    assert text.startswith("Gate failed: a regression is shown. Exit code 1.\n")
    assert "All subjects together: worse on these cases" in text
    assert "1 undecidable, 1 regressed." in text
    assert text.count("xit code") == 1
    assert text.index("| Subject | Verdict |") < text.index("### Undecidable: `a`")


def test_very_few_cases_are_advised_to_be_more_cases(tmp_path: Path) -> None:
    flaky: Values = {"s": lambda case, round_: float((case + round_) % 2)}
    report = compared(tmp_path, flaky, {"s": lambda case, round_: float(round_ == 0)}, cases=4)
    advice = report.pairs[0].advice
    assert advice is not None
    assert "their p-value is never below 0.125; use more cases, at least 6" in advice
