"""Columns of numbers of a file, whole and in memory: the universe from which an epsilon is chosen. Nothing here is released."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import pyarrow.types as pt

from sfumato.data.columns import misfit, numbers, plain_type
from sfumato.data.csvfile import CsvFile
from sfumato.data.fields import Losses
from sfumato.data.hive import Partitioned
from sfumato.data.tables import Table, open_table
from sfumato.domain import GridAxis, Interval, LabelAxis, grid_axis
from sfumato.errors import DataError, nearest


def read_numbers(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """Read columns of numbers: float64 ndarrays of shape (rows,) by name, NaN where a number is missing.

    Parameters
    ----------
    path : path
        A Parquet or CSV file, a directory or a pattern, as in ``source``.
    columns : sequence of str or None
        None: all columns that hold numbers.

    Raises
    ------
    DataError
        If the file cannot be read, or a column is missing or does not hold numbers.
    """
    table = open_table(path, (), None)
    chosen = _numeric(table) if columns is None else [_checked(table, name) for name in columns]
    axes = {name: _axis(name) for name in chosen}
    parts: dict[str, list[np.ndarray]] = {name: [] for name in chosen}
    for batch in table.batches(axes) if axes else ():
        for name, found in parts.items():
            found.append(numbers(batch.column(batch.schema.get_field_index(name)), None))
    return {name: np.concatenate([np.zeros(0), *found]) for name, found in parts.items()}


def other_columns(path: str | os.PathLike[str], chosen: Sequence[str]) -> list[str]:
    """The names of the columns that were not read."""
    return [name for name in open_table(path, (), None).parts()[0].names() if name not in chosen]


def _axis(name: str) -> GridAxis:
    """Any axis of numbers: it tells the readers of text what to read."""
    return grid_axis(name, Interval(0, 1), 2)


def _numeric(table: Table) -> list[str]:
    return [name for name in table.parts()[0].names() if all(_holds_numbers(part, name) for part in table.parts())]


def _holds_numbers(part: object, name: str) -> bool:
    if isinstance(part, CsvFile) or (isinstance(part, Partitioned) and not part.has_schema):
        return _parses(part, name)
    type_ = plain_type(part.schema({name: _axis(name)}).field(name).type)  # type: ignore[attr-defined]
    return not pt.is_boolean(type_) and not pt.is_null(type_) and misfit(_axis(name), type_) is None


def _parses(part: CsvFile | Partitioned, name: str) -> bool:
    """Whether the fields of the first piece of a file of text are numbers: it declares no types. This looks at values."""
    losses = Losses()
    labels = LabelAxis(name, ("true", "false", "True", "False", "TRUE", "FALSE"))
    batch = next(part.batches({name: _axis(name)}, losses), None)
    texts = next(part.batches({name: labels}), None)
    if batch is None or texts is None:
        return True
    return not losses.unparsed[name] and not (labels.lookup(texts[name].unique().to_pylist()) >= 0).any()


def _checked(table: Table, name: str) -> str:
    for part in table.parts():
        names = part.names()
        if names.count(name) != 1:
            raise DataError(f"{part.name}, column {name!r}", f"there is no one column of that name; {nearest(name, names)}", "Name another")
        if not _holds_numbers(part, name):
            raise DataError(f"{part.name}, column {name!r}", "it does not hold numbers", "Name columns of numbers")
    return name
