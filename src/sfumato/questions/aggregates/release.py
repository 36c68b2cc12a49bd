"""Releases of means, sums and variances: noisy sums of each group, and what follows from them.

``AggregateRelease`` is what they have in common. The releases of a mean, of a sum and of a variance
differ in which statistic ``values`` is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

import msgspec
import numpy as np

from sfumato.answers import Captions, Release, cell_columns, drawn, error_probability
from sfumato.basics import Array, Exactly, agreeing, column_of, sidak, table_of
from sfumato.domain import Lattice
from sfumato.errors import UsageError, nearest, printable
from sfumato.mechanisms import Law
from sfumato.questions.aggregates import value_sums
from sfumato.questions.aggregates.clips import Spans
from sfumato.questions.aggregates.intervals import Bounds
from sfumato.questions.aggregates.value_sums import ValueSums
from sfumato.questions.aggregates.values import Basis, Values

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes


# --- what all have in common ----------------------------------------------------------------------

CONFIDENCE = "0.95"  # at which a statistic counts as known or not


class Statistic(NamedTuple):
    """A statistic of one value: functions of its sums, which return arrays of shape (groups,).

    Attributes
    ----------
    values : callable
        The statistic itself.
    interval : callable
        Also given alpha: intervals that each miss with this probability.
    taken : callable
        Also given alpha: by how much a chosen clip lowers the statistic, about and at most.
    is_informative : callable
        Also given the ends of intervals: where they are not all that was possible beforehand.
    is_of_rows : callable
        Also given alpha: where there is anything that the statistic could be of. A group whose
        number of rows cannot be told from 0 has no mean that a reader could believe.
    """

    values: Callable[[ValueSums], Array]
    interval: Callable[[ValueSums, float], Bounds]
    taken: Callable[[ValueSums, float], Bounds]
    is_informative: Callable[[ValueSums, Array, Array], Array]
    is_of_rows: Callable[[ValueSums, float], Array]


class AggregateRelease(Release, frozen=True, kw_only=True, eq=False):
    """Noisy sums over the rows of each group, and the statistics of a value that follow from them.

    With ``per="person"`` they are sums over persons, each of whom has one value in a group.

    A release has every statistic that its sums allow, whichever was asked for: ``counts``,
    ``sums``, ``means`` and ``variances``. A subclass says which of them is ``values``.

    If several values were asked for, every array has one more dimension, the first: the values, in
    the order of ``names``. ``release["wage"]`` is the release of one of them.

    Attributes
    ----------
    scale : Values
        The values that were added up.
    basis : Basis
        The functions of a value that were summed: see ``aggregates.values``.
    lattice : Lattice
        The groups; without axes all rows are one group.
    released : int64 ndarray of shape (groups * k,)
        Noisy sums of the k functions; the functions run fastest.
    law : DiscreteLaplace or DiscreteGaussian
        The noise on each of them, independent of the others.
    knot_indices : int64 ndarray of shape (groups,)
        The knot at which each group's values are clipped; unset unless ``clip="auto"``.
    spans : Spans
        The knots that each group's estimate takes, with ``clip="auto"``; unset in answers of
        version 0.2.0, whose estimates take all knots.
    others : tuple of ValueSums
        The sums of further values, over the same groups; unset if one value was asked for.

    >>> import numpy as np, sfumato as sf
    >>> domain = sf.Domain(age=sf.Interval(0, 100), stay=sf.Interval(0, 30, step=1))
    >>> stays = np.array([[31.0, 2], [35.0, 4], [64.0, 9]])
    >>> src = sf.source(stays, domain, name="stays")
    >>> release = sf.Publisher(src, budget="1").release(sf.Mean("stay"), epsilon="1")
    >>> isinstance(release, sf.AggregateRelease)
    True
    >>> release.means.shape, release.sums.shape, release.counts.shape
    ((), (), ())
    """

    _in_details: ClassVar[frozenset[str]] = frozenset(
        {
            *("basis", "drawn", "knot_indices", "lattice", "law", "others", "released", "scale"),
            *("spans", "tables", "unit_form"),
        }
    )

    scale: Values
    basis: Basis
    lattice: Lattice
    released: Array
    law: Law
    knot_indices: Array | msgspec.UnsetType = msgspec.UNSET
    spans: Spans | msgspec.UnsetType = msgspec.UNSET
    others: tuple[ValueSums, ...] | msgspec.UnsetType = msgspec.UNSET
    _statistic: ClassVar[Statistic]
    unit_form: ClassVar[str] = "{}"  # what the statistic is measured in, by its values' unit

    def __post_init__(self) -> None:
        for sums in self.tables:
            sums.require_groups(self.lattice.size)

    @cached_property
    def tables(self) -> tuple[ValueSums, ...]:
        """The noisy sums of each value."""
        first = ValueSums(
            self.scale, self.basis, self.released, self.law, self.knot_indices, self.spans
        )
        return (first,) if self.others is msgspec.UNSET else (first, *self.others)

    @property
    def names(self) -> tuple[str, ...]:
        """The values that were asked for."""
        return tuple(sums.scale.name for sums in self.tables)

    def __getitem__(self, name: str) -> Self:
        """Return the release of one of the values, with the guarantee and the receipt of all.

        Raises
        ------
        UsageError
            If no value of that name was asked for.
        """
        if name not in self.names:
            obstacle = f"there is no value of that name; {nearest(name, self.names)}"
            raise UsageError(f"{self.title}, of {printable(name)}", obstacle, "Name one of them")
        sums = self.tables[self.names.index(name)]
        return self._of(self.lattice, [sums])

    # --- what it says of itself -------------------------------------------------------------------

    @property
    def title(self) -> str:
        by = " and ".join(map(printable, self.lattice.names))
        title = f"{self.noun.capitalize()} of {' and '.join(map(printable, self.names))}"
        if self.of_persons:
            title += f" over {self._counted_things}"
        alone = title.removesuffix(",")  # "riders, each once for each day," closes with one
        if not self._clipped:
            return f"{title} by {by}" if by else alone
        return f"{alone}, each clipped, by {by}" if by else f"{alone}{self._clipped}"

    @property
    def about(self) -> str:
        """Which rows or persons the answer is about, and how their values were read."""
        cut = "".join(dict.fromkeys(sums.scale.cut for sums in self.tables))
        return f"{super().about}{value_sums.of_each_person(self.scale)}{cut}{self._clipped}"

    @property
    def of_persons(self) -> bool:
        """Whether each person has one value in a group, in place of each row."""
        return self.scale.persons is not msgspec.UNSET

    @property
    def _counted_things(self) -> str:
        """What is counted, as sentences call it: "rows", or several persons such as "riders"."""
        return self.guarantee.unit.several if self.of_persons else "rows"

    @property
    def unknowns(self) -> str:
        """Sentences on what clips leave out, and on how many groups are not known."""
        sentences = []
        alpha = error_probability(CONFIDENCE)
        if self._has_chosen_clips and not self.lattice.axes:
            sentences.append(value_sums.above_clip(self.tables, alpha, self._counted_things))
        if self._has_chosen_clips and self.spans is not msgspec.UNSET:
            for sums in self.tables:
                taken = self._statistic.taken(sums, alpha)
                lowered = value_sums.lowered_by(sums, *taken, self.noun, len(self.tables))
                sentences.append(lowered)
        unknown = int(np.isnan(self.values).sum())
        if unknown:
            are = agreeing(unknown, "are")
            sentences.append(f"{unknown:,} of {self.values.size:,} {are} not known.")
        return " ".join(filter(None, sentences))

    @property
    def parts(self) -> Mapping[str, Release]:
        """The release of each value, by name; empty if one value was asked for."""
        return {name: self[name] for name in self.names} if len(self.tables) > 1 else {}

    @property
    def _has_chosen_clips(self) -> bool:
        return self.knot_indices is not msgspec.UNSET

    @property
    def _clipped(self) -> str:
        """A clause for reports: to what values are clipped."""
        return value_sums.clipped(self.tables) if self._has_chosen_clips else ""

    # --- statistics -------------------------------------------------------------------------------

    @property
    def values(self) -> Array:
        """The statistic that was asked for."""
        return self._stacked(self._statistic.values)

    @property
    def counts(self) -> Array:
        """Noisy numbers of rows, or of persons: float64 ndarray like ``values``."""
        return self._stacked(lambda sums: sums.counts)

    @property
    def sums(self) -> Array:
        """Noisy sums of the values: float64 ndarray like ``values``."""
        return self._stacked(lambda sums: sums.sums)

    @property
    def means(self) -> Array:
        """Noisy means: float64 ndarray like ``values``; NaN where not known."""
        return self._stacked(lambda sums: sums.means)

    @property
    def variances(self) -> Array:
        """Noisy variances: float64 ndarray like ``values``; NaN where not known.

        The variance of n values divides their squared deviations from the mean by n.

        Raises
        ------
        UsageError
            If the published sums do not have them: ask for ``sf.Variance``.
        """
        return self._stacked(lambda sums: sums.variances)

    @property
    def clips(self) -> Array:
        """The value to which those of each group are clipped: float64 ndarray like ``values``.

        It is the upper bound unless the clip was chosen, with ``clip="auto"``.
        """
        return self._stacked(lambda sums: sums.clips)

    @property
    def above(self) -> Array:
        """At most how many rows, or persons, lie above the knot next to each clip.

        An int64 ndarray like ``values``. Each number holds with 95% confidence. The next knot is
        twice as far from the lower bound as the clip. Where no clip was chosen there are none.
        """
        return self._stacked(lambda sums: sums.above(error_probability(CONFIDENCE)))

    @property
    def lowered(self) -> Array:
        """By about how much a chosen clip lowers each value, as estimated: like ``values``.

        NaN where no clip was chosen, and in answers of version 0.2.0.
        """
        alpha = error_probability(CONFIDENCE)
        return self._stacked(lambda sums: self._statistic.taken(sums, alpha)[0])

    @property
    def lowered_at_most(self) -> Array:
        """By how much the clip lowers each value at most, with 95% confidence: like ``values``.

        NaN where that is not known, where no clip was chosen, and in answers of version 0.2.0.
        """
        alpha = error_probability(CONFIDENCE)
        return self._stacked(lambda sums: self._statistic.taken(sums, alpha)[1])

    # --- intervals --------------------------------------------------------------------------------

    def interval(
        self, confidence: Exactly = CONFIDENCE, simultaneous: bool = False
    ) -> tuple[Array, Array]:
        """Lower and upper ends of the intervals, each like ``values``.

        They hold at every number of rows, also for a group of none. Where nothing is known they are
        all that was possible beforehand.

        Parameters
        ----------
        confidence : number in (0, 1)
        simultaneous : bool
            False: each interval holds with this confidence. True: all of them hold together.
        """
        alpha = error_probability(confidence)
        if simultaneous:
            alpha = sidak(alpha, self.lattice.size * len(self.tables))
        low, high = zip(
            *(self._statistic.interval(sums, alpha) for sums in self.tables), strict=True
        )
        return self._together(low), self._together(high)

    def accuracy(self, confidence: Exactly = CONFIDENCE, simultaneous: bool = False) -> Array:
        """The largest distance of the truth from each value, within the interval.

        Where the value is not known, it is half of the width of the interval.

        Parameters
        ----------
        confidence : number in (0, 1)
        simultaneous : bool
            False: each interval holds with this confidence. True: all of them hold together.
        """
        low, high = self.interval(confidence, simultaneous)
        values = self.values
        further = np.maximum(values - low, high - values)
        return np.where(np.isnan(values), (high - low) / 2, further)

    def drawn(self, confidence: Exactly = CONFIDENCE) -> tuple[Array, Array, Array]:
        """What pictures and tables show: which groups are known, and the ends of their intervals.

        A mean or a variance is not known where the number of rows cannot be told from 0. Some
        groups look known only because of their noise. So the more groups are left out as not known,
        the wider are the intervals of the others. On average at most ``1 - confidence`` of the
        intervals shown miss the truth (Benjamini, Yekutieli 2005: the false coverage rate). That
        holds for what is left out for its own number of rows, too: whether it is depends on no
        other group.

        Returns
        -------
        known : bool ndarray like ``values``
        low, high : float64 ndarrays like ``values``
        """
        alpha = error_probability(confidence)
        known, low, high = zip(*(self._drawn_of(sums, alpha) for sums in self.tables), strict=True)
        return self._together(known), self._together(low), self._together(high)

    def _drawn_of(self, sums: ValueSums, alpha: float) -> tuple[Array, Array, Array]:
        known = ~np.isnan(self._statistic.values(sums)) & self._statistic.is_of_rows(sums, alpha)
        if not known.any():
            return known, *self._statistic.interval(sums, alpha)

        def alpha_of(n_shown: int) -> float:
            return alpha * max(n_shown, 1) / len(known)

        # Whoever is known at the level of half as many groups is so at every level down to it. The
        # loop below then looks at few groups.
        fewest = int(known.sum()) // 2
        stays = known & self._known_at(sums, known, alpha_of(fewest))
        if stays.sum() < fewest:
            stays = np.zeros_like(known)
        n_shown = 0
        # The number of groups shown decides how wide their intervals are. Wider intervals may leave
        # out more groups. Groups are only ever left out, so this ends.
        while n_shown != known.sum():
            n_shown = int(known.sum())
            doubtful = known & ~stays
            known = stays | self._known_at(sums, doubtful, alpha_of(n_shown))
        return known, *self._statistic.interval(sums, alpha_of(n_shown))

    def _known_at(self, sums: ValueSums, groups: Array, alpha: float) -> Array:
        """Which of some groups have an interval that says something: bool ndarray like these."""
        known = groups.copy()
        if groups.any():
            some = sums.of_groups(groups)
            interval = self._statistic.interval(some, alpha)
            known[groups] = self._statistic.is_informative(some, *interval)
        return known

    # --- forms ------------------------------------------------------------------------------------

    @property
    def group_names(self) -> list[str]:
        """A name for each group, the last axis running fastest."""
        if not self.lattice.axes:
            return ["all persons" if self.of_persons else "all rows"]
        names_by_axis = [axis.cell_names() for axis in self.lattice.axes]
        return [", ".join(names) for names in product(*names_by_axis)]

    def numbers(self) -> tuple[int, ...]:
        """The published integers, in the order in which they were drawn."""
        return tuple(number for sums in self.tables for number in sums.released.tolist())

    def to_frame(self) -> pa.Table:
        """One row per group: its axes, rows, the statistic, low, high (95%), known.

        Where each person has one value, the numbers of persons stand in ``persons``, not ``rows``.
        ``low`` and ``high`` are those of ``drawn``; the statistic is null where it is not known. A
        clip that was chosen adds the columns ``clip``, ``above`` and ``lowered``, the latter with
        ``lowered_low`` and ``lowered_high``: null where it is not known how much it is at most.
        With several values there is one row per value and group, and a first column ``value``.
        """
        import pyarrow as pa

        if len(self.tables) > 1:
            frames = [self[name].to_frame() for name in self.names]
            of_value = [
                frame.add_column(0, "value", column_of([name] * frame.num_rows))
                for name, frame in zip(self.names, frames, strict=True)
            ]
            return pa.concat_tables(of_value)
        known, low, high = self.drawn()
        shown = known.ravel()
        counts = np.rint(self.counts.ravel()).astype(np.int64)
        numbers = {
            "persons" if self.of_persons else "rows": counts,
            self.noun: column_of(self.values.ravel(), ~shown),
            "low": low.ravel(),
            "high": high.ravel(),
            "known": shown,
        }
        if self._has_chosen_clips:
            numbers["clip"] = self.clips.ravel()
            numbers["above"] = self.above.ravel()
        if self.spans is not msgspec.UNSET:
            most = self.lowered_at_most.ravel()
            unknown = np.isnan(most)
            numbers["lowered"] = self.lowered.ravel()
            numbers["lowered_low"] = column_of(np.zeros(len(most)), unknown)
            numbers["lowered_high"] = column_of(most, unknown)
        return table_of(cell_columns(self.lattice) | numbers)

    @property
    def layout(self) -> tuple[str, ...]:
        return self.lattice.names

    def _transposed(self, order: Sequence[int]) -> Self:
        lattice = Lattice(tuple(self.lattice.axes[i] for i in order))
        tables = [sums.arranged(self.lattice.shape, order) for sums in self.tables]
        return self._of(lattice, tables)

    def _named(self, captions: Captions) -> Self:
        lattice = captions.lattice(self.lattice, grouping=True)
        names = [captions.axis_name(name, self.unit_form) for name in self.names]
        return self._of(lattice, list(map(ValueSums.named, self.tables, names)))

    def _of(self, lattice: Lattice, tables: Sequence[ValueSums]) -> Self:
        """Return the same statistic of these sums, over these groups."""
        first, *others = tables
        return msgspec.structs.replace(
            self,
            lattice=lattice,
            scale=first.scale,
            basis=first.basis,
            released=first.released,
            law=first.law,
            knot_indices=first.knot_indices,
            spans=first.spans,
            others=tuple(others) or msgspec.UNSET,
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw a point and an interval for each group, and hatch the groups that are not known.

        Several values differ in scale, so each has a panel of its own. The Axes of the first are
        returned; ``ax.figure.axes`` has all.

        Raises
        ------
        UsageError
            If ``ax`` is given for several values.
        """
        return drawn("aggregates.draw", self, ax)

    def _stacked(self, of: Callable[[ValueSums], Array]) -> Array:
        return self._together([of(sums) for sums in self.tables])

    def _together(self, by_value: list[Array] | tuple[Array, ...]) -> Array:
        """Lay arrays of shape (groups,), one for each value, along the axes of the groups."""
        shaped = [numbers.reshape(self.lattice.shape) for numbers in by_value]
        return shaped[0] if len(shaped) == 1 else np.stack(shaped)


# --- a release for each statistic -----------------------------------------------------------------


class MeanRelease(
    AggregateRelease,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="mean-release",
    forbid_unknown_fields=True,
):
    """The mean of a value in each group; see ``AggregateRelease`` for its attributes.

    ``values`` are means: a float64 ndarray with one dimension per axis; NaN where not known.

    >>> import numpy as np, sfumato as sf
    >>> domain = sf.Domain(age=sf.Interval(0, 100), stay=sf.Interval(0, 30, step=1))
    >>> stays = np.array([[31.0, 2], [35.0, 4], [64.0, 9]])
    >>> src = sf.source(stays, domain, name="stays")
    >>> release = sf.Publisher(src, budget="1").release(sf.Mean("stay"), epsilon="1")
    >>> release.values.shape, release.heading
    ((), 'Mean of stay')
    >>> release.sums.shape, release.counts.shape  # the mean is their quotient
    ((), ())
    """

    noun: ClassVar[str] = "mean"
    amounts: ClassVar[frozenset[str]] = AggregateRelease.amounts - {"low", "high"}

    _statistic: ClassVar[Statistic] = Statistic(
        values=lambda sums: sums.means,
        interval=ValueSums.mean_interval,
        taken=ValueSums.taken_from_means,
        is_informative=lambda sums, low, high: (low > sums.scale.lower) | (high < sums.clips),
        is_of_rows=ValueSums.has_rows,
    )


class SumRelease(
    AggregateRelease,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="sum-release",
    forbid_unknown_fields=True,
):
    """The sum of a value in each group; see ``AggregateRelease`` for its attributes.

    ``values`` are sums: a float64 ndarray with one dimension per axis.

    >>> import numpy as np, sfumato as sf
    >>> domain = sf.Domain(age=sf.Interval(0, 100), stay=sf.Interval(0, 30, step=1))
    >>> stays = np.array([[31.0, 2], [35.0, 4], [64.0, 9]])
    >>> src = sf.source(stays, domain, name="stays")
    >>> release = sf.Publisher(src, budget="1").release(sf.Sum("stay"), epsilon="1")
    >>> release.values.shape, release.heading
    ((), 'Sum of stay')
    >>> low, high = release.interval(confidence="0.95")
    >>> bool(low < release.values < high)
    True
    """

    noun: ClassVar[str] = "sum"

    _statistic: ClassVar[Statistic] = Statistic(
        values=lambda sums: sums.sums,
        interval=ValueSums.sum_interval,
        taken=ValueSums.taken_from_sums,
        is_informative=lambda sums, low, high: np.ones(low.shape, bool),
        # The sum over no rows is 0.
        is_of_rows=lambda sums, alpha: np.ones(sums.counts.shape, bool),
    )


class VarianceRelease(
    AggregateRelease,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="variance-release",
    forbid_unknown_fields=True,
):
    """The variance of a value in each group; see ``AggregateRelease`` for its attributes.

    ``values`` are variances: a float64 ndarray with one dimension per axis; NaN where not known.

    >>> import numpy as np, sfumato as sf
    >>> domain = sf.Domain(age=sf.Interval(0, 100), stay=sf.Interval(0, 30, step=1))
    >>> stays = np.array([[31.0, 2], [35.0, 4], [64.0, 9]])
    >>> src = sf.source(stays, domain, name="stays")
    >>> release = sf.Publisher(src, budget="1").release(sf.Variance("stay"), epsilon="1")
    >>> release.values.shape, release.means.shape
    ((), ())
    """

    noun: ClassVar[str] = "variance"
    unit_form: ClassVar[str] = "{} squared"
    amounts: ClassVar[frozenset[str]] = AggregateRelease.amounts - {"low", "high"}

    _statistic: ClassVar[Statistic] = Statistic(
        values=lambda sums: sums.variances,
        interval=ValueSums.variance_interval,
        taken=ValueSums.taken_from_means,  # no clip was chosen: nothing is known
        is_informative=lambda sums, low, high: (low > 0) | (high < sums.scale.width**2 / 4),
        is_of_rows=ValueSums.has_rows,
    )
