"""Compare two runs of one subject with each other."""

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import count_of
from bakeoff.report.blocks import BulletList, Facts, Quote, Report, Section
from bakeoff.report.compare.comparison import FileName, read_arm
from bakeoff.report.formatting import percent, sentence, span
from bakeoff.report.readers import find_source
from bakeoff.stats.comparison import Comparison, compare
from bakeoff.stats.gates import GateJudgement, GateVerdict, judge
from bakeoff.stats.rounds import FlipRate, flip_rate, flip_rate_within
from bakeoff.storage.run_folder import RunFolder


class SelfCheck(FrozenModel):
    """How far two runs of one subject agree.

    The exit code is 1 if they differ, and 3 if too much is missing to tell.
    """

    runs: tuple[FileName, FileName]
    subject: str
    between: FlipRate | None
    within: FlipRate | None
    comparison: Comparison
    ruling: GateJudgement
    exit_code: int

    @property
    def differ(self) -> bool:
        return self.exit_code == 1


def check_runs(first: RunFolder, second: RunFolder, subject: str) -> SelfCheck:
    """Compare two runs of one subject with each other."""
    sources = [find_source(folder.path, str(folder.path)) for folder in (first, second)]
    with read_arm(sources[0], subject) as one, read_arm(sources[1], subject) as other:
        compared = compare(one.cells, other.cells)
        ruling = judge(compared, losses=(one.losses, other.losses))
        differ = ruling.verdict in (GateVerdict.IMPROVED, GateVerdict.REGRESSED)
        whole = not ruling.refused and one.summary.scored == other.summary.scored == one.summary.planned
        return SelfCheck(
            runs=(first.name, second.name),
            subject=subject,
            between=flip_rate(one.passes, other.passes),
            within=flip_rate_within({**one.passes}),
            comparison=compared,
            ruling=ruling,
            exit_code=1 if differ else 0 if whole else 3,
        )


def describe_self_check(check: SelfCheck) -> Report:
    """Describe how far two runs of one subject agree."""
    kept = Facts((("First run", check.runs[0]), ("Second run", check.runs[1])))
    lines = [f"two trials of one case disagree {_rate(check.between)} of the time (between the two runs)"]
    if check.within:
        lines.append(f"two rounds of one case disagree {_rate(check.within)} of the time (within the first run)")
    lines.append(f"comparison of the two runs: {check.ruling.sentence}")
    if check.differ:
        lines.append(
            "something besides the subject changes from run to run: check what the scorers and the sandbox depend on"
        )
    sections = (
        Section("findings", "Findings", (BulletList(tuple(map(sentence, lines))),)),
        Section("runs", "Runs", (kept,)),
    )
    differ = "differ" if check.differ else "do not differ"
    headline = f"Flip rate {_rate(check.between)}; the two runs {differ}."
    return Report(("Self-check: ", Quote(check.subject)), sections, headline=headline)


def _rate(flips: FlipRate | None) -> str:
    if flips is None:
        return "an unknown share"
    return f"{percent(flips.rate)} (95 % interval {span(flips.interval)}, {count_of(flips.cases, 'case')})"
