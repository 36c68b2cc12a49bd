"""The question: which values have given shares of the rows below them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.answers import Counts, Needs, Question
from sfumato.basics import Numbers, settle
from sfumato.domain import Domain, GridAxis, Lattice, LatticeAxis, Listed, fine_lattice, named_axes
from sfumato.errors import UsageError, printable
from sfumato.mechanisms import read_quantiles
from sfumato.privacy import ZCDP, CentralMeasure, Guarantee, Proof, Unit, share, without_delta
from sfumato.questions.quantiles.cells import cells_by_axis
from sfumato.questions.quantiles.methods import (
    MOST_JOINT,
    MOST_JOINT_WITH_ROWS,
    AxisMethod,
    method_for,
    rows_come_or_go,
)
from sfumato.questions.quantiles.ranks import GapNoise, Paid
from sfumato.questions.quantiles.release import QuantilesPreview, QuantileValues
from sfumato.random.bits import Bits

# Share of an axis' cost for counts of the rows between its values, which give them ranks.
RANKS_SHARE = Fraction(1, 5)

# Share of the cost for the numbers of rows of labels, in releases whose ranks are not paid for.
ROWS_SHARE = Fraction(1, 5)
# These descriptions are stored in guarantees.
DESCRIPTIONS = {
    "joint": "JointExp: all quantiles of an axis in one selection",
    "recursive": "the exponential mechanism, by halving",
    "tree": "a 16-ary tree of counts",
}
GIVEN_ROWS = "one selection of all quantiles of an axis, given a noisy number of rows"


class Quantiles(
    Question["QuantilesRelease"],
    frozen=True,
    tag="quantiles",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """Below which values do given shares of the rows lie?

    Each numeric axis gets its own quantiles, for all rows or by label. A fifth of the cost pays for
    noisy counts of the rows between the chosen values. So each value comes with its estimated rank,
    ``release.ranks``, and with the exact accuracy of that rank. A tree needs no such part: it has
    noisy counts already.

    ``release.interval`` says between which other values of the answer the true quantile lies. A
    single quantile is bounded by the ends of the axis alone: ask for its neighbours too, as in
    ``at=[0.45, 0.5, 0.55]``.

    Parameters
    ----------
    axes : str or list of str, or None
        Interval axes. Several axes share the cost equally. None: all Interval axes.
    at : list of numbers
        The quantiles: strictly between 0 and 1, increasing, at least 10^-6 apart. Decimals with
        more digits are rounded to 10^-6.
    by : str or None
        A Categories axis: the quantiles are those of the rows of each label. All labels are
        answered at the cost of one. Values of labels with too few rows are marked as not known.
    method : {"auto", "joint", "recursive", "tree"}
        "joint" selects all quantiles at once (JointExp). "recursive" selects one after another by
        halving. "tree" reads them off noisy counts. "auto" goes by the number of quantiles: joint
        up to 40 (to 9 under replace without ``by``), recursive up to 1000 (to 100 for pure epsilon
        on at most 2^12 points), then tree.
    heading, measured_in, label_names
        Words for people, by name: see ``Question``.

    Raises
    ------
    UsageError
        If quantiles are outside (0, 1) or do not increase, an axis is not an Interval, ``by`` is
        not a Categories axis, or an axis has fewer lattice points than there are quantiles.
    Infeasible
        If ``method="joint"`` and there are too many tuples to choose from.

    Guarantee
    ---------
    {proof}

    >>> from sfumato.domain.domain import (Domain, Interval)
    >>> Quantiles("age", at=[0.5, 0.9]).needs(Domain(age=Interval(0, 120, step=1))).lattice.shape
    (120,)
    """

    axes: str | Sequence[str] | None = None
    at: Numbers = Numbers((Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)))
    by: str | None = None
    method: str = "auto"

    proof: ClassVar[Proof] = Proof(
        sensitivity=(
            "of rows below an edge minus q times all rows, r max(q, 1 - q) (replace: r); of "
            "JointExp's utility, 2r (1 - the least gap) (replace: 2r), and of that utility given a "
            "noisy number of rows, r; of that number, of a level of counts, and of the rows "
            "between chosen values, L1 = r (replace: 2r), with r = rows_per_person."
        ),
        because=(
            "the rows of a cell are dealt to public sub-cells in a fixed order, so neighbours stay"
            " neighbours; edges of sub-cells are chosen by exact selections on integer counts; "
            "nodes and labels hold disjoint rows, and under replace selections in them use half "
            "their share. Given the chosen edges, which are paid for, the gaps between them hold "
            "disjoint rows. Selections and counts together spend exactly the cost."
        ),
        not_covered="the choice of columns, bounds and quantiles; the time the query takes.",
        source=(
            "Gillenwater, Joseph, Kulesza, ICML 2021; Smith, STOC 2011; Kaplan, Schnapp, Stemmer, "
            "ICML 2022; Hay et al., VLDB 2010."
        ),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        axes = None if self.axes is None else named_axes(self.axes)
        settle(self, axes=axes, at=read_quantiles(self.at))
        if self.by is not None and not isinstance(self.by, str):
            raise UsageError(
                f"by of type {type(self.by).__name__}",
                "it is the name of one axis",
                'Write by="kind"',
            )
        # Called for its refusal of an unknown method, for which any number of cells serves.
        method_for(self.method, len(self.at), 2)

    def needs(self, domain: Domain) -> Needs:
        """The labels of ``by``, then the default lattice of the axes."""
        lattice = fine_lattice(domain.intervals(self.axes))
        if self.by is not None:
            (name,) = domain.select(self.by)
            axis = domain[name]
            if not isinstance(axis, Listed):
                raise UsageError(
                    f"quantiles by {name!r}",
                    f"it is declared as {type(axis).__name__}",
                    "Divide the rows by a Categories axis",
                )
            lattice = Lattice((axis.label_axis(name), *lattice.axes))
        labels, axes = self._labels_and_axes(lattice)
        return Needs(lattice, labels * len(axes) * len(self.at))

    def _labels_and_axes(self, lattice: Lattice) -> tuple[int, Sequence[LatticeAxis]]:
        """The number of labels, 1 without ``by``, and the axes whose quantiles are asked for."""
        if self.by is None:
            return 1, lattice.axes
        return lattice.axes[0].size, lattice.axes[1:]

    @property
    def title(self) -> str:
        names = "all axes" if self.axes is None else " and ".join(map(printable, self.axes))
        by = f" by {printable(self.by)}" if self.by else ""
        return f"Quantiles of {names}{by}"

    def axis_methods(
        self, lattice: Lattice, unit: Unit, cost: CentralMeasure, paid: Paid = Paid.RANKS
    ) -> dict[str, AxisMethod]:
        """How each axis is answered, and what it spends.

        What the axes spend on values and on counts adds up to the cost exactly.

        Parameters
        ----------
        lattice : Lattice
        unit : Unit
        cost : PureDP, ApproxDP or ZCDP
        paid : Paid
            What the cost pays for beside the values.
        """
        labels, axes = self._labels_and_axes(lattice)
        left = without_delta(cost)
        if paid is Paid.ROWS:
            left = share(left, [ROWS_SHARE, 1 - ROWS_SHARE])[1]
        has_ranks = paid is Paid.RANKS
        by_label = self.by is not None
        with_rows = has_ranks and rows_come_or_go(unit, by_label)
        most_joint = MOST_JOINT_WITH_ROWS if with_rows else MOST_JOINT
        # A row lies on every axis, so the axes share the cost. It has one label, so the labels do
        # not.
        parts = share(left, [Fraction(1)] * len(axes))
        methods = {}
        for axis, cost_of_axis in zip(axes, parts, strict=True):
            for_values = cost_of_axis
            pure = not isinstance(cost_of_axis, ZCDP)
            name = method_for(
                self.method, len(self.at), axis.size, pure=pure, most_joint=most_joint
            )
            for_ranks = None
            if has_ranks and name != "tree":
                # Whole units are divided, so the counts and the selection spend exactly the cost
                # together.
                for_ranks, for_values = share(cost_of_axis, [RANKS_SHARE, 1 - RANKS_SHARE])
            snap = isinstance(axis, GridAxis) and axis.snap
            method = AxisMethod(
                name, self.at, axis.size, unit, for_values, by_label, snap, rank_cost=for_ranks
            )
            method.check()
            methods[axis.name] = method
        too_many_trees = labels > 2**10 and any(
            method.method == "tree" for method in methods.values()
        )
        if too_many_trees or labels * len(axes) * len(self.at) > 2**20:
            raise UsageError(
                self.title,
                "there would be too many numbers to answer",
                "Take fewer quantiles, axes or labels",
            )
        return methods

    def preview(
        self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None
    ) -> QuantilesPreview:
        """Say how far the ranks of the answers may be from those asked for."""
        lattice = self.needs(domain).lattice
        methods = tuple(self.axis_methods(lattice, unit, cost).values())
        labels, _ = self._labels_and_axes(lattice)
        return QuantilesPreview(
            self.title,
            without_delta(cost),
            unit,
            labels * len(methods) * len(self.at),
            rows,
            tuple(_descriptions(methods)),
            axis_methods=methods,
            labels=labels,
        )

    def answer(
        self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits
    ) -> QuantilesRelease:
        """Choose edges for every label and axis, and count the rows between them."""
        cube = counts.on(counts.lattice)
        methods = list(self.axis_methods(cube.lattice, unit, cost).values())
        edges = []
        gaps = []
        for cells in cells_by_axis(cube, by_label=self.by is not None):
            for method, cells_of_axis in zip(methods, cells, strict=True):
                points, between = method.draw_with_ranks(cells_of_axis, noise)
                edges.append(points)
                gaps.append(between)
        return QuantilesRelease(
            question=self,
            lattice=cube.lattice,
            edges=np.concatenate(edges),
            guarantee=self._guarantee(methods, unit, cost, noise),
            gaps=np.concatenate(gaps),
        )

    def _guarantee(
        self,
        methods: Sequence[AxisMethod],
        unit: Unit,
        cost: CentralMeasure,
        noise: Bits,
    ) -> Guarantee:
        mechanisms = _descriptions(methods)
        laws = [
            method.rank_noise.law for method in methods if isinstance(method.rank_noise, GapNoise)
        ]
        mechanisms += [f"{law} on the rows between values" for law in dict.fromkeys(laws)]
        slack = float(max(method.slack for method in methods))
        charged = f"at most {slack:.1g}, charged: the selection runs at that much less"
        return self.promise(
            without_delta(cost),
            unit,
            "; ".join(mechanisms),
            noise,
            slack=charged if slack else "none: exact on integers",
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
    """The answer to quantiles: values on public lattice points, and how far their ranks may be off.

    Attributes
    ----------
    question : Quantiles
    lattice, edges, rows, rows_law, flags, gaps
        As in ``QuantileValues``.

    >>> import numpy as np, sfumato as sf
    >>> ages = np.array([[31.0], [35.5], [64.0]])
    >>> src = sf.source(ages, sf.Domain(age=sf.Interval(0, 100)), name="ages")
    >>> release = sf.Publisher(src, budget="1").release(sf.Quantiles("age"), epsilon="1")
    >>> release.at
    (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
    >>> release.values.shape
    (3,)
    """

    question: Quantiles

    @property
    def at(self) -> tuple[Fraction, ...]:
        """The quantiles asked for, as exact fractions."""
        return tuple(self.question.at)

    @property
    def by(self) -> str | None:
        """The axis whose labels divide the rows; None: all rows are taken together."""
        return self.question.by

    @property
    def axis_methods(self) -> dict[str, AxisMethod]:
        """How each axis was answered, by its name."""
        return self.question.axis_methods(self.lattice, self.guarantee.unit, self.cost, self.paid)


def _descriptions(methods: Sequence[AxisMethod]) -> list[str]:
    """Return what the methods are called, each once."""
    return list(dict.fromkeys(map(_description, methods)))


def _description(method: AxisMethod) -> str:
    law = method.total_law
    return DESCRIPTIONS[method.method] if law is None else f"{GIVEN_ROWS} ({law})"


Quantiles.examples = (
    Quantiles("x"),
    Quantiles("x", at=[0.5]),
    Quantiles("x", method="recursive"),
    Quantiles("x", at=[0.25, 0.75], method="tree"),
)
