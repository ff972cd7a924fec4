"""What the commands of tracks report of their tests, and that an exit code alone is no report."""

import json
import shutil

import pytest

from bakeoff.protocols import CommandResult
from bakeoff.sandbox import choose_sandbox
from bakeoff.toolchains.command_reports import CommandReport, json_object
from bakeoff.toolchains.commands import CommandRunner
from bakeoff.toolchains.outcome import TestRun
from bakeoff.toolchains.tracks import CPP, GO, JAVASCRIPT, RUST, Track

GO_EVENTS = "\n".join(
    json.dumps({"Package": "double", **event})
    for event in (
        {"Action": "run", "Test": "TestDouble"},
        {"Action": "output", "Test": "TestDouble", "Output": "    double_test.go:7: got 5\n"},
        {"Action": "fail", "Test": "TestDouble", "Elapsed": 0},
        {"Action": "run", "Test": "TestZero"},
        {"Action": "pass", "Test": "TestZero", "Elapsed": 0},
        {"Action": "run", "Test": "TestThatEndsTheProcess"},
        {"Action": "fail"},
    )
)
RUST_OUTPUT = """
running 3 tests
test one ... ok
test three ... FAILED
test four - should panic ... ok

failures:

---- three stdout ----
assertion `left == right` failed
  left: 1
 right: 6


failures:
    three

test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.35s
"""


def ran(track: Track, written: str | None, exit_code: int = 0, stderr: str = "", command: str = "") -> TestRun:
    asked = command or str(track.command)
    report = CommandReport.wanted(asked, track, {"package.json": '{"scripts": {"test": "jest ./*"}}'})
    done = CommandResult(exit_code=exit_code, stdout=b"", stderr=stderr.encode(), seconds=1.0, stop="exited")
    return report.check(asked, done, None if written is None else written.encode())


def states(run: TestRun) -> dict[str, str]:
    return {test.name: test.state for test in run.tests}


def test_the_tests_of_go_are_read_one_by_one_and_one_that_did_not_end_is_missing() -> None:
    run = ran(GO, f"not an event\n{GO_EVENTS}", 1)
    assert states(run) == {"TestDouble": "failed", "TestZero": "passed"}
    assert run.tests[0].message == "double_test.go:7: got 5"
    assert not run.ok


def test_the_tests_of_rust_are_read_one_by_one() -> None:
    run = ran(RUST, RUST_OUTPUT, 101)
    assert states(run) == {"one": "passed", "three": "failed", "four": "passed"}
    assert run.tests[1].message == "assertion `left == right` failed\n  left: 1\n right: 6"


def test_the_test_cases_of_catch_are_counted() -> None:
    passed = ran(CPP, "[100%] Built target double\nAll tests passed (7 assertions in 3 test cases)\n\n")
    assert (states(passed), passed.ok) == ({"test cases: 3": "passed"}, True)
    failed = ran(CPP, "double_test.cpp:9: FAILED:\ntest cases: 3 | 2 passed | 1 failed\n", 2)
    assert states(failed) == {"test cases: 3": "failed"}


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
    assert f"`{track.command}` ended with exit code 0 before any test" in str(run.error)


def test_an_answer_that_does_not_compile_is_told_by_the_compiler() -> None:
    run = ran(RUST, "", 101, "error: expected `;`, found `}`")
    assert "before any test" in str(run.error)
    assert "error: expected `;`" in str(run.error)


def test_a_failed_test_and_an_exit_code_of_0_do_not_go_together() -> None:
    assert ran(RUST, RUST_OUTPUT, 0).tampered == "a test failed, but the command ended with 0"


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
def test_what_is_no_json_object_is_an_empty_one(text: str) -> None:
    assert json_object(text) == {}
