"""Test which pairs of a run are decided, from its records in any order."""

import random
from itertools import pairwise

import pytest

from bakeoff.plan import Case, PassRule, Plan, ScorerSpec, SubjectSpec, UntilDecided
from bakeoff.stats.sequential import PairDecisions, SequentialDecision, random_order
from bakeoff.verdict import Round, Verdict

from .simulation_sequential import plan_of

PASS, FAIL = Round(Verdict.PASS, 1.0, failed=False), Round(Verdict.FAIL, 0.0, failed=False)
LOST, NOT_STARTED = Round(Verdict.INFRA, None, failed=True), Round(Verdict.BUDGET, None, failed=True)


def in_order(plan: Plan) -> list[str]:
    return [case.id for unit in random_order(plan) for case in unit]


def add_all(decisions: PairDecisions, cases: list[str], **results: Round) -> None:
    for case in cases:
        for subject, result in results.items():
            decisions.add_round(subject, case, 0, result)


def test_the_order_is_random_but_the_same_for_one_seed() -> None:
    plan = plan_of(2, 50)
    assert in_order(plan) == in_order(plan_of(2, 50))
    assert in_order(plan) != in_order(plan_of(2, 50, seed=1))
    assert in_order(plan) != [case.id for case in plan.cases]
    assert sorted(in_order(plan)) == sorted(case.id for case in plan.cases)


def test_each_run_has_an_order_of_its_own_which_its_plan_keeps() -> None:
    orders = [in_order(plan_of(2, 50).with_changes(until_decided=UntilDecided.in_new_order())) for _ in range(2)]
    assert orders[0] != orders[1]
    plan = plan_of(2, 50).with_changes(until_decided=UntilDecided(order=7))
    assert in_order(plan) == in_order(Plan.model_validate_json(plan.model_dump_json()))
    assert plan.trial(0).attempt_key == plan_of(2, 50).trial(0).attempt_key


def test_the_cases_of_a_cluster_come_together() -> None:
    units = list(random_order(plan_of(2, 50, clusters=5)))
    assert [len(unit) for unit in units] == [10] * 5
    assert all(len({case.tags["cluster"] for case in unit}) == 1 for unit in units)


def test_a_pair_is_decided_once_enough_cases_are_finished() -> None:
    plan = plan_of(2, 20)
    order, decisions = in_order(plan), PairDecisions(plan)
    add_all(decisions, order[:7], s0=FAIL, s1=PASS)
    assert (decisions.decided, decisions.pairs, decisions.needs("s0")) == (0, 1, True)
    add_all(decisions, order[7:8], s0=FAIL, s1=PASS)
    assert (decisions.decided, decisions.needs("s0"), decisions.needs("s1")) == (1, False, False)
    [pair] = decisions.results()
    assert (pair.first, pair.second, pair.decision, pair.cases) == ("s0", "s1", SequentialDecision.IMPROVED, 8)
    assert pair.difference == 1.0


def test_a_case_waits_for_all_that_come_before_it() -> None:
    """Cases that finish late, such as timeouts, would otherwise be left out of the decision."""
    plan = plan_of(2, 20)
    order, decisions = in_order(plan), PairDecisions(plan)
    add_all(decisions, order[1:], s0=FAIL, s1=PASS)
    assert decisions.results()[0].cases == 0
    add_all(decisions, order[:1], s0=FAIL, s1=PASS)
    assert decisions.results()[0].cases == 20


def test_the_order_in_which_records_arrive_changes_nothing() -> None:
    plan = plan_of(3, 40, margin=0.3)
    chance = random.Random(3)
    rounds = [(name, case.id, chance.choice([PASS, FAIL])) for name in plan.compared for case in plan.cases]
    found = set()
    for _ in range(5):
        chance.shuffle(rounds)
        decisions = PairDecisions(plan)
        for subject, case, result in rounds:
            decisions.add_round(subject, case, 0, result)
        found.add(decisions.results())
    assert len(found) == 1


def test_a_case_counts_when_both_have_all_its_rounds_with_the_mean_of_each() -> None:
    plan = plan_of(2, 10, rounds=2)
    order, decisions = in_order(plan), PairDecisions(plan)
    for subject, results in (("s0", (FAIL, PASS)), ("s1", (PASS,))):
        for number, result in enumerate(results):
            decisions.add_round(subject, order[0], number, result)
    assert decisions.results()[0].cases == 0
    decisions.add_round("s1", order[0], 1, PASS)
    [pair] = decisions.results()
    assert (pair.cases, pair.difference) == (1, 0.5)


def test_a_case_with_a_rule_of_its_own_counts_by_that_rule() -> None:
    cases = tuple(Case(id=f"c{n}", prompt="?", pass_rule=PassRule(gate="pass@k")) for n in range(3))
    plan = plan_of(2, 3, rounds=2).with_changes(cases=cases)
    order, decisions = in_order(plan), PairDecisions(plan)
    for subject, results in (("s0", (FAIL, FAIL)), ("s1", (FAIL, PASS))):
        for number, result in enumerate(results):
            decisions.add_round(subject, order[0], number, result)
    assert decisions.results()[0].difference == 1.0


def test_a_lost_case_is_left_out_and_one_that_was_not_started_is_waited_for() -> None:
    plan = plan_of(2, 100)
    order, decisions = in_order(plan), PairDecisions(plan)
    add_all(decisions, order[:1], s0=LOST, s1=PASS)
    add_all(decisions, order[1:3], s0=PASS, s1=PASS)
    assert decisions.results()[0].cases == 2
    add_all(decisions, order[3:4], s0=NOT_STARTED, s1=PASS)
    add_all(decisions, order[4:6], s0=PASS, s1=PASS)
    assert decisions.results()[0].cases == 2


def test_where_many_trials_are_lost_nothing_is_decided_and_the_reason_is_given() -> None:
    plan = plan_of(2, 30)
    order, decisions = in_order(plan), PairDecisions(plan)
    add_all(decisions, order[:3], s0=LOST, s1=PASS)
    add_all(decisions, order[3:], s0=FAIL, s1=PASS)
    [pair] = decisions.results()
    assert pair.decision is SequentialDecision.UNDECIDED
    assert pair.refused is not None
    assert "3 of 30 trials (10.0 %)" in pair.refused
    assert decisions.needs("s0")


def test_a_subject_is_needed_while_one_of_its_pairs_is_open() -> None:
    plan = plan_of(3, 60)
    order, decisions = in_order(plan), PairDecisions(plan)
    add_all(decisions, order[:20], s0=FAIL, s1=PASS, s2=PASS)
    assert (decisions.decided, decisions.pairs) == (2, 3)
    assert [decisions.needs(name) for name in plan.compared] == [False, True, True]


def test_more_pairs_need_more_to_be_decided() -> None:
    """Each pair has its share of the level, so that all answers together are wrong in at most 5 % of runs."""
    needed = []
    for subjects in (2, 3, 6):
        plan = plan_of(subjects, 40)
        decisions = PairDecisions(plan)
        for number, case in enumerate(in_order(plan), 1):
            add_all(decisions, [case], **dict.fromkeys(plan.compared[1:], PASS), s0=FAIL)
            if not decisions.needs("s0"):
                needed.append(number)
                break
    assert len(needed) == 3
    assert all(fewer < more for fewer, more in pairwise(needed))


def test_controls_are_not_compared_and_are_needed_until_the_end() -> None:
    controls = (SubjectSpec(kind="oracle", name="oracle"), SubjectSpec(kind="nop", name="nop"))
    plan = plan_of(2, 20)
    plan = plan.with_changes(subjects=(*controls, *plan.subjects))
    order, decisions = in_order(plan), PairDecisions(plan)
    assert decisions.pairs == 1
    add_all(decisions, order[:7], s0=FAIL, s1=PASS, oracle=PASS, nop=FAIL)
    assert decisions.needs("oracle")
    add_all(decisions, order[7:8], s0=FAIL, s1=PASS)
    assert not decisions.needs("oracle")


def test_a_cluster_is_taken_as_a_whole_and_large_ones_weigh_more() -> None:
    tags = ("big", "big", "big", "small")
    cases = tuple(Case(id=f"c{n}", prompt="?", tags={"cluster": tag}) for n, tag in enumerate(tags))
    plan = plan_of(2, 1).with_changes(cases=cases)
    decisions = PairDecisions(plan)
    add_all(decisions, ["c0", "c1", "c3"], s0=FAIL, s1=PASS)
    assert decisions.results()[0].cases in (0, 1)  # the small one, if it comes first
    add_all(decisions, ["c2"], s0=FAIL, s1=FAIL)
    [pair] = decisions.results()
    assert pair.cases == 4
    assert pair.difference == pytest.approx(3 / 4)


@pytest.mark.parametrize("kinds", [("scripted",), ("oracle", "scripted", "nop")])
def test_a_plan_with_one_subject_to_compare_is_refused(kinds: tuple[str, ...]) -> None:
    plan = Plan(
        name="lonely",
        cases=(Case(id="c", prompt="?"),),
        subjects=tuple(SubjectSpec(kind=kind, name=kind) for kind in kinds),
        scorers=(ScorerSpec(kind="exact"),),
        until_decided=UntilDecided(),
    )
    [problem] = plan.problems()
    assert "compares subjects in pairs, and has 1 subject to compare (controls do not count)" in problem
