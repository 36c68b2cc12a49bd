"""Pictures of tables that add up: each as a histogram, or a table of shades, of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from matplotlib.axes import Axes

from sfumato.basics.numbers import Array, Exactly
from sfumato.charts import histograms, style
from sfumato.charts.scales import CONFIDENCE
from sfumato.domain import LabelAxis, Lattice
from sfumato.privacy import Guarantee

HEIGHT = 320
"""Of each of several panels, in pixels."""


class OneTable(Protocol):
    """What a picture needs to know of one table."""

    @property
    def cells(self) -> Lattice: ...
    @property
    def title(self) -> str: ...
    @property
    def values(self) -> Array: ...
    @property
    def guarantee(self) -> Guarantee: ...
    def accuracy(self, confidence: Exactly = CONFIDENCE, simultaneous: bool = False) -> Array: ...


@dataclass(frozen=True)
class _Counts:
    """A table as pictures of counts see it."""

    table: OneTable
    noise: None = None  # errors of cells depend on one another: sums have no simple law
    selection: None = None
    even: bool = False

    @property
    def lattice(self) -> Lattice:
        """The cells; a total is one cell."""
        lattice = self.table.cells
        return lattice if lattice.axes else Lattice((LabelAxis("rows", ("all rows",)),))

    @property
    def values(self) -> Array:
        return np.asarray(np.rint(self.table.values).astype(np.int64).reshape(self.lattice.shape))

    @property
    def guarantee(self) -> Guarantee:
        return self.table.guarantee

    def accuracy(self, confidence: Exactly = CONFIDENCE, simultaneous: bool = False) -> Array:
        half = self.table.accuracy(confidence, simultaneous)
        return np.asarray(np.ceil(half).astype(np.int64).reshape(self.lattice.shape))

    def interval(
        self, confidence: Exactly = CONFIDENCE, simultaneous: bool = False
    ) -> tuple[Array, Array]:
        half = self.accuracy(confidence, simultaneous)
        return self.values - half, self.values + half


def draw(table: OneTable, ax: Axes | None = None) -> Axes:
    """Draw one table of at most two axes: bars with error bars, or a table of shades.

    Parameters
    ----------
    table : TablesRelease of one table, or anything that is ``OneTable``
    ax : Axes or None
        None: on a new figure, ``ax.figure``.
    """
    return histograms.draw(_Counts(table), ax)


def draw_several(tables: Sequence[OneTable]) -> list[Axes]:
    """Draw several tables on a new figure, a panel each."""
    with style.house():
        fig, first = style.figure(len(tables) * HEIGHT)
        first.remove()
        panels = fig.subplots(
            len(tables), 1, squeeze=False, subplot_kw={"axes_class": style.Picture}
        )
        for one, panel in zip(tables, panels.flat, strict=True):
            draw(one, panel)
        return list(panels.flat)
