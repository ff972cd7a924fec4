"""Judges against labels, and labellers against each other."""

import pytest
from scipy.stats import spearmanr

from bakeoff.stats.calibration import LabelledGroup, association, cohen_kappa, judge_quality, krippendorff_alpha

from .simulation_judges import LENIENT, Judged, quality_held


def group(passed: bool, trials: int, labels: int, passes: float) -> LabelledGroup:
    return LabelledGroup(passed=passed, trials=trials, labels=labels, label_passes=passes)


def test_a_judge_is_measured_over_the_whole_run_and_not_over_its_labels() -> None:
    found = judge_quality([group(True, 90, 10, 8), group(False, 10, 10, 1)])
    assert found.sensitivity is not None
    assert found.sensitivity.value == pytest.approx(72 / 73)
    assert found.specificity is not None
    assert found.specificity.value == pytest.approx(9 / 27)
    assert found.accuracy is not None
    assert found.accuracy.value == pytest.approx(0.81)
    chance = 0.73 * 0.9 + 0.27 * 0.1
    assert found.kappa is not None
    assert found.kappa.value == pytest.approx((0.81 - chance) / (1 - chance))


def test_full_agreement_of_few_labels_leaves_doubt() -> None:
    found = judge_quality([group(True, 50, 10, 10), group(False, 50, 10, 0)])
    for estimate in (found.sensitivity, found.specificity, found.kappa):
        assert estimate is not None
        assert estimate.value == 1
        assert estimate.interval is not None
        assert estimate.interval.low < 0.95


def test_a_group_without_labels_takes_those_of_the_same_verdict() -> None:
    found = judge_quality([group(True, 50, 10, 5), group(True, 50, 0, 0), group(False, 10, 5, 0)])
    assert found.accuracy is not None
    assert found.accuracy.value == pytest.approx(60 / 110)
    nothing = judge_quality([group(True, 50, 10, 5), group(False, 10, 0, 0)])
    assert nothing.accuracy is None


def test_without_bad_answers_there_is_no_specificity() -> None:
    found = judge_quality([group(True, 50, 10, 10)])
    assert (found.specificity, found.kappa) == (None, None)
    assert found.sensitivity is not None
    assert found.sensitivity.value == 1


def test_intervals_of_sensitivity_and_specificity_hold_the_truth() -> None:
    sensitivity, specificity = quality_held(Judged(100, 60, 0.6, LENIENT), 100)
    assert sensitivity > 0.9
    assert specificity > 0.9


def test_kappa_is_that_of_cohen() -> None:
    found = cohen_kappa(
        [("pass", "pass")] * 20 + [("fail", "fail")] * 15 + [("pass", "fail")] * 5 + [("fail", "pass")] * 10
    )
    assert found is not None
    assert found.value == pytest.approx(0.4)
    assert found.interval is not None
    assert 0.1 < found.interval.low < 0.25
    assert 0.55 < found.interval.high < 0.7
    assert cohen_kappa([("pass", "pass")] * 5) is None  # chance alone explains it
    assert cohen_kappa([]) is None


def test_alpha_is_that_of_krippendorff() -> None:
    # Two observers and binary data: the first example of "Computing Krippendorff's Alpha-Reliability" (2011).
    first, second = "0100000000", "1110010100"
    found = krippendorff_alpha(list(zip(first, second, strict=True)))
    assert found is not None
    assert found.value == pytest.approx(0.095, abs=0.001)
    mixed = krippendorff_alpha([["a", "a", "a"], ["b", "b"], ["a"], ["b", "b", "a"]])
    assert mixed is not None
    assert -1 <= mixed.value < 1
    assert krippendorff_alpha([["a"], ["b"]]) is None


def test_association_is_spearmans_with_an_interval_and_weights() -> None:
    errors, lengths = [0, 1, 0, 1, 1, 0, 0, 1, -1, 0], [1, 5, 2, 6, 7, 2, 3, 4, 0, 1]
    found = association(errors, lengths, [1.0] * 10)
    assert found is not None
    assert found.value == pytest.approx(spearmanr(errors, lengths).statistic)
    assert found.interval is not None
    assert 0 < found.interval.low < found.value < found.interval.high < 1
    weighted = association([0, 0, 0, 1, 1], [1, 2, 3, 4, 5], [10.0, 1.0, 1.0, 1.0, 1.0])
    assert weighted is not None
    assert weighted.interval is None  # so few labels would do
    assert association([0.0] * 9, lengths[:9], [1.0] * 9) is None
