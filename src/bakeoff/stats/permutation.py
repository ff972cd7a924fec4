"""The sign-flip test: if two arms are alike, each case's difference could as well have had the other sign.

Fisher, The Design of Experiments (1935), §21; exact in level whatever the distribution. With clusters, whole clusters
flip. There are three ways to the same number: scores on a grid (rounds passed or failed) → the exact distribution by
convolution; few cases → every combination of signs; otherwise seeded draws, counted so that p is never too small
(Phipson and Smyth, Stat. Appl. Genet. Mol. Biol. 9, 2010). Draws cannot show a p below one in their number; there, p is
an upper bound of the exact one (Chernoff, Annals of Mathematical Statistics 23, 1952).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float64]]
    Integers = np.ndarray[Any, np.dtype[np.int64]]

DRAWS = 20_000
_EXACT = "exact sign-flip permutation"
_FEW = 16  # differences of which all 2^16 combinations are tried
_FINEST_GRID = 120  # steps between 0 and 1; holds halves to sixths, eighths, tenths, twelfths, …
_MAX_GRID_LENGTH = 20_000  # steps of all differences together; draws are faster beyond
_CHUNK = 4_000_000  # signs held in memory at a time
_SLACK = 1e-9  # sums that differ by rounding only count as equal
_LEAST = 1e-300  # the smallest p that is reported
_NEWTON_STEPS = 25  # towards the tightest bound; every step on the way is a bound too


@dataclass(frozen=True, slots=True)
class FlipTest:
    """The probability that chance alone gives a difference at least this large, and the method."""

    p_value: float
    method: str


def sign_flip_test(differences: Sequence[float], *, draws: int = DRAWS, seed: int = 0) -> FlipTest:
    """Test, two-sided, that differences are as likely negative as positive; give the sums of clusters if clustered."""
    import numpy as np

    moved = [difference for difference in differences if abs(difference) > _SLACK]
    chances, methods = _tails(np.array([moved], dtype=float), draws, seed)
    return FlipTest(float(chances[0]), methods[0])


def sign_flip_p_values(rows: "Floats", *, draws: int = DRAWS, seed: int = 0) -> "Floats":
    """Return the p-values of `sign_flip_test` for many rows at a time; all that must be drawn share the same draws."""
    return _tails(rows, draws, seed)[0]


def _tails(rows: "Floats", draws: int, seed: int) -> "tuple[Floats, list[str]]":
    """Return P(|sum| ≥ observed) for each row, and the method of each."""
    import numpy as np

    chances, methods = np.ones(len(rows)), [_EXACT] * len(rows)
    steps = _grids(rows)
    hard = []
    for place, row in enumerate(rows):
        moved = row[np.abs(row) > _SLACK]
        if abs(float(moved.sum())) <= _SLACK:
            continue
        if steps[place] and float(np.abs(moved).sum()) * steps[place] <= _MAX_GRID_LENGTH:
            chances[place] = _grid_tail(np.rint(moved * steps[place]).astype(np.int64))
        elif len(moved) <= _FEW:
            chances[place] = _enumerated_tail(moved)
        else:
            hard.append(place)
    if hard:
        chances[hard] = tail_bounds(rows[hard])
        drawn = [place for place in hard if chances[place] >= 1 / (draws + 1)]
        chances[drawn] = _drawn_tails(rows[drawn], draws, seed)
        for place in hard:
            how = f"{draws:,} draws, seed {seed}" if place in drawn else "upper bound"
            methods[place] = f"sign-flip permutation ({how})"
    return chances, methods


def tail_bounds(rows: "Floats") -> "Floats":
    """Return an upper bound of P(|sum| ≥ observed) for each row: 2·exp(Σ log cosh(t·d) − t·|Σd|), for the best t found.

    Newton's steps approach that t from below, since the derivative of the exponent is concave.
    """
    import numpy as np

    sizes = np.abs(rows) / np.maximum(np.abs(rows).max(axis=1, keepdims=True), _SLACK)
    reach = np.abs((np.sign(rows) * sizes).sum(axis=1)) * (1 - _SLACK)
    tilt = reach / np.maximum((sizes**2).sum(axis=1), _SLACK)
    for _ in range(_NEWTON_STEPS):
        bent = np.tanh(tilt[:, np.newaxis] * sizes)
        slope = (sizes**2 * (1 - bent**2)).sum(axis=1)
        tilt = tilt + np.where(slope > _SLACK, (reach - (sizes * bent).sum(axis=1)) / np.maximum(slope, _SLACK), 0.0)
    tilted = tilt[:, np.newaxis] * sizes
    exponent = (tilted + np.log1p(np.exp(-2 * tilted)) - np.log(2.0)).sum(axis=1) - tilt * reach
    bounds: Floats = np.clip(2 * np.exp(np.minimum(exponent, 0.0)), _LEAST, 1.0)
    return bounds


def mcnemar_exact(gained: int, lost: int) -> float:
    """Return p of McNemar's exact test (Psychometrika 12, 1947) that changed cases were as likely lost as gained."""
    from scipy.special import bdtr

    changed = gained + lost
    return min(1.0, float(2 * bdtr(min(gained, lost), changed, 0.5))) if changed else 1.0


def _grids(rows: "Floats") -> "Integers":
    """Return for each row the steps between 0 and 1 of the coarsest grid that holds it, or 0."""
    import numpy as np

    found = np.zeros(len(rows), dtype=np.int64)
    for steps in range(1, _FINEST_GRID + 1):
        # Most rows that do not fit show it in their first columns.
        open_rows = np.flatnonzero((found == 0) & _fit(rows[:, :4], steps))
        found[open_rows[_fit(rows[open_rows], steps)]] = steps
        if found.all():
            break
    return found


def _fit(rows: "Floats", steps: int) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    import numpy as np

    fits: np.ndarray[Any, np.dtype[np.bool_]] = np.all(
        np.abs(rows * steps - np.rint(rows * steps)) < _SLACK * steps, axis=1
    )
    return fits


def _grid_tail(steps: "Integers") -> float:
    """Convolve, for each size, the binomial distribution of how many differences of that size are positive."""
    import numpy as np

    chances = np.ones(1)  # of each sum, from −reach to reach in twos
    for size, count in zip(*np.unique(np.abs(steps), return_counts=True), strict=True):
        kernel = np.zeros(int(size) * int(count) + 1)
        kernel[:: int(size)] = _fair_coins(int(count))
        chances = np.convolve(chances, kernel)
    sums = 2 * np.arange(len(chances)) - int(np.abs(steps).sum())
    return max(_LEAST, min(1.0, float(chances[np.abs(sums) >= abs(int(steps.sum()))].sum())))


@lru_cache(maxsize=256)
def _fair_coins(count: int) -> "Floats":
    """Return the chances of 0, 1, … count heads; in logarithms, since neither C(5000, k) nor 2^5000 is a float."""
    import numpy as np
    from scipy.special import gammaln

    heads = np.arange(count + 1)
    logs = gammaln(count + 1) - gammaln(heads + 1) - gammaln(count - heads + 1) - count * np.log(2.0)
    chances: Floats = np.exp(logs)
    return chances


def _enumerated_tail(moved: "Floats") -> float:
    import numpy as np

    sums = np.zeros(1)
    for size in np.abs(moved):
        sums = np.concatenate((sums - size, sums + size))
    return float(np.mean(np.abs(sums) >= abs(moved.sum()) - _SLACK))


def _drawn_tails(rows: "Floats", draws: int, seed: int) -> "Floats":
    import numpy as np

    random = np.random.default_rng(seed)
    columns = np.ascontiguousarray(rows.T)
    least = np.abs(rows.sum(axis=1)) - _SLACK
    extreme = np.zeros(len(rows), dtype=np.int64)
    at_once = max(1, _CHUNK // max(rows.shape))
    for first in range(0, draws, at_once):
        size = (min(at_once, draws - first), rows.shape[1])
        signs = 2.0 * random.integers(0, 2, size=size, dtype=np.int8) - 1.0
        extreme += np.count_nonzero(np.abs(signs @ columns) >= least, axis=0)
    chances: Floats = (extreme + 1) / (draws + 1)
    return chances
