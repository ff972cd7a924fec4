"""A suite's numbers: the case is the unit, and each number says what it is out of."""

import pytest

from bakeoff.record import Failure, Phase, Score
from bakeoff.report.suites.numbers import cell_of
from bakeoff.stats.cells import Cell
from bakeoff.stats.intervals import TOO_SMALL, score_interval
from bakeoff.verdict import Verdict

from .evals import broken, numbers_of, outcome, priced, record, suite


def test_mean_and_rate_are_over_cases_with_their_denominators() -> None:
    numbers = numbers_of([*suite([1.0, 0.8, 0.2, 0.0]), outcome(None, records=(broken(),), problem="Judge: boom")])
    assert (numbers.cases, numbers.scored, numbers.passed, numbers.failed, numbers.undecided) == (5, 4, 2, 2, 1)
    assert numbers.score == pytest.approx(0.5)
    assert numbers.pass_rate == 0.5
    assert numbers.pass_interval is not None
    assert numbers.pass_interval.method == f"Wilson, {TOO_SMALL}"
    assert numbers.lost == {Verdict.GRADER: 1}
    assert (numbers.grader_errors, numbers.unscored) == (1, 0)


def test_rounds_of_a_case_are_averaged_and_never_pooled() -> None:
    rounds = tuple(record(value, round_=place) for place, value in enumerate((1.0, 0.0, 0.5, 0.5)))
    numbers = numbers_of([outcome(0.5, records=rounds), outcome(0.5, "t.py::test[b]", records=rounds)])
    assert (numbers.cases, numbers.rounds, numbers.score) == (2, 8, 0.5)
    cell = cell_of(outcome(0.5, records=rounds))
    assert cell is not None
    assert (cell.rounds, cell.mean) == (4, 0.5)


def test_pass_at_k_is_one_number_for_each_case() -> None:
    rounds = tuple(record(value, round_=place) for place, value in enumerate((1.0, 0.0)))
    cell = cell_of(outcome(1.0, records=rounds, gate="pass@k"))
    assert cell is not None
    assert (cell.rounds, cell.mean) == (1, 1.0)


def test_an_interval_of_one_case_is_undefined_and_not_of_no_width() -> None:
    assert numbers_of(suite([1.0])).interval is None


def test_a_scorer_that_gave_no_number_is_counted_and_left_out() -> None:
    scores = (Score(name="A", value=1.0), Score(name="B", value=None, reason="nothing to say"))
    numbers = numbers_of([outcome(1.0, records=(record(1.0, scores=scores),))])
    assert (numbers.unscored, numbers.score) == (1, 1.0)


def test_a_timeout_scores_zero_and_is_counted() -> None:
    late = Phase(seconds=60, failure=Failure(kind="timeout", type="Timeout", message="60 s"))
    numbers = numbers_of([outcome(0.0, records=(record(None, attempt=late, scores=()),))])
    assert (numbers.score, numbers.timeouts, numbers.failed) == (0.0, 1, 1)


def test_cases_without_a_threshold_are_recorded_and_in_no_rate() -> None:
    numbers = numbers_of([outcome(0.3, threshold=None), outcome(1.0)])
    assert (numbers.recorded, numbers.judged, numbers.pass_rate) == (1, 1, 1.0)


def test_what_was_spent_is_summed() -> None:
    numbers = numbers_of([priced(), priced()])
    assert (numbers.usage.tokens, numbers.tool_calls) == (2408, 6)
    assert numbers.usage.cost == pytest.approx(0.0024)


@pytest.mark.parametrize(("passed", "failed"), [(0, 3), (3, 0), (1, 1), (17, 3), (1, 0), (0, 0)])
def test_the_interval_of_a_pass_rate_is_that_of_the_scores_of_so_many_cases(passed: int, failed: int) -> None:
    cells = [Cell.of([1.0])] * passed + [Cell.of([0.0])] * failed
    assert numbers_of(suite([1.0] * passed + [0.0] * failed)).pass_interval == score_interval(cells)


def test_nothing_has_numbers_too() -> None:
    numbers = numbers_of([])
    assert (numbers.cases, numbers.score, numbers.pass_rate, numbers.interval) == (0, None, None, None)
