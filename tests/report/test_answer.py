"""The sentence that answers the question of a run."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bakeoff.plan import Case, Plan
from bakeoff.record import Record, Usage
from bakeoff.report.answer import answer
from bakeoff.report.by_tag import scores_by_tag, useful_tags
from bakeoff.report.html.run_page import write_run_page
from bakeoff.report.summary import RunTally, tallied

from .runs import plan_of, record_of, write_run

Scores = dict[str, Callable[[int], float]]


def tally_of(plan: Plan, scores: Scores, costs: dict[str, float] | None = None) -> RunTally:
    places = {case.id: place for place, case in enumerate(plan.cases)}

    def record(place: int) -> Record:
        trial, name = plan.trial(place), plan.trial(place).subject.name
        value = scores[name](places[trial.case.id])
        spent = {} if costs is None else {"spent": Usage(requests=1, input=10, cost=costs[name])}
        return record_of(trial, value, bound=name == "oracle", **spent)

    return tallied(plan, map(record, range(plan.size)))


def told(plan: Plan, scores: Scores, costs: dict[str, float] | None = None) -> str:
    tally = tally_of(plan, scores, costs)
    return answer(tally.summary(), tally.cells)


def under(count: int) -> Callable[[int], float]:
    return lambda case: float(case < count)


def test_two_subjects_that_cannot_be_told_apart_are_said_to_be_so_with_p_and_cost() -> None:
    sentence = told(
        plan_of(30, ["opus", "sonnet", "nop"]),
        {"opus": under(25), "sonnet": under(24), "nop": under(0)},
        {"opus": 0.042, "sonnet": 0.01, "nop": 0.0},
    )
    assert sentence == "opus and sonnet cannot be told apart (83.3 % and 80.0 %, p = 1); opus costs 4.2×."


def test_a_subject_that_is_better_is_said_to_be_by_how_much() -> None:
    sentence = told(plan_of(30, ["a", "b"]), {"a": under(12), "b": under(28)})
    assert sentence.startswith("b is better than a (93.3 % and 40.0 %, +53.3 points, p = 7.5e-05)")


def test_ties_are_named() -> None:
    sentence = told(plan_of(10, ["a", "b"]), {"a": under(7), "b": under(7)})
    assert sentence == "a and b cannot be told apart (both 70.0 %, p = 1)."


def test_of_many_subjects_those_that_may_be_first_are_named() -> None:
    plan = plan_of(40, ["a", "b", "c", "d"])
    close: Scores = {"a": under(36), "b": under(35), "c": under(5), "d": under(4)}
    assert told(plan, close) == "a and b are the best of 4 and cannot be told apart (90.0 % and 87.5 %)."
    clear = told(plan, {**close, "b": under(10)})
    assert clear == "a is better than all 3 others (a 90.0 %, b 25.0 %, c 12.5 %, d 10.0 %)."
    alike = told(plan, {name: under(20) for name in "abcd"}, {"a": 0.01, "b": 0.01, "c": 0.01, "d": 0.2})
    assert alike.startswith("a, b, c and d cannot be told apart (50.0 %, 50.0 %, 50.0 %, 50.0 %)")
    assert alike.endswith("; d costs 20× as much as a.")


def test_one_subject_controls_and_nothing_have_their_own_sentences() -> None:
    assert told(plan_of(20, ["a", "oracle"]), {"a": under(10), "oracle": under(20)}).startswith("a scored 50.0 % (")
    controls = told(plan_of(5, ["oracle", "nop"]), {"oracle": under(5), "nop": under(0)})
    assert controls == "Only controls were scored: oracle 100.0 %, nop 0.0 %."
    empty = tallied(plan_of(5, ["a"]), [])
    assert answer(empty.summary(), empty.cells) == "Nothing has been scored yet."


def test_rounds_have_pass_at_k_and_pass_hat_k_over_the_cases_that_lost_none() -> None:
    plan = plan_of(10, ["a"], rounds=2)
    records = [record_of(trial, float(trial.round == 0 or trial.case.id == "case-0")) for trial in plan.trials()]
    [found] = tallied(plan, records[:-1]).summary().subjects
    assert found.pass_at_k is not None
    assert found.pass_hat_k is not None
    assert (found.pass_at_k.name, found.pass_at_k.value, found.pass_at_k.cases) == ("pass@2", 1.0, 9)
    assert found.pass_hat_k.name == "pass^2"
    assert found.pass_hat_k.value == pytest.approx(1 / 9)
    [once] = tallied(plan_of(3, ["a"]), []).summary().subjects
    assert once.pass_at_k is None


def tagged() -> Plan:
    cases = tuple(
        Case(id=f"case-{n}", prompt="?", tags={"language": ("python", "go")[n % 2], "tag 1": "all", "cluster": f"c{n}"})
        for n in range(10)
    )
    return plan_of(0, ["a"], case_list=cases)


def test_tags_that_say_something_have_scores_with_intervals() -> None:
    plan = tagged()
    assert list(useful_tags(plan)) == ["language=go", "language=python"], "not one of one case, nor one of all"
    tally = tally_of(plan, {"a": under(4)})
    found = scores_by_tag(plan, tally.cells, ["a"])
    assert [(one.tag, one.cases, one.score) for one in found] == [("language=go", 5, 0.4), ("language=python", 5, 0.4)]
    assert all(one.interval for one in found)


def test_the_page_has_the_answer_the_tags_and_a_filter_for_them(tmp_path: Path) -> None:
    plan = tagged()
    run = write_run(tmp_path / "run", plan, [record_of(trial, 1.0) for trial in plan.trials()])
    page = write_run_page(run).read_text()
    assert "a scored 100.0 % (" in page
    assert 'id="tags"' in page
    assert '<select name="tag">' in page
    plain = plan_of(3, ["a"])
    bare = write_run_page(write_run(tmp_path / "bare", plain, [record_of(t, 1.0) for t in plain.trials()])).read_text()
    assert 'id="tags"' not in bare
    assert '<select name="tag">' not in bare
