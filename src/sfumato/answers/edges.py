"""Edges of cells as text, and as arrays that a frame shows well."""

from __future__ import annotations

import numpy as np

from sfumato.arrays import Array


def edge_text(edges: Array, time: str | None) -> list[str]:
    """Print edges of cells shortly: numbers, dates or times."""
    if time is None:
        return [f"{edge:g}" for edge in edges]
    return [str(moment) for moment in np.asarray(edges).astype("int64").astype("datetime64[D]" if time == "day" else "datetime64[us]")]


def edge_array(edges: Array, time: str | None) -> Array:
    """Edges as an array that a frame shows well: float64, or datetime64 for dates and times."""
    if time is None:
        return edges
    return np.asarray(edges).astype("int64").astype("datetime64[D]" if time == "day" else "datetime64[us]")
