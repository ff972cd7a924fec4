"""The verdict of a gate on a comparison: improved, regressed, equivalent or undecidable, and the exit code of each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from bakeoff._kernel.model import FrozenModel
from bakeoff.stats.comparison import Comparison

MOST_LOST = 0.05
"""The share of an arm's trials that may be lost before the rest is no longer a fair sample."""

MOST_UNEQUAL = 0.01
"""The difference between the losses of the arms that is allowed where it is more than chance."""

Key = TypeVar("Key")


class GateVerdict(StrEnum):
    """The result of a gate."""

    IMPROVED = "improved"
    REGRESSED = "regressed"
    EQUIVALENT = "equivalent"
    UNDECIDABLE = "undecidable"

    @property
    def exit_code(self) -> int:
        """Return 1 for a regression, 3 if nothing can be decided, else 0."""
        return {GateVerdict.REGRESSED: 1, GateVerdict.UNDECIDABLE: 3}.get(self, 0)


class Ruling(FrozenModel):
    """A verdict and the sentence that explains it. `refused`: too many trials were lost for any other verdict."""

    verdict: GateVerdict
    sentence: str
    p_value: float | None = None  # after Holm, where there were several
    refused: bool = False

    @property
    def exit_code(self) -> int:
        """Return the exit code of the verdict."""
        return self.verdict.exit_code


@dataclass(frozen=True, slots=True)
class Losses:
    """The finished trials of one arm that were lost to something other than the subject."""

    trials: int
    lost: int
    to: str = "infrastructure"

    @property
    def share(self) -> float:
        """Return the share of trials that were lost."""
        return self.lost / self.trials if self.trials else 0.0

    def __str__(self) -> str:
        return f"{self.lost} of {self.trials} trials ({100 * self.share:.1f} %)"


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return adjusted p-values in the order given (S. Holm, Scandinavian Journal of Statistics 6, 1979)."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for done, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - done) * p_values[place]))
        adjusted[place] = highest
    return tuple(adjusted)


def judge(
    comparison: Comparison,
    *,
    margin: float | None = None,
    losses: tuple[Losses, Losses] | None = None,
    p_value: float | None = None,
) -> Ruling:
    """Judge one comparison; `losses` are those of baseline and candidate, `p_value` is one that is already adjusted.

    Improved and regressed need both the test and the interval. Equivalent needs the 1 − 2α interval within ±margin,
    which is two one-sided tests (Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987). It is checked first, since a
    difference within the margin does not matter to the user.
    """
    refusal = losses and refusal_of(*losses)
    if refusal:
        return Ruling(verdict=GateVerdict.UNDECIDABLE, sentence=refusal, refused=True)
    chance = comparison.p_value if p_value is None else p_value
    if comparison.difference is None or comparison.interval is None or chance is None:
        return Ruling(verdict=GateVerdict.UNDECIDABLE, sentence="fewer than two independent cases can be compared")
    verdict = _verdict(comparison, chance, margin)
    return Ruling(verdict=verdict, sentence=_sentence(verdict, comparison, chance, margin), p_value=chance)


def judge_all(
    comparisons: Mapping[Key, Comparison],
    *,
    margin: float | None = None,
    losses: Mapping[Key, tuple[Losses, Losses]] | None = None,
) -> dict[Key, Ruling]:
    """Judge several comparisons behind one gate: Holm keeps the chance of any false alarm at alpha.

    Equivalence needs no correction: a gate opens only if all its parts do (Berger, Technometrics 24, 1982).
    """
    tested = {name: compared.p_value for name, compared in comparisons.items() if compared.p_value is not None}
    adjusted = dict(zip(tested, holm(list(tested.values())), strict=True))
    return {
        name: judge(compared, margin=margin, losses=(losses or {}).get(name), p_value=adjusted.get(name))
        for name, compared in comparisons.items()
    }


def exit_code_of(codes: Iterable[int]) -> int:
    """Return 1 if anything regressed, else 3 if anything is undecidable, else 0."""
    found = set(codes)
    return next((code for code in (1, 3) if code in found), 0)


def refusal_of(baseline: Losses, candidate: Losses) -> str | None:
    """Say why these losses forbid a verdict, or return None.

    The limits are 5 % of an arm, and arms more than 1 point apart if Fisher's exact test gives p < 0.05: the two arms
    then did not lose the same kind of trial.
    """
    for name, arm in (("baseline", baseline), ("candidate", candidate)):
        if arm.share > MOST_LOST:
            limit = f"more than {100 * MOST_LOST:g} %"
            return f"refused: the {name} lost {arm} to {arm.to}, {limit}: resume the run first"
    if abs(baseline.share - candidate.share) > MOST_UNEQUAL and _loss_test(baseline, candidate) < 0.05:
        return (
            f"refused: the baseline lost {baseline} to {baseline.to}, the candidate {candidate} to {candidate.to}, "
            "more unequal than chance: resume both runs first"
        )
    return None


def _loss_test(baseline: Losses, candidate: Losses) -> float:
    from scipy.stats import fisher_exact

    return float(fisher_exact([[arm.lost, arm.trials - arm.lost] for arm in (baseline, candidate)]).pvalue)


def _verdict(comparison: Comparison, chance: float, margin: float | None) -> GateVerdict:
    interval, inner = comparison.interval, comparison.inner
    assert interval is not None
    if margin is not None and inner is not None and -margin < inner.low and inner.high < margin:
        return GateVerdict.EQUIVALENT
    if chance > comparison.alpha:
        return GateVerdict.UNDECIDABLE
    if interval.low > 0:
        return GateVerdict.IMPROVED
    return GateVerdict.REGRESSED if interval.high < 0 else GateVerdict.UNDECIDABLE


def _sentence(verdict: GateVerdict, comparison: Comparison, chance: float, margin: float | None) -> str:
    assert comparison.difference is not None
    assert comparison.interval is not None
    low, high = 100 * comparison.interval.low, 100 * comparison.interval.high
    level = f"{100 * (1 - comparison.alpha):g} % interval"
    facts = f"{100 * comparison.difference:+.1f} points, {level} {low:+.1f} to {high:+.1f}, p = {chance:.2g}"
    if verdict is GateVerdict.EQUIVALENT and margin is not None:
        return f"equivalent: the difference is within ±{100 * margin:g} points ({facts})"
    if verdict is GateVerdict.UNDECIDABLE:
        return f"undecidable: no difference is shown, and none is ruled out ({facts})"
    return f"{verdict}: {facts}"
