"""Mechanisms that are known to be broken, each with the detector that must notice it.

The sound ones, which must pass, stand beside them.

Every fault here has been published by somebody. All claim ``CLAIM`` for ``UNIT`` on the axis 0 to
3, in three cells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from sfumato.audit.runs import Mechanism, Published, Rows, of_question, published, published_counts
from sfumato.audit.runs import count as counted
from sfumato.domain.domain import Domain, Interval
from sfumato.domain.lattice import Lattice
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.histogram import Histogram
from sfumato.questions.partition.uniform import UniformPartitioner, eugkm_cells

Detector = Literal["exceeds", "unreachable", "not additive"]

DOMAIN = Domain(x=Interval(0, 3, step=1))
QUESTION = Histogram("x", bins=3)
LATTICE: Lattice = QUESTION.needs(DOMAIN).lattice
CLAIM = PureDP("2")
UNIVERSE: Rows = ((0.5,), (1.0,), (3.0,))
"""A value inside a cell, one on an edge between two cells, and the closed upper end."""
FIRST_DRAWS = (0, 10, 40)


@dataclass(frozen=True)
class Twin:
    """A mechanism, the unit it claims, and what must notice it: None for a sound one.

    ``exceeds``: the largest likelihood ratio is above the claim, finitely. ``unreachable``: an
    output of one data set cannot come from its neighbour. ``not additive``: the exact audit
    refuses.
    """

    name: str
    mechanism: Mechanism
    detector: Detector | None
    unit: Unit = Unit()  # noqa: RUF009
    loss: float | None = None
    """The true loss, where it is known, as a multiple of the claim."""

    def __str__(self) -> str:
        return self.name


def _counts(rows: Rows) -> np.ndarray:
    return counted(rows, LATTICE).counts


def _with_scale(scale: Fraction) -> Mechanism:
    """Right in all but the scale."""

    def run(rows: Rows, noise: Any) -> Published:
        counts = _counts(rows)
        return published_counts(counts + DiscreteLaplace(scale).sample(counts.size, noise))

    return run


def closed_at_both_ends(rows: Rows, noise: Any) -> Published:
    """A row on an edge counts in both cells."""
    values = np.array([row[0] for row in rows])
    counts = np.array([((low <= values) & (values <= low + 1)).sum() for low in range(3)])
    return published_counts(counts + DiscreteLaplace(1 / CLAIM.epsilon).sample(3, noise))


def bounds_from_the_data(rows: Rows, noise: Any) -> Published:
    """The edges run from the least value to the largest."""
    values = np.array([row[0] for row in rows])
    low, high = (values.min(), values.max()) if len(values) else (0.0, 1.0)
    counts, edges = np.histogram(values, bins=3, range=(low, high))
    return published_counts(
        counts + DiscreteLaplace(1 / CLAIM.epsilon).sample(3, noise), edges=edges.tolist()
    )


def redraw_until_non_negative(rows: Rows, noise: Any) -> Published:
    """One count, drawn again while it is negative: each look at the sign is unpaid."""
    true = len(rows)
    while (noisy := true + int(DiscreteLaplace(1 / CLAIM.epsilon).sample(1, noise)[0])) < 0:
        pass
    return published_counts(np.array([noisy]))


def only_where_someone_is(rows: Rows, noise: Any) -> Published:
    """Empty cells stay empty: the test for emptiness looks at true counts."""
    counts = _counts(rows)
    drawn = DiscreteLaplace(1 / CLAIM.epsilon).sample(int((counts > 0).sum()), noise)
    counts[counts > 0] += drawn
    return published_counts(counts)


def noise_of_numpy(rows: Rows, noise: Any) -> Published:
    """Noise from somewhere else, which no recorded law describes.

    It is rounded, so that only its origin shows.
    """
    counts = _counts(rows)
    return published_counts(
        np.round(counts + np.random.default_rng().laplace(scale=0.5, size=counts.size))
    )


def true_number_of_rows(rows: Rows, noise: Any) -> Published:
    """The grid follows the true number of rows."""
    per_axis = min(eugkm_cells(10 * len(rows), float(CLAIM.epsilon), d=1)[1], 3)
    cube = counted(rows, LATTICE)
    edges = np.arange(per_axis + 1) * 3 // per_axis
    counts = cube.binned([edges])
    return published_counts(
        counts + DiscreteLaplace(1 / CLAIM.epsilon).sample(counts.size, noise), edges=edges.tolist()
    )


def shares_above_the_cost(rows: Rows, noise: Any) -> Published:
    """The cells spend all of the cost, and the number of rows a fiftieth more."""
    look = int(DiscreteLaplace(50 / CLAIM.epsilon).sample(1, noise)[0]) + len(rows)
    release = UniformPartitioner(partitions=3).answer(counted(rows, LATTICE), Unit(), CLAIM, noise)
    seen = published(release)
    return Published((look, *seen.numbers), (look, seen.public))


def float_laplace(true: int) -> Callable[[Any], float]:
    """Floating-point inversion of 12 bits, added to a count.

    The low-order bits of the sum tell counts apart (Mironov 2012).
    """

    def run(bits: Any) -> float:
        word = int(bits.words(1)[0]) >> 52
        sign = 1 if word & 1 else -1
        return true + sign * float(np.log(((word >> 1) + 1) / 2**11)) / float(CLAIM.epsilon)

    return run


def integer_noise(true: int) -> Callable[[Any], int]:
    """A sound relation of ``float_laplace`` at 12 bits.

    Its outputs for neighbouring counts overlap, but for the ends.
    """

    def run(bits: Any) -> int:
        word = int(bits.words(1)[0]) >> 52
        return true + (1 if word & 1 else -1) * (12 - ((word >> 1) + 1).bit_length())

    return run


THREE, SWAP = Unit(rows_per_person=3), Unit(neighbours="replace")

BROKEN = [
    Twin("half the noise", _with_scale(1 / (2 * CLAIM.epsilon)), "exceeds", loss=2),
    Twin(
        "five percent less noise",
        _with_scale(Fraction(95, 100) / CLAIM.epsilon),
        "exceeds",
        loss=1 / 0.95,
    ),
    Twin("rows per person ignored", _with_scale(1 / CLAIM.epsilon), "exceeds", THREE, loss=3),
    Twin("replace treated as add-remove", _with_scale(1 / CLAIM.epsilon), "exceeds", SWAP, loss=2),
    Twin("cells closed at both ends", closed_at_both_ends, "exceeds", loss=2),
    Twin("bounds from the data", bounds_from_the_data, "unreachable"),
    Twin("unpaid retry loop", redraw_until_non_negative, "not additive"),
    Twin("no noise on empty cells", only_where_someone_is, "not additive"),
    Twin("noise of numpy", noise_of_numpy, "not additive"),
    Twin("true number of rows lays the grid", true_number_of_rows, "unreachable"),
    Twin("shares above the cost", shares_above_the_cost, "exceeds", loss=1.02),
]

SOUND = [
    Twin("three lines, right", _with_scale(1 / CLAIM.epsilon), None, loss=1),
    Twin("three lines, right, three rows", _with_scale(3 / CLAIM.epsilon), None, THREE, loss=1),
    Twin("histogram", of_question(QUESTION, DOMAIN, Unit(), CLAIM), None, loss=1),
    Twin("histogram, replace", of_question(QUESTION, DOMAIN, SWAP, CLAIM), None, SWAP, loss=1),
    Twin(
        "uniform grid",
        of_question(UniformPartitioner(theta=1), DOMAIN, Unit(), CLAIM),
        None,
        loss=1,
    ),
]
