"""SuiteGates on a whole run."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from bakeoff._kernel.choices import ComparisonGate
from bakeoff.record import Score
from bakeoff.report.gates import Allowance, GateResult, GateRule, gates_sentence
from bakeoff.report.suites.eval_file import EvalFile, parse_eval_file
from bakeoff.report.suites.gates import SuiteGates, judge_gates
from bakeoff.report.suites.outcomes import EvalOutcome

from .evals import broken, file_bytes, outcome, suite, whole_summary


def kept(outcomes: Sequence[EvalOutcome], **more: Any) -> EvalFile:
    """An earlier run, as its file has it."""
    return parse_eval_file(file_bytes(outcomes, **more), "before.json")


def kept_suite(values: Sequence[float | None]) -> EvalFile:
    return kept(suite(values))


def judged(gates: SuiteGates, outcomes: Sequence[EvalOutcome], *, complete: bool = True) -> GateResult:
    [found] = judge_gates(gates, outcomes, whole_summary(outcomes, complete=complete))
    return found


def test_a_pass_rate_is_of_the_cases_that_were_judged() -> None:
    cases = [*suite([1.0] * 9 + [0.0]), outcome(0.1, threshold=None)]
    assert judged(SuiteGates(min_pass_rate=0.9), cases).met is True
    tight = judged(SuiteGates(min_pass_rate=0.91), cases)
    assert tight.met is False
    assert tight.sentence == "9 of 10 passed (90.0 %), wanted 91.0 %"


@pytest.mark.parametrize(
    ("allowed", "met"), [("0", None), ("1", None), ("2", True), ("0.1", None), ("0.17", True), ("20%", True)]
)
@pytest.mark.parametrize(
    "gates", [SuiteGates(min_pass_rate=1.0), SuiteGates(min_score=1.0), SuiteGates(baseline=kept_suite([1.0] * 10))]
)
def test_undecided_cases_leave_every_gate_undecided_unless_that_many_are_allowed(
    gates: SuiteGates, allowed: str, met: bool | None
) -> None:
    lost = [outcome(None, f"t.py::test[{name}]", records=(broken(f"no {name}"),)) for name in "ab"]
    found = judged(replace(gates, allowed=Allowance.parse(allowed)), [*suite([1.0] * 10), *lost])
    assert found.met is met
    words = f"2 of 12 undecided (2 lost to a grader); {Allowance.parse(allowed)} allowed (--eval-allow-undecided)"
    assert found.sentence.endswith(words) if met else found.sentence.startswith(words), "forgiveness is printed, too"
    assert ("t.py::test[a]: scorer 'Judge': ValueError: no a; t.py::test[b]: " in found.sentence) is not met


@pytest.mark.parametrize("text", ["-1", "2.5", "many", "", "101%", "nan"])
def test_an_allowance_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        Allowance.parse(text)


def test_cases_that_nobody_scored_leave_the_gate_of_scores_undecided() -> None:
    found = judged(
        SuiteGates(min_score=0.9), [outcome(1.0, threshold=None), outcome(None, "t.py::test[b]", threshold=None)]
    )
    assert found.met is None
    assert found.sentence.startswith("1 of 2 undecided (1 without a score); 0 allowed (--eval-allow-undecided); ")


def test_a_run_that_was_stopped_meets_no_gate() -> None:
    found = judged(SuiteGates(min_pass_rate=0.5), suite([1.0, 1.0]), complete=False)
    assert found.met is None
    assert found.sentence.startswith("the run was stopped before its end")
    assert judged(SuiteGates(min_pass_rate=1.0), suite([1.0, 0.0]), complete=False).met is False, "it can fail"


def test_a_pass_rate_of_nothing_that_can_pass_is_not_met() -> None:
    assert judged(SuiteGates(min_pass_rate=0.0), [outcome(1.0, threshold=None)]).met is False


@pytest.mark.parametrize("gates", [SuiteGates(min_pass_rate=0.5), SuiteGates(min_score=0.5)])
def test_a_number_of_which_everything_got_lost_is_undecided(gates: SuiteGates) -> None:
    found = judged(gates, [outcome(None, records=(broken(),))])
    assert found.met is None
    assert found.sentence.startswith("1 of 1 undecided (1 lost to a grader)")
    assert "no case has a threshold" not in found.sentence


def test_a_mean_score_is_of_the_cases_that_have_one() -> None:
    cases = suite([1.0, 0.5])
    assert judged(SuiteGates(min_score=0.75), cases).met is True
    assert judged(SuiteGates(min_score=0.76), cases).sentence == "mean score 0.750 over 2 cases, wanted 0.76"


def test_no_eval_meets_no_gate() -> None:
    gates = judge_gates(SuiteGates(0.0, 0.0, kept_suite([1.0])), [], whole_summary([]))
    assert [(gate.option, gate.met) for gate in gates] == [
        ("--eval-min-pass-rate", False),
        ("--eval-fail-under", False),
        ("--eval-baseline", False),
    ]
    assert judge_gates(SuiteGates(), [], whole_summary([])) == ()


def test_a_significant_regression_shuts_the_gate() -> None:
    found = judged(SuiteGates(baseline=kept_suite([1.0] * 20)), suite([0.0] * 10 + [1.0] * 10))
    assert found.met is False
    assert "regressed: -50.0 points" in found.sentence
    worse = "worse on these cases: 10 of 20 got worse, none better, which chance does with p = 0.00098"
    assert found.sentence.startswith(f"tests/test_x.py::test_capitals: {worse}; on cases like these: ")


def test_a_loss_that_chance_explains_fails_nothing_unless_undecidable_is_to_fail() -> None:
    before, after = suite([1.0] * 20), suite([0.0] + [1.0] * 19)
    found = judged(SuiteGates(baseline=kept(before)), after)
    assert found.met is True
    assert "on these cases: 1 of 20 got worse, none better: too few cases to call it; " in found.sentence
    assert "on cases like these: no regression shown (could have missed up to 24.7 points); -5.0 " in found.sentence
    assert found.sentence.endswith(
        "BUT EVERY CASE THAT CHANGED GOT WORSE: for a deterministic application use --eval-gate no-new-failures"
    )
    both = judged(SuiteGates(baseline=kept_suite([0.0, *[1.0] * 19])), suite([1.0, 0.0] + [1.0] * 18))
    assert both.met is True
    assert "no-new-failures" not in both.sentence
    strict = judged(SuiteGates(baseline=kept(before), rule=GateRule(undecidable="fail")), after)
    assert strict.met is False
    assert strict.sentence.endswith("; undecidable counts as failed")


def test_five_cases_that_all_fell_from_pass_to_fail_shut_the_gate() -> None:
    found = judged(SuiteGates(baseline=kept_suite([1.0] * 5)), suite([0.0] * 5))
    assert found.met is False
    assert "regressed: all 5 cases went from pass to fail" in found.sentence


def test_many_small_suites_that_all_fell_shut_the_gate() -> None:
    names = [f"test_{place}" for place in range(6)]
    before = [case for name in names for case in suite([1.0] * 3, name=name)]
    after = [case for name in names for case in suite([0.0] * 3, name=name)]
    found = judged(SuiteGates(baseline=kept(before)), after)
    assert found.met is False
    assert found.sentence.startswith("all together: worse on these cases: 18 of 18 got worse, none better")
    assert "on cases like these: regressed: all 18 cases went from pass to fail" in found.sentence
    assert judged(SuiteGates(baseline=kept(before[:2])), after[:2]).met is True, "two cases may be chance"


def test_cases_that_are_gone_are_counted() -> None:
    found = judged(SuiteGates(baseline=kept_suite([1.0] * 5)), suite([1.0] * 3))
    assert found.met is None
    assert found.sentence.startswith("2 cases of the baseline cannot be compared; 0 allowed (--eval-allow-undecided): ")
    assert "test_capitals[case-3]: it is gone; " in found.sentence
    assert judged(SuiteGates(baseline=kept_suite([1.0] * 5), allowed=Allowance(2)), suite([1.0] * 3)).met is True


def test_the_same_scores_meet_the_gate() -> None:
    found = judged(SuiteGates(baseline=kept_suite([1.0, 0.5, 0.0])), suite([1.0, 0.5, 0.0]))
    assert found.met is True
    shown = "none of 3 changed; on cases like these: no regression shown (could have missed up to 70.8 points)"
    assert found.sentence.startswith(f"tests/test_x.py::test_capitals: on these cases: {shown}")
    enough = judged(SuiteGates(baseline=kept_suite([1.0] * 100), rule=GateRule(margin=0.05)), suite([1.0] * 100))
    assert "on cases like these: equivalence shown" in enough.sentence


def test_an_improvement_meets_the_gate() -> None:
    assert judged(SuiteGates(baseline=kept_suite([0.0] * 20)), suite([1.0] * 20)).met is True


def test_a_regression_of_one_suite_is_not_hidden_by_another() -> None:
    before = [*suite([1.0] * 20), *suite([0.0] * 20, name="test_other")]
    after = [*suite([0.0] * 20), *suite([1.0] * 20, name="test_other")]
    found = judged(SuiteGates(baseline=kept(before)), after)
    assert found.met is False
    assert found.sentence.startswith("tests/test_x.py::test_capitals: worse on these cases: 20 of 20 got worse")


def test_many_suites_do_not_find_a_regression_by_chance() -> None:
    worse = [0.0] * 6 + [1.0] * 14
    assert judged(SuiteGates(baseline=kept_suite([1.0] * 20)), suite(worse)).met is False, "alone it is significant"
    names = [f"test_{place}" for place in range(10)]
    before = [case for name in names for case in suite([1.0] * 20, name=name)]
    after = [case for name in names for case in suite(worse if name == "test_0" else [1.0] * 20, name=name)]
    assert judged(SuiteGates(baseline=kept(before)), after).met is True, "among ten it is what chance gives"


def test_intervals_of_several_suites_are_adjusted_with_their_p_values() -> None:
    worse = [0.0] * 6 + [1.0] * 14
    before = [case for name in ("test_a", "test_b") for case in suite([1.0] * 20, name=name)]
    after = [*suite(worse, name="test_a"), *suite([0.0] + [1.0] * 19, name="test_b")]
    found = judged(SuiteGates(baseline=kept(before)), after)
    alone = "6 of 20 got worse, none better: too few cases to call it; on cases like these: no regression shown"
    assert f"test_a: on these cases: {alone}" in found.sentence
    assert "98.75 % interval -58.4 to +2.2, p = 0.12 (20 pairs of cases)" in found.sentence, (
        "neither rules out that nothing changed"
    )
    assert found.met is False, "both suites together show a loss"
    assert found.sentence.startswith("all together: worse on these cases: 7 of 40 got worse, none better")


def test_a_page_names_the_gates_that_failed_the_run_first() -> None:
    gates = SuiteGates(0.9, 0.1, kept(suite([1.0], name="test_old")))
    results = judge_gates(gates, suite([1.0, 0.0]), whole_summary(suite([1.0, 0.0])))
    assert gates_sentence(results).startswith("2 of 3 gates did not pass: --eval-min-pass-rate FAILED: 1 of 2 passed")
    assert gates_sentence(results[1:2]) == "The gate passed."
    assert gates_sentence(()) == ""


def test_an_edited_case_is_another_case() -> None:
    before = suite([1.0] * 20)
    after = [case.model_copy(update={"input": "something else"}) for case in suite([0.0] * 10 + [1.0] * 10)]
    found = judged(SuiteGates(baseline=kept(before)), after)
    assert found.met is False, "the cases are others, and yet the loss is shown"
    assert "test_capitals[case-0]: its content has changed" in found.sentence
    assert "no case in common, 20 with changed content" in found.sentence


def test_suites_without_a_partner_are_named_and_one_that_is_gone_shuts_the_gate() -> None:
    old, new = suite([1.0, 1.0], name="test_old"), suite([1.0, 1.0], name="test_new")
    found = judged(SuiteGates(baseline=kept([*old, *suite([1.0])])), [*suite([1.0]), *new])
    assert found.met is None
    assert found.sentence.startswith("2 cases of the baseline cannot be compared; 0 allowed")
    assert (
        judged(SuiteGates(baseline=kept([*old, *suite([1.0])]), allowed=Allowance(2)), [*suite([1.0]), *new]).met
        is True
    )
    found = judged(SuiteGates(baseline=kept(old), allowed=Allowance(2)), new)
    assert found.met is None
    assert found.sentence.startswith("no suite is in both runs; ")
    assert "1 suite only in the baseline: tests/test_x.py::test_old" in found.sentence
    assert "1 suite not in the baseline: tests/test_x.py::test_new" in found.sentence


def test_too_many_losses_forbid_a_verdict() -> None:
    lost = [
        outcome(None, f"tests/test_x.py::test_capitals[case-{place}]", records=(broken(),), problem="boom")
        for place in range(10)
    ]
    found = judged(SuiteGates(baseline=kept_suite([1.0] * 20), allowed=Allowance(10)), [*lost, *suite([0.0] * 20)[10:]])
    assert found.met is None
    assert "refused" in found.sentence


@pytest.mark.parametrize(
    "gates", [SuiteGates(min_pass_rate=0.0), SuiteGates(min_score=0.0), SuiteGates(baseline=kept([]))]
)
def test_a_gate_of_nought_is_a_gate(gates: SuiteGates) -> None:
    assert len(judge_gates(gates, [], whole_summary([]))) == 1


def scored_by(*names: str, value: float = 1.0, cases: int = 12, **more: Any) -> list[EvalOutcome]:
    scores = {"scores": tuple(Score(name=name, value=value) for name in names)}
    return [outcome(value, f"t.py::test[{place}]", record=scores, **more) for place in range(cases)]


@pytest.mark.parametrize("gate", ["regression", "no-new-failures"])
@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        (scored_by("exact", value=0.0), scored_by("contains"), "scorers: 'exact' in the baseline, 'contains' in"),
        (scored_by("a"), scored_by("a", "b", value=0.0), "scorers: 'a' in the baseline, 'a, b' in"),
        (
            [*scored_by("a", cases=2)[:1], *scored_by("b", cases=2)[1:]],
            [*scored_by("b", cases=2)[:1], *scored_by("a", cases=2)[1:]],
            "scorers: 'a' in the baseline, 'b' in",
        ),
        (
            scored_by("a"),
            scored_by("a", threshold=0.2),
            "rule of cases: 'mean at 0.5' in the baseline, 'mean at 0.2' in",
        ),
        (
            scored_by("a", threshold=None),
            scored_by("a"),
            "rule of cases: 'mean at None' in the baseline, 'mean at 0.5' in",
        ),
    ],
)
def test_scores_that_mean_something_else_are_not_compared(
    before: list[EvalOutcome], after: list[EvalOutcome], named: str, gate: ComparisonGate
) -> None:
    found = judged(SuiteGates(baseline=kept(before), rule=GateRule(gate), allowed=Allowance(12)), after)
    assert found.met is None
    first = "not comparable: t.py::test: "
    assert found.sentence.startswith(first + named)
    assert "improved" not in found.sentence


def test_neither_the_order_of_scorers_nor_a_new_case_with_another_one_is_a_difference() -> None:
    before = scored_by("a", "b")
    new = outcome(1.0, "t.py::test[new]", record={"scores": (Score(name="c", value=1.0),)}, threshold=0.9)
    assert judged(SuiteGates(baseline=kept(before)), [*scored_by("b", "a"), new]).met is True


def test_cases_without_a_threshold_cannot_fail_anew() -> None:
    rule = GateRule("no-new-failures")
    recorded = kept(scored_by("a", threshold=None))
    none = judged(
        SuiteGates(baseline=recorded, rule=rule, allowed=Allowance(12)), scored_by("a", value=0.0, threshold=None)
    )
    assert none.met is None
    assert none.sentence.startswith("no case in both runs has a threshold, so that none passed or failed")
    before = kept([*suite([1.0]), *scored_by("a", cases=2, threshold=None)])
    after = [*suite([1.0]), *scored_by("a", cases=2, value=0.0, threshold=None)]
    some = judged(SuiteGates(baseline=before, rule=rule), after)
    assert some.met is None
    assert some.sentence.startswith("2 cases of the baseline cannot be compared; 0 allowed (--eval-allow-undecided): ")
    assert "t.py::test[0]: not both runs have a threshold for it" in some.sentence
    assert judged(SuiteGates(baseline=before, rule=rule, allowed=Allowance(2)), after).met is True
