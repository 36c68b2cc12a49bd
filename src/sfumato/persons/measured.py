"""What is measured of each person, which limit of the source bounds it, and how it is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from sfumato.answers.counts import Counted
from sfumato.domain.domain import Domain
from sfumato.domain.lattice import Lattice
from sfumato.errors import printable
from sfumato.histogram import Histogram
from sfumato.histogram.bins import Bins, Width

Of: TypeAlias = Literal["rows", "cells", "norm", "largest-cell"]
"""What is measured of each person."""
LimitName: TypeAlias = Literal[
    "rows_per_person", "cells_per_person", "norm_per_person", "rows_per_cell"
]
"""A limit of ``sf.source``."""


class Spread(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is measured of each person's rows in the cells of a table.

    Attributes
    ----------
    of : {"cells", "norm", "largest-cell"}
        The number of cells with a row of the person, the L2 norm of the person's counts in the
        cells, or the largest of these counts.
    axes : tuple of str
        Those of the table.
    most : int or None
        The largest value that is told apart: persons with more are counted as those with this one.
    bins, width : number, list, dict, or None
        The bins of the table's Interval axes, as in ``sf.Histogram``.
    """

    of: Literal["cells", "norm", "largest-cell"]
    axes: tuple[str, ...]
    most: int | None = None
    bins: Bins = None
    width: Width = None

    def cells(self, domain: Domain) -> Lattice:
        """The cells of the table."""
        return cells_of(self.axes, self.bins, self.width, domain)


@dataclass(frozen=True)
class Measured:
    """One of the numbers that persons are counted by, in words.

    In the texts, {who} stands for what the source calls a person, and {limit} for a limit.

    Attributes
    ----------
    counted : Counted
        What a scan counts persons by.
    limit : str
        The limit of ``sf.source`` that bounds it.
    of_each : str
        A title, such as "Rows of each {who}".
    noun : str
        Several of it, such as "rows".
    by : str
        What a person is counted by, such as "its number of rows".
    limited : str
        The limit as a sentence without its end.
    beyond : str
        What is said of those beyond the limit, such as "have more".
    more : str
        What they have, such as "more rows".
    kept_of : str
        What a share that a limit keeps is a share of; empty where no such share follows.
    axis : str
        What pictures write below limits.
    """

    counted: Counted
    limit: LimitName
    of_each: str
    noun: str
    by: str
    limited: str
    beyond: str
    more: str
    kept_of: str
    axis: str


MEASURED: Mapping[Of, Measured] = {
    "rows": Measured(
        "rows of each person",
        "rows_per_person",
        "Rows of each {who}",
        "rows",
        "its number of rows",
        "at most {limit:,} rows of each {who} are counted",
        "have more",
        "more rows",
        "the rows",
        "limit on rows per person",
    ),
    "cells": Measured(
        "cells of each person",
        "cells_per_person",
        "Cells of each {who}",
        "cells",
        "the number of cells in which it has rows",
        "each {who} is counted in at most {limit:,} cells",
        "are in more",
        "more cells",
        "the pairs of a {who} and a cell",
        "limit on cells per person",
    ),
    "norm": Measured(
        "norm of each person",
        "norm_per_person",
        "Norm of each {who}",
        "the L2 norm",
        "the L2 norm of its counts in the cells, rounded up",
        "the counts of each {who} have an L2 norm of at most {limit:,}",
        "have a larger norm",
        "a larger norm",
        "",
        "limit on the norm of a person's counts",
    ),
    "largest-cell": Measured(
        "largest cell of each person",
        "rows_per_cell",
        "Largest cell of each {who}",
        "rows in a cell",
        "its number of rows in the cell that has most of them",
        "at most {limit:,} rows of each {who} are counted in a cell",
        "have more in some cell",
        "more rows in a cell",
        "",
        "limit on rows of a person in a cell",
    ),
}


def title_of(measured: Measured, who: str, axes: tuple[str, ...]) -> str:
    """The title of a question or an answer about persons.

    >>> title_of(MEASURED["cells"], "rider", ("hour", "stop"))
    'Cells of each rider by hour x stop'
    """
    title = measured.of_each.format(who=who)
    return f"{title} by {' x '.join(map(printable, axes))}" if axes else title


def largest_measured(of: Of, most_rows: int | None, cells: Lattice | None) -> int | None:
    """The largest value that is possible, from public numbers; None where nothing bounds it.

    Nobody is in more cells than there are, or than they have rows. A norm or a largest count is at
    most the number of rows.
    """
    if of != "cells" or cells is None or cells.keyed:
        return most_rows
    return cells.size if most_rows is None else min(cells.size, most_rows)


def cells_of(axes: str | Sequence[str], bins: Bins, width: Width, domain: Domain) -> Lattice:
    """The cells of a table: those of a histogram.

    Raises
    ------
    UsageError
        As ``sf.Histogram``.
    """
    return Histogram(axes, bins=bins, width=width).needs(domain).lattice
