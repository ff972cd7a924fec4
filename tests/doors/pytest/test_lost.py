"""Evals that were collected and did not run: they are in every report, and shut the gates."""

import json
from typing import Any

import pytest
from junitparser import JUnitXml

from bakeoff.cli.merge import MergeFlags, run_merge
from bakeoff.errors import UsageError
from bakeoff.storage.run_folder import run_folders

from .small_project import SmallProject, project

pytestmark = pytest.mark.journey

pytest_plugins = ["pytester"]
__all__ = ["project"]

GATES = ("--eval-json=out.json", "--eval-min-pass-rate=0.1", "--eval-fail-under=0.1")


def undecided(project: SmallProject) -> dict[str, str]:
    """The reasons of the undecided evals in the file, by case; every gate is undecided."""
    file = json.loads((project.path / "out.json").read_text())
    cases = [case for suite in file["suites"] for case in suite["cases"]]
    assert [gate["met"] for gate in file["gates"]] == [None, None]
    return {case["case"]: case["problem"] for case in cases if case["problem"]}


def merged(project: SmallProject, allow_undecided: str = "0") -> int:
    wanted = MergeFlags(output=str(project.path / "merged.json"), min_pass_rate=0.1, allow_undecided=allow_undecided)
    return run_merge(files=[project.path / "out.json"], wanted=wanted)


def kept(project: SmallProject) -> list[str]:
    """The verdicts in the kept run."""
    [run] = run_folders(project.path / "results")
    return [record.verdict for record in run.latest_records(run.read_plan())]


FIXTURES = """
@pytest.fixture
def server(request):
    if "b" in request.node.name:
        raise OSError("port 80 is taken")
    yield

@eval_suite(data=rows("a", "b", "c"), scorers=[right])
def test_it(case, server):
    return f"<{case.input}>"
"""


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2")])
def test_an_eval_whose_fixture_fails_is_undecided(project: SmallProject, workers: tuple[str, ...]) -> None:
    project.write(FIXTURES)
    seen = project.run_apart(*GATES, *workers, record=())
    assert seen.result.ret == 1
    assert undecided(project) == {"b": "it was not run: an error in a fixture: OSError: port 80 is taken"}
    assert merged(project) == 3
    assert sorted(kept(project)) == ["infra", "pass", "pass"]


def test_data_that_fail_midway_shut_every_gate_and_the_rows_before_are_run(project: SmallProject) -> None:
    project.path.joinpath("torn.csv").write_text('input,expected\nd,<d>\n"e')
    project.write("""
def some():
    yield from rows("a", "b")
    raise ValueError("line 3 is torn")

async def later():
    for row in some():
        yield row

@eval_suite(data=some, scorers=[right])
def test_torn(case):
    return f"<{case.input}>"

@eval_suite(data=later, scorers=[right])
def test_later(case):
    return f"<{case.input}>"

@eval_suite(data="torn.csv", scorers=[right])
def test_csv(case):
    return f"<{case.input}>"

@eval_suite(data=rows("c"), scorers=[right])
def test_whole(case):
    return f"<{case.input}>"
""")
    seen = project.run(*GATES, "--eval-allow-undecided=90%")
    assert (seen.result.ret, seen.counts()) == (1, {"passed": 6, "failed": 3})
    torn = "its data could not be read after 2 rows: ValueError: line 3 is torn"
    file = json.loads((project.path / "out.json").read_text())
    assert [(gate["met"], gate["sentence"].partition(";")[0]) for gate in file["gates"]] == [
        (None, "the run was stopped before its end, or not all of it could be collected and read")
    ] * 2
    problems = {case["nodeid"]: case["problem"] for suite in file["suites"] for case in suite["cases"]}
    assert {name: problem for name, problem in problems.items() if problem} == {
        "test_it.py::test_torn[data]": torn,
        "test_it.py::test_later[data]": torn,
        "test_it.py::test_csv[data]": "its data could not be read after 1 row: "
        f"{project.path / 'torn.csv'}:3: this is not CSV: unexpected end of data",
    }
    assert merged(project, allow_undecided="90%") == 3


def test_a_session_that_dies_leaves_no_old_results_behind(project: SmallProject) -> None:
    project.write("test_it = describe_eval('it', data=rows('a'), task=lambda text: f'<{text}>', scorers=[right])")
    assert project.run("--eval-json=out.json").result.ret == 0
    assert merged(project) == 0
    assert project.run("--eval-json=out.json", "--collect-only").result.ret == 0
    assert merged(project) == 0
    project.write("test_it = describe_eval('it', data=rows('a'), task=lambda text: os._exit(3), scorers=[right])")
    assert project.run_apart("--eval-json=out.json").result.ret == 3
    assert merged(project) == 1


def test_a_session_that_ends_the_process_with_0_leaves_files_that_no_gate_passes(project: SmallProject) -> None:
    """The exit code is 0 and there is no summary: only the files tell."""
    good = "test_it = describe_eval('it', data=rows('a', 'b'), task=lambda text: f'<{text}>', scorers=[right])"
    files = ("--eval-json=out.json", "--eval-html=out.html", "--junitxml=out.xml", "--eval-fail-under=0.5")
    project.write(good)
    assert project.run(*files).result.ret == 0
    project.write(good.replace("f'<{text}>'", "os._exit(0)"))
    seen = project.run_apart(*files)
    assert (seen.result.ret, "The gate" in seen.text) == (0, False)
    assert not (project.path / "out.html").exists()
    assert not (project.path / "out.xml").exists()
    assert json.loads((project.path / "out.json").read_text())["complete"] is False
    assert merged(project) == 1
    kept = (project.path / "out.json").rename(project.path / "before.json")
    project.write(good)
    assert project.run(f"--eval-baseline={kept}").result.ret == 1
    project.write(good.replace("f'<{text}>'", "os._exit(0)"))
    crashed = project.run_apart(*files, "-p", "xdist", "-n", "1", "--max-worker-restart=0", record=())
    assert crashed.result.ret == 1
    assert "started and not finished" in crashed.text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "gate FAILED: mean score 0.500 over 2 cases, wanted 0.9"),
        (
            ("--eval-shard=1/2",),
            "gate FAILED: for shard 1 of 2 alone (`bakeoff merge` decides the whole): mean score 0.500 over 2 cases",
        ),
        (("-x", "--eval-fail-under=0"), "gate UNDECIDED: the run was stopped"),
    ],
)
def test_a_gate_that_did_not_pass_is_a_failed_test_of_junit(
    project: SmallProject, options: tuple[str, ...], said: str
) -> None:
    project.write("""
test_it = describe_eval(
    "it", data=rows(*"abcd"), task=lambda text: f"<{text}>", scorers=[lambda given: given.input in "ab"], threshold=None
)

def test_stops():
    raise SystemExit
""")
    keep = ("-k", "a or c") if not options else ()
    assert project.run_apart("--junitxml=out.xml", "--eval-fail-under=0.9", *keep, *options).result.ret == 1
    suite = next(iter(JUnitXml.fromfile(str(project.path / "out.xml"))))
    [gate] = [case for case in suite if case.classname == "gate"]
    assert gate.result[0].message.startswith(said)


def test_evals_of_a_worker_that_crashed_are_undecided(project: SmallProject) -> None:
    project.write("""
@eval_suite(data=rows("a", "b", "c", "d"), scorers=[right])
def test_it(case):
    if case.input == "b":
        os._exit(1)
    return f"<{case.input}>"
""")
    seen = project.run_apart(*GATES, "-p", "xdist", "-n", "1", "--max-worker-restart=0", record=())
    assert seen.result.ret == 1
    found = undecided(project)
    told = ("it was not finished: worker 'gw0' crashed", "it was not run: the session was stopped before")
    assert all(reason.startswith(told) for reason in found.values())  # xdist may be at another case than the loop
    assert {"b", "d"} <= set(found)
    assert merged(project) == 3


def test_evals_after_the_first_failure_are_undecided_if_pytest_stops_there(project: SmallProject) -> None:
    project.write("""
@eval_suite(data=rows("a", "b", "c"), scorers=[right])
def test_it(case):
    return "<a>"
""")
    assert project.run(*GATES, "-x").result.ret == 1
    assert undecided(project) == {"c": "it was not run: the session was stopped before"}
    assert merged(project) == 3
    assert sorted(kept(project)) == ["fail", "infra", "pass"]


def test_a_file_that_cannot_be_collected_shuts_the_gates(project: SmallProject) -> None:
    project.write("\n@eval_suite(data=rows('a'), scorers=[right])\ndef test_it(case):\n    return '<a>'\n")
    project.write("import nowhere_to_be_found\n", "test_other.py")
    assert project.run(*GATES, "--continue-on-collection-errors").result.ret == 1
    assert undecided(project) == {}
    assert merged(project) == 3


def test_a_test_that_fails_before_its_eval_leaves_an_undecided_one(project: SmallProject) -> None:
    project.write("""
def test_early(to_eval):
    assert 1 == 2, "never"
    to_eval.sync("a", output="a", scorer=Exact(), expected="a")

def test_it(to_eval):
    to_eval.sync("a", output="a", scorer=Exact(), expected="a")

@pytest.mark.skip
def test_skipped(to_eval):
    pass
""")
    assert project.run(*GATES).result.ret == 1
    assert list(undecided(project)) == ["test_early"]
    assert merged(project) == 3


def test_what_marks_and_skip_if_leave_out_and_what_is_deselected_is_not_lost(project: SmallProject) -> None:
    project.write("""
@eval_suite(data=rows("a"), scorers=[right])
def test_it(case):
    return "<a>"

@pytest.mark.skipif(True, reason="not today")
@eval_suite(data=rows("b"), scorers=[right])
def test_it_marked(case):
    return "<b>"

@eval_suite(data=rows("b"), scorers=[right], skip_if=lambda: True)
def test_it_if(case):
    return "<b>"

@pytest.mark.skip
def test_it_inside(to_eval):
    pass

@eval_suite(data=rows("c"), scorers=[right])
def test_other(case):
    return "<c>"
""")
    seen = project.run(*GATES, "-k", "not test_other")
    assert (seen.result.ret, seen.counts()) == (0, {"passed": 1, "skipped": 3, "deselected": 1})


SKIPS = """
@pytest.fixture
def key(request):
    if "d" in request.node.name:
        pytest.skip("no key")

@eval_suite(data=rows("a", "b", "c", "d", "e"), scorers=[right], rounds=2)
def test_it(case, key):
    if case.input in ("b", "c"):
        pytest.skip("not today")
    if case.input == "e":
        pytest.xfail("known")
    return "<a>"

def test_skips(to_eval):
    pytest.skip("not here")

def test_calls_nothing(run_eval):
    assert run_eval
"""


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2")])
def test_what_is_skipped_at_run_time_is_counted_beside_the_score_and_undecided(
    project: SmallProject, workers: tuple[str, ...]
) -> None:
    project.write(SKIPS)
    seen = project.run_apart(*GATES, *workers, record=())
    assert (seen.result.ret, seen.counts()) == (1, {"passed": 2, "skipped": 4, "xfailed": 1})
    assert undecided(project) == {
        "b": "it was skipped: not today",
        "c": "it was skipped: not today",
        "d": "it was skipped: no key",
        "e": "it was skipped: known",
        "test_skips": "it was skipped: not here",
        "test_calls_nothing": "it was skipped: its test called no eval",
    }
    assert "7 evals planned: 1 passed, 6 skipped" in seen.text
    assert "Worst cases" not in seen.text
    assert merged(project) == 3
    assert merged(project, allow_undecided="6") == 0
    assert project.run_apart(*GATES, *workers, "--eval-allow-undecided=6").result.ret == 0


UNFINISHED = """
import contextlib

async def slow(input):
    await asyncio.sleep(60)

async def quick(input):
    return "a"

async def broken(input):
    raise ValueError("no answer")

def asked(to_eval, task, wait=None):
    return (wait or to_eval)("a", task=task, expected="a", scorer=Exact())

async def test_task(to_eval):
    asyncio.create_task(asked(to_eval, slow))
    await asyncio.sleep(0.01)

async def test_wait_for(to_eval):
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(asked(to_eval, slow), 0.01)

async def test_first(to_eval):
    both = [asyncio.create_task(asked(to_eval, task)) for task in (slow, quick)]
    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)

async def test_cancelled(to_eval):
    task = asyncio.create_task(asked(to_eval, slow))
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

async def test_one_fails(to_eval):
    await asyncio.gather(asked(to_eval, slow), to_eval("a", output="b", expected="a", scorer=Exact()))

def test_thread(to_eval):
    begun = threading.Event()
    async def never(input):
        begun.set()
        await asyncio.sleep(60)
    threading.Thread(target=lambda: asked(to_eval, never, wait=to_eval.sync), daemon=True).start()
    begun.wait(60)

async def test_run(run_eval):
    asyncio.create_task(run_eval("a", task=slow))
    await asyncio.sleep(0.01)

async def test_judge(run_eval):
    async def never(given):
        await asyncio.sleep(60)
    result = await run_eval("a", task=quick)
    asyncio.create_task(result.judge(never))
    await asyncio.sleep(0.01)

async def test_twice(to_eval):
    [asyncio.create_task(asked(to_eval, slow)) for _ in range(2)]
    await asyncio.sleep(0.01)

async def test_swallowed(run_eval):
    await asyncio.gather(run_eval("a", task=broken), run_eval("b", task=quick), return_exceptions=True)

async def test_expected(run_eval):
    with pytest.raises(ValueError):
        await run_eval("a", task=broken)

@pytest.mark.xfail
async def test_xfail(to_eval):
    asked(to_eval, quick)
"""


@pytest.mark.parametrize("plugins", [(), ("-p", "pytest_asyncio.plugin", "-o", "asyncio_mode=auto")])
def test_an_eval_that_is_started_and_not_finished_is_undecided_and_fails_its_test(
    project: SmallProject, plugins: tuple[str, ...]
) -> None:
    project.write(UNFINISHED)
    seen = project.run_apart(*GATES, *plugins, "-W", "ignore", record=())
    assert (seen.result.ret, seen.counts()) == (1, {"passed": 2, "failed": 9, "xfailed": 1})
    file = json.loads((project.path / "out.json").read_text())
    lost = [case["suite"] for case in _cases(file) if case["problem"]]
    names = ("task", "wait_for", "first", "cancelled", "one_fails", "thread", "run", "judge", "twice", "twice", "xfail")
    assert lost == [f"test_{name}" for name in names]
    assert file["ledger"]["missing"] == {"unfinished": 10, "not run": 1}
    assert (file["ledger"]["planned"], file["ledger"]["passed"], file["ledger"]["failed"]) == (15, 2, 2)
    said = "test_it.py:25: this eval was started and had not finished when its test ended: await it to its end"
    assert next(case["problem"] for case in _cases(file)) == said
    assert [case["passed"] for case in _cases(file) if case["suite"] == "test_swallowed"] == [False]
    assert "11 of 15 undecided (10 started and not finished, 1 not run); 0 allowed" in seen.text


def _cases(file: dict[str, Any]) -> list[dict[str, Any]]:
    return [case | {"suite": suite["suite"]} for suite in file["suites"] for case in suite["cases"]]


def test_an_eval_that_is_called_after_the_end_of_its_test_is_refused(project: SmallProject) -> None:
    project.write("""
@pytest.fixture
def late(to_eval):
    yield
    to_eval.sync("b", output="b", expected="b", scorer=Exact())

def test_it(to_eval, late):
    to_eval.sync("a", output="a", expected="a", scorer=Exact())
""")
    seen = project.run("--eval-min-pass-rate=0.5")
    assert (seen.result.ret, seen.counts()) == (1, {"passed": 1, "errors": 1})
    assert "test_it.py:16: this eval is called after the end of its test" in seen.text


def test_an_eval_in_a_forked_process_is_refused_there_and_undecided_here(project: SmallProject) -> None:
    project.write("""
def test_other(to_eval):
    to_eval.sync("a", task=lambda text: "<a>", expected="<a>", scorer=right)

def test_it(to_eval):
    if (child := os.fork()) == 0:
        try:
            to_eval.sync("a", task=lambda text: "<a>", expected="<a>", scorer=right)
        except Exception as error:
            os.write(2, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
""")
    seen = project.run_apart(*GATES, "-s", "-W", "ignore::DeprecationWarning")
    assert seen.result.ret == 1
    assert "this eval is called in a forked process, where it cannot run or be counted" in seen.result.stderr.str()
    assert "1 of 2 undecided (1 skipped); 0 allowed" in seen.text


def test_a_broken_scorer_shuts_the_gates_unless_that_many_are_allowed(project: SmallProject) -> None:
    project.write("""
def picky(given):
    if given.input != "a":
        raise ValueError("cannot tell")
    return 1.0

@eval_suite(data=rows("a", "b", "c"), scorers=[picky])
def test_it(case):
    return f"<{case.input}>"
""")
    assert project.run(*GATES).result.ret == 1
    assert list(undecided(project)) == ["b", "c"]
    assert merged(project) == 3
    for allowed, code in (("1", 1), ("2", 0), ("0.5", 1), ("70%", 0)):
        assert project.run(*GATES, f"--eval-allow-undecided={allowed}").result.ret == code, allowed
    assert merged(project) == 3
    assert merged(project, allow_undecided="2") == 0
    seen = project.run("--eval-min-pass-rate=0.1", "--eval-allow-undecided=many")
    assert "'many' is neither a number such as 3 nor a share such as 0.05" in seen.result.stderr.str()


def test_a_pass_rate_forgives_a_low_score_and_no_assert(project: SmallProject) -> None:
    code = """
@eval_suite(data=rows("a", "b"), scorers=[right])
def test_it(case):
    {line}
    return "<a>"
"""
    project.write(code.format(line="pass"))
    assert project.run("--eval-min-pass-rate=0.5").result.ret == 0
    project.write(code.format(line="assert case.input == 'a'"))
    assert project.run("--eval-min-pass-rate=0.5").result.ret == 1


def test_a_session_that_an_eval_ends_meets_no_gate_whatever_is_allowed(project: SmallProject) -> None:
    project.write("""
@eval_suite(data=rows("a", "b", "c"), scorers=[right], concurrency=1)
def test_it(case):
    if case.input == "b":
        pytest.exit("enough", returncode=0)
    return f"<{case.input}>"
""")
    assert project.run(*GATES, "--eval-allow-undecided=100%").result.ret == 1
    assert json.loads((project.path / "out.json").read_text())["complete"] is False


def test_cases_that_nobody_scored_shut_the_gate_of_scores(project: SmallProject) -> None:
    project.write("""
@eval_suite(data=rows("a", "b", "c"), scorers=[lambda given: 1.0 if given.input == "a" else None], threshold=None)
def test_it(case):
    return "x"
""")
    seen = project.run("--eval-fail-under=0.9")
    assert (seen.result.ret, seen.counts()) == (1, {"passed": 3})
    assert "--eval-fail-under UNDECIDED: 2 of 3 undecided (2 without a score); 0 allowed" in seen.text
    assert project.run("--eval-fail-under=0.9", "--eval-allow-undecided=2").result.ret == 0


def test_a_scorer_that_never_gives_a_number_leaves_every_gate_undecided(project: SmallProject) -> None:
    code = """
def tone(given):
    return {tone}

@eval_suite(data=rows("a", "b", "c"), scorers=[right, tone], threshold=0.5)
def test_it(case):
    return f"<{{case.input}}>"
"""
    project.write(code.format(tone="0.0"))
    assert project.run("--eval-json=before.json", "--eval-fail-under=0.5").result.ret == 0
    project.write(code.format(tone="None"))
    seen = project.run(*GATES, "--eval-fail-under=0.9")
    assert (seen.result.ret, seen.counts()) == (1, {"passed": 3})
    assert "--eval-fail-under UNDECIDED: 3 of 3 undecided (3 unscored by tone, which scored nothing)" in seen.text
    assert merged(project) == 3
    assert project.run("--eval-baseline=before.json").result.ret == 1
    assert project.run(*GATES, "--eval-allow-undecided=3").result.ret == 0
    project.write(code.format(tone='None if given.input == "a" else 1.0'))
    assert project.run(*GATES).result.ret == 0, "it does not apply to one case"


def test_a_suite_of_the_baseline_that_is_gone_shuts_the_gate(project: SmallProject) -> None:
    project.write("""
test_stays = describe_eval("stays", data=rows(*range(5)), task=lambda text: f"<{text}>", scorers=[right])
test_goes = describe_eval("goes", data=rows(*range(5)), task=lambda text: f"<{text}>", scorers=[right])
""")
    assert project.run("--eval-json=before.json").result.ret == 0
    assert project.run("--eval-baseline=before.json").result.ret == 0
    seen = project.run("--eval-baseline=before.json", "-k", "test_stays")
    assert seen.result.ret == 1
    assert "--eval-baseline UNDECIDED: 5 cases of the baseline cannot be compared; 0 allowed" in seen.text


LOGGING = """
import unittest
import bakeoff
import helper
from bakeoff import log_score

def test_ok():
    log_score("s", 1.0)

@pytest.fixture
def key():
    pytest.skip("no key")

@pytest.fixture
def port():
    log_score("s", 1.0)
    raise OSError("port 80 is taken")

@pytest.fixture
def late():
    yield
    log_score("s", 0.0)

def test_fixture_skips(key):
    log_score("s", 0.0)

def test_skips():
    pytest.skip("not here")
    bakeoff.log_score("s", 0.0)

def test_helper():
    pytest.skip("not here")
    helper.log(0.0)

def test_fixture_fails(port):
    pass

def test_fails_before():
    assert 1 == 2
    log_score("s", 0.0)

def test_imports():
    pytest.skip("not here")
    from bakeoff import log_output
    log_output("a")

@pytest.mark.xfail
def test_expected():
    assert 1 == 2
    log_score("s", 0.0)

@pytest.mark.xfail(run=False)
def test_left_out():
    log_score("s", 0.0)

@pytest.fixture
def known():
    pytest.xfail("known")

@pytest.mark.xfail
def test_called_off(known):
    log_score("s", 0.0)

def test_unscored():
    log_score("s", None)

def test_late(late):
    log_score("s", 1.0)

def test_plain(tmp_path):
    assert tmp_path

class TestOld(unittest.TestCase):
    def test_old(self):
        self.skipTest("old")
        log_score("s", 0.0)
"""


def test_a_test_that_would_log_and_has_not_is_undecided(project: SmallProject) -> None:
    project.write("from bakeoff import log_score\ndef log(x): log_score('s', x)\n", "helper.py", head="")
    project.pytester.makeini("[pytest]\npythonpath = .\n")
    project.write(LOGGING)
    seen = project.run_apart(*GATES)
    assert (seen.result.ret, seen.counts()["errors"]) == (1, 2)
    assert undecided(project) == {
        "test_fixture_skips": "it was skipped: no key",
        "test_skips": "it was skipped: not here",
        "test_helper": "it was skipped: not here",
        "test_fixture_fails": "it was not run: an error in a fixture: OSError: port 80 is taken",
        "test_fails_before": "it was not run: an error in the test, before its eval: AssertionError: assert 1 == 2",
        "test_imports": "it was skipped: not here",
        "test_expected": "it was not run: an error in the test, before its eval: AssertionError: assert 1 == 2",
        "test_called_off": "it was skipped: known",
        "test_unscored": "no scorer gave a score: s: unscored",
        "test_old": "it was skipped: its test called no eval",
    }
    assert "log_score: no test is running" in seen.text  # in the teardown of test_late


def test_a_worker_that_crashes_in_a_test_that_logs_leaves_it_undecided(project: SmallProject) -> None:
    crashing = "    log_score('s', 1.0)\n    os._exit(1)\n"
    logs = "def test_{}():\n    log_score('s', 1.0)\n"
    project.write(
        f"from bakeoff import log_score\n{logs.format('a')}def test_b():\n{crashing}{logs.format('c')}",
    )
    seen = project.run_apart(*GATES, "-p", "xdist", "-n", "1", "--max-worker-restart=0", record=())
    assert (seen.result.ret, seen.counts()) == (1, {"passed": 1, "failed": 1})
    found = undecided(project)
    assert found.pop("test_b").startswith("it was not finished: worker 'gw0' crashed")
    assert found == {"test_c": "it was not run: the session was stopped before"}
    assert merged(project) == 3


DROPS = {
    "def pytest_collection_modifyitems(items):\n    del items[2:]\n": ["c", "d"],
    "import pytest\n@pytest.hookimpl(wrapper=True, tryfirst=True)\n"
    "def pytest_collection_modifyitems(items):\n    yield\n    del items[3:]\n": ["d"],
    "import pytest\n@pytest.hookimpl(tryfirst=True)\n"
    "def pytest_runtest_protocol(item):\n    return True if '[b]' in item.nodeid else None\n": ["b"],
}


@pytest.mark.parametrize("conftest", DROPS)
def test_an_eval_that_a_conftest_drops_is_undecided(project: SmallProject, conftest: str) -> None:
    project.write("test_it = describe_eval('it', data=rows(*'abcd'), task=lambda text: f'<{text}>', scorers=[right])")
    project.write(conftest, "conftest.py", head="")
    assert project.run_apart(*GATES).result.ret == 1
    why = "it was not run: it was collected, and then neither run nor deselected"
    assert undecided(project) == dict.fromkeys(DROPS[conftest], why)


STOPPING = """
import pytest
from bakeoff import log_input, log_score

@pytest.mark.parametrize("place", range(6))
def test_logged(place):
    log_input(f"x{place}")
    log_score("s", 1.0)
    if place == 2:
        pytest.exit("stop", returncode=0)
"""


def test_a_session_that_ends_itself_meets_no_gate_whatever_exit_code_it_names(project: SmallProject) -> None:
    project.write(STOPPING)
    assert project.run(*GATES).result.ret == 1
    assert undecided(project) == {"test_logged": "it was not run: the session was stopped before"}
    assert merged(project) == 3


def test_a_file_of_evals_that_is_skipped_as_a_whole_leaves_the_gates_undecided(project: SmallProject) -> None:
    skipped = "import pytest\npytest.importorskip('not_installed_sdk')\nfrom bakeoff import eval_suite\n"
    (project.path / "test_other.py").write_text(skipped)
    good = "from bakeoff import log_score\n\ndef test_good():\n    log_score('s', 1.0)\n"
    project.write(good)
    assert project.run(*GATES).result.ret != 0


def test_a_logged_score_of_a_test_that_is_expected_to_fail_counts(project: SmallProject) -> None:
    failing = (
        "import pytest\nfrom bakeoff import log_score\n\n@pytest.mark.xfail\ndef test_bad():\n"
        "    log_score('s', 0.0)\n    assert 0\n\ndef test_good():\n    log_score('s', 1.0)\n"
    )
    project.write(failing)
    assert project.run("--eval-json=out.json", "--eval-min-pass-rate=0.9").result.ret != 0
    assert json.loads((project.path / "out.json").read_text())["numbers"]["failed"] == 1


def test_a_rule_of_a_baseline_needs_a_baseline(project: SmallProject) -> None:
    project.write("def test_one():\n    pass\n")
    seen = project.run("--eval-gate=no-new-failures")
    seen.result.stderr.fnmatch_lines(
        ["*--eval-gate no-new-failures compares with an earlier run: add --eval-baseline*"]
    )


SCORED = """
from bakeoff.scorers import Regex

def helper(given): return given.output == "Y"

CODE

test_it = describe_eval(
    "it", data=[{"input": 1, "expected": "Y"}, {"input": 2, "expected": "Y"}], task=lambda _: "Y", scorers=[SCORER]
)

async def test_one(to_eval):
    await to_eval("x", output="Y", expected="Y", scorer=SCORER)
"""
OWN = "def own(given):\n    return helper(given)\nSCORER = own"
SAME = "def own(given):\n    'Say more.'\n    # why\n    return helper(\n        given\n    )\nSCORER = own"
CHANGES = [
    ('SCORER = Regex("^Y$")', 'SCORER = Regex(".*")', "regex"),
    ("SCORER = Contains(ignore_case=False)", "SCORER = Contains(ignore_case=True)", "contains"),
    ("SCORER = Exact()", "def exact(given): return 1\nSCORER = exact", "exact"),
    (
        "SCORER = Exact()",
        "class Loose(Exact):\n    async def compare(self, given): return 1\nSCORER = Loose()",
        "exact",
    ),
    (OWN, f"def helper(given): return 1\n{OWN}", "own"),
]


@pytest.mark.parametrize(("before", "after", "name"), CHANGES)
def test_a_scorer_that_scores_in_another_way_leaves_comparisons_undecided(
    project: SmallProject, before: str, after: str, name: str
) -> None:
    project.write(SCORED.replace("CODE", before))
    kept = project.path / "kept" / "old.json"
    kept.parent.mkdir()
    assert project.run(f"--eval-json={kept}").result.ret == 0
    gates = (f"--eval-baseline={kept}", f"--eval-history={kept.parent}", "--eval-json=out.json")
    assert project.run(*gates).result.ret == 0
    project.write(SCORED.replace("CODE", after))
    assert project.run(*gates).result.ret == 1
    baseline, history = json.loads((project.path / "out.json").read_text())["gates"]
    assert (baseline["met"], history["met"]) == (None, None)
    for gate in (baseline, history):
        assert f"scorers: '{name} of it (" in gate["sentence"]
    assert f"'{name} of test_one (" in baseline["sentence"]


def test_comments_and_files_without_digests_change_nothing(project: SmallProject) -> None:
    project.write(SCORED.replace("CODE", OWN))
    old = project.path / "old.json"
    assert project.run(f"--eval-json={old}").result.ret == 0
    project.write(SCORED.replace("CODE", SAME))
    assert project.run(f"--eval-baseline={old}").result.ret == 0
    file = json.loads(old.read_text())
    for case in (case for suite in file["suites"] for case in suite["cases"]):
        assert case.pop("scorers").keys() == {"own"}
    old.write_text(json.dumps(file))
    assert project.run(f"--eval-baseline={old}").result.ret == 0


@pytest.mark.parametrize(
    ("code", "options"),
    [
        ("def exact(given): return 1\nSCORER = exact", ()),
        ("SCORER = Exact(ignore_case=True)", ()),
        ("SCORER = Exact()", ("--eval-rounds=2",)),
        ("SCORER = Exact()\nfrom functools import partial\ndescribe_eval = partial(describe_eval, threshold=0.1)", ()),
    ],
)
def test_shards_that_were_judged_differently_are_not_merged(
    project: SmallProject, code: str, options: tuple[str, ...]
) -> None:
    project.write(SCORED.replace("CODE", "SCORER = Exact()"))
    assert project.run("--eval-shard=1/2", "--eval-json=1.json").result.ret == 0
    assert project.run("--eval-shard=2/2", "--eval-json=2.json").result.ret == 0
    project.write(SCORED.replace("CODE", code))
    assert project.run("--eval-shard=2/2", "--eval-json=other.json", *options).result.ret == 0
    wanted = MergeFlags(output=str(project.path / "merged.json"), shards=2)
    assert run_merge(files=[project.path / "1.json", project.path / "2.json"], wanted=wanted) == 0
    with pytest.raises(UsageError, match=r"shards of different evals: run all with the same .* scorers, thresholds"):
        run_merge(files=[project.path / "1.json", project.path / "other.json"], wanted=wanted)


def test_no_eval_counts_once_for_each_worker(project: SmallProject) -> None:
    project.write(SCORED)
    seen = project.run_apart(*GATES, "-p", "xdist", "--dist=each", "--tx=2*popen", record=())
    assert seen.result.ret == pytest.ExitCode.USAGE_ERROR
    assert "use --dist=load" in seen.result.stderr.str()
