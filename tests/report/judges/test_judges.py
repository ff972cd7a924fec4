"""Test which answers are labelled, what labels say about a judge, and where its scores are corrected."""

import json
import re
from pathlib import Path

import pytest

from bakeoff.errors import UsageError
from bakeoff.plan import ScorerSpec, SubjectSpec
from bakeoff.record import Failure, Phase, Record, Score
from bakeoff.report.judges.audit import audit_judge
from bakeoff.report.judges.calibration import settled
from bakeoff.report.judges.labelling import draw
from bakeoff.report.render.html.index_page import page_is_current, write_current_page
from bakeoff.storage.run_folder import RunFolder

from ...warm_bakeoff import Bakeoff
from ..judged import graded, judged_run, judgements_of, label_all, label_of, plan_of
from ..runs import plan_of as unjudged_plan
from ..runs import record_of, run_of, write_run

NAME = "2026-01-01T00-00-00-judged"


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run of two subjects that are equally good, of which the judge favours one."""
    return judged_run(tmp_path / "results" / "runs" / NAME)


@pytest.fixture
def labelled(run: RunFolder) -> RunFolder:
    label_all(run, draw(run, run.read_plan(), None, None))
    return run


def test_answers_are_drawn_evenly_from_the_scores_of_each_subject(run: RunFolder) -> None:
    plan = run.read_plan()
    drawn = draw(run, plan, None, 40)
    strata: dict[tuple[str, float], int] = {}
    for one in drawn:
        place = one.record.subject, one.judged
        strata[place] = strata.get(place, 0) + 1
    assert strata == dict.fromkeys([("terse", 0.0), ("terse", 1.0), ("verbose", 0.0), ("verbose", 1.0)], 10)
    sizes = {(one.record.subject, one.judged): one.size for one in drawn}
    assert sum(sizes.values()) == 120
    again = [one.record.attempt_key for one in draw(run, plan, None, 60)]
    assert [one.record.attempt_key for one in drawn] == again[:40]  # more labels continue with the same answers
    subjects = "".join(one.record.subject[0] for one in drawn)
    assert not re.match(r"(.)(.)(.)(.)(\1\2\3\4)+$", subjects)  # the order does not give the subject away
    assert len(draw(run, plan, None, 1000)) == 120


def test_graded_scores_are_drawn_by_thirds_and_controls_are_left_out(tmp_path: Path) -> None:
    plan = plan_of(60)
    plan = plan.with_changes(subjects=(plan.subjects[0], SubjectSpec(kind="nop", name="verbose")))
    run = judged_run(tmp_path / "run", plan, judging=graded)
    drawn = draw(run, plan, None, None)
    assert len(drawn) == 30
    assert {one.record.subject for one in drawn} == {"terse"}
    assert {one.stratum for one in drawn} == {0, 1, 2}
    scores = [{one.judged for one in drawn if one.stratum == stratum} for stratum in range(3)]
    assert max(scores[0]) < min(scores[1]) <= max(scores[1]) < min(scores[2])


def test_a_run_without_a_judge_says_so(tmp_path: Path) -> None:
    plan = unjudged_plan(3, ["s"])
    run = run_of(tmp_path / "plain", plan, {"s": lambda case, round_: 1.0})
    with pytest.raises(
        UsageError, match=r"no model judged anything in run plain.*--scorer names another one of 'exact'"
    ):
        draw(run, plan, None, None)
    assert len(draw(run, plan, "exact", None)) == 3
    with pytest.raises(UsageError, match="--scorer 'nobody' has scored nothing in run plain"):
        draw(run, plan, "nobody", None)


def test_several_judges_must_be_told_apart(tmp_path: Path) -> None:
    plan = plan_of(3, threshold=None).with_changes(
        scorers=tuple(ScorerSpec(kind="judge", name=name, options={"criteria": name}) for name in ("tone", "truth"))
    )
    scores = [Score(name=name, value=1.0, metadata={"judge": "m"}) for name in ("tone", "truth")]
    run = write_run(tmp_path / "two", plan, (record_of(trial, scores=tuple(scores)) for trial in plan.trials()))
    with pytest.raises(UsageError, match=r"run two has several judges \('tone', 'truth'\): choose one with --scorer"):
        draw(run, plan, None, None)
    assert {one.scorer for one in draw(run, plan, "truth", None)} == {"truth"}


def test_the_majority_of_labellers_counts(labelled: RunFolder) -> None:
    one = draw(labelled, labelled.read_plan(), None, 1)[0]
    votes = {name: label_of(one, name, "pass" if name < "c" else "fail") for name in "abcd"}
    assert [settled(votes[name] for name in names) for names in ("a", "ab", "abc", "acd", "ac")] == [1, 1, 1, 0, 0.5]


def test_the_audit_finds_what_the_judge_does_wrong(labelled: RunFolder) -> None:
    audit = audit_judge("run", labelled.read_plan(), judgements_of(labelled), "judge", repeated_from="asked once")
    assert (audit.labels, audit.trials, audit.judge, audit.cut) == (60, 120, "scripted:judge", 0.5)
    quality = audit.quality
    assert quality.sensitivity is not None
    assert 0.85 < quality.sensitivity.value < 1
    assert quality.specificity is not None
    assert 0.4 < quality.specificity.value < 0.7
    assert quality.specificity.interval is not None
    assert quality.specificity.interval.low < 0.55 < quality.specificity.interval.high
    terse, verbose = (one.corrected for one in audit.subjects)
    assert terse is not None
    assert verbose is not None
    assert verbose.raw - terse.raw > 0.2
    assert abs(verbose.value - terse.value) < 0.15
    assert audit.length_bias is not None
    assert audit.flips is None


def test_repeated_answers_of_the_judge_show_how_often_it_flips(tmp_path: Path) -> None:
    plan = plan_of(20)
    told = {"judge": "m", "choices": ["A", "E"], "values": [1.0, 0.0], "spread": 1.0}
    calm = {"judge": "m", "choices": ["A", "A"], "values": [1.0, 1.0], "spread": 0.0}
    records = (
        record_of(trial, scores=(Score(name="judge", value=0.5, metadata=told if trial.index % 4 == 0 else calm),))
        for trial in plan.trials()
    )
    run = write_run(tmp_path / "repeated", plan, records)
    found = judgements_of(run)
    repeated = {one.attempt_key: one.repeats for ones in found.of("judge").values() for one in ones}
    audit = audit_judge("run", plan, found, "judge", repeated=repeated, repeated_from="recorded")
    assert audit.flips is not None
    assert audit.flips.rate == pytest.approx(0.25)
    assert audit.flips.interval is not None


def test_labels_of_answers_that_changed_do_not_count(labelled: RunFolder) -> None:
    plan = labelled.read_plan()
    found = judgements_of(labelled)
    other = plan.with_changes(cases=tuple(case.model_copy(update={"prompt": "new"}) for case in plan.cases))
    again = judged_run(labelled.path.parent / "again", other)
    again.labels_file.write_bytes(labelled.labels_file.read_bytes())
    audit = audit_judge("again", other, judgements_of(again), "judge")
    assert (audit.labels, audit.outdated) == (0, 60)
    assert audit.quality.sensitivity is None
    assert found.calibration("judge", "terse").labels > 20


def test_trials_without_an_answer_count_as_bad_without_a_label(tmp_path: Path) -> None:
    plan = plan_of(40)
    good = Score(name="judge", value=1.0, metadata={"judge": "m"})
    crash = Phase(seconds=0.1, failure=Failure(kind="subject", type="Crash", message="no answer"))
    records = [
        record_of(trial, scores=(), attempt=crash, transcript=None)
        if trial.index % 4 == 0
        else record_of(trial, output="the good sum", scores=(good,))
        for trial in plan.trials()
    ]
    run = write_run(tmp_path / "crashes", plan, records)
    label_all(run, draw(run, plan, None, None))
    found = judgements_of(run).calibration("judge", "terse")
    assert found.corrected is not None
    assert found.corrected.raw == found.corrected.value == pytest.approx(0.5)


def test_reports_show_the_corrected_scores_beside_the_judges(bakeoff: Bakeoff, labelled: RunFolder) -> None:
    shown = bakeoff("runs", "show")
    assert re.search(r"Judge's score\s+Corrected\s+95 % interval\s+Labels", shown.stdout), shown.stderr
    assert "Rogan–Gladen. The interval includes the judge's own error." in shown.stdout
    told = json.loads(bakeoff("runs", "show", "--json").stdout)["answer"]
    assert re.match(
        r"Corrected by labels, \w+ and \w+ cannot be told apart \([\d.]+ % and [\d.]+ %, p = 0\.\d+; \+.*\)\. ", told
    )
    assert "As the judge scored: verbose is better than terse (" in told
    found = json.loads(bakeoff("runs", "show", "--json").stdout)["calibrations"]
    assert [(one["subject"], one["lacking"]) for one in found] == [("terse", None), ("verbose", None)]
    compared = bakeoff("compare", NAME)
    assert "corrected by labels" in compared.stdout
    pair = json.loads(bakeoff("compare", NAME, "--json").stdout)["pairs"][0]
    [calibrated] = pair["calibrated"]
    assert calibrated["corrected"]["raw"] == pytest.approx(pair["comparison"]["difference"])
    assert calibrated["corrected"]["interval"]["low"] < 0 < calibrated["corrected"]["interval"]["high"]
    page = write_current_page(labelled)
    assert "Scores of judges, corrected by labels" in page.read_text()
    assert "Corrected by labels, " in page.read_text()
    assert page_is_current(labelled)
    label_all(labelled, draw(labelled, labelled.read_plan(), None, 1), "bob")
    assert not page_is_current(labelled)


def test_a_gate_that_needs_a_calibrated_judge_decides_by_labels_or_refuses(bakeoff: Bakeoff, run: RunFolder) -> None:
    biased = bakeoff("compare", NAME, "--json")
    assert json.loads(biased.stdout)["pairs"][0]["ruling"]["verdict"] == "improved"
    refused = bakeoff("compare", NAME, "--require-calibrated-judge")
    assert refused.returncode == 3
    said = " ".join(refused.stdout.split())
    assert "Refused: the judge 'judge' is not calibrated: in the baseline, 0 of 60 answers are labelled" in said
    assert f"Label answers with `bakeoff label {NAME}`" in said
    label_all(run, draw(run, run.read_plan(), None, None))
    decided = json.loads(bakeoff("compare", NAME, "--require-calibrated-judge", "--json").stdout)["pairs"][0]
    assert decided["ruling"]["verdict"] == "undecidable"
    assert not decided["ruling"]["refused"]
    assert decided["comparison"]["difference"] == decided["calibrated"][0]["corrected"]["difference"]


def test_several_subjects_have_corrected_intervals_that_are_adjusted_with_their_p_values(
    bakeoff: Bakeoff, tmp_path: Path
) -> None:
    folder = tmp_path / "results" / "runs"
    for name, share in (("before", 0.9), ("after", 0.6)):
        made = judged_run(folder / name, good=share, seed=len(name))
        label_all(made, draw(made, made.read_plan(), None, None))
    found = json.loads(bakeoff("compare", "before", "after", "--require-calibrated-judge", "--json").stdout)
    levels = [pair["comparison"]["level"] for pair in found["pairs"]]
    assert min(levels) == 0.025
    for pair in found["pairs"]:
        interval, ruling = pair["comparison"]["interval"], pair["ruling"]
        assert pair["comparison"]["test"] == "t of the corrected scores"
        assert (interval["high"] < 0 or interval["low"] > 0) == (ruling["p_value"] <= 0.05)
    wider = found["pairs"][levels.index(0.025)]
    [alone] = wider["calibrated"]
    assert wider["comparison"]["interval"]["low"] < alone["corrected"]["interval"]["low"]


def test_labels_of_other_cases_do_not_correct_a_difference(bakeoff: Bakeoff, tmp_path: Path) -> None:
    folder = tmp_path / "results" / "runs"
    plan = plan_of()
    parts = {"before": plan.cases[:40], "after": plan.cases[30:]}
    for name, cases in parts.items():
        made = judged_run(folder / name, plan.with_changes(cases=cases, subjects=plan.subjects[:1]))
        others = {case.id for case in cases} - {case.id for case in plan.cases[30:40]}
        label_all(made, [one for one in draw(made, made.read_plan(), None, 40) if one.record.case in others])
    refused = bakeoff("compare", "before", "after", "--require-calibrated-judge")
    assert refused.returncode == 3, refused.stderr
    said = " ".join(refused.stdout.split())
    assert "is not calibrated: among the cases that both have, 0 of 10 answers are labelled, 10 are needed" in said


def test_a_gate_without_judged_scores_needs_no_labels(bakeoff: Bakeoff, tmp_path: Path) -> None:
    plan = unjudged_plan(20, ["s", "t"])
    run_of(tmp_path / "results" / "runs" / NAME, plan, {"s": lambda c, r: 1.0, "t": lambda c, r: 0.0})
    assert bakeoff("compare", NAME, "--require-calibrated-judge").returncode == 1


def test_judge_audit_prints_writes_a_page_and_asks_again(bakeoff: Bakeoff, tmp_path: Path) -> None:
    replies = [
        {"to": "the good sum", "say": json.dumps({"rationale": "right", "choice": "A"})},
        {"say": json.dumps({"rationale": "wrong", "choice": "E"})},
    ]
    script = tmp_path / "judge.json"
    script.write_text(json.dumps({"replies": replies}))
    spec = ScorerSpec(kind="judge", options={"criteria": "Is the sum right?", "model": f"scripted:{script}"})
    run = judged_run(tmp_path / "results" / "runs" / NAME, plan_of(20).with_changes(scorers=(spec,)))
    without = bakeoff("judge", "audit")
    assert without.returncode == 2
    assert f"run {NAME} has no labels for 'judge': make some with `bakeoff label {NAME}`" in without.stderr
    label_all(run, draw(run, run.read_plan(), None, None))
    journal = run.journal_file.read_bytes()
    done = bakeoff("judge", "audit", "--trust", "--repeat", "3", "--html", "audit.html", "--json")
    assert done.returncode == 0, done.stderr
    audit = json.loads(done.stdout)
    assert audit["flips"]["rate"] == 0
    assert audit["flips"]["cases"] == audit["labels"]
    assert audit["flips_from"] == "asked 3 times for this audit"
    assert "Audit of judge" in (tmp_path / "audit.html").read_text()
    assert run.journal_file.read_bytes() == journal
    text = bakeoff("judge", "audit", "--threshold", "0.75")
    assert "The judge passes an answer at a score of 0.75 or more." in text.stdout
    assert "Flips are unknown: the judge was asked once; use --repeat." in text.stdout


def test_damaged_labels_are_found_by_the_check(bakeoff: Bakeoff, labelled: RunFolder) -> None:
    assert bakeoff("runs", "check").returncode == 0
    with labelled.labels_file.open("ab") as file:
        file.write(b"no label\n")
    checked = bakeoff("runs", "check")
    assert checked.returncode == 1
    assert "1 damaged lines of labels.jsonl are left out" in checked.stdout
    assert "1 line of labels.jsonl cannot be read" in bakeoff("judge", "audit").stdout


def test_labels_hold_for_a_judge_that_was_changed_after_they_were_drawn(labelled: RunFolder) -> None:
    plan = labelled.read_plan()

    def judged_again(record: Record) -> Record:
        assert record.transcript is not None
        value = float("good" in str(record.transcript.output))
        score = Score(name="judge", value=value, metadata={"judge": "scripted:better"})
        return record.model_copy(update={"scores": (score,)})

    better = write_run(labelled.path.parent / "better", plan, map(judged_again, labelled.latest_records(plan)))
    better.labels_file.write_bytes(labelled.labels_file.read_bytes())
    audit = audit_judge("better", plan, judgements_of(better), "judge")
    assert audit.labels == 60
    for estimate in (audit.quality.sensitivity, audit.quality.specificity):
        assert estimate is not None
        assert estimate.value == 1
    for one in audit.subjects:
        assert one.corrected is not None
        assert one.corrected.value == pytest.approx(one.corrected.raw)


def test_names_from_a_plan_stay_text_in_every_report(bakeoff: Bakeoff, tmp_path: Path) -> None:
    name = "<img src=x>`![x](http://evil.example)"
    plan = plan_of(30).with_changes(scorers=(ScorerSpec(kind="judge", name=name, options={"criteria": "?"}),))
    score = Score(name=name, value=1.0, metadata={"judge": f"{name}\x1b[31m"})
    records = (record_of(trial, output="the good sum", scores=(score,)) for trial in plan.trials())
    run = write_run(tmp_path / "results" / "runs" / NAME, plan, records)
    refused = bakeoff("compare", NAME, "--require-calibrated-judge", "--markdown")
    label_all(run, draw(run, plan, None, None), "<b>ann</b>\u202e")
    for said in (refused, bakeoff("judge", "audit", "--markdown"), bakeoff("compare", NAME, "--markdown")):
        assert said.stdout
        escaped = re.sub(r"\\.", "", said.stdout)
        outside = re.sub(r"(`+)(?!`).*?[^`]\1(?!`)", "", escaped)
        assert "<img" not in outside
        assert "![x]" not in outside
        assert "\x1b" not in said.stdout
        assert "\u202e" not in said.stdout
