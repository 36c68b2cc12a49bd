"""Which data sets are possible, and what a guarantee lets anybody believe of one of them.

Lee and Clifton's bound is for one query with Laplace noise. This one is for any answer under a
guarantee, or for several together. The adversary knows ``records`` persons, and that ``size`` of
them are in the data.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec
import numpy as np

from sfumato.basics.numbers import Exactly, fraction
from sfumato.errors import UsageError
from sfumato.privacy.belief import group
from sfumato.privacy.measures import ZCDP, ApproxDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.risk.laws import Protection
from sfumato.risk.membership import loss
from sfumato.risk.universe import log_choose

# The most exchanges of records that are added up. Leaving out worlds further away errs on the safe
# side.
FARTHEST = 100_000


class Worlds(msgspec.Struct, frozen=True):
    """The worlds in which any ``size`` of ``records`` persons are in the data, all equally likely.

    Parameters
    ----------
    records, size : int
        1 <= size < records.
    steps : 1 or 2
        How many changes of one person exchange one person for another: 2 under add-remove, and 1
        under replace.

    >>> round(Worlds(4, 3).belief(PureDP("0.5"), 0), 4)
    0.4754
    """

    records: int
    size: int
    steps: Literal[1, 2] = 2

    def __post_init__(self) -> None:
        numbers = (self.records, self.size)
        whole = all(isinstance(each, int) and not isinstance(each, bool) for each in numbers)
        if not whole or not 1 <= self.size < self.records <= 10**15 or self.steps not in (1, 2):
            raise UsageError(
                "possible worlds",
                "they are given as records and size, whole numbers, with 1 <= size < records",
                "Write worlds=(1000, 999), or the Choice that sf.choose returned",
            )

    def under(self, unit: Unit) -> Worlds:
        """Return the same worlds with the steps of a unit of privacy."""
        return Worlds(self.records, self.size, 1 if unit.neighbours == "replace" else 2)

    @property
    def log_count(self) -> float:
        """ln of the number of worlds."""
        return log_choose(self.records, self.size)

    def belief(self, of: Protection, exceeded: float, sensitivity: Exactly = 1) -> float:
        """Return the largest belief in any one world after an answer under a guarantee or noise.

        Holds because: C(size, h) C(records - size, h) worlds differ in h exchanges, of ``steps``
        changes of a person each. Under pure epsilon each of them has at least e^(-h steps epsilon)
        of the likelihood of the best. Otherwise the worlds one exchange away are taken together as
        one alternative, in which hockey-stick and Renyi divergences are convex. Worlds further away
        are then left out, which errs on the safe side.
        """
        if isinstance(of, ApproxDP) and of.delta == 0:
            of = PureDP(of.epsilon)
        match of:
            case PureDP(epsilon=epsilon):
                against = self._log_against(float(epsilon) * self.steps)
            case ApproxDP() | ZCDP():
                against = self._log_nearest - loss(group(of, self.steps), exceeded)
            case _:
                apart = fraction(sensitivity, "sensitivity") * self.steps
                against = self._log_nearest - loss(of, exceeded, apart)
        return math.exp(-float(np.logaddexp(0.0, against)))

    @property
    def _log_nearest(self) -> float:
        return math.log(self.size) + math.log(self.records - self.size)

    def _log_against(self, per_exchange: float) -> float:
        """Return ln of the sum of all other worlds' likelihoods, relative to the best."""
        farthest = min(self.size, self.records - self.size, FARTHEST)
        h = np.arange(1.0, farthest + 1)
        removed = np.log(self.size - h + 1)
        added = np.log(self.records - self.size - h + 1)
        # C(size, h) C(records - size, h) from its ratio to the one before
        log_counts = np.cumsum(removed + added - 2 * np.log(h))
        return float(np.logaddexp.reduce(log_counts - h * per_exchange))
