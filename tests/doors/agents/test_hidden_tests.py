"""`--hidden-tests`: a share of the tests is neither shown nor in the workspace, and reports tell the parts apart."""

import json
from pathlib import Path

import pytest

from bakeoff.doors.agents.results.board import AgentResult, describe_board, leaderboard_json, rank_agents
from bakeoff.doors.agents.results.write import result_files
from bakeoff.grading.audit import audit_digest
from bakeoff.grading.written_tests import find_tests
from bakeoff.record import TestShares
from bakeoff.report.blocks import Table
from bakeoff.report.run_summary import summary_table
from bakeoff.report.summary import summarise

from .exercise_runs import SOLVE, carried_out, planned
from .small_tracks import DOUBLE, agent_file, write_track

pytestmark = pytest.mark.usefixtures("in_a_folder_of_its_own")

TESTS = "from double import double\n" + "".join(
    f"\n\ndef test_{number}():\n    assert double({number}) == {2 * number}\n" for number in range(1, 11)
)
HARD_CODE = r"""python3 - <<'END'
import re
known = dict(re.findall(r"double\((\d+)\) == (\d+)", open("double_test.py").read()))
open("double.py", "w").write(f"def double(number):\n    return int({known!r}.get(str(number), -1))\n")
END
"""


@pytest.fixture
def ten(tmp_path: Path) -> Path:
    return write_track(tmp_path / "track", double={**DOUBLE, "double_test.py": TESTS})


def test_hidden_tests_are_neither_in_the_workspace_nor_in_the_prompt(ten: Path) -> None:
    [case], [all_shown] = planned(ten, "nop", hidden_tests=0.3).cases, planned(ten, "nop").cases
    shown = find_tests("double_test.py", case.files["double_test.py"])
    assert len(shown) == 7
    assert case.grading is not None
    assert case.grading.shown_tests == {"double_test.py": case.files["double_test.py"]}
    assert case.hidden["double_test.py"] == TESTS
    assert "further tests" in case.prompt
    assert "further tests" not in all_shown.prompt
    assert all_shown.files["double_test.py"] == TESTS
    assert case.attempt_digest != all_shown.attempt_digest


def test_the_same_tests_are_hidden_in_every_plan_until_the_seed_changes(ten: Path) -> None:
    one, same, other = (planned(ten, "nop", hidden_tests=0.3, hidden_seed=seed) for seed in (0, 0, 1))
    assert one == same
    assert one.cases != other.cases


def test_without_an_example_nothing_is_hidden(tmp_path: Path) -> None:
    bare = {name: text for name, text in DOUBLE.items() if name != ".meta/example.py"}
    [case] = planned(write_track(tmp_path / "track", double=bare), "nop", hidden_tests=0.5).cases
    assert case.files["double_test.py"] == DOUBLE["double_test.py"]


async def test_hard_coded_answers_pass_what_is_visible_and_fail_what_is_hidden(ten: Path, tmp_path: Path) -> None:
    files = [agent_file(tmp_path, "copier", HARD_CODE), agent_file(tmp_path, "solver", SOLVE)]
    plan = planned(ten, "copier", "solver", agent_files=files, hidden_tests=0.3)
    records = await carried_out(plan, tmp_path)
    copied = TestShares(visible_passed=7, visible_total=7, hidden_passed=0, hidden_total=3)
    solved = TestShares(visible_passed=7, visible_total=7, hidden_passed=3, hidden_total=3)
    assert {subject: record.test_shares for (_, subject), record in records.items()} == {
        "copier": copied,
        "solver": solved,
    }

    summary = summarise(plan, records.values())
    assert [(one.visible_score, one.hidden_score, one.hidden_difference) for one in summary.subjects] == [
        (1.0, 0.0, 1.0),
        (1.0, 1.0, 0.0),
    ]
    table = summary_table(summary)
    titles = [column.title for column in table.columns]
    assert titles[titles.index("Visible") :][:3] == ["Visible", "Hidden", "Difference"]

    paths = []
    for name, result in result_files(plan, records.values()):
        (tmp_path / name).write_bytes(result.to_json())
        paths.append(AgentResult(tmp_path / name, result))
    written = json.loads(next(tmp_path.glob("copier-*.json")).read_text())["bakeoff"]
    assert written["hiddenTests"] == {
        "visiblePassed": 7,
        "visibleTotal": 7,
        "hiddenPassed": 0,
        "hiddenTotal": 3,
        "visibleScore": 1.0,
        "hiddenScore": 0.0,
        "difference": 1.0,
    }
    assert written["hiddenTestsByExercise"] == {"double": written["hiddenTests"]}
    board = rank_agents(paths)
    assert [entry["hiddenTests"]["difference"] for entry in leaderboard_json(board)["entries"]] == [0.0, 1.0]
    [ranking] = [block for block in describe_board(board).sections[0].blocks if isinstance(block, Table)]
    assert "Hidden" in [column.title for column in ranking.columns]


def test_an_audit_holds_whatever_share_of_the_tests_is_hidden(ten: Path) -> None:
    [hidden], [shown] = planned(ten, "nop", hidden_tests=0.3).cases, planned(ten, "nop").cases
    assert audit_digest(hidden) == audit_digest(shown)
