"""An axis of equally spaced points, for values that are added up: each counts as the nearest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato.domain.lattice import DROPPED, GridAxis

if TYPE_CHECKING:
    from sfumato.basics.numbers import Array


class NearestAxis(
    GridAxis, frozen=True, tag="nearest", omit_defaults=True, forbid_unknown_fields=True
):
    """Equally spaced points from one bound to the other, both included; ``cells`` of them.

    A value belongs to the nearest point, so the first and the last cell are half as wide as the
    others.

    >>> import numpy as np
    >>> NearestAxis("x", 0, 3, 4).locate(np.array([-1, 0.4, 0.6, 1.5, 9])).tolist()
    [0, 0, 1, 2, 3]
    """

    def edges(self) -> Array:
        """The middles between points, and the two bounds: float64 ndarray of shape (cells + 1,)."""
        import numpy as np

        points = self.points(range(self.cells))
        middles = points[:-1] + (points[1:] - points[:-1]) / 2
        return np.concatenate([points[:1], middles, points[-1:]])

    def points(self, index: Sequence[int] | Array) -> Array:
        """Where the points lie: float64 ndarray like ``index``; the two ends are exact."""
        import numpy as np

        index = np.asarray(index)
        last = max(self.cells - 1, 1)
        at = self.lower + index * (self.upper - self.lower) / last
        return np.asarray(np.where(index == last, self.upper, at))

    def locate(self, values: Array) -> Array:
        """Send float64 values to the nearest points, int64; NaN is dropped, or is ``missing``.

        floor((x - lower) * (cells - 1) / (upper - lower) + 1/2), clamped, in IEEE doubles without
        fused multiply-add. Each operation is monotone, so the cells are in the order of the values.
        """
        import numpy as np

        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.multiply(values - self.lower if self.lower else values, self.cells - 1)
            if self.upper - self.lower != 1:
                scaled /= self.upper - self.lower
            scaled += 0.5
            np.clip(scaled, 0, self.cells - 1, out=scaled)  # truncation is floor from here on
            points = scaled.astype(np.int64)
        # The largest is NaN if any of them is.
        if scaled.size and np.isnan(scaled.max()):
            points[np.isnan(values)] = self._point_of_missing()
        return points

    def _point_of_missing(self) -> int:
        import numpy as np

        if self.missing is None:
            return DROPPED
        return int(self.locate(np.array([float(self.missing)]))[0])
