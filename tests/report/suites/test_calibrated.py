"""A session whose judges must have been labelled."""

from pathlib import Path

import pytest

from bakeoff.record import Score
from bakeoff.report.judges.labelling import draw, judges_calibrated
from bakeoff.report.suites.gates import SuiteGates, judge_gates
from bakeoff.storage.run_folder import find_run

from ..judged import judged_run, label_all
from .evals import outcome, record, whole_summary
from .sessions import REAL, run, run_bakeoff

pytest_plugins = ["pytester"]
JUDGED = [outcome(records=(record(scores=(Score(name="judge", value=1.0, metadata={"judge": "scripted:judge"}),)),))]
OTHER = [outcome(records=(record(scores=(Score(name="judge", value=1.0, metadata={"judge": "scripted:new"}),)),))]


def test_a_judge_needs_labels_in_a_kept_run(tmp_path: Path) -> None:
    run = judged_run(tmp_path / "runs" / "2026-01-01-evals")
    met, why = judges_calibrated(JUDGED[0].records, tmp_path)
    assert met is False
    assert why == (
        f"the judge 'judge' (scripted:judge) has too few labels in the runs of {tmp_path}: "
        f"make some with `bakeoff label latest --results {tmp_path}`"
    )
    drawn = draw(run, run.read_plan(), None, 60)
    label_all(run, drawn[:20])
    assert not judges_calibrated(JUDGED[0].records, tmp_path)[0]
    label_all(run, drawn)
    met, why = judges_calibrated(JUDGED[0].records, tmp_path)
    assert met
    assert why.startswith("the judge 'judge' (scripted:judge): ")
    assert why.endswith("labels in 2026-01-01-evals")
    assert not judges_calibrated(OTHER[0].records, tmp_path)[0]  # another model judges now
    [gate] = judge_gates(SuiteGates(labelled=tmp_path), OTHER, whole_summary(OTHER))
    assert (gate.option, gate.met) == ("--eval-require-calibrated-judge", None)


def test_scores_that_no_model_gave_need_none(tmp_path: Path) -> None:
    assert judges_calibrated(outcome(1.0).records, tmp_path) == (True, "no model judged anything")


EVALS = """
import json
from bakeoff import eval_suite, register_provider
from bakeoff.scorers import Judge

class Strict:
    def create_message(self, system, message):
        return json.dumps({"rationale": "fine", "choice": "A"})

register_provider("house", Strict())

@eval_suite(data=[{"input": "a"}, {"input": "b"}], scorers=[Judge("Good?", model="house:strict")], threshold=0.5)
async def test_answers(case):
    return "an answer"
"""


@pytest.mark.journey
@pytest.mark.usefixtures("neutral_environment")
def test_a_session_is_refused_and_its_run_can_be_labelled(pytester: pytest.Pytester) -> None:
    words = ("--eval-require-calibrated-judge", "--eval-json", "evals.json")
    done = run(pytester, *words, test=EVALS, apart=True, plugin=REAL)
    assert done.ret == 1
    done.stdout.fnmatch_lines(["--eval-require-calibrated-judge UNDECIDED: the judge *house:strict* too few*"])
    merged = run_bakeoff(pytester, "merge", "evals.json", "--require-calibrated-judge")
    assert merged.ret == 3
    merged.stderr.fnmatch_lines(["*--require-calibrated-judge UNDECIDED: the judge *(house:strict) has too few*"])
    folder = find_run(pytester.path / "results", "latest")
    assert len(draw(folder, folder.read_plan(), None, None)) == 2
