"""`bakeoff leaderboard`: ties are shown as ties, and the latest run of a subject counts."""

from pathlib import Path

import pytest

from bakeoff.errors import UsageError
from bakeoff.plan import Case
from bakeoff.report.leaderboard import Leaderboard, rank_sources
from bakeoff.report.leaderboard_text import day, describe_leaderboard
from bakeoff.report.markdown import to_markdown
from bakeoff.report.outputs import sparkline
from bakeoff.rundir import RunFolder

from .runs import Values, plan_of, record_of, run_of, source, write_run


def test_subjects_that_cannot_be_told_apart_share_a_group_and_a_range_of_ranks(tmp_path: Path) -> None:
    values: Values = {
        "best": lambda case, round_: float(case < 38),
        "nearly": lambda case, round_: float(case < 36),
        "worst": lambda case, round_: 0.0,
    }
    board = rank_sources([source(run_of(tmp_path / "run", plan_of(40, list(values)), values))])
    ranks = {entry.standing.subject: (entry.rank, entry.standing.groups) for entry in board.entries}
    assert ranks == {"best": ("1–2", (1,)), "nearly": ("1–2", (1,)), "worst": ("3", (2,))}
    text = to_markdown(describe_leaderboard(board))
    assert "| 1–2 | a | `best` | 95.0 % |" in text
    assert "`run`" in text, "where the numbers come from"
    assert "$0.40" in text, "40 trials at a cent"
    assert "500 ms" in text


def test_the_latest_run_of_a_subject_counts_and_the_others_are_its_history(tmp_path: Path) -> None:
    plan = plan_of(10, ["s"])
    for number, passed in enumerate((2, 9, 5)):
        records = [
            record_of(trial, float(trial.index < passed), started=1e9 + [0, 200, 100][number])
            for trial in plan.trials()
        ]
        write_run(tmp_path / f"run-{number}", plan, records)
    board = rank_sources([source(run) for run in _runs(tmp_path)])
    [entry] = board.entries
    assert entry.source == "run-1"
    assert entry.history == (0.2, 0.5, 0.9)
    assert "▂▅█" in to_markdown(describe_leaderboard(board))
    assert Leaderboard.model_validate_json(board.model_dump_json()) == board


def test_subjects_that_know_the_answers_are_left_out_by_name(tmp_path: Path) -> None:
    plan = plan_of(3, ["oracle", "s"])
    records = [record_of(trial, 1.0, bound=trial.subject.name == "oracle") for trial in plan.trials()]
    board = rank_sources([source(write_run(tmp_path / "run", plan, records))])
    assert [entry.standing.subject for entry in board.entries] == ["s"]
    assert board.left_out == ("oracle",)


def test_runs_of_different_cases_are_marked_as_strangers(tmp_path: Path) -> None:
    others = tuple(Case(id=f"other-{n}", prompt="?") for n in range(5))
    one = run_of(tmp_path / "one", plan_of(5, ["a"]), {"a": lambda c, r: 1.0})
    two = run_of(tmp_path / "two", plan_of(0, ["b"], case_list=others), {"b": lambda c, r: 0.0})
    board = rank_sources([source(one), source(two)])
    assert board.strangers
    assert "not tried on the same cases" in to_markdown(describe_leaderboard(board))


def test_nothing_to_rank_is_a_sentence() -> None:
    with pytest.raises(UsageError, match="nothing to rank"):
        rank_sources([])


def test_a_sparkline_keeps_the_whole_scale_and_the_last_twenty() -> None:
    assert sparkline([0, 0.5, 1]) == "▁▅█"
    assert len(sparkline([0.1] * 50)) == 20


def test_a_time_that_no_calendar_has_is_unknown() -> None:
    assert day(0.0) == "1970-01-01"
    assert day(1e300) == day(None) == "–"


def _runs(folder: Path) -> list[RunFolder]:
    return [RunFolder(path) for path in sorted(folder.iterdir())]
