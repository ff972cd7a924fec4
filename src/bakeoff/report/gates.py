"""Decide whether a gate passes. Every door and command asks `decide_gate`, so that the rule stands in one place.

A gate has failed if a wanted number is missed or a regression is shown, or if the run is not complete enough. It is
undecided if too much is missing to compare. Otherwise it has passed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Self

from bakeoff._kernel.choices import ComparisonGate, UndecidableRule
from bakeoff._kernel.text import visible
from bakeoff.report.formatting import percent
from bakeoff.stats.comparison import Comparison
from bakeoff.stats.gates import GateJudgement, GateVerdict, could_miss
from bakeoff.stats.power import cases_to_pass
from bakeoff.verdict import reaches

_MAX_NAMED = 5
_INCOMPLETE = "the run was stopped before its end, or not all of it could be collected and read"


class GateState(StrEnum):
    """The result of a gate."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"

    @property
    def exit_code(self) -> int:
        """Return the exit code of a command whose only gate has this state: 0, 1 or 3."""
        return {GateState.PASSED: 0, GateState.FAILED: 1, GateState.UNDECIDED: 3}[self]

    @property
    def met(self) -> bool | None:
        """Return the result as the files of `--eval-json` have it; None is undecided."""
        return {GateState.PASSED: True, GateState.FAILED: False, GateState.UNDECIDED: None}[self]

    @classmethod
    def of_met(cls, met: bool | None) -> Self:
        """Return the state that such a file means."""
        return cls.UNDECIDED if met is None else cls.PASSED if met else cls.FAILED

    @classmethod
    def worst(cls, states: Iterable[Self]) -> Self:
        """Return the state of several gates together: failed before undecided before passed."""
        found = set(states)
        return next((state for state in (cls.FAILED, cls.UNDECIDED) if state in found), cls.PASSED)


class GateDecision(NamedTuple):
    """The result of a gate and the reason for it."""

    state: GateState
    sentence: str

    @property
    def exit_code(self) -> int:
        """Return the exit code that the state means."""
        return self.state.exit_code


class GateRule(NamedTuple):
    """The rule that the user set for comparisons.

    With a margin, `gate="regression"` counts a comparison as decided if it rules out a larger loss, whatever the gain.
    """

    gate: ComparisonGate = "regression"
    margin: float | None = None
    undecidable: UndecidableRule = "pass"


class Allowance(NamedTuple):
    """The number or share of cases that may be undecided before a gate fails."""

    most: float = 0
    is_share: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `3` as a number, `0.05` and `5%` as a share. Raise ValueError otherwise."""
        if text.isdecimal():
            return cls(int(text))
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        if not 0 <= share <= 1:
            raise ValueError(text)
        return cls(share, is_share=True)

    def __str__(self) -> str:
        return percent(self.most) if self.is_share else f"{self.most:,.0f}"


NONE_ALLOWED = Allowance()


class UndecidedCases(NamedTuple):
    """The cases that have no verdict, and how many of them are allowed."""

    undecided: int
    cases: int  # all, with and without a verdict
    named: Sequence[str]  # some of the undecided ones, each with its reason
    allowed: Allowance
    option: str  # the name of the option that allows more
    what: str = ""  # stands before the sentence

    @property
    def refusal(self) -> str | None:
        """Return why the gate fails, or None if no more is undecided than is allowed."""
        allowed = self.allowed
        if self.undecided <= (allowed.most * self.cases if allowed.is_share else allowed.most):
            return None
        shown = "; ".join(visible(name, 200) for name in self.named[:_MAX_NAMED])
        more = "; …" if self.undecided > min(len(self.named), _MAX_NAMED) and shown else ""
        count = f"{self.undecided:,} of {self.cases:,} {'is' if self.undecided == 1 else 'are'} undecided"
        return f"{self.what}{count}, and {allowed} allowed ({self.option}){': ' if shown else ''}{shown}{more}"


_NO_RULE = GateRule()


@dataclass(frozen=True, slots=True)
class GateEvidence:
    """The evidence that decides one gate. Parts that are left out decide nothing.

    Args:
        wanted: the least value that passes; a missing value fails.
        value: the measured value, from 0 to 1.
        comparisons: comparisons with their rulings, all of which must pass by the `rule`.
        refused: True if the gate cannot be decided.
        sentence: the facts; without one, a comparison is described.
        undecided: groups of cases without a verdict, more of which than allowed fail the gate.
        cases: the number of all cases; no gate passes without any.
        complete: False if the run did not get to its end, which fails every gate.
    """

    wanted: float | None = None
    value: float | None = None
    comparisons: Sequence[tuple[Comparison, GateJudgement]] = ()
    rule: GateRule = _NO_RULE
    refused: bool = False
    sentence: str = ""
    undecided: Sequence[UndecidedCases] = ()
    cases: int | None = None
    complete: bool = True


def decide_gate(evidence: GateEvidence) -> GateDecision:
    """Decide whether a gate passes, and say why in one sentence.

    The strictest part of the evidence decides. A run without cases or without an end fails, whatever the numbers are.
    Too many undecided cases and a missed number fail, too. A refused comparison leaves the gate undecided.
    """
    if evidence.cases == 0:
        return GateDecision(GateState.FAILED, "no eval was run")
    decisions = [_decide_comparison(*each, evidence.rule) for each in evidence.comparisons]
    state = GateState.worst(each.state for each in decisions)
    if evidence.refused:
        state = GateState.worst((state, GateState.UNDECIDED))
    if evidence.wanted is not None and (evidence.value is None or not reaches(evidence.value, evidence.wanted)):
        state = GateState.FAILED
    reasons = [evidence.sentence or "; ".join(each.sentence for each in decisions)]
    for refusal in filter(None, (each.refusal for each in evidence.undecided)):
        state, reasons = GateState.FAILED, [refusal, *reasons]
    if not evidence.complete:
        state, reasons = GateState.FAILED, [_INCOMPLETE, *reasons]
    return GateDecision(state, "; ".join(reasons))


def _decide_comparison(comparison: Comparison, ruling: GateJudgement, rule: GateRule) -> GateDecision:
    unpaired = "" if comparison.paired else ", although the cases differ"
    if ruling.refused:
        lost = comparison.difference is not None
        way_out = "run `bakeoff resume` to retry the lost trials" if lost else "run it again"
        return GateDecision(GateState.UNDECIDED, f"no decision: {way_out}")
    if ruling.verdict is GateVerdict.REGRESSED:
        return GateDecision(GateState.FAILED, f"the gate failed: a regression is shown{unpaired}")
    if ruling.verdict is not GateVerdict.UNDECIDABLE:
        shown = "equivalence" if ruling.verdict is GateVerdict.EQUIVALENT else "an improvement"
        return GateDecision(GateState.PASSED, f"the gate passed: {shown} is shown{unpaired}")
    inner, margin = comparison.inner, rule.margin
    if rule.gate == "regression" and margin is not None and inner is not None and inner.low > -margin:
        # One-sided: only losses matter.
        not_worse = f"not worse by more than {100 * margin:g} points{unpaired}"
        return GateDecision(GateState.PASSED, f"the gate passed: {not_worse}")
    if rule.undecidable == "fail":
        missed = f"a loss of up to {100 * could_miss(comparison):.1f} points is not ruled out"
        if margin is not None and (needed := cases_to_pass(comparison, margin)):
            missed += f"; unchanged code passes this rule in 95 % of runs only with {needed:,} cases or more"
        return GateDecision(GateState.FAILED, f"the gate failed, because undecidable counts as failed: {missed}")
    return GateDecision(GateState.PASSED, f"the gate passed: no regression is shown{unpaired}")
