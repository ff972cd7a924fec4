"""Compute what a design of so many cases and rounds can show, before any money is spent."""

from math import sqrt

from bakeoff._kernel.model import FrozenModel
from bakeoff.stats.intervals import ALPHA, t_quantile
from bakeoff.stats.power import Noise, minimum_detectable, too_few


class Design(FrozenModel):
    """The precision of a paired comparison of two subjects, at the noise that was guessed."""

    cases: int
    rounds: int
    score: float  # that both subjects are expected to have, about
    detectable: float | None  # the difference that is found 4 times in 5; None for a single case, above 1 nothing is
    difference_width: float | None  # half the width of the 95 % interval of the difference
    score_width: float | None  # the same of one score

    @property
    def too_small(self) -> bool:
        """Tell whether no difference can be shown, short of a complete reversal."""
        return too_few(self.cases) is not None or self.detectable is None or self.detectable > 1


def design_of(cases: int, rounds: int, *, score: float = 0.5) -> Design:
    """Return what two subjects with about this score can be told apart by; see `Noise.guessed` for the rest."""
    noise = Noise.guessed(score=score)
    whole = score * (1 - score)
    return Design(
        cases=cases,
        rounds=rounds,
        score=score,
        detectable=minimum_detectable(cases, rounds, noise),
        difference_width=_half_width(noise.between / cases + noise.within / rounds / cases, cases),
        score_width=_half_width(whole / 2 / cases + whole / 2 / rounds / cases, cases),
    )


def _half_width(variance: float, cases: int) -> float | None:
    return min(1.0, t_quantile(1 - ALPHA / 2, cases - 1) * sqrt(variance)) if cases > 1 else None
