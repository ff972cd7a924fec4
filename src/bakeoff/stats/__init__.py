"""Intervals, comparisons and gates. The unit is the case: its rounds are averaged first, as they are not independent.

    cells         the rounds of a case as sums; their mean over cases and its variance
    intervals     confidence intervals of one score
    differences   intervals of paired differences
    permutation   sign-flip test, McNemar's test
    comparison    of two runs: case by case, or as two samples; circumstances that must be alike
    gates         verdicts on comparisons, Holm's correction, refusals
    ranking       leaderboards: ranks with ties, from every pairwise comparison
    power         sources of noise, and what a run of this size can find
    rounds        pass@k, pass^k, and how often one subject contradicts itself

Each module is imported when something of it is first used, scipy and numpy when they are needed.
docs/explanation/statistics.md describes what was simulated, and the results.
"""

from typing import TYPE_CHECKING

from bakeoff._kernel.lazy_imports import lazy_imports

if TYPE_CHECKING:
    from bakeoff.stats.cells import CLUSTER_TAG, CaseKey, Cell, Cells, cells_of
    from bakeoff.stats.comparison import Alignment, Comparison, Mismatch, Stamp, align, compare, mismatches
    from bakeoff.stats.gates import GateVerdict, Losses, Ruling, exit_code_of, holm, judge, judge_all
    from bakeoff.stats.intervals import ALPHA, CONFIDENCE, Interval, score_interval
    from bakeoff.stats.power import Noise, VarianceSplit, detectable_between, difference_split, minimum_detectable
    from bakeoff.stats.ranking import Standing, leaderboard
    from bakeoff.stats.rounds import FlipRate, PassK, flip_rate, flip_rate_within, pass_at_k, pass_hat_k

_HOMES = {
    "bakeoff.stats.cells": ("CLUSTER_TAG", "CaseKey", "Cell", "Cells", "cells_of"),
    "bakeoff.stats.comparison": ("Alignment", "Comparison", "Mismatch", "Stamp", "align", "compare", "mismatches"),
    "bakeoff.stats.gates": ("GateVerdict", "Losses", "Ruling", "exit_code_of", "holm", "judge", "judge_all"),
    "bakeoff.stats.intervals": ("ALPHA", "CONFIDENCE", "Interval", "score_interval"),
    "bakeoff.stats.ranking": ("Standing", "leaderboard"),
    "bakeoff.stats.rounds": ("FlipRate", "PassK", "flip_rate", "flip_rate_within", "pass_at_k", "pass_hat_k"),
    "bakeoff.stats.power": ("Noise", "VarianceSplit", "detectable_between", "difference_split", "minimum_detectable"),
}

__all__ = [
    "ALPHA",
    "CLUSTER_TAG",
    "CONFIDENCE",
    "Alignment",
    "CaseKey",
    "Cell",
    "Cells",
    "Comparison",
    "FlipRate",
    "GateVerdict",
    "Interval",
    "Losses",
    "Mismatch",
    "Noise",
    "PassK",
    "Ruling",
    "Stamp",
    "Standing",
    "VarianceSplit",
    "align",
    "cells_of",
    "compare",
    "detectable_between",
    "difference_split",
    "exit_code_of",
    "flip_rate",
    "flip_rate_within",
    "holm",
    "judge",
    "judge_all",
    "leaderboard",
    "minimum_detectable",
    "mismatches",
    "pass_at_k",
    "pass_hat_k",
    "score_interval",
]

__getattr__, __dir__ = lazy_imports(__name__, _HOMES)
