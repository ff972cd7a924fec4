"""The shards of a plan run apart from each other, and their merged run is as one that was never parted."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bakeoff.cli.flags import SelectionFlags
from bakeoff.cli.merge import MergeFlags, run_merge
from bakeoff.engine.merging import merge_shards, read_shards
from bakeoff.engine.run import run
from bakeoff.engine.run_control import RunControl
from bakeoff.errors import UsageError
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec, UntilDecided
from bakeoff.record import Usage
from bakeoff.report.answer import run_evidence
from bakeoff.report.gates import decide_gate
from bakeoff.report.summary import summarise
from bakeoff.storage.own_runs import why_unknown
from bakeoff.storage.redaction import Redactor
from bakeoff.storage.run_folder import RunFolder

PROGRAM = Path(__file__).with_name("programs") / "sharded_run.py"


def plan_of(cases: int, **changes: Any) -> Plan:
    plan = Plan(
        name="parted",
        cases=tuple(Case(id=f"case-{n}", prompt=str(n), expected="1") for n in range(cases)),
        subjects=(SubjectSpec(name="one", kind="scripted", options={"default": "1"}),),
        scorers=(ScorerSpec(kind="exact"),),
        rounds=2,
    )
    return plan.with_changes(**changes)


def carry_out(plan: Plan, folder: Path, *, stop_after: int | None = None) -> RunFolder:
    async def go() -> None:
        control = RunControl()
        done = 0
        async for _ in run(plan, RunOptions(folder=folder, jobs=1), control=control):
            done += 1
            if done == stop_after:
                control.stop()

    folder.mkdir(exist_ok=True)
    asyncio.run(go())
    return RunFolder(folder)


def summary_of(folder: RunFolder) -> dict[str, Any]:
    """The summary without what the clock decides."""
    plan = folder.read_plan()
    found = summarise(plan, folder.latest_records(plan)).model_dump(mode="json")

    def timeless(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: timeless(inner) for name, inner in value.items() if "seconds" not in name}
        return [timeless(inner) for inner in value] if isinstance(value, list) else value

    kept: dict[str, Any] = timeless(found)
    return kept


def merged(folders: list[RunFolder], target: Path) -> RunFolder:
    target.mkdir()
    return merge_shards(read_shards(folders), RunFolder(target), Redactor({})).folder


def start(folder: Path, *shard: int) -> "subprocess.Popen[str]":
    folder.mkdir(exist_ok=True)
    argv = [sys.executable, str(PROGRAM), str(folder), *map(str, shard)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


@pytest.mark.full
def test_four_shards_in_four_processes_one_killed_and_run_again_are_as_one_run(tmp_path: Path) -> None:
    folders = [tmp_path / f"shard-{number}" for number in range(1, 5)]
    processes = [start(folder, number, 4) for number, folder in enumerate(folders, 1)]
    killed = processes[1]
    assert killed.stdout is not None
    before = [killed.stdout.readline() for _ in range(3)]
    killed.kill()
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    for process in processes:
        if process is not killed:
            process.communicate()
    with pytest.raises(UsageError, match=r"shard-2 \(shard 2/4\) has \d+ of 32 trials: .*`bakeoff resume"):
        read_shards([RunFolder(folder) for folder in folders])
    again, _ = start(folders[1], 2, 4).communicate()
    assert not set(before) & set(again.splitlines(keepends=True)), "what was finished is not done twice"
    start(tmp_path / "whole").communicate()

    whole, joined = RunFolder(tmp_path / "whole"), merged([RunFolder(folder) for folder in folders], tmp_path / "one")
    assert joined.read_plan() == whole.read_plan()
    assert summary_of(joined) == summary_of(whole)
    assert summary_of(joined)["subjects"][0]["scored"] == 60
    assert [entry for entry in joined.entries() if type(entry).__name__ == "Damage"] == []


def test_every_case_is_in_one_shard_and_the_order_comes_back(tmp_path: Path) -> None:
    whole = plan_of(7)
    parts = [whole.take_shard(number, 3) for number in (1, 2, 3)]
    assert sorted(case.id for part in parts for case in part.cases) == sorted(case.id for case in whole.cases)
    assert [len(part.cases) for part in parts] == [3, 2, 2]
    folders = [carry_out(part, tmp_path / f"{part.shard}".replace("/", "-")) for part in parts]
    assert merged(folders[::-1], tmp_path / "one").read_plan() == whole


def test_missing_shards_are_named_and_the_others_merged(tmp_path: Path) -> None:
    whole = plan_of(8)
    folders = [carry_out(whole.take_shard(number, 4), tmp_path / str(number)) for number in (1, 3)]
    target = tmp_path / "some"
    target.mkdir()
    found = merge_shards(read_shards(folders), RunFolder(target), Redactor({}))
    assert found.missing == (2, 4)
    assert [case.id for case in found.plan.cases] == ["case-0", "case-2", "case-4", "case-6"]


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda plan: (plan.take_shard(1, 2), plan.take_shard(1, 2)), r"a \(shard 1/2\) and .*b .* are the same shard"),
        (lambda plan: (plan.take_shard(1, 2), plan), r"run b is not a shard"),
        (lambda plan: (plan.take_shard(1, 2), plan.take_shard(2, 3)), r"are not parts of one plan"),
        (
            lambda plan: (plan.take_shard(1, 2), plan.with_changes(seed=5).take_shard(2, 2)),
            r"are not parts of one plan",
        ),
    ],
)
def test_runs_that_do_not_belong_together_are_refused_by_name(
    tmp_path: Path, make: Callable[[Plan], tuple[Plan, Plan]], problem: str
) -> None:
    one, other = make(plan_of(6))
    folders = [carry_out(one, tmp_path / "a"), carry_out(other, tmp_path / "b")]
    with pytest.raises(UsageError, match=problem):
        read_shards(folders)


def test_a_shard_that_was_stopped_is_refused_with_the_trial_and_the_way_out(tmp_path: Path) -> None:
    folder = carry_out(plan_of(2000).take_shard(2, 2), tmp_path / "b", stop_after=2)
    with pytest.raises(UsageError, match=r"of 2,000 trials: .* round \d of 'one' on 'case-\d+'; continue it with"):
        read_shards([folder])


def test_a_damaged_shard_is_refused(tmp_path: Path) -> None:
    folder = carry_out(plan_of(4).take_shard(1, 2), tmp_path / "a")
    data = folder.journal_file.read_bytes()
    folder.journal_file.write_bytes(data.replace(b'"round":1', b'"round":0', 1))
    with pytest.raises(UsageError, match=r"a \(shard 1/2\) is damaged: .*runs check --repair"):
        read_shards([folder])


def test_merging_runs_of_others_does_not_make_them_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "theirs"))
    folders = [carry_out(plan_of(4).take_shard(number, 2), tmp_path / str(number)) for number in (1, 2)]
    ours = merged(folders, tmp_path / "ours")
    assert why_unknown(ours.path, ours.read_plan_bytes()) is None
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "mine"))
    foreign = merged(folders, tmp_path / "foreign")
    assert why_unknown(foreign.path, foreign.read_plan_bytes()) == "was not started by you in this place"


def test_the_command_names_what_is_missing_and_what_is_no_run(tmp_path: Path) -> None:
    folders = [carry_out(plan_of(6).take_shard(number, 3), tmp_path / str(number)).path for number in (1, 3)]
    page = tmp_path / "index.html"
    page.touch()
    for given, shards, problem in (
        (folders, 3, r"--shards 3: missing: shard 2; name the run of every shard"),
        (folders, 2, r"--shards 2: this plan was parted into 3 shards: write --shards 3"),
        ([*folders, page], None, r"index.html is not the folder of a run: leave it out"),
        ([Path("s3://bucket/runs/a")], None, r"runs are merged from folders on this machine"),
    ):
        with pytest.raises(UsageError, match=problem):
            run_merge(files=given, wanted=MergeFlags(shards=shards))
    with pytest.raises(UsageError, match=r"--output s3://b/x: runs are merged into a folder on this machine"):
        run_merge(files=folders, wanted=MergeFlags(output="s3://b/x"))


def test_a_merge_without_a_shard_is_undecided_in_its_gate_and_the_run_of_a_shard_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = carry_out(plan_of(6).take_shard(1, 3), tmp_path / "1")
    assert gate_of(one) == "passed"
    assert run_merge(files=[one.path], wanted=MergeFlags(output=str(tmp_path / "all"))) == 3
    assert "Gate undecided: shards 2, 3 of 3 missing" in capsys.readouterr().err
    [merged] = (tmp_path / "all" / "runs").iterdir()
    assert gate_of(RunFolder(merged)) == "undecided"


def gate_of(folder: RunFolder) -> str:
    plan = folder.read_plan()
    return decide_gate(run_evidence(summarise(plan, folder.latest_records(plan)))).state


@pytest.mark.parametrize("given", [{"gate": "no-new-failures"}, {"undecidable": "fail"}, {"min_pass_rate": 1.0}])
def test_gates_that_run_folders_do_not_have_are_refused(tmp_path: Path, given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"is for files of pytest: leave it out for run folders"):
        run_merge(files=[tmp_path], wanted=MergeFlags(**given))


def test_spending_is_added_up(tmp_path: Path) -> None:
    answer = {"output": "1", "usage": {"requests": 1, "input": 10}}
    plan = plan_of(4, subjects=(SubjectSpec(name="one", kind="scripted", options={"default": answer}),))
    folders = [carry_out(plan.take_shard(number, 2), tmp_path / str(number)) for number in (1, 2)]
    spent = merged(folders, tmp_path / "one").spent()
    assert spent == sum((folder.spent() for folder in folders), Usage())
    assert (spent.requests, spent.input) == (8, 80)


@pytest.mark.parametrize("text", ["0/4", "5/4", "4", "a/b", "1/0", "-1/4", "1/4/2", "", "²/4", "1/" + "9" * 20])
def test_a_shard_that_makes_no_sense_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"such as 1/4"):
        SelectionFlags(shard=text).applied(plan_of(4))


def test_more_shards_than_cases_and_runs_until_decided_are_refused() -> None:
    with pytest.raises(UsageError, match="has only 4 cases: part it into at most 4 shards"):
        SelectionFlags(shard="1/5").applied(plan_of(4))
    with pytest.raises(UsageError, match="leave out one of the two"):
        plan_of(4, until_decided=UntilDecided()).take_shard(1, 2)
