"""`bakeoff rescore` of runs whose subjects are not there any more."""

import sys
from pathlib import Path

from bakeoff._kernel.imports import import_target
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec

from ..report.runs import record_of, write_run
from ..warm_bakeoff import Bakeoff


def test_a_run_is_scored_again_without_its_subject(bakeoff: Bakeoff, tmp_path: Path) -> None:
    plan = Plan(
        name="shouting",
        cases=(Case(id="one", prompt="hello", expected="HELLO"), Case(id="two", prompt="ho", expected="HO")),
        subjects=(SubjectSpec(kind="function", name="shout", options={"target": "__main__:shout"}),),
        scorers=(ScorerSpec(kind="exact"),),
        threshold=1.0,
    )
    records = [record_of(trial, 0.0, output=trial.case.prompt.upper()) for trial in plan.trials()]
    write_run(tmp_path / "results" / "runs" / "shouting", plan, records)
    done = bakeoff("rescore", "latest", "--all", "--trust")
    assert done.returncode == 0, done.stderr
    assert "shout scored 100.0 %" in done.stdout
    assert bakeoff("resume", "latest", "--trust").returncode == 2, "who asks it again needs it"


def test_a_target_is_found_in_the_current_folder(bakeoff: Bakeoff, tmp_path: Path) -> None:
    (tmp_path / "my_application.py").write_text("def answer(prompt):\n    return prompt.upper()\n")
    spec = SubjectSpec(kind="function", name="mine", options={"target": "my_application:answer"})
    plan = Plan(
        name="mine",
        cases=(Case(id="one", prompt="hi", expected="HI"),),
        subjects=(spec,),
        scorers=(ScorerSpec(kind="exact"),),
    )
    write_run(tmp_path / "results" / "runs" / "mine", plan, [])
    done = bakeoff("resume", "latest", "--trust")
    assert done.returncode == 0, done.stderr
    assert "mine scored 100.0 %" in done.stdout


def test_installed_modules_come_before_those_of_the_current_folder() -> None:
    assert import_target("json:dumps", "a test")(1) == "1"
    assert str(Path.cwd()) in sys.path
