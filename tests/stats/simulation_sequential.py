"""Simulated runs that end when they are decided: how often they are wrong, and what they save."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec, UntilDecided
from bakeoff.stats.sequential import PairDecisions, SequentialDecision, SequentialTest, random_order
from bakeoff.verdict import Round, Verdict

Random = np.random.Generator


@dataclass(frozen=True)
class Apart:
    """Two subjects with a known true difference."""

    cases: int
    first: float
    second: float
    rounds: int = 1
    kind: str = "own"
    margin: float | None = None

    @property
    def truth(self) -> float:
        return self.second - self.first


EQUAL = [
    Apart(200, 0.7, 0.7),
    Apart(200, 0.95, 0.95),
    Apart(100, 0.5, 0.5, rounds=3, kind="beta"),
    Apart(200, 0.5, 0.5, kind="fixed"),
    Apart(200, 0.1, 0.1, kind="graded"),
]
"""Subjects that are equally good, in different ways."""


@dataclass(frozen=True)
class Simulated:
    """Sum up many runs of one setting."""

    decided: dict[SequentialDecision, float]  # shares of the runs
    wrong: float
    covered: float  # intervals that held the truth at every look
    saved: float  # the median share of the trials


def simulated(apart: Apart, runs: int, *, intervals: bool = True) -> Simulated:
    """Look after every case, and stop at the first decision."""
    random = np.random.default_rng([apart.cases, apart.rounds, round(1000 * apart.first), round(1000 * apart.second)])
    decisions: list[SequentialDecision] = []
    covered, saved = 0, []
    for _ in range(runs):
        test = SequentialTest(margin=apart.margin)
        for difference in _DRAWN[apart.kind](apart, random).tolist():
            test.add(difference)
            if test.decision is not SequentialDecision.UNDECIDED:
                break
        decisions.append(test.decision)
        saved.append(1 - test.units / apart.cases)
        interval = test.interval() if intervals else None
        covered += interval is not None and interval.low <= apart.truth <= interval.high
    shares = {decision: decisions.count(decision) / runs for decision in SequentialDecision}
    return Simulated(
        shares, sum(shares[one] for one in wrong_decisions(apart)), covered / runs, float(np.median(saved))
    )


def wrong_decisions(apart: Apart) -> set[SequentialDecision]:
    """The decisions that are wrong for the true difference."""
    wrong = {SequentialDecision.IMPROVED} if apart.truth <= 0 else set()
    wrong |= {SequentialDecision.REGRESSED} if apart.truth >= 0 else set()
    return wrong | (
        {SequentialDecision.EQUIVALENT} if apart.margin is None or abs(apart.truth) >= apart.margin else set()
    )


def _own(apart: Apart, random: Random) -> np.ndarray:
    """Every case passes with the chance of its subject."""
    before, after = (random.binomial(apart.rounds, rate, apart.cases) for rate in (apart.first, apart.second))
    return (after - before) / apart.rounds


def _beta(apart: Apart, random: Random) -> np.ndarray:
    """Each subject draws a chance for every case, mostly near 0 or 1."""
    chances = (random.beta(rate, 1 - rate, apart.cases) for rate in (apart.first, apart.second))
    before, after = (random.binomial(apart.rounds, chance) for chance in chances)
    return (after - before) / apart.rounds


def _alike(apart: Apart, random: Random) -> np.ndarray:
    """Both get the same answer in every case, but for as many cases as make the difference."""
    changed = random.random(apart.cases) < abs(apart.truth)
    return np.where(changed, np.sign(apart.truth), 0.0)


def _graded(apart: Apart, random: Random) -> np.ndarray:
    """Scores between 0 and 1, of which most are near 0."""
    before, after = (random.beta(0.2 * rate, 0.2 * (1 - rate), apart.cases) for rate in (apart.first, apart.second))
    return after - before


def _fixed(apart: Apart, random: Random) -> np.ndarray:
    """A fixed set of cases whose differences have exactly the true mean, in random order: no sample of any others."""
    lost = round(apart.cases * (0.2 - apart.truth / 2))
    gained = round(apart.cases * (0.2 + apart.truth / 2))
    values = np.zeros(apart.cases)
    values[:lost], values[lost : lost + gained] = -1.0, 1.0
    return random.permutation(values)


_DRAWN: dict[str, Callable[[Apart, Random], np.ndarray]] = {
    "own": _own,
    "beta": _beta,
    "alike": _alike,
    "graded": _graded,
    "fixed": _fixed,
}


def plan_of(
    subjects: int, cases: int, *, margin: float | None = None, clusters: int | None = None, **more: int
) -> Plan:
    """A plan that nobody runs: its trials are drawn."""
    tags = [{"cluster": f"k{number % clusters}"} if clusters else {} for number in range(cases)]
    return Plan(
        name="drawn",
        cases=tuple(Case(id=f"c{number}", prompt="?", tags=tags[number]) for number in range(cases)),
        subjects=tuple(SubjectSpec(kind="scripted", name=f"s{number}") for number in range(subjects)),
        scorers=(ScorerSpec(kind="exact"),),
        until_decided=UntilDecided(margin=margin),
        **more,
    )


def any_wrong(subjects: int, cases: int, runs: int, *, clusters: int | None = None) -> float:
    """The share of runs of equal subjects in which any pair is told apart."""
    plan = plan_of(subjects, cases, clusters=clusters)
    order = [case for unit in random_order(plan) for case in unit]
    random = np.random.default_rng([subjects, cases, clusters or 0])
    wrong = 0
    for _ in range(runs):
        decisions = PairDecisions(plan)
        chances = {name: _chances(random, clusters) for name in plan.compared}
        for number, case in enumerate(order):
            passed = random.random(subjects) < [chances[name].get(case.tags.get("cluster"), 0.7) for name in chances]
            for name, one in zip(plan.compared, passed.tolist(), strict=True):
                verdict = Verdict.PASS if one else Verdict.FAIL
                decisions.add_round(name, case.id, 0, Round(verdict, float(one), failed=False))
            if number % 10 == 9 and decisions.decided:
                break
        wrong += decisions.decided > 0
    return wrong / runs


def _chances(random: Random, clusters: int | None) -> dict[str | None, float]:
    return {f"k{number}": float(random.beta(0.7, 0.3)) for number in range(clusters or 0)}
