"""Test what a gate says, and when it refuses to say anything."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.report.gates import GateDecision, GateEvidence, GateRule, GateState, decide_gate
from bakeoff.stats.cells import CaseKey, Cell, Cells
from bakeoff.stats.comparison import Comparison, compare, holm
from bakeoff.stats.gates import TOGETHER, GateJudgement, GateVerdict, Losses, PairedArms, judge, judge_pairs, refusal_of

unhurried = settings(deadline=None)  # the first call imports scipy

NONE_LOST = Losses(100, 0)


def passes(count: int, cases: int = 200) -> Cells:
    return {CaseKey(str(place)): Cell.of([place < count]) for place in range(cases)}


def against(before: int, after: int, cases: int = 200) -> Comparison:
    return compare(passes(before, cases), passes(after, cases))


@pytest.mark.parametrize(
    ("comparison", "margin", "verdict", "code"),
    [
        (against(100, 130), None, GateVerdict.IMPROVED, 0),
        (against(130, 100), None, GateVerdict.REGRESSED, 1),
        (against(100, 101), 0.05, GateVerdict.EQUIVALENT, 0),
        (against(100, 101), None, GateVerdict.UNDECIDABLE, 0),
        (against(10, 12, cases=20), 0.05, GateVerdict.UNDECIDABLE, 0),
        (against(0, 1, cases=1), 0.05, GateVerdict.UNDECIDABLE, 0),
    ],
)
def test_every_verdict_has_its_exit_code(
    comparison: Comparison, margin: float | None, verdict: GateVerdict, code: int
) -> None:
    ruling = judge(comparison, margin=margin, losses=(NONE_LOST, NONE_LOST))
    assert (ruling.verdict, decide(comparison, ruling, margin=margin).exit_code) == (verdict, code)
    strict = decide(comparison, ruling, margin=margin, undecidable="fail", gate="verdict").exit_code
    assert strict == (1 if verdict is GateVerdict.UNDECIDABLE else code)


@pytest.mark.parametrize("cases", [1, 2, 5, 30, 100])
@pytest.mark.parametrize("margin", [None, 0.05])
def test_identical_arms_open_the_gate_at_every_size_and_say_what_was_shown(cases: int, margin: float | None) -> None:
    same = against(cases // 2, cases // 2, cases)
    ruling = judge(same, margin=margin)
    assert decide(same, ruling, margin=margin).exit_code == 0
    if margin and cases == 100:
        assert "equivalence shown: the difference is within ±5 points" in ruling.sentence
    else:
        missed = {1: 100.0, 2: 84.2, 5: 52.2, 30: 11.6, 100: 3.6}[cases]
        assert f"no regression shown (could have missed up to {missed} points)" in ruling.sentence


@pytest.mark.parametrize(("cases", "code"), [(1, 0), (2, 0), (3, 1), (5, 1), (30, 1)])
def test_a_collapse_shuts_the_gate_as_soon_as_chance_cannot_explain_it(cases: int, code: int) -> None:
    collapse = against(cases, 0, cases)
    ruling = judge(collapse)
    assert decide(collapse, ruling).exit_code == code
    assert (f"regressed: all {cases} cases went from pass to fail" in ruling.sentence) == (code == 1)
    assert judge(against(0, cases, cases)).verdict is (GateVerdict.IMPROVED if code else GateVerdict.UNDECIDABLE)


def test_a_margin_that_rules_out_a_loss_decides_the_regression_gate_and_no_other() -> None:
    better = against(20, 23, cases=60)
    ruling = judge(better, margin=0.05)
    assert ruling.verdict is GateVerdict.UNDECIDABLE
    found = decide(better, ruling, margin=0.05, undecidable="fail")
    assert found == GateDecision(GateState.PASSED, "not worse by more than 5 points")
    assert decide(better, ruling, margin=0.05, undecidable="fail", gate="verdict").exit_code == 1


def test_a_difference_smaller_than_the_margin_is_equivalent_even_where_it_is_certain() -> None:
    small = against(5000, 5020, cases=10_000)
    assert judge(small).verdict is GateVerdict.IMPROVED
    assert judge(small, margin=0.01).verdict is GateVerdict.EQUIVALENT


def test_twenty_cases_without_a_difference_do_not_prove_equivalence() -> None:
    assert judge(against(10, 10, cases=20), margin=0.05).verdict is GateVerdict.UNDECIDABLE
    assert judge(against(100, 100, cases=200), margin=0.05).verdict is GateVerdict.EQUIVALENT


def test_the_sentence_holds_the_numbers() -> None:
    assert judge(against(100, 130)).sentence == "improved: +15.0 points, 95 % interval +10.6 to +20.7, p = 5.1e-08"
    equivalent = judge(against(100, 101), margin=0.05).sentence
    assert equivalent.startswith("equivalence shown: the difference is within ±5 points (+0.5 points")
    assert judge(against(100, 101)).sentence.startswith("undecidable: no regression shown (could have missed up to ")


@pytest.mark.parametrize(
    ("baseline", "candidate", "sentence"),
    [
        (Losses(100, 5), Losses(100, 5), None),
        (Losses(100, 6), Losses(100, 0), "the baseline lost 6 of 100 trials (6.0 %) to infrastructure, more than 5 %"),
        (Losses(100, 0), Losses(50, 3), "the candidate lost 3 of 50 trials (6.0 %)"),
        (Losses(1000, 0), Losses(1000, 20), "more unequal than chance"),
        (Losses(20, 0), Losses(20, 1), None),  # one trial of twenty is chance
        (Losses(100_000, 0), Losses(100_000, 40), None),  # more than chance, and yet nothing
        (Losses(0, 0), Losses(100, 4), None),
    ],
)
def test_losses_that_are_many_or_unequal_refuse_a_verdict(
    baseline: Losses, candidate: Losses, sentence: str | None
) -> None:
    ruling = judge(against(130, 100), losses=(baseline, candidate))
    assert ruling.refused == (sentence is not None)
    assert decide(against(130, 100), ruling).exit_code == (3 if sentence else 1)
    assert sentence is None or sentence in ruling.sentence
    assert (refusal_of(candidate, baseline) is None) == (sentence is None)


def test_several_comparisons_behind_one_gate_are_adjusted_by_holm() -> None:
    weak = PairedArms(passes(100), passes(106))  # p = 0.03 alone
    assert judge(against(100, 106)).verdict is GateVerdict.IMPROVED
    many = judge_pairs({f"subject {number}": weak for number in range(5)})
    together = many.pop(TOGETHER).ruling
    assert {found.ruling.verdict for found in many.values()} == {GateVerdict.UNDECIDABLE}
    assert [found.ruling.p_value for found in many.values()] == pytest.approx([1 - 1e-12] * 5, abs=0.7)
    assert together.p_value == pytest.approx(2 * 0.03125), "the cases are the same, and so they are clusters"


def test_one_undefined_comparison_does_not_disturb_the_others() -> None:
    lossy = PairedArms(passes(130), passes(100), losses=(NONE_LOST, Losses(100, 50)))
    judged = judge_pairs({"clear": PairedArms(passes(130), passes(100)), "empty": PairedArms({}, {}), "lossy": lossy})
    rulings = {name: found.ruling for name, found in judged.items() if name != TOGETHER}
    assert [rulings[name].verdict.value for name in rulings] == ["regressed", "undecidable", "undecidable"]
    assert rulings["lossy"].refused
    assert rulings["empty"].refused
    nothing = "refused: no trial of the baseline and the candidate was scored, so there is nothing to compare"
    assert rulings["empty"].sentence == nothing


def decide(comparison: Comparison, ruling: GateJudgement, **rule: Any) -> GateDecision:
    return decide_gate(GateEvidence(comparisons=((comparison, ruling),), rule=GateRule(**rule)))


def test_a_gate_fails_for_a_regression_before_it_refuses() -> None:
    up, down, unknown = against(100, 130), against(130, 100), against(100, 101)
    lost = (NONE_LOST, Losses(100, 50))
    refused, failed, passed = ((up, judge(up, losses=lost)), (down, judge(down)), (unknown, judge(unknown)))

    def state(*comparisons: tuple[Comparison, GateJudgement]) -> GateState:
        return decide_gate(GateEvidence(comparisons=comparisons)).state

    assert state(refused, failed, passed) is GateState.FAILED
    assert state(refused, passed) is GateState.UNDECIDED
    assert state(passed) is state() is GateState.PASSED


@unhurried
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_only_raises_p_values_and_keeps_their_order(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(raw <= new <= 1 for raw, new in zip(p_values, adjusted, strict=True))
    ranked = [new for _, new in sorted(zip(p_values, adjusted, strict=True))]
    assert ranked == sorted(ranked)


@unhurried
@given(st.integers(0, 60), st.integers(0, 60), st.floats(0.01, 0.5), st.floats(0, 0.5))
def test_a_wider_margin_never_turns_equivalence_away(before: int, after: int, margin: float, more: float) -> None:
    comparison = against(before, after, cases=60)
    if judge(comparison, margin=margin).verdict is GateVerdict.EQUIVALENT:
        assert judge(comparison, margin=margin + more).verdict is GateVerdict.EQUIVALENT
