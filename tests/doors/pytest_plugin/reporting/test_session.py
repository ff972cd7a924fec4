"""Reports of whole sessions: what stands on the terminal, in files, in the exit status."""

import base64
import gzip
import json
import re
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import junitparser
import pytest
import scipy.special
import scipy.stats
from tests.doors.pytest_plugin.reporting import stand_in
from tests.doors.pytest_plugin.reporting.evals import file_bytes, suite

from bakeoff.doors.pytest_plugin.reporting import page, terminal
from bakeoff.doors.pytest_plugin.reporting.eval_file import read_eval_file

LOADED = (page, terminal, scipy.special, scipy.stats)  # else each session here would import them, and forget them

pytest_plugins = ["pytester"]

CAPITALS = """
import pytest
import scipy.special
import scipy.stats

SCORES = {scores}

@pytest.mark.parametrize("case", SCORES)
def test_capitals(case, evaluated):
    evaluated(SCORES[case])
"""
TOOLS = """
from bakeoff.record import ToolCall, Usage

CALLS = (
    ToolCall(name="agent", id="1", arguments={"goal": "find"}),
    ToolCall(name="search", id="2", parent_id="1", error="no network"),
)

def test_tools(evaluated):
    evaluated(0.82, record={"calls": CALLS, "spent": Usage(input=1000, output=204, cost=0.0012)})

def test_plain():
    pass
"""
Scores = Mapping[str, float]
NO_SCORES: Scores = {}
ROOT = Path(__file__).parents[4]


@pytest.fixture(autouse=True)
def _nobodys_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE", "CI", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def run(
    pytester: pytest.Pytester,
    *arguments: str,
    test: str = "",
    apart: bool = False,
    plugin: str = stand_in.__name__,
    scores: Scores = NO_SCORES,
    **more: float,
) -> pytest.RunResult:
    pytester.makepyfile(test_x=test or CAPITALS.format(scores={**scores, **more}))
    pytester.makeini("[pytest]\nfilterwarnings = error\n")
    started = pytester.runpytest_subprocess if apart else pytester.runpytest_inprocess
    return started("-p", plugin, "-p", "no:cacheprovider", *arguments)


def test_a_line_for_each_eval_and_dots_for_the_rest(pytester: pytest.Pytester) -> None:
    result = run(pytester, test=TOOLS)
    result.stdout.fnmatch_lines(
        ["test_x.py*", "test_x.py::test_tools 0.82 42ms 1,204 tokens 2 tools $0.001200", ".*[[]100%[]]"],
        consecutive=True,
    )
    result.stdout.no_fnmatch_line("*agent*")
    assert result.ret == 0


def test_v_keeps_the_words_of_pytest_and_adds_the_tool_tree(pytester: pytest.Pytester) -> None:
    result = run(pytester, "-v", test=TOOLS)
    result.stdout.fnmatch_lines(
        [
            "test_x.py::test_tools PASSED 0.82 42ms 1,204 tokens 2 tools $0.001200*[[] 50%[]]",
            "    agent(goal='find')",
            "        └ search() error: no network",
            "test_x.py::test_plain PASSED*[[]100%[]]",
        ],
        consecutive=True,
    )


def test_q_has_letters_only(pytester: pytest.Pytester) -> None:
    result = run(pytester, "-q", "--tb=no", a=1.0, b=0.0, c=1.0)
    assert result.outlines[0].startswith(".F.")
    result.stdout.no_fnmatch_line("test_x.py::* 1.00*")
    result.stdout.fnmatch_lines(["*evals*", "test_capitals*3*0.667*2/3*"])


def test_scores_are_coloured_by_how_good_they_are(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--color=yes", a=1.0, b=0.6, c=0.3)
    lines = [line for line in result.outlines if line.startswith("test_x.py::")]
    told = {line.partition(" ")[0]: line for line in reversed(lines)}
    assert "\x1b[32m1.00" in told["test_x.py::test_capitals[a]"]
    assert "\x1b[33m0.60" in told["test_x.py::test_capitals[b]"]
    assert "\x1b[31mFAILED 0.30" in told["test_x.py::test_capitals[c]"]


def test_the_summary_has_mean_interval_rate_and_worst_cases(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--tb=no", a=1.0, b=0.6, c=0.3)
    result.stdout.fnmatch_lines(
        [
            "*= evals =*",
            "suite*cases*score*95 % interval*passed*rate*",
            "test_capitals*3*0.633*0.*–0.*2/3*66.7 %*",
            "*3 of 3 cases have a score*",
            "*interval: *",
            "Worst cases:",
            "test_x.py::test_capitals[[]c[]]*0.30*Contains: it says something else",
            "test_x.py::test_capitals[[]b[]]*0.60*",
        ]
    )


def test_what_could_not_be_judged_is_counted(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--tb=no", test="def test_a(evaluated): evaluated(None, break_scorer=True)")
    result.stdout.fnmatch_lines(
        ["test_x.py::test_a FAILED – *", "*undefined*", "*1 case could not be judged*", "*1 scorer broke*"]
    )


def test_a_project_without_evals_sees_nothing_of_it(pytester: pytest.Pytester) -> None:
    result = run(pytester, test="def test_plain(): pass")
    assert not [line for line in result.outlines if "eval" in line and not line.startswith(("rootdir", "plugins"))]


def test_hostile_text_reaches_the_terminal_as_text(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    test = r"""
from bakeoff.record import ToolCall, Score
EVIL = "::error::x \x1b]0;owned\x07\x1b[2J\n::set-env name=PATH::/evil\n##[command]x [link=https://evil.example]x[/link]"

def test_a(evaluated):
    scores = (Score(name=EVIL, value=0.0, reason=EVIL),)
    evaluated(0.0, input=EVIL, suite=EVIL, case=EVIL, record={"calls": (ToolCall(name=EVIL),), "scores": scores})
"""
    result = run(pytester, "-v", "--tb=no", test=test)
    told = result.stdout.str()
    assert "\x1b" not in told
    assert not [
        line for line in result.outlines if line.lstrip().startswith(("::set-env", "::error::")) or "##[" in line
    ]
    assert any(
        line.startswith("::error file=test_x.py,line=4,title=test_x.py%3A%3Atest_a::score 0.00")
        for line in result.outlines
    )


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


def properties(case: Any) -> dict[str, str]:
    found = case.child(junitparser.Properties)
    return {each.name: each.value for each in found} if found is not None else {}


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
        (["--eval-min-score=2"], "*--eval-min-score: '2' is not a number between 0 and 1"),
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


def test_a_pass_rate_decides_in_the_place_of_single_misses(pytester: pytest.Pytester) -> None:
    scores = {f"c{place}": float(place > 0) for place in range(10)}
    assert run(pytester, scores=scores).ret == 1
    met = run(pytester, "--eval-min-pass-rate=0.9", scores=scores)
    said = "1 eval that missed its threshold is within that pass rate: pytest exits with 0 all the same"
    met.stdout.fnmatch_lines(["--eval-min-pass-rate met: 9 of 10 passed (90.0 %), wanted 90.0 %", said, "*1 failed*"])
    assert met.ret == 0
    missed = run(pytester, "--eval-min-pass-rate=0.95", scores=scores)
    missed.stdout.fnmatch_lines(["--eval-min-pass-rate NOT MET: 9 of 10 passed*"])
    assert missed.ret == 1


@pytest.mark.parametrize(
    "other", ["def test_plain(): assert False", "def test_b(evaluated): evaluated(None, break_scorer=True)"]
)
def test_a_pass_rate_forgives_nothing_but_scores(pytester: pytest.Pytester, other: str) -> None:
    scores = {f"c{place}": float(place > 0) for place in range(10)}
    result = run(pytester, "--eval-min-pass-rate=0.5", "--tb=no", test=f"{CAPITALS.format(scores=scores)}\n{other}\n")
    assert result.ret == 1


def test_a_pass_rate_forgives_nothing_in_a_run_that_was_stopped(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--eval-min-pass-rate=0.5", "--tb=no", "--maxfail=1", a=1.0, b=0.0, c=1.0)
    assert result.ret == 1


def test_a_mean_below_the_least_score_fails_a_run_in_which_every_test_passed(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--eval-min-score=0.9", a=1.0, b=0.6)
    result.stdout.fnmatch_lines(["--eval-min-score NOT MET: mean score 0.800 over 2 cases, wanted 0.9", "*2 passed*"])
    assert result.ret == 1
    assert run(pytester, "--eval-min-score=0.8", a=1.0, b=0.6).ret == 0


@pytest.mark.parametrize("test", ["def test_plain(): pass", "# no test at all"])
def test_a_gate_without_evals_is_not_met(pytester: pytest.Pytester, test: str) -> None:
    result = run(pytester, "--eval-min-score=0", test=test)
    result.stdout.fnmatch_lines(["--eval-min-score NOT MET: no eval was run"])
    assert result.ret == 1


def test_collecting_only_passes_no_judgement(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--collect-only", "--eval-min-score=1", "--eval-json=out.json", a=1.0)
    assert result.ret == 0
    assert not (pytester.path / "out.json").exists()


def test_errors_of_collection_keep_their_own_exit_status(pytester: pytest.Pytester) -> None:
    assert run(pytester, "--eval-min-score=0", test="import nothing_of_that_name").ret == pytest.ExitCode.INTERRUPTED


def test_a_baseline_fails_a_run_only_where_it_is_significantly_worse(pytester: pytest.Pytester) -> None:
    good, bad = ({f"c{place:02}": score for place in range(20)} for score in (1.0, 0.6))
    run(pytester, "--eval-json=good.json", scores=good)
    same = run(pytester, "--eval-baseline=good.json", scores=good)
    same.stdout.fnmatch_lines(["--eval-baseline met: *the same scores in 20 pairs of cases"])
    assert same.ret == 0
    worse = run(pytester, "--eval-baseline=good.json", scores=bad)
    worse.stdout.fnmatch_lines(["--eval-baseline NOT MET: *regressed: -40.0 points*", "*20 passed*"])
    assert worse.ret == 1
    by_chance = run(pytester, "--eval-baseline=good.json", scores={**good, "c00": 0.6})
    by_chance.stdout.fnmatch_lines(["--eval-baseline undecidable: *no difference is shown, and none is ruled out*"])
    assert by_chance.ret == 0


def test_x_leaves_what_was_reported(pytester: pytest.Pytester) -> None:
    result = run(pytester, "-x", "--tb=no", "--eval-json=out.json", a=1.0, b=0.0, c=1.0)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*the run was stopped before its end*"])
    file = read_eval_file(pytester.path / "out.json")
    assert (file.complete, [case.case for case in file.suites[0].cases]) == (False, ["a", "b"])


def test_an_interrupted_run_leaves_what_was_reported(pytester: pytest.Pytester) -> None:
    test = f"""
import os, signal
def test_a(evaluated): evaluated(1.0)
def test_b(evaluated): os.kill(os.getpid(), {int(signal.SIGINT)})
def test_c(evaluated): evaluated(1.0)
"""
    result = run(pytester, "--eval-json=out.json", "--eval-html=out.html", "--eval-min-score=1", test=test, apart=True)
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


def test_secrets_of_the_environment_are_in_no_file(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-very-secret-value-1234")
    test = """
import os
def test_a(evaluated): evaluated(0.0, input=os.environ["MY_API_KEY"])
"""
    run(pytester, "--eval-json=out.json", "--tb=no", test=test)
    assert "very-secret" not in (pytester.path / "out.json").read_text()


LEAKY = """
import os, pytest
from bakeoff import Score, TaskResult, ToolCall, describe_eval, eval_suite

KEYS = os.environ["MY_API_KEY"] + " " + "sk-of-the-file-98765432"

def tell(given):
    return Score(name="tell", value=0.0, reason=f"it said {KEYS}", metadata={"said": KEYS})

def broken(given):
    raise ValueError(KEYS)

@eval_suite(data=[{"input": KEYS, "name": KEYS, "expected": {KEYS: KEYS}}], scorers=[tell], threshold=0.5)
def test_it(case):
    return TaskResult(result=KEYS, tool_calls=[ToolCall(name="t", arguments={"k": KEYS}, result=[KEYS])])

test_named = describe_eval(KEYS, data=[{"input": "a"}], task=str, scorers=[tell])
test_broken = describe_eval("broken", data=[{"input": "a"}], task=str, scorers=[broken])

async def test_one(to_eval):
    await to_eval(KEYS, output=KEYS, scorer=tell)
"""


def unpacked(text: str) -> str:
    """With what a page holds in packed chunks."""
    chunks = re.findall(r'data-chunk="[^"]+">([^<]+)<', text)
    return text + "".join(gzip.decompress(base64.b64decode(chunk)).decode() for chunk in chunks)


def test_secrets_of_the_environment_and_of_its_file_are_in_no_page_data_or_property(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-very-secret-value-1234")
    (pytester.path / ".env").write_text("OTHER_API_KEY=sk-of-the-file-98765432\n")
    files = ("--eval-json=e.json", "--eval-html=e.html", "--eval-junit", "--junitxml=j.xml")
    told = run(pytester, *files, "--tb=no", "--eval-no-record", test=LEAKY, plugin=REAL)
    assert told.parseoutcomes()["failed"] == 4
    for name in ("e.json", "e.html"):
        written = unpacked((pytester.path / name).read_text())
        assert "it said [redacted" in written
        assert "very-secret" not in written
        assert "of-the-file" not in written
        assert "[redacted MY_API_KEY]" in written
    [found] = junitparser.JUnitXml.fromfile(str(pytester.path / "j.xml"))
    added = str([properties(case) for case in found])
    assert "it said [redacted MY_API_KEY] [redacted OTHER_API_KEY]" in added
    assert "very-secret" not in added
    assert "of-the-file" not in added


def test_github_gets_annotations_and_a_summary_where_it_runs(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path / "summary.md"))
    monkeypatch.setenv("GITHUB_WORKSPACE", str(pytester.path.parent))
    scores = {"a": 1.0, **{f"b{place:02}": 0.0 for place in range(12)}}
    result = run(pytester, "--tb=no", "--eval-min-score=0.5", scores=scores)
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
    assert "NOT MET \\-\\-" not in told
    assert "NOT MET --eval-min-score" in told
    assert "| `test_x.py::test_capitals[b00]` | 0.00 | 0.5 |" in told


def test_merging_judges_all_shards_and_writes_file_and_page(tmp_path: Path, pytester: pytest.Pytester) -> None:
    cases = suite([1.0, 0.0, 1.0, 1.0])
    for name, part in (("a.json", cases[:1]), ("b.json", cases[1:])):
        (pytester.path / name).write_bytes(file_bytes(part))
    made = bakeoff(pytester, "merge", "a.json", "b.json", "-o", "all.json", "--html", "all.html", "--min-score", "0.75")
    assert made.ret == 0
    made.stderr.fnmatch_lines(
        ["*test_capitals*4*0.750*", "*met --min-score: mean score 0.750*", "wrote all.json", "wrote all.html"]
    )
    assert read_eval_file(pytester.path / "all.json").shards == 2
    printed = bakeoff(pytester, "merge", "a.json", "b.json", "--min-pass-rate", "0.8")
    assert printed.ret == 1
    assert json.loads(printed.stdout.str())["numbers"]["cases"] == 4
    refused = bakeoff(pytester, "merge", "a.json", "nowhere.json")
    assert refused.ret == 2
    refused.stderr.fnmatch_lines(["error: nowhere.json cannot be read: No such file*"])


def bakeoff(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    command = "import sys; from bakeoff.cli.main import main; sys.exit(main())"
    return pytester.run(sys.executable, "-c", command, *arguments)


SPEC = """
from bakeoff import TaskResult, ToolCall, describe_eval, eval_suite
from bakeoff.scorers import Contains, ToolCalls

async def ask(input, **row):
    return TaskResult(result="4", tool_calls=[ToolCall(name="add", arguments={"a": 2, "b": 2})])

ROWS = [{"input": "Capital of France?", "expected": "Paris"}, {"input": "Capital of Italy?", "expected": "Rome"}]

@eval_suite(data=ROWS, scorers=[Contains()], threshold=0.8)
async def test_capitals(case):
    return f"It is {'Paris' if 'France' in case.input else '?'}."

test_sums = describe_eval(
    "sums", data=[{"input": "2+2", "expected_tools": ["add"]}], task=ask, scorers=[ToolCalls()], threshold=None
)

async def test_one(to_eval):
    await to_eval("What is 2+2?", expected="4", task=ask, scorer=Contains(), threshold=1.0)
    await to_eval("What is 2+2?", output="4", expected="4", scorer=Contains())
"""
REAL = "bakeoff.doors.pytest_plugin.plugin"


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


def test_a_run_can_be_the_baseline_of_the_next(pytester: pytest.Pytester) -> None:
    run(pytester, "--tb=no", "--eval-json=before.json", test=SPEC, plugin=REAL, apart=True)
    again = run(pytester, "--tb=no", "--eval-baseline=before.json", test=SPEC, plugin=REAL, apart=True)
    again.stdout.fnmatch_lines(["--eval-baseline met: *test_capitals: the same scores in 2 pairs of cases*"])
