"""How far the totals of a stream may be off: one by one, and all together."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

import numpy as np

from sfumato.arrays import Array
from sfumato.counters.methods import AnyMachine
from sfumato.numbers import decimal

BLOCK = 512
"""Steps whose errors are worked out together: arrays of this length cost about as much as single numbers."""

Error: TypeAlias = tuple[float, float, float, str]
"""Half-width of a total's own interval, of the band for all steps, standard deviation, and the law in words."""


def half_widths(
    machine: AnyMachine, first: int, last: int, alpha: float, simultaneous: bool
) -> Array:
    """Half-widths in grains after steps ``first`` to ``last``: float64 ndarray.

    Simultaneous: over all steps of the horizon and all categories, by the union bound, since the errors of neighbouring steps are
    correlated; without a horizon step t gets the share 1 / (t (t + 1)), which adds up to 1 over all time.
    """
    if not simultaneous:
        return machine.half_widths(first, last, alpha)
    if machine.horizon is not None:
        return machine.half_widths(first, last, alpha / (machine.horizon * machine.cells))
    steps = np.arange(first, last + 1, dtype=float)
    return machine.half_widths(first, last, alpha / (steps * (steps + 1) * machine.cells))


class Errors:
    """The error of each total of a stream, for numbers in the counter's own unit.

    Parameters
    ----------
    machine : ElderTree, ToeplitzCounter, BufferCounter or Segments
    grain : Fraction
        In which the machine counts.
    alpha : float
        How often an interval may miss.
    """

    def __init__(self, machine: AnyMachine, grain: Fraction, alpha: float) -> None:
        self._machine, self._grain, self._alpha = machine, grain, alpha
        self._last: tuple[int, list[Error]] = (-BLOCK, [])

    def at(self, step: int) -> Error:
        """The error of the total after one step."""
        first, found = self._last
        if not first <= step < first + BLOCK:
            first = step - (step - 1) % BLOCK
            found = self._block(first)
            self._last = first, found
        return found[step - first]

    def _block(self, first: int) -> list[Error]:
        machine, grain = self._machine, float(self._grain)
        last = min(first + BLOCK - 1, machine.horizon or first + BLOCK - 1)
        each, every = (
            self._widths(half_widths(machine, first, last, self._alpha, together))
            for together in (False, True)
        )
        deviations = (np.sqrt(machine.variances(first, last)) * grain).tolist()
        unit = "" if grain == 1 else f", in units of {decimal(self._grain)}"
        laws = [law + unit for law in machine.laws(first, last)]
        return list(zip(each, every, deviations, laws, strict=True))

    def _widths(self, halves: Array) -> list[float]:
        """In the counter's unit; whole numbers stay whole where the grain is 1."""
        if self._grain != 1:
            scaled: list[float] = (halves * float(self._grain)).tolist()
            return scaled
        return [int(half) if half.is_integer() else half for half in halves.tolist()]
