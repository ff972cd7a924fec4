"""The Bayesian bootstrap of a bounded mean: the interval for few or skewed scores.

Rubin, Annals of Statistics 9 (1981): the weights of the cases are drawn from a flat Dirichlet distribution, and the
interval holds the middle of the means that result. Part of a case is added at either end of the range, since few cases
rarely show how far scores can go. For passes and failures, with half a case, the result is the Jeffreys interval.
Nothing is drawn: such a mean lies above a point exactly if a weighted sum of exponential variables is positive, and a
saddlepoint approximation gives the chance of that (Barndorff-Nielsen, Scandinavian Journal of Statistics 17, 1990).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import copysign, log, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float64]]

_CLOSE = 1e-3  # to the middle, in standard deviations, where the approximation divides by nearly 0
_MAX_STEPS = 100
_ENOUGH = 1e-12  # the squared slope, in units of the curve, at which the saddlepoint is found


@dataclass(frozen=True, slots=True)
class BayesianBootstrap:
    """The distribution of a mean: the values that were seen, the ends of the range, and the weight of each."""

    places: "Floats"
    weights: "Floats"

    @classmethod
    def of(cls, values: "Sequence[float] | Floats", *, lowest: float, extra: float) -> "BayesianBootstrap":
        """Add `extra` of a case at `lowest` and at 1, the ends of the range, to the values."""
        import numpy as np

        places, counts = np.unique(np.asarray(values, dtype=float), return_counts=True)
        return cls(np.append(places, (lowest, 1.0)), np.append(counts.astype(float), (extra, extra)))

    def two_sided(self, point: float) -> float:
        """Return the p-value of a true mean: twice the chance that the mean lies on the rarer side of it."""
        from scipy.special import ndtr

        return 2 * float(ndtr(-abs(self._quantile(point)[0])))

    def bounds(self, confidence: float) -> tuple[float, float]:
        """Return the ends of the interval; each leaves half of the rest on its far side."""
        beyond = NormalDist().inv_cdf((1 + confidence) / 2)
        return self._point(-beyond, float(self.places.min())), self._point(beyond, float(self.places.max()))

    def _point(self, quantile: float, end: float) -> float:
        """Return the point whose normal quantile this is, between the middle and one end of the range."""
        from scipy.optimize import brentq

        tilt = 0.0

        def beyond(point: float) -> float:
            nonlocal tilt
            found, tilt = self._quantile(point, tilt)  # the last saddlepoint is close to the next
            return found - quantile

        near = float(self.places @ self.weights / self.weights.sum())
        side = copysign(1.0, quantile)
        if side * beyond(near) >= 0:
            return near
        far = (near + end) / 2
        while side * beyond(far) < 0:
            near, far = far, (far + end) / 2
        return float(brentq(beyond, near, far, xtol=1e-9))

    def _quantile(self, point: float, start: float = 0.0) -> tuple[float, float]:
        """Return the normal quantile of the chance that the mean lies below a point, and the saddlepoint."""
        import numpy as np

        apart = self.places - point
        tilt = self._saddlepoint(apart, start)
        root = copysign(sqrt(max(0.0, 2 * float(self.weights @ np.log1p(-tilt * apart)))), tilt)
        if abs(root) < _CLOSE:
            second, third = (float(self.weights @ apart**power) for power in (2, 3))
            return root + third / (3 * second * sqrt(second)), tilt
        scaled = tilt * sqrt(float(self.weights @ (apart / (1 - tilt * apart)) ** 2))
        return root + log(scaled / root) / root, tilt

    def _saddlepoint(self, apart: "Floats", start: float) -> float:
        """Return where the cumulant function of the sum is least: Newton's steps, or bisection where they leave."""
        low, high = 1 / float(apart.min()), 1 / float(apart.max())
        tilt = start if low < start < high else 0.0
        for _ in range(_MAX_STEPS):
            shrunk = apart / (1 - tilt * apart)
            slope, curve = float(self.weights @ shrunk), float(self.weights @ shrunk**2)
            if slope * slope <= _ENOUGH * curve:
                break
            low, high = (tilt, high) if slope < 0 else (low, tilt)
            step = tilt - slope / curve
            tilt = step if low < step < high else (low + high) / 2
        return tilt
