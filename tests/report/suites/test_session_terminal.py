"""Test what a session with evals prints."""

import pytest
from tests.report.suites.sessions import run

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.usefixtures("neutral_environment")

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
            "    test_x.py:8",
            "    agent(goal='find')",
            "        └ search() error: no network",
            "    Contains 0.82*",
            "    output *",
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
            "Suite*Cases*Score*95 % interval*Passed*Rate*",
            "test_capitals*3*0.633*0.*–0.*2/3*66.7 %*",
            "*3 of 3 cases have a score*",
            "*Intervals*",
            "Worst cases:",
            "test_x.py::test_capitals[[]c[]]*0.30*Contains: it says something else",
            "test_x.py::test_capitals[[]b[]]*0.60*",
        ]
    )


def test_what_could_not_be_judged_is_counted(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--tb=no", test="def test_a(evaluated): evaluated(None, break_scorer=True)")
    result.stdout.fnmatch_lines(
        ["test_x.py::test_a FAILED – *", "*needs 2 cases*", "*1 eval planned: 1 lost to a grader*", "*1 scorer broke*"]
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
