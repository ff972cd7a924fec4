"""Test what the commands of tracks report of their tests, and that an exit code alone is not a report."""

import itertools
import json
import shutil

import pytest

from bakeoff._kernel.json import json_object
from bakeoff.protocols import CommandResult
from bakeoff.sandbox import choose_sandbox
from bakeoff.toolchains.command_reports import CommandReport
from bakeoff.toolchains.commands import CommandRunner
from bakeoff.toolchains.outcome import TestRun
from bakeoff.toolchains.tracks import CPP, GO, JAVASCRIPT, RUST, Track, split_command

GO_EVENTS = "\n".join(
    json.dumps({"Package": "double", **event})
    for event in (
        {"Action": "run", "Test": "TestDouble"},
        {"Action": "output", "Test": "TestDouble", "Output": "    double_test.go:7: got 5\n"},
        {"Action": "fail", "Test": "TestDouble", "Elapsed": 0},
        {"Action": "run", "Test": "TestZero"},
        {"Action": "output", "Test": "TestZero", "Output": "--- PASS: TestZero (0.00s)\n"},
        {"Action": "pass", "Test": "TestZero", "Elapsed": 0},
        {"Action": "run", "Test": "TestThatEndsTheProcess"},
        {"Action": "fail"},
    )
)
RUST_LOG = "ok one\nfailed three\nfailed: note: it did not panic\n  as expected five\nok four\n"
RUST_PRINTED = """
running 3 tests
test one ... FAILED
test forged ... ok

failures:

---- three stdout ----
assertion `left == right` failed
  left: 1
 right: 6


failures:
    three

test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.35s
"""


CATCH_XML = """<testsuites><testsuite name="run-tests"><testcase classname="run-tests.global" name="a (b) / c"/>
<testcase classname="run-tests.global" name="d"><failure message="f(4) == 5"/></testcase></testsuite></testsuites>"""


def ran(
    track: Track, written: str | None, exit_code: int = 0, stderr: str = "", command: str = "", printed: str = ""
) -> TestRun:
    asked = command or split_command(str(track.command))[1]
    report = CommandReport.wanted(asked, track, {"package.json": '{"scripts": {"test": "jest ./*"}}'})
    done = CommandResult(
        exit_code=exit_code, stdout=printed.encode(), stderr=stderr.encode(), seconds=1.0, stop="exited"
    )
    return report.check(asked, done, None if written is None else written.encode())


def states(run: TestRun) -> dict[str, str]:
    return {test.name: test.state for test in run.tests}


def test_the_tests_of_go_are_read_one_by_one_and_one_that_did_not_end_is_missing() -> None:
    run = ran(GO, f"not an event\n{GO_EVENTS}", 1)
    assert states(run) == {"TestDouble": "failed", "TestZero": "passed"}
    assert run.tests[0].message == "double_test.go:7: got 5"
    assert not run.ok


def test_a_test_of_go_with_subtests_counts_only_if_it_fails_by_itself() -> None:
    def events(*ended: tuple[str, str], more: str = "") -> str:
        told = (
            [{"Action": "output", "Test": t, "Output": f"--- {a.upper()}: {t}\n"}, {"Action": a, "Test": t}]
            for a, t in ended
        )
        lines = [{"Action": "output", "Test": "TestA", "Output": more}, *itertools.chain(*told)]
        return "\n".join(map(json.dumps, lines))

    by_subtest = ran(GO, events(("fail", "TestA/b"), ("pass", "TestA/a"), ("fail", "TestA")), 1)
    assert states(by_subtest) == {"TestA/a": "passed", "TestA/b": "failed"}
    assert states(ran(GO, events(("pass", "TestA/a"), ("pass", "TestA")))) == {"TestA/a": "passed"}
    by_itself = events(("fail", "TestA/a"), ("fail", "TestA"), more="    a_test.go:3: also wrong\n")
    assert states(ran(GO, by_itself, 1)) == {"TestA": "failed", "TestA/a": "failed"}
    assert states(ran(GO, events(("pass", "TestA/a"), ("fail", "TestA")), 1))["TestA"] == "failed"


def test_a_test_of_go_that_ends_its_process_with_0_does_not_pass() -> None:
    events = GO_EVENTS.replace("--- PASS: TestZero (0.00s)", "ok  \tdouble\t0.133s")  # as Go writes it then
    assert states(ran(GO, events, 1))["TestZero"] == "failed"


def test_the_tests_of_rust_are_read_one_by_one() -> None:
    run = ran(RUST, RUST_LOG, 101, printed=RUST_PRINTED)
    assert states(run) == {"five": "failed", "four": "passed", "one": "passed", "three": "failed"}
    assert run.tests[3].message == "assertion `left == right` failed\n  left: 1\n right: 6"


def test_the_test_cases_of_catch_are_read_one_by_one() -> None:
    run = ran(CPP, CATCH_XML, 1)
    assert states(run) == {"a (b) / c": "passed", "d": "failed"}
    assert run.tests[1].message == "f(4) == 5"


def test_jest_in_a_script_of_npm_reports_each_test() -> None:
    report = CommandReport.wanted("npm test", JAVASCRIPT, {"package.json": '{"scripts": {"test": "jest ./*"}}'})
    assert report.command == f"npm test -- --ci --json --outputFile={report.file}"
    written = {"testResults": [{"assertionResults": [{"ancestorTitles": ["A"], "title": "b", "status": "passed"}]}]}
    assert states(ran(JAVASCRIPT, json.dumps(written), command="npm test")) == {"A > b": "passed"}


@pytest.mark.parametrize("track", [GO, RUST, CPP])
@pytest.mark.parametrize("written", [None, "", "ok  \tdouble\t0.003s\n"])
def test_an_exit_code_of_0_without_a_test_is_no_pass(track: Track, written: str | None) -> None:
    run = ran(track, written)
    assert (run.ok, run.tests) == (False, ())
    assert f"`{split_command(str(track.command))[1]}` ended with exit code 0 before any test" in str(run.error)


def test_an_answer_that_does_not_compile_is_told_by_the_compiler() -> None:
    run = ran(RUST, "", 101, "error: expected `;`, found `}`")
    assert "before any test" in str(run.error)
    assert "error: expected `;`" in str(run.error)


def test_a_failed_test_and_an_exit_code_of_0_do_not_go_together() -> None:
    assert ran(RUST, RUST_LOG, 0).tampered == "a test failed, but the command ended with 0"


@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
async def test_an_answer_in_go_that_ends_the_process_with_0_does_not_pass() -> None:
    runner = CommandRunner(choose_sandbox("auto"), GO, str(GO.command))
    files = {
        "go.mod": "module double\n\ngo 1.18\n",
        "double.go": 'package double\n\nimport "os"\n\nfunc init() { os.Exit(0) }\n\nfunc Double(int) int { return 1 }',
        "double_test.go": (
            'package double\n\nimport "testing"\n\n'
            'func TestDouble(t *testing.T) {\n\tif Double(2) != 4 {\n\t\tt.Fatal("wrong")\n\t}\n}\n'
        ),
    }
    exits = await runner.run(files, seconds=300.0)
    assert not exits.ok, exits
    assert "before any test" in str(exits.error)
    honest = {**files, "double.go": "package double\n\nfunc Double(n int) int { return 2 * n }\n"}
    solved = await runner.run(honest, seconds=300.0)
    assert (solved.ok, states(solved)) == (True, {"TestDouble": "passed"}), solved


@pytest.mark.parametrize("text", ["", "[1]", '{"a": 1', '{"a":' * 100_000])
def test_what_is_no_json_object_is_none(text: str) -> None:
    assert json_object(text) is None
