"""Gates on a whole session, and its exit status."""

import pytest
from tests.report.suites.sessions import CAPITALS, REAL, SPEC, run

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.usefixtures("neutral_environment")


def test_a_pass_rate_decides_in_the_place_of_single_misses(pytester: pytest.Pytester) -> None:
    scores = {f"c{place}": float(place > 0) for place in range(10)}
    assert run(pytester, scores=scores).ret == 1
    met = run(pytester, "--eval-min-pass-rate=0.9", scores=scores)
    said = "1 eval missed its threshold, which the pass rate allows: pytest exits with 0"
    met.stdout.fnmatch_lines(
        [said, "--eval-min-pass-rate passed: 9 of 10 passed (90.0 %), wanted 90.0 %", "*1 failed*"]
    )
    assert met.ret == 0
    missed = run(pytester, "--eval-min-pass-rate=0.95", scores=scores)
    missed.stdout.fnmatch_lines(["--eval-min-pass-rate FAILED: 9 of 10 passed*"])
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
    result = run(pytester, "--eval-fail-under=0.9", a=1.0, b=0.6)
    result.stdout.fnmatch_lines(["--eval-fail-under FAILED: mean score 0.800 over 2 cases, wanted 0.9", "*2 passed*"])
    assert result.ret == 1
    assert run(pytester, "--eval-fail-under=0.8", a=1.0, b=0.6).ret == 0


@pytest.mark.parametrize("test", ["def test_plain(): pass", "# no test at all"])
def test_a_gate_without_evals_is_not_met(pytester: pytest.Pytester, test: str) -> None:
    result = run(pytester, "--eval-fail-under=0", test=test)
    result.stdout.fnmatch_lines(["--eval-fail-under FAILED: no eval was run"])
    assert result.ret == 1


def test_collecting_only_passes_no_judgement(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--collect-only", "--eval-fail-under=1", "--eval-json=out.json", a=1.0)
    assert result.ret == 0
    assert not (pytester.path / "out.json").exists()


def test_errors_of_collection_keep_their_own_exit_status(pytester: pytest.Pytester) -> None:
    assert run(pytester, "--eval-fail-under=0", test="import nothing_of_that_name").ret == pytest.ExitCode.INTERRUPTED


def test_a_baseline_fails_a_run_only_where_it_is_significantly_worse(pytester: pytest.Pytester) -> None:
    good, bad = ({f"c{place:02}": score for place in range(20)} for score in (1.0, 0.6))
    run(pytester, "--eval-json=good.json", scores=good)
    same = run(pytester, "--eval-baseline=good.json", scores=good)
    same.stdout.fnmatch_lines(["--eval-baseline passed: *none of 20 changed; *no regression shown*"])
    assert same.ret == 0
    worse = run(pytester, "--eval-baseline=good.json", scores=bad)
    worse.stdout.fnmatch_lines(["--eval-baseline FAILED: *regressed: -40.0 points*", "*20 passed*"])
    assert worse.ret == 1
    by_chance = run(pytester, "--eval-baseline=good.json", scores={**good, "c00": 0.6})
    by_chance.stdout.fnmatch_lines(["--eval-baseline passed: *no regression shown (could have missed up to *"])
    assert by_chance.ret == 0
    strict = run(pytester, "--eval-baseline=good.json", "--eval-undecidable=fail", scores={**good, "c00": 0.6})
    strict.stdout.fnmatch_lines(["--eval-baseline FAILED: *no regression shown*; undecidable counts as failed*"])
    assert strict.ret == 1
    close = run(pytester, "--eval-baseline=good.json", "--eval-margin=0.3", scores=good)
    close.stdout.fnmatch_lines(["--eval-baseline passed: *equivalence shown: the difference is within ±30 points*"])


def test_a_baseline_without_anything_in_common_fails_the_run(pytester: pytest.Pytester) -> None:
    run(pytester, "--eval-json=other.json", test=CAPITALS.format(scores={"a": 1.0}).replace("test_", "test_old_"))
    refused = run(pytester, "--eval-baseline=other.json", a=1.0)
    refused.stdout.fnmatch_lines(
        ["--eval-baseline UNDECIDED: 1 case of the baseline *: it is gone; no suite is in both runs*"]
    )
    assert refused.ret == 1


def test_a_baseline_without_evals_is_named_as_what_is_empty(pytester: pytest.Pytester) -> None:
    run(pytester, "--eval-json=empty.json", test="def test_plain(): pass")
    refused = run(pytester, "--eval-baseline=empty.json", a=1.0)
    refused.stdout.fnmatch_lines(["--eval-baseline UNDECIDED: the baseline has no evals"])
    assert refused.ret == 1


def test_a_run_can_be_the_baseline_of_the_next(pytester: pytest.Pytester) -> None:
    run(pytester, "--tb=no", "--eval-json=before.json", test=SPEC, plugin=REAL, apart=True)
    again = run(pytester, "--tb=no", "--eval-baseline=before.json", test=SPEC, plugin=REAL, apart=True)
    again.stdout.fnmatch_lines(["--eval-baseline passed: *test_capitals: on these cases: none of 2 changed*"])
