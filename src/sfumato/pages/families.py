"""Tables that add up as a page shows them: across their axes, with the sums on the edges.

Where whole numbers are there, they are shown, marked as rounded, and the estimates are folded below
them. A count that may be 0 is hatched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.answers.cross_tables import CrossTable, reading
from sfumato.answers.estimate import reach_text
from sfumato.answers.release import Release
from sfumato.basics.numbers import Array
from sfumato.basics.text import cell, plain
from sfumato.pages.tables import MOST_ROWS, Cell, Sheet, sheet

MOST_COLUMNS = 30
"""A table with more columns is listed, one row for each count."""

UPRIGHT = 12
"""How many columns fit on a page that stands upright."""

OPEN = 6
"""Of a table of three axes, how many tables of two of them are open."""


@dataclass(frozen=True)
class FamilyTable:
    """One table of a family.

    Attributes
    ----------
    title, reading : str
        What it counts, and how to read it.
    sheet : Sheet
        The numbers that are shown.
    estimates : Sheet or None
        The numbers before they were rounded; None: they are what is shown.
    cut : str
        What is left out of it; "" if it is whole.
    folded : bool
    """

    title: str
    reading: str
    sheet: Sheet
    estimates: Sheet | None = None
    cut: str = ""
    folded: bool = False

    @property
    def is_broad(self) -> bool:
        """Whether it is printed on a page that lies on its side."""
        return len(self.sheet.columns) > UPRIGHT


def family_tables(release: Release) -> tuple[FamilyTable, ...]:
    """The tables of a release that is named for people; none unless its counts add up."""
    found = []
    for axes, tables in release.cross_tables.items():
        if tables and len(tables[0].columns) <= MOST_COLUMNS:
            found += [
                _crossed(table, folded=len(tables) > OPEN and at > 0)
                for at, table in enumerate(tables)
            ]
        else:
            found.append(_listed(release, axes))
    return tuple(found)


def family_accuracy(release: Release) -> str | None:
    """How accurate all tables of a family are; None unless there are several."""
    if len(release.members) < 2:
        return None
    each = np.asarray(release.accuracy("0.95"), float)
    return (
        f"Of {release.about}, each {release.noun} before rounding is within {reach_text(each)} "
        f"{release.against} with 95% confidence; what holds for each table stands above it."
    )


def _crossed(table: CrossTable, *, folded: bool) -> FamilyTable:
    shown = table.estimates if table.rounded is None else table.rounded
    total = len(table.rows)
    return FamilyTable(
        title=plain(table.title, 200),
        reading=reading(table),
        sheet=_sheet(table, shown),
        estimates=None if table.rounded is None else _sheet(table, table.estimates),
        cut="" if total <= MOST_ROWS else f"The first rows of {total:,}, and the sums.",
        folded=folded,
    )


def _sheet(table: CrossTable, numbers: Array) -> Sheet:
    kept = _kept_rows(len(table.rows))
    is_even = table.widths is not None
    low = table.estimates - table.half_widths
    high = table.estimates + table.half_widths
    rows = []
    for at in kept:
        ranges = [
            "" if is_even else f"{_count(one)} to {_count(other)}"
            for one, other in zip(low[at], high[at], strict=True)
        ]
        fields = zip(numbers[at].tolist(), ranges, table.hatched[at].tolist(), strict=True)
        rows.append(
            (Cell(cell(table.rows[at], "label")), *(Cell(_count(n), r, h) for n, r, h in fields))
        )
    corner = f"{table.down} / {table.across}" if table.across else table.down
    return Sheet(
        columns=(corner, *(cell(name, "label") for name in table.columns)),
        text=(True, *(False for _ in table.columns)),
        rows=tuple(rows),
        total=len(table.rows),
        reading="",
        crossed=True,
        has_margins=table.has_column_sums,
        has_last_sums=table.has_row_sums,
    )


def _kept_rows(total: int) -> Sequence[int]:
    """The first rows, and the sums, which are the last one."""
    return range(total) if total <= MOST_ROWS else [*range(MOST_ROWS - 1), total - 1]


def _count(value: float) -> str:
    """A count: whole, or with one decimal."""
    if isinstance(value, int):
        return cell(value)
    return f"{value:,.1f}".replace("-", "−")


def _listed(release: Release, axes: Sequence[str]) -> FamilyTable:
    """A table that is too broad to be laid out: one row for each count."""
    name = " x ".join(axes)
    one = release.members.get(name, release)
    found = sheet(one)
    assert found is not None
    cut = "" if found.total <= MOST_ROWS else f"The first {MOST_ROWS} of {found.total:,} rows."
    title = plain(f"Number of rows by {' and '.join(axes)}", 200)
    return FamilyTable(title, found.reading, found, cut=cut)
