"""`bakeoff runs check`, `sign` and `verify`, and what other commands say about a damaged run."""

import json
from pathlib import Path

import pytest

from bakeoff.storage.run_folder import RunFolder

from ..storage.damage import make_run
from ..warm_bakeoff import Bakeoff


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return make_run(tmp_path / "results" / "runs" / "one")


def _remove_line(run: RunFolder, line: int) -> None:
    lines = run.journal_file.read_bytes().splitlines(keepends=True)
    run.journal_file.write_bytes(b"".join(lines[: line - 1] + lines[line:]))


def test_damage_is_told_by_every_command_and_repaired_by_one(bakeoff: Bakeoff, run: RunFolder) -> None:
    assert bakeoff("runs", "check", "one").returncode == 0
    _remove_line(run, 4)
    for command in (
        ("runs", "show", "one"),
        ("export", "one", "--format", "csv", "--output", "-"),
        ("report", "one", "--no-open"),
        ("leaderboard", "one"),
    ):
        done = bakeoff(*command)
        assert "damaged line" in done.stderr, command
        assert "`bakeoff runs check one` lists them" in done.stderr, command
    assert "damaged line" in bakeoff("compare", "one", "--subject-a", "one", "--subject-b", "two").stdout
    assert "damaged line" in bakeoff("runs", "list").stdout
    assert "damaged line" in bakeoff("resume", "one", "--dry-run").stderr
    checked = bakeoff("runs", "check", "one")
    assert checked.returncode == 1
    assert "journal.jsonl:4: 1 line is missing before it" in checked.stdout
    repaired = bakeoff("runs", "check", "one", "--repair")
    assert (repaired.returncode, repaired.stderr) == (0, "")
    assert "1 line cannot be found" in repaired.stdout
    assert "damaged" not in bakeoff("runs", "show", "one").stderr


def test_an_emptied_journal_does_not_pass(bakeoff: Bakeoff, run: RunFolder) -> None:
    run.journal_file.write_bytes(b"")
    checked = bakeoff("runs", "check", "one", "--json")
    assert checked.returncode == 1
    assert "when it was sealed" in json.loads(checked.stdout)["damaged"][0]["reason"]


def test_a_changed_plan_is_damage_and_the_journal_is_still_checked(bakeoff: Bakeoff, run: RunFolder) -> None:
    run.plan_file.write_bytes(run.plan_file.read_bytes().replace(b"say 1", b"say 9"))
    checked = bakeoff("runs", "check", "one")
    assert checked.returncode == 1
    assert "17 records, 0 damaged lines" in checked.stdout
    assert "plan.json was changed after the run wrote it" in checked.stdout
    assert bakeoff("runs", "show", "one").returncode == 2


def test_a_run_is_signed_and_a_change_or_another_key_is_found(bakeoff: Bakeoff, run: RunFolder) -> None:
    assert bakeoff("runs", "verify", "one").returncode == 2
    assert bakeoff("runs", "sign", "one", "--key", "mine", "--new-key").returncode == 0
    alone = bakeoff("runs", "verify", "one")
    assert alone.returncode == 0
    assert "anyone can sign with a key of their own" in alone.stderr
    trusted = bakeoff("runs", "verify", "one", "--key", "mine.pub")
    assert (trusted.returncode, trusted.stderr) == (0, "")
    bakeoff("runs", "sign", "one", "--key", "other", "--new-key")
    refused = bakeoff("runs", "verify", "one", "--key", "mine.pub")
    assert refused.returncode == 1
    assert "it was signed with key" in refused.stdout
    _remove_line(run, 4)
    changed = bakeoff("runs", "verify", "one", "--key", "other.pub", "--json")
    assert changed.returncode == 1
    assert json.loads(changed.stdout)["problems"] == ["journal.jsonl was changed"]


def test_rescoring_a_signed_run_says_that_the_signature_no_longer_holds(bakeoff: Bakeoff, run: RunFolder) -> None:
    bakeoff("runs", "sign", "one", "--key", "mine", "--new-key")
    assert "its signature no longer holds" in bakeoff("rescore", "one").stderr
    assert bakeoff("runs", "verify", "one", "--key", "mine.pub").returncode == 1
