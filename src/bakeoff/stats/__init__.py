"""Compute intervals, comparisons and gates. The unit is the case, since rounds are not independent.

    cells         the rounds of a case as sums; their mean over cases and its variance
    intervals     confidence intervals of one score
    differences   intervals and tests of paired differences
    comparison    of two runs: case by case, or as two samples; Holm's correction; circumstances that must be alike
    gates         verdicts on comparisons, refusals
    ranking       leaderboards: ranks with ties, from every pairwise comparison
    within_cases  whether a candidate is worse on exactly these cases; rounds are replicates
    series        whether a series of runs got worse, tested after every run
    sequential    comparison after every case, to end a run once all its pairs are decided
    calibration   scores of a judge, corrected by labels of people; its sensitivity, specificity and kappa
    power         sources of noise, and the differences that a run of this size can find
    rounds        pass@k, pass^k, and how often one subject contradicts itself

scipy and numpy are imported on first use. docs/explanation/statistics.md and judges.md describe the
simulations and their results.
"""
