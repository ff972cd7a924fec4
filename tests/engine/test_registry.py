"""Test that data become objects, with errors that name the value and the way out."""

import time
from pathlib import Path
from typing import Any

import pytest

from bakeoff._kernel.imports import import_target, revision_of, target_of
from bakeoff.engine.registry import default_registry
from bakeoff.errors import PlanError, UsageError
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.protocols import ScoreInput
from bakeoff.scorers import function_scorer
from bakeoff.subjects.function import function_subject


def here(prompt: str) -> str:
    return prompt


def any_score(given: ScoreInput) -> float:
    return 1.0


def test_an_edited_case_that_a_subject_cannot_read_is_a_problem_of_the_plan() -> None:
    plan = Plan(
        name="edited",
        cases=(Case(id="one", prompt="?"),),
        subjects=(SubjectSpec(kind="reader", name="reader"),),
        scorers=(ScorerSpec(kind="exact"),),
    )

    def read(spec: SubjectSpec) -> Any:
        return Case.model_validate({"prompt": spec.name})

    with pytest.raises(PlanError, match=r"reader.*id: is missing"):
        default_registry().with_subject("reader", read).resolve(plan)


class Holder:
    @staticmethod
    def inside(prompt: str) -> str:
        return prompt


NOT_CALLABLE = 7


@pytest.mark.parametrize("function", [here, Holder.inside])
def test_a_function_is_named_and_found_again(function: Any) -> None:
    assert import_target(target_of(function), "w") is function


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("no-colon", "w: 'no-colon' does not name a function: write it as `module:function`"),
        (":f", "w: ':f' does not name a function: write it as `module:function`"),
        ("m:", "w: 'm:' does not name a function: write it as `module:function`"),
        (".m:f", "w: '.m:f' does not name a function: write it as `module:function`"),
        ("json:nothing", "w: 'json' has no 'nothing': a function made inside another cannot be named"),
        ("json:dumps.no", "w: 'json' has no 'dumps.no': a function made inside another cannot be named"),
        ("nowhere.at.all:f", "w: module 'nowhere.at.all' cannot be imported: No module named 'nowhere'"),
        ("math:pi", "w: 'math:pi' is not callable"),
    ],
)
def test_a_target_that_cannot_be_used_is_said_so(target: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        import_target(target, "w")
    assert str(caught.value) == sentence


def test_a_module_with_a_syntax_error_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_module_of_a_test.py").write_text("def f(:\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError, match="w: module 'broken_module_of_a_test' cannot be imported: invalid syntax"):
        import_target("broken_module_of_a_test:f", "w")


def test_a_function_inside_another_cannot_be_named() -> None:
    def inner(prompt: str) -> str:
        return prompt

    plan = Plan(
        name="p",
        cases=(Case(id="c", prompt="?"),),
        subjects=(function_subject(inner),),
        scorers=(function_scorer(inner),),  # type: ignore[arg-type]
    )
    with pytest.raises(PlanError) as caught:
        default_registry().resolve(plan)
    assert len(caught.value.problems) == 2
    assert "a function made inside another cannot be named" in caught.value.problems[0]


def test_a_spec_changes_with_the_source_of_its_function() -> None:
    def one(prompt: str) -> int:
        return 1

    def two(prompt: str) -> int:
        return 2

    assert revision_of(one) != revision_of(two)
    assert revision_of(one) == revision_of(one)
    assert revision_of(len) == revision_of(print)  # no source to read
    assert function_subject(here).name == "here"
    assert function_subject(here, "mine").name == "mine"


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            SubjectSpec(kind="nop", name="n", options={"a": 1}),
            "subject 'n' (nop): option a: is not a key that is known here. Its options are: none",
        ),
        (
            SubjectSpec(kind="cheat", name="n"),
            "subject 'n' (cheat): option attack: is missing. Its options are: attack",
        ),
        (
            ScorerSpec(kind="exact", options={"strip": "perhaps"}),
            "scorer 'exact': option strip: 'perhaps': has to be true or false. Its options are: "
            "expected, ignore_case, strip",
        ),
        (
            ScorerSpec(kind="command", options={"argv": [], "seconds": 0}),
            "scorer 'command': option argv: []: needs at least 1; "
            "option seconds: 0: has to be more than 0. "
            "Its options are: argv, seconds, junit, proof, tests",
        ),
        (ScorerSpec(kind="exakt"), "scorer 'exakt': unknown kind 'exakt'; did you mean 'exact'?"),
    ],
)
def test_an_option_that_is_wrong_is_named_with_its_value_and_what_there_is(
    spec: SubjectSpec | ScorerSpec, sentence: str
) -> None:
    subject = spec if isinstance(spec, SubjectSpec) else SubjectSpec(kind="nop", name="ok")
    scorer = spec if isinstance(spec, ScorerSpec) else ScorerSpec(kind="exact")
    case = Case(id="c", prompt="?", expected="x")
    plan = Plan(name="p", cases=(case,), subjects=(subject,), scorers=(scorer,))
    with pytest.raises(PlanError) as caught:
        default_registry().resolve(plan)
    assert caught.value.problems == (sentence,)


def test_two_scorers_of_one_name_are_told_apart_by_a_name_of_their_own() -> None:
    nop = SubjectSpec(kind="nop", name="nop")
    case = Case(id="c", prompt="?", expected="x")
    twice = Plan(name="p", cases=(case,), subjects=(nop,), scorers=(ScorerSpec(kind="exact"), ScorerSpec(kind="exact")))
    with pytest.raises(PlanError, match="two scorers are called 'exact': give one of them a `name`"):
        default_registry().resolve(twice)
    named = twice.model_copy(update={"scorers": (ScorerSpec(kind="exact"), ScorerSpec(kind="exact", name="strict"))})
    assert list(default_registry().resolve(named).scorers) == ["exact", "strict"]


def problems_of(case: dict[str, Any], *scorers: ScorerSpec, answers: dict[str, Any] | None = None) -> tuple[str, ...]:
    options: dict[str, Any] = {"answers": answers} if answers else {"default": "x"}
    subject = SubjectSpec(kind="scripted", name="s", options=options)
    plan = Plan(name="p", cases=(Case(**{"id": "c", "prompt": "?", **case}),), subjects=(subject,), scorers=scorers)
    try:
        default_registry().resolve(plan)
    except PlanError as error:
        return error.problems
    return ()


REGEX, CONTAINS, EXACT = ScorerSpec(kind="regex"), ScorerSpec(kind="contains"), ScorerSpec(kind="exact")
COMMAND = ScorerSpec(kind="command", options={"argv": ["true"]})


@pytest.mark.parametrize("expected", ["", " ", [], ["a", ""]])
def test_an_empty_text_to_contain_is_told_before_anything_runs(expected: Any) -> None:
    assert problems_of({"expected": expected}, CONTAINS) == (
        "case 'c', 'contains': every output contains an empty text: say what the output must contain",
    )


def test_a_pattern_that_is_none_is_told_before_anything_runs() -> None:
    (problem,) = problems_of({"expected": "(a"}, REGEX)
    assert problem.startswith("case 'c', 'regex': expected '(a' is not a regular expression: missing )")
    assert problem.endswith("fix it, or use `contains`")
    own = ScorerSpec(kind="regex", options={"pattern": "a"})
    assert problems_of({"expected": "(a"}, own) == problems_of({"expected": "a"}, REGEX) == ()


def test_a_case_that_no_scorer_can_score_is_told_before_anything_runs() -> None:
    (problem,) = problems_of({}, EXACT, COMMAND)
    assert problem.startswith("case 'c': no scorer of the plan (exact, command) can score it: give the case what")
    assert problems_of({"hidden": {"t": ""}}, EXACT, COMMAND) == problems_of({"expected": 1}, EXACT, COMMAND) == ()
    assert problems_of({}, EXACT, function_scorer(any_score)) == ()  # it does not say which cases it scores


def test_a_script_without_an_answer_is_told_before_anything_runs() -> None:
    assert problems_of({"expected": "x"}, EXACT, answers={"d": "x"}) == (
        "case 'c', 's': the script has no answer for it and no default: add one of them",
    )


@pytest.mark.parametrize("where", ["files", "hidden", "reference"])
def test_a_path_that_is_both_a_file_and_a_folder_is_told_before_anything_runs(where: str) -> None:
    assert problems_of({where: {"a/x": "", "a/x/y/z": "", "b": ""}, "expected": "x"}, EXACT) == (
        f"case 'c': {where} has 'a/x' both as a file and as a folder of others: rename one",
    )


def test_everything_wrong_is_told_at_once_and_what_repeats_is_cut_short() -> None:
    cases = tuple(Case(id=f"c{number}", prompt="?", expected="(") for number in range(30))
    subject = SubjectSpec(kind="scripted", name="s", options={"answers": {"c0": "x"}})
    with pytest.raises(PlanError) as caught:
        default_registry().resolve(Plan(name="p", cases=cases, subjects=(subject,), scorers=(REGEX,)))
    assert len(caught.value.problems) == 2 * 21
    assert caught.value.problems[20] == "… and 9 more cases with the same problem"


def test_ten_thousand_cases_are_looked_at_in_no_time() -> None:
    cases = tuple(Case(id=f"c{number}", prompt="?", expected="x", files={"a/b": ""}) for number in range(10_000))
    subject = SubjectSpec(kind="scripted", name="s", options={"default": "x"})
    plan = Plan(name="p", cases=cases, subjects=(subject,), scorers=(EXACT, CONTAINS, REGEX, COMMAND))
    started = time.process_time()
    default_registry().resolve(plan)
    assert time.process_time() - started < 10
