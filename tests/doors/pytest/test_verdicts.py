"""The verdict of the gates: first and last in the terminal, on the page, in JUnit, and in the exit code."""

import json
from xml.etree import ElementTree

import pytest

from .small_project import SmallProject, project

pytestmark = pytest.mark.journey

pytest_plugins = ["pytester"]
__all__ = ["project"]

POOR = """
@eval_suite(data=rows(*range(12)), scorers=[lambda given: 0.3], threshold=THRESHOLD)
def test_it(case):
    return "x"
"""


@pytest.mark.parametrize("quiet", [(), ("-q",)])
@pytest.mark.parametrize("threshold", ["None", "1.0", "0.2"])
def test_a_failed_gate_is_red_first_and_last(project: SmallProject, threshold: str, quiet: tuple[str, ...]) -> None:
    project.write(POOR.replace("THRESHOLD", threshold))
    seen = project.run("--eval-fail-under=0.9", "--eval-html=page.html", "--color=yes", *quiet)
    assert seen.result.ret == 1
    wanted = "--eval-fail-under FAILED: mean score 0.300 over 12 cases, wanted 0.9"
    last = seen.text.rstrip().splitlines()[-1]
    assert last == f"\x1b[31m\x1b[1mThe gate did not pass: {wanted}.\x1b[0m"
    section = seen.text[seen.text.index(" evals ") :].splitlines()[1:]
    assert section[0] == last
    assert f"\x1b[31m{wanted}\x1b[0m" in section
    page = (project.path / "page.html").read_text()
    assert '<span class="badge state-failed">failed</span>' in page
    assert f'<p class="headline">The gate did not pass: {wanted}. ' in page
    assert "Nothing failed" not in page


def test_a_gate_that_passed_is_green_unless_a_test_failed(project: SmallProject) -> None:
    project.write(POOR.replace("THRESHOLD", "0.2"))
    seen = project.run("--eval-fail-under=0.2", "--eval-html=page.html")
    assert (seen.result.ret, seen.text.rstrip().splitlines()[-1]) == (0, "The gate passed.")
    page = (project.path / "page.html").read_text()
    assert '<span class="badge state-passed">passed</span>' in page
    assert "Nothing failed." in page
    project.write("def test_fails():\n    assert 0\n", "test_other.py")
    seen = project.run("--eval-fail-under=0.2")
    assert seen.result.ret == 1
    assert " 1 failed, 12 passed in " in seen.text.rstrip().splitlines()[-1]


def test_scores_without_a_threshold_stand_beside_no_word_of_success(project: SmallProject) -> None:
    project.write(POOR.replace("THRESHOLD", "None"))
    assert project.run("--eval-html=page.html").result.ret == 0
    page = (project.path / "page.html").read_text()
    assert "Nothing failed" not in page
    assert "No threshold was set, so that no trial can fail." in page


def test_the_worst_gate_is_the_verdict(project: SmallProject) -> None:
    project.write(POOR.replace("THRESHOLD", "0.2") + '\ndef test_none(to_eval):\n    pytest.skip("no key")\n')
    seen = project.run("--eval-fail-under=0.9", "--eval-min-pass-rate=0.5", "--eval-allow-undecided=1")
    last = seen.text.rstrip().splitlines()[-1]
    assert last.startswith("1 of 2 gates did not pass: --eval-fail-under FAILED: mean score 0.300 over 12 cases")
    allowed = "1 of 13 undecided (1 skipped); 1 allowed (--eval-allow-undecided)"
    assert f"--eval-min-pass-rate passed: 12 of 12 passed (100.0 %), wanted 50.0 %; {allowed}" in seen.text
    seen = project.run("--eval-min-pass-rate=0.5")
    assert "did not pass: --eval-min-pass-rate UNDECIDED: 1 of 13 undecided (1 skipped); 0 allowed" in seen.text
    assert seen.result.ret == 1


def test_junit_has_the_ledger_and_the_gates_as_properties_of_the_suite(project: SmallProject) -> None:
    project.write(POOR.replace("THRESHOLD", "0.2") + '\ndef test_none(to_eval):\n    pytest.skip("no key")\n')
    project.run("--junitxml=out.xml", "--eval-junit", "--eval-fail-under=0.9")
    found = ElementTree.parse(project.path / "out.xml").getroot().findall("testsuite/properties/property")
    properties = {each.get("name"): each.get("value") for each in found}
    gate = properties.pop("eval.gate.eval-fail-under") or ""
    assert gate.startswith("FAILED: mean score ")
    assert "; 1 of 13 undecided (1 skipped)" in gate
    assert properties == {
        "eval.planned": "13",
        "eval.passed": "12",
        "eval.failed": "0",
        "eval.recorded": "0",
        "eval.skipped": "1",
        "eval.complete": "true",
    }


ONE_BREAKS = """
@eval_suite(data=rows(*range(30)), scorers=[right])
def test_it(case):
    return "no" if BROKEN and case.input == 7 else f"<{case.input}>"
"""


def test_no_new_failures_fails_for_one_case_that_broke(project: SmallProject) -> None:
    project.write(ONE_BREAKS.replace("BROKEN", "False"))
    assert project.run("--eval-json=before.json").result.ret == 0
    strict = ("--eval-baseline=before.json", "--eval-gate=no-new-failures", "--eval-min-pass-rate=0.5")
    assert project.run(*strict).result.ret == 0
    project.write(ONE_BREAKS.replace("BROKEN", "True"))
    seen = project.run(*strict)
    assert seen.result.ret == 1
    assert "--eval-baseline FAILED: 1 new failure: test_it.py::test_it[7]" in seen.text
    assert project.run("--eval-baseline=before.json", "--eval-min-pass-rate=0.5").result.ret == 0


TWENTY = """
for number in range(20):
    globals()[f"test_{number}"] = describe_eval(
        f"suite {number}", data=rows(*range(5)), scorers=[right], threshold=None,
        task=lambda input: f"<{input}>" if input < RIGHT else "no",
    )
"""


def test_20_suites_that_each_fall_from_5_of_5_to_1_of_5_fail_the_gate_together(project: SmallProject) -> None:
    project.write(TWENTY.replace("RIGHT", "5"))
    assert project.run("--eval-json=before.json").result.ret == 0
    project.write(TWENTY.replace("RIGHT", "1"))
    seen = project.run("--eval-baseline=before.json", "-q")
    assert seen.result.ret == 1
    assert "all together: worse on these cases: 80 of 100 got worse, none better" in seen.text


def test_facts_are_not_compared_with_a_blank_answer_and_the_gate_is_undecided(project: SmallProject) -> None:
    project.write("""
from bakeoff.scorers import Factuality

@eval_suite(data=[{"input": "a", "expected": " "}], scorers=[Factuality(model="scripted:A")], threshold=0)
def test_it(case):
    return "x"
""")
    seen = project.run("--eval-min-pass-rate=0")
    assert seen.result.ret == 1
    assert "--eval-min-pass-rate UNDECIDED: 1 of 1 undecided (1 lost to a grader)" in seen.text
    assert "`expected` is blank: write the facts" in seen.text


def test_a_baseline_that_is_not_complete_decides_nothing(project: SmallProject) -> None:
    project.write(ONE_BREAKS.replace("BROKEN", "False"))
    project.run("--eval-json=before.json")
    file = project.path / "before.json"
    whole = json.loads(file.read_text())
    cases = whole["suites"][0]["cases"]
    for change in ({"complete": False}, {"suites": [whole["suites"][0] | {"cases": cases[1:]}]}):
        file.write_text(json.dumps(whole | change))
        seen = project.run("--eval-baseline=before.json", "--eval-allow-undecided=100%")
        assert seen.result.ret == 1
        assert "--eval-baseline UNDECIDED: the baseline: the file contradicts itself" in seen.text


def test_v_shows_what_every_case_did_also_of_those_that_passed(project: SmallProject) -> None:
    project.write("""
@eval_suite(data=rows("a"), scorers=[right, Contains()], threshold=0.5)
def test_it(case):
    calls = [ToolCall(name="add", arguments={"a": 2}, result=4), ToolCall(name="drop", error="no such table")]
    return TaskResult(result="<a>", tool_calls=calls)
""")
    seen = project.run("-v")
    assert seen.counts() == {"passed": 1}
    seen.result.stdout.fnmatch_lines(
        [
            "test_it.py::test_it[[]a[]] PASSED 1.00 *",
            "    test_it.py:13",
            "    add(a=2) → 4",
            "    drop() error: no such table",
            "    right 1.00",
            "    contains 1.00",
            "    output <a>",
        ],
        consecutive=True,
    )
