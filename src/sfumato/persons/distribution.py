"""How many persons have more than so many rows, estimated: what limits and shares follow from."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.histogram.tail import numbers_beyond
from sfumato.mechanisms.noise import Law

EVERY_LIMIT = 5000  # up to this number of rows every limit is tried
N_LIMITS = 3000  # that are tried where there are more
# Of the persons: the far end is continued from those that have most. A larger share would follow
# the bulk of them, which says little about a sharp end. Measured on flights, Pareto and lognormal
# rows, and norms: .15 led to the smallest errors among .08, .15, .3 and .6.
TAIL_SHARE = 0.15


@dataclass(frozen=True)
class Distribution:
    """An estimate of the numbers of rows of all persons.

    Attributes
    ----------
    limits : int64 ndarray of shape (limits,)
        Limits of rows per person: 1, 2, .., or some of them where there are many, up to the
        largest number of rows.
    lost : float64 ndarray of shape (limits,)
        How many rows each limit leaves out.
    rows : float
        How many rows there are.
    """

    limits: Array
    lost: Array
    rows: float

    def kept(self, limit: int) -> float:
        """The share of rows that a limit keeps; 1 if there are none."""
        if self.rows <= 0:
            return 1.0
        return float(1 - np.interp(limit, self.limits, self.lost) / self.rows)


def estimated(counts: Array, lowest: Array, highest: Array, law: Law) -> Distribution:
    """Estimate how many rows every limit leaves out, from noisy numbers of persons in each bin.

    A limit of r leaves out as many rows as there are pairs of a person and a number of rows from r
    on that this person exceeds. So they are a sum, over numbers of rows, of how many persons have
    more. Between the ends of bins, its logarithm is taken to be linear in that of the rows.
    """
    before = lowest.astype(float) - 1
    # Half a bin of single numbers lies on each side of a whole number.
    start = np.log(before + 0.5)
    stop = np.log(highest + 0.5)
    beyond = numbers_beyond(
        counts.astype(float),
        (start + stop) / 2,
        stop - start,
        math.sqrt(law.variance),
        TAIL_SHARE,
    )
    most_rows = int(highest[-1])
    limits = _limits(most_rows)
    numbers_of_rows = np.concatenate([[0], limits])
    logs = np.interp(
        np.log(np.maximum(numbers_of_rows, 0.5)),
        np.log(np.maximum(np.append(before, most_rows), 0.5)),
        np.log(np.maximum(np.append(beyond, 0), 1e-6)),
    )
    steps = np.diff(np.append(numbers_of_rows, most_rows))
    lost = np.cumsum((np.exp(logs) * steps)[::-1])[::-1]
    return Distribution(limits, lost[1:], float(lost[0]))


def _limits(most_rows: int) -> Array:
    if most_rows <= EVERY_LIMIT:
        return np.arange(1, most_rows + 1)
    return np.unique(np.rint(np.geomspace(1, most_rows, N_LIMITS)).astype(np.int64))
