"""The catalogue of the `cheat` subject, and a sample of it in front of the real graders. `make hostile` runs all."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from bakeoff.engine.resources import open_resources
from bakeoff.grading.attacks import (
    FAMILIES,
    SAMPLE,
    SLOW,
    HostileSolution,
    all_attacks,
    attack_names,
    attack_on,
    attacks_in_turn,
    attacks_on,
    solution_in_turn,
)
from bakeoff.grading.cases import GradedCase, graded_case, run_tests, toolchains_for
from bakeoff.grading.grades import compare_runs, grade_answer
from bakeoff.grading.references import OpenReferences, reference_of
from bakeoff.plan import Case, Grading
from bakeoff.sandbox import choose_sandbox

pytestmark = pytest.mark.full

TEST = "from solution import add\n\n\n" + "\n\n".join(
    f"def test_{a}_and_{b}():\n    assert add({a}, {b}) == {a + b}\n"
    for a, b in [(1, 2), (4, 9), (20, 5), (7, 40), (3, 33)]
)


STUBS = {
    ".ts": {"solution.ts": "export function add(a, b) {}\n"},
    ".js": {"solution.js": "export function add(a, b) {}\n"},
    ".go": {"solution.go": 'package sums\n\nfunc Add(a, b int) (int, error) {\n\tpanic("implement Add")\n}\n'},
    ".rs": {"solution.rs": "pub fn add(_a: i32, _b: i32) -> i32 {\n    todo!()\n}\n"},
    ".java": {"solution.java": 'class A { static int add(int a) { throw new RuntimeException("implement add"); } }\n'},
    ".cpp": {"solution.cpp": "", "solution.h": "namespace sums {\nint add(int a, const int& b);\n}\n"},
}


def case_in(suffix: str, name: str = "sums", **more: str) -> GradedCase:
    solution, test = f"solution{suffix}", f"test{suffix}" if suffix != ".py" else "test_solution.py"
    case = Case(
        id=name,
        prompt="",
        collect=(solution,),
        files=STUBS.get(suffix, {}),
        hidden={test: TEST, **more},
        reference={solution: "def add(a, b):\n    return a + b\n"},
        grading=Grading(runner="pytest", solution=(solution,), tests=(test,), seconds=20.0),
    )
    return graded_case(case)


def test_there_are_attacks_of_every_family_on_every_language() -> None:
    assert len(all_attacks()) >= 150
    solutions = [attack for attack in all_attacks() if isinstance(attack, HostileSolution)]
    counts = Counter(attack.suffix for attack in solutions)
    assert min(counts[suffix] for suffix in (".py", ".ts", ".js", ".svelte", ".tsx", ".vue")) >= 40
    assert min(counts[suffix] for suffix in (".go", ".rs", ".java", ".cpp")) >= 7
    assert {attack.family for attack in all_attacks()} == set(FAMILIES)
    for suffix in (".py", ".ts", ".svelte", ".tsx", ".vue"):
        names = [attack.name for attack in attacks_on(case_in(suffix))]
        assert len(names) == len(set(names)) >= 50


def test_an_ending_that_two_runners_test_has_attacks_on_each() -> None:
    case = case_in(".ts")
    vitest = replace(case, settings=case.settings.model_copy(update={"runner": "vitest"}))
    there, here = (
        {each.name: each for each in attacks_on(one) if isinstance(each, HostileSolution)} for one in (case, vitest)
    )
    assert not set(there.values()) & set(here.values())
    assert {"patch-runner-events"} <= there.keys() - here.keys()
    assert {"find-anything"} <= here.keys() - there.keys()
    assert "__vitest_worker__" in here["read-expected"].script(vitest)


def test_every_attack_says_what_it_does_and_hands_something_in() -> None:
    for attack in all_attacks():
        assert attack.what.startswith(("it ", "its solution ")), attack.name
        case = case_in(attack.suffix or ".py")
        assert attack.script(case).strip(), attack.name
        if isinstance(attack, HostileSolution):
            ((name, text),) = attack.files(case).items()
            assert name == case.settings.solution[0]
            assert "{case}" not in text


@pytest.mark.parametrize(
    ("suffix", "hollow"),
    [
        (".js", "export const add = hollow"),
        (".go", "func Add(a, b int) (_ int, _ error) {\n\tonCall()\n\treturn\n}"),
        (".rs", "pub fn add(_a: i32, _b: i32) -> i32 {\n    { on_call(); Default::default() }\n}"),
        (".java", "static int add(int a) { Attack.onCall(); return 0; }"),
        (".cpp", "namespace sums {\nint add(int , const int& ) { on_call(); return {}; }\n}"),
    ],
)
def test_an_attack_stands_in_for_the_functions_of_the_stub(suffix: str, hollow: str) -> None:
    case = case_in(suffix)
    attack = attack_on(case, "exit-in-test")
    assert isinstance(attack, HostileSolution)
    assert hollow in attack.files(case)[case.settings.solution[0]]


def test_python_attacks_are_python() -> None:
    case = case_in(".py")
    for attack in attacks_on(case):
        if isinstance(attack, HostileSolution):
            assert compile(attack.files(case)["solution.py"], attack.name, "exec").co_filename == attack.name


def test_a_name_stands_for_the_attack_in_the_language_of_the_case() -> None:
    for suffix in (".py", ".ts", ".svelte"):
        for name in ("exit-early", "loop-forever", "patch-assertions", "claim-all"):
            attack = attack_on(case_in(suffix), name)
            assert isinstance(attack, HostileSolution)
            assert attack.suffix == suffix
        assert attack_on(case_in(suffix), "patch-expect") == attack_on(case_in(suffix), "patch-assertions")
    assert attack_on(case_in(".ts"), "equal-everything") is None
    assert set(SAMPLE) | SLOW <= set(attack_names())


def test_attacks_take_turns_where_they_can_do_harm() -> None:
    cases = {f"{suffix}{n}": case_in(suffix) for n in range(130) for suffix in (".py", ".ts")}
    turns = attacks_in_turn(cases)
    fitting = {attack.name for suffix in (".py", ".ts") for attack in attacks_on(case_in(suffix))}
    assert set(turns.values()) == fitting - SLOW
    assert not {turns[f".ts{n}"] for n in range(130)} & {"conftest", "sitecustomize"}
    others = [solution_in_turn(case_in(".svelte", f"suite {n}")) for n in range(40)]
    assert len({each.name for each in others if each}) > 15
    assert solution_in_turn(case_in(".hs")) is None


async def test_attacks_that_a_single_run_believes_do_not_pass(tmp_path: Path) -> None:
    case = case_in(".py")
    async with open_resources(toolchains_for([case.case], lambda: choose_sandbox("auto"), 2)) as opened:
        resources = {**opened.opened, "references": OpenReferences(tmp_path, "verify")}
        reference = await reference_of(case, resources)
        for name in ("claim-all", "patch-reports", "equal-everything", "read-expected"):
            attack = attack_on(case, name)
            assert isinstance(attack, HostileSolution)
            answer = attack.files(case)
            alone = compare_runs(case, reference, await run_tests(case, answer, resources))
            grade = await grade_answer(case, answer, resources)
            assert alone.ok, (name, alone.summary())
            assert not grade.ok
            assert "tests pass whatever they expect" in grade.summary(), (name, grade.summary())
