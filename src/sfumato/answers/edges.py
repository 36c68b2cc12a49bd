"""Cells and their edges as columns of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sfumato.arrays import Array
from sfumato.lattice import Lattice

if TYPE_CHECKING:
    import pyarrow as pa


def cell_columns(lattice: Lattice) -> dict[str, pa.Array | Array]:
    """The cells of a lattice as columns of a table, the last axis running fastest.

    An axis of labels is one column, ``name``. An axis of bins is three: ``name`` says which values
    are in the bin, such as "65 and above"; ``name_lower`` and ``name_upper`` are its edges, which
    the bins at the ends reach beyond.
    """
    import pyarrow as pa

    columns: dict[str, pa.Array | Array] = {}
    places = np.unravel_index(np.arange(lattice.size), lattice.shape) if lattice.axes else ()
    for axis, index in zip(lattice.axes, places, strict=True):
        values = axis.cell_values()
        # No key may be shown: then the column is one of text all the same.
        names = pa.array(values, None if values else pa.string())
        columns[axis.name] = pa.DictionaryArray.from_arrays(pa.array(index.astype(np.int32)), names)
        if axis.has_edges:
            edges = axis.scale.array(axis.edges())
            columns[f"{axis.name}_lower"] = edges[index]
            columns[f"{axis.name}_upper"] = edges[index + 1]
    return columns
