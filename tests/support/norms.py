"""What a source keeps of each person under a norm of several tables, beside all that there is."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from conformance.kinds import people, table
from data import random_tables
from sfumato.answers.counts import Needs
from sfumato.data import count, source
from sfumato.domain import Domain, Keys
from sfumato.lattice import KeyAxis, Lattice
from sfumato.privacy.stacked_norm import StackedNorm, Weighed

DOMAIN = Domain({**random_tables.DOMAIN, "who": Keys()})
X = random_tables.grid("x", 32)
WORD = random_tables.labels("word")
ROWS = people(900, seed=12)
CELLS = Lattice((X, WORD))
REGIONS = (5, 1, 20, 6)
"""How many of the 32 cells of X lie in each of four regions."""
LEVELS = (((4,), REGIONS), ((WORD.size,),))
OF_CELL = np.repeat(np.arange(4), REGIONS)


def norm_of(most: int, rows: int) -> StackedNorm:
    """By regions and words, by cells, and by words; less all rows, which these outweigh."""
    weighed = (
        Weighed((0, 0), -1),
        Weighed((1, 1), 2),
        Weighed((2, 0), 1),
        Weighed((0, 1), WORD.size),
    )
    return StackedNorm(LEVELS, weighed, most, rows)


def squared(limit: StackedNorm, counts: np.ndarray) -> int:
    """Of counts by cell of X and word."""
    regions = np.zeros((4, WORD.size), np.int64)
    np.add.at(regions, OF_CELL, counts)
    sums = {
        (0, 0): counts.sum(),
        (1, 1): regions,
        (2, 0): counts.sum(axis=1),
        (0, 1): counts.sum(axis=0),
    }
    squares = {margin: int((np.asarray(each) ** 2).sum()) for margin, each in sums.items()}
    return sum(one.weight * squares[one.margin] for one in limit.weighed)


def counted(data: Any, limit: StackedNorm | None, key: int) -> dict[str, np.ndarray]:
    """The counts of each person."""
    lattice = Lattice((KeyAxis("who"), *CELLS.axes))
    need = Needs(lattice, 9, cells=None if limit is None else CELLS, norm=limit)
    limits = {"rows_per_person": 10**6} if limit is None else {"norm_per_person": 50}
    src = source(data, DOMAIN, person="who", **limits)
    (cube,) = count(src, [need], key=bytes([key]) * 32)
    names = cube.keys["who"].to_pylist()
    found: dict[str, np.ndarray] = {}
    assert cube.coordinates is not None
    for (who, x, word), number in zip(cube.coordinates.tolist(), cube.counts.tolist(), strict=True):
        own = found.setdefault(names[who], np.zeros((X.size, WORD.size), np.int64))
        own[x, word] = number
    return found


@cache
def all_counted() -> dict[str, np.ndarray]:
    """All rows of each person."""
    return counted(table(ROWS), None, 1)


def kept_of_each(data: Any, limit: StackedNorm) -> dict[str, int]:
    """How many rows are kept of each person, once they are seen to be within the norm."""
    kept = counted(data, limit, 1)
    for who, all_rows in all_counted().items():
        own = kept[who]
        assert (own <= all_rows).all()
        assert squared(limit, own) <= limit.most
        assert min(limit.all_kept, all_rows.sum()) <= own.sum() <= limit.rows
    return {who: int(own.sum()) for who, own in kept.items()}


def share_kept(data: Any, limit: StackedNorm, key: int) -> float:
    """Of all rows."""
    kept = sum(int(own.sum()) for own in counted(data, limit, key).values())
    return kept / sum(int(own.sum()) for own in all_counted().values())
