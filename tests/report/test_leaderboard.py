"""`bakeoff leaderboard`: ties are shown as ties, and the latest run of a subject counts."""

from pathlib import Path

import pytest

from bakeoff.errors import UsageError
from bakeoff.plan import Case, PassRule, ScorerSpec, UntilDecided
from bakeoff.record import Phase, Usage
from bakeoff.report.blocks import sparkline
from bakeoff.report.judges.labelling import draw
from bakeoff.report.leaderboard import Leaderboard, day, describe_leaderboard, rank_results, rank_sources
from bakeoff.report.readers import open_source
from bakeoff.report.render.html.render import write_report_page
from bakeoff.report.render.markdown import to_markdown
from bakeoff.stats.sequential import random_order
from bakeoff.storage.run_folder import RunFolder

from ..warm_bakeoff import Bakeoff
from .judged import judged_run, label_all
from .judged import plan_of as judged_plan
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
    assert "| `best` | 1–2 | a | 95.0 % |" in text
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


def test_of_subjects_with_the_same_score_the_cheaper_and_then_the_faster_comes_first(tmp_path: Path) -> None:
    costs_and_times = {"dear": (0.02, 1.0), "slow": (0.01, 2.0), "also-fast": (0.01, 1.0), "fast": (0.01, 1.0)}
    plan = plan_of(5, ["unknown", *costs_and_times])
    records = [
        record_of(trial, 1.0, spent=Usage(cost=cost), attempt=Phase(seconds=seconds))
        for trial in plan.trials()
        for cost, seconds in [costs_and_times.get(trial.subject.name, (None, 0.5))]
    ]
    board = rank_sources([source(write_run(tmp_path / "run", plan, records))])
    assert [entry.standing.subject for entry in board.entries] == ["also-fast", "fast", "slow", "dear", "unknown"]


def test_subjects_that_know_the_answers_are_left_out_by_name(tmp_path: Path) -> None:
    plan = plan_of(3, ["oracle", "s"])
    records = [record_of(trial, 1.0, bound=trial.subject.name == "oracle") for trial in plan.trials()]
    board = rank_sources([source(write_run(tmp_path / "run", plan, records))])
    assert [entry.standing.subject for entry in board.entries] == ["s"]
    assert board.left_out == ("oracle",)


def test_each_set_of_cases_has_a_board_of_its_own(tmp_path: Path) -> None:
    hard = plan_of(0, ["strong", "weak"], case_list=tuple(Case(id=f"hard-{n}", prompt="?") for n in range(20)))
    easy = plan_of(20, ["weak", "nop"], name="easy")
    write_run(tmp_path / "easy", easy, [record_of(trial, 1.0, started=2e9) for trial in easy.trials()])
    scores = {"strong": 0.8, "weak": 0.1}
    write_run(tmp_path / "hard", hard, [record_of(t, scores[t.subject.name], started=1e9) for t in hard.trials()])
    board = rank_sources([source(run) for run in _runs(tmp_path)])
    assert [(one.name, one.cases) for one in board.boards] == [("easy", 20), ("suite", 20)]
    found = [(entry.board, entry.standing.subject, entry.rank, entry.history) for entry in board.entries]
    assert found == [(1, "weak", "1", (1.0,)), (2, "strong", "1", (0.8,)), (2, "weak", "2", (0.1,))]
    text = to_markdown(describe_leaderboard(board))
    assert (
        "2 rankings, one for each set of cases and way of scoring: scores on different cases, or by different" in text
    )
    assert text.index("### `easy`, 20 cases") < text.index("### `suite`, 20 cases")
    assert text.count("cannot be told apart; the rank is") == 1
    page = write_report_page(tmp_path / "board.html", describe_leaderboard(board)).read_text()
    assert 'id="ranking-2"' in page


def test_an_edited_or_added_case_makes_another_board(tmp_path: Path) -> None:
    cases = [tuple(Case(id=f"case-{n}", prompt=words) for n in range(count)) for count, words in ((5, "?"), (5, "!"))]
    cases.append((*cases[1], Case(id="more", prompt="?")))
    runs = [
        run_of(tmp_path / name, plan_of(0, [name], case_list=mine), {name: lambda c, r: 1.0})
        for name, mine in zip("abc", cases, strict=True)
    ]
    assert sorted(entry.board for entry in rank_sources(map(source, runs)).entries) == [1, 2, 3]


def test_nothing_to_rank_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to rank"):
        rank_sources([])
    run = run_of(tmp_path / "run", plan_of(3, ["nop"]), {"nop": lambda c, r: 0.0})
    with pytest.raises(UsageError, match=r"nothing to rank: no subject besides controls .*\(left out: nop\)"):
        rank_sources([source(run)])


def test_a_control_is_left_out_and_makes_no_test_stricter(tmp_path: Path) -> None:
    values: Values = {"a": lambda c, r: float(c < 10), "b": lambda c, r: float(c < 16), "nop": lambda c, r: 0.0}
    board = rank_sources([source(run_of(tmp_path / "run", plan_of(20, list(values)), values))])
    assert {entry.standing.subject: entry.rank for entry in board.entries} == {"b": "1", "a": "2"}
    assert board.left_out == ("nop",)


def test_a_run_that_was_killed_does_not_replace_the_whole_one_before_it(tmp_path: Path) -> None:
    plan = plan_of(40, ["s"])
    write_run(tmp_path / "whole", plan, [record_of(trial, 1.0, started=1e9) for trial in plan.trials()])
    write_run(tmp_path / "killed", plan, [record_of(plan.trial(0), 0.0, started=2e9)])
    [entry] = rank_sources([source(run) for run in _runs(tmp_path)]).entries
    assert (entry.source, entry.whole, entry.history) == ("whole", True, (1.0,))
    alone = rank_sources([source(RunFolder(tmp_path / "killed"))])
    assert not alone.entries[0].whole
    text = to_markdown(describe_leaderboard(alone))
    assert "`s` has no complete run: 1 of 40 trials of the latest one count" in text


def test_a_run_that_was_stopped_has_no_rank_beside_complete_ones(tmp_path: Path) -> None:
    run_of(tmp_path / "whole", plan_of(10, ["s"]), {"s": lambda c, r: float(c < 9)})
    stopped = plan_of(10, ["t"])
    write_run(tmp_path / "stopped", stopped, [record_of(stopped.trial(place), 1.0) for place in range(2)])
    board = rank_sources([source(run) for run in _runs(tmp_path)])
    assert [(entry.standing.subject, entry.rank, entry.ranked) for entry in board.entries] == [
        ("s", "1", True),
        ("t", "–", False),
    ]
    text = to_markdown(describe_leaderboard(board))
    assert "Only s has a complete run: 90.0 % " in text
    assert "Unfinished and not ranked: t." in text


def test_of_a_whole_folder_self_checks_do_not_count_and_unreadable_runs_are_named(tmp_path: Path) -> None:
    good = run_of(tmp_path / "good", plan_of(5, ["s"]), {"s": lambda c, r: 1.0})
    plan = plan_of(5, ["s"], name="selfcheck suite")
    later = write_run(tmp_path / "later", plan, [record_of(trial, 0.0, started=2e9) for trial in plan.trials()])
    broken = run_of(tmp_path / "broken", plan_of(5, ["t"]), {"t": lambda c, r: 1.0})
    broken.journal_file.unlink()
    broken.journal_file.mkdir()
    board = rank_results([source(run) for run in (broken, good, later)])
    assert [(entry.standing.subject, entry.source) for entry in board.entries] == [("s", "good")]
    assert board.selfchecks == 1
    [problem] = board.unreadable
    assert "broken" in problem
    text = to_markdown(describe_leaderboard(board))
    assert "(1 self-check left out)" in text
    assert "Not read: `" in text
    assert rank_sources([source(later)]).entries[0].source == "later", "who names one means it"


def test_a_journal_without_a_plan_is_paired_with_a_run_by_the_names_of_cases(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", plan_of(20, ["a"]), {"a": lambda c, r: 1.0})
    other = run_of(tmp_path / "other", plan_of(20, ["b"]), {"b": lambda c, r: 0.0})
    alone = tmp_path / "alone.jsonl"
    alone.write_bytes(other.journal_file.read_bytes())
    board = rank_sources([source(run), open_source(alone)])
    assert len(board.boards) == 1
    assert [(entry.standing.subject, entry.rank) for entry in board.entries] == [("a", "1"), ("b", "2")]
    assert "paired by their ids only" in to_markdown(describe_leaderboard(board))


def test_subjects_that_can_be_compared_with_nobody_have_no_rank(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", plan_of(1, ["a", "b"]), {"a": lambda c, r: 1.0, "b": lambda c, r: 1.0})
    board = rank_sources([source(run)])
    assert {entry.standing.subject: entry.rank for entry in board.entries} == {"a": "–", "b": "–"}
    assert "| `a` | – | – |" in to_markdown(describe_leaderboard(board))
    page = write_report_page(tmp_path / "board.html", describe_leaderboard(board))
    assert "No two subjects could be compared" in page.read_text()


def test_without_a_threshold_nothing_is_said_to_have_passed(tmp_path: Path) -> None:
    plan = plan_of(5, ["s"], threshold=None)
    run = write_run(tmp_path / "run", plan, [record_of(trial, 0.5, threshold=None) for trial in plan.trials()])
    text = to_markdown(describe_leaderboard(rank_sources([source(run)])))
    assert "| –/5 |" in text


def test_a_sparkline_keeps_the_whole_scale_and_the_last_twenty() -> None:
    assert sparkline([0, 0.5, 1]) == "▁▅█"
    assert len(sparkline([0.1] * 50)) == 20


def test_a_time_that_no_calendar_has_is_unknown() -> None:
    assert day(0.0) == "1970-01-01"
    assert day(1e300) == day(None) == "–"


def _runs(folder: Path) -> list[RunFolder]:
    return [RunFolder(path) for path in sorted(folder.iterdir())]


def test_scores_by_different_scorers_or_thresholds_are_never_ranked_together(bakeoff: Bakeoff, tmp_path: Path) -> None:
    for name, scorer, threshold in (("strict", "exact", 1.0), ("lenient", "contains", 1.0), ("lowered", "exact", 0.5)):
        plan = plan_of(10, [name], threshold=threshold).with_scorers((ScorerSpec(kind=scorer),))
        run_of(tmp_path / "results" / "runs" / name, plan, {name: lambda c, r: 1.0})
    done = bakeoff("leaderboard", "--json")
    board = Leaderboard.model_validate_json(done.stdout)
    assert [entry.rank for entry in board.entries] == ["1", "1", "1"]
    assert sorted(one.judged_by["scorers"].split()[0] for one in board.boards) == ["contains", "exact", "exact"]
    text = bakeoff("leaderboard").stdout
    assert "3 rankings, one for each set of cases and way of scoring" in text
    assert "Scorers: contains (" in text


def test_the_rule_over_rounds_is_part_of_a_board(tmp_path: Path) -> None:
    for name, share in (("most", 0.5), ("all", 1.0)):
        rule = PassRule(gate="share", share=share)
        cases = tuple(Case(id=f"case-{n}", prompt=f"Question {n}?", pass_rule=rule) for n in range(6))
        run_of(tmp_path / name, plan_of(0, [name], case_list=cases, rounds=2), {name: lambda c, r: float(r == 0)})
    assert len(rank_sources([source(run) for run in _runs(tmp_path)]).boards) == 2


def test_a_run_that_lacks_anything_never_replaces_a_full_one_and_is_named(tmp_path: Path) -> None:
    plan = plan_of(100, ["s"])
    write_run(tmp_path / "full", plan, [record_of(trial, 0.0, started=1e9) for trial in plan.trials()])
    almost = [record_of(trial, 1.0, started=2e9) for trial in plan.trials()][:98]
    write_run(tmp_path / "newer", plan, almost)
    board = rank_sources([source(run) for run in _runs(tmp_path)])
    assert [(entry.source, entry.passed_over) for entry in board.entries] == [("full", 1)]
    assert "`s`: 1 later run lacks more of the plan" in to_markdown(describe_leaderboard(board))
    alone = rank_sources([source(RunFolder(tmp_path / "newer"))])
    assert (alone.entries[0].whole, alone.entries[0].ledger.undecided) == (False, 2)


def test_scores_are_corrected_by_labels_where_every_subject_has_them_and_the_board_says_so(tmp_path: Path) -> None:
    run = judged_run(tmp_path / "run", judged_plan(200))
    raw = rank_sources([source(run)])
    assert raw.boards[0].corrected_by is None
    label_all(run, draw(run, run.read_plan(), None, None))
    board = rank_sources([source(run)])
    assert board.boards[0].corrected_by == "judge"
    [verbose] = [entry for entry in board.entries if entry.standing.subject == "verbose"]
    [before] = [entry for entry in raw.entries if entry.standing.subject == "verbose"]
    assert verbose.standing.score < before.standing.score - 0.1, "the judge passes bad answers of `verbose`"
    assert verbose.summary.score == verbose.standing.score
    assert "corrected by labels of the judge judge" in to_markdown(describe_leaderboard(board))


def test_a_run_that_was_decided_early_does_not_replace_a_full_one(tmp_path: Path) -> None:
    plan = plan_of(60, ["s", "t"])
    full = run_of(tmp_path / "full", plan, {"s": lambda case, round_: 1.0, "t": lambda case, round_: 0.0})
    early = plan.with_changes(until_decided=UntilDecided())
    first = [case.id for unit in random_order(early) for case in unit][:40]
    kept = [
        record_of(trial, float(trial.subject.name == "s"), started=1_800_000_000.0)
        for trial in early.trials()
        if trial.case.id in first
    ]
    board = rank_sources([source(full), source(write_run(tmp_path / "early", early, kept))])
    assert [(entry.summary.scored, entry.passed_over) for entry in board.entries] == [(60, 1), (60, 1)]
