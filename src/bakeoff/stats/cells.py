"""One case under one subject, as sums: what every statistic is computed from, whatever the number of rounds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

CLUSTER_TAG = "cluster"
"""The case tag that says which cases stand or fall together."""


class CaseKey(NamedTuple):
    """Which case it is: two cases of one id are the same case only if their content is too."""

    id: str
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """The scored rounds of one case: how many, their sum and the sum of their squares. Scores lie between 0 and 1."""

    rounds: int
    total: float
    squares: float
    cluster: str | None = None

    @classmethod
    def of(cls, values: Iterable[float], cluster: str | None = None) -> "Cell":
        """The sums of some rounds' scores."""
        scores = [float(value) for value in values]
        outside = [score for score in scores if not 0 <= score <= 1]
        if outside or not scores:
            raise ValueError(f"score {outside[0]!r} is not between 0 and 1" if outside else "a case without rounds")
        return cls(len(scores), sum(scores), sum(score * score for score in scores), cluster)

    @property
    def mean(self) -> float:
        return self.total / self.rounds

    @property
    def binary(self) -> bool:
        """Whether every round was 0 or 1: only then does no score shrink when squared."""
        return self.total == self.squares

    @property
    def variance(self) -> float | None:
        """Of one round around the case's mean; unknown from a single one."""
        if self.rounds < 2:
            return None
        return max(0.0, self.squares - self.total * self.total / self.rounds) / (self.rounds - 1)


Cells = Mapping[CaseKey, Cell]
"""One subject in one run."""


def cells_of(rounds: Mapping[CaseKey, Iterable[float]], clusters: Mapping[CaseKey, str] | None = None) -> Cells:
    """Plain lists of scores as cells."""
    named = clusters or {}
    return {key: Cell.of(values, named.get(key)) for key, values in rounds.items()}


def single_pass_or_fail(cells: Iterable[Cell]) -> bool:
    """Whether each case was tried once and either passed or failed."""
    return all(cell.rounds == 1 and cell.binary for cell in cells)
