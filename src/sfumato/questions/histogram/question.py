"""Histograms and contingency tables, over labels, bins and keys that are not known beforehand.

First stand the options, and which of them exclude each other; then the sentences that docstrings
and receipts print on why histograms are private; then the question and its release.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, Self, TypeAlias, get_args

import msgspec
import numpy as np

from sfumato.answers import Counts, CountsPreview, Needs, Preview, Question, SelectsKeys
from sfumato.basics import Array, require_numbers, settle
from sfumato.domain import Domain, LabelAxis, Lattice, named_axes
from sfumato.errors import UsageError, printable, require_word, shown
from sfumato.mechanisms import (
    RULES,
    CountLaw,
    DiscreteLaplace,
    KeyLaw,
    Law,
    Rule,
    ThresholdGaussian,
    add_noise,
    bounded_law,
    count_law,
    key_law,
    law_of_key_counts,
    unit_of_table,
    unit_within,
)
from sfumato.privacy import (
    CentralMeasure,
    Event,
    Proof,
    Unit,
    laplace_event,
    without_delta,
)
from sfumato.questions.histogram import accuracy, keys, ranges
from sfumato.questions.histogram.bins import (
    Bins,
    Width,
    binned_lattice,
    plain_bins,
    plain_records,
    plain_width,
    rearranged,
    with_whole_numbers,
)
from sfumato.questions.histogram.records import (
    MOST_BINS,
    record_bins,
    record_lattice,
)
from sfumato.questions.histogram.records import PROOF as RECORDS_PROOF
from sfumato.questions.histogram.release import CountsTable
from sfumato.questions.histogram.strategies import (
    RangeTree,
    Strategy,
    answer_ranges,
    strategy_for,
)
from sfumato.random.bits import Bits

# --- options --------------------------------------------------------------------------------------

# What a histogram counts in its cells.
CountedThings: TypeAlias = Literal["rows", "persons"]


# Which options exclude each other, and the refusals of both together.
EXCLUSIVE = {
    ("records", "bins"): (
        "records with bins or width",
        "each of them says where the bins lie",
        "Leave the others out",
    ),
    ("records", "persons"): (
        "records with count = 'persons'",
        "bins of equal size are chosen by numbers of rows",
        "Give bins or a width",
    ),
    ("records", "workload"): (
        "records with workload = 'ranges'",
        "the edges of its bins are not known beforehand",
        "Give bins or a width",
    ),
    ("noise", "workload"): (
        "noise = 'bounded' with a workload",
        "counts then follow from several noisy sums, and their errors add up",
        "Leave out one of them, noise or workload",
    ),
    ("records", "noise"): (
        "records with noise = 'bounded'",
        "the edges of its bins are chosen with noise that has no bound",
        "Give bins or a width",
    ),
}


def unit_of_persons(title: str, unit: Unit) -> Unit:
    """Return the unit of counts of persons.

    Raises
    ------
    UsageError
        If no column names the persons.
    """
    if unit.person is None:
        raise UsageError(title, "no column names the persons", 'Give the source person="rider"')
    return unit.counting_persons(unit.cells_of_person)


# --- why they are private -------------------------------------------------------------------------

PROOF = Proof(
    sensitivity="L1 = rows_per_person (twice that under replace); L2 the same, or sqrt 2 "
    "times under replace.",
    because="the cells are disjoint and fixed by the public domain, and the noise is exact on "
    "the integers.",
    not_covered="the choice of columns, bins and bounds; the time the query takes.",
    source="Dwork, McSherry, Nissim, Smith 2006, Thm 1; discrete noise: Canonne, Kamath, "
    "Steinke 2020.",
)

PERSONS = Proof(
    sensitivity="L1 = c, the largest number of cells that a person is counted in (twice that "
    "under replace); L2 = sqrt c (sqrt 2 times that under replace).",
    because="a person is counted at most once in a cell and in at most c cells, which depend "
    "on that person's rows and a secret key alone. The cells are disjoint and fixed by the "
    "public domain, and the noise is exact on the integers.",
    not_covered="the choice of columns, bins and bounds; the time the query takes; persons "
    "who appear under several ids.",
    source="Dwork, McSherry, Nissim, Smith 2006, Thm 1; discrete noise: Canonne, Kamath, "
    "Steinke 2020.",
)

RANGES = Proof(
    sensitivity="pure epsilon: each level of blocks, L1 = rows_per_person (twice that under "
    "replace). rho: L2 squared = the squared rows_per_person times the squared length of the first "
    "column of a Toeplitz matrix, in whole units (twice that under replace); less under limits by "
    "cell.",
    because="pure epsilon: the blocks of a level are disjoint and public, and the shares of the "
    "levels add up to epsilon. rho: no column of the matrix is longer than the first, its products "
    "of columns fall with their distance, and all answers share one discrete Gaussian law. True "
    "sums and noise are integers; the counts are computed from what was published.",
    not_covered="the choice of columns, bins and bounds; the time the query takes.",
    source="Hay, Rastogi, Miklau, Suciu, VLDB 2010; Li, Miklau, Hay, McGregor, Rastogi 2015; "
    "Fichtenberger, Henzinger, Upadhyay, ICML 2023; Canonne, Kamath, Steinke 2020, Thm 4.",
)


# --- the question and its release -----------------------------------------------------------------


class Histogram(
    Question["HistogramRelease"],
    frozen=True,
    tag="histogram",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """How many rows or persons are in each cell? A histogram, or a contingency table.

    Its answer is a ``HistogramRelease``. ``values`` is an ndarray of integers with one dimension
    for each axis, in their order. Counts may be negative.

    Parameters
    ----------
    axes : str or list of str
        Axes of the domain. At most one of them is an axis of ``Keys``: the answer then shows keys
        that many rows have, and the cost needs a delta.
    bins : int, list of edges, dict, or None
        The bins of Interval axes: a number of equal bins, increasing edges (values beyond them are
        counted in the bins at the ends), or a dict of either by axis. For several Interval axes it
        may be a list with one entry for each. None: one bin for each step, or ten bins if the axis
        has no step.
    width : number, dict, or None
        The width of bins instead of their number, for all Interval axes or by axis. The last bin is
        narrower where they do not fill the axis. The unit is days for dates, and seconds for times.
    records : int or None
        Bins of about this many rows each, in place of ``bins`` and ``width``, for one Interval
        axis. The number and the edges of the bins are charged. ``release.lattice`` has the edges,
        and ``release.rows`` the noisy number of rows.
    rows : int or None
        With ``records``: the number of rows, if it is public. Then nothing is spent on it.
    selection : {"truncated-geometric", "threshold", "stability"}
        How keys are selected. The default shows each key with the largest probability that the
        cost allows for one row per person. Where persons have several keys, and at most one row
        of each is counted (``rows_per_cell=1``, or ``count="persons"``), Gaussian noise and a
        threshold take its place if they show keys of fewer rows. "threshold" adds discrete Laplace
        noise and uses the least threshold that is private. "stability" is the rule of PSIlence,
        whose sensitivity is 2.
    count : {"rows", "persons"}
        What is counted. With "persons" a cell's count is the number of persons with a row there,
        however many rows they have. Each person is counted in at most ``cells_per_person`` cells
        of the source, else ``rows_per_person``, and never in more than there are; these are chosen
        at random. The source needs a ``person`` column.
    workload : {"ranges"} or None
        What the noise is made for. None: for each cell, with noise of its own. "ranges": for ranges
        of bins and running totals along the one Interval axis, in each combination of the other
        axes; single cells are then less accurate. Noise is added to sums of bins, and the counts
        follow from these by least squares. ``release.count`` and ``release.cumulative`` have the
        intervals of ranges.
    noise : {"bounded"} or None
        What the noise is like. None: Laplace noise for a cost in epsilon, Gaussian for one in rho.
        "bounded": no count is ever farther from the truth than ``release.law.bound``, whatever is
        drawn. The cost needs a delta.
    heading, measured_in, label_names
        Words for people, by name: see ``Question``.

    Raises
    ------
    UsageError
        If an axis is unknown, bins are fewer than 2, edges do not increase, there would be more
        than 2^24 cells, ``records`` is given with bins, a width or several axes, or persons are to
        be counted with ``records`` or where no column names them. If ``workload="ranges"`` is given
        with ``records``, ``Keys``, more than 4,096 bins, or not exactly one Interval axis. If
        ``noise="bounded"`` is given with ``records``, ``Keys`` or a workload, or at a cost that has
        no delta.

    Guarantee
    ---------
    {proof}

    With an axis of keys, (epsilon, delta) and instead:
    {keys_proof}

    With keys alone, and at most one row of a person for each, Gaussian noise may be used instead:
    {keys_of_persons_proof}

    With ``records``, instead:
    {records_proof}

    With ``count="persons"``, instead:
    {persons_proof}

    With ``workload="ranges"``, instead:
    {ranges_proof}

    With ``noise="bounded"``, (epsilon, delta) and instead:
    {bounded_proof}

    >>> import numpy as np, sfumato as sf
    >>> ages = np.array([[31.0], [31.5], [64.0]])
    >>> src = sf.source(ages, sf.Domain(age=sf.Interval(0, 100)), name="ages")
    >>> release = sf.Publisher(src, budget="1").release(sf.Histogram("age", bins=4), epsilon="1")
    >>> release.values.shape, release.accuracy(confidence="0.95").tolist()
    ((4,), [3, 3, 3, 3])
    """

    axes: str | Sequence[str]
    bins: Bins = None
    width: Width = None
    selection: Rule = "truncated-geometric"
    records: int | None = None
    rows: int | None = None
    count: CountedThings = "rows"
    workload: Literal["ranges"] | None = None
    noise: Literal["bounded"] | None = None

    limits_by_cell: ClassVar[bool] = True
    proof: ClassVar[Proof] = PROOF
    keys_proof: ClassVar[Proof] = keys.PROOF
    keys_of_persons_proof: ClassVar[Proof] = keys.PERSONS_PROOF
    records_proof: ClassVar[Proof] = RECORDS_PROOF
    persons_proof: ClassVar[Proof] = PERSONS
    ranges_proof: ClassVar[Proof] = RANGES
    bounded_proof: ClassVar[Proof] = accuracy.PROOF

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(
            self,
            axes=named_axes(self.axes),
            bins=plain_bins(self.bins),
            width=plain_width(self.width),
            records=plain_records(self.records, "records"),
            rows=plain_records(self.rows, "rows"),
        )
        # Refuse options that do not exist, or exclude each other.
        if self.rows is not None and self.records is None:
            raise UsageError(
                f"rows = {self.rows}",
                "a stated number of rows is used only with records",
                "Give records, or leave rows out",
            )
        require_word(self.count, "count", get_args(CountedThings))
        if self.workload not in (None, "ranges"):
            raise UsageError(
                f"workload = {shown(self.workload)}",
                "noise is made for cells or for ranges",
                'Write workload="ranges"',
            )
        if self.noise not in (None, "bounded"):
            raise UsageError(
                f"noise = {shown(self.noise)}",
                "noise is bounded, or it is the one that the cost takes by itself",
                'Write noise="bounded"',
            )
        require_word(self.selection, "selection", RULES)
        given = {
            "records": self.records is not None,
            "bins": self.bins is not None or self.width is not None,
            "persons": self.count == "persons",
            "workload": self.workload is not None,
            "noise": self.noise is not None,
        }
        for (option, other), refusal in EXCLUSIVE.items():
            if given[option] and given[other]:
                raise UsageError(*refusal)

    def require_unit(self, unit: Unit) -> None:
        """Refuse limits by cell for ``records``, which counts on several lattices.

        Persons are not counted where no column names them.
        """
        if self.count == "persons":
            unit_of_persons(self.title, unit)
        if unit.by_cell and self.records is not None:
            raise UsageError(
                f"{self.title} with records, under limits by cell",
                "these hold on the cells of one table, and its bins are cut on finer ones",
                "Give bins or a width, or the source rows_per_person alone",
            )

    def needs(self, domain: Domain) -> Needs:
        """The lattice of its bins. With ``records``, the lattice on which the edges are chosen.

        Keys have no bins: their number is not limited beforehand.
        """
        names = domain.select(self.axes)
        if self.records is not None:
            lattice = record_lattice(self.title, domain, names)
            return Needs(lattice, min(lattice.size, MOST_BINS))
        lattice = binned_lattice(domain, names, self.bins, self.width)
        if lattice.keyed:
            keys.check_keys(self.title, lattice)
        if self.workload is not None:
            ranges.ranged_axis(self.title, lattice)
        if self.noise is not None:
            accuracy.require_known_cells(self.title, lattice)
        if not lattice.keyed:
            require_numbers(self.title, lattice.size)
        return Needs(lattice, lattice.public_size, counted=self.count)

    def asks(self, domain: Domain) -> object:
        """Its cells, in the order of the domain, and how they are counted.

        So ``bins=[0, 18, 65]`` and ``bins={"age": [0, 18, 65]}`` ask the same.
        """
        if self.records is not None:
            return self.canonical(domain)
        axes = self.needs(domain).lattice.axes
        places = list(domain)
        in_order = sorted(axes, key=lambda axis: places.index(axis.name))
        has_keys = any(axis.has_keys for axis in axes)
        identity = ("histogram", in_order, self.count, self.selection if has_keys else "")
        further = (self.workload, self.noise)
        return (*identity, *(option for option in further if option is not None))

    @property
    def layout(self) -> tuple[str, ...]:
        return tuple(self.axes)

    def rearranged(self, axes: Sequence[str], intervals: Sequence[str]) -> Self:
        """The same question with its axes in another order.

        Parameters
        ----------
        axes : sequence of str
        intervals : sequence of str
            Those of its axes that have bins, in the order of now.
        """
        bins = rearranged(self.bins, axes, intervals)
        return msgspec.structs.replace(self, axes=tuple(axes), bins=bins)

    @property
    def title(self) -> str:
        axes = " x ".join(map(printable, self.axes))
        counted = "persons by " if self.count == "persons" else ""
        return f"Histogram of {counted}{axes}"

    def _unit_of_counts(self, lattice: Lattice, unit: Unit, cost: CentralMeasure) -> Unit:
        if self.count == "persons":
            unit = unit_of_persons(self.title, unit)
        if lattice.keyed:
            return unit
        allowed = unit_of_table if self.noise is None else unit_within
        return allowed(cost, unit, lattice.size)

    def preview(
        self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None
    ) -> Preview:
        """Say how accurate the counts would be, and which keys would be shown."""
        lattice = self.needs(domain).lattice
        unit = self._unit_of_counts(lattice, unit, cost)
        if self.records is not None:
            bins = record_bins(lattice, self.records, self.rows, unit, cost)
            return bins.preview(self.title, rows)
        return with_whole_numbers(self._preview(lattice, unit, cost, rows), lattice)

    def _preview(
        self, lattice: Lattice, unit: Unit, cost: CentralMeasure, rows: int | None
    ) -> Preview:
        if self.noise is not None:
            bounded = bounded_law(cost, unit)
            return accuracy.BoundedPreview(self.title, cost, unit, lattice.size, bounded, rows)
        if not lattice.keyed:
            law = count_law(cost, unit)
            if strategy := self._strategy(lattice, unit, cost):
                return ranges.RangesPreview(
                    self.title, without_delta(cost), unit, lattice.size, law, strategy, rows
                )
            return CountsPreview(self.title, without_delta(cost), unit, lattice.size, law, rows)
        selects, cells = self._key_laws(lattice, unit, cost)
        noise = selects if cells is None else cells
        notes = (keys.describe_selection(selects), keys.NOT_SHOWN_COUNTS_AS_ZERO)
        return keys.KeysPreview(
            self.title, cost, unit, None, noise, rows, notes, selects=selects, rule=self.selection
        )

    def event(self, domain: Domain, unit: Unit, cost: CentralMeasure) -> Event:
        """State the noise on known cells, on ranges, or on the cells of keys, and what selects."""
        lattice = self.needs(domain).lattice
        counted = self._unit_of_counts(lattice, unit, cost)
        if self.records is not None:
            return record_bins(lattice, self.records, self.rows, counted, cost).event
        if lattice.keyed and len(lattice.axes) > 1:
            return keys.event_of_cells(cost, counted)
        law = None if lattice.keyed or self.noise is not None else count_law(cost, counted)
        if not isinstance(law, DiscreteLaplace):
            return super().event(domain, unit, cost)
        strategy = self._strategy(lattice, counted, cost)
        if isinstance(strategy, RangeTree):
            return strategy.event(counted)
        return laplace_event(law.scale, counted)

    def answer(
        self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits
    ) -> HistogramRelease:
        """Add exact noise to every cell, after keys or edges were selected, if there are any."""
        unit = self._unit_of_counts(counts.lattice, unit, cost)
        if counts.lattice.keyed:
            return self._answer_keys(counts, unit, cost, noise)
        cube = counts.on(counts.lattice)
        if self.records is not None:
            bins = record_bins(cube.lattice, self.records, self.rows, unit, cost)
            rows, lattice, noisy = bins.answer(cube, noise)
            guarantee = self.promise(
                bins.cost, unit, bins.mechanism, noise, proof=self.records_proof
            )
            return HistogramRelease(
                question=self,
                lattice=lattice,
                counts=noisy,
                law=bins.law,
                guarantee=guarantee,
                rows=rows,
            )
        if strategy := self._strategy(cube.lattice, unit, cost):
            lattice = cube.lattice
            axis = ranges.ranged_axis(self.title, lattice)
            paid = answer_ranges(cube.counts.reshape(lattice.shape), axis, strategy, noise)
            guarantee = self.promise(
                without_delta(cost), unit, str(strategy), noise, proof=self.ranges_proof
            )
            return HistogramRelease(
                question=self,
                lattice=lattice,
                counts=paid.counts(lattice.shape).ravel(),
                law=strategy.laws[0],
                paid=paid,
                guarantee=guarantee,
            )
        if self.noise is not None:
            law: CountLaw = bounded_law(cost, unit)
            proof = self.bounded_proof
        else:
            law = count_law(cost, unit)
            cost = without_delta(cost)
            proof = self.persons_proof if self.count == "persons" else self.proof
        return HistogramRelease(
            question=self,
            lattice=cube.lattice,
            counts=add_noise(cube.counts, law, noise),
            law=law,
            guarantee=self.promise(cost, unit, str(law), noise, proof=proof),
        )

    def _strategy(self, lattice: Lattice, unit: Unit, cost: CentralMeasure) -> Strategy | None:
        """Return which sums of bins are counted; None where each cell is counted by itself."""
        if self.workload is None:
            return None
        return strategy_for(lattice.shape[ranges.ranged_axis(self.title, lattice)], unit, cost)

    def _answer_keys(
        self, counted: Counts, unit: Unit, cost: CentralMeasure, noise: Bits
    ) -> HistogramRelease:
        # The laws follow from the unit and the cost alone, before any key is looked at.
        selects, cells = self._key_laws(counted.lattice, unit, cost)
        lattice, counts = keys.select_and_count(counted, selects, cells, noise)
        mechanism = (
            f"{selects}, which also selects the keys that are shown"
            if cells is None
            else f"{cells} on each cell; keys are selected by {selects}"
        )
        proof = (
            self.keys_of_persons_proof
            if isinstance(selects, ThresholdGaussian)
            else self.keys_proof
        )
        guarantee = self.promise(cost, unit, mechanism, noise, proof=proof)
        if isinstance(counted, SelectsKeys):
            assumptions = (*guarantee.assumptions, keys.SAME_ROWS)
            guarantee = msgspec.structs.replace(guarantee, assumptions=assumptions)
        return HistogramRelease(
            question=self,
            lattice=lattice,
            counts=counts,
            law=selects if cells is None else cells,
            selection=selects,
            guarantee=guarantee,
        )

    def _key_laws(
        self, lattice: Lattice, unit: Unit, cost: CentralMeasure
    ) -> tuple[KeyLaw, Law | None]:
        """Return what selects keys, and the noise on each cell: together they spend the cost.

        If keys are the only axis, there is no second law.
        """
        if len(lattice.axes) == 1:
            return law_of_key_counts(cost, unit, self.selection), None
        selection_cost, rest = keys.selection_share(cost)
        return key_law(selection_cost, unit, self.selection), count_law(rest, unit)


Histogram.examples = (
    Histogram("x"),
    Histogram("x", bins=[0, 1, 3]),
    Histogram("x", records=2),
    Histogram("x", records=2, rows=4),
    Histogram("x", workload="ranges"),
)


class HistogramRelease(
    CountsTable,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="histogram-release",
    forbid_unknown_fields=True,
):
    """The answer to a histogram: noisy counts over cells, and the statistics that follow from them.

    Attributes
    ----------
    question : Histogram
    lattice, counts, law
        As in ``CountsTable``.
    selection : TruncatedGeometric, ThresholdLaplace, ThresholdGaussian or None
        How keys were selected. If keys are the only axis, it is also the law of their counts.
        ``kept`` says how often a key is shown.
    rows : int or None
        The noisy number of rows that decided how many bins ``records`` made. None: there was none.
    paid : RangeAnswers, optional
        With ``workload="ranges"``: the noisy sums of bins that were paid for. The counts follow
        from them.

    >>> import numpy as np, sfumato as sf
    >>> ages = np.array([[31.0], [35.5], [64.0]])
    >>> src = sf.source(ages, sf.Domain(age=sf.Interval(0, 100)), name="ages")
    >>> release = sf.Publisher(src, budget="1").release(sf.Histogram("age", bins=2), epsilon="1")
    >>> release.values.shape, release.accuracy(confidence="0.95").tolist()
    ((2,), [3, 3])
    >>> release.total(confidence="0.95").confidence
    0.95
    >>> list(release.to_pandas().columns)
    ['age', 'age_lower', 'age_upper', 'count', 'low', 'high']
    """

    _in_details: ClassVar[frozenset[str]] = frozenset(
        {"even", "paid", "paid_ranges", "rows", "selection"}
    )

    question: Histogram

    @property
    def even(self) -> bool:
        """Whether bins were made to hold about equally many rows.

        The shape is then in the widths of the bins, so pictures show rows per width.
        """
        return self.question.records is not None

    @property
    def layout(self) -> tuple[str, ...]:
        return self.lattice.names

    def _transposed(self, order: Sequence[int]) -> Self:
        lattice = Lattice(tuple(self.lattice.axes[i] for i in order))
        binned_axes = [axis.name for axis in self.lattice.axes if not isinstance(axis, LabelAxis)]
        return msgspec.structs.replace(
            self,
            question=self.question.rearranged(lattice.names, binned_axes),
            lattice=lattice,
            counts=np.ascontiguousarray(self.values.transpose(order)).ravel(),
            paid=msgspec.UNSET
            if self.paid is msgspec.UNSET
            else self.paid.transposed(order, self.lattice.shape),
        )

    def kept(self, counts: np.typing.ArrayLike) -> Array:
        """The probability that a key held by this many rows is shown.

        Parameters
        ----------
        counts : int, or int array of any shape
            Numbers of rows.

        Returns
        -------
        float64 ndarray like ``counts``

        Raises
        ------
        UsageError
            If the histogram has no axis of keys, or ``counts`` are not whole numbers.
        """
        if self.selection is None:
            raise UsageError(
                f"{self.title}, kept",
                "all of its cells were known beforehand",
                "Ask a histogram over Keys",
            )
        rows = np.asarray(counts)
        if rows.dtype.kind not in "iu":
            raise UsageError(
                f"{self.title}, kept",
                "numbers of rows are whole numbers below 2^63",
                "Write release.kept(16)",
            )
        return self.selection.kept(rows)
