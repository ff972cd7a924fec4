"""Several tries at an exercise: a later one sees what the tests said of the one before."""

from pathlib import Path

import pytest

from bakeoff.doors.agents.scoring import tries_section
from bakeoff.record import Record
from bakeoff.report.render.terminal import print_blocks
from bakeoff.subjects.agent_run import AgentRun, agent_run_in, joined, patch_in
from bakeoff.verdict import Verdict

from .exercise_runs import SOLVE, carried_out, outcome, planned, said
from .small_tracks import agent_file, overwrite

pytestmark = pytest.mark.usefixtures("in_a_folder_of_its_own")

WRONG = overwrite("double.py", "def double(number):\n    return number + 2\n")
LEARNS = f"""\
echo "$1" | sed -n '/# Another try/,$p'
echo "$1" | grep -q 'assert 3 == 2' && {{
{SOLVE}
exit 0
}}
[ -f double.py ] || exit 0
{WRONG}
echo changed > double_test.py
"""
"""Is wrong at first, changes the tests, and is right once it reads what the tests say."""


def test_what_the_tests_said_of_a_try_is_kept_with_what_the_agent_printed() -> None:
    runs = [AgentRun(stdout="first", tests_said="1 of 2 tests passed."), AgentRun(stdout="second")]
    whole = joined(runs)
    assert whole.stdout == "(try 1)\nfirst\n(the tests of try 1)\n1 of 2 tests passed.\n(try 2)\nsecond"
    assert (whole.tries, whole.tests_said) == (2, "")


async def tried(track: Path, folder: Path, script: str, **asked: object) -> Record:
    file = agent_file(folder, "learner", script)
    plan = planned(track, "learner", agent_files=[file], wanted=["double"], tries=2, **asked)
    [record] = (await carried_out(plan, folder)).values()
    return record


async def test_a_second_try_sees_what_the_original_tests_said(
    track: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = await tried(track, tmp_path, LEARNS)
    assert record.verdict is Verdict.PASS, (record.scores, record.transcript)
    assert record.transcript is not None
    assert agent_run_in(record.transcript).tries == 2
    assert "0 of 2 tests passed." in said(record)
    assert "+    return number + number" in patch_in(record.transcript), "changes are those of both tries"
    assert "double_test.py" in str(outcome(record)), "and so is tampering"
    plan = planned(track, "learner", agent_files=[tmp_path / "learner.yaml"], wanted=["double"], tries=2)
    section = tries_section(plan, [record])
    assert section is not None
    from rich.console import Console

    print_blocks(Console(width=100), (section,))
    assert "learner 0.0 % (0/1) 100.0 % (1/1)" in " ".join(capsys.readouterr().out.split())
    changed = record.transcript.metadata | {"agent": {"tries": 99}}
    forged = record.model_copy(update={"transcript": record.transcript.model_copy(update={"metadata": changed})})
    assert tries_section(plan, [forged]) == section, "a number that the plan does not allow is no number of a column"


async def test_an_agent_that_solves_it_at_once_is_not_asked_again(track: Path, tmp_path: Path) -> None:
    record = await tried(track, tmp_path, f"{SOLVE}echo ran >> log")
    assert record.verdict is Verdict.PASS
    assert record.transcript is not None
    assert agent_run_in(record.transcript).tries == 1


async def test_what_hidden_tests_say_is_not_shown(track: Path, tmp_path: Path) -> None:
    record = await tried(track, tmp_path, f'echo "$1" | sed -n "/# Another try/,\\$p"\n{WRONG}', hidden_tests=0.5)
    assert record.verdict is Verdict.FAIL
    assert "0 of 1 test passed." in said(record)


def test_one_try_says_nothing_of_tries_and_changes_no_key(track: Path, tmp_path: Path) -> None:
    file = agent_file(tmp_path, "learner", "true")
    one = planned(track, "learner", agent_files=[file])
    assert tries_section(one, []) is None
    assert "tries" not in one.subjects[0].options
