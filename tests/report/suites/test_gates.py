"""SuiteGates on a whole run."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bakeoff.report.gates import Allowance
from bakeoff.report.suites.blocks import gates_sentence
from bakeoff.report.suites.gates import SuiteGates, judge_gates
from bakeoff.report.suites.numbers import GateResult
from bakeoff.report.suites.outcomes import EvalOutcome

from .evals import broken, outcome, suite, whole_summary


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
    ("allowed", "met"), [("0", False), ("1", False), ("2", True), ("0.1", False), ("0.17", True), ("20%", True)]
)
@pytest.mark.parametrize(
    "gates", [SuiteGates(min_pass_rate=1.0), SuiteGates(min_score=1.0), SuiteGates(baseline=suite([1.0] * 10))]
)
def test_undecided_cases_shut_every_gate_unless_that_many_are_allowed(
    gates: SuiteGates, allowed: str, met: bool
) -> None:
    lost = [outcome(None, f"t.py::test[{name}]", records=(broken(f"no {name}"),)) for name in "ab"]
    found = judged(replace(gates, allowed=Allowance.parse(allowed)), [*suite([1.0] * 10), *lost])
    assert found.met is met
    words = "2 of 12 are undecided, and "
    assert found.sentence.startswith(words) is not met
    assert ("t.py::test[a]: scorer 'Judge': ValueError: no a; t.py::test[b]: " in found.sentence) is not met


@pytest.mark.parametrize("text", ["-1", "2.5", "many", "", "101%", "nan"])
def test_an_allowance_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        Allowance.parse(text)


def test_cases_that_nobody_scored_shut_the_gate_of_scores() -> None:
    found = judged(
        SuiteGates(min_score=0.9), [outcome(1.0, threshold=None), outcome(None, "t.py::test[b]", threshold=None)]
    )
    assert found.met is False
    assert found.sentence.startswith("1 of 2 is undecided, and 0 allowed (--eval-allow-undecided): t.py::test[b]: ")


def test_a_run_that_was_stopped_meets_no_gate() -> None:
    found = judged(SuiteGates(min_pass_rate=0.5), suite([1.0, 1.0]), complete=False)
    assert found.met is False
    assert found.sentence.startswith("the run was stopped before its end")


def test_a_pass_rate_of_nothing_that_can_pass_is_not_met() -> None:
    assert judged(SuiteGates(min_pass_rate=0.0), [outcome(1.0, threshold=None)]).met is False


def test_a_mean_score_is_of_the_cases_that_have_one() -> None:
    cases = suite([1.0, 0.5])
    assert judged(SuiteGates(min_score=0.75), cases).met is True
    assert judged(SuiteGates(min_score=0.76), cases).sentence == "mean score 0.750 over 2 cases, wanted 0.76"


def test_no_eval_meets_no_gate() -> None:
    gates = judge_gates(SuiteGates(0.0, 0.0, suite([1.0])), [], whole_summary([]))
    assert [(gate.option, gate.met) for gate in gates] == [
        ("--eval-min-pass-rate", False),
        ("--eval-min-score", False),
        ("--eval-baseline", False),
    ]
    assert judge_gates(SuiteGates(), [], whole_summary([])) == ()


def test_a_significant_regression_shuts_the_gate() -> None:
    found = judged(SuiteGates(baseline=suite([1.0] * 20)), suite([0.0] * 10 + [1.0] * 10))
    assert found.met is False
    assert "regressed: -50.0 points" in found.sentence
    assert "20 pairs of cases, 10 worse and 0 better" in found.sentence


def test_a_loss_that_chance_explains_fails_nothing_unless_undecidable_is_to_fail() -> None:
    before, after = suite([1.0] * 20), suite([0.0] + [1.0] * 19)
    found = judged(SuiteGates(baseline=before), after)
    assert found.met is True
    assert "undecidable: no regression shown (could have missed up to " in found.sentence
    strict = judged(SuiteGates(baseline=before, undecidable="fail"), after)
    assert strict.met is False
    assert strict.sentence.endswith("; undecidable counts as failed")


def test_five_cases_that_all_fell_from_pass_to_fail_shut_the_gate() -> None:
    found = judged(SuiteGates(baseline=suite([1.0] * 5)), suite([0.0] * 5))
    assert found.met is False
    assert "regressed: all 5 cases went from pass to fail" in found.sentence


def test_many_small_suites_that_all_fell_shut_the_gate() -> None:
    names = [f"test_{place}" for place in range(6)]
    before = [case for name in names for case in suite([1.0] * 3, name=name)]
    after = [case for name in names for case in suite([0.0] * 3, name=name)]
    found = judged(SuiteGates(baseline=before), after)
    assert found.met is False
    assert (
        "all 18 cases of all 6 comparisons went from pass to fail, which chance does with p ≤ 2.9e-11" in found.sentence
    )
    assert judged(SuiteGates(baseline=before[:2]), after[:2]).met is True, "two cases may be chance"


def test_cases_that_are_gone_are_counted() -> None:
    found = judged(SuiteGates(baseline=suite([1.0] * 5)), suite([1.0] * 3))
    assert found.met is False
    assert found.sentence.startswith("cases of the baseline are gone: 2 of 5 are undecided, and 0 allowed")
    assert judged(SuiteGates(baseline=suite([1.0] * 5), allowed=Allowance(2)), suite([1.0] * 3)).met is True
    assert "3 pairs of cases, 2 of the baseline gone or not scored" in found.sentence


def test_the_same_scores_meet_the_gate() -> None:
    found = judged(SuiteGates(baseline=suite([1.0, 0.5, 0.0])), suite([1.0, 0.5, 0.0]))
    assert found.met is True
    shown = "the same scores in 3 pairs of cases: no regression shown (could have missed up to 70.8 points)"
    assert found.sentence == f"tests/test_x.py::test_capitals: {shown}"
    enough = judged(SuiteGates(baseline=suite([1.0] * 100), margin=0.05), suite([1.0] * 100))
    assert "the same scores in 100 pairs of cases: equivalence shown" in enough.sentence


def test_an_improvement_meets_the_gate() -> None:
    assert judged(SuiteGates(baseline=suite([0.0] * 20)), suite([1.0] * 20)).met is True


def test_a_regression_of_one_suite_is_not_hidden_by_another() -> None:
    before = [*suite([1.0] * 20), *suite([0.0] * 20, name="test_other")]
    after = [*suite([0.0] * 20), *suite([1.0] * 20, name="test_other")]
    found = judged(SuiteGates(baseline=before), after)
    assert found.met is False
    assert found.sentence.startswith("tests/test_x.py::test_capitals: regressed")


def test_many_suites_do_not_find_a_regression_by_chance() -> None:
    worse = [0.0] * 6 + [1.0] * 14
    assert judged(SuiteGates(baseline=suite([1.0] * 20)), suite(worse)).met is False, "alone it is significant"
    names = [f"test_{place}" for place in range(10)]
    before = [case for name in names for case in suite([1.0] * 20, name=name)]
    after = [case for name in names for case in suite(worse if name == "test_0" else [1.0] * 20, name=name)]
    assert judged(SuiteGates(baseline=before), after).met is True, "among ten it is what chance gives"


def test_intervals_of_several_suites_are_adjusted_with_their_p_values() -> None:
    worse = [0.0] * 6 + [1.0] * 14
    before = [case for name in ("test_a", "test_b") for case in suite([1.0] * 20, name=name)]
    after = [*suite(worse, name="test_a"), *suite([0.0] + [1.0] * 19, name="test_b")]
    found = judged(SuiteGates(baseline=before), after)
    assert found.met is True
    assert "test_a: undecidable: no regression shown" in found.sentence
    assert "97.5 % interval -55.7 to +0.0, p = 0.062" in found.sentence, "neither rules out that nothing changed"


def test_a_page_names_the_gates_that_failed_the_run_first() -> None:
    gates = SuiteGates(0.9, 0.1, suite([1.0], name="test_old"))
    results = judge_gates(gates, suite([1.0, 0.0]), whole_summary(suite([1.0, 0.0])))
    assert gates_sentence(results) == (
        "2 of 3 gates failed the run: --eval-min-pass-rate NOT MET, --eval-baseline NOT MET."
    )
    assert gates_sentence(results[1:2]) == "The gate is met."
    assert gates_sentence(()) == ""


def test_an_edited_case_is_another_case() -> None:
    before = suite([1.0] * 20)
    after = [case.model_copy(update={"input": "something else"}) for case in suite([0.0] * 10 + [1.0] * 10)]
    found = judged(SuiteGates(baseline=before), after)
    assert "no case in common, 20 with changed content" in found.sentence


def test_suites_without_a_partner_are_named_and_one_that_is_gone_shuts_the_gate() -> None:
    old, new = suite([1.0, 1.0], name="test_old"), suite([1.0, 1.0], name="test_new")
    found = judged(SuiteGates(baseline=[*old, *suite([1.0])]), [*suite([1.0]), *new])
    assert found.met is False
    assert found.sentence.startswith("cases of the baseline are gone: 2 of 3 are undecided")
    assert judged(SuiteGates(baseline=[*old, *suite([1.0])], allowed=Allowance(2)), [*suite([1.0]), *new]).met is True
    found = judged(SuiteGates(baseline=old), new)
    assert found.met is False
    found = judged(SuiteGates(baseline=old, allowed=Allowance(2)), new)
    assert found.met is None
    assert found.sentence.startswith("no suite is in both runs; ")
    assert "1 suite only in the baseline: tests/test_x.py::test_old" in found.sentence
    assert "1 suite not in the baseline: tests/test_x.py::test_new" in found.sentence


def test_too_many_losses_forbid_a_verdict() -> None:
    lost = [
        outcome(None, f"tests/test_x.py::test_capitals[case-{place}]", records=(broken(),), problem="boom")
        for place in range(10)
    ]
    found = judged(SuiteGates(baseline=suite([1.0] * 20), allowed=Allowance(10)), [*lost, *suite([0.0] * 20)[10:]])
    assert found.met is None
    assert "refused" in found.sentence


@pytest.mark.parametrize("gates", [SuiteGates(min_pass_rate=0.0), SuiteGates(min_score=0.0), SuiteGates(baseline=[])])
def test_a_gate_of_nought_is_a_gate(gates: SuiteGates) -> None:
    assert len(judge_gates(gates, [], whole_summary([]))) == 1
