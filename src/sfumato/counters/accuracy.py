"""How far the totals of a stream may lie from the truth: each by itself, and all at once."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from sfumato.basics.numbers import Array, decimal
from sfumato.counters.bands import band
from sfumato.counters.methods import AnyMechanism
from sfumato.counters.tree import ElderTree

BLOCK = 512
"""How many steps are computed at a time: an array this long costs about as much as a number."""


class TotalError(NamedTuple):
    """The error of one total, in the counter's own unit.

    Attributes
    ----------
    half_width : float
        Of the total's own interval.
    band_half_width : float
        Of the interval that holds together with those of all other steps and categories.
    deviation : float
        Standard deviation.
    law : str
        The error distribution in words.
    """

    half_width: float
    band_half_width: float
    deviation: float
    law: str


def half_widths(
    mechanism: AnyMechanism, first: int, last: int, alpha: float, simultaneous: bool
) -> Array:
    """Return the half-widths after steps ``first`` to ``last``, in units of the resolution.

    Parameters
    ----------
    mechanism : ElderTree, ToeplitzCounter, BufferCounter or Segments
    first, last : int
        From 1 on; both are included.
    alpha : float
        The probability with which an interval may miss the truth.
    simultaneous : bool
        The intervals of all steps of the horizon and of all categories hold together.

    Returns
    -------
    float64 ndarray of shape (last - first + 1,)
    """
    if not simultaneous:
        return mechanism.half_widths(first, last, alpha)
    if isinstance(mechanism, ElderTree):
        return band(mechanism, first, last, alpha)
    # The union bound holds although the errors of neighbouring steps are correlated.
    if mechanism.horizon is not None:
        return mechanism.half_widths(first, last, alpha / (mechanism.horizon * mechanism.cells))
    # Without a horizon, step t gets the share 1 / (t (t + 1)); these add up to 1 over all time.
    steps = np.arange(first, last + 1, dtype=float)
    return mechanism.half_widths(first, last, alpha / (steps * (steps + 1) * mechanism.cells))


class Errors:
    """The error of each total of a stream, in the counter's own unit.

    Parameters
    ----------
    mechanism : ElderTree, ToeplitzCounter, BufferCounter or Segments
    resolution : Fraction
        The unit in which the mechanism counts.
    alpha : float
        The probability with which an interval may miss the truth.
    """

    def __init__(self, mechanism: AnyMechanism, resolution: Fraction, alpha: float) -> None:
        self._mechanism = mechanism
        self._resolution = resolution
        self._alpha = alpha
        # One attribute holds both, so that another thread or an interrupt never sees them apart.
        self._cached: tuple[int, list[TotalError]] = (-BLOCK, [])

    def at(self, step: int) -> TotalError:
        """Return the error of the total after one step."""
        start, block = self._cached
        if not start <= step < start + BLOCK:
            start = step - (step - 1) % BLOCK
            block = self._computed(start)
            self._cached = (start, block)
        return block[step - start]

    def _computed(self, first: int) -> list[TotalError]:
        mechanism = self._mechanism
        last = first + BLOCK - 1
        if mechanism.horizon is not None:
            last = min(last, mechanism.horizon)
        own = half_widths(mechanism, first, last, self._alpha, simultaneous=False)
        band = half_widths(mechanism, first, last, self._alpha, simultaneous=True)
        deviations = np.sqrt(mechanism.variances(first, last)) * float(self._resolution)
        unit = "" if self._resolution == 1 else f", in units of {decimal(self._resolution)}"
        columns = zip(
            self._scaled(own),
            self._scaled(band),
            deviations.tolist(),
            mechanism.laws(first, last),
            strict=True,
        )
        return [
            TotalError(half_width, band_half_width, deviation, law + unit)
            for half_width, band_half_width, deviation, law in columns
        ]

    def _scaled(self, halves: Array) -> list[float]:
        """Convert to the counter's unit; whole numbers stay integers where the resolution is 1."""
        if self._resolution != 1:
            scaled: list[float] = (halves * float(self._resolution)).tolist()
            return scaled
        return [int(half) if half.is_integer() else half for half in halves.tolist()]
