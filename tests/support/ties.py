"""Quantiles of tied rows, by enumeration.

Rows are dealt one by one, and weights are summed over all edges of sub-cells.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sfumato.mechanisms.selection import joint_sensitivity, rank_sensitivity
from sfumato.privacy.unit import Unit
from support import selections


def dealt(cells: tuple[int, ...], order: list[int]) -> tuple[int, ...]:
    """Counts of sub-cells: the k-th row of a cell goes to sub-cell order[k mod T]."""
    fine = np.zeros((len(cells), len(order)), int)
    for cell, rows in enumerate(cells):
        for k in range(rows):
            fine[cell, order[k % len(order)]] += 1
    return tuple(fine.reshape(-1).tolist())


def rounded(cells: tuple[int, ...], parts: int) -> tuple[int, ...]:
    """Broken: rows spread evenly and rounded, so that one row more moves others."""
    return tuple(
        n for rows in cells for n in np.diff(np.arange(parts + 1) * rows // parts).tolist()
    )


def joint(
    fine: tuple[int, ...], at: list[Fraction], epsilon: float, unit: Unit, chosen: np.ndarray
) -> np.ndarray:
    """ln P of tuples of edges of sub-cells."""
    return selections.joint(fine, at, epsilon, float(joint_sensitivity(at, unit)), chosen)


def halving(
    fine: tuple[int, ...],
    at: list[Fraction],
    epsilon: float,
    unit: Unit,
    chosen: np.ndarray,
    flips: bool,
) -> np.ndarray:
    """ln P of pairs of edges.

    The second quantile is chosen first, on all rows, then the first one among the rows below it.
    """
    first, second = at
    law = selections.flipped if flips else selections.single
    outer = law(
        fine, second, epsilon / 2, float(rank_sensitivity(second, unit)), range(len(fine) + 1)
    )
    inner = {}
    found = []
    for low, high in chosen.tolist():
        if high not in inner:
            rank = first / second
            inner[high] = law(
                fine[:high], rank, epsilon / 2, float(rank_sensitivity(rank, unit)), range(high + 1)
            )
        found.append(outer[high] + inner[high][low])
    return np.array(found)
