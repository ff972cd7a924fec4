"""The sentence that answers the question of a run."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bakeoff.plan import Case, Plan
from bakeoff.record import BROKEN, UNIT_TESTS, Failure, Phase, Record, Score, Usage
from bakeoff.report.answer import answer, what_is_missing
from bakeoff.report.compare.within_run import scores_by_tag, useful_tags
from bakeoff.report.render.html.run_page import write_run_page
from bakeoff.report.summary import Comparisons, RunTally, tallied
from bakeoff.stats.sequential import PairDecision, SequentialDecision

from .runs import lost, plan_of, record_of, write_run

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
    return answer(plan, tally.summary(), tally.cells)


def under(count: int) -> Callable[[int], float]:
    return lambda case: float(case < count)


def test_two_subjects_that_cannot_be_told_apart_are_said_to_be_so_with_p_and_cost() -> None:
    sentence = told(
        plan_of(30, ["opus", "sonnet", "nop"]),
        {"opus": under(25), "sonnet": under(24), "nop": under(0)},
        {"opus": 0.042, "sonnet": 0.01, "nop": 0.0},
    )
    missed = "+3.3 points, 95 % interval -9.4 to +17.5: a difference of up to 17.5 points could have been missed"
    assert sentence == f"opus and sonnet cannot be told apart (83.3 % and 80.0 %, p = 1; {missed}); opus costs 4.2×."


def test_a_subject_that_is_better_is_said_to_be_by_how_much() -> None:
    sentence = told(plan_of(30, ["a", "b"]), {"a": under(12), "b": under(28)})
    assert sentence.startswith("b is better than a (93.3 % and 40.0 %, +53.3 points, p = 7.5e-05)")


def test_ties_are_named() -> None:
    sentence = told(plan_of(10, ["a", "b"]), {"a": under(7), "b": under(7)})
    assert sentence.startswith("a and b cannot be told apart (both 70.0 %, p = 1; +0.0 points, 95 % interval -30.8 to ")


@pytest.mark.parametrize(("names", "who"), [("ab", "a and b"), ("abc", "3 subjects")])
def test_subjects_that_share_one_case_cannot_be_compared(names: str, who: str) -> None:
    sentence = told(plan_of(1, list(names)), {name: under(name == "a") for name in names})
    assert sentence.startswith(f"{who} cannot be compared: they share too few cases (")


def test_cases_that_controls_show_to_be_broken_are_named() -> None:
    plan = plan_of(6, ["a", "oracle", "nop"])
    names = [case.id for case in plan.cases]
    sentence = told(plan, {"a": under(6), "oracle": under(5), "nop": under(2)})
    assert f"The reference answer fails 1 case ({names[5]}): check `expected` and the scorers." in sentence
    assert f"`nop` does nothing and passes 2 cases ({names[0]}, {names[1]}): nothing is measured there." in sentence
    assert "oracle" not in told(plan, {"a": under(3), "oracle": under(6), "nop": under(0)})


def test_a_case_whose_reference_fails_tests_is_said_to_be_unfit() -> None:
    plan = plan_of(2, ["a"])
    metadata: dict[str, Any] = {BROKEN: ["t4", "t5"], UNIT_TESTS: {"passed": 1, "total": 6}}
    score = Score(name="suite", value=1 / 6, metadata=metadata)
    sound, unfit = plan.trials()
    tally = tallied(plan, [record_of(sound), record_of(unfit, scores=(score,))])
    sentence = answer(plan, tally.summary(), tally.cells)
    assert sentence.endswith(" 1 case is unfit, as the reference fails tests: case-1 (2 of 6).")


def test_of_many_subjects_those_that_may_be_first_are_named() -> None:
    plan = plan_of(40, ["a", "b", "c", "d"])
    close: Scores = {"a": under(36), "b": under(35), "c": under(5), "d": under(4)}
    assert told(plan, close) == (
        "a and b are the best of 4 and cannot be told apart (90.0 % and 87.5 %; first and last: +2.5 points, "
        "99.17 % interval -13.4 to +19.4: a difference of up to 19.4 points could have been missed)."
    )
    clear = told(plan, {**close, "b": under(10)})
    assert clear == "a is better than all 3 others (a 90.0 %, b 25.0 %, c 12.5 %, d 10.0 %)."
    alike = told(plan, {name: under(20) for name in "abcd"}, {"a": 0.01, "b": 0.01, "c": 0.01, "d": 0.2})
    assert alike.startswith("a, b, c and d cannot be told apart (50.0 %, 50.0 %, 50.0 %, 50.0 %; first and last: ")
    assert alike.endswith("; d costs 20× as much as a.")


def told_of(passed: dict[str, tuple[range, set[int]]]) -> str:
    """The answer where each subject has tried the cases of a range, and passed some of them."""
    plan = plan_of(60, list(passed))
    numbers = {case.id: place for place, case in enumerate(plan.cases)}
    records = [
        record_of(trial, float(numbers[trial.case.id] in passed[trial.subject.name][1]))
        for trial in plan.trials()
        if numbers[trial.case.id] in passed[trial.subject.name][0]
    ]
    tally = tallied(plan, records)
    return answer(plan, tally.summary(), tally.cells)


def test_a_leader_is_not_said_to_be_better_than_a_subject_that_it_is_not_told_apart_from() -> None:
    b = {0, 1, 2, *range(25, 60)}
    sentence = told_of({"a": (range(20), {*range(13)}), "b": (range(60), b), "c": (range(20, 60), {*range(25, 45)})})
    assert sentence == (
        "No subject is better than a, which is better than 1 of 2 others (a 65.0 %, b 63.3 %, c 50.0 %)."
        " 60 of 180 trials have no score: 60 not run."
    )


def test_the_cases_that_both_have_decide_whatever_the_others_make_of_the_scores() -> None:
    sentence = told_of({"a": (range(60), {*range(10), *range(40, 60)}), "b": (range(40), {*range(20)})})
    assert sentence.startswith("b is better than a (+25.0 points over the 40 cases that both have, p = 0.002).")


def prompted(cases: int, prompts: list[str], subjects: list[str]) -> Plan:
    """A plan in which each case is tried with each prompt, as `bakeoff eval` makes it."""
    made = [
        Case(id=f"c{n} · {name}", prompt="?", tags={"cluster": f"c{n}", "prompt": name})
        for n in range(cases)
        for name in prompts
    ]
    return plan_of(0, subjects, case_list=tuple(made))


def told_by_prompt(plan: Plan, passed: Callable[[str, str], int]) -> str:
    """Answer where each prompt and subject passes as many of the first cases as `passed` returns."""

    def record(place: int) -> Record:
        trial = plan.trial(place)
        number = int(trial.case.name.removeprefix("c"))
        first = 0 if trial.subject.kind == "nop" else passed(trial.case.tags["prompt"], trial.subject.name)
        return record_of(trial, float(number < first))

    tally = tallied(plan, map(record, range(plan.size)))
    return answer(plan, tally.summary(), tally.cells)


def test_the_clearest_of_several_factors_comes_first() -> None:
    plan = prompted(30, ["short", "detailed"], ["gpt-x", "mini", "nop"])
    sentence = told_by_prompt(plan, lambda prompt, subject: 15 + 12 * (prompt == "detailed") + (subject == "mini"))
    assert sentence == (
        "The prompt 'detailed' is better than 'short' by 40.0 points (91.7 % and 51.7 %, p = 0.0032); mini and gpt-x: "
        "no clear winner (73.3 % and 70.0 %, p = 0.5; a difference of up to 14.4 points could have been missed)."
    )
    swapped = told_by_prompt(plan, lambda prompt, subject: 15 + (prompt == "detailed") + 12 * (subject == "mini"))
    assert swapped.startswith("mini is better than gpt-x by 40.0 points (91.7 % and 51.7 %, p = 0.0032); the prompts ")


def test_several_prompts_of_one_subject_are_compared() -> None:
    sentence = told_by_prompt(prompted(30, ["a", "b"], ["mine"]), lambda prompt, _: 10 + 15 * (prompt == "b"))
    assert sentence == "The prompt 'b' is better than 'a' by 50.0 points (83.3 % and 33.3 %, p = 0.00013)."
    three = prompted(40, ["a", "b", "c"], ["mine"])
    best = told_by_prompt(three, lambda prompt, _: {"a": 5, "b": 20, "c": 38}[prompt])
    assert best == "The prompt 'c' is better than both others by 45.0 to 82.5 points (p ≤ 5.3e-05)."
    tied = told_by_prompt(three, lambda prompt, _: {"a": 5, "b": 35, "c": 36}[prompt])
    assert tied.startswith("The prompt 'c' is better than 'a' by 77.5 points (90.0 % and 12.5 %, p = ")
    assert tied.endswith("); the prompts 'c' (90.0 %) and 'b' (87.5 %): no clear winner.")
    alike = told_by_prompt(three, lambda prompt, _: 20 + (prompt == "b"))
    assert alike == "The prompts 'b' (52.5 %), 'a' (50.0 %) and 'c' (50.0 %): no clear winner."
    assert "cannot be compared: they share too few cases" in told_by_prompt(
        prompted(1, ["a", "b"], ["mine"]), lambda prompt, _: prompt == "a"
    )


def test_a_treatment_is_tested_over_all_subjects_that_have_it() -> None:
    plan = plan_of(30, ["opus", "sonnet"])
    treated = [
        spec.model_copy(update={"name": f"{spec.name} with notes", "base": spec.name, "treatment": "notes"})
        for spec in plan.subjects
    ]
    plan = plan.with_changes(subjects=(*plan.subjects, *treated))
    helps = {"opus": under(10), "sonnet": under(11), "opus with notes": under(28), "sonnet with notes": under(28)}
    assert told(plan, helps).startswith("The treatment 'notes' is better than none by 58.3 points (93.3 % and 35.0 %, ")
    hurts = {**helps, "opus with notes": under(0), "sonnet with notes": under(0)}
    assert told(plan, hurts).startswith("The treatment 'notes' is worse than none by 35.0 points (35.0 % and 0.0 %, ")


def decided(*pairs: tuple[str, str, SequentialDecision], margin: float | None = None) -> str:
    """The sentence of a run until decided whose pairs were decided like this."""
    names = sorted({name for first, second, _ in pairs for name in (first, second)})
    plan = plan_of(20, names)
    tally = tally_of(plan, {name: under(10 + place) for place, name in enumerate(names)})
    found = [
        PairDecision(first=first, second=second, decision=one, cases=20, difference=None, interval=None)
        for first, second, one in pairs
    ]
    numbers = {"trials_planned": 60, "trials_saved": 0, "trials_left": 0, "cost_saved": None}
    compared = Comparisons(alpha=0.05, margin=margin, pairs=tuple(found), **numbers)
    return answer(plan, tally.summary().model_copy(update={"comparisons": compared}), tally.cells)


def test_a_run_until_decided_is_answered_by_its_own_comparisons() -> None:
    worse, same, open_ = SequentialDecision.REGRESSED, SequentialDecision.EQUIVALENT, SequentialDecision.UNDECIDED
    scores = "(c 60.0 %, b 55.0 %, a 50.0 %, anytime-valid)"
    assert decided(("a", "b", worse)) == "a is better than b (b 55.0 %, a 50.0 %, anytime-valid)."
    assert decided(("a", "b", open_)) == "b and a are not told apart (55.0 % and 50.0 %, anytime-valid)."
    assert decided(("a", "b", worse), ("a", "c", worse), ("b", "c", same), margin=0.1) == (
        f"a is better than all 2 others {scores}."
    )
    assert decided(("a", "b", same), ("a", "c", same), ("b", "c", same), margin=0.1) == (
        "c, b and a are equivalent within ±10 points (60.0 %, 55.0 %, 50.0 %, anytime-valid)."
    )
    assert decided(("a", "b", open_), ("a", "c", worse), ("b", "c", worse)) == (
        "b and a are the best of 3 and not told apart (55.0 % and 50.0 %, anytime-valid)."
    )
    assert decided(("a", "b", worse), ("a", "c", open_), ("b", "c", worse)) == (
        f"No subject is better than a, which is better than 1 of 2 others {scores}."
    )
    assert decided(("a", "b", worse), ("a", "c", SequentialDecision.IMPROVED), ("b", "c", worse)) == (
        f"None of 3 subjects is the best {scores}."
    )


def test_the_headline_says_equivalent_where_the_table_does() -> None:
    worse, same, open_ = SequentialDecision.REGRESSED, SequentialDecision.EQUIVALENT, SequentialDecision.UNDECIDED
    assert decided(("a", "b", same), ("a", "c", worse), ("b", "c", worse), margin=0.1) == (
        "b and a are the best of 3 and equivalent within ±10 points (55.0 % and 50.0 %, anytime-valid)."
    )
    three = "c, b and a are not told apart (60.0 %, 55.0 %, 50.0 %, anytime-valid)"
    assert decided(("a", "b", same), ("a", "c", open_), ("b", "c", open_), margin=0.1) == (
        f"{three}; a and b are equivalent within ±10 points."
    )
    assert decided(("a", "b", same), ("a", "c", same), ("b", "c", open_), margin=0.1) == (
        f"{three}; 2 of their 3 pairs are equivalent within ±10 points."
    )


def test_one_subject_controls_and_nothing_have_their_own_sentences() -> None:
    assert told(plan_of(20, ["a", "oracle"]), {"a": under(10), "oracle": under(20)}).startswith("a scored 50.0 % (")
    controls = told(plan_of(5, ["oracle", "nop"]), {"oracle": under(5), "nop": under(0)})
    assert controls == "Only controls ran, which test the cases: oracle 100.0 %, nop 0.0 %."
    plan = plan_of(5, ["a"])
    empty = tallied(plan, [])
    sentence = answer(plan, empty.summary(), empty.cells)
    assert sentence == "Nothing has been run yet. 5 of 5 trials have no score: 5 not run."


def lost_record(plan: Plan, place: int, message: str) -> Record:
    failure = Failure(kind="infra", type="InfraError", message=message)
    attempt = Phase(seconds=0.1, failure=failure)
    return record_of(plan.trial(place), 0.0, attempt=attempt, transcript=None, scores=())


def test_what_is_missing_is_said_with_the_most_frequent_reason() -> None:
    plan = plan_of(6, ["a"])
    failed = [lost_record(plan, 0, "gone."), lost_record(plan, 1, "gone."), lost_record(plan, 2, "busy")]
    tally = tallied(plan, [*failed, record_of(plan.trial(3), 1.0), record_of(plan.trial(4), 1.0)])
    sentence = answer(plan, tally.summary(), tally.cells)
    assert sentence.startswith("a scored 100.0 % (")
    assert sentence.endswith("4 of 6 trials have no score: 3 lost to infra (gone in 2 of them), 1 not run.")


def test_losses_that_differ_by_more_than_chance_are_told() -> None:
    plan = plan_of(10, ["a", "b"])

    def missing(count: int) -> str:
        unlucky = [trial.index for trial in plan.trials() if trial.subject.name == "a"][:count]
        records = [lost(one, "infra") if one.index in unlucky else record_of(one) for one in plan.trials()]
        return what_is_missing(tallied(plan, records).summary())

    assert missing(7).endswith(
        "Losses are more unequal than chance: a lost 7 of 10 trials (70.0 %) to infra or grader, b 0 of 10 trials "
        "(0.0 %) (Fisher's exact test, p = 0.0031). Their scores are not of the same trials, so the comparison may be "
        "biased."
    )
    assert "a lost 10 of 10 trials" in missing(10), "also where nothing is left to compare"
    assert "unequal" not in missing(2)


def test_lost_controls_are_not_missed_and_decide_nothing() -> None:
    plan = plan_of(2, ["a", "nop"])
    records = [record_of(plan.trial(place), 1.0) for place in (0, 2)] + [lost_record(plan, 1, "gone")]
    tally = tallied(plan, records)
    assert "no score" not in answer(plan, tally.summary(), tally.cells)
    assert (tally.summary().complete, tally.summary().outcome) == (True, "passed")


@pytest.mark.parametrize(
    ("subjects", "scores", "outcome"),
    [
        (["a", "nop"], {"a": under(3), "nop": under(0)}, "passed"),
        (["a", "oracle"], {"a": under(2), "oracle": under(3)}, "failed"),
        (["nop", "oracle"], {"nop": under(0), "oracle": under(3)}, "recorded"),
    ],
)
def test_the_verdict_on_a_run_is_that_of_its_exit_code(subjects: list[str], scores: Scores, outcome: str) -> None:
    assert tally_of(plan_of(3, subjects), scores).summary().outcome == outcome


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


def test_the_page_has_the_answer_and_the_tags(tmp_path: Path) -> None:
    plan = tagged()
    run = write_run(tmp_path / "run", plan, [record_of(trial, 1.0) for trial in plan.trials()])
    page = write_run_page(run).read_text()
    assert "Those of all tags have too few cases to promise 95 %." in page
    assert "a scored 100.0 % (" in page
    assert 'id="tags"' in page
    plain = plan_of(3, ["a"])
    bare = write_run_page(write_run(tmp_path / "bare", plain, [record_of(t, 1.0) for t in plain.trials()])).read_text()
    assert 'id="tags"' not in bare


def failing(plan: Plan, errors: Callable[[int], str | None], kind: str = "subject", name: str = "ValueError") -> str:
    """Answer for a run of which `errors` ends the trials; None: the trial is answered."""

    def record(place: int) -> Record:
        message = errors(place)
        if message is None:
            return record_of(plan.trial(place), 0.0)
        failure = Failure(kind=kind, type=name, message=message)
        return record_of(plan.trial(place), None, scores=(), attempt=Phase(seconds=0.1, failure=failure))

    tally = tallied(plan, map(record, range(plan.size)))
    return answer(plan, tally.summary(), tally.cells)


def test_a_subject_that_fails_with_one_error_in_every_trial_is_said_to_do_so_first() -> None:
    plan = plan_of(3, ["mine"], rounds=2)
    sentence = failing(plan, lambda place: f"no key '{place}'\nand more")
    assert sentence.startswith("mine failed with the same error in all 6 trials: ValueError: no key '0'. mine scored 0")
    assert failing(plan_of(1, ["mine"]), lambda _: "bug").startswith("mine failed with an error in its only trial: Val")


def test_the_end_of_a_programs_traceback_is_its_error() -> None:
    said = 'python: exit code 1: Traceback (most recent call last):\n  File "a.py", line 1\nImportError: no requests'
    sentence = failing(plan_of(2, ["mine"]), lambda _: said, name="SubjectError")
    assert sentence.startswith(
        "mine failed with the same error in all 2 trials: python: exit code 1: ImportError: no requests. mine scored"
    )


def test_an_error_that_repeats_the_head_of_a_traceback_is_read_in_one_pass() -> None:
    said = "Traceback (most recent call last):" * 100_000
    started = time.process_time()
    assert "mine failed with an error in its only trial: ValueError: " in failing(plan_of(1, ["mine"]), lambda _: said)
    assert time.process_time() - started < 5  # minutes, if each head is looked at up to the end


@pytest.mark.parametrize(
    ("errors", "kind"),
    [
        (lambda place: "bug" if place else None, "subject"),
        (lambda place: "bug" if place else "another", "subject"),
        (lambda _: "not finished after 1 s", "timeout"),
        (lambda _: "down", "infra"),
    ],
    ids=["one answer", "two errors", "timeout", "infra"],
)
def test_other_failures_are_not_called_the_same_error(errors: Callable[[int], str | None], kind: str) -> None:
    assert "failed with" not in failing(plan_of(3, ["mine"]), errors, kind)


def test_at_most_four_subjects_that_always_fail_are_named() -> None:
    sentence = failing(plan_of(2, list("abcdef")), lambda _: "bug")
    assert sentence.count("failed with the same error in all 2 trials: ValueError: bug.") == 4
    assert " So did 2 more. " in sentence


@pytest.mark.parametrize(("cases", "mark"), [(60, ", too few cases to promise 95 %"), (100, "")])
def test_the_ratio_of_costs_has_an_interval_where_costs_differ_by_case(cases: int, mark: str) -> None:
    plan = plan_of(cases, ["cheap", "dear"])
    tally = RunTally(plan)
    for trial in plan.trials():
        case, dear = divmod(trial.index, 2)
        paid = Usage(requests=1, cost=(1 + case % 3) * (1 + dear * (9 + case % 2)))
        tally.add(record_of(trial).model_copy(update={"spent": paid}))
    # 10.5, to the even digit
    assert answer(plan, tally.summary(), tally.cells).endswith(f"; dear costs 10× (10 to 11{mark}).")
