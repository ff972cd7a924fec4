"""`--eval-history`: a session is the last of a series of kept files."""

from pathlib import Path

import pytest
from tests.report.suites.sessions import run

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.usefixtures("neutral_environment")

NIGHT = """
import pytest

@pytest.mark.parametrize("case", range(30))
def test_answers(case, evaluated):
    evaluated(float(case >= {failing}), threshold=None, record={{"started": 1_700_000_000.0 + 86_400 * {night}}})
"""


def session(pytester: pytest.Pytester, night: int, failing: int, *words: str) -> pytest.RunResult:
    return run(pytester, *words, test=NIGHT.format(night=night, failing=failing))


def test_a_series_fails_the_session_that_shows_its_loss(pytester: pytest.Pytester) -> None:
    for night in range(3):
        (pytester.path / f"history/evals-{night}").mkdir(parents=True)
        assert session(pytester, night, 1, f"--eval-json=history/evals-{night}/evals.json").ret == 0
    same = session(pytester, 3, 1, "--eval-history=history")
    first = Path("history/evals-0/evals.json")
    same.stdout.fnmatch_lines([f"--eval-history *: not worse than {first} over 3 runs and 30 cases (one error rate *"])
    assert same.ret == 0
    worse = session(pytester, 3, 20, "--eval-history=history", "--eval-json=history/now.json")
    worse.stdout.fnmatch_lines(["--eval-history *: worse since this run, *: -63.3 points (found at this run), p = *"])
    assert worse.ret == 1
    fewer = session(pytester, 3, 1, "--eval-history=history", "--eval-json=history/now.json", "-k", "not 29")
    fewer.stdout.fnmatch_lines(["--eval-history *: 1 case of the baseline cannot be compared; 0 allowed in each run *"])
    assert fewer.ret == 1, "the file that is to be written is not part of the history"


def test_a_series_begins_with_the_baseline_that_is_pinned(pytester: pytest.Pytester) -> None:
    (pytester.path / "history").mkdir()
    for night, failing in enumerate((1, 20, 20)):
        assert session(pytester, night, failing, f"--eval-json=history/{night}.json").ret == 0
    assert session(pytester, 3, 20, "--eval-history=history").ret == 1
    pinned = session(pytester, 3, 20, "--eval-history=history", "--eval-history-baseline=history/1.json")
    pinned.stdout.fnmatch_lines(["--eval-history *: not worse than 1.json over 2 runs and 30 cases (one error rate *"])
    assert pinned.ret == 0
    alone = session(pytester, 3, 20, "--eval-history-baseline=history/1.json")
    assert alone.ret == pytest.ExitCode.USAGE_ERROR
    alone.stderr.fnmatch_lines(["*--eval-history-baseline begins a series of earlier runs: add --eval-history=DIR"])


def test_a_history_that_says_nothing_is_refused_before_any_test_runs(pytester: pytest.Pytester) -> None:
    (pytester.path / "history").mkdir()
    for folder in ("history", "nowhere"):
        empty = session(pytester, 0, 0, f"--eval-history={folder}")
        assert empty.ret == pytest.ExitCode.USAGE_ERROR
        empty.stderr.fnmatch_lines([f"*--eval-history {folder} has no file of --eval-json*"])
    (pytester.path / "history" / "torn.json").write_text('{"format":"bakeoff-evals"')
    torn = session(pytester, 0, 0, "--eval-history=history")
    assert torn.ret == pytest.ExitCode.USAGE_ERROR
    torn.stderr.fnmatch_lines(["*torn.json is not a valid --eval-json file*"])
