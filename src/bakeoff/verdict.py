"""Derive verdicts: of one trial from its failure and score, and of one case from all its rounds."""

from collections.abc import Sequence
from enum import StrEnum
from math import fsum
from typing import NamedTuple

from bakeoff.plan import PassRule


class Verdict(StrEnum):
    """The verdict of one trial, derived from its record."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    TIMEOUT = "timeout"
    BUDGET = "budget"
    INFRA = "infra"
    GRADER = "grader"
    RECORDED = "recorded"

    @property
    def counts(self) -> bool:
        """Return True if the trial says something about the subject, and so counts in its score."""
        return self not in LOST

    @property
    def ok(self) -> bool:
        """Return True if there is nothing to report: the trial passed, or was only recorded."""
        return self in (Verdict.PASS, Verdict.RECORDED)


LOST = frozenset({Verdict.BUDGET, Verdict.INFRA, Verdict.GRADER})
"""Not caused by the subject: excluded from the score, counted separately, run again on resume."""


def reaches(score: float, threshold: float) -> bool:
    """Return True if the score reaches the threshold, allowing for rounding errors of means."""
    return score >= threshold - 1e-9


def trial_verdict(failure: str | None, score: float | None, threshold: float | None) -> Verdict:
    """Derive the verdict of one trial.

    Args:
        failure: The kind of the first failure, if a phase or a scorer ended early.
        score: The mean over scorers that returned a number; None if none did.
        threshold: The lowest score that passes; None if no threshold was set.
    """
    if failure is not None:
        return Verdict.FAIL if failure == "subject" else Verdict(failure)
    if score is None:
        return Verdict.GRADER
    if threshold is None:
        return Verdict.RECORDED
    return Verdict.PASS if reaches(score, threshold) else Verdict.FAIL


class Round(NamedTuple):
    """The facts about one round that the verdict of its case depends on."""

    verdict: Verdict
    value: float | None
    failed: bool  # a phase or a scorer ended early


class CaseVerdict(NamedTuple):
    """The verdict of one case for one subject, over all its rounds."""

    verdict: Verdict | None  # None: still undecided, because rounds are missing
    score: float | None = None  # the score of all rounds, by the rule of the gate

    @property
    def passed(self) -> bool | None:
        """Return True if the case passed; None if it is undecided or has no threshold."""
        if self.verdict is None or self.verdict is Verdict.RECORDED or self.verdict in LOST:
            return None
        return self.verdict is Verdict.PASS

    @property
    def ok(self) -> bool:
        """Return True if there is nothing to report about the case."""
        return self.verdict is not None and self.verdict.ok


def case_values(rule: PassRule, rounds: Sequence[Round]) -> list[float]:
    """Return the numbers whose mean is the score of a case.

    There is one number per scored round, or a single number with `pass@k` and `pass^k`. The list is
    empty if no round was scored, or if a round that the gate needs was lost.
    """
    if rule.gate in ("share", "each"):
        return [each.value for each in rounds if each.value is not None and each.verdict.counts]
    scored = [each.value for each in rounds if each.value is not None]
    if not scored or any(each.failed and each.verdict in LOST for each in rounds):
        return []
    if rule.gate == "mean":
        return scored
    if len(scored) < len(rounds):
        return []
    least = 1.0 if rule.threshold is None else rule.threshold
    # A round whose task or scorer broke never passes, not even with a threshold of 0.
    reached = [reaches(each.value or 0.0, least) and not each.failed for each in rounds]
    return [float(any(reached) if rule.gate == "pass@k" else all(reached))]


def case_score(rule: PassRule, rounds: Sequence[Round]) -> float | None:
    """Return the score of a case over its finished rounds. All reports use this function."""
    values = case_values(rule, rounds)
    return fsum(values) / len(values) if values else None


def case_verdict(rule: PassRule, rounds: Sequence[Round], planned: int | None = None) -> CaseVerdict:
    """Derive the verdict of a case from its finished rounds. Every door and every report calls this function.

    `planned` is the number of rounds in the plan; by default, the length of `rounds`.
    """
    if not rounds:
        return CaseVerdict(None)
    score = case_score(rule, rounds)
    if rule.gate in ("share", "each"):
        return CaseVerdict(_verdict_by_share(rule.share, rounds, len(rounds) if planned is None else planned), score)
    if lost := [each.verdict for each in rounds if each.failed and each.verdict in LOST]:
        return CaseVerdict(lost[0])
    if all(each.failed for each in rounds):  # no answer at all fails under any threshold
        late = all(each.verdict is Verdict.TIMEOUT for each in rounds)
        return CaseVerdict(Verdict.TIMEOUT if late else Verdict.FAIL, score)
    if rule.threshold is None:
        return CaseVerdict(Verdict.RECORDED, score)
    if score is None:
        return CaseVerdict(Verdict.GRADER)
    return CaseVerdict(Verdict.PASS if reaches(score, rule.threshold) else Verdict.FAIL, score)


def _verdict_by_share(share: float, rounds: Sequence[Round], planned: int) -> Verdict | None:
    """Return the final verdict, or else that of a lost round, or else None."""
    verdicts = [each.verdict for each in rounds]
    needed = share * planned - 1e-9
    good = [verdict for verdict in verdicts if verdict.ok]
    failed = [verdict for verdict in verdicts if verdict in (Verdict.FAIL, Verdict.TIMEOUT)]
    if len(good) >= needed:
        return Verdict.RECORDED if good and Verdict.PASS not in good else Verdict.PASS
    if planned - len(failed) < needed:
        return Verdict.FAIL if Verdict.FAIL in failed else Verdict.TIMEOUT
    return next((kind for kind in (Verdict.INFRA, Verdict.GRADER, Verdict.BUDGET) if kind in verdicts), None)
