"""Cases with scorers and variables of their own."""

from collections.abc import Awaitable, Callable

import pytest

from bakeoff.engine.registry import default_registry
from bakeoff.engine.trust import what_runs
from bakeoff.errors import PlanError
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.protocols import ScoreInput
from bakeoff.record import Record

CarryOut = Callable[..., Awaitable[list[Record]]]
EXACT, CONTAINS = ScorerSpec(kind="exact"), ScorerSpec(kind="contains")
ATTEMPT_KEY, SCORE_KEY = "88dbf822f203d2510ee1772281baa091", "25480bb4dbcd933d4955c184a3e8672c"
SAYS = SubjectSpec(kind="scripted", name="s", options={"default": "It is Paris."})


def plan(*cases: Case, scorers: tuple[ScorerSpec, ...] = (EXACT,)) -> Plan:
    return Plan(name="p", cases=cases, subjects=(SAYS,), scorers=scorers)


def case(id_: str = "c", **fields: object) -> Case:
    return Case.model_validate({"id": id_, "prompt": "?", "expected": "Paris", **fields})


def is_named(given: ScoreInput) -> bool:
    return bool(given.city in str(given.output))


async def test_a_case_is_scored_by_its_own_scorers_instead_of_those_of_the_plan(carry_out: CarryOut):
    records = await carry_out(plan(case("a"), case("b", scorers=[CONTAINS])))
    found = {record.case: [(score.name, score.value) for score in record.scores] for record in records}
    assert found == {"a": [("exact", 0.0)], "b": [("contains", 1.0)]}


async def test_scorers_read_the_variables_of_a_case_by_name(carry_out: CarryOut):
    target = f"{__name__}:is_named"
    function = ScorerSpec(kind="function", options={"target": target})
    records = await carry_out(plan(case(variables={"city": "Paris"}, scorers=[function])))
    assert records[0].value == 1.0


def test_scorers_and_variables_change_the_score_key_alone_and_older_plans_keep_their_keys():
    usual, own = plan(case()).trial(0), plan(case(scorers=[CONTAINS])).trial(0)
    told = plan(case(variables={"a": 1})).trial(0)
    assert usual.attempt_key == own.attempt_key == told.attempt_key
    assert len({usual.score_key, own.score_key, told.score_key}) == 3
    # As computed before cases could have them.
    assert (usual.attempt_key, usual.score_key) == (ATTEMPT_KEY, SCORE_KEY)


def test_problems_of_the_scorers_of_a_case_are_told():
    unknown = plan(case(scorers=[ScorerSpec(kind="exakt")]))
    with pytest.raises(PlanError, match="unknown kind 'exakt'; did you mean 'exact'"):
        default_registry().resolve(unknown)
    with pytest.raises(PlanError, match="case 'c': two scorers are called 'exact'"):
        default_registry().resolve(plan(case(scorers=[EXACT, EXACT])))
    with pytest.raises(PlanError, match="case 'c': no scorer of the plan"):
        default_registry().resolve(plan(case(expected=None, scorers=[CONTAINS])))
    default_registry().resolve(plan(case(scorers=[EXACT]), scorers=()))


def test_what_the_scorers_of_a_case_would_run_is_told_before_a_foreign_run_is_resumed():
    function = ScorerSpec(kind="function", options={"target": "evil:run"})
    assert "function: evil:run" in what_runs(plan(case(scorers=[function])))


def test_a_plan_names_all_its_scorers_and_can_be_given_others():
    both = plan(case("a"), case("b", scorers=[CONTAINS]), case("d", scorers=[CONTAINS]))
    assert both.every_scorer == (EXACT, CONTAINS)
    assert both.scorer_names == ["exact", "contains"]
    assert [each.scorers for each in both.with_scorers((CONTAINS,)).cases] == [None, None, None]
