"""Which of the things that were expected are which of those that came: never greedily, so that no pair is lost."""

from collections.abc import Sequence

Table = Sequence[Sequence[bool]]
"""A row for each thing expected, a column for each that came: whether the two fit."""


def most_pairs(fits: Table) -> list[int | None]:
    """The column of each row, so that as many rows as possible have one of their own."""
    greedy = _first_free(fits)
    if None not in greedy or not any(map(any, fits)):
        return greedy  # nothing is better than all
    import numpy as np
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_bipartite_matching

    found = maximum_bipartite_matching(csr_matrix(np.array(fits, dtype=np.int8)), perm_type="column")
    return [int(column) if column >= 0 else None for column in found]


def _first_free(fits: Table) -> list[int | None]:
    taken: set[int] = set()
    pairs: list[int | None] = []
    for row in fits:
        free = next((column for column, fit in enumerate(row) if fit and column not in taken), None)
        pairs.append(free)
        if free is not None:
            taken.add(free)
    return pairs


def most_pairs_in_order(fits: Table) -> list[int | None]:
    """The same, where a later row must have a later column: the longest common subsequence."""
    columns = len(fits[0]) if fits else 0
    # best[i][j]: how many pairs rows from i on have with columns from j on
    best = [[0] * (columns + 1) for _ in range(len(fits) + 1)]
    for i in range(len(fits) - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            best[i][j] = 1 + best[i + 1][j + 1] if fits[i][j] else max(best[i + 1][j], best[i][j + 1])
    return _followed(fits, best)


def _followed(fits: Table, best: list[list[int]]) -> list[int | None]:
    pairs: list[int | None] = [None] * len(fits)
    i = j = 0
    while i < len(fits) and best[i][j]:
        if fits[i][j]:
            pairs[i] = j
            i, j = i + 1, j + 1
        elif best[i][j + 1] == best[i][j]:
            j += 1
        else:
            i += 1
    return pairs
