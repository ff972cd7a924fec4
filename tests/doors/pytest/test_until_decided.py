"""`pytest --eval-until-decided`: suites whose comparisons are decided run no further case."""

import json

import pytest

from ...warm_bakeoff import Bakeoff
from .small_project import SmallProject, project

pytest_plugins = ["pytester"]
__all__ = ["project"]

COMPARED = """
import pathlib

def noted(what):
    with open("calls.txt", "a") as file:
        file.write(what + "\\n")

@pytest.mark.parametrize("model", ["good", "bad"])
@eval_suite(data=rows(*range(40)), scorers=[right], threshold=None, concurrency=1)
def test_models(case, model):
    noted(f"{model} {case.input}")
    return case.expected if model == "good" else "no"

def test_another():
    pass
"""
ALONE = """
@eval_suite(data=rows(*range(40)), scorers=[right], threshold=None, concurrency=2)
def test_alone(case):
    return case.expected if os.environ.get("RIGHT") else "no"
"""


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the lines of tables whole."""
    monkeypatch.setenv("COLUMNS", "160")


def calls(project: SmallProject) -> list[str]:
    return (project.path / "calls.txt").read_text().splitlines()


def test_what_is_not_needed_is_skipped_and_the_report_says_what_was_saved(project: SmallProject) -> None:
    project.write(COMPARED)
    seen = project.run("--eval-until-decided", "--eval-json", "out.json", "-rs")
    made = calls(project)
    assert 16 <= len(made) <= 20
    assert seen.counts() == {"passed": len(made) + 1, "skipped": 80 - len(made)}
    assert "not needed: every comparison of it is decided" in seen.text
    text = " ".join(seen.text.split())
    assert "test_models[good] is better than test_models[bad]" in text
    assert f"{80 - len(made)} of 80 trials" in text
    assert "were not needed" in text
    assert "anytime-valid" in text
    written = json.loads((project.path / "out.json").read_text())
    [pair] = written["comparisons"]["pairs"]
    assert (pair["first"], pair["second"]) == ("test_models[good]", "test_models[bad]")
    assert pair["decision"] == "regressed"
    assert written["comparisons"]["trials_saved"] == 80 - len(made)


def test_the_subjects_of_a_case_run_next_to_each_other_in_random_order(project: SmallProject) -> None:
    project.write(COMPARED)
    project.run("--eval-until-decided")
    inputs = [line.split()[1] for line in calls(project)]
    assert inputs[:16:2] == inputs[1:16:2]
    assert inputs[:16:2] != [str(number) for number in range(8)]


def test_the_kept_run_says_that_its_intervals_promise_less(project: SmallProject, bakeoff: Bakeoff) -> None:
    project.write(COMPARED)
    project.run("--eval-until-decided")
    shown = bakeoff("runs", "show", "latest", "--results", str(project.path / "results"))
    assert shown.returncode == 0, shown.stderr
    assert "incomplete" not in shown.stdout
    assert "assume that the number of cases was fixed in advance" in " ".join(shown.stdout.split())


def test_a_case_that_is_skipped_or_broken_holds_up_no_decision(project: SmallProject) -> None:
    broken = COMPARED.replace('    noted(f"{model} {case.input}")', '    if case.input % 20 == 3: pytest.skip("no")')
    project.write(broken)
    seen = project.run("--eval-until-decided")
    assert "test_models[good] is better than test_models[bad]" in " ".join(seen.text.split())


def test_suites_are_compared_with_the_baseline(project: SmallProject, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write(ALONE)
    monkeypatch.setenv("RIGHT", "1")
    project.run("--eval-json", "base.json")
    same = project.run("--eval-until-decided", "--eval-margin", "0.2", "--eval-baseline", "base.json")
    assert "baseline and test_alone are equivalent" in " ".join(same.text.split())
    assert "Equivalent: the interval lies within ±20 points." in same.text
    assert same.result.ret == 0
    assert same.counts()["skipped"] > 0
    monkeypatch.delenv("RIGHT")
    worse = project.run("--eval-until-decided", "--eval-baseline", "base.json")
    assert "baseline is better than test_alone" in " ".join(worse.text.split())
    assert worse.result.ret == 1
    assert "regressed: -100.0 points, anytime-valid interval" in worse.text
    assert worse.counts()["skipped"] >= 25


def test_cases_that_are_gone_are_missed_although_the_others_are_decided(
    project: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RIGHT", "1")
    project.write(ALONE)
    project.run("--eval-json", "base.json")
    project.write(ALONE.replace("range(40)", "range(35)"))
    seen = project.run("--eval-until-decided", "--eval-margin", "0.2", "--eval-baseline", "base.json")
    assert seen.counts()["skipped"] > 0
    assert seen.result.ret == 1
    assert "UNDECIDED: 5 cases of the baseline cannot be compared; 0 allowed" in seen.text


def test_where_nothing_can_be_compared_all_cases_run_and_it_is_said(project: SmallProject) -> None:
    project.write(ALONE)
    seen = project.run("--eval-until-decided")
    assert seen.counts() == {"passed": 40}
    assert "--eval-until-decided found nothing to compare" in " ".join(seen.text.split())
