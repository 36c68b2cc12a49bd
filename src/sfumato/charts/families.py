"""Pictures of tables that add up: each as a histogram, or a table of shades, of its own."""

from __future__ import annotations

import msgspec
import numpy as np
from matplotlib.axes import Axes

from sfumato.charts import histograms, style
from sfumato.charts.scales import CONFIDENCE, Table
from sfumato.domain import LabelAxis, Lattice
from sfumato.questions.tables.release import TablesRelease

# Of each of several panels, in pixels.
HEIGHT = 320


@style.of_release
def draw(release: TablesRelease, ax: Axes | None) -> Axes:
    """Draw tables of at most two axes, as bars with error bars or a table of shades.

    Of the family, each table has a panel of its own on a new figure. On Axes that are given, the
    first table is drawn.
    """
    people = release.for_people()
    shown = people.tables if people.shown is msgspec.UNSET else (people.shown,)
    tables = [people[names[:2]] for names in shown]
    if ax is not None or len(tables) == 1:
        return _panel(tables[0], ax)
    panels = style.panels(len(tables), None, HEIGHT)
    for table, panel in zip(tables, panels, strict=True):
        _panel(table, panel)
    return panels[0]


def _panel(table: TablesRelease, ax: Axes | None) -> Axes:
    """Draw one table. Errors of its cells depend on one another, so that sums have no law."""
    # A total is one cell.
    lattice = table.cells if table.cells.axes else Lattice((LabelAxis("rows", ("all rows",)),))
    values, half, half_all = (
        np.asarray(round_up(numbers).astype(np.int64).reshape(lattice.shape))
        for round_up, numbers in (
            # Truths are whole, so an interval rounded upwards holds around a rounded value.
            (np.rint, table.values),
            (np.ceil, table.accuracy(CONFIDENCE)),
            (np.ceil, table.accuracy(CONFIDENCE, True)),
        )
    )
    cells = Table(values, half, half_all, np.ones_like(values))
    return histograms.draw_counts(cells, lattice.axes, None, table.guarantee, ax)
