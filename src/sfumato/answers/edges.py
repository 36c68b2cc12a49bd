"""Cells and their edges as text, and as columns of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sfumato.arrays import Array
from sfumato.domain import EdgesAxis, GridAxis, LabelAxis, Lattice, LatticeAxis, bin_names

if TYPE_CHECKING:
    import pyarrow as pa


def edge_text(edges: Array, time: str | None) -> list[str]:
    """Print edges of cells shortly: numbers, dates or times."""
    if time is None:
        return [f"{edge:g}" for edge in edges]
    return [
        str(moment)
        for moment in np.asarray(edges)
        .astype("int64")
        .astype("datetime64[D]" if time == "day" else "datetime64[us]")
    ]


def edge_array(edges: Array, time: str | None) -> Array:
    """Edges as an array that a frame shows well: float64, or datetime64 for dates and times."""
    if time is None:
        return edges
    return (
        np.asarray(edges)
        .astype("int64")
        .astype("datetime64[D]" if time == "day" else "datetime64[us]")
    )


def cell_names(axis: LatticeAxis) -> list[str]:
    """Name the cells along an axis: labels, or "a to b" for bins, those at the ends being open.

    An axis of keys has none until keys are selected.
    """
    match axis:
        case LabelAxis():
            return [str(label) for label in axis.labels]
        case GridAxis() | EdgesAxis():
            return bin_names(edge_text(axis.edges(), axis.time), axis.time)
    return []


def cell_columns(lattice: Lattice) -> dict[str, pa.Array | Array]:
    """The cells of a lattice as columns of a table, the last axis running fastest.

    An axis of labels is one column, ``name``. An axis of bins is three: ``name`` says which values are in the bin, such as
    "65 and above"; ``name_lower`` and ``name_upper`` are its edges, which the bins at the ends reach beyond.
    """
    import pyarrow as pa

    columns: dict[str, pa.Array | Array] = {}
    places = np.unravel_index(np.arange(lattice.size), lattice.shape) if lattice.axes else ()
    for axis, index in zip(lattice.axes, places, strict=True):
        names = _labels(axis) if isinstance(axis, LabelAxis) else pa.array(cell_names(axis))
        columns[axis.name] = pa.DictionaryArray.from_arrays(pa.array(index.astype(np.int32)), names)
        if isinstance(axis, GridAxis | EdgesAxis):
            edges = edge_array(axis.edges(), axis.time)
            columns[f"{axis.name}_lower"] = edges[index]
            columns[f"{axis.name}_upper"] = edges[index + 1]
    return columns


def _labels(axis: LabelAxis) -> pa.Array:
    """Labels as they are where all are of one type, else as text."""
    import pyarrow as pa

    if len({type(label) for label in axis.labels}) == 1:
        return pa.array(list(axis.labels))
    return pa.array([str(label) for label in axis.labels], pa.string())
