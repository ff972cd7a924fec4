"""Find out whether people have labelled enough answers of a session's judges. Labels are those of earlier runs."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from bakeoff._kernel.text import count_of, visible
from bakeoff.doors.pytest.outcome import EvalOutcome
from bakeoff.errors import BakeoffError
from bakeoff.report.judges.calibration import JUDGE
from bakeoff.report.judges.labelling import read_judgements
from bakeoff.storage.run_folder import run_folders

Judge = tuple[str, str]
"""The name of a scorer, and its model."""


def judges_calibrated(outcomes: Iterable[EvalOutcome], results: Path) -> tuple[bool | None, str]:
    """Tell whether every judge has enough labels in some run of the folder, and say in which.

    Otherwise None, since the gate refuses, and how to label.
    """
    judges = {
        (score.name, judge)
        for outcome in outcomes
        for record in outcome.records
        for score in record.scores
        if isinstance(judge := score.metadata.get(JUDGE), str)
    }
    if not judges:
        return True, "no model judged anything"
    known = dict(_labelled(results, judges))
    if missing := sorted(judges - known.keys()):
        folder = visible(str(results), 200)
        return None, (
            f"{_name(missing[0])} has too few labels in the runs of {folder}: "
            f"make some with `bakeoff label latest --results {folder}`"
        )
    return True, "; ".join(f"{_name(judge)}: {known[judge]}" for judge in sorted(judges))


def _labelled(results: Path, judges: set[Judge]) -> Iterator[tuple[Judge, str]]:
    """Yield the judges that have enough labels in a run, oldest run first."""
    for folder in run_folders(results):
        if not folder.labels_file.is_file():
            continue
        try:
            found = read_judgements(folder, folder.read_plan())
        except BakeoffError:  # a damaged run cannot vouch for a judge
            continue
        for one in found.calibrations():
            if one.lacking is None and (one.scorer, one.judge) in judges:
                yield (one.scorer, one.judge), f"{count_of(one.labels, 'label')} in {folder.label}"


def _name(judge: Judge) -> str:
    return f"the judge {visible(repr(judge[0]), 60)} ({visible(judge[1], 60)})"
