"""`bakeoff agents leaderboard` over result files as someone types it."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bakeoff.record import Phase, Usage

from ...report.runs import plan_of, record_of, write_run
from ...warm_bakeoff import Bakeoff

pytestmark = pytest.mark.journey


@pytest.fixture
def board(bakeoff: Bakeoff) -> Bakeoff:
    """Calls `bakeoff agents leaderboard …` in the test's folder and gives what came out."""
    return partial(bakeoff, "agents", "leaderboard")


def write_result(folder: Path, agent: str, solved: int, of: int = 20, day: int = 1, **changes: Any) -> Path:
    folder.mkdir(exist_ok=True)
    results = [
        {"exercise": f"e{place}", "overallSuccess": place < solved, "tokenUsage": {"totalTokens": 9, "cost": 0.25}}
        for place in range(of)
    ]
    about = {"agent": agent, "provider": "p", "version": "1.2", "timestamp": f"2026-01-0{day}T00:00:00.000Z"}
    summary = {"successRate": 100 * solved / of, "successCount": solved, "totalCount": of, "avgDuration": 2500}
    path = folder / f"{agent.replace('/', '_')}-{day}.json"
    path.write_text(json.dumps({"metadata": about, "summary": summary, "results": results, **changes}))
    return path


def test_json_has_the_latest_of_each_and_what_cannot_be_told_apart_shares_a_rank(
    board: Bakeoff, tmp_path: Path
) -> None:
    folder = tmp_path / "results"
    write_result(folder, "good", 1)
    latest = write_result(folder, "good", 19, day=2)
    write_result(folder, "near", 18)
    write_result(folder, "weak", 0)
    (folder / "latest.json").write_bytes(latest.read_bytes())
    (folder / "package.json").write_text('{"name": "x"}')
    done = board("--json")
    assert done.returncode == 0, done.stderr
    (folder / "leaderboard.json").write_text(done.stdout)
    again = board("--json")
    assert (again.stdout, again.stderr) == (done.stdout, ""), "a board that was saved among them is no result file"
    told = json.loads(done.stdout)
    assert told["lastUpdated"] == "2026-01-02T00:00:00.000Z"
    assert list(told["results"]) == ["good-default", "near-default", "weak-default"]
    assert [(entry["agent"], entry["rank"], entry["tied"]) for entry in told["entries"]] == [
        ("good", 1, True),
        ("near", 1, True),
        ("weak", 3, False),
    ]
    first = told["entries"][0]
    assert (first["problemsSolved"], first["totalProblems"], first["successRate"]) == (19, 20, 95)
    assert (first["cost"], first["avgExecutionTime"], first["version"]) == (5.0, 2500, "1.2")


def test_markdown_and_the_page_have_the_ranks_and_every_exercise(board: Bakeoff, tmp_path: Path) -> None:
    unmetered = {"subject": "free", "metered": False}
    files = [write_result(tmp_path, "good", 2, 3), write_result(tmp_path, "free", 1, 3, bakeoff=unmetered)]
    done = board(*map(str, files), "--markdown", "--html", "board.html")
    assert done.returncode == 0, done.stderr
    assert "| `good-default` | 1–2 | a | 66.7 % |" in done.stdout
    assert "| `e1` | 1/1 | 0/1 |" in done.stdout
    rows = {name: next(line for line in done.stdout.splitlines() if f"| `{name}" in line) for name in ("good", "free")}
    assert "$0.75" in rows["good"]
    assert "$" not in rows["free"], "the cost of an agent that is not metered is unknown"
    page = (tmp_path / "board.html").read_text()
    assert "2 subjects may be first" in page
    assert "good-default" in page


def test_the_page_leads_to_the_runs_beside_the_files_and_nowhere_else(board: Bakeoff, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    write_result(folder, "here", 1, 2, bakeoff={"subject": "here", "run": "a-run"})
    write_result(folder, "gone", 1, 2, bakeoff={"subject": "gone", "run": "../outside"})
    write_result(folder, "bad", 1, 2, metadata={"agent": "bad", "runUrl": "javascript:alert(1)"})
    for name in ("runs/a-run", "outside"):
        (folder / name).mkdir(parents=True)
        (folder / name / "report.html").write_text("a page")
    done = board("--html", "board.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "board.html").read_text()
    assert "results/runs/a-run/report.html" in page
    assert "outside/report.html" not in page
    assert 'href="javascript' not in page


def test_a_table_is_what_people_get_and_names_from_outside_do_no_harm(board: Bakeoff, tmp_path: Path) -> None:
    path = write_result(tmp_path, "ev\x1b[31mil", 1, 2)
    done = board(str(path))
    assert done.returncode == 0, done.stderr
    assert "ev\\x1b[31mil" in done.stdout
    assert "\x1b" not in done.stdout


def test_a_damaged_file_of_a_folder_is_left_out_with_a_word_and_a_named_one_is_an_error(
    board: Bakeoff, tmp_path: Path
) -> None:
    write_result(tmp_path / "results", "good", 1, 2)
    damaged = tmp_path / "results" / "damaged.json"
    damaged.write_text('{"metadata": {"agent": "", "provider": "p"}}')
    done = board("--json")
    assert done.returncode == 0, done.stderr
    assert "damaged.json" in done.stderr
    assert list(json.loads(done.stdout)["results"]) == ["good-default"]
    refused = board(str(damaged))
    assert refused.returncode == 2
    assert "metadata.agent" in refused.stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "results has no result file of agents"),
        (("elsewhere",), "elsewhere has no result file of agents"),
        (("gone.json",), "gone.json does not exist"),
        (("--json", "--markdown"), "use only one of them"),
    ],
)
def test_what_cannot_be_shown_is_told_in_a_sentence(
    board: Bakeoff, tmp_path: Path, words: tuple[str, ...], why: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    done = board(*words)
    assert done.returncode == 2
    assert why in done.stderr
    assert "Traceback" not in done.stderr


def test_agents_whose_names_differ_only_in_signs_are_both_on_the_board(board: Bakeoff, tmp_path: Path) -> None:
    write_result(tmp_path, "a/b", 1, 2)
    write_result(tmp_path, "a?b", 2, 2)
    done = board(".", "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["results"]) == 2


def write_run_and_result(
    folder: Path, run: str, agent: str, solved: int, day: int, tried: int = 20, **more: Any
) -> None:
    """A run of an agent on 20 exercises, of which it tried the first ones, and its result file."""
    plan = plan_of(20, [agent])
    records = [
        record_of(trial, float(trial.index < solved), started=1e9 + 86_400 * day, **more)
        for trial in plan.trials()
        if trial.index < tried
    ]
    write_run(folder / "runs" / run, plan, records)
    write_result(folder, agent, solved, tried, day, bakeoff={"subject": agent, "run": run})


def test_both_leaderboards_choose_the_same_runs_and_give_them_the_same_order(
    board: Bakeoff, bakeoff: Bakeoff, tmp_path: Path
) -> None:
    folder = tmp_path / "results"
    write_run_and_result(folder, "a-old", "a", 3, day=1)
    write_run_and_result(folder, "a-complete", "a", 15, day=2, spent=Usage(cost=0.02))
    write_run_and_result(folder, "a-killed", "a", 5, day=3, tried=5)
    write_run_and_result(folder, "b-slow", "b", 15, day=1, spent=Usage(cost=0.01), attempt=Phase(seconds=3))
    write_run_and_result(folder, "c-fast", "c", 15, day=1, spent=Usage(cost=0.01), attempt=Phase(seconds=2))
    write_run_and_result(folder, "d-killed", "d", 4, day=1, tried=4)

    entries = json.loads(bakeoff("leaderboard", "--json").stdout)["entries"]
    told = json.loads(board("--json").stdout)
    chosen = [told["results"][f"{entry['agent']}-default"]["bakeoff"]["run"] for entry in told["entries"]]
    assert chosen == [entry["source"] for entry in entries]
    assert sorted(chosen) == ["a-complete", "b-slow", "c-fast", "d-killed"]
    assert [run for run in chosen if run != "d-killed"] == ["c-fast", "b-slow", "a-complete"]
    ranks = [entry["standing"]["best"] if entry["ranked"] else None for entry in entries]
    assert [entry["rank"] for entry in told["entries"]] == ranks == [1, 1, 1, None]
    agents, subjects = board("--markdown").stdout, bakeoff("leaderboard", "--markdown").stdout
    assert "3.0 s" in agents, "the time of the journal, as in the other leaderboard"
    for name, rank in (("a", "1–3 | a"), ("b", "1–3 | a"), ("c", "1–3 | a"), ("d", "– | –")):
        assert f"| `{name}-default` | {rank} |" in agents
        assert f"| `{name}` | {rank} |" in subjects


def test_a_file_without_its_run_that_misses_exercises_does_not_replace_a_complete_one(
    board: Bakeoff, tmp_path: Path
) -> None:
    folder = tmp_path / "results"
    write_result(folder, "a", 15, 20, day=1)
    missing = [f"e{place}" for place in range(5, 20)]
    write_result(folder, "a", 5, 5, day=2, bakeoff={"subject": "a", "notRun": missing})
    [entry] = json.loads(board("--json").stdout)["entries"]
    assert (entry["problemsSolved"], entry["totalProblems"]) == (15, 20)


def test_results_on_other_exercises_or_of_another_commit_have_a_board_of_their_own_and_replace_nothing(
    board: Bakeoff, tmp_path: Path
) -> None:
    folder, at = tmp_path / "results", {"track": "python", "checkout": "python"}
    write_result(folder, "a", 97, 103, day=1, bakeoff={"subject": "a", **at, "commit": "1" * 40})
    write_result(folder, "b", 90, 103, day=2, bakeoff={"subject": "b", **at, "commit": "1" * 40})
    write_result(folder, "c", 80, 103, day=3, bakeoff={"subject": "c", **at, "commit": "2" * 40})
    write_result(folder, "a", 10, 20, day=4, bakeoff={"subject": "a", **at, "commit": "1" * 40})
    told = json.loads(board("--json").stdout)
    boards: dict[int, list[tuple[str, int]]] = {}
    for entry in told["entries"]:
        boards.setdefault(entry["board"], []).append((entry["agent"], entry["totalProblems"]))
    assert list(boards.values()) == [[("a", 20)], [("c", 103)], [("a", 103), ("b", 103)]]
    totals = {key: result["summary"]["totalCount"] for key, result in told["results"].items()}
    assert totals == {"a-default": 20, "c-default": 103, "a-default-board3": 103, "b-default": 103}
    shown = " ".join(board().stdout.split())
    assert "3 rankings, one for each set of cases and way of scoring" in shown
    assert "Exercises of ranking 3" in shown


def test_a_board_of_controls_alone_is_refused_by_both_leaderboards(
    board: Bakeoff, bakeoff: Bakeoff, tmp_path: Path
) -> None:
    folder = tmp_path / "results"
    write_run_and_result(folder, "run", "nop", 0, day=1)
    write_result(folder, "nop", 0, 20, 1, bakeoff={"subject": "nop", "run": "run", "control": True})
    for done in (bakeoff("leaderboard"), board()):
        assert done.returncode == 2
        assert "nothing to rank: no subject besides controls has a scored trial (left out: nop" in done.stderr
