"""The table of a release in other forms: rows of text, frames of other libraries, CSV.

``cell_columns`` gives cells and their edges as columns of a table.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sfumato.answers.captions import Captions
from sfumato.basics import Array, Column, Deferred, Kind, Table, array_of, cell, column_of, table_of
from sfumato.domain import BinsAndMissing, Lattice, LatticeAxis
from sfumato.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
else:
    pa = Deferred("pyarrow")

# What the columns of the edges of bins end with.
ENDS = ("_lower", "_upper")

# The columns of the cells in which the rows behind a quantile lie.
CELLS = ("cell_low", "cell_high")

# What a text begins with that some spreadsheet program would run as a formula.
FORMULA = tuple("=+-@\t\r\n＝＋－＠")  # the last four are the first four in full width
_NUMBER = r"[-−]?\d+(\.\d+)?(e[+-]?\d+)?"
_HARMLESS = re.compile(rf"{_NUMBER}( to {_NUMBER}| and (above|below))?")


def without_edges(table: pa.Table) -> pa.Table:
    """A table without the edges of bins, which their names say, and without those of cells."""
    ends = {f"{name}{end}" for name in table.column_names for end in ENDS} | {*CELLS}
    return table.drop_columns([name for name in table.column_names if name in ends])


def intervals_in_words(table: pa.Table, shares: Sequence[str]) -> pa.Table:
    """A table for narrow screens: "506 (483 to 529)" in place of three columns of numbers.

    Parameters
    ----------
    table : pyarrow.Table
        A column ``name`` is joined with ``name_low`` and ``name_high``, where there are such, and
        ``count`` with ``low`` and ``high``.
    shares : sequence of str
        The names of columns of shares: they are shown in percent, their intervals rounded outwards.
    """
    names = table.column_names
    ends_of = {name: (f"{name}_low", f"{name}_high") for name in names} | {"count": ("low", "high")}
    ends = {end for pair in ends_of.values() for end in pair}
    columns: dict[str, Column] = {}
    for name in (name for name in names if name not in ends):
        columns[name] = table[name]
        if ends_of[name][0] in names:
            of_name = (table[column].to_pylist() for column in (name, *ends_of[name]))
            in_words = _share_in_words if name in shares else _amount_in_words
            columns[name] = [in_words(*row) for row in zip(*of_name, strict=True)]
    return table_of(columns)


def _amount_in_words(value: float | None, low: float, high: float) -> str:
    if value is None:
        return ""
    return cell(value) if low == value == high else f"{cell(value)} ({cell(low)} to {cell(high)})"


def _share_in_words(value: float | None, low: float, high: float) -> str:
    if value is None:
        return ""
    if low == value == high:
        return f"{value:.0%}"
    # Rounded outwards, so that what is printed holds, too.
    return f"{value:.0%} ({math.floor(low * 100)} to {math.ceil(high * 100)}%)"


def first_rows(table: pa.Table, most: int, kind_of: Callable[[str], Kind]) -> Table:
    """The first rows of a table as text.

    Parameters
    ----------
    table : pyarrow.Table
    most : int
        How many rows at most.
    kind_of : callable
        What stands in the column of a name.
    """
    columns = [column[:most].to_pylist() for column in table.columns]
    names = table.column_names
    kinds = map(kind_of, names)
    shown = [
        [cell(value, kind) for value in column] for kind, column in zip(kinds, columns, strict=True)
    ]
    return Table(
        columns=tuple(name.replace("_", " ") for name in names),
        text=tuple(any(isinstance(value, str) for value in column) for column in columns),
        rows=tuple(zip(*shown, strict=True)),
        total=table.num_rows,
    )


def with_names(
    table: pa.Table, named: pa.Table, labels: Sequence[str], captions: Captions
) -> pa.Table:
    """A table with a column ``NAME_name`` behind each column of labels, and captions as metadata.

    Parameters
    ----------
    table : pyarrow.Table
        With the labels as they are.
    named : pyarrow.Table
        The same table with names for people, column by column.
    labels : sequence of str
        The columns of labels.
    captions : Captions
    """
    names = table.column_names
    for name in labels:
        column = named.column(names.index(name))
        if column.to_pylist() != table.column(name).to_pylist():
            table = table.add_column(table.column_names.index(name) + 1, f"{name}_name", column)
    units = captions.measured_in
    said = {
        "heading": captions.heading,
        "measured_in": units if isinstance(units, str) else json.dumps(units),
    }
    return table.replace_schema_metadata({name: text for name, text in said.items() if text})


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """The table as a pandas frame; labels become categories."""
    try:
        import pandas  # noqa: F401 (whether it is there)
    except ImportError:
        raise _missing("to_pandas()", "pandas") from None
    frame = table.to_pandas()
    for name, text in (table.schema.metadata or {}).items():
        frame.attrs[name.decode()] = text.decode()
    return frame


def to_polars(table: pa.Table) -> pl.DataFrame:
    """The table as a polars frame; labels become categories."""
    try:
        import polars
    except ImportError:
        raise _missing("to_polars()", "polars") from None
    frame = polars.from_arrow(table)
    assert isinstance(frame, polars.DataFrame)
    return frame


def to_csv(table: pa.Table) -> bytes:
    """The table as CSV in UTF-8, with a header.

    A text that a spreadsheet program would run as a formula gets an apostrophe before it.
    """
    from pyarrow import csv

    columns = {
        as_text(name): _written(column)
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    target = io.BytesIO()
    csv.write_csv(pa.table(columns), target, csv.WriteOptions(quoting_style="needed"))
    return target.getvalue()


def as_text(text: str) -> str:
    """A text that a spreadsheet program reads as a text and not as a formula.

    >>> as_text("=1+1"), as_text("-10 to 0"), as_text("shop")
    ("'=1+1", '-10 to 0', 'shop')
    """
    return f"'{text}" if text.startswith(FORMULA) and not _HARMLESS.fullmatch(text) else text


def _written(column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """A column as CSV holds it: labels as text or numbers, and no formula."""
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (types.is_string(column.type) or types.is_large_string(column.type)):
        return column
    texts = [None if text is None else as_text(text) for text in column.to_pylist()]
    return pa.array(texts, pa.string())


def _missing(request: str, package: str) -> UsageError:
    return UsageError(request, f"{package} is not installed", f"Run: pip install {package}")


def cell_columns(lattice: Lattice) -> dict[str, pa.Array | Array]:
    """The cells of a lattice as columns of a table, the last axis running fastest.

    An axis of labels is one column, ``name``. An axis of bins is three: ``name`` says which values
    are in the bin, such as "65 and above"; ``name_lower`` and ``name_upper`` are its edges, which
    the bins at the ends reach beyond; the cell of missing values has none.
    """
    columns: dict[str, pa.Array | Array] = {}
    places = np.unravel_index(np.arange(lattice.size), lattice.shape) if lattice.axes else ()
    for axis, index in zip(lattice.axes, places, strict=True):
        values = axis.cell_values()
        # No key may be shown: then the column is one of text all the same.
        names = column_of(values) if values else pa.array([], pa.string())
        columns[axis.name] = pa.DictionaryArray.from_arrays(array_of(index.astype(np.int32)), names)
        columns |= _edge_columns(axis, index)
    return columns


def _edge_columns(axis: LatticeAxis, index: Array) -> dict[str, pa.Array | Array]:
    """The edges of the cells named by their indices; null for the cell of missing values."""
    bins = axis.bins if isinstance(axis, BinsAndMissing) else axis
    if not bins.has_edges:
        return {}
    edges = bins.scale.array(bins.edges())
    lower = edges[:-1]
    upper = edges[1:]
    if bins is axis:
        return {f"{axis.name}_lower": lower[index], f"{axis.name}_upper": upper[index]}
    is_missing = index == bins.size
    # The cell of missing values has no edges: any index serves, since its entry is masked.
    at = np.where(is_missing, 0, index)
    return {
        f"{axis.name}_lower": column_of(lower[at], is_missing),
        f"{axis.name}_upper": column_of(upper[at], is_missing),
    }
