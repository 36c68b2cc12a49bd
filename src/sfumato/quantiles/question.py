"""The question: which values have given shares of the rows below them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

import msgspec
import numpy as np

from sfumato.answers.counts import Counts, Needs
from sfumato.answers.question import Question
from sfumato.cube import Cube
from sfumato.domain import (
    Categories,
    Domain,
    GridAxis,
    LabelAxis,
    Lattice,
    fine_lattice,
    named_axes,
)
from sfumato.errors import UsageError, printable
from sfumato.mechanisms.noise import add_noise, count_law
from sfumato.numbers import Exactly, Numbers, decimal, probability, settle
from sfumato.privacy.allocation import share
from sfumato.privacy.guarantee import Proof
from sfumato.privacy.measures import ZCDP, CentralMeasure, without_delta
from sfumato.privacy.unit import Unit
from sfumato.quantiles.methods import Cells, Way, method_for
from sfumato.quantiles.preview import QuantilesPreview
from sfumato.quantiles.values import QuantileValues
from sfumato.random.bits import Bits

CLOSEST = Fraction(1, 10**6)
MOST_QUANTILES, MOST_ANSWERS = 10_000, 2**20
TREE_LABELS = 2**10
ROWS_SHARE = Fraction(
    1, 5
)  # of the cost, for the numbers of rows of the labels: a value of too few rows is then marked as not known
WORDS = {
    "joint": "JointExp: all quantiles of an axis in one selection",
    "recursive": "the exponential mechanism, by halving",
    "tree": "a 16-ary tree of counts",
}


class Quantiles(
    Question["QuantilesRelease"],
    frozen=True,
    tag="quantiles",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """Below which values do given shares of the rows lie? Quantiles of numeric axes, each by itself, for all rows or by label.

    Parameters
    ----------
    axes : str or list of str, or None
        Interval axes; several share the cost equally. None: all Interval axes.
    at : list of numbers
        Strictly between 0 and 1, increasing, at least 10^-6 apart; other decimals are rounded to that.
    by : str or None
        A Categories axis: the quantiles of the rows of each label. Labels are answered side by side, at no further cost. A fifth of
        the cost pays for noisy numbers of rows, ``release.rows``: values of labels with too few are marked as not known.
    method : {"auto", "joint", "recursive", "tree"}
        "joint" selects all at once (JointExp), "recursive" one after another by halving, "tree" reads them off noisy counts. "auto":
        by the number of quantiles: up to 9, up to 1000 (100 for pure epsilon on at most 2^12 points), beyond.

    Raises
    ------
    UsageError
        If quantiles are outside (0, 1) or do not increase, an axis is not an Interval, ``by`` is not a Categories axis, or an axis has
        fewer lattice points than there are quantiles.
    Infeasible
        If ``method="joint"`` and there are too many tuples to choose from.

    Guarantee
    ---------
    {proof}

    >>> from sfumato.domain import Domain, Interval
    >>> Quantiles("age", at=[0.5, 0.9]).needs(Domain(age=Interval(0, 120, step=1))).lattice.shape
    (120,)
    """

    axes: str | Sequence[str] | None = None
    at: Numbers = Numbers((Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)))
    by: str | None = None
    method: str = "auto"

    proof: ClassVar[Proof] = Proof(
        sensitivity="of rows below an edge minus q times all rows, r max(q, 1 - q) (replace: r); of JointExp's utility, "
        "2r (1 - the least gap) (replace: 2r); of a level of counts, and of the numbers of rows of labels, L1 = r (replace: 2r), "
        "with r = rows_per_person.",
        because="the rows of a cell are dealt to public sub-cells in a fixed order, so neighbours stay neighbours; edges of sub-cells are "
        "chosen by exact selections on integer counts; nodes and labels hold disjoint rows, and under replace selections in them use half "
        "their share. With labels, their noisy numbers of rows and the selections together spend exactly the cost.",
        not_covered="the choice of columns, bounds and quantiles; the time the query takes.",
        source="Gillenwater, Joseph, Kulesza, ICML 2021; Smith, STOC 2011; Kaplan, Schnapp, Stemmer, ICML 2022; Hay et al., VLDB 2010.",
    )

    def __post_init__(self) -> None:
        if self.axes is not None:
            msgspec.structs.force_setattr(self, "axes", named_axes(self.axes))
        msgspec.structs.force_setattr(self, "at", _quantiles(self.at))
        if self.by is not None and not isinstance(self.by, str):
            raise UsageError(
                f"by of type {type(self.by).__name__}",
                "it is the name of one axis",
                'Write by="kind"',
            )
        method_for(self.method, len(self.at), 2)
        settle(self)

    def needs(self, domain: Domain) -> Needs:
        """The labels of ``by``, then the default lattice of the axes."""
        lattice = self._lattice(domain)
        labels, axes = (
            (lattice.axes[0].size, len(lattice.axes) - 1) if self.by else (1, len(lattice.axes))
        )
        return Needs(lattice, labels * axes * len(self.at))

    def _lattice(self, domain: Domain) -> Lattice:
        grid = fine_lattice(domain.intervals(self.axes))
        if self.by is None:
            return grid
        (name,) = domain.select(self.by)
        axis = domain[name]
        if not isinstance(axis, Categories):
            asked = f"quantiles by {name!r}"
            raise UsageError(
                asked,
                f"it is declared as {type(axis).__name__}",
                "Divide the rows by a Categories axis",
            )
        return Lattice(
            (
                LabelAxis(name, axis.all_labels, axis.other is not None, axis.missing is not None),
                *grid.axes,
            )
        )

    @property
    def title(self) -> str:
        names = "all axes" if self.axes is None else " and ".join(map(printable, self.axes))
        return f"Quantiles of {names}" + (f" by {printable(self.by)}" if self.by else "")

    def rows_cost(self, cost: CentralMeasure) -> tuple[CentralMeasure | None, CentralMeasure]:
        """What the numbers of rows of the labels cost, None without labels, and what is left for the quantiles."""
        pure = without_delta(cost)
        if self.by is None:
            return None, pure
        rows, rest = share(pure, [ROWS_SHARE, 1 - ROWS_SHARE])
        return rows, rest

    def ways(
        self, lattice: Lattice, unit: Unit, cost: CentralMeasure, *, rows_paid: bool = True
    ) -> dict[str, Way]:
        """How each axis is answered, and what it spends.

        Their costs, and that of the numbers of rows, add up to the cost exactly; ``rows_paid=False``: they alone, as in version 0.1.
        """
        grid = lattice.axes[1:] if self.by else lattice.axes
        left = self.rows_cost(cost)[1] if rows_paid else without_delta(cost)
        parts = share(left, [Fraction(1)] * len(grid))
        found = {}
        for axis, part in zip(grid, parts, strict=True):
            method = method_for(
                self.method, len(self.at), axis.size, pure=not isinstance(part, ZCDP)
            )
            found[axis.name] = Way(
                method,
                self.at,
                axis.size,
                unit,
                part,
                self.by is not None,
                isinstance(axis, GridAxis) and axis.snap,
            )
            found[axis.name].check()
        labels = lattice.axes[0].size if self.by else 1
        if labels * len(grid) * len(self.at) > MOST_ANSWERS or (
            labels > TREE_LABELS and any(w.method == "tree" for w in found.values())
        ):
            raise UsageError(
                self.title,
                "there would be too many numbers to answer",
                "Take fewer quantiles, axes or labels",
            )
        return found

    def preview(
        self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None
    ) -> QuantilesPreview:
        """Say how far the ranks of the answers may be from those asked for."""
        lattice = self.needs(domain).lattice
        ways = tuple(self.ways(lattice, unit, cost).values())
        labels = lattice.axes[0].size if self.by else 1
        words = tuple(WORDS[method] for method in _methods(ways))
        counted = self.rows_cost(cost)[0]
        rows_law = None if counted is None else count_law(counted, unit)
        cells = labels * len(ways) * len(self.at)
        return QuantilesPreview(
            self.title,
            without_delta(cost),
            unit,
            cells,
            rows,
            words,
            ways=ways,
            labels=labels,
            rows_law=rows_law,
        )

    def answer(
        self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits
    ) -> QuantilesRelease:
        """Choose edges for every label and axis."""
        cube = counts.on(counts.lattice)
        ways = self.ways(cube.lattice, unit, cost)
        labels = range(cube.lattice.axes[0].size) if self.by else [None]
        drawn, held = [], []
        for label in labels:
            counted = columns(cube, label)
            drawn += [
                way.draw(cells, noise) for way, cells in zip(ways.values(), counted, strict=True)
            ]
            held.append(int(counted[0].counts.sum()))
        rows_cost = self.rows_cost(cost)[0]
        rows_law = None if rows_cost is None else count_law(rows_cost, unit)
        rows = None if rows_law is None else add_noise(np.array(held, np.int64), rows_law, noise)
        found = list(ways.values())
        slack = max(way.slack for way in found)
        parts = [WORDS[each] for each in _methods(found)]
        if rows_law:
            parts.append(f"{rows_law} on the rows of each label")
        guarantee = self.promise(
            without_delta(cost),
            unit,
            "; ".join(parts),
            noise,
            slack=f"at most {float(slack):.1g}, charged: the selection runs at that much less"
            if slack
            else "none: exact on integers",
        )
        return QuantilesRelease(
            question=self,
            lattice=cube.lattice,
            edges=np.concatenate(drawn),
            guarantee=guarantee,
            rows=rows,
            rows_law=rows_law,
        )


class QuantilesRelease(
    QuantileValues,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="quantiles-release",
    dict=True,
    forbid_unknown_fields=True,
):
    """The answer to quantiles: values on public lattice points, in order, and how far their ranks may be off.

    Attributes
    ----------
    question : Quantiles
    lattice, edges, rows, rows_law, flags
        As in ``QuantileValues``.
    """

    question: Quantiles

    @property
    def at(self) -> tuple[Fraction, ...]:
        """The quantiles asked for, as exact fractions."""
        return tuple(self.question.at)

    @property
    def by(self) -> str | None:
        """The axis whose labels divide the rows; None: all rows together."""
        return self.question.by

    @property
    def ways(self) -> dict[str, Way]:
        """How each axis was answered."""
        return self.question.ways(
            self.lattice, self.guarantee.unit, self.cost, rows_paid=self.rows is not None
        )


def columns(cube: Cube, label: int | None) -> list[Cells]:
    """The occupied cells of each axis, among the rows of one label or among all."""
    shape, grid = (
        cube.lattice.shape,
        cube.lattice.shape if label is None else cube.lattice.shape[1:],
    )
    found = []
    if cube.coordinates is None:
        counts = cube.counts.reshape(shape) if label is None else cube.counts.reshape(shape)[label]
        for axis, size in enumerate(grid):
            dense = counts.sum(axis=tuple(i for i in range(len(grid)) if i != axis), dtype=np.int64)
            held = np.flatnonzero(dense)
            found.append(Cells(held, dense[held], size))
        return found
    rows = (
        slice(None)
        if label is None
        else slice(*np.searchsorted(cube.coordinates[:, 0], (label, label + 1)))
    )
    for axis, size in enumerate(grid):
        where = cube.coordinates[rows, axis + (label is not None)]
        dense = np.bincount(
            where, weights=cube.counts[rows], minlength=size
        )  # sums of integers below 2^53: exact
        held = np.flatnonzero(dense)
        found.append(Cells(held, dense[held].astype(np.int64), size))
    return found


def _methods(ways: Sequence[Way]) -> list[str]:
    return list(dict.fromkeys(way.method for way in ways))


def _quantiles(at: Exactly | Sequence[Exactly]) -> tuple[Fraction, ...]:
    """Read quantiles: simple fractions as they are meant, others to six digits."""
    given = at.tolist() if hasattr(at, "tolist") else at
    several: Sequence[Exactly] = (
        given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    )
    found = tuple(_settled(probability(q, "a quantile")) for q in several)
    if not found or len(found) > MOST_QUANTILES:
        raise UsageError(
            f"{len(found)} quantiles",
            f"there must be 1 to {MOST_QUANTILES:,}",
            "Write at=[0.25, 0.5, 0.75]",
        )
    if any(b - a < CLOSEST for a, b in pairwise((Fraction(0), *found, Fraction(1)))):
        asked = f"quantiles at {', '.join(map(decimal, found[:6]))}"
        raise UsageError(
            asked, "they must increase, by 10^-6 or more", "Sort them, and name each once"
        )
    return found


def _settled(q: Fraction) -> Fraction:
    simple = q.limit_denominator(1000)
    return (
        simple if abs(simple - q) < Fraction(1, 10**12) else Fraction(round(q / CLOSEST)) * CLOSEST
    )


Quantiles.examples = (
    Quantiles("x", at=[0.5]),
    Quantiles("x", at=[0.25, 0.75], method="recursive"),
    Quantiles("x", at=[0.25, 0.75], method="tree"),
)
