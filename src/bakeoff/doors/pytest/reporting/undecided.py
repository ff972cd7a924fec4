"""Decide how many evals may be undecided before a gate fails: none, unless the user allows some."""

from collections.abc import Sequence
from typing import NamedTuple, Self

from bakeoff._kernel.text import visible
from bakeoff.report.formatting import percent

_MAX_NAMED = 5


class Allowance(NamedTuple):
    """The number or share of evals that may be undecided."""

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

    def covers(self, undecided: int, cases: int) -> bool:
        """Tell whether that many undecided cases are allowed."""
        return undecided <= (self.most * cases if self.is_share else self.most)

    def __str__(self) -> str:
        return percent(self.most) if self.is_share else f"{self.most:,.0f}"


NONE = Allowance()


def refusal(allowed: Allowance, undecided: int, cases: int, named: Sequence[str], option: str) -> str | None:
    """Return why a gate fails, or None if no more is undecided than is allowed.

    Args:
        allowed: What the user allows.
        undecided: The number of undecided cases.
        cases: The number of all cases.
        named: Some of the undecided cases, each with its reason.
        option: The name of the option that allows more.
    """
    if allowed.covers(undecided, cases):
        return None
    shown = "; ".join(visible(name, 200) for name in named[:_MAX_NAMED])
    more = "; …" if undecided > min(len(named), _MAX_NAMED) and shown else ""
    count = f"{undecided:,} of {cases:,} {'is' if undecided == 1 else 'are'} undecided"
    return f"{count}, and {allowed} allowed ({option}){': ' if shown else ''}{shown}{more}"
