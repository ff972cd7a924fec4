"""Compare subjects after every case, with an interval that holds however often it is read.

A capital of 1 is bet, case by case, on a mean difference above a value m. If the true mean is at
most m, no bet has an expected gain, so the chance that the capital ever reaches 1/α is at most α
(Ville's inequality). The interval holds all m for which it never did. This is the betting interval
of Waudby-Smith and Ramdas, J. Royal Statistical Society B 86 (2024), arXiv:2010.09686. The capital
is divided into equal parts, each of which always bets a fixed share of its current value.

`PairDecisions` follows the records of a run that can end early. Cases come in a random order, set
by the seed of the plan, with the cases of a cluster together. A pair takes a case after all earlier
ones, once both subjects have all its rounds. If cases were taken as they finish, slow ones such as
timeouts would come too late to count. A case that one subject lost is left out, as in every score.
If a limit of the run prevented a trial, the pair waits for it. The result depends only on the plan
and its records, so it is the same during the run, after a resume and in reports.

docs/explanation/statistics.md has the simulated coverage and the number of trials saved.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from itertools import combinations, groupby
from math import log
from statistics import fmean
from typing import TYPE_CHECKING, Any, Self

from bakeoff._kernel.model import FrozenModel
from bakeoff.plan import CLUSTER_TAG, Case, PassRule, Plan, UntilDecided
from bakeoff.record import Record
from bakeoff.stats.gates import Losses, refusal_of
from bakeoff.stats.intervals import ALPHA, Interval
from bakeoff.verdict import Round, Verdict, case_values

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float64]]


METHOD = "anytime-valid betting"
_PARTS = 24
"""Parts of the capital; the shares that they bet are spread evenly between 0 and 1. Twice as many decide no earlier."""

_LOWEST = -1 + 1e-9  # a bet on a mean above −1 itself cannot lose
_PRECISION = 1e-6


class SequentialDecision(StrEnum):
    """The state of a comparison of the second subject with the first."""

    IMPROVED = "improved"
    REGRESSED = "regressed"
    EQUIVALENT = "equivalent"
    UNDECIDED = "undecided"


class SequentialTest:
    """Watches the differences of one pair. A decision can be read after every unit, and is final.

    Args:
        alpha: the maximum chance of a wrong decision, over all looks.
        margin: the pair is equivalent once the interval lies within ±margin. None: no
            equivalence.
    """

    def __init__(self, alpha: float = ALPHA, margin: float | None = None) -> None:
        import numpy as np

        self._enough = log(2 / alpha)  # with half of alpha for each side
        # Each test is a direction and a bound, which the mean in that direction does not exceed.
        self._tests = [(1.0, 0.0), (-1.0, 0.0), *([] if margin is None else [(1.0, -margin), (-1.0, -margin)])]
        self._capital = np.zeros((len(self._tests), _PARTS))  # logarithms
        self._rejected = [False] * len(self._tests)
        self._differences: list[float] = []
        self._weights: list[float] = []
        self.decision = SequentialDecision.UNDECIDED

    def add(self, difference: float, weight: float = 1.0) -> None:
        """Add the next unit.

        Args:
            difference: second minus first, at most ±`weight`. For a cluster, the sum over its
                cases, divided by the size of the largest cluster.
            weight: 1 for a single case. For a cluster, its size divided by the largest size.
        """
        import numpy as np

        self._differences.append(difference)
        self._weights.append(weight)
        if difference == 0 and len(self._tests) == 2:
            return  # no bet wins or loses
        # The gain of betting 1 on a mean above each bound, which is at least −1.
        tests = self._tests
        gains = np.array([(direction * difference - bound * weight) / (1 + bound) for direction, bound in tests])
        self._capital += np.log1p(gains[:, np.newaxis] * _shares())
        for test, total in enumerate(_total(self._capital).tolist()):
            self._rejected[test] = self._rejected[test] or total >= self._enough
        if self.decision is SequentialDecision.UNDECIDED:
            self.decision = self._decide()

    def _decide(self) -> SequentialDecision:
        above, below, *within = self._rejected
        if within and all(within):
            return SequentialDecision.EQUIVALENT  # comes first, since such a difference does not matter
        if above:
            return SequentialDecision.IMPROVED
        return SequentialDecision.REGRESSED if below else SequentialDecision.UNDECIDED

    @property
    def units(self) -> int:
        """Return the number of units so far."""
        return len(self._differences)

    @property
    def difference(self) -> float | None:
        """Return the mean difference over all cases so far."""
        return sum(self._differences) / sum(self._weights) if self._differences else None

    def interval(self) -> Interval | None:
        """Return the interval, valid over all looks so far; None if there is no unit yet."""
        if not self._differences:
            return None
        low = _bound(self._differences, self._weights, self._enough)
        high = -_bound([-one for one in self._differences], self._weights, self._enough)
        if low > high:  # no value fits, as rarely as a decision is wrong
            low = high = (low + high) / 2
        return Interval(low=low, high=high, method=METHOD)


@lru_cache(maxsize=1)
def _shares() -> "Floats":
    import numpy as np

    return (np.arange(_PARTS) + 0.5) / _PARTS


def _total(capital: "Floats") -> "Floats":
    """Return the log of the total capital, given the logs of how its parts have grown."""
    import numpy as np

    total: Floats = np.logaddexp.reduce(capital, axis=-1) - log(_PARTS)
    return total


def _bound(differences: Sequence[float], weights: Sequence[float], enough: float) -> float:
    """Return the largest bound against which the capital ever reached `enough`, or −1."""
    import numpy as np
    from scipy.optimize import brentq

    values, sizes = np.array(differences), np.array(weights)

    def excess(bound: float) -> float:
        gains = (values - bound * sizes) / (1 + bound)
        capital = np.log1p(gains[:, np.newaxis] * _shares()).cumsum(axis=0)
        return float(_total(capital).max()) - enough

    return float(brentq(excess, _LOWEST, 1.0, xtol=_PRECISION)) if excess(_LOWEST) > 0 else -1.0


class PairDecision(FrozenModel):
    """The comparison of two subjects: second minus first, with an anytime-valid interval."""

    first: str
    second: str
    decision: SequentialDecision
    cases: int  # the number of compared cases
    difference: float | None
    interval: Interval | None
    refused: str | None = None  # why lost trials prevent a decision


def random_order(plan: Plan) -> Iterator[tuple[Case, ...]]:
    """Yield a plan's cases in random order, with the cases of a cluster together."""
    drawn = plan.until_decided.order if plan.until_decided else None
    seed = plan.seed if drawn is None else drawn

    def place(case: Case) -> tuple[bytes, str, bytes]:
        cluster = case.tags.get(CLUSTER_TAG)
        return _random(seed, "case" if cluster is None else "cluster", cluster or case.id)

    ordered = sorted(plan.cases, key=lambda case: (place(case), _random(seed, "case", case.id)))
    return (tuple(unit) for _, unit in groupby(ordered, key=place))


def _random(seed: int, kind: str, name: str) -> tuple[bytes, str, bytes]:
    text = f"{seed}|{kind}|{name}".encode(errors="surrogatepass")
    return hashlib.blake2b(text, digest_size=16).digest(), kind, text  # the name breaks ties


class _Arm:
    """The finished cases of one subject."""

    def __init__(self) -> None:
        self.rounds: dict[str, dict[int, Round]] = {}

    def finished(self, case: Case, planned: int) -> bool:
        """Return True if all planned rounds of a case have a record."""
        return len(self.rounds.get(case.id, ())) >= planned

    def losses(self, cases: Iterable[Case]) -> Losses:
        """Count all trials of these cases, and the lost ones."""
        rounds = [one for case in cases for one in self.rounds[case.id].values()]
        return Losses(trials=len(rounds), lost=sum(not one.verdict.counts for one in rounds))


class _DecisionPair:
    """Two subjects, and how far their comparison has come."""

    def __init__(self, first: str, second: str, test: SequentialTest) -> None:
        self.first, self.second = first, second
        self.test = test
        self.taken = 0  # units that were taken
        self.cases = 0  # cases that were compared
        self.decision = SequentialDecision.UNDECIDED
        self.refused: str | None = None

    def result(self) -> PairDecision:
        """Return the current result of this comparison."""
        known = {name: getattr(self, name) for name in ("first", "second", "decision", "cases", "refused")}
        return PairDecision(**known, difference=self.test.difference, interval=self.test.interval())


class PairDecisions:
    """Compares all pairs of subjects except controls. Records may come in any order.

    The pairs share the level, so that the chance of any wrong decision is at most alpha.
    """

    def __init__(self, plan: Plan) -> None:
        settings = plan.until_decided or UntilDecided()
        self._rounds = plan.rounds
        self._units = list(random_order(plan))
        self._largest = max(map(len, self._units), default=1)
        self._rules = {case.id: rule for case in plan.cases if (rule := case.rule_over_rounds) is not None}
        self._usual = PassRule(threshold=plan.threshold, gate="share")
        self._arms = {name: _Arm() for name in plan.compared}
        named = list(combinations(plan.compared, 2))
        level = settings.alpha / max(1, len(named))
        self._pairs = [_DecisionPair(*names, SequentialTest(level, settings.margin)) for names in named]
        self._pairs_of = {
            name: [pair for pair in self._pairs if name in (pair.first, pair.second)] for name in self._arms
        }

    @classmethod
    def of(cls, plan: Plan, records: Iterable[Record]) -> Self:
        """Return the decisions after these records."""
        made = cls(plan)
        for record in records:
            made.add(record)
        return made

    def add(self, record: Record) -> None:
        """Add the record of a finished trial."""
        self.add_round(record.subject, record.case, record.round, record.judged())

    def add_round(self, subject: str, case: str, number: int, finished: Round) -> None:
        """Add a finished trial, given only the facts about it."""
        arm = self._arms.get(subject)
        if arm is None or finished.verdict is Verdict.BUDGET:
            return
        rounds = arm.rounds.setdefault(case, {})
        rounds[number] = finished
        if len(rounds) >= self._rounds:
            for pair in self._pairs_of[subject]:
                self._advance(pair)

    def _advance(self, pair: _DecisionPair) -> None:
        first, second = self._arms[pair.first], self._arms[pair.second]
        while pair.taken < len(self._units):
            unit = self._units[pair.taken]
            if not all(arm.finished(case, self._rounds) for arm in (first, second) for case in unit):
                return
            pair.taken += 1
            differences = [one for case in unit if (one := self._difference(case, first, second)) is not None]
            if differences:
                pair.cases += len(differences)
                pair.test.add(sum(differences) / self._largest, len(differences) / self._largest)
            if pair.decision is SequentialDecision.UNDECIDED and pair.test.decision is not SequentialDecision.UNDECIDED:
                seen = [case for unit in self._units[: pair.taken] for case in unit]
                pair.refused = refusal_of(first.losses(seen), second.losses(seen))
                pair.decision = SequentialDecision.UNDECIDED if pair.refused else pair.test.decision

    def _difference(self, case: Case, first: _Arm, second: _Arm) -> float | None:
        rule = self._rules.get(case.id, self._usual)
        before, after = (case_values(rule, list(arm.rounds[case.id].values())) for arm in (first, second))
        return fmean(after) - fmean(before) if before and after else None

    def needs(self, subject: str) -> bool:
        """Return True while a pair of this subject is undecided; for a control, any pair."""
        pairs: Sequence[_DecisionPair] = self._pairs_of.get(subject, self._pairs)
        return any(pair.decision is SequentialDecision.UNDECIDED for pair in pairs)

    @property
    def decided(self) -> int:
        """Return the number of decided pairs."""
        return sum(pair.decision is not SequentialDecision.UNDECIDED for pair in self._pairs)

    @property
    def pairs(self) -> int:
        """Return the number of pairs."""
        return len(self._pairs)

    def results(self) -> tuple[PairDecision, ...]:
        """Return the current comparison of every pair."""
        return tuple(pair.result() for pair in self._pairs)
