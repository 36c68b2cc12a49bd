"""Trees of a fixed depth: what binary, median and multi-quantile partitions share. How a node is split is theirs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from sfumato.domain import Lattice, fine_lattice, named_axes
from sfumato.errors import UsageError
from sfumato.exact import positive
from sfumato.partition.growing import MOST_CELLS, Draft
from sfumato.privacy.allocation import Allocation, Levels, Shares, of_units, tree_levels
from sfumato.privacy.measures import CentralMeasure, without_delta
from sfumato.privacy.unit import Unit
from sfumato.mechanisms.noise import count_law
from sfumato.release import Preview

Splitter: TypeAlias = Callable[[Draft, np.ndarray, np.ndarray, int], np.ndarray]
"""From the draft, nodes, the axis of each and what may be spent to the children of all nodes."""


def check_tree(depth: object, fanout: object, stop_below: object) -> float | None:
    """Check the parameters of a tree, and read ``stop_below``."""
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 0:
        raise UsageError(f"depth = {depth!r}", "the depth of a tree is a whole number from 0 on", "Choose a depth such as 8")
    if isinstance(fanout, bool) or not isinstance(fanout, int) or fanout < 2:
        raise UsageError(f"fanout = {fanout!r}", "a node is split into at least 2", "Choose a fan-out such as 4")
    if depth * math.log2(fanout) > math.log2(MOST_CELLS):
        raise UsageError(f"depth = {depth} with fan-out {fanout}", f"that makes more than {MOST_CELLS:,} cells", "Choose fewer levels")
    return None if stop_below is None else float(positive(stop_below, "stop_below"))  # type: ignore[arg-type]


def plain_allocation(allocation: Allocation, depth: int) -> Allocation:
    """Bring an allocation into the one form that files give back, and check it."""
    from sfumato.privacy.allocation import levels

    plain: Allocation = allocation if isinstance(allocation, str) else tuple(str(positive(weight, "a weight")) for weight in allocation)
    levels(10**9, depth, allocation=plain)
    return plain


def plain_axes(axes: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """Names of axes as files give them back."""
    return None if axes is None else named_axes(axes)


def titled(name: str, axes: str | Sequence[str] | None) -> str:
    """A question in a few words."""
    return name if axes is None else f"{name} of {' x '.join(axes)}"


def next_axis(widths: np.ndarray, depth: int) -> np.ndarray:
    """The axis along which each node of a level is split: depth mod d, or the next one that still can be; -1: none can.

    Parameters
    ----------
    widths : int64 ndarray of shape (nodes, d)
        Lattice cells of each node along each axis.
    """
    d = widths.shape[1]
    turn = np.roll(np.arange(d), -(depth % d))
    can = widths[:, turn] > 1
    return np.where(can.any(axis=1), turn[can.argmax(axis=1)], -1)


def grow(draft: Draft, levels: Levels, stop_below: float | None, split: Splitter) -> np.ndarray:
    """Count, test and split, level by level. Returns the depth of every node: int64 ndarray of shape (nodes,).

    A node is split if its noisy count is at least ``stop_below`` and it holds more than one lattice cell. At the deepest level
    nothing is tested or counted.
    """
    depths, nodes = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for level, units in enumerate(levels.partition):
        axis = next_axis(draft.growth.widths(nodes), level)
        nodes, axis = nodes[axis >= 0], axis[axis >= 0]
        if levels.threshold[level] and len(nodes):
            found = draft.look(nodes, levels.threshold[level])
            if stop_below is not None:
                nodes, axis = nodes[found >= stop_below], axis[found >= stop_below]
        if not len(nodes):
            break
        nodes = split(draft, nodes, axis, units)
        depths = np.concatenate([depths, np.full(len(draft.growth.axis) - len(depths), level + 1)])
    return depths


def tree_preview(
    title: str,
    lattice: Lattice,
    unit: Unit,
    cost: CentralMeasure,
    rows: int | None,
    *,
    shares: Shares,
    allocation: Allocation,
    depth: int,
    fanout: int,
    stop_below: float | None,
) -> Preview:
    """What the deepest cells would have; cells where splitting stops have more."""
    levels = tree_levels(without_delta(cost), shares, allocation, depth=depth, fanout=fanout)
    check_levels(levels, stop_below)
    left = levels.total - sum(levels.threshold[:depth]) - sum(levels.partition)
    cells = None if stop_below is not None else min(fanout**depth, lattice.size)
    notes = () if stop_below is None else (f"a node whose noisy count is below {stop_below:g} becomes a cell, with the noise that is left",)
    return Preview(title, without_delta(cost), unit, cells, count_law(of_units(cost, left), unit), rows, notes)


def check_levels(levels: Levels, stop_below: float | None) -> None:
    """Refuse to test where nothing is paid for the test."""
    if stop_below is not None and not all(levels.threshold[: len(levels.partition)]):
        raise UsageError(
            f"stop_below = {stop_below:g}",
            "a level has no share of the cost to count its nodes with",
            "Give threshold a share, a larger epsilon, or leave stop_below out",
        )


def lattice_of(domain: object, axes: object) -> Lattice:
    """The default lattice of a partition."""
    return fine_lattice(domain.intervals(axes))  # type: ignore[attr-defined]
