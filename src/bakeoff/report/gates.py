"""Decide whether a gate passes. Every door and command asks `decide_gate`, so that there is only one rule.

A gate fails if a required number is missed or a regression is shown. It is undecided if more is
missing than `--allow-undecided` permits. Otherwise it passes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Self

from bakeoff._kernel.choices import ComparisonGate, UndecidableRule
from bakeoff._kernel.model import FrozenModel, sparse_field
from bakeoff._kernel.text import count_of, visible
from bakeoff.report.formatting import percent
from bakeoff.storage.ledger import Ledger, ShardsHere
from bakeoff.verdict import reaches

if TYPE_CHECKING:  # pytest sessions without gates load this module, too
    from bakeoff.report.blocks import Tone
    from bakeoff.stats.comparison import Comparison
    from bakeoff.stats.gates import GateJudgement
    from bakeoff.stats.series import SeriesChange

_MAX_NAMED = 5
_MAX_SENTENCE = 500


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
        """Return the result as files of `--eval-json` store it; None means undecided."""
        return {GateState.PASSED: True, GateState.FAILED: False, GateState.UNDECIDED: None}[self]

    @classmethod
    def of_met(cls, met: bool | None) -> Self:
        """Return the state for a value of `met`."""
        return cls.UNDECIDED if met is None else cls.PASSED if met else cls.FAILED

    @classmethod
    def worst(cls, states: Iterable[Self]) -> Self:
        """Return the worst state: failed if any gate failed, else undecided if any is."""
        found = set(states)
        return next((state for state in (cls.FAILED, cls.UNDECIDED) if state in found), cls.PASSED)


GATE_TONES: "Mapping[GateState, Tone]" = {
    GateState.PASSED: "pass",
    GateState.FAILED: "fail",
    GateState.UNDECIDED: "partial",
}


class GateDecision(NamedTuple):
    """The result of a gate, and the reason. `sentence` includes the `warning` of a passed gate."""

    state: GateState
    sentence: str
    warning: str = ""

    @property
    def exit_code(self) -> int:
        """Return the exit code for the state."""
        return self.state.exit_code

    @property
    def passed(self) -> bool:
        """Tell whether the gate passed."""
        return self.state is GateState.PASSED

    def __str__(self) -> str:
        return f"Gate {self.state}: {self.sentence}."


def undecided(sentence: str) -> GateDecision:
    """Return the decision for an incomplete run, whatever its evidence."""
    return GateDecision(GateState.UNDECIDED, sentence)


class GateResult(FrozenModel):
    """The result of a run's gate as files store it; `met` is None if the gate is undecided."""

    option: str
    met: bool | None
    sentence: str
    warning: str = sparse_field("")  # a problem that a gate found although it passed

    @property
    def state(self) -> GateState:
        """Return the result as a `GateState`."""
        return GateState.of_met(self.met)

    @property
    def word(self) -> str:
        """Return the state as one word, in capitals unless the gate passed."""
        return self.state.value if self.met else self.state.upper()


def worst_last(gates: Iterable[GateResult]) -> list[GateResult]:
    """Sort gates: passed ones first, then undecided ones, and failed ones at the end."""
    return sorted(gates, key=lambda gate: (not gate.met, gate.met is False))


def gates_sentence(gates: Sequence[GateResult], shards: ShardsHere | None = None) -> str:
    """Say which gates did not pass, and why the worst of them did not. Empty without gates."""
    if not gates:
        return ""
    *others, worst = worst_last(gates)
    alone = of_shard_alone(shards)
    if worst.met:
        passed = "The gate passed" if not others else f"All {len(gates)} gates passed"
        return " ".join([f"{passed}{alone}.", *(f"{gate.warning}." for gate in gates if gate.warning)])
    missed = [f"{gate.option} {gate.word}" for gate in reversed(others) if not gate.met]
    which = f"{len(missed) + 1} of {len(gates)} gates did not pass" if others else "The gate did not pass"
    also = f"; also {', '.join(missed)}" if missed else ""
    return f"{which}{alone}: {worst.option} {worst.word}: {visible(worst.sentence, _MAX_SENTENCE)}{also}."


def of_shard_alone(shards: ShardsHere | None) -> str:
    """Return a remark that a gate judged only some shards; empty for a whole run."""
    if not shards or not shards.missing:
        return ""
    return f" for shard {', '.join(map(str, shards.numbers))} of {shards.of} alone (`bakeoff merge` decides the whole)"


class GateRule(NamedTuple):
    """The rule that the user set for comparisons.

    With a margin, `gate="regression"` also passes a comparison that rules out a larger loss.
    """

    gate: ComparisonGate = "regression"
    margin: float | None = None
    undecidable: UndecidableRule = "pass"


class Allowance(NamedTuple):
    """The number or share of cases that may be undecided without making the gate undecided."""

    most: float = 0
    is_share: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `3` as a number, `0.05` and `5%` as a share. Raise ValueError otherwise, also for `1.0`: one, or all?"""
        if text.isdecimal():
            return cls(int(text))
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        if not 0 <= share <= 1 or (share == 1 and not text.endswith("%")):
            raise ValueError(text)
        return cls(share, is_share=True)

    def covers(self, missing: int, planned: int) -> bool:
        """Tell whether this many of the planned cases may be missing."""
        return missing <= (self.most * planned if self.is_share else self.most)

    def __str__(self) -> str:
        return percent(self.most) if self.is_share else f"{self.most:,.0f}"


NONE_ALLOWED = Allowance()


class Uncompared(NamedTuple):
    """The cases of a baseline that the candidate lacks, or has with different content."""

    cases: int
    named: Sequence[str]  # some of them, each with its reason
    of: int = 0  # cases of the baseline; 0: as many as were planned


_ALL_COMPARED = Uncompared(0, ())
_NO_RULE = GateRule()


@dataclass(frozen=True, slots=True)
class GateEvidence:
    """The evidence that decides one gate. Parts that are left out decide nothing.

    Args:
        ledgers: the ledger of each run, by name; the run itself has an empty name.
        allowed: how much may be undecided.
        option: the name of the option that allows more.
        each: True if `allowed` holds for each run, and not for all of them together.
        uncompared: cases of the baseline that are not compared. They are undecided, too.
        wanted: the lowest value that passes; a missing value fails.
        value: the measured value, from 0 to 1.
        best: the best value still possible if something is undecided; if it would pass, the gate is undecided.
        comparisons: comparisons with their rulings, all of which must pass by the `rule`.
        series: series of runs, none of which may be worse now.
        broken: cases that fail the gate `no-new-failures`.
        refused: True if the gate cannot be decided.
        sentence: the facts; if empty, the comparisons are described.
    """

    ledgers: Mapping[str, Ledger] = field(default_factory=dict)
    allowed: Allowance = NONE_ALLOWED
    option: str = "--allow-undecided"
    each: bool = False
    uncompared: Uncompared = _ALL_COMPARED
    wanted: float | None = None
    value: float | None = None
    best: float | None = None
    comparisons: "Sequence[tuple[Comparison, GateJudgement]]" = ()
    rule: GateRule = _NO_RULE
    series: "Sequence[SeriesChange]" = ()
    broken: Sequence[str] = ()
    refused: bool = False
    sentence: str = ""


NO_EVIDENCE = GateEvidence()


def decide_gate(evidence: GateEvidence) -> GateDecision:
    """Decide whether a gate passes, and say why in one sentence. This is the only function that decides.

    The strictest part of the evidence decides: a missed number or a shown regression fails the gate in any case.
    Otherwise it is undecided if more is missing than is allowed, or if a comparison is refused.
    """
    if empty := sorted(name for name, ledger in evidence.ledgers.items() if not ledger.planned):
        return undecided(f"{empty[0]} has no evals") if empty[0] else GateDecision(GateState.FAILED, "no eval was run")
    decisions = [_decide_comparison(*each, evidence.rule) for each in evidence.comparisons]
    state = GateState.worst(each.state for each in decisions)
    if evidence.broken or any(each.worse for each in evidence.series):
        state = GateState.FAILED
    if evidence.refused:
        state = GateState.worst((state, GateState.UNDECIDED))
    if evidence.wanted is not None and (evidence.value is None or not reaches(evidence.value, evidence.wanted)):
        possible = evidence.best is not None and reaches(evidence.best, evidence.wanted)
        state = GateState.worst((state, GateState.UNDECIDED)) if possible else GateState.FAILED
    missing, forgiven = _missing(evidence)
    if missing:
        state = GateState.worst((state, GateState.UNDECIDED))
    said = evidence.sentence or "; ".join(each.sentence for each in decisions if each.state is state)
    if evidence.sentence and state is GateState.FAILED and evidence.rule.undecidable == "fail":
        said += "; undecidable counts as failed"
    warning = _warning(evidence) if state is GateState.PASSED else ""
    first = (said, missing) if state is GateState.FAILED else (missing, said)
    return GateDecision(state, "; ".join(filter(None, (*first, warning, forgiven))), warning)


def kept_decision(gates: Sequence[GateResult], ledger: Ledger) -> GateDecision:
    """Decide about a recorded run by its gates or, without gates, by what is missing."""
    if not gates:
        return decide_gate(GateEvidence(ledgers={"": ledger}))
    if (gap := ledger.of_its_shard.gap) and all(gate.met for gate in gates):  # records were lost or edited since
        return undecided(f"The gates passed, but {gap}")
    return GateDecision(GateState.worst(gate.state for gate in gates), gates_sentence(gates, ledger.shards)[:-1])


def _warning(evidence: GateEvidence) -> str:
    """Warn if some cases, or all changed ones together, got worse although the gate passed."""
    known = [ruling.within for _, ruling in evidence.comparisons if ruling.within is not None]
    option = f"{evidence.option.replace('allow-undecided', 'gate')} no-new-failures"
    if broken := sorted({case for each in known for case in each.broken}):
        named = ", ".join(visible(case, 80) for case in broken[:_MAX_NAMED])
        return f"BUT {count_of(len(broken), 'CASE IS', 'CASES ARE')} CERTAINLY WORSE ({named}): {option} fails then"
    if not known or any(each.better for each in known) or not any(each.worse for each in known):
        return ""
    return f"BUT EVERY CASE THAT CHANGED GOT WORSE: for a deterministic application use {option}"


def _missing(evidence: GateEvidence) -> tuple[str, str]:
    """Return what is missing beyond the allowance, and what is missing within it."""
    parts, named, counts = [], list[str](), list[tuple[int, int]]()  # (missing, planned)
    most = max((ledger.planned for ledger in evidence.ledgers.values()), default=0)
    for name, ledger in evidence.ledgers.items():
        whose = f"{name}: " if name else ""
        if ledger.gap is not None:
            return f"{whose}{ledger.gap}", ""
        if ledger.undecided:
            counts.append((ledger.undecided, ledger.planned))
            parts.append(f"{whose}{ledger.undecided:,} of {ledger.planned:,} undecided ({ledger.words})")
            named += ledger.named
    if evidence.uncompared.cases:
        counts.append((evidence.uncompared.cases, evidence.uncompared.of or most or evidence.uncompared.cases))
        lacking = count_of(evidence.uncompared.cases, "case of the baseline", "cases of the baseline")
        parts.append(f"{lacking} cannot be compared")
        named += evidence.uncompared.named
    if not counts:
        return "", ""
    allowed, count = evidence.allowed, sum(missing for missing, _ in counts)
    words = f"{', '.join(parts)}; {allowed} allowed{' in each run' * evidence.each} ({evidence.option})"
    together = evidence.each or allowed.is_share or allowed.covers(count, most)
    if together and all(allowed.covers(*one) for one in counts):
        return "", words
    shown = "; ".join(visible(name, 200) for name in named[:_MAX_NAMED])
    return f"{words}{': ' if shown else ''}{shown}{'; and more' if len(named) > _MAX_NAMED else ''}", ""


def _decide_comparison(comparison: "Comparison", ruling: "GateJudgement", rule: GateRule) -> GateDecision:
    from bakeoff.stats.gates import GateVerdict, JudgedPair, could_miss
    from bakeoff.stats.power import cases_to_pass

    unpaired = "" if comparison.paired else ", although the cases differ"
    if ruling.refused:
        way_out = "; run it again" if comparison.difference is None else ""
        return GateDecision(GateState.UNDECIDED, f"{ruling.sentence.removeprefix('refused: ')}{way_out}")
    if ruling.verdict is GateVerdict.REGRESSED:
        return GateDecision(GateState.FAILED, f"a regression is shown{unpaired}")
    if ruling.verdict is not GateVerdict.UNDECIDABLE:
        shown = "equivalence" if ruling.verdict is GateVerdict.EQUIVALENT else "an improvement"
        return GateDecision(GateState.PASSED, f"{shown} is shown{unpaired}")
    margin = rule.margin
    if rule.gate == "regression" and margin is not None and JudgedPair(comparison, ruling).not_worse_by(margin):
        not_worse = f"not worse by more than {100 * margin:g} points{unpaired}"
        return GateDecision(GateState.PASSED, not_worse)
    if rule.undecidable == "fail":
        missed = f"a loss of up to {100 * could_miss(comparison):.1f} points is not ruled out"
        if margin is not None and (needed := cases_to_pass(comparison, margin)):
            missed += f"; unchanged code passes this rule in 95 % of runs only with {needed:,} cases or more"
        return GateDecision(GateState.FAILED, f"undecidable counts as failed: {missed}")
    return GateDecision(GateState.PASSED, f"no regression is shown{unpaired}")


def describe_new_failures(broken: Sequence[str]) -> str:
    """Say which cases fail the gate `no-new-failures`."""
    if not broken:
        return "no case that passed in every round fails in every round now"
    shown = ", ".join(visible(case, 80) for case in broken[:_MAX_NAMED])
    return f"{count_of(len(broken), 'new failure')}: {shown}{', …' if len(broken) > _MAX_NAMED else ''}"
