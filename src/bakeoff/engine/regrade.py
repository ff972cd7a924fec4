"""Derive the verdicts of a run again from its recorded answers, and compare them with the recorded verdicts.

A signature shows that a run has not changed since it was signed. Regrading also shows that the
verdicts follow from the plan and the answers. Answers are scored in a copy, as by `bakeoff
rescore`.
"""

import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bakeoff.engine.registry import ResolvedPlan
from bakeoff.engine.reuse import start_run
from bakeoff.engine.run import run
from bakeoff.options import RunOptions
from bakeoff.plan import CONTROLS, Plan, Trial
from bakeoff.record import BROKEN, PROVEN_TESTS, TEST_SHARES, TESTS, UNIT_TESTS, Record, Score, Text, Transcript
from bakeoff.storage.journal import JournalMark
from bakeoff.storage.run_folder import RunFolder
from bakeoff.verdict import LOST


@dataclass(frozen=True, slots=True)
class Divergence:
    """A trial whose record contradicts the result derived from it."""

    trial: str
    recorded: str
    derived: str


@dataclass(slots=True)
class Regrading:
    """The trials of a run after their verdicts were derived again."""

    matched: int = 0
    diverging: list[Divergence] = field(default_factory=list)
    underived: dict[str, str] = field(default_factory=dict)
    """Trials, and scores of trials, that nothing on this machine can derive, each with the reason."""

    @property
    def outcome(self) -> str:
        """Return MATCH, DIVERGES or, if something could not be derived, INCOMPLETE."""
        return "DIVERGES" if self.diverging else "INCOMPLETE" if self.underived else "MATCH"


async def regrade(folder: RunFolder, plan: Plan, resolved: ResolvedPlan | str, options: RunOptions) -> Regrading:
    """Score all recorded answers of a run again, without any new attempt, and compare.

    Args:
        folder: The run. It is not changed.
        plan: Its plan.
        resolved: The plan with its scorers, or the reason why it cannot be scored here.
        options: How to run it. No model is asked to judge: recordings are used.
    """
    found = Regrading()
    records = {(record.case, record.subject, record.round): record for record in folder.latest_records(plan)}
    excuse = _why_unrecorded(folder, plan, resolved)
    answered = list[Record]()
    for trial in plan.trials():
        record = records.get((trial.case.id, trial.subject.name, trial.round))
        if record is None and excuse is not None:
            found.underived[_name(trial)] = f"it has no record: {excuse}"
        elif record is None:
            found.diverging.append(Divergence(_name(trial), "nothing", "a record: the run has ended, and planned it"))
        elif (wrong := _contradiction(plan, trial, record)) is not None:
            found.diverging.append(wrong)
        elif not record.attempted:
            kind = record.failure.kind if record.failure else "no answer"
            found.underived[_name(trial)] = f"it has no answer to score ({kind}): its verdict is the record's word"
        elif isinstance(resolved, str):
            found.underived[_name(trial)] = resolved
        else:
            answered.append(record)
    if answered and not isinstance(resolved, str):
        async for derived in _scored_again(answered, resolved, options):
            place = derived.case, derived.subject, derived.round
            if (scored := plan.find(*place)) is not None:
                _compare(_name(scored), records[place], derived, found)
    order = {_name(trial): trial.index for trial in plan.trials()}
    found.diverging.sort(key=lambda one: order[one.trial])
    return found


def _why_unrecorded(folder: RunFolder, plan: Plan, resolved: ResolvedPlan | str) -> str | None:
    """Return the reason why trials may have no record; None if every planned trial must have one."""
    if plan.sparse and isinstance(resolved, str):  # plans that can be run again here are never sparse
        return "the plan does not say whether it should"
    last = next((entry for entry in folder.newest_first() if isinstance(entry, JournalMark)), None)
    reason = last.facts.get("reason") if last is not None and last.kind == "end" else "stopped"
    return None if reason == "finished" else f"the run ended before it ({reason})"


async def _scored_again(
    records: Sequence[Record], resolved: ResolvedPlan, options: RunOptions
) -> AsyncIterator[Record]:
    with tempfile.TemporaryDirectory(prefix="bakeoff-regrade-") as scratch:
        options = replace(options, results=Path(scratch), rescore_only=True, rescore_all=True, replay="strict")
        copy = start_run(resolved.plan, options, records, made_here=False)
        async for record in run(resolved, replace(options, folder=copy.path)):
            yield record


def _contradiction(plan: Plan, trial: Trial, record: Record) -> Divergence | None:
    """Return what in a record contradicts the plan or the record's own transcript, or None."""
    rule = trial.case.pass_rule if plan.sparse else None  # pytest records the threshold of each suite
    threshold = plan.threshold_of(trial.case) if rule is None else rule.threshold
    if record.threshold != threshold:
        return Divergence(_name(trial), f"threshold {record.threshold}", f"threshold {threshold}, by the plan")
    if trial.subject.kind in CONTROLS and record.bound != (is_bound := trial.subject.kind != "nop"):
        return Divergence(_name(trial), f"bound to the case: {record.bound}", f"bound to the case: {is_bound}")
    around = [part.failure.kind for part in (record.prepare, record.score) if part is not None and part.failure]
    if record.attempted and around:
        return Divergence(_name(trial), f"an answer, but lost to {around[0]}", "an answer that can be scored")
    transcript = record.transcript
    is_own = trial.subject.kind == "function"  # such a subject may derive its answer from the texts
    if transcript is not None and not is_own and not _is_said(transcript):
        return Divergence(_name(trial), "an answer that stands nowhere in its transcript", "the transcript's own")
    return None


def _is_said(transcript: Transcript) -> bool:
    """Return False if the final answer is a text that the subject never wrote."""
    meter = transcript.metadata.get("meter")
    is_cut = isinstance(meter, dict) and bool(meter.keys() & {"dropped", "shortened"})  # long texts are cut
    if is_cut or not isinstance(transcript.output, str) or not transcript.output.strip():
        return True
    said = [part.text for step in transcript.steps for part in step.parts if isinstance(part, Text)]
    called = [str(call.arguments) + str(call.result) for call in transcript.tool_calls]
    return not said or any(transcript.output.strip() in text for text in ("".join(said), "\n".join(said), *called))


def _compare(name: str, recorded: Record, derived: Record, found: Regrading) -> None:
    """Add the differences between the recorded and derived scores of a trial to the findings."""
    claimed = {score.name: score for score in recorded.scores}
    again = {score.name: score for score in derived.scores}
    lost = {  # not derived, because a recording or a program is missing
        each: score.failure.message
        for each, score in again.items()
        if score.failure is not None and score.failure.kind in LOST
        if each in claimed and claimed[each].failure is None
    }
    found.underived |= {f"{name}: {each}": why for each, why in lost.items()}
    names = [each for each in {**claimed, **again} if each not in lost]
    for each in names:
        one, other = (_claim(scores.get(each)) for scores in (claimed, again))
        if one != other:
            found.diverging.append(Divergence(name, f"{each}: {one}", f"{each}: {other}"))
            return
    found.matched += not lost


def _claim(score: Score | None) -> str:
    """Return the parts of a score to compare, without times and wording."""
    if score is None:
        return "no score"
    if score.failure is not None:
        return f"lost to {score.failure.kind}"
    value = "unscored" if score.value is None else f"{score.value:.9g}"
    counted = (UNIT_TESTS, TEST_SHARES, PROVEN_TESTS, BROKEN)
    counts = [f"{key} {score.metadata[key]}" for key in counted if key in score.metadata]
    tests = score.metadata.get(TESTS)
    tests = tests if isinstance(tests, list) else []
    failed = [str(test.get("name")) for test in tests if isinstance(test, dict) and not test.get("passed")]
    more = f"failed: {', '.join(sorted(failed))}" if failed else ""
    return "; ".join(filter(None, (value, *counts, more)))


def _name(trial: Trial) -> str:
    return f"round {trial.round + 1} of {trial.subject.name!r} on {trial.case.id!r}"
