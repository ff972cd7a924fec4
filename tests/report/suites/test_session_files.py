"""The files that a session writes, and what GitHub gets."""

import json
import signal
from pathlib import Path

import junitparser
import pytest
from tests.report.suites.evals import file_bytes, suite
from tests.report.suites.sessions import REAL, SPEC, properties, run, run_bakeoff

from bakeoff.report.render.html.index_page import IndexEntry, read_entries
from bakeoff.report.suites.eval_file import read_eval_file

pytest_plugins = ["pytester"]
pytestmark = [pytest.mark.full, pytest.mark.usefixtures("neutral_environment")]


def test_json_and_page_are_written_under_xdist_too(pytester: pytest.Pytester) -> None:
    files = ("--eval-json=out/evals.json", "--eval-html=out/evals.html")
    result = run(
        pytester,
        "-p",
        "xdist",
        "-n2",
        "--tb=no",
        *files,
        apart=True,
        scores={f"c{place}": place / 9 for place in range(10)},
    )
    result.stdout.fnmatch_lines(["test_capitals*10*0.500*", "wrote out/evals.json", "wrote out/evals.html"])
    file = read_eval_file(pytester.path / "out/evals.json")
    assert file.complete
    assert sorted(case.case for case in file.suites[0].cases) == [f"c{place}" for place in range(10)]
    assert (pytester.path / "out/evals.html").read_text().startswith("<!doctype html>")


def test_junit_has_the_scores_beside_a_tests_own_properties(pytester: pytest.Pytester) -> None:
    test = """
import pytest
import scipy.special
import scipy.stats
@pytest.fixture
def record(request):
    return lambda name, value: request.node.user_properties.append((name, value))

def test_a(evaluated, record):
    record("mine", 7)
    evaluated(0.82)

def test_b(evaluated):
    evaluated(1.0)
    evaluated(0.2)

def test_plain():
    pass
"""
    run(pytester, "--junitxml=junit.xml", "--eval-junit", "--tb=no", test=test)
    [found] = junitparser.JUnitXml.fromfile(str(pytester.path / "junit.xml"))
    told = {case.name: properties(case) for case in found}
    assert told["test_a"] == {
        "mine": "7",
        "eval.suite": "test_a",
        "eval.case": "",
        "eval.score": "0.82",
        "eval.threshold": "0.5",
        "eval.scorer.Contains": "0.82",
        "eval.scorer.Contains.reason": "it says something else",
    }
    assert (told["test_b"]["eval.score"], told["test_b"]["eval.2.score"]) == ("1", "0.2")
    assert told["test_plain"] == {}


def test_junit_under_xdist_has_each_score_once(pytester: pytest.Pytester) -> None:
    run(
        pytester,
        "-p",
        "xdist",
        "-n2",
        "--junitxml=junit.xml",
        "--eval-junit",
        "--tb=no",
        apart=True,
        a=1.0,
        b=0.2,
        c=0.7,
    )
    [found] = junitparser.JUnitXml.fromfile(str(pytester.path / "junit.xml"))
    assert {case.name: properties(case)["eval.score"] for case in found} == {
        "test_capitals[a]": "1",
        "test_capitals[b]": "0.2",
        "test_capitals[c]": "0.7",
    }
    names = [each.name for case in found for each in case.child(junitparser.Properties)]
    assert names.count("eval.score") == 3


def test_without_the_option_junit_is_as_pytest_has_it(pytester: pytest.Pytester) -> None:
    run(pytester, "--junitxml=junit.xml", a=1.0)
    assert "eval." not in (pytester.path / "junit.xml").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--eval-junit"], "*--eval-junit adds scores to the file of --junitxml: name one*"),
        (["--eval-json=."], "*--eval-json . is a folder: name a file*"),
        (["--eval-html=test_x.py/x.html"], "*--eval-html test_x.py/x.html cannot be written*"),
        (["--eval-baseline=nowhere.json"], "*nowhere.json cannot be read: No such file*"),
        (["--eval-baseline=test_x.py"], "*test_x.py is not a valid --eval-json file*"),
        (["--eval-fail-under=2"], "*--eval-fail-under*: '2' is not a number between 0 and 1"),
        (["--eval-min-pass-rate=nan"], "*--eval-min-pass-rate: 'nan' is not a number between 0 and 1"),
        (["--eval-min-pass-rate=most"], "*--eval-min-pass-rate: 'most' is not a number between 0 and 1"),
    ],
)
def test_what_cannot_work_is_refused_before_a_test_runs(
    pytester: pytest.Pytester, arguments: list[str], said: str
) -> None:
    result = run(pytester, *arguments, a=1.0)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])
    assert "Traceback" not in result.stderr.str()


def test_x_leaves_what_was_reported(pytester: pytest.Pytester) -> None:
    result = run(pytester, "-x", "--tb=no", "--eval-json=out.json", a=1.0, b=0.0, c=1.0)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*The run was stopped before its end*"])
    file = read_eval_file(pytester.path / "out.json")
    assert (file.complete, [case.case for case in file.suites[0].cases]) == (False, ["a", "b"])


def test_an_interrupted_run_leaves_what_was_reported(pytester: pytest.Pytester) -> None:
    test = f"""
import os, signal
def test_a(evaluated): evaluated(1.0)
def test_b(evaluated): os.kill(os.getpid(), {int(signal.SIGINT)})
def test_c(evaluated): evaluated(1.0)
"""
    result = run(pytester, "--eval-json=out.json", "--eval-html=out.html", "--eval-fail-under=1", test=test, apart=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    file = read_eval_file(pytester.path / "out.json")
    assert (file.complete, [suite.suite for suite in file.suites]) == (False, ["test_a"])
    assert (pytester.path / "out.html").is_file()


def test_a_file_that_cannot_be_written_at_the_end_fails_the_run_with_a_sentence(pytester: pytest.Pytester) -> None:
    test = """
import pathlib
def test_a(evaluated):
    pathlib.Path("out").write_text("a file where a folder is to be")
    evaluated(1.0)
"""
    result = run(pytester, "--eval-json=out/evals.json", test=test)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["error: out/evals.json cannot be written: *"])


def test_github_gets_annotations_and_a_summary_where_it_runs(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path / "summary.md"))
    monkeypatch.setenv("GITHUB_WORKSPACE", str(pytester.path.parent))
    scores = {"a": 1.0, **{f"b{place:02}": 0.0 for place in range(12)}}
    result = run(pytester, "--tb=no", "--eval-fail-under=0.5", scores=scores)
    errors = [line for line in result.outlines if line.startswith("::error ")]
    assert len(errors) == 10
    assert errors[0] == (
        f"::error file={pytester.path.name}/test_x.py,line=7,title=test_x.py%3A%3Atest_capitals[b00]"
        "::score 0.00, threshold 0.5: Contains: it says something else"
    )
    result.stdout.fnmatch_lines(["::notice title=bakeoff::2 more evals did not pass; the summary counts them"])
    told = (pytester.path / "summary.md").read_text()
    assert "## Evals" in told
    assert "| `test_capitals` | 13 | 0.077 |" in told
    assert "\\-\\-eval-fail-under FAILED" not in told
    assert "--eval-fail-under FAILED" in told
    assert "| `test_x.py::test_capitals[b00]` | 0.00 | 0.5 |" in told


def test_merging_judges_all_shards_and_writes_file_and_page(tmp_path: Path, pytester: pytest.Pytester) -> None:
    cases = suite([1.0, 0.0, 1.0, 1.0])
    for name, part in (("a.json", cases[:1]), ("b.json", cases[1:])):
        (pytester.path / name).write_bytes(file_bytes(part))
    made = run_bakeoff(
        pytester, "merge", "a.json", "b.json", "-o", "all.json", "--html", "all.html", "--fail-under", "0.75"
    )
    assert made.ret == 0
    made.stderr.fnmatch_lines(
        ["wrote all.json", "wrote all.html", "*test_capitals*4*0.750*", "*--fail-under passed: mean score 0.750*"]
    )
    assert "The gate passed. " in (pytester.path / "all.html").read_text()
    assert read_eval_file(pytester.path / "all.json").planned.planned == 4
    printed = run_bakeoff(pytester, "merge", "a.json", "b.json", "--min-pass-rate", "0.8")
    assert printed.ret == 1
    assert json.loads(printed.stdout.str())["numbers"]["cases"] == 4
    refused = run_bakeoff(pytester, "merge", "a.json", "nowhere.json")
    assert refused.ret == 2
    refused.stderr.fnmatch_lines(["error: nowhere.json cannot be read: No such file*"])


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n2")], ids=["alone", "xdist"])
def test_evals_that_were_really_run_are_reported(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    outputs = ("--eval-json=out.json", "--eval-html=out.html", "--junitxml=junit.xml", "--eval-junit")
    result = run(pytester, "-v", "--tb=no", *outputs, *workers, test=SPEC, plugin=REAL, apart=True)
    told = result.stdout.str()
    assert result.ret == 1
    assert "PASSED 1.00" in told
    assert "FAILED 0.00" in told
    assert "    add(a=2, b=2)" in told
    file = read_eval_file(pytester.path / "out.json")
    assert {found.suite: found.numbers.score for found in file.suites} == {
        "test_capitals": 0.5,
        "sums": 1.0,
        "test_one": 1.0,
    }
    [found] = junitparser.JUnitXml.fromfile(str(pytester.path / "junit.xml"))
    scores = {case.name: properties(case)["eval.score"] for case in found}
    assert scores["test_one"] == "1"
    assert sorted(scores.values()) == ["0", "1", "1", "1"]
    assert (pytester.path / "out.html").is_file()


def test_a_file_elsewhere_after_a_space_is_refused_since_pytest_looks_for_its_configuration_there(
    pytester: pytest.Pytester, tmp_path_factory: pytest.TempPathFactory
) -> None:
    before = tmp_path_factory.mktemp("elsewhere") / "main.json"
    assert run(pytester, f"--eval-json={before}", a=1.0).ret == 0
    refused = pytester.runpytest_subprocess("-p", "bakeoff.doors.pytest.plugin", "--eval-baseline", str(before))
    assert refused.ret == 4
    refused.stderr.fnmatch_lines([f"*--eval-baseline {before}: *: write --eval-baseline={before}"])
    assert run(pytester, f"--eval-baseline={before}", a=1.0).ret == 0


def test_the_page_of_a_kept_session_shows_the_gate_that_it_judged(pytester: pytest.Pytester) -> None:
    run(pytester, "--eval-fail-under=1", "--eval-results=results", test=SPEC, plugin=REAL, apart=True)
    assert run_bakeoff(pytester, "report", "--no-open", "-o", "page.html").ret == 0
    page = (pytester.path / "page.html").read_text()
    assert "badge state-failed" in page
    assert "The gate did not pass: --eval-fail-under FAILED: mean score" in page
    assert "5 evals planned: " in page
    [entry] = read_entries(pytester.path / "results")
    assert isinstance(entry, IndexEntry)
    assert entry.state == "failed"
