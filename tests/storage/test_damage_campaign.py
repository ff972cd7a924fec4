"""Whatever happens to the files of a run, no reader shows other results without reporting damage."""

from pathlib import Path

import pytest

from .damage import CHANGES, READERS, campaign


@pytest.mark.unwatched
@pytest.mark.journey
def test_no_damage_changes_a_result_unnoticed(tmp_path: Path) -> None:
    outcome = campaign(tmp_path, 120)
    assert outcome.silent == []
    assert set(outcome.reported) == set(CHANGES)
    assert outcome.reported.total() + outcome.harmless.total() == 120 * len(READERS)
