"""Quantiles on public lattice points, and how far their ranks may be off: preview and answer.

The preview says what they would cost, and how far the ranks of the answers may be from those asked
for. The base class of the answer, ``QuantileValues``, does not depend on a particular question: a
subclass says what was asked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import msgspec
import numpy as np
import pyarrow as pa

from sfumato.answers import AnyQuestion, Axes, Captions, Preview, Release, drawn, error_probability
from sfumato.basics import Array, Exactly, agreeing, column_of, ndarray_of, several, table_of
from sfumato.domain import NUMBERS, GridAxis, Label, LabelAxis, Lattice
from sfumato.errors import UsageError, require_fitting
from sfumato.mechanisms import Law
from sfumato.questions.quantiles.methods import AxisMethod, half_width, typical
from sfumato.questions.quantiles.ranks import Paid, PaidRanks, RankNoise, counted_gaps, floats

# --- preview --------------------------------------------------------------------------------------

ALPHA = 0.05


class QuantilesPreview(Preview, frozen=True):
    """What quantiles would cost, and how far their ranks may be from those asked for.

    Attributes
    ----------
    rows : int or None
        As stated by the data custodian.
    notes : tuple of str
        What each method is called.
    axis_methods : tuple of AxisMethod, "ways" in JSON
        How each axis is answered.
    labels : int
        The number of labels of ``by``; 1 without ``by``.
    """

    rows: int | None = None
    notes: tuple[str, ...] = ()
    axis_methods: tuple[AxisMethod, ...] = msgspec.field(default=(), name="ways")
    labels: int = 1

    @property
    def rows_needed(self) -> int:
        """About how many rows a label needs for all its values to be known."""
        # The value at q has about q n rows below it, less what the selection is typically off.
        # Their noisy number must exceed its own half-width, which its noise may bring down once
        # more.
        least = 0.0
        for method in self.axis_methods:
            noise = method.rank_noise
            gaps = len(method.at) + 1
            for j, q in enumerate(method.at, 1):
                below = noise.half_width(j, 0, Fraction(0), ALPHA) / q
                above = noise.half_width(0, gaps - j, Fraction(1), ALPHA) / (1 - q)
                off = Fraction(typical(method, ALPHA)) / min(q, 1 - q)
                least = max(least, float(2 * max(below, above) + off))
        return math.floor(least) + 1

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> int:
        """Rows by which a released rank may be off, for the value where that is most.

        The release keeps it, whatever the data. Where values turn out to be equal, fewer counts are
        needed and its accuracy is better.

        Parameters
        ----------
        confidence : number in (0, 1)
        simultaneous : bool
            True: the bound holds for all values together.
        """
        alpha = error_probability(confidence)
        if simultaneous:
            # The ranks of one axis share their noise, so only the union bound holds for all of them
            # at once.
            alpha /= max(self.cells or 1, 1)
        return max(widest(method.rank_noise, method.at, alpha) for method in self.axis_methods)

    def selection_accuracy(self, confidence: Exactly = "0.95") -> int:
        """Rows by which a chosen value's rank may be off the one asked for, whatever the data."""
        alpha = error_probability(confidence)
        return max(half_width(method, alpha) for method in self.axis_methods)

    def lines(self) -> list[str]:
        """How the values are chosen, and how far their ranks may be off."""
        typically = max(typical(method, ALPHA) for method in self.axis_methods)
        stated = f"within +-{self.accuracy():,} rows with 95% confidence"
        chosen = f"of the one asked for typically within {typically:,.0f} rows"
        worst = f"at worst within {self.selection_accuracy():,}, whatever the data"
        sentences = [
            f"chooses {several(self.cells or 0, 'lattice point')} by {', '.join(self.notes)}",
            f"of {self.unit.counted}, each has its rank released, {stated}",
            f"and {chosen}, {worst}; a tied value has all ranks of its rows",
        ]
        if self.cells and self.cells > 1:
            every = self.accuracy(simultaneous=True)
            sentences.append(f"all released ranks at once are within +-{every:,} rows")
        if self.rows:
            share = self.accuracy() * self.labels / self.rows
            divided = ", evenly divided," if self.labels > 1 else ""
            sentences.append(f"of {self.rows:,} rows{divided} that is {share:.2%}")
        sentences.append(self._intervals(typically))
        few = f"fewer than about {self.rows_needed:,} rows"
        of_label = "values of a label with" if self.labels > 1 else "with"
        subject = "" if self.labels > 1 else ", some of the values"
        return [*sentences, f"{of_label} {few}{subject} are marked as not known"]

    def _intervals(self, typically: float) -> str:
        away = math.ceil(2 * self.accuracy() + typically) + 1
        share = away * self.labels / self.rows if self.rows else 1
        of_rows = f" ({share:.1%} of them)" if share < 1 else ""
        other = f"another value, {away:,} rows or more away{of_rows}"
        single = {method.at for method in self.axis_methods if len(method.at) == 1}
        if len(single) != 1 or any(len(method.at) > 1 for method in self.axis_methods):
            return f"each interval ends at {other}, or at an end of the axis"
        ((at,),) = single
        return f"the interval is {WHOLE_AXIS}: {_ask_around(at)}, and it can end at {other}"


WHOLE_AXIS = "the whole axis, because this answer has no other value to end it at"


def _ask_around(at: Fraction) -> str:
    """Which quantiles to ask for, for the interval of one to be narrower than the axis."""
    aside = min(at, 1 - at) / 2
    listed = [f"{float(share):.4g}" for share in (at - aside, at, at + aside)]
    both = f"at=[{', '.join(listed)}] (command line: --at {','.join(listed)})"
    return f"ask for quantiles on both sides, too, such as {both}"


def widest(noise: RankNoise, at: Sequence[Fraction], alpha: float) -> int:
    """Return the largest half-width of the ranks of an axis on which no values are equal."""
    gaps = len(at) + 1
    return max(noise.half_width(j, gaps - j, q, alpha) for j, q in enumerate(at, 1))


def rows_needed(methods: Sequence[AxisMethod], rows_law: Law | None) -> int:
    """Return how many rows it takes for the ranks of all quantiles to lie surely within the rows.

    Parameters
    ----------
    methods : sequence of AxisMethod
    rows_law : law of noise, or None
        Of the noise on the number of rows, which the answer includes. None: the number is not
        released.
    """
    alpha = ALPHA if rows_law is None else ALPHA / 2
    least = 0.0
    for method in methods:
        nearest_end = float(min(*method.at, *(1 - q for q in method.at)))
        least = max(least, half_width(method, alpha) / nearest_end)
    # Twice: the released number may lie below the true one, and its lower bound lies below that.
    noise = 0 if rows_law is None else 2 * rows_law.half_width(ALPHA)
    return math.floor(least) + 1 + noise


# --- values ---------------------------------------------------------------------------------------


class QuantileValues(Release, frozen=True, kw_only=True, eq=False, dict=True):
    """Values on public lattice points that have about the asked shares of rows below them.

    A subclass says by its own ``question`` what was asked (``at`` and ``by``) and how each axis was
    answered (``axis_methods``).

    Attributes
    ----------
    question : Question
    lattice : Lattice
        The lattice on which the rows were counted.
    edges : int64 ndarray of shape (labels * axes * quantiles,)
        The chosen lattice points. Quantiles run fastest, labels slowest.
    rows : int64 ndarray of shape (labels or 1,), or None
        The noisy number of rows of each label, or of all rows; None where nothing paid for it.
    rows_law : DiscreteLaplace, DiscreteGaussian or None
        The noise on these numbers where they were drawn by themselves, as in releases whose ranks
        are not paid for.
    flags : tuple of bool, "known" in files
        Whether each value is known, in the order of ``edges``. Empty where no number of rows was
        paid for.
    gaps : int64 ndarray of shape (labels * axes * (quantiles + 1),), absent in earlier releases
        The noisy numbers of rows between the ends of an axis and its values, which ranks follow
        from. 0 between equal values of an axis without a step.
    """

    _in_details: ClassVar[frozenset[str]] = frozenset(
        {
            *("axes", "axis_methods", "edges", "flags", "gaps", "lattice", "paid", "rank_shares"),
            *("rows_law", "table"),
        }
    )

    noun: ClassVar[str] = "rank"
    amounts: ClassVar[frozenset[str]] = Release.amounts - {"low", "high"}
    measured_against: ClassVar[str] = "rows of the one asked for"

    @property
    def against(self) -> str:
        return self.measured_against if self._paid_ranks is None else "rows of the one stated"

    question: AnyQuestion
    lattice: Lattice
    edges: Array
    rows: Array | None = None
    rows_law: Law | None = None
    flags: tuple[bool, ...] = msgspec.field(default=(), name="known")
    gaps: Array | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        # A file may hold anything.
        sizes = np.array([axis.size for axis in self.axes])
        n_values = self._labels_number * len(sizes) * len(self.at)
        require_fitting(
            len(sizes) > 0 and len(self.edges) == n_values,
            "quantiles",
            "their number is not what the question asks for",
        )
        edges = self._edge_table
        is_inside = (edges >= 0) & (edges <= sizes[None, :, None])
        is_rising = np.diff(edges, axis=2) >= 0
        require_fitting(
            bool(is_inside.all() and is_rising.all()),
            "quantiles",
            "they are not lattice points in order",
        )
        ranks = self._paid_ranks
        if ranks is not None:
            # Rows follow from the counts of gaps. A file shows them, but is not believed.
            msgspec.structs.force_setattr(self, "rows", ranks.rows)
            msgspec.structs.force_setattr(self, "rows_law", None)
        elif self.rows is not None:
            require_fitting(
                self.rows_law is not None and self.rows.shape == (self._labels_number,),
                "quantiles",
                "a number of rows belongs to each label",
            )
        # The flags are always computed anew. A file shows them to its readers, but is not believed.
        msgspec.structs.force_setattr(self, "flags", tuple(self._flags().reshape(-1).tolist()))

    @property
    def at(self) -> tuple[Fraction, ...]:
        """The quantiles asked for."""
        raise NotImplementedError

    @property
    def by(self) -> str | None:
        """The axis whose labels divide the rows; None: all rows are taken together."""
        raise NotImplementedError

    @property
    def axis_methods(self) -> Mapping[str, AxisMethod]:
        """How each axis was answered, by its name."""
        raise NotImplementedError

    @property
    def paid(self) -> Paid:
        """What the cost paid for beside the values."""
        if self.gaps is not msgspec.UNSET:
            return Paid.RANKS
        return Paid.VALUES if self.rows is None else Paid.ROWS

    @cached_property
    def _paid_ranks(self) -> PaidRanks | None:
        """The ranks of all values; None in earlier releases, whose ranks are not paid for."""
        if self.gaps is msgspec.UNSET:
            return None
        shape = (self._labels_number, len(self.axes), len(self.at) + 1)
        require_fitting(
            self.gaps.shape == (math.prod(shape),),
            "quantiles",
            "a number of rows belongs to each gap between values",
        )
        counted = [
            counted_gaps(self._edge_table[:, i], axis.size, axis.snap)
            for i, axis in enumerate(self.axes)
        ]
        gaps = self.gaps.reshape(shape)
        counted_table = np.stack(counted, axis=1)
        require_fitting(
            not gaps[~counted_table].any(), "quantiles", "there are rows between equal values"
        )
        noises = tuple(method.rank_noise for method in self.axis_methods.values())
        return PaidRanks(self.at, noises, counted_table, gaps)

    def numbers(self) -> tuple[int, ...]:
        """The chosen lattice points, then the numbers of rows between them, or of the labels."""
        counts = self.rows if self.gaps is msgspec.UNSET else self.gaps
        return (*self.edges.tolist(), *(() if counts is None else counts.tolist()))

    def _flags(self) -> Array:
        """Whether each value is known: bool ndarray like ``table``; empty where that is unknown.

        A value is known if both the rank asked for and the rank of the value lie surely inside the
        group: if the rank error is below q n and below (1 - q) n. Otherwise the value may lie
        anywhere on one side, or on both. The bound on the rank error and the lower bound on n hold
        together with 95% confidence.

        A value whose rank is paid for is also known if noisy counts say that rows lie on both sides
        of it. Each of the two reasons then gets half of what is left to error.
        """
        ranks = self._paid_ranks
        if ranks is not None:
            # Together these err with probability ALPHA: known ranks take half of it, the fewest
            # rows and the bounds a quarter each.
            of_bounds = self._within_bounds(ranks.fewest_rows(ALPHA / 2), ALPHA / 4)
            return np.asarray(ranks.known(ALPHA / 2) | of_bounds)
        if self.rows is None or self.rows_law is None:
            return np.zeros(0, bool)
        # Half of ALPHA goes to the rank error. The other half goes to the lower bound on n: a
        # two-sided half-width at ALPHA exceeds its one side with probability ALPHA / 2.
        least_rows = self.rows - self.rows_law.half_width(ALPHA)
        return self._within_bounds(least_rows, ALPHA / 2)

    def _within_bounds(self, least_rows: Array, alpha: float) -> Array:
        """Tell whether the bounds of rank errors at alpha are within the rows: bool ndarray like
        ``table``.
        """
        rank_errors = np.array([half_width(method, alpha) for method in self.axis_methods.values()])
        nearest_end = floats([min(q, 1 - q) for q in self.at])
        rows_beyond = nearest_end[None, None, :] * least_rows[:, None, None]
        return np.asarray(rank_errors[None, :, None] < rows_beyond)

    @property
    def known(self) -> Array | None:
        """Whether each value is known: bool ndarray like ``values``, or None.

        None where no number of rows was paid for. A label with fewer rows than the rank error gets
        values that say nothing. They stand in ``values``, and are marked here.
        """
        if not self.flags:
            return None
        return self._shaped(np.array(self.flags).reshape(self.table.shape))

    @property
    def unknowns(self) -> str:
        """A sentence that says which values are not known; empty where all are."""
        if not self.flags:
            where = "With" if self.by is None else "In a label with"
            needed = rows_needed(list(self.axis_methods.values()), None)
            return f"{where} fewer than {needed:,} rows counted, some of the values are not known."
        unknown = len(self.flags) - sum(self.flags)
        if not unknown:
            return ""
        verb = agreeing(unknown, "are")
        where = "there are too few rows" if self.by is None else "their labels have too few rows"
        return f"{unknown:,} of {len(self.flags):,} values {verb} not known: {where}."

    @property
    def facts(self) -> tuple[str, ...]:
        """What the columns of the table mean, and where an interval is not bounded by a value."""
        if self._paid_ranks is None:
            return (
                "Nothing is known of the values but the ends of the axis: no rows were counted.",
            )
        of = self.guarantee.unit.counted
        interval = (
            f"Low and high: the true quantile of {of} lies between them, with 95% confidence."
        )
        rank = f"Rank: the estimated share of {of} that lie below the value."
        # An end of the axis bounds what no released value surely does.
        last_below, first_above = self._around("0.95", False)
        below = last_below < 0
        above = first_above == len(self.at)
        if len(self.at) == 1 and (below & above).all():
            known = f"The interval is {WHOLE_AXIS}; the rank says how good the value is."
            return f"{known} To narrow it, {_ask_around(self.at[0])}.", rank
        at_ends = int(below.sum() + above.sum())
        if not at_ends:
            return interval, rank
        bounded = (
            f"{at_ends:,} of these {2 * self.table.size:,} ends are ends of the axis: no value of "
            "this answer surely lies on that side. Ask for quantiles nearby to narrow them."
        )
        return interval, bounded, rank

    @property
    def axes(self) -> tuple[GridAxis, ...]:
        """The axes whose quantiles these are."""
        return self.lattice.grids

    @property
    def labels(self) -> tuple[Label, ...]:
        """The labels of ``by``; empty without ``by``."""
        first = self.lattice.axes[0]
        return first.labels if self.by and isinstance(first, LabelAxis) else ()

    @property
    def _labels_number(self) -> int:
        """How often the quantiles are answered: once for each label, or once."""
        return len(self.labels) if self.by else 1

    @property
    def _edge_table(self) -> Array:
        return self.edges.reshape(self._labels_number, len(self.axes), len(self.at))

    @cached_property
    def table(self) -> Array:
        """The values: float64 ndarray of shape (labels or 1, axes, quantiles).

        Dates count days since 1970, times microseconds.
        """
        columns = []
        for i, axis in enumerate(self.axes):
            points = axis.points(self._edge_table[:, i].reshape(-1))
            columns.append(points.reshape(self._labels_number, -1))
        return np.stack(columns, axis=1)

    @property
    def values(self) -> Array:
        """The values: float64 ndarray of shape ([labels,] [axes,] quantiles).

        A single axis has no dimension, nor has a missing ``by``.
        """
        return self._shaped(self.table)

    def _shaped(self, table: Array) -> Array:
        """Drop the dimensions of the table that the question does not have."""
        labels, axes, quantiles = table.shape
        by_label = (labels,) if self.by is not None else ()
        by_axis = (axes,) if len(self.axes) > 1 else ()
        return table.reshape((*by_label, *by_axis, quantiles))

    @property
    def title(self) -> str:
        return self.question.title

    @property
    def ranks(self) -> Array | None:
        """The estimated share of rows below each value: float64 ndarray like ``values``, or None.

        NaN where no row is estimated to exist. None in releases whose ranks are not paid for. On an
        axis with a step, a value that several rows share has all ranks of these rows; this is one
        of them.
        """
        return None if self._paid_ranks is None else self._shaped(self._paid_ranks.shares)

    @property
    def rank_shares(self) -> Array:
        """``ranks``, or the quantiles asked for where ranks are not paid for: like ``table``."""
        asked_shares = np.broadcast_to(floats(self.at), self.table.shape)
        if self._paid_ranks is None:
            return asked_shares
        estimated = self._paid_ranks.shares
        return np.where(np.isnan(estimated), asked_shares, estimated)

    def rank_interval(
        self, confidence: Exactly = "0.95", simultaneous: bool = False
    ) -> tuple[Array, Array]:
        """Lowest and highest share of the rows that may lie below each value, each like ``values``.

        Parameters
        ----------
        confidence : number in (0, 1)
        simultaneous : bool
            True: the intervals hold for all values together.

        Raises
        ------
        UsageError
            If the ranks are not paid for, as in releases of before: their number of rows is not
            released.
        """
        alpha = error_probability(confidence)
        if self._paid_ranks is None:
            raise UsageError(
                "intervals of ranks as shares",
                "this release has no noisy counts between its values",
                "Use accuracy(), which is in rows, or release the quantiles again",
            )
        low, high = self._paid_ranks.intervals(alpha, self.table.size if simultaneous else 1)
        return self._shaped(low), self._shaped(high)

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> Array:
        """By how many rows each rank may be off, for any data: int64 ndarray like ``values``.

        It is about ranks, as in a preview, and is the column ``rank_error`` of a table.
        ``interval`` is about the values. Let n(v) be the rows below a value v. Then n(v) - at *
        (all rows) is within ``accuracy`` of what the noisy counts say it is. The law is exact: the
        noise of a paid rank is a weighted sum of independent draws. On an axis with a step, n(v) is
        one of the ranks of the rows that share the value v.

        In releases of before, ranks are not paid for. There a value stands for its cell. Let a be
        the number of rows below that cell, and b the number of rows in or below it. Then at * (all
        rows) is within ``accuracy`` of the interval [a, b]. Where a cell holds w rows, add w / (2 *
        subcells), with ``axis_methods[axis].subcells``. ``quantiles/methods.py`` gives the
        reasons.

        Parameters
        ----------
        confidence : number in (0, 1)
        simultaneous : bool
            True: the bounds hold for all values together.
        """
        alpha = error_probability(confidence)
        if self._paid_ranks is not None:
            share = alpha / self.table.size if simultaneous else alpha
            return self._shaped(self._paid_ranks.half_widths(share))
        together = self._labels_number * len(self.axes) if simultaneous else 0
        half = [half_width(method, alpha, together) for method in self.axis_methods.values()]
        table = np.broadcast_to(np.array(half, np.int64)[None, :, None], self.table.shape)
        # A copy, since a broadcast array cannot be written to.
        return self._shaped(table.copy())

    def interval(
        self, confidence: Exactly = "0.95", simultaneous: bool = False
    ) -> tuple[Array, Array]:
        """Between which numbers the true quantiles of the rows counted lie, each like ``values``.

        The ends are released values of the same label and axis, or ends of the axis where no
        released value surely lies on that side. To have a narrow interval
        around the median, ask for quantiles on either side of it: ``at=[0.45, 0.5, 0.55]``. Where
        ranks are not paid for, as in releases of before, nothing is known but the ends of the axis.

        They hold for any data, by the law of the noise of the ranks, and for every usual definition
        of a quantile. Values beyond the bounds count as the bounds, and on an axis with a step,
        each value counts as its step. How far the *rank* of a value may be off say ``accuracy`` and
        ``rank_interval``.

        Parameters
        ----------
        confidence : number in (0, 1)
        simultaneous : bool
            True: the intervals hold for all values together.
        """
        last_below, first_above = self._around(confidence, simultaneous)
        low = np.empty(self.table.shape)
        high = np.empty(self.table.shape)
        for i, axis in enumerate(self.axes):
            # One number more at either end: what holds without any released value.
            ends = np.full((self._labels_number, 2), axis.ends)
            below = np.concatenate([ends[:, :1], self.table[:, i]], axis=1)
            largest = self.table[:, i]
            if axis.snap:
                # A step stands for all that counts as it; what lies beyond the last counts as that.
                of_steps = np.append(axis.extremes()[1][:-1], axis.ends[1])
                largest = of_steps[np.minimum(self._edge_table[:, i], axis.cells - 1)]
            above = np.concatenate([largest, ends[:, 1:]], axis=1)
            low[:, i] = np.take_along_axis(below, last_below[:, i] + 1, axis=1)
            high[:, i] = np.take_along_axis(above, first_above[:, i], axis=1)
        return self._shaped(low), self._shaped(high)

    def _around(self, confidence: Exactly, simultaneous: bool) -> tuple[Array, Array]:
        """Which values bound each true quantile: see ``PaidRanks.around``."""
        alpha = error_probability(confidence)
        if self._paid_ranks is None:
            return np.full(self.table.shape, -1), np.full(self.table.shape, len(self.at))
        return self._paid_ranks.around(alpha / self.table.size if simultaneous else alpha)

    def cells(self) -> tuple[Array, Array]:
        """Lowest and highest number that the rows behind each value may have, each like ``values``.

        On an axis with a step these are the lowest and highest step of the value's cell. Where
        cells are steps, both are the value itself. On other axes a value is an end of the cell in
        which the chosen edge lies: the upper end of one cell, or the lower end of the next. Both
        cells are given together. So 500 rows at 3 may have the median 3.0000019, and their 3 lies
        between these numbers.
        """
        low = np.empty(self.table.shape)
        high = np.empty(self.table.shape)
        for i, axis in enumerate(self.axes):
            chosen = self._edge_table[:, i]
            if axis.snap:
                lowest_step, highest_step = axis.extremes()
                cell = np.minimum(chosen, axis.cells - 1)
                low[:, i] = lowest_step[cell]
                high[:, i] = highest_step[cell]
            else:
                below = np.maximum(chosen - 1, 0)
                above = np.minimum(chosen + 1, axis.cells)
                low[:, i] = axis.points(below.reshape(-1)).reshape(chosen.shape)
                high[:, i] = axis.points(above.reshape(-1)).reshape(chosen.shape)
        return self._shaped(low), self._shaped(high)

    def in_digits(self, table: pa.Table) -> pa.Table:
        """The table with the digits that people need; ranks by how far they may be off."""

        table = super().in_digits(table)
        if "rank" not in table.column_names:
            return table
        rows = np.maximum(ndarray_of(table["rows"]), 1)
        off = ndarray_of(table["rank_error"]) / rows
        ranks = super().in_digits(table_of({"rank": table["rank"], "rank_error": off}))
        return table.set_column(table.column_names.index("rank"), "rank", ranks["rank"])

    @property
    def label_columns(self) -> tuple[str, ...]:
        return () if self.by is None else (self.by,)

    def to_frame(self) -> pa.Table:
        """One row per value.

        The columns are: the label, if ``by`` is given; axis, if there are several; quantile, value,
        low and high (its interval, 95%), rank, the estimated share of rows below the value,
        rank_error (95%, in rows), rows, the noisy number of the rows or of the label's rows, known,
        which says whether the value is known, and cell_low and cell_high (see ``cells``). Releases
        of before lack rank, and have rows and known only if ``by`` is given.
        """

        label, axis, quantile = (index.reshape(-1) for index in np.indices(self.table.shape))
        columns: dict[str, pa.Array | Array | list[str]] = {}
        if self.by:
            columns[self.by] = self._label_column(label)
        if len(self.axes) > 1:
            columns["axis"] = [self.axes[i].name for i in axis]
        columns["quantile"] = floats(self.at)[quantile]
        # A column has one type. Values of axes with different units of time stay plain numbers.
        scales = {grid.scale for grid in self.axes}
        scale = scales.pop() if len(scales) == 1 else NUMBERS
        low, high = self.interval()
        columns["value"] = scale.array(self.table.reshape(-1))
        columns["low"] = scale.array(low.reshape(-1))
        columns["high"] = scale.array(high.reshape(-1))
        if self._paid_ranks is not None:
            shares = self._paid_ranks.shares.reshape(-1)
            columns["rank"] = column_of(shares, np.isnan(shares))
        columns["rank_error"] = self.accuracy().reshape(-1)
        if self.rows is not None:
            columns["rows"] = self.rows[label]
            columns["known"] = np.array(self.flags)
        low, high = self.cells()
        columns["cell_low"] = scale.array(low.reshape(-1))
        columns["cell_high"] = scale.array(high.reshape(-1))
        return table_of(columns)

    def _label_column(self, which: Array) -> pa.Array | list[str]:
        """Return the labels with these indices, as text unless all labels share one type."""

        if len({type(label) for label in self.labels}) == 1:
            return column_of(self.labels).take(column_of(which))
        return [str(self.labels[i]) for i in which]

    def _named(self, captions: Captions) -> Self:
        return msgspec.structs.replace(self, lattice=captions.lattice(self.lattice))

    def plot(self, ax: Axes | None = None, rows: int | None = None) -> Axes:
        """Draw a cumulative curve through the values, or with ``by`` a box for each label.

        Parameters
        ----------
        ax : matplotlib Axes or None
        rows : int or None
            Your own public number of rows. It turns rank errors into a band around the curve.
        """
        return drawn("quantiles.draw", self, ax, rows)
