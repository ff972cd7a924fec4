"""Scores of judges, corrected by labels. bench/bench_judges.py draws more."""

from random import Random

import pytest

from bakeoff.stats.calibration import (
    JudgedTrial,
    Strata,
    compared_trials,
    corrected_difference,
    corrected_score,
    missing_labels,
)
from bakeoff.stats.cells import CaseKey
from bakeoff.stats.intervals import SKIPPED, TOO_SMALL

from .simulation_judges import FAIR, GRADED, LENIENT, Judged, draw, held, held_by_difference

pytestmark = pytest.mark.unwatched

DRAWS = 300  # the standard error of a coverage near 95 % is then 1.3 points
LOW, HIGH = 0.92 - 0.01, 0.98 + 0.01


def trials(*groups: tuple[int, float, float | None]) -> list[JudgedTrial]:
    """Return this many trials with a score and a label, each of a case of its own."""
    flat = [(score, label) for count, score, label in groups for _ in range(count)]
    strata = Strata(score for score, _ in flat)
    return [
        JudgedTrial(CaseKey(str(place)), score, strata.of(score), label) for place, (score, label) in enumerate(flat)
    ]


PASSES = trials((20, 1.0, 1.0), (10, 1.0, 0.0), (40, 1.0, None), (27, 0.0, 0.0), (3, 0.0, 1.0))
"""70 passed, of which 30 are labelled, and 30 failed, all labelled."""


@pytest.mark.parametrize(
    "setting",
    [Judged(100, 60, 0.5, LENIENT), Judged(100, 60, 0.5, GRADED), Judged(50, 40, 0.5, LENIENT, rounds=3)],
    ids=str,
)
def test_a_biased_judge_misses_the_truth_and_its_corrected_score_covers_it(setting: Judged) -> None:
    found = held(setting, DRAWS)
    assert found.naive < 0.3
    assert LOW <= found.corrected <= HIGH


def test_a_judge_that_favours_one_subject_is_corrected_in_the_difference_too() -> None:
    found = held_by_difference(Judged(100, 30, 0.7, FAIR), Judged(100, 30, 0.5, LENIENT), DRAWS)
    assert found.naive < 0.3
    assert LOW <= found.corrected <= HIGH


def test_pass_or_fail_is_corrected_as_by_rogan_and_gladen() -> None:
    # Sensitivity and specificity in the whole run: each label stands for as many trials as its stratum has.
    good = 70 * 20 / 30 + 30 * 3 / 30
    sensitivity, specificity = (70 * 20 / 30) / good, 27 / (100 - good)
    apparent = 0.7
    found = corrected_score(PASSES)
    assert found.raw == pytest.approx(apparent)
    assert found.value == pytest.approx((apparent + specificity - 1) / (sensitivity + specificity - 1))
    assert found.interval is not None
    assert found.interval.method == "Rogan–Gladen"
    assert found.interval.low < found.value < found.interval.high < 0.7


def test_a_graded_score_is_moved_by_the_mean_error_of_each_stratum() -> None:
    graded = trials((10, 0.75, 1.0), (10, 0.75, 0.0), (60, 0.75, None), (10, 0.25, 0.0), (10, 0.25, None))
    found = corrected_score(graded)
    assert found.raw == pytest.approx(0.65)
    assert found.value == pytest.approx(0.65 - 0.8 * 0.25 - 0.2 * 0.25)
    assert found.interval is not None
    assert found.interval.method == "prediction-powered"


def test_a_right_judge_keeps_its_score_and_some_doubt() -> None:
    found = corrected_score(trials((30, 1.0, 1.0), (30, 1.0, None), (20, 0.0, 0.0), (20, 0.0, None)))
    assert found.value == found.raw == pytest.approx(0.6)
    assert found.interval is not None
    assert found.interval.low < 0.52
    assert found.interval.high > 0.68


def test_labels_that_are_nearly_all_alike_promise_nothing() -> None:
    found = corrected_score(trials((56, 1.0, 1.0), (4, 1.0, 0.0), (40, 1.0, None)))
    assert found.interval is not None
    assert found.interval.method == f"Rogan–Gladen, {TOO_SMALL}"
    enough = corrected_score(trials((55, 1.0, 1.0), (5, 1.0, 0.0), (40, 1.0, None)))
    assert enough.interval is not None
    assert enough.interval.promised
    apart = corrected_difference(PASSES, trials((60, 1.0, 1.0), (40, 1.0, None)))
    assert apart.interval is not None
    assert not apart.interval.promised, "one side is enough"


def test_a_trial_without_an_answer_scores_0_and_needs_no_label() -> None:
    lost = [JudgedTrial(CaseKey(f"lost {place}"), 0.0) for place in range(100)]
    assert corrected_score([*PASSES, *lost]).value == pytest.approx(corrected_score(PASSES).value / 2)
    assert missing_labels([*PASSES, *lost]) is None
    assert missing_labels(lost) == "the judge has scored no answer"


def test_labels_of_another_draw_count_for_as_many_trials_as_they_stand_for() -> None:
    # The judge was changed after the draw: labels that stand for three trials each count three times.
    rare = [JudgedTrial(CaseKey(f"r{place}"), 1.0, 0, 0.0, weight=3.0) for place in range(10)]
    usual = [JudgedTrial(CaseKey(f"u{place}"), 1.0, 0, 1.0) for place in range(30)]
    assert corrected_score([*rare, *usual]).value == pytest.approx(0.5)


def test_the_difference_is_paired_by_case() -> None:
    random = Random(1)
    before, after = draw(Judged(200, 100, 0.6, FAIR), random), draw(Judged(200, 100, 0.6, FAIR), random)
    paired = corrected_difference(before, after)
    assert (paired.paired, paired.cases) == (True, 200)
    apart = [JudgedTrial(CaseKey(f"other {trial.case.id}"), trial.score, trial.stratum, trial.label) for trial in after]
    unpaired = corrected_difference(before, apart)
    assert (unpaired.paired, unpaired.cases) == (False, 400)
    assert unpaired.difference == pytest.approx(paired.difference)
    same = corrected_difference(before, before)
    assert (same.difference, same.raw) == (0.0, 0.0)
    assert same.interval is not None
    assert paired.interval is not None
    assert same.interval.width < paired.interval.width


def test_only_the_cases_that_both_have_are_compared() -> None:
    before, after = trials((30, 1.0, 1.0), (30, 0.0, 0.0)), trials((45, 1.0, 1.0), (45, 0.0, 0.0))
    old, new = compared_trials(before, after)
    assert (len(old), len(new)) == (60, 60)
    assert corrected_difference(before, after).cases == 60
    assert compared_trials(before[:10], after[10:]) == (before[:10], after[10:]), "they share no case"


@pytest.mark.parametrize("loss", [0.0, 0.1, 0.2, 0.3, 0.4])
def test_p_and_interval_of_a_corrected_difference_agree(loss: float) -> None:
    random = Random(2)
    for _ in range(20):
        old, new = Judged(60, 60, 0.8, FAIR), Judged(60, 60, 0.8 - loss, FAIR)
        found = corrected_difference(draw(old, random), draw(new, random))
        assert found.interval is not None
        assert found.p_value is not None
        excludes = found.interval.low > 0 or found.interval.high < 0
        assert excludes == (found.p_value < 0.05)


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ([(100, 1.0, None)], "0 of 100 answers are labelled, 20 are needed"),
        ([(19, 1.0, 1.0), (81, 0.0, None)], "19 of 100 answers are labelled, 20 are needed"),
        (
            [(40, 1.0, 1.0), (2, 0.0, 0.0), (58, 0.0, None)],
            "2 of the 60 answers with scores from 0 to 0 are labelled, 5 are needed",
        ),
        ([(40, 1.0, 1.0), (3, 0.0, 0.0)], None),
        ([(5, 1.0, 1.0), (3, 0.0, 0.0)], None),
        ([(5, 1.0, 1.0), (3, 0.0, None)], "5 of 8 answers are labelled, 8 are needed"),
    ],
)
def test_too_few_labels_are_named(groups: list[tuple[int, float, float | None]], said: str | None) -> None:
    assert missing_labels(trials(*groups)) == said


def test_scores_are_divided_by_their_levels_or_into_thirds() -> None:
    assert [Strata([1, 0, 1]).of(score) for score in (0, 0.4, 1)] == [0, 0, 1]
    assert len(Strata([0.7, 0.7])) == 1
    levels = Strata(place / 100 for place in range(100))
    assert len(levels) == 3
    assert [levels.of(score) for score in (0, 0.32, 0.33, 0.65, 0.66, 1)] == [0, 0, 1, 1, 2, 2]
    crowded = Strata([*[1.0] * 80, 0.75, 0.5, 0.25, 0.0])
    assert [crowded.of(score) for score in (0, 0.75, 1)] == [0, 0, 1]


def test_one_case_has_no_interval() -> None:
    alone = [JudgedTrial(CaseKey("a"), 1.0, 0, 1.0)]
    assert corrected_score(alone).interval is None
    assert corrected_difference(alone, alone).p_value is None


def test_a_score_is_marked_where_people_skipped_more_than_a_tenth_of_the_answers() -> None:
    def method(skipped: int) -> str:
        seen = [JudgedTrial(CaseKey(str(n)), float(n % 2), n % 2, float(n % 2), skipped=False) for n in range(36)]
        left = [JudgedTrial(CaseKey(f"s{n}"), float(n % 2), n % 2, skipped=True) for n in range(skipped)]
        found = corrected_score([*seen, *left]).interval
        assert found is not None
        assert found.promised == (SKIPPED not in found.method)
        return found.method

    assert method(4) == "Rogan–Gladen"
    assert method(5) == f"Rogan–Gladen, {SKIPPED}"
