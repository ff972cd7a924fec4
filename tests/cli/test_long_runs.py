"""`runs show --case` shows one trial of a run, or says why it cannot."""

import json
from pathlib import Path

import pytest

from bakeoff.storage.run_folder import RunFolder

from ..storage.damage import make_run
from ..warm_bakeoff import Bakeoff


@pytest.fixture
def whole(tmp_path: Path) -> RunFolder:
    return make_run(tmp_path / "whole" / "runs" / "one")


def test_one_trial_is_shown(bakeoff: Bakeoff, whole: RunFolder) -> None:
    results = ("--results", str(whole.path.parent.parent))
    shown = bakeoff("runs", "show", *results, "--case", "case-1", "--subject", "two", "--round", "2")
    assert shown.returncode == 0, shown.stderr
    assert "one, round 2 of 'two' on 'case-1': pass" in shown.stdout
    assert "exact: 1" in shown.stdout
    assert shown.stdout.rstrip().endswith("short11")
    told = json.loads(bakeoff("runs", "show", *results, "--case", "case-1", "--subject", "two", "--json").stdout)
    assert (told["verdict"], told["case"], told["subject"], told["round"]) == ("pass", "case-1", "two", 0)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--case", "case-1"), "--case case-1 needs --subject: the run has 2 of them (one, two)"),
        (("--case", "no", "--subject", "one"), "--case no is not in the run, which has 4 cases"),
        (("--case", "case-1", "--subject", "no"), "--subject no is not in the run"),
        (("--case", "case-1", "--subject", "one", "--round", "3"), "--round 3 is not between 1 and 2"),
        (("--subject", "one"), "--subject and --round name a trial: add --case"),
    ],
)
def test_a_trial_that_is_not_there_is_named(
    words: tuple[str, ...], sentence: str, bakeoff: Bakeoff, whole: RunFolder
) -> None:
    done = bakeoff("runs", "show", "--results", str(whole.path.parent.parent), *words)
    assert done.returncode == 2
    assert sentence in " ".join(done.stderr.split())
