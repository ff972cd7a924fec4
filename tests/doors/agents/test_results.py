"""Result files: written from records, read back, and ranked."""

import json
from pathlib import Path
from typing import Any

import pytest

from bakeoff.doors.agents.results.board import AgentResult, describe_board, leaderboard_json, rank_agents
from bakeoff.doors.agents.results.model import AgentsResult
from bakeoff.doors.agents.results.read import ExerciseResultReader, parse_result
from bakeoff.doors.agents.results.write import outdated_files, result_files
from bakeoff.errors import RunFolderError
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.record import Failure, Phase, Record, Score, Transcript, Usage
from bakeoff.report.readers import open_source
from bakeoff.report.render.markdown import to_markdown
from bakeoff.verdict import Verdict

DEFINITION = {"name": "mine", "defaultProvider": "p", "install": {"method": "other"}, "command": ["x"]}


def plan_of(*subjects: SubjectSpec, cases: int = 2, rounds: int = 1) -> Plan:
    return Plan(
        name="agents",
        cases=tuple(Case(id=f"e{place}", prompt="do it") for place in range(cases)),
        subjects=subjects,
        scorers=(ScorerSpec(kind="exercise"),),
        rounds=rounds,
        door="agents",
    )


def agent(model: str | None = "m/1", provider: str = "p") -> SubjectSpec:
    options: dict[str, Any] = {"definition": DEFINITION, "provider": provider, **({"model": model} if model else {})}
    return SubjectSpec(kind="cli-agent", name=f"mine {model}", options=options)


def record_of(plan: Plan, index: int, passed: bool, **changes: Any) -> Record:
    trial = plan.trial(index)
    outcome = {"agentSuccess": True, "testSuccess": passed, "overallSuccess": passed, "testDuration": 500.0}
    failed = {} if passed else {"failureClass": "wrong", "testError": "no"}
    about = {"metered": True, "agent": {"seconds": 1.5, "version": "9.9"}}
    usual = {
        "case": trial.case.id,
        "subject": trial.subject.name,
        "round": trial.round,
        "attempt_key": trial.attempt_key,
        "score_key": trial.score_key,
        "started": 1_800_000_000.0,
        "threshold": 1.0,
        "attempt": Phase(seconds=2.0),
        "transcript": Transcript(metadata=about),
        "scores": (Score(name="exercise", value=float(passed), metadata={"exercise": {**outcome, **failed}}),),
        "spent": Usage(requests=2, input=100, output=20, cost=0.25),
    }
    return Record(**{**usual, **changes})


def written(plan: Plan, records: list[Record]) -> tuple[str, dict[str, Any]]:
    [(name, result)] = result_files(plan, records, "a-run")
    return name, json.loads(result.to_json())


def test_a_file_has_the_name_and_the_keys_that_its_readers_know() -> None:
    plan = plan_of(agent())
    name, file = written(plan, [record_of(plan, 0, passed=True), record_of(plan, 1, passed=False)])
    assert name == "mine-m_1-p-2027-01-15T08_00_00.000Z.json"
    about = file["metadata"]
    assert (about["agent"], about["model"], about["provider"], about["version"]) == ("mine", "m/1", "p", "9.9")
    assert (about["exerciseCount"], about["timestamp"]) == (2, "2027-01-15T08:00:00.000Z")
    assert about["generatedBy"].startswith("bakeoff ")
    assert file["summary"] == {
        "successRate": 50,
        "totalDuration": 4000,
        "avgDuration": 2000,
        "successCount": 1,
        "totalCount": 2,
        "agentSuccessCount": 2,
        "testSuccessCount": 1,
        "testFailedCount": 1,
    }
    first, second = file["results"]
    assert first == {
        "exercise": "e0",
        "agentSuccess": True,
        "testSuccess": True,
        "overallSuccess": True,
        "agentDuration": 1500,
        "testDuration": 500,
        "totalDuration": 2000,
        "tokenUsage": {"inputTokens": 100, "outputTokens": 20, "totalTokens": 120, "cost": 0.25},
    }
    assert second["testError"] == "no"


def test_without_a_model_the_name_says_default_and_what_was_not_counted_is_left_out() -> None:
    plan = plan_of(agent(None), cases=1)
    name, file = written(plan, [record_of(plan, 0, passed=True, spent=Usage())])
    assert name.startswith("mine-default-p-")
    assert "model" not in file["metadata"]
    assert "tokenUsage" not in file["results"][0]


def test_rounds_become_attempts_and_the_rate_is_their_mean() -> None:
    plan = plan_of(agent(), cases=1, rounds=3)
    _, file = written(plan, [record_of(plan, place, passed=place > 0) for place in range(3)])
    [entry] = file["results"]
    assert [attempt["overallSuccess"] for attempt in entry["attempts"]] == [False, True, True]
    assert entry["overallSuccess"] is False
    assert file["summary"]["successRate"] == 66.7
    assert entry["tokenUsage"]["totalTokens"] == 360


def test_what_says_nothing_about_the_agent_is_in_no_number() -> None:
    plan = plan_of(agent())
    gone = Phase(seconds=1.0, failure=Failure(kind="infra", type="InfraError", message="no network"))
    lost = record_of(plan, 1, passed=False, attempt=gone, transcript=None, scores=())
    _, file = written(plan, [record_of(plan, 0, passed=True), lost])
    assert file["summary"]["successRate"] == 100
    assert [each["exercise"] for each in file["results"]] == ["e0"]
    assert file["bakeoff"]["lost"] == [{"exercise": "e1", "round": 1, "verdict": "infra", "reason": "no network"}]
    assert file["bakeoff"]["failureClasses"] == {"infra": 1}


def test_a_round_that_was_lost_does_not_make_a_solved_exercise_unsolved() -> None:
    plan = plan_of(agent(), cases=1, rounds=2)
    gone = Phase(seconds=1.0, failure=Failure(kind="infra", type="InfraError", message="no network"))
    lost = record_of(plan, 1, passed=False, attempt=gone, transcript=None, scores=())
    _, file = written(plan, [record_of(plan, 0, passed=True), lost])
    assert (file["summary"]["successRate"], file["summary"]["successCount"]) == (100, 1)
    assert file["results"][0]["overallSuccess"] is True


def test_a_cost_that_is_known_in_part_is_not_told_as_the_whole() -> None:
    plan = plan_of(agent(), cases=1, rounds=2)
    half = Transcript(metadata={"metered": True, "meter": {"exchanges": 2, "unpriced": 1}})
    _, file = written(plan, [record_of(plan, 0, passed=True), record_of(plan, 1, passed=True, transcript=half)])
    [entry] = file["results"]
    assert [attempt["tokenUsage"].get("cost") for attempt in entry["attempts"]] == [0.25, None]
    assert entry["tokenUsage"] == {"inputTokens": 200, "outputTokens": 40, "totalTokens": 240}


def test_controls_are_written_before_agents_so_that_the_latest_is_an_agent() -> None:
    plan = plan_of(agent(), SubjectSpec(kind="nop", name="nop"), cases=1)
    records = [record_of(plan, 0, passed=True), record_of(plan, 1, passed=False)]
    assert [result.metadata.agent for _, result in result_files(plan, records)] == ["nop", "mine"]


def test_a_file_that_was_written_can_be_read_back(tmp_path: Path) -> None:
    plan = plan_of(agent(), rounds=2)
    records = [record_of(plan, place, passed=place % 2 == 0) for place in range(4)]
    name, file = written(plan, records)
    path = tmp_path / name
    path.write_text(json.dumps(file))
    source = open_source(path, (ExerciseResultReader(),))
    assert source.description.run == "a-run"
    found = {(record.case, record.round): record for record in source.records()}
    assert {key: record.verdict for key, record in found.items()} == {
        ("e0", 0): Verdict.PASS,
        ("e1", 0): Verdict.FAIL,
        ("e0", 1): Verdict.PASS,
        ("e1", 1): Verdict.FAIL,
    }
    assert found["e0", 0].spent.cost == 0.25
    assert found["e0", 0].attempt is not None
    assert found["e0", 0].attempt.seconds == 1.5


def test_a_file_of_someone_elses_without_results_or_model_is_read(tmp_path: Path) -> None:
    path = tmp_path / "theirs.json"
    summary = {"successRate": 66.7, "successCount": 2, "totalCount": 3, "avgDuration": 1000}
    path.write_text(json.dumps({"metadata": {"agent": "theirs", "provider": "x", "extra": 1}, "summary": summary}))
    source = open_source(path, (ExerciseResultReader(),))
    assert [record.value for record in source.records()] == [1.0, 1.0, 0.0]
    assert source.plan.subjects[0].name == "theirs (x)"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "this is not JSON"),
        ('{"metadata": {"agent": ""}}', "metadata.agent"),
        ('{"metadata": {"agent": "a", "timestamp": "soon"}}', "metadata.timestamp"),
        ('{"metadata": {"agent": "a"}, "results": [{"exercise": "e", "agentDuration": -1}]}', r"results\[0\]"),
        ('{"metadata": {"agent": "a"}, "summary": {"totalCount": 999999999}}', "summary.totalCount"),
        ('{"metadata": {"agent": "a"}, "summary": {"successRate": 5000}}', "summary.successRate"),
        (
            '{"metadata": {"agent": "a"}, "summary": {"successCount": 7, "totalCount": 2}}',
            "successCount 7 is more than",
        ),
    ],
)
def test_a_damaged_file_is_told_in_a_sentence(text: str, why: str) -> None:
    with pytest.raises(RunFolderError, match=why):
        parse_result(text.encode(), "file.json")


def test_a_file_that_does_not_sum_up_its_results_is_summed_up() -> None:
    results = [{"exercise": f"e{n}", "overallSuccess": n < 15, "totalDuration": 10} for n in range(20)]
    summary = parse_result(json.dumps({"metadata": {"agent": "a"}, "results": results}).encode(), "f.json").summary
    assert (summary.success_rate, summary.success_count, summary.total_count) == (75, 15, 20)
    assert summary.avg_duration == 10


def test_a_file_is_known_whatever_the_order_of_its_keys(tmp_path: Path) -> None:
    plan = plan_of(agent(), cases=1)
    name, file = written(plan, [record_of(plan, 0, passed=True)])
    (tmp_path / name).write_text(json.dumps(file, sort_keys=True))
    assert ExerciseResultReader().recognises(tmp_path / name)


def test_other_files_are_not_taken_for_results(tmp_path: Path) -> None:
    (tmp_path / "board.json").write_text(json.dumps(board_of([file_of("a", 1, 2)])))
    (tmp_path / "deep.json").write_text('{"metadata": ' + "[" * 100_000)
    assert not ExerciseResultReader().recognises(tmp_path / "board.json")
    assert not ExerciseResultReader().recognises(tmp_path / "deep.json")
    (tmp_path / "package.json").write_text('{"name": "x"}')
    assert not ExerciseResultReader().recognises(tmp_path / "package.json")
    assert not ExerciseResultReader().recognises(tmp_path)


def file_of(
    name: str, solved: int, of: int, *, provider: str = "p", day: int = 1, control: bool = False
) -> AgentsResult:
    results = [
        {"exercise": f"e{n}", "overallSuccess": n < solved, "tokenUsage": {"totalTokens": 5, "cost": 0.5}}
        for n in range(of)
    ]
    return AgentsResult.model_validate(
        {
            "metadata": {"agent": name, "provider": provider, "timestamp": f"2026-01-0{day}T00:00:00.000Z"},
            "summary": {"successRate": round(100 * solved / of, 1), "successCount": solved, "totalCount": of},
            "results": results,
            **({"bakeoff": {"subject": name, "control": True}} if control else {}),
        }
    )


def board_of(files: list[AgentsResult]) -> dict[str, Any]:
    named = (AgentResult(Path("results") / f"{number}.json", file) for number, file in enumerate(files))
    return leaderboard_json(rank_agents(named))


def test_the_board_has_the_latest_of_each_and_ties_are_ties() -> None:
    board = board_of(
        [
            file_of("good", 2, 40, day=1),
            file_of("good", 38, 40, day=3),
            file_of("near", 37, 40, day=2),
            file_of("weak", 1, 40),
            file_of("oracle", 40, 40, control=True),
        ]
    )
    assert [(entry["rank"], entry["agent"], entry["tied"]) for entry in board["entries"]] == [
        (1, "good", True),
        (1, "near", True),
        (3, "weak", False),
    ]
    assert board["lastUpdated"] == "2026-01-03T00:00:00.000Z"
    assert set(board["results"]) == {"good-default", "near-default", "weak-default"}
    expected = {"version", "model", "provider", "successRate", "avgExecutionTime", "problemsSolved", "totalProblems"}
    assert expected | {"cost", "lastUpdated"} <= set(board["entries"][0])
    assert board["entries"][0]["cost"] == 20.0


def test_agents_are_ranked_among_those_that_tried_the_same_exercises() -> None:
    board = board_of([file_of("strong", 20, 40), file_of("weak", 5, 40), file_of("weak", 10, 10, day=2)])
    assert [(entry["board"], entry["rank"], entry["agent"]) for entry in board["entries"]] == [
        (1, 1, "weak"),
        (2, 1, "strong"),
        (2, 2, "weak"),
    ]
    assert board["results"]["weak-default"]["summary"]["totalCount"] == 10, "the latest"


def test_a_later_run_in_which_everything_was_lost_does_not_take_an_agents_place() -> None:
    nothing = {"agent": "good", "provider": "p", "timestamp": "2026-01-09T00:00:00.000Z"}
    board = board_of([file_of("good", 3, 4), AgentsResult.model_validate({"metadata": nothing})])
    assert [(entry["agent"], entry["problemsSolved"]) for entry in board["entries"]] == [("good", 3)]


def test_what_an_agent_cost_is_unknown_where_the_cost_of_one_exercise_is() -> None:
    file = file_of("a", 1, 2).model_dump(by_alias=True)
    file["results"][1]["tokenUsage"]["cost"] = None
    [entry] = board_of([AgentsResult.model_validate(file)])["entries"]
    assert entry["cost"] is None


def test_keys_that_would_collide_name_the_provider() -> None:
    board = board_of([file_of("a", 1, 4), file_of("a", 2, 4, provider="q/r")])
    assert set(board["results"]) == {"a-default-p", "a-default-q_r"}


def test_the_middle_one_may_be_tied_with_both_its_neighbours() -> None:
    board = board_of([file_of("first", 30, 40), file_of("middle", 26, 40), file_of("last", 22, 40)])
    assert [(entry["rank"], entry["tiedWith"]) for entry in board["entries"]] == [
        (1, ["middle-default"]),
        (1, ["first-default", "last-default"]),
        (2, ["middle-default"]),
    ]


def unfinished(name: str, solved: int, of: int, planned: int, *, day: int = 1) -> AgentsResult:
    """Return a file of a run that was stopped."""
    file = file_of(name, solved, of, day=day).as_json()
    return AgentsResult.model_validate(
        {**file, "bakeoff": {"subject": name, "notRun": [f"e{n}" for n in range(of, planned)]}}
    )


def test_an_unfinished_result_has_no_rank_beside_complete_ones() -> None:
    files = [file_of("good", 9, 10), unfinished("quick", 2, 2, 10, day=2), unfinished("good", 1, 1, 10, day=3)]
    board = rank_agents(AgentResult(Path("results") / f"{n}.json", file) for n, file in enumerate(files))
    entries = leaderboard_json(board)["entries"]
    assert [(entry["agent"], entry["rank"], entry["complete"], entry["tiedWith"]) for entry in entries] == [
        ("good", 1, True, []),
        ("quick", None, False, []),
    ]
    text = to_markdown(describe_board(board))
    assert "Only good-default has a complete run: 90.0 %" in text
    assert "Unfinished and not ranked: quick-default." in text
    assert "`quick-default` has no complete run: 2 of 10 trials of the latest one count; it is not ranked." in text


def test_unfinished_results_are_ranked_among_themselves_where_no_other_is_there() -> None:
    files = [unfinished("a", 8, 9, 40), unfinished("b", 0, 9, 40)]
    board = rank_agents(AgentResult(Path("results") / f"{n}.json", file) for n, file in enumerate(files))
    assert [(one.key, one.entry.standing.best, one.entry.ranked) for one in board.rows] == [
        ("a-default", 1, True),
        ("b-default", 2, True),
    ]
    assert "No complete run was found." in to_markdown(describe_board(board))


def test_a_file_in_which_everything_was_lost_is_read(tmp_path: Path) -> None:
    plan = plan_of(agent())
    failure = Failure(kind="infra", type="InfraError", message="the provider answered 401")
    lost = [
        record_of(plan, place, passed=False, attempt=Phase(seconds=1.0, failure=failure), scores=())
        for place in range(2)
    ]
    name, file = written(plan, lost)
    (tmp_path / name).write_text(json.dumps(file))
    source = open_source(tmp_path / name, (ExerciseResultReader(),))
    assert [case.id for case in source.plan.cases] == ["e0", "e1"]
    assert [(record.case, record.verdict, record.failure.message) for record in source.records() if record.failure] == [
        ("e0", Verdict.INFRA, "the provider answered 401"),
        ("e1", Verdict.INFRA, "the provider answered 401"),
    ]


def test_an_attempt_after_a_lost_round_keeps_its_round(tmp_path: Path) -> None:
    plan = plan_of(agent(), cases=1, rounds=2)
    failure = Failure(kind="budget", type="BudgetError", message="it was spent")
    records = [
        record_of(plan, 0, passed=False, attempt=Phase(seconds=1.0, failure=failure), scores=()),
        record_of(plan, 1, passed=True),
    ]
    name, file = written(plan, records)
    (tmp_path / name).write_text(json.dumps(file))
    read = open_source(tmp_path / name, (ExerciseResultReader(),)).records()
    assert sorted((record.round, record.verdict) for record in read) == [(0, Verdict.BUDGET), (1, Verdict.PASS)]


def test_the_older_file_of_a_resumed_run_is_outdated_and_no_other(tmp_path: Path) -> None:
    plan = plan_of(agent(), cases=1)

    def write(run: str, started: float) -> tuple[str, AgentsResult]:
        [(name, file)] = result_files(plan, [record_of(plan, 0, passed=True, started=started)], run)
        (tmp_path / name).write_bytes(file.to_json())
        return name, file

    older, _ = write("a-run", 1_800_000_000.0)
    write("another-run", 1_800_000_100.0)
    (tmp_path / f"{older.partition('2027')[0]}broken.json").write_text("{")
    latest = dict([write("a-run", 1_800_000_200.0)])
    assert [path.name for path in outdated_files(tmp_path, latest)] == [older]
