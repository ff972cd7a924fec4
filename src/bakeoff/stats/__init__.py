"""Intervals, comparisons and gates. The unit is the case: its rounds are averaged first, as they are not independent.

    cells         the rounds of a case as sums; their mean over cases and its variance
    intervals     confidence intervals of one score
    bootstrap     Bayesian bootstrap, for few or skewed scores
    differences   intervals of paired differences
    permutation   sign-flip test, McNemar's test
    comparison    of two runs: case by case, or as two samples; circumstances that must be alike
    several       Holm's correction of p-values and intervals alike
    gates         verdicts on comparisons, refusals
    ranking       leaderboards: ranks with ties, from every pairwise comparison
    sequential    comparison after every case, with intervals that hold however often one looks
    decisions     which pairs of a run that ends when it is decided are decided
    calibration   scores of a judge, corrected by labels of people
    agreement     sensitivity, specificity and kappa of a judge; agreement of labellers
    power         sources of noise, and what a run of this size can find
    design        what so many cases and rounds can show, before a run
    rounds        pass@k, pass^k, and how often one subject contradicts itself

scipy and numpy are imported when they are needed.
docs/explanation/statistics.md and judges.md describe what was simulated, and the results.
"""
