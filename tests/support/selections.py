"""Selections as the papers state them, by enumeration.

Production is compared with these laws, and broken ones must be caught.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from typing import TypeAlias

import numpy as np

from sfumato.privacy.unit import Unit

Cells: TypeAlias = tuple[int, ...]
LawOf: TypeAlias = Callable[[Cells], np.ndarray]
"""From counts to ln P of every outcome, in one order for all counts."""


def tuples(edges: range, m: int, distinct: bool = False) -> np.ndarray:
    """All tuples of m edges in order: int64 ndarray of shape (k, m)."""
    pick = combinations if distinct else combinations_with_replacement
    return np.array(list(pick(edges, m)), dtype=np.int64).reshape(-1, m)


def utilities(cells: Cells, at: list[Fraction], chosen: np.ndarray) -> np.ndarray:
    """-sum |n(o_j) - n(o_(j-1)) - n (q_j - q_(j-1))| for each tuple.

    It is a float64 ndarray of shape (k,).
    """
    below = np.concatenate([[0], np.cumsum(cells)])
    n = below[-1]
    ranks = np.concatenate(
        [np.zeros((len(chosen), 1)), below[chosen], np.full((len(chosen), 1), n)], axis=1
    )
    ends = np.array([0.0, *map(float, at), 1.0])
    return -np.abs(np.diff(ranks, axis=1) - n * np.diff(ends)).sum(axis=1)


def normalised(weights: np.ndarray) -> np.ndarray:
    """Logarithms of weights, made probabilities."""
    return weights - weights.max() - np.log(np.exp(weights - weights.max()).sum())


def joint(
    cells: Cells, at: list[Fraction], epsilon: float, sensitivity: float, chosen: np.ndarray
) -> np.ndarray:
    """ln P of each tuple under JointExp."""
    return normalised(epsilon / (2 * sensitivity) * utilities(cells, at, chosen))


def single(
    cells: Cells, q: Fraction, epsilon: float, sensitivity: float, edges: range
) -> np.ndarray:
    """ln P of each edge under the exponential mechanism."""
    below = np.concatenate([[0], np.cumsum(cells)])[list(edges)]
    return normalised(-epsilon / (2 * sensitivity) * np.abs(below - float(q) * sum(cells)))


def flipped(
    cells: Cells, q: Fraction, epsilon: float, sensitivity: float, edges: range
) -> np.ndarray:
    """ln P of each edge under permute-and-flip.

    P is the integral over t of p_o times the product of (1 - t p) over all others.
    """
    below = np.concatenate([[0], np.cumsum(cells)])[list(edges)]
    gaps = np.abs(below - float(q) * sum(cells))
    p = np.exp(-epsilon / (2 * sensitivity) * (gaps - gaps.min()))
    at, weights = np.polynomial.legendre.leggauss(len(p) // 2 + 2)
    times, weights = (at + 1) / 2, weights / 2
    others = [[np.prod(1 - t * np.delete(p, i)) for t in times] for i in range(len(p))]
    return np.asarray(np.log(p * (np.array(others) @ weights)))


def closed_at_both_ends(
    cells: Cells, q: Fraction, epsilon: float, sensitivity: float, edges: range
) -> np.ndarray:
    """Broken: a group's interval is closed at both ends.

    So an edge at an occupied cell collects the weights of both its groups.
    """
    below = np.concatenate([[0], np.cumsum(cells)])
    weights = np.zeros(len(below))
    for n in np.unique(below):
        inside = np.flatnonzero(below == n)
        weights[inside[0] : min(inside[-1] + 2, len(below))] += np.exp(
            -epsilon / (2 * sensitivity) * abs(n - float(q) * sum(cells))
        )
    return np.asarray(np.log(weights[list(edges)] / weights[list(edges)].sum()))


WIDE = 2**20
PLACES = (5, 12, WIDE - 20, WIDE - 9)
"""Occupied cells of an axis of 2^20.

Nearly all edges lie between the second and the third, which is where losses are largest.
"""
BETWEEN = (*PLACES, WIDE)
"""One edge of each group of equal n(o), whatever the counts.

The others of a group are as likely.
"""


def data_sets(cells: int, most: int) -> Iterator[Cells]:
    """All counts of up to ``most`` rows on a few cells."""
    for rows in range(most + 1):
        for bag in combinations_with_replacement(range(cells), rows):
            yield tuple(np.bincount(bag, minlength=cells).tolist()) if bag else (0,) * cells


def moves(cells: Cells, unit: Unit) -> Iterator[Cells]:
    """All neighbours: r rows or fewer added, or replaced by as many or fewer."""
    r = unit.rows_per_person
    changes = list(data_sets(len(cells), r))
    for out, back in product(
        changes, changes if unit.neighbours == "replace" else [(0,) * len(cells)]
    ):
        if all(have >= gone for have, gone in zip(cells, out, strict=True)):
            yield tuple(
                have - gone + come for have, gone, come in zip(cells, out, back, strict=True)
            )


def worst(law: LawOf, sets: Iterable[Cells], unit: Unit) -> float:
    """The largest |ln P - ln P'| of any outcome, over all neighbours."""
    known: dict[Cells, np.ndarray] = {}

    def of(cells: Cells) -> np.ndarray:
        if cells not in known:
            known[cells] = law(cells)
        return known[cells]

    return max(
        float(np.abs(of(cells) - of(other)).max()) for cells in sets for other in moves(cells, unit)
    )
