"""How sure we are. The unit is the case: its rounds are averaged first, never counted as if they were independent.

    cells         a case's rounds as sums            moments       their mean over cases, and its variance
    intervals     of one score                       passk         pass@k, pass^k
    comparison    of two runs, case by case          unpaired      of two runs without a common case
    differences   intervals of paired differences    permutation   sign flips, McNemar
    gates         verdicts, Holm, refusals           groups        leaderboards with ties
    boards        every two of many subjects         variance      between cases and between rounds
    power         what a run of this size can find   flips         how often one subject contradicts itself
    stamp         what must be alike to compare

Each module is imported when something of it is first used, scipy and numpy when they are needed. What was simulated,
and how it came out: docs/statistics.md.
"""

from typing import TYPE_CHECKING

from bakeoff._kernel.lazy_imports import lazy_imports

if TYPE_CHECKING:
    from bakeoff.stats.cells import CLUSTER_TAG, CaseKey, Cell, Cells, cells_of
    from bakeoff.stats.comparison import Alignment, Comparison, align, compare
    from bakeoff.stats.flips import FlipRate, flip_rate, flip_rate_within
    from bakeoff.stats.gates import GateVerdict, Losses, Ruling, exit_code_of, holm, judge, judge_all, refusal_of
    from bakeoff.stats.groups import Standing, leaderboard, leaderboard_of_intervals
    from bakeoff.stats.intervals import Interval, score_interval
    from bakeoff.stats.passk import PassK, pass_at_k, pass_hat_k
    from bakeoff.stats.power import Noise, detectable_between, minimum_detectable, power_of
    from bakeoff.stats.quantiles import ALPHA, CONFIDENCE
    from bakeoff.stats.stamp import Mismatch, Stamp, mismatches
    from bakeoff.stats.variance import VarianceSplit, difference_split, variance_split

_HOMES = {
    "bakeoff.stats.cells": ("CLUSTER_TAG", "CaseKey", "Cell", "Cells", "cells_of"),
    "bakeoff.stats.comparison": ("Alignment", "Comparison", "align", "compare"),
    "bakeoff.stats.flips": ("FlipRate", "flip_rate", "flip_rate_within"),
    "bakeoff.stats.gates": (
        "GateVerdict",
        "Losses",
        "Ruling",
        "exit_code_of",
        "holm",
        "judge",
        "judge_all",
        "refusal_of",
    ),
    "bakeoff.stats.groups": ("Standing", "leaderboard", "leaderboard_of_intervals"),
    "bakeoff.stats.intervals": ("Interval", "score_interval"),
    "bakeoff.stats.passk": ("PassK", "pass_at_k", "pass_hat_k"),
    "bakeoff.stats.power": ("Noise", "detectable_between", "minimum_detectable", "power_of"),
    "bakeoff.stats.quantiles": ("ALPHA", "CONFIDENCE"),
    "bakeoff.stats.stamp": ("Mismatch", "Stamp", "mismatches"),
    "bakeoff.stats.variance": ("VarianceSplit", "difference_split", "variance_split"),
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
    "leaderboard_of_intervals",
    "minimum_detectable",
    "mismatches",
    "pass_at_k",
    "pass_hat_k",
    "power_of",
    "refusal_of",
    "score_interval",
    "variance_split",
]

__getattr__, __dir__ = lazy_imports(__name__, _HOMES)
