"""Which data sets are possible, and what a promise lets anybody believe of one of them, whatever is asked.

Lee and Clifton's bound is for one query with Laplace noise. This one is for any answer that keeps a promise, or several
together: the adversary knows ``records`` persons and that ``size`` of them are in the data.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec
import numpy as np

from sfumato.errors import UsageError
from sfumato.numbers import Exactly, fraction
from sfumato.privacy.belief import group
from sfumato.privacy.measures import ZCDP, ApproxDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.risk.laws import Protection
from sfumato.risk.membership import loss
from sfumato.risk.universe import log_choose

FARTHEST = 100_000  # exchanges of records that are added up; leaving out what lies beyond errs on the safe side


class Worlds(msgspec.Struct, frozen=True):
    """Any ``size`` of ``records`` persons may be those in the data, and each choice of them is as likely.

    Parameters
    ----------
    records, size : int
        1 <= size < records.
    steps : 1 or 2
        How many changes of one person exchange one person for another: 2 where persons are added or removed, 1 where they
        are replaced.

    >>> round(Worlds(4, 3).belief(PureDP("0.5"), 0), 4)
    0.4754
    """

    records: int
    size: int
    steps: Literal[1, 2] = 2

    def __post_init__(self) -> None:
        whole = all(
            isinstance(number, int) and not isinstance(number, bool)
            for number in (self.records, self.size)
        )
        if not whole or not 1 <= self.size < self.records <= 10**15 or self.steps not in (1, 2):
            raise UsageError(
                "possible worlds",
                "they are given as records and size, whole numbers, with 1 <= size < records",
                "Write worlds=(1000, 999), or the Choice that sf.choose returned",
            )

    def under(self, unit: Unit) -> Worlds:
        """The same worlds, as far apart as the unit of privacy has them."""
        return Worlds(self.records, self.size, 1 if unit.neighbours == "replace" else 2)

    @property
    def log_count(self) -> float:
        """ln of how many worlds there are."""
        return log_choose(self.records, self.size)

    def belief(self, of: Protection, exceeded: float, sensitivity: Exactly = 1) -> float:
        """The largest belief in any one world after an answer under a promise or noise.

        Holds because: C(size, h) C(records - size, h) worlds differ in h exchanges, h steps changes of a person each; under
        pure epsilon each of them keeps at least e^(-h steps epsilon) of the likelihood of the best. Otherwise the worlds one
        exchange away are taken together as one alternative (hockey-stick and Renyi divergences are convex in it), and those
        further away are left out, which errs on the safe side.
        """
        if isinstance(of, ApproxDP) and of.delta == 0:
            of = PureDP(of.epsilon)
        match of:
            case PureDP(epsilon=epsilon):
                against = self._log_against(float(epsilon) * self.steps)
            case ApproxDP() | ZCDP():
                against = self._log_nearest - loss(group(of, self.steps), exceeded)
            case _:
                against = self._log_nearest - loss(
                    of, exceeded, fraction(sensitivity, "sensitivity") * self.steps
                )
        return math.exp(-float(np.logaddexp(0.0, against)))

    @property
    def _log_nearest(self) -> float:
        return math.log(self.size) + math.log(self.records - self.size)

    def _log_against(self, per_exchange: float) -> float:
        """ln of the sum of all other worlds' likelihoods, relative to the best."""
        farthest = min(self.size, self.records - self.size, FARTHEST)
        h = np.arange(1.0, farthest + 1)
        counts = np.cumsum(
            np.log(self.size - h + 1) + np.log(self.records - self.size - h + 1) - 2 * np.log(h)
        )
        return float(np.logaddexp.reduce(counts - h * per_exchange))
