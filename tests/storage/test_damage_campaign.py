"""Whatever happens to the files of a run, no reader shows other results without reporting damage."""

from pathlib import Path

import pytest

from .damage import CHANGES, READERS, campaign


@pytest.mark.unwatched
@pytest.mark.journey
def test_no_damage_changes_a_result_unnoticed(tmp_path: Path) -> None:
    outcome = campaign(tmp_path, 300)
    assert outcome.silent == []
    assert set(outcome.reported) == set(CHANGES)
    assert outcome.reported.total() + outcome.harmless.total() == 300 * len(READERS)


@pytest.mark.unwatched
def test_no_damage_to_segments_changes_a_result_unnoticed(tmp_path: Path) -> None:
    kinds = [kind for kind in CHANGES if "line" not in kind]  # few lines are in the file that is not compressed
    outcome = campaign(tmp_path, 60, seed=1, kinds=kinds, segment_bytes=2000)
    assert outcome.silent == []
    assert outcome.reported.total() + outcome.harmless.total() == 60 * len(READERS)
