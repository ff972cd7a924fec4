"""Follow the records of a run that ends when it is decided, and say which pairs of subjects are.

The cases come in a random order that the seed of the plan decides, with the cases of a cluster together. A pair takes
a case once both subjects have all its rounds and all earlier cases are taken: if cases were taken as they finish, those
that take long, such as timeouts, would come too late to count. A case that one of the two has lost is left out, as in
every score. A trial that a limit of the run kept from starting is no loss: the pair waits for it.

The result depends on the plan and its records only, so it is the same in the run, after a resume and in reports.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, groupby
from statistics import fmean
from typing import Self

from bakeoff._kernel.model import FrozenModel
from bakeoff.plan import Case, PassRule, Plan, UntilDecided
from bakeoff.record import Record
from bakeoff.stats.cells import CLUSTER_TAG
from bakeoff.stats.gates import Losses, refusal_of
from bakeoff.stats.intervals import Interval
from bakeoff.stats.sequential import SequentialDecision, SequentialTest
from bakeoff.verdict import Round, Verdict, case_values


class PairDecision(FrozenModel):
    """The comparison of two subjects. The difference is second minus first, and the interval is anytime-valid."""

    first: str
    second: str
    decision: SequentialDecision
    cases: int  # that were compared
    difference: float | None
    interval: Interval | None
    refused: str | None = None  # why too many trials were lost for a decision


def random_order(plan: Plan) -> Iterator[tuple[Case, ...]]:
    """Yield the cases of a plan in the random order of its seed; those of one cluster come together."""

    def place(case: Case) -> tuple[bytes, str, bytes]:
        cluster = case.tags.get(CLUSTER_TAG)
        return _random(plan.seed, "case" if cluster is None else "cluster", cluster or case.id)

    ordered = sorted(plan.cases, key=lambda case: (place(case), _random(plan.seed, "case", case.id)))
    return (tuple(unit) for _, unit in groupby(ordered, key=place))


def _random(seed: int, kind: str, name: str) -> tuple[bytes, str, bytes]:
    text = f"{seed}|{kind}|{name}".encode(errors="surrogatepass")
    return hashlib.blake2b(text, digest_size=16).digest(), kind, text  # different names are never equal


class _Arm:
    """The finished cases of one subject."""

    def __init__(self) -> None:
        self.rounds: dict[str, dict[int, Round]] = {}

    def finished(self, case: Case, planned: int) -> bool:
        return len(self.rounds.get(case.id, ())) >= planned

    def losses(self, cases: Iterable[Case]) -> Losses:
        rounds = [one for case in cases for one in self.rounds[case.id].values()]
        return Losses(trials=len(rounds), lost=sum(not one.verdict.counts for one in rounds))


class _DecisionPair:
    """Two subjects, and how far in the order of cases their comparison is."""

    def __init__(self, first: str, second: str, test: SequentialTest) -> None:
        self.first, self.second = first, second
        self.test = test
        self.taken = 0  # units
        self.compared = 0  # cases
        self.decision = SequentialDecision.UNDECIDED
        self.refused: str | None = None

    def result(self) -> PairDecision:
        return PairDecision(
            first=self.first,
            second=self.second,
            decision=self.decision,
            cases=self.compared,
            difference=self.test.difference,
            interval=self.test.interval(),
            refused=self.refused,
        )


class PairDecisions:
    """Compare every two subjects of a plan that are not controls. Records may come in any order, each trial's once.

    The level is divided by the number of pairs, so that the chance of any wrong decision in the run is at most alpha.
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
        """Take a finished trial into account."""
        self.add_round(record.subject, record.case, record.round, record.judged())

    def add_round(self, subject: str, case: str, number: int, finished: Round) -> None:
        """Take a finished trial into account, of which no more than this is known."""
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
                pair.compared += len(differences)
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
        """Tell whether further trials of a subject could decide a pair. Controls are needed while any pair is open."""
        pairs: Sequence[_DecisionPair] = self._pairs_of.get(subject, self._pairs)
        return any(pair.decision is SequentialDecision.UNDECIDED for pair in pairs)

    @property
    def decided(self) -> int:
        """Return how many pairs are decided."""
        return sum(pair.decision is not SequentialDecision.UNDECIDED for pair in self._pairs)

    @property
    def pairs(self) -> int:
        """Return how many pairs there are."""
        return len(self._pairs)

    def results(self) -> tuple[PairDecision, ...]:
        """Return the comparison of every pair so far."""
        return tuple(pair.result() for pair in self._pairs)
