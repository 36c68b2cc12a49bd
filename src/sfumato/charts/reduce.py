"""Add up counts before drawing, where there are too many cells or axes for a picture.

Sums of released numbers are post-processing. Their intervals come from the noise's own law.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sfumato.basics.numbers import Array, Exactly, sidak
from sfumato.charts import style
from sfumato.domain.lattice import Lattice
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.unit import Unit

CONFIDENCE = "0.95"
ALPHA = 0.05


class Noise(Protocol):
    """The noise on each count: two-sided half-widths of one count, and of sums."""

    def half_width(self, alpha: float) -> int: ...
    def sum_half_width(self, effective: Array, alpha: float) -> Array: ...


class Selection(Protocol):
    """What a picture needs to know of how keys were selected."""

    def count_kept(self, probability: float) -> int: ...


class Counted(Protocol):
    """What a picture of counts needs to know of a release."""

    @property
    def lattice(self) -> Lattice: ...
    @property
    def values(self) -> Array: ...
    @property
    def noise(self) -> Noise | None:
        """The noise on each count.

        None where the noise decided which counts are here: then sums of them have no law.
        """

    @property
    def selection(self) -> Selection | None:
        """How the labels of an axis of keys were selected; None where all were known beforehand."""

    @property
    def even(self) -> bool:
        """Whether bins hold about equally many rows: then pictures show rows per width."""

    @property
    def guarantee(self) -> Guarantee: ...
    def accuracy(self, confidence: Exactly = CONFIDENCE, simultaneous: bool = False) -> Array: ...
    def interval(
        self, confidence: Exactly = CONFIDENCE, simultaneous: bool = False
    ) -> tuple[Array, Array]: ...


class Regions(Protocol):
    """Boxes of every size, each level after the one above it: see ``partition.regions``."""

    @property
    def lower(self) -> Array: ...
    @property
    def upper(self) -> Array: ...
    @property
    def counts(self) -> Array: ...
    @property
    def half(self) -> Array: ...
    @property
    def parent(self) -> Array: ...
    @property
    def levels(self) -> Sequence[tuple[int, int]]: ...


class Boxes(Protocol):
    """What a picture of a partition needs to know of it.

    ``noise`` is the widest law of the noise on a count.
    """

    @property
    def lattice(self) -> Lattice: ...
    @property
    def lower(self) -> Array: ...
    @property
    def upper(self) -> Array: ...
    @property
    def counts(self) -> Array: ...
    @property
    def noise(self) -> Noise: ...
    @property
    def guarantee(self) -> Guarantee: ...
    def accuracy(self, confidence: Exactly = CONFIDENCE, simultaneous: bool = False) -> Array: ...
    def interval(
        self, confidence: Exactly = CONFIDENCE, simultaneous: bool = False
    ) -> tuple[Array, Array]: ...
    def regions(self, alpha: float) -> Regions | None:
        """Boxes of every size; None where there are only the cells."""


@dataclass(frozen=True)
class Table:
    """Noisy counts as they are drawn.

    Attributes
    ----------
    values, half, half_all : ndarray of equal shape
        Counts, and the half-widths of their 95% intervals, one by one and all at once.
    terms : ndarray of the same shape
        How many released numbers each is the sum of.
    down, down_all : ndarray of the same shape, or None
        How far the intervals reach down, where that is not as far as they reach up.
    """

    values: Array
    half: Array
    half_all: Array
    terms: Array
    down: Array | None = None
    down_all: Array | None = None

    @property
    def low(self) -> Array:
        return np.asarray(self.values - (self.half if self.down is None else self.down))

    @property
    def low_all(self) -> Array:
        return np.asarray(self.values - (self.half_all if self.down_all is None else self.down_all))

    @property
    def high(self) -> Array:
        return np.asarray(self.values + self.half)

    @property
    def transposed(self) -> Table:
        return mapped(self, np.transpose)


def table_of(release: Counted) -> Table:
    """Take a release as it is: the intervals are its own."""
    values = np.asarray(release.values)
    (low, high), (low_all, high_all) = (
        release.interval(CONFIDENCE, every) for every in (False, True)
    )
    ones = np.ones(values.shape, np.int64)
    return Table(
        values, high - values, high_all - values, ones, down=values - low, down_all=values - low_all
    )


def limit_note(guarantee: Guarantee, what: str = "Counts") -> str:
    """Which rows a picture is of, where a person's rows are limited; else ""."""
    return "" if guarantee.unit.person is None else f"{what} are of {guarantee.unit.counted}."


def mapped(table: Table, change: Callable[[Array], Array]) -> Table:
    """Take or reshape all arrays of a table alike."""
    down, down_all = (None if x is None else change(x) for x in (table.down, table.down_all))
    return Table(
        change(table.values),
        change(table.half),
        change(table.half_all),
        change(table.terms),
        down,
        down_all,
    )


def sum_out(table: Table, keep: tuple[int, ...], law: Noise | None) -> Table:
    """Add up all axes but some, which keep their order.

    Counts whose sums have no law stay as they are.
    """
    rest = tuple(i for i in range(table.values.ndim) if i not in keep)
    if law is None or not rest:
        return table
    return _with_intervals(table.values.sum(axis=rest), table.terms.sum(axis=rest), law)


def merge(table: Table, starts: Sequence[Array], law: Noise | None) -> Table:
    """Put the mean of neighbours in their place; along each axis, runs of them begin at ``starts``.

    Means rather than sums, so that the last run, which may be shorter, does not look like a fall.
    Counts whose sums have no law stay as they are.
    """
    if law is None or all(
        len(at) == size for at, size in zip(starts, table.values.shape, strict=True)
    ):
        return table
    values, terms, cells = (
        _add_runs(x, starts) for x in (table.values, table.terms, np.ones_like(table.terms))
    )
    summed = _with_intervals(values, terms, law)
    return Table(values / cells, summed.half / cells, summed.half_all / cells, terms)


def _add_runs(x: Array, starts: Sequence[Array]) -> Array:
    for axis, at in enumerate(starts):
        x = np.add.reduceat(x, at, axis=axis)
    return x


def runs(size: int, most: int) -> Array:
    """Where runs of neighbours begin, so that ``size`` cells become at most ``most``."""
    return np.arange(0, size, -(-size // most))


def _with_intervals(values: Array, terms: Array, law: Noise) -> Table:
    """Half-widths of sums over disjoint sets of cells, whose noise is independent.

    A set of one cell keeps the half-width of one count.
    """
    distinct, where = np.unique(terms, return_inverse=True)
    halves = []
    for alpha in (ALPHA, sidak(ALPHA, values.size)):
        single = float(law.half_width(alpha))
        each = np.where(distinct == 1, single, law.sum_half_width(distinct.astype(float), alpha))
        halves.append(each[where].reshape(values.shape))
    return Table(values, halves[0], halves[1], terms)


def counts_of(unit: Unit) -> str:
    """What an axis of counts says: of persons, what these are called."""
    return style.plain(unit.several.rstrip(","), 60) if unit.counts_persons else "count"
