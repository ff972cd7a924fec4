"""Simulate judges that err, people who label a part of the answers, and how often intervals hold the truth."""

from random import Random
from typing import NamedTuple

from bakeoff.stats.calibration import (
    JudgedTrial,
    LabelledGroup,
    Strata,
    corrected_difference,
    corrected_score,
    judge_quality,
)
from bakeoff.stats.cells import CaseKey, Cells, cells_of
from bakeoff.stats.comparison import compare
from bakeoff.stats.intervals import Interval, score_interval


class JudgeModel(NamedTuple):
    """A judge that passes this share of good answers and of bad ones; `graded` scores lie on five levels."""

    good: float
    bad: float
    graded: bool = False

    def __str__(self) -> str:
        kind = "graded, means" if self.graded else "passes"
        return f"{kind} {self.good:g} and {self.bad:g}"

    def score(self, random: Random, good: bool) -> float:
        middle = self.good if good else self.bad
        if self.graded:
            return min(1.0, max(0.0, round(4 * random.gauss(middle, 0.2)) / 4))
        return float(random.random() < middle)


class Judged(NamedTuple):
    """One setting: a subject with a true score, judged in every trial and labelled in some."""

    cases: int
    labels: int
    truth: float
    judge: JudgeModel
    rounds: int = 1


class Held(NamedTuple):
    """The share of draws in which an interval held the truth, and in which it was marked (`TOO_SMALL`)."""

    corrected: float
    naive: float
    marked: float


LENIENT = JudgeModel(0.95, 0.4)
FAIR = JudgeModel(0.9, 0.1)
HARSH = JudgeModel(0.7, 0.05)
GRADED = JudgeModel(0.75, 0.55, graded=True)
PROMISED = [
    *(Judged(100, 60, truth, judge) for judge in (LENIENT, FAIR, HARSH, GRADED) for truth in (0.5, 0.7)),
    *(Judged(100, 30, 0.6, judge) for judge in (LENIENT, FAIR, GRADED)),
    Judged(400, 60, 0.7, LENIENT),
    Judged(400, 60, 0.7, GRADED),
    Judged(50, 40, 0.7, LENIENT, rounds=3),
    Judged(50, 40, 0.7, GRADED, rounds=3),
]
"""Settings in which 92 to 98 % are promised."""

EDGE = [Judged(100, labels, 0.95, judge) for labels in (20, 60) for judge in (LENIENT, FAIR, GRADED)]
"""Few bad answers: intervals are rather too wide."""

PAIRS = [
    (Judged(100, 30, 0.7, FAIR), Judged(100, 30, 0.7, LENIENT)),
    (Judged(100, 30, 0.7, FAIR), Judged(100, 30, 0.5, LENIENT)),
    (Judged(100, 60, 0.6, GRADED), Judged(100, 60, 0.6, JudgeModel(0.8, 0.7, graded=True))),
    (Judged(100, 60, 0.8, HARSH), Judged(100, 60, 0.6, LENIENT)),
]
"""Two subjects that the judge treats differently."""


def draw(setting: Judged, random: Random) -> list[JudgedTrial]:
    """Draw one run: answers, the judge's scores, and labels in equal numbers from each stratum."""
    answers: list[tuple[CaseKey, bool, float]] = []
    for number in range(setting.cases):
        # With rounds, three quarters of the variance lies between cases.
        chance = (
            setting.truth if setting.rounds == 1 else random.betavariate(setting.truth / 3, (1 - setting.truth) / 3)
        )
        for _ in range(setting.rounds):
            good = random.random() < chance
            answers.append((CaseKey(str(number)), good, setting.judge.score(random, good)))
    strata = Strata(score for _, _, score in answers)
    labelled = _sample([strata.of(score) for _, _, score in answers], setting.labels, random)
    return [
        JudgedTrial(case, score, strata.of(score), float(good) if place in labelled else None)
        for place, (case, good, score) in enumerate(answers)
    ]


def _sample(strata: list[int], wanted: int, random: Random) -> set[int]:
    """Take one trial of each stratum in turn."""
    order = list(range(len(strata)))
    random.shuffle(order)
    queues: dict[int, list[int]] = {}
    for place in order:
        queues.setdefault(strata[place], []).append(place)
    taken: set[int] = set()
    while len(taken) < wanted and any(queues.values()):
        for queue in queues.values():
            if queue and len(taken) < wanted:
                taken.add(queue.pop())
    return taken


def held(setting: Judged, draws: int, seed: int = 1) -> Held:
    """Return how often the corrected interval of a score holds the truth, and how often the judge's own does."""
    random, corrected, naive, marked = Random(seed), 0, 0, 0
    for _ in range(draws):
        trials = draw(setting, random)
        interval = corrected_score(trials).interval
        corrected += _holds(interval, setting.truth)
        naive += _holds(score_interval(list(_cells(trials).values())), setting.truth)
        marked += interval is not None and not interval.promised
    return Held(corrected / draws, naive / draws, marked / draws)


def held_by_difference(old: Judged, new: Judged, draws: int, seed: int = 1) -> Held:
    """Return the same for the difference of two subjects."""
    random, corrected, naive, marked = Random(seed), 0, 0, 0
    for _ in range(draws):
        before, after = draw(old, random), draw(new, random)
        interval = corrected_difference(before, after).interval
        corrected += _holds(interval, new.truth - old.truth)
        naive += _holds(compare(_cells(before), _cells(after)).interval, new.truth - old.truth)
        marked += interval is not None and not interval.promised
    return Held(corrected / draws, naive / draws, marked / draws)


def quality_held(setting: Judged, draws: int, seed: int = 1) -> tuple[float, float]:
    """Return how often the intervals of sensitivity and specificity hold the truth."""
    random, found = Random(seed), [0, 0]
    for _ in range(draws):
        groups = []
        trials = draw(setting, random)
        for passed in (False, True):
            mine = [trial for trial in trials if (trial.score > 0) == passed]
            labels = [trial.label for trial in mine if trial.label is not None]
            groups.append(LabelledGroup(passed=passed, trials=len(mine), labels=len(labels), label_passes=sum(labels)))
        quality = judge_quality(groups)
        for place, (estimate, truth) in enumerate(
            ((quality.sensitivity, setting.judge.good), (quality.specificity, 1 - setting.judge.bad))
        ):
            found[place] += estimate is not None and _holds(estimate.interval, truth)
    return found[0] / draws, found[1] / draws


def _cells(trials: list[JudgedTrial]) -> Cells:
    rounds: dict[CaseKey, list[float]] = {}
    for trial in trials:
        rounds.setdefault(trial.case, []).append(trial.score)
    return cells_of(rounds)


def _holds(interval: Interval | None, truth: float) -> bool:
    return interval is not None and interval.low <= truth <= interval.high
