"""Test where runs live and how they are found."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bakeoff.errors import RunFolderError
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.record import Record
from bakeoff.storage.journal import JournalWriter
from bakeoff.storage.own_runs import remember, why_unknown
from bakeoff.storage.redaction import Redactor
from bakeoff.storage.run_folder import FinishedRunFolder, RunFolder, find_run, new_run_folder, run_folders

PLAN = Plan(
    name="p",
    cases=(Case(id="c", prompt="?", files={"a/b.py": "é"}, expected={"x": [1, None]}, tags={"k": "v"}),),
    subjects=(SubjectSpec(kind="nop", name="s", options={"deep": {"er": [True]}}),),
    scorers=(ScorerSpec(kind="exact", options={"strip": False}),),
    rounds=2,
    threshold=None,
    seed=5,
)
NO_SECRETS = Redactor({})


def planned(results: Path, title: str) -> RunFolder:
    folder = new_run_folder(results, title)
    folder.write_plan(PLAN, NO_SECRETS)
    return folder


def test_a_plan_comes_back_equal_and_is_private(tmp_path: Path) -> None:
    folder = planned(tmp_path, "x")
    assert folder.read_plan() == PLAN
    assert [trial.score_key for trial in folder.read_plan().trials()] == [trial.score_key for trial in PLAN.trials()]
    assert folder.plan_file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("title", "slug"), [("My Run!", "my-run"), ("../..", "run"), ("é", "run"), ("x" * 99, "x" * 40), ("-a-", "a")]
)
def test_a_folder_is_named_by_time_and_title(title: str, slug: str, tmp_path: Path) -> None:
    name = new_run_folder(tmp_path, title).name
    assert name[20:] == slug
    assert name[4] == name[7] == name[13] == name[16] == name[19] == "-"


def test_two_runs_of_one_second_get_two_folders(tmp_path: Path) -> None:
    folders = [planned(tmp_path, "same") for _ in range(5)]
    assert len({folder.path for folder in folders}) == 5
    assert {folder.path for folder in run_folders(tmp_path)} == {folder.path for folder in folders}


def test_a_run_is_found_by_folder_by_name_and_as_the_latest(tmp_path: Path) -> None:
    folder = planned(tmp_path, "only")
    for name in (str(folder.path), folder.name, "latest"):
        assert find_run(tmp_path, name).path == folder.path
    (tmp_path / "runs" / "0000-not-a-run").mkdir()
    assert [found.path for found in run_folders(tmp_path)] == [folder.path]


def test_a_run_that_is_not_there_is_said_so_with_what_is(tmp_path: Path) -> None:
    assert run_folders(tmp_path) == []
    with pytest.raises(RunFolderError, match=r"there are no runs under .* yet: `bakeoff demo` makes one"):
        find_run(tmp_path, "latest")
    folder = planned(tmp_path, "only")
    with pytest.raises(RunFolderError, match=f'no run "onl" under .*; did you mean {folder.name}\\?'):
        find_run(tmp_path, "onl")
    with pytest.raises(RunFolderError, match="`bakeoff runs list` shows all runs"):
        find_run(tmp_path, "zzz")


def test_the_latest_of_several_runs_in_one_second_is_the_one_that_started_last(tmp_path: Path) -> None:
    for name, began in (("zebra", 100.25), ("apple", 100.75), ("mango", 100.5)):
        folder = RunFolder(tmp_path / "runs" / f"2026-11-16T09-30-00-{name}")
        folder.path.mkdir(parents=True)
        folder.write_plan(PLAN, Redactor({}))
        writer = JournalWriter(folder.journal_file, Redactor({}))
        writer.append("start", time=began)
        writer.close()
    (earlier := RunFolder(tmp_path / "runs" / "2026-11-16T09-29-59-zulu")).path.mkdir()
    earlier.write_plan(PLAN, Redactor({}))
    assert [folder.name[20:] for folder in run_folders(tmp_path)] == ["zulu", "zebra", "mango", "apple"]
    assert find_run(tmp_path, "latest").name.endswith("-apple")


def test_a_folder_without_a_plan_and_a_damaged_plan_are_said_so(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"is not a run folder: it has no plan\.json"):
        RunFolder(tmp_path).read_plan()
    (tmp_path / "plan.json").write_text('{"name": "p", "cases": 7}')
    with pytest.raises(RunFolderError, match=r"plan\.json cannot be read: cases: "):
        RunFolder(tmp_path).read_plan()


def test_a_run_that_never_started_has_no_entries(tmp_path: Path) -> None:
    folder = planned(tmp_path, "x")
    assert list(folder.entries()) == list(folder.entries_with_places()) == list(folder.latest_records(PLAN)) == []
    assert not folder.started
    assert not folder.is_being_written()
    assert not folder.has_torn_line()
    folder.delete()
    assert not folder.path.exists()


def test_a_torn_line_is_seen(tmp_path: Path) -> None:
    folder = planned(tmp_path, "x")
    for content, torn in ((b"", False), (b"{}\n", False), (b"{}\n{", True)):
        folder.journal_file.write_bytes(content)
        assert folder.has_torn_line() is torn


def test_the_last_record_of_each_trial_of_the_plan_counts(tmp_path: Path, make_record: Callable[..., Record]) -> None:
    folder = planned(tmp_path, "x")
    keys = {trial.round: trial.attempt_key for trial in PLAN.trials()}

    def of(round_: int, started: float, **more: str) -> Record:
        return make_record(round=round_, started=started, **{"attempt_key": keys[round_], **more})

    stale, unknown = of(0, 3.0, attempt_key="of an edited case"), of(0, 4.0, case="gone")
    with JournalWriter(folder.journal_file, NO_SECRETS) as journal:
        for record in (of(0, 1.0), of(1, 1.5), of(0, 2.0), stale, unknown):
            journal.append_record(record)
    assert list(folder.latest_records(PLAN)) == [of(0, 2.0), of(1, 1.5)]


def test_the_journal_of_a_finished_run_is_read_once(tmp_path: Path, make_record: Callable[..., Record]) -> None:
    folder = planned(tmp_path, "x")
    with JournalWriter(folder.journal_file, NO_SECRETS) as journal:
        journal.append_record(make_record())
    finished = FinishedRunFolder(folder.path)
    entries = list(finished.newest_first())
    assert entries == list(folder.newest_first())
    folder.journal_file.unlink()
    assert list(finished.newest_first()) == entries


def test_a_place_that_cannot_be_written_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(RunFolderError, match="cannot be made: Not a directory; choose another folder for results"):
        new_run_folder(tmp_path, "x")


def test_a_folder_that_is_not_a_run_is_never_deleted(tmp_path: Path) -> None:
    (tmp_path / "trip").mkdir()
    (tmp_path / "trip" / "plan.json").write_text('{"my": "travel plan"}')
    with pytest.raises(RunFolderError, match="cannot be read"):
        RunFolder(tmp_path / "trip").delete()
    assert (tmp_path / "trip" / "plan.json").exists()


def test_a_results_folder_that_leads_nowhere_is_told(tmp_path: Path) -> None:
    (tmp_path / "results").symlink_to(tmp_path / "nowhere")
    with pytest.raises(RunFolderError, match="is in the way"):
        new_run_folder(tmp_path / "results", "demo")


def test_a_journal_that_is_not_a_file_is_refused_by_whatever_would_read_it(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    os.mkfifo(folder.journal_file)
    for read in (folder.is_being_written, folder.has_torn_line, folder.spent, folder.beginning):
        with pytest.raises(RunFolderError, match="it is not a file"):
            read()


def test_a_plan_of_more_trials_than_memory_has_bits_is_refused(tmp_path: Path) -> None:
    huge = Plan(
        name="huge",
        cases=(Case(id="a", prompt="?"),),
        subjects=(SubjectSpec(kind="nop", name="nop"),),
        scorers=(ScorerSpec(kind="exact"),),
        rounds=10**14,
    )
    with pytest.raises(RunFolderError, match="has 100,000,000,000,000 trials: at most"):
        list(RunFolder(tmp_path).latest_records(huge))


def test_the_label_of_a_folder_can_be_written_anywhere(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / os.fsdecode(b"caf\xe9"))
    assert folder.label.encode() == b"caf\\udce9"
    assert RunFolder(tmp_path / "日本").label == "日本"


def test_a_run_is_known_as_ours_before_its_plan_can_be_seen(tmp_path: Path) -> None:
    """A run that was killed in between could be resumed only with `--trust`."""
    folder = RunFolder(tmp_path / "run")
    folder.plan_file.mkdir(parents=True)  # so that the plan cannot be written
    with pytest.raises(RunFolderError, match="cannot be written"):
        folder.write_plan(PLAN, NO_SECRETS)
    assert why_unknown(folder.path, PLAN.model_dump_json(exclude_defaults=True, indent=1).encode()) is None


def test_a_plan_that_is_being_replaced_stays_known_only_if_it_was(tmp_path: Path) -> None:
    remember(tmp_path, b"first")
    remember(tmp_path, b"second", instead_of=b"first")
    assert [why_unknown(tmp_path, plan) for plan in (b"first", b"second")] == [None, None]
    remember(tmp_path, b"third", instead_of=b"of somebody else")
    assert why_unknown(tmp_path, b"third") is None
    for plan in (b"first", b"second", b"of somebody else"):
        assert why_unknown(tmp_path, plan) is not None


@pytest.mark.parametrize("config", [{"judge": "x:y", "providers": "none"}, {"judge": "x:y", "providers": {"x": 1}}])
def test_settings_that_no_older_version_wrote_are_an_error_with_the_file(config: object, tmp_path: Path) -> None:
    plan = {"name": "old", "cases": [], "subjects": [], "scorers": [], "door": "mcp", "settings": {"config": config}}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(RunFolderError, match=r"plan\.json cannot be read: an older version wrote no such settings"):
        RunFolder(tmp_path).read_plan()
