"""Test which files are graded, which tests count, and which runner is trusted."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bakeoff.doors.agents.scoring import accepted_files
from bakeoff.toolchains.tracks import is_protected_name
from bakeoff.verdict import Verdict

from .exercise_runs import SOLVE, carried_out, outcome, planned, tried, typescript_case
from .small_tracks import DOUBLE, RIGHT_DOUBLE, Files, overwrite, with_files, write_track

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("in_a_folder_of_its_own")]


async def test_new_sources_go_across_and_nothing_else_does(track: Path) -> None:
    helper = "def twice(number):\n    return 2 * number\n"
    script = overwrite("helper.py", helper) + overwrite(
        "double.py", "from helper import twice\n\n\ndef double(number):\n    return twice(number)\n"
    )
    script += overwrite("conftest.py", "raise SystemExit(1)\n") + overwrite("test_more.py", "def test_x(): assert 0\n")
    record = await tried(track, script)
    assert record.verdict is Verdict.PASS, record.scores


CASES: Files = {
    **DOUBLE,
    ".meta/config.json": with_files(editor=["cases/data.py"]),
    "cases/data.py": "CASES = [(1, 2)]\n",
    "more.json": "[[3, 6]]",
    "double_test.py": (
        "from cases.data import CASES\nfrom double import double\n\n\n"
        "def test_cases():\n    for given, wanted in CASES:\n        assert double(given) == wanted\n"
    ),
}


async def test_a_new_file_does_not_take_the_place_of_test_data(tmp_path: Path) -> None:
    track = write_track(tmp_path / "track", double=CASES)
    forged = "import sys, types\nsys.modules['cases.data'] = types.SimpleNamespace(CASES=[])\n__path__ = []\n"
    record = await tried(track, overwrite("cases.py", forged))
    assert record.verdict is Verdict.FAIL
    assert (outcome(record)["testsPassed"], outcome(record)["testsTotal"]) == (0, 1)


def test_what_an_import_could_mean_instead_of_a_pristine_file_is_not_taken(tmp_path: Path) -> None:
    files = {"a.ts": "", "cases.json": "[]", "data/x.ts": "", "lib/y.ts": "", "src/b.ts": ""}
    case = typescript_case(files, "a.ts", "src/b.ts")
    left = ("cases.ts", "data.ts", "data/index.ts", "lib/y/index.ts", "src.ts", "data/x/new.ts")
    assert accepted_files(case, dict.fromkeys(left, "")) == {}
    fine = ("helper.ts", "index.ts", "src/index.ts", "src/more.ts", "lib/new.ts")
    assert tuple(accepted_files(case, dict.fromkeys(fine, ""))) == fine


SKIPPING = (
    "import unittest\n\n\ndef double(number):\n    if number:\n        raise unittest.SkipTest('later')\n    return 0\n"
)


async def test_without_an_example_a_skipped_test_is_not_passed(tmp_path: Path) -> None:
    config = json.dumps({"files": {"solution": ["double.py"], "test": ["double_test.py"]}})
    bare = {name: text for name, text in DOUBLE.items() if "example" not in name} | {".meta/config.json": config}
    always = "import pytest\n\n\n@pytest.mark.skip\ndef test_never():\n    assert False\n\n\n"
    track = write_track(tmp_path / "track", double={**bare, "double_test.py": always + DOUBLE["double_test.py"]})
    record = await tried(track, overwrite("double.py", SKIPPING))
    assert record.verdict is Verdict.FAIL
    assert (outcome(record)["testsPassed"], outcome(record)["testsTotal"]) == (1, 2)
    assert (await tried(track, SOLVE)).verdict is Verdict.PASS


XIT: Files = {
    ".docs/instructions.md": "Double a number.\n",
    ".meta/proof.ci.ts": "export const double = (x: number) => 2 * x\n",
    "double.ts": "export const double = (x: number): number => x\n",
    "double.test.ts": (
        "import { expect, it, xit } from '@jest/globals'\nimport { double } from './double'\n"
        "it('zero', () => { expect(double(0)).toBe(0) })\nxit('one', () => { expect(double(1)).toBe(2) })\n"
    ),
}


async def test_what_a_track_skips_may_stay_skipped(tmp_path: Path, needs_program: Callable[[str], str]) -> None:
    needs_program("npm")
    track = write_track(tmp_path / "track", slug="typescript", double=XIT)
    for unskip, verdict, total in ((True, Verdict.FAIL, 2), (False, Verdict.PASS, 1)):
        [record] = (await carried_out(planned(track, "nop", unskip=unskip), tmp_path)).values()
        assert (record.verdict, outcome(record)["testsTotal"]) == (verdict, total)


async def test_type_errors_fail_an_answer_unless_types_are_not_checked(
    tmp_path: Path, needs_program: Callable[[str], str]
) -> None:
    needs_program("npm")
    track = write_track(tmp_path / "track", slug="typescript", double=XIT)
    mistyped = overwrite("double.ts", "export const double = (x: number): string => 2 * x\n")
    record = await tried(track, mistyped)
    assert (record.verdict, outcome(record)["testsPassed"]) == (Verdict.FAIL, 2)
    assert outcome(record)["testError"].startswith("type errors: double.ts(1,46): error TS2322")
    assert (await tried(track, mistyped, type_check=False)).verdict is Verdict.PASS
    wrongly_typed = {**XIT, ".meta/proof.ci.ts": "export const double = (x: number): string => 2 * x\n"}
    lenient = write_track(tmp_path / "lenient", slug="typescript", double=wrongly_typed)
    assert (await tried(lenient, mistyped)).verdict is Verdict.PASS, "no more is asked than the example has"


@pytest.mark.parametrize("what", ["ln -s /etc/passwd double.py", "mkfifo double.py", "mkdir double.py", "true"])
async def test_what_is_no_plain_file_is_not_taken(track: Path, what: str) -> None:
    record = await tried(track, f"rm double.py; {what}")
    assert record.verdict is Verdict.FAIL
    assert "double.py" in record.refused
    assert outcome(record)["testsPassed"] == 0


async def test_the_tests_of_a_folder_can_be_run_without_an_agent(track: Path, tmp_path: Path) -> None:
    (track / "exercises/practice/double/double.py").write_text(RIGHT_DOUBLE)
    records = await carried_out(planned(track, test_only=True), tmp_path)
    assert {case: record.verdict for (case, _), record in records.items()} == {
        "double": Verdict.PASS,
        "pair": Verdict.FAIL,
    }


async def test_a_test_command_of_the_users_own_can_stand_in_for_the_tracks(track: Path, tmp_path: Path) -> None:
    command = f"{sys.executable} -m pytest -q -p no:cacheprovider"
    records = await carried_out(planned(track, "oracle", "nop", wanted=["double"], test_command=command), tmp_path)
    assert records["double", "oracle"].verdict is Verdict.PASS, records["double", "oracle"]
    assert records["double", "nop"].verdict is Verdict.FAIL


FORGED = """import glob
tests = [open(name).read() for name in glob.glob("*_test.py")]
if tests and not any("test_holds_" in text for text in tests):
    import _pytest.python
    _pytest.python.Function.runtest = lambda self: None
def double(number):
    return 7
"""


async def test_a_command_is_not_believed_where_the_guarded_runner_passes_the_example_alone(track: Path) -> None:
    record = await tried(track, overwrite("double.py", FORGED), test_command="pytest -q")
    assert record.verdict is Verdict.FAIL
    assert "run apart from it they do not" in outcome(record)["testError"]


async def test_a_command_stands_alone_where_the_guarded_runner_cannot_run_even_the_example(tmp_path: Path) -> None:
    fixture = "import pytest\n\n\n@pytest.fixture\ndef wanted():\n    return 2\n"
    test = "from double import double\n\n\ndef test_one(wanted):\n    assert double(1) == wanted\n"
    track = write_track(tmp_path / "track", double={**DOUBLE, "conftest.py": fixture, "double_test.py": test})
    assert (await tried(track, SOLVE, test_command="pytest -q")).verdict is Verdict.PASS


@pytest.mark.parametrize("seconds", [60.0, 3600.0])
def test_scoring_has_time_for_every_run_of_tests_that_take_all_of_theirs(track: Path, seconds: float) -> None:
    plan = planned(track, "nop", test_timeout=seconds)
    assert all(case.limits.score_seconds > 6 * seconds for case in plan.cases)


@pytest.mark.parametrize(
    "name",
    [
        *("math.py", "pytest.py", "helper_test.py", ".hidden.py", "tests/x.py", "setup.py", "conftest.py", "x.pth"),
        "src/0_bakeoff_test.go/x.go",  # a folder in the place of the file that the runner adds
    ],
)
def test_a_new_file_that_tests_or_tools_would_read_is_protected(name: str) -> None:
    assert is_protected_name(name)
    assert not any(map(is_protected_name, ("helper.py", "test_data/helper.py")))
