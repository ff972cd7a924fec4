"""Test that what each tool logs arrives where reports look for it, and its own numbers come out again."""

import json
from pathlib import Path

import pytest

from bakeoff.logs.reader import Choices, ForeignLogReader, import_log
from bakeoff.plan import Plan
from bakeoff.record import TESTS, Reasoning, Record, Text, ToolCall, Usage
from bakeoff.report.exports.inspect_log import write_inspect_log
from bakeoff.report.readers import Source
from bakeoff.report.run_records import RunRecords
from bakeoff.report.summary import SubjectSummary, summarise

from ..report.runs import plan_of, record_of
from .fixtures import LOGS
from .test_hostile_logs import archive


def opened(name: str, **choices: object) -> Source:
    return Source(LOGS / name, ForeignLogReader(Choices.model_validate(choices)))


def by_case(source: Source) -> dict[tuple[str, int], Record]:
    return {(record.case, record.round): record for record in source.records()}


def subject_of(source: Source, name: str | None = None) -> SubjectSummary:
    subjects = summarise(source.plan, source.records()).subjects
    return next(each for each in subjects if name in (None, each.subject))


def test_an_inspect_sample_is_a_case_and_an_epoch_a_round() -> None:
    source = opened("inspect.eval")
    plan, records = source.plan, by_case(source)
    assert {case.id for case in plan.cases} == {"easy", "tool", "sometimes", "wrong", "broken"}
    assert plan.rounds == 2
    assert [subject.name for subject in plan.subjects] == ["mockllm/model"]
    tool = next(case for case in plan.cases if case.id == "tool")
    assert (tool.prompt, tool.expected, tool.tags) == ("What is the sum of 20 and 22?", "42", {"level": "hard"})
    found = records["tool", 1].transcript
    assert found is not None
    [call] = found.tool_calls
    assert (call.name, call.arguments, call.result, call.id) == ("add", {"x": 20, "y": 22}, "42", "call-1")
    assert found.output == "The sum is 42, please."
    # Inspect counts cached tokens apart from the others.
    assert (found.usage.input, found.usage.output, found.usage.cache_read, found.usage.requests) == (60, 10, 20, 2)
    assert found.usage.cost is None
    assert records["tool", 1].scores[0].reason == "The sum is 42, please."
    broken = records["broken", 0].failure
    assert broken is not None
    assert (broken.kind, broken.type, broken.message) == ("infra", "ConnectionError", "connection reset by peer")
    assert "connection reset" in broken.detail


@pytest.mark.parametrize(
    "name", ["inspect.eval", "inspect.json", "several-scorers.eval", "reduced.eval", "pair/a.eval", "pair/b.eval"]
)
@pytest.mark.journey  # it imports Inspect
def test_the_accuracy_of_inspect_is_our_score(name: str) -> None:
    read_eval_log = pytest.importorskip("inspect_ai.log", reason="pip install 'bakeoff[bench]'").read_eval_log
    results = read_eval_log(str(LOGS / name), header_only=True).results
    assert results is not None
    for score in results.scores:
        scorer = score.name if score.scorer == score.name else f"{score.scorer}/{score.name}"
        scorer += f" ({score.reducer})" if score.reducer not in (None, "mean") else ""
        [metric] = [each.value for key, each in score.metrics.items() if key in ("accuracy", "mean")]
        assert subject_of(opened(name, scorers=(scorer,))).score == pytest.approx(metric), scorer


def test_scores_that_are_not_pass_or_fail_are_only_recorded_unless_a_threshold_is_given() -> None:
    assert opened("inspect.eval").plan.threshold == 1.0
    brevity = ("style/brevity",)
    assert opened("several-scorers.eval", scorers=brevity).plan.threshold is None
    assert subject_of(opened("several-scorers.eval", scorers=brevity, threshold=0.25)).passed == 8
    assert subject_of(opened("several-scorers.eval", scorers=("includes",))).passed == 5


def test_the_headline_of_promptfoo_is_our_pass_rate() -> None:
    stats = json.loads((LOGS / "promptfoo.json").read_text())["results"]["stats"]
    source = opened("promptfoo.json")
    subjects = summarise(source.plan, source.records()).subjects
    assert sum(each.passed for each in subjects) == stats["successes"]
    assert sum(each.scored - each.passed for each in subjects) == stats["failures"]
    assert sum(sum(each.lost.values()) for each in subjects) == stats["errors"]
    assert sum(each.spent.tokens for each in subjects) == stats["tokenUsage"]["total"]


def test_a_promptfoo_test_is_a_case_repeats_are_rounds_and_assertions_are_shown() -> None:
    source = opened("promptfoo.json")
    plan = source.plan
    assert [(case.id, case.prompt) for case in plan.cases][:2] == [
        ("France", '{\n "country": "France"\n}'),
        ("country=Italy", '{\n "country": "Italy"\n}'),
    ]
    assert (plan.rounds, [each.name for each in plan.subjects]) == (2, ["echo", "atlas"])
    assert plan.cases[0].tags == {"continent": "Europe"}
    assert plan.cases[0].expected == "Paris"
    records = {(each.case, each.subject, each.round): each for each in source.records()}
    echoed = records["France", "echo", 0]
    assert echoed.transcript is not None
    assert echoed.transcript.metadata["prompt"] == "Name the capital of France."
    tests = echoed.scores[0].metadata[TESTS]
    assert isinstance(tests, list)
    assert [each["name"] for each in tests if isinstance(each, dict)] == [
        "contains Paris",
        "javascript output.length < 40",
    ]
    half = records["half", "atlas", 1]
    assert (half.verdict, half.value) == ("pass", 1.0), "promptfoo passed it at its own threshold"
    assert [(score.name, score.value, score.metadata["value"]) for score in half.scores[1:]] == [
        ("name", None, 1.0),
        ("country", None, 0.0),
    ]
    assert records["France", "atlas", 0].spent.cost == pytest.approx(0.0001)
    assert records["broken", "atlas", 0].spent.cost is None
    assert records["broken", "atlas", 0].verdict == "infra"


def test_several_prompts_of_promptfoo_are_several_subjects_on_the_same_cases(tmp_path: Path) -> None:
    row = json.loads((LOGS / "promptfoo.jsonl").read_text().splitlines()[0])
    rows = [
        {**row, "promptIdx": place, "prompt": {"raw": f"{word} France", "label": f"{word} {{{{country}}}}"}}
        for place, word in enumerate(("Ask", "Beg"))
    ]
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(map(json.dumps, rows)))
    plan = Source(log, ForeignLogReader()).plan
    assert [case.id for case in plan.cases] == ["France"]
    assert [each.name for each in plan.subjects] == ["echo · Ask {{country}}", "echo · Beg {{country}}"]


def test_metrics_of_deepeval_pass_at_their_own_thresholds_and_a_metric_that_broke_is_a_grader() -> None:
    source = opened("deepeval.json", scorers=("Overlap",))
    records, short = by_case(source), by_case(opened("deepeval.json", scorers=("Short",)))
    assert [subject.name for subject in source.plan.subjects] == ["none"]
    assert [each["peru", 0].value for each in (records, short)] == [1.0, 0.0]
    assert short["peru", 0].scores[0].metadata == {"score": 0.0, "threshold": 0.5}
    nowhere = records["nowhere", 0].failure
    assert nowhere is not None
    assert (nowhere.kind, nowhere.type) == ("grader", "ConnectionError")
    france = records["france", 0]
    assert france.transcript is not None
    assert [(call.name, call.result) for call in france.transcript.tool_calls] == [("atlas", "Paris")]
    assert (france.spent.cost, france.attempt and france.attempt.seconds) == (0.0002, 1.5)
    assert records["italy", 0].spent.cost is None
    assert records["italy", 0].attempt is None, "DeepEval does not say how long the answer took"
    whole = json.loads((LOGS / "deepeval.json").read_text())
    told = {each["name"]: each["success"] for each in whole["testCases"]}
    ours = {case: record.verdict == short[case, 0].verdict == "pass" for (case, _), record in records.items()}
    assert ours == told
    for metric in whole["metricsScores"]:
        summary = subject_of(opened("deepeval.json", scorers=(metric["metric"],)))
        counted = (summary.passed, summary.scored - summary.passed, sum(summary.lost.values()))
        assert counted == (metric["passes"], metric["fails"], metric["errors"])


def test_each_assertion_of_pydantic_evals_is_a_score_and_numbers_count_if_they_are_chosen() -> None:
    source = opened("pydantic-evals.json", scorers=("EqualsExpected",))
    records, fragile = by_case(source), by_case(opened("pydantic-evals.json", scorers=("Fragile",)))
    assert source.plan.name == "capitals · EqualsExpected"
    assert {case for case, _ in records} == {"France", "Italy", "Nowhere", "Peru"}
    assert (records["Italy", 1].value, fragile["Italy", 1].value) == (0.0, 1.0)
    assert records["Nowhere", 0].verdict == "infra"
    assert (records["Peru", 0].verdict, fragile["Peru", 0].verdict) == ("pass", "grader")
    counted = subject_of(opened("pydantic-evals.json", scorers=("brevity",)))
    assert counted.score == pytest.approx((1 / 6 + 1 / 7 + 1 / 5) / 3), "as its own table of averages has it"


def test_swebench_instances_are_resolved_or_lost_and_empty_patches_fail() -> None:
    told = json.loads((LOGS / "acme__coder-1.sample-run.json").read_text())
    source = opened("acme__coder-1.sample-run.json")
    records = by_case(source)
    assert {case for (case, _), each in records.items() if each.verdict == "pass"} == set(told["resolved_ids"])
    lost = {case for (case, _), each in records.items() if each.verdict == "infra"}
    assert lost == set(told["error_ids"]) | set(told["infra_failure_ids"])
    assert records["acme__lib-7", 0].scores[0].reason == "the patch is empty"
    assert source.plan.subjects[0].name == "acme/coder-1"
    assert len(source.plan.cases) == told["total_instances"], "instances that were not run are planned"
    instance = by_case(opened("swebench-folder/acme__coder-1"))["acme__lib-3", 0]
    assert instance.unit_tests is not None
    assert (instance.unit_tests.passed, instance.unit_tests.total) == (2, 3)
    assert "+acme__lib-3" in instance.artefacts["patch.diff"]


def test_a_harbor_reward_counts_unless_an_exception_makes_it_invalid() -> None:
    records = by_case(opened("harbor-job"))
    assert records["fix-tests", 1].verdict == "pass", "the agent ran out of time, which Harbor grades"
    assert [records["broken-image", round_].verdict for round_ in (0, 1)] == ["infra", "infra"]
    assert records["odd-verifier", 0].verdict == "grader"
    first = records["hello-world", 0]
    phases = [phase and phase.seconds for phase in (first.prepare, first.attempt, first.score)]
    assert phases == [60.0, 10.0, 5.0]
    stats = json.loads((LOGS / "harbor-job" / "result.json").read_text())["stats"]
    spent = sum((each.spent for each in records.values()), start=type(first.spent)())
    assert (spent.input, spent.output, spent.cache_read) == (
        stats["n_input_tokens"],
        stats["n_output_tokens"],
        stats["n_cache_tokens"],
    )
    assert spent.cost == pytest.approx(stats["cost_usd"])


def test_an_atif_trajectory_is_a_transcript_without_a_score() -> None:
    [record] = opened("atif.json").records()
    found = record.transcript
    assert found is not None
    kinds = [[type(part) for part in step.parts] for step in found.steps]
    assert kinds == [[Reasoning, Text, ToolCall], [Text]]
    assert (found.tool_calls[0].arguments, found.tool_calls[0].result) == ({"command": "ls"}, "README.md")
    assert [step.seconds for step in found.steps] == [5.0, 5.0]
    assert (record.value, record.verdict, record.spent.cost) == (None, "grader", 0.003)


def test_controls_of_harbor_are_controls(tmp_path: Path) -> None:
    result = json.loads((LOGS / "harbor-job" / "hello-world__0000001" / "result.json").read_text())
    result["agent_info"] = {"name": "oracle", "version": "1"}
    (tmp_path / "job" / "one").mkdir(parents=True)
    (tmp_path / "job" / "one" / "result.json").write_text(json.dumps(result))
    plan = Source(tmp_path / "job", ForeignLogReader()).plan
    assert (plan.subjects[0].kind, plan.compared) == ("oracle", ())


def test_a_limit_without_a_score_is_lost_and_one_with_a_score_counts(tmp_path: Path) -> None:
    limit = {"limit": {"type": "token", "limit": 100}}
    log = archive(tmp_path / "log.eval", limit, {**limit, "scores": {"s": {"value": "I"}}})
    assert [record.verdict for record in Source(log, ForeignLogReader()).records()] == ["budget", "fail"]


def test_a_log_that_stopped_early_still_has_all_its_cases_planned(tmp_path: Path) -> None:
    header = {"eval": {"task": "t", "model": "m", "dataset": {"sample_ids": [0, 1, 2]}, "config": {"epochs": 2}}}
    log = archive(
        tmp_path / "log.eval", {"scores": {"s": {"value": "C"}}}, **{"header.json": json.dumps(header).encode()}
    )
    summary = subject_of(Source(log, ForeignLogReader()))
    assert (summary.passed, summary.scored, summary.planned) == (1, 1, 6)


def test_what_we_export_for_inspect_comes_back_with_the_same_verdicts(tmp_path: Path) -> None:
    plan: Plan = plan_of(6, ["s"], rounds=2)
    records = [record_of(trial, float(trial.index % 3 > 0)) for trial in plan.trials()]
    log = tmp_path / "ours.eval"
    with RunRecords(plan, iter(records)) as run_records:
        write_inspect_log("run", plan, plan.subjects[0], run_records, log)
    run = import_log(log, tmp_path / "results", Choices()).folder
    back = {(each.case, each.round): each.verdict for each in run.latest_records(run.read_plan())}
    assert back == {(each.case, each.round): each.verdict for each in records}


def test_a_time_that_a_log_does_not_name_is_unknown_and_not_zero() -> None:
    source = opened("acme__coder-1.sample-run.json")
    assert subject_of(source).seconds is None
    assert not any(record.timed for record in source.records() if record.verdict.counts)
    assert subject_of(opened("harbor-job")).seconds == pytest.approx(75.0)


def test_scores_that_inspect_reduces_to_one_for_all_epochs_are_scorers_with_one_round_each() -> None:
    log = ForeignLogReader().open(LOGS / "reduced.eval")
    assert log.scorers[:4] == ("includes", "model_graded_qa", "includes (max)", "includes (pass_at_2)")
    plain, most = (opened("reduced.eval", scorers=(name,)) for name in ("includes", "includes (max)"))
    assert (plain.plan.rounds, most.plan.rounds) == (3, 1)
    sums = [sum((record.spent for record in each.records()), start=Usage()) for each in (plain, most)]
    assert sums[0].tokens == sums[1].tokens == 525 + 1260, "the answers and the judge of all epochs, as Inspect has it"
    judged = next(opened("reduced.eval", scorers=("model_graded_qa",)).records())
    assert judged.scores[0].metadata["judge"] == "mockllm/grader"
    assert judged.judging.tokens == 105


def test_vitest_counts_are_ours_and_exceptions_are_not_failures() -> None:
    for side, better in (("a", 0), ("b", 2)):
        told = json.loads((LOGS / "vitest-evals" / f"{side}.json").read_text())
        source = opened(f"vitest-evals/{side}.json")
        subject, records = subject_of(source), by_case(source)
        assert subject.passed == told["numPassedTests"] == 2 + better
        assert subject.scored - subject.passed + sum(subject.lost.values()) == told["numFailedTests"]
        lost = {case.rpartition("> ")[2]: each for (case, _), each in records.items() if not each.verdict.counts}
        assert {name: each.verdict for name, each in lost.items()} == {
            "capitals knows Nowhere": "infra",
            "other ways to fail has a broken judge": "grader",
        }
        assert lost["capitals knows Nowhere"].failure is not None
        assert lost["capitals knows Nowhere"].failure.message == "503 Service Unavailable"
        tests = [test["meta"].get("eval", {}) for test in told["testResults"][0]["assertionResults"] if test["meta"]]
        for scorer in ("Right", "Short"):
            values = [each["score"] for test in tests for each in test.get("scores", ()) if each["name"] == scorer]
            ours = opened(f"vitest-evals/{side}.json", scorers=(scorer,))
            assert subject_of(ours).score == pytest.approx(sum(values) / len(values))
        assert source.plan.subjects[0].options["model"] == f"atlas-{1 + better // 2}"


def test_each_metric_of_lm_eval_and_each_of_its_filters_is_a_scorer() -> None:
    for model in ("fake-small", "fake-large"):
        folder = LOGS / "lm-eval" / model
        [file] = folder.glob("results_*.json")
        told = json.loads(file.read_text())["results"]["sums"]
        [samples] = folder.glob("samples_*.jsonl")
        for scorer in ("exact_match,strict-match", "exact_match,flexible-extract"):
            source = opened(str(samples.relative_to(LOGS)), scorers=(scorer,))
            assert subject_of(source).score == pytest.approx(told[scorer])
            assert (source.plan.subjects[0].name, len(source.plan.cases)) == (model, told["sample_len"])
        record = by_case(opened(str(samples.relative_to(LOGS)), scorers=("exact_match,flexible-extract",)))["3", 0]
        assert record.transcript is not None
        assert (record.transcript.output, record.spent.cost) == ("8", None)
        assert "What is 4 + 4?" in str(record.transcript.metadata["prompt"])
