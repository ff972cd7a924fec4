"""The product of cases, subjects and rounds: its order, its keys, and what it refuses."""

import time
import tracemalloc
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from bakeoff.plan import Case, Limits, Plan, ScorerSpec, SubjectSpec

BASE: dict[str, Any] = {
    "id": "sum",
    "prompt": "add",
    "files": {"main.py": "pass"},
    "collect": ("main.py",),
    "hidden": {"test.py": "assert 1"},
    "reference": {"main.py": "1"},
    "expected": 3,
    "tags": {"kind": "sum"},
    "limits": Limits(attempt_seconds=5),
}


def plan_of(cases: int = 2, subjects: int = 2, rounds: int = 2, **more: Any) -> Plan:
    return Plan(
        name="p",
        cases=tuple(Case(id=f"c{number}", prompt="?") for number in range(cases)),
        subjects=tuple(SubjectSpec(kind="nop", name=f"s{number}") for number in range(subjects)),
        scorers=(ScorerSpec(kind="exact"),),
        rounds=rounds,
        **more,
    )


def keys_with(case: dict[str, Any] | None = None, **plan: Any) -> tuple[str, str]:
    """The attempt key and the score key of a small plan with something changed."""
    usual: dict[str, Any] = {
        "name": "p",
        "cases": (Case(**{**BASE, **(case or {})}),),
        "subjects": (SubjectSpec(kind="nop", name="s", options={"a": 1}, revision="r"),),
        "scorers": (ScorerSpec(kind="exact"),),
    }
    trial = Plan(**{**usual, **plan}).trial(0)
    return trial.attempt_key, trial.score_key


@pytest.mark.parametrize("field", ["collect", "answer_file"])
@pytest.mark.parametrize("path", ["./s.py", "-s.py", "a/-b", "a//b", "a\\b", "a/./b", " a"])
def test_what_no_workspace_gives_out_is_refused_by_the_plan(field: str, path: str) -> None:
    with pytest.raises(ValidationError, match="are not collected from a workspace; use a plain name"):
        Case.model_validate({"id": "c", "prompt": "?", field: [path] if field == "collect" else path})


def test_rounds_are_outermost_and_subjects_innermost() -> None:
    assert [(t.index, t.round, t.case.id, t.subject.name, t.seed) for t in plan_of(seed=7).trials()] == [
        (0, 0, "c0", "s0", 7),
        (1, 0, "c0", "s1", 7),
        (2, 0, "c1", "s0", 7),
        (3, 0, "c1", "s1", 7),
        (4, 1, "c0", "s0", 8),
        (5, 1, "c0", "s1", 8),
        (6, 1, "c1", "s0", 8),
        (7, 1, "c1", "s1", 8),
    ]


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6), st.data())
def test_find_is_the_inverse_of_trial(cases: int, subjects: int, rounds: int, data: st.DataObject) -> None:
    plan = plan_of(cases, subjects, rounds)
    trial = plan.trial(data.draw(st.integers(0, plan.size - 1)))
    assert plan.find(trial.case.id, trial.subject.name, trial.round) == trial


@pytest.mark.parametrize(
    ("case", "subject", "round_"), [("no", "s0", 0), ("c0", "no", 0), ("c0", "s0", 2), ("c0", "s0", -1)]
)
def test_find_gives_none_for_what_is_not_in_the_plan(case: str, subject: str, round_: int) -> None:
    assert plan_of().find(case, subject, round_) is None


@pytest.mark.parametrize("index", [-1, 8])
def test_a_place_outside_the_order_is_an_index_error(index: int) -> None:
    with pytest.raises(IndexError, match=f"trial {index} of a plan with 8"):
        plan_of().trial(index)


def test_a_million_trials_are_never_in_memory() -> None:
    plan = plan_of(cases=100, subjects=10, rounds=1000)
    assert plan.size == 1_000_000
    tracemalloc.start()
    started = time.perf_counter()
    first = next(plan.trials())
    waited = time.perf_counter() - started
    for _ in islice(plan.trials(), 5000):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert first.index == 0
    assert waited < 1
    assert peak < 1_000_000


@pytest.mark.parametrize(
    "change",
    [
        {"id": "other"},
        {"prompt": "subtract"},
        {"files": {"main.py": "other"}},
        {"files": {"other.py": "pass"}},
        {"collect": ("*.py",)},
        {"limits": Limits(attempt_seconds=6)},
        {"limits": Limits(attempt_seconds=5, memory_mb=1)},
    ],
)
def test_what_a_subject_can_notice_changes_both_keys(change: dict[str, Any]) -> None:
    before, after = keys_with(), keys_with(change)
    assert before[0] != after[0]
    assert before[1] != after[1]


@pytest.mark.parametrize(
    "change",
    [
        {"hidden": {"test.py": "assert 2"}},
        {"reference": {"main.py": "2"}},
        {"expected": 4},
        {"expected": "3"},
        {"limits": Limits(attempt_seconds=5, score_seconds=1)},
    ],
)
def test_what_only_graders_can_notice_changes_the_score_key_alone(change: dict[str, Any]) -> None:
    before, after = keys_with(), keys_with(change)
    assert before[0] == after[0]
    assert before[1] != after[1]


@pytest.mark.parametrize(
    "plan",
    [
        {"scorers": (ScorerSpec(kind="contains"),)},
        {"scorers": (ScorerSpec(kind="exact", options={"strip": False}),)},
        {"scorers": (ScorerSpec(kind="exact", revision="2"),)},
        {"threshold": 0.5},
        {"threshold": None},
    ],
)
def test_scorers_and_threshold_change_the_score_key_alone(plan: dict[str, Any]) -> None:
    before, after = keys_with(), keys_with(**plan)
    assert before[0] == after[0]
    assert before[1] != after[1]


@pytest.mark.parametrize(
    "subject",
    [
        SubjectSpec(kind="oracle", name="s", options={"a": 1}, revision="r"),
        SubjectSpec(kind="nop", name="t", options={"a": 1}, revision="r"),
        SubjectSpec(kind="nop", name="s", options={"a": True}, revision="r"),
        SubjectSpec(kind="nop", name="s", options={"a": 1}, revision="q"),
    ],
)
def test_everything_about_a_subject_changes_the_attempt_key(subject: SubjectSpec) -> None:
    assert keys_with()[0] != keys_with(subjects=(subject,))[0]


def test_the_seed_and_the_round_change_the_attempt_key() -> None:
    keys = {trial.attempt_key for seed in (0, 1) for trial in plan_of(1, 1, 3, seed=seed).trials()}
    assert len(keys) == 6


def test_how_answers_are_graded_changes_the_score_and_not_the_attempt() -> None:
    graded = {"runner": "pytest", "solution": ("main.py",), "tests": ("test.py",), "seconds": 5}
    (attempt, plain), (same, one), (_, other) = (
        keys_with(),
        keys_with({"grading": graded}),
        keys_with({"grading": {**graded, "seconds": 6}}),
    )
    assert attempt == same
    assert len({plain, one, other}) == 3
    assert keys_with({"grading": None}) == (attempt, plain)


def test_tags_the_plans_name_and_the_order_of_keys_change_nothing() -> None:
    two = {"a.py": "1", "b.py": "2"}
    turned = {"b.py": "2", "a.py": "1"}
    assert keys_with({"files": two}) == keys_with({"files": turned, "tags": {}}, name="q")


@given(st.lists(st.text("ab|", min_size=1, max_size=3), min_size=2, max_size=2, unique=True))
def test_no_two_names_share_a_key(names: list[str]) -> None:
    first, second = (keys_with({"id": name})[0] for name in names)
    assert first != second


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../b", "", ".", "a\nb", "a\0b"])
def test_a_path_outside_the_workspace_is_refused_by_name_with_the_way_out(path: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Case(id="c", prompt="?", files={path: ""})
    assert f"{path!r} does not stay inside the workspace: use a relative path without '..'" in str(caught.value)


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "\x1b[31m"])
def test_a_name_that_cannot_be_printed_is_refused(name: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Case(id=name, prompt="?")
    assert f"{name!r} is not a name: use printable characters" in str(caught.value)


@pytest.mark.parametrize("field", [{"rounds": 0}, {"threshold": 1.7}, {"threshold": float("nan")}, {"unknown": 1}])
def test_values_out_of_bounds_and_unknown_fields_are_refused(field: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(field))):
        plan_of(**{"rounds": 1, **field})


def test_every_problem_of_a_plan_is_found_at_once() -> None:
    case, subject = Case(id="same", prompt="?"), SubjectSpec(kind="nop", name="twin")
    plan = Plan(name="p", cases=(case, case), subjects=(subject, subject), scorers=())
    assert plan.problems() == [
        "plan 'p' has no scorers: add at least one",
        "case id 'same' is used more than once in plan 'p': rename one",
        "subject name 'twin' is used more than once in plan 'p': rename one",
    ]
    empty = Plan(name="p", cases=(), subjects=(), scorers=(ScorerSpec(kind="exact"),))
    assert empty.problems() == [
        "plan 'p' has no cases: add at least one",
        "plan 'p' has no subjects: add at least one",
    ]
    assert list(empty.trials()) == []


def test_keys_stay_what_they_were_when_the_program_is_upgraded() -> None:
    """These keys are in journals on users' disks: where they move, every attempt is paid for again."""
    case = Case(id="sum", prompt="add", files={"a.py": "x"}, hidden={"t.py": "y"}, expected=3)
    plan = Plan(
        name="golden",
        cases=(case,),
        subjects=(SubjectSpec(kind="nop", name="nop"),),
        scorers=(ScorerSpec(kind="exact", options={"strip": False}),),
    )
    trial = plan.trial(0)
    assert (trial.attempt_key, trial.score_key) == (
        "6985efc4e7a702f712566bfe0d332f0c",
        "ba37c2fca29272f5fe8550226c09d3d9",
    )
