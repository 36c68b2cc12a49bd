"""Cells and their edges as columns of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.domain.lattice import BinsAndMissing, Lattice, LatticeAxis

if TYPE_CHECKING:
    import pyarrow as pa


def cell_columns(lattice: Lattice) -> dict[str, pa.Array | Array]:
    """The cells of a lattice as columns of a table, the last axis running fastest.

    An axis of labels is one column, ``name``. An axis of bins is three: ``name`` says which values
    are in the bin, such as "65 and above"; ``name_lower`` and ``name_upper`` are its edges, which
    the bins at the ends reach beyond; the cell of missing values has none.
    """
    import pyarrow as pa

    columns: dict[str, pa.Array | Array] = {}
    places = np.unravel_index(np.arange(lattice.size), lattice.shape) if lattice.axes else ()
    for axis, index in zip(lattice.axes, places, strict=True):
        values = axis.cell_values()
        # No key may be shown: then the column is one of text all the same.
        names = pa.array(values, None if values else pa.string())
        columns[axis.name] = pa.DictionaryArray.from_arrays(pa.array(index.astype(np.int32)), names)
        columns |= _edge_columns(axis, index)
    return columns


def _edge_columns(axis: LatticeAxis, index: Array) -> dict[str, pa.Array | Array]:
    """The edges of the cells named by their indices; null for the cell of missing values."""
    import pyarrow as pa

    bins = axis.bins if isinstance(axis, BinsAndMissing) else axis
    if not bins.has_edges:
        return {}
    edges = bins.scale.array(bins.edges())
    lower = edges[:-1]
    upper = edges[1:]
    if bins is axis:
        return {f"{axis.name}_lower": lower[index], f"{axis.name}_upper": upper[index]}
    is_missing = index == bins.size
    at = np.where(is_missing, 0, index)
    return {
        f"{axis.name}_lower": pa.array(lower[at], mask=is_missing),
        f"{axis.name}_upper": pa.array(upper[at], mask=is_missing),
    }
