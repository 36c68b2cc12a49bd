"""How many persons there are, and how many rows each has: the preview and the question.

At the end stands ``advice``: which question tells how much the limits on a person leave out, and
what a useful answer costs. It follows from public numbers: nothing is known yet of the persons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self, get_args

import msgspec

from sfumato.answers import Counts, Needs, Preview, Question, error_probability
from sfumato.basics import Exactly, settle, sidak, whole
from sfumato.domain import Domain, Interval, Lattice, named_axes
from sfumato.errors import InternalError, UsageError, require_word, shown
from sfumato.mechanisms import DiscreteLaplace, Law, add_noise, count_law, sum_half_width
from sfumato.privacy import (
    ZCDP,
    CentralMeasure,
    Event,
    Proof,
    PureDP,
    Unit,
    laplace_event,
    without_delta,
)
from sfumato.questions.histogram.bins import Bins, Width, plain_bins, plain_width
from sfumato.questions.persons.measured import (
    LARGEST,
    MEASURED,
    Of,
    Spread,
    cells_of,
    rows_axis,
    title_of,
)
from sfumato.questions.persons.release import PersonsRelease, counted_persons
from sfumato.random.bits import Bits

# --- preview --------------------------------------------------------------------------------------

_BY: Mapping[Of, str] = {
    "rows": "by how many rows they have",
    "cells": "by how many cells they have rows in",
    "norm": "by the L2 norm of their counts",
    "largest-cell": "by their rows in the cell that has most of them",
}


class PersonsPreview(Preview, frozen=True):
    """What a count of persons by their number of rows would cost, and how accurate it would be.

    Attributes
    ----------
    law : DiscreteLaplace or DiscreteGaussian
        The noise on the number of persons in each bin.
    most_rows : int or None
        The public bound on a person's rows.
    of : {"rows", "cells", "norm", "largest-cell"}
        What is measured of each person.
    """

    law: Law
    most_rows: int | None
    of: Of = "rows"

    @property
    def counted(self) -> str:
        """Which rows the answer would be about: all that name a person."""
        return counted_persons(self.unit, self.of)

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> int:
        """Half-width of the interval of the number of persons in one bin."""
        alpha = error_probability(confidence)
        return self.law.half_width(sidak(alpha, self.cells or 1) if simultaneous else alpha)

    def of_everyone(self) -> int:
        """Half-width of the 95% interval of the number of all persons."""
        return sum_half_width(self.law, self.cells or 1, 0.05)

    def lines(self) -> list[str]:
        """The noise on each bin, and how accurate the number of all persons would be."""
        sentences = [
            f"adds {self.law} to each of {self.cells} numbers of persons, {_BY[self.of]}",
            f"of {self.unit.counted}, each number is within +-{self.accuracy():,} of the truth, "
            f"and the number of all persons within +-{self.of_everyone():,}, with 95% confidence",
        ]
        return [*sentences, self._what_follows()]

    def _what_follows(self) -> str:
        if self.of == "cells":
            return "says which share of the pairs of a person and a cell any limit on cells keeps"
        if self.of != "rows":
            limit = MEASURED[self.of].limit
            return f"says how many persons a limit {limit} affects; sf.recommend finds one from it"
        if self.most_rows is None:
            return (
                "says how many persons a limit on rows affects; state most_rows to learn which "
                "share of the rows it keeps"
            )
        return (
            f"says which share of the rows any limit keeps, if nobody has more than "
            f"{self.most_rows:,} rows"
        )

    def remarks(self) -> list[str]:
        """Which rows are left out."""
        return [f"not counted: rows without {self.unit.anyone}; no other limit applies"]


# --- the question ---------------------------------------------------------------------------------


class Persons(
    Question[PersonsRelease],
    frozen=True,
    tag="persons",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """How many persons are there, and how many rows has each?

    Ask it before anything else of a table in which a person may have several rows. Its answer says
    what any limit on rows per person leaves out, and ``sf.recommend`` finds the limit to take.
    Every row that names a person is counted, whatever limit the source has.

    With ``of``, persons are counted by how their rows spread over the cells of one table. A limit
    on cells, on the norm or on rows in a cell is found from that answer.

    Parameters
    ----------
    most_rows : int or None
        A public bound: nobody has more rows than this. A person who has more is counted as one with
        this number. Without it the answer says how many persons a limit affects, but not which
        share of the rows it keeps.
    of : {"rows", "cells", "norm", "largest-cell"}
        What is counted of each person: the rows; the cells of a table in which the person has rows;
        the L2 norm of the person's counts in these cells; or the rows in the cell that has most of
        them. The limits of the source that bound them are ``rows_per_person``,
        ``cells_per_person``, ``norm_per_person`` and ``rows_per_cell``.
    axes : str, list of str, or None
        The axes of the table, unless rows are counted.
    bins, width : number, list, dict, or None
        The bins of the table's Interval axes, as in ``sf.Histogram``.
    heading, measured_in, label_names
        Words for people, by name: see ``Question``.

    Raises
    ------
    UsageError
        If ``most_rows`` is not a whole number from 2 to 10^9, ``of`` and ``axes`` do not go
        together, or the source has no person column.

    Guarantee
    ---------
    {proof}

    >>> Persons(most_rows=1000).title
    'Rows of each person'
    >>> Persons(most_rows=1000, of="norm", axes=["hour", "stop"]).title
    'Norm of each person by hour x stop'
    >>> Persons(most_rows=1)
    Traceback (most recent call last):
        ...
    sfumato.errors.UsageError: most_rows = 1: it is a whole number from 2 to 10^9. Give a bound...
    """

    most_rows: int | None = None
    of: Of = "rows"
    axes: str | Sequence[str] | None = None
    bins: Bins = None
    width: Width = None

    limits_by_cell: ClassVar[bool] = True  # rows are counted before any limit
    proof: ClassVar[Proof] = Proof(
        sensitivity="L1 = 1 (2 under replace); L2 = 1 (sqrt 2 under replace), whatever number of "
        "rows a person has.",
        because="each person is counted in exactly one bin, the bins are fixed by public numbers, "
        "and the noise is exact on the integers.",
        not_covered="the choice of the person column and of most_rows; the time the query takes.",
        source="Dwork, McSherry, Nissim, Smith 2006, Thm 1; discrete noise: Canonne, Kamath, "
        "Steinke 2020.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        # Refuse a table where rows are counted, and something else where there is no table.
        require_word(self.of, "of", get_args(Of))
        if self.of == "rows" and (self.axes, self.bins, self.width) != (None, None, None):
            raise UsageError(
                "axes or bins, where the rows of each person are counted",
                "the number of a person's rows is the same in every table",
                'Leave them out, or give of="cells", of="norm" or of="largest-cell"',
            )
        if self.of != "rows" and self.axes is None:
            raise UsageError(
                f"persons by of = {shown(self.of)}, without axes",
                "it follows from the cells of one table",
                'Name the axes of the table, such as axes=["hour", "stop"]',
            )
        most_rows = self.most_rows
        if most_rows is not None:
            most_rows = whole(
                most_rows,
                "most_rows",
                2,
                LARGEST,
                obstacle="it is a whole number from 2 to 10^9",
                remedy="Give a bound that is publicly known, such as 1000",
            )
        settle(
            self,
            most_rows=most_rows,
            axes=None if self.axes is None else named_axes(self.axes),
            bins=plain_bins(self.bins),
            width=plain_width(self.width),
        )

    @property
    def title(self) -> str:
        axes = () if self.axes is None else tuple(named_axes(self.axes))
        return title_of(MEASURED[self.of], "person", axes)

    def canonical(self, domain: Domain) -> Self:
        """Return the question unchanged: its axes are named already."""
        if self.axes is not None:
            domain.select(self.axes)
        return self

    def needs(self, domain: Domain) -> Needs:
        """One axis of numbers, of rows or of what is measured: the bins of persons."""
        cells = None
        if self.axes is not None:
            cells = cells_of(self.axes, self.bins, self.width, domain)
        most = self.most_rows
        if self.of == "cells" and cells is not None and not cells.keyed:
            # Nobody is in more cells than there are, or than they have rows.
            most = cells.size if most is None else min(cells.size, most)
        axis = rows_axis(most)
        return Needs(Lattice((axis,)), axis.size, counted=MEASURED[self.of].counted, cells=cells)

    def preview(
        self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None
    ) -> PersonsPreview:
        """Say how accurate the numbers of persons would be.

        Raises
        ------
        UsageError
            If no column names the person.
        """
        law = self._law(cost, unit)
        bins = self.needs(domain).lattice.size
        return PersonsPreview(
            self.title, without_delta(cost), unit.of_all_rows, bins, law, self.most_rows, self.of
        )

    def event(self, domain: Domain, unit: Unit, cost: CentralMeasure) -> Event:
        """State the noise on bins of which a person is in one."""
        law = self._law(cost, unit)
        if not isinstance(law, DiscreteLaplace):
            return super().event(domain, unit, cost)
        return laplace_event(law.scale, _of_one_bin(unit))

    def answer(
        self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits
    ) -> PersonsRelease:
        """Add exact noise to the number of persons in each bin."""
        law = self._law(cost, unit)
        promise = self.promise(without_delta(cost), unit.of_all_rows, str(law), noise)
        domain = counts.domain
        return PersonsRelease(
            most_rows=self.most_rows,
            spread=self._spread(counts.lattice),
            domain=() if domain is None else tuple(domain.items()),
            counts=add_noise(counts.on(counts.lattice).counts, law, noise),
            law=law,
            guarantee=msgspec.structs.replace(promise, counted=counted_persons(unit, self.of)),
        )

    def _spread(self, lattice: Lattice) -> Spread | msgspec.UnsetType:
        """Return what is measured in which cells; unset where rows are counted."""
        if self.of == "rows" or self.axes is None:
            return msgspec.UNSET
        last = int(lattice.axes[0].edges()[-1]) - 1
        most = None if last == LARGEST else last
        return Spread(self.of, tuple(named_axes(self.axes)), most, self.bins, self.width)

    def _law(self, cost: CentralMeasure, unit: Unit) -> Law:
        """Return the noise on each bin: one person is in one bin, whatever the limit on rows is."""
        if unit.person is None:
            raise UsageError(
                self.title,
                "no column of the source names the person behind a row",
                'Write sf.source(data, domain, person="rider_id")',
            )
        # Persons are counted before any limit, so no limit of the source may make the noise
        # narrower.
        return count_law(cost, _of_one_bin(unit))


def _of_one_bin(unit: Unit) -> Unit:
    return msgspec.structs.replace(unit, rows_per_person=1, limits=msgspec.UNSET)


Persons.examples = (
    Persons(),
    Persons(most_rows=12),
    Persons(of="cells", axes="x"),
    Persons(most_rows=12, of="norm", axes="x"),
    Persons(most_rows=12, of="largest-cell", axes="x"),
)


# --- which question to ask first ------------------------------------------------------------------

# Of all persons: an answer that knows the number of those who lose rows within it is useful.
ENOUGH = Fraction(3, 100)
FEW_PERSONS = 1_000
# How many persons there are is not known, so the price is told for two numbers of them.
MANY_PERSONS = 10_000

_ROUND = [Fraction(digit * 10**exponent, 10**7) for exponent in range(9) for digit in (1, 2, 5)]
# Rows of a person are counted on no axis of the data.
_ANY_DOMAIN = Domain(x=Interval(0, 1))


def advice(unit: Unit, *, in_rho: bool, axes: Sequence[str] = ()) -> str:
    """Name the question that tells how much the limits leave out, and its price.

    Parameters
    ----------
    unit : Unit
        That of the answer which the limits cut.
    in_rho : bool
        Whether costs are stated as rho, and not as epsilon.
    axes : sequence of str
        The axes of the answer, in whose cells limits by cell hold.

    Returns
    -------
    str
        A sentence without its end; "" where no limit is kept.

    >>> print(advice(Unit(3, person="rider_id", person_called="rider"), in_rho=False))
    to learn how much that leaves out, ask sf.Persons(most_rows=...) first (sfumato persons): at
    epsilon = 0.5 it tells within 3% how many of 1,000 riders lose rows, at epsilon = 0.05 of 10,000
    """
    if not unit.limits_kept:
        return ""
    of_limit = {measured.limit: of for of, measured in MEASURED.items()}
    measured = [of_limit[name] for name in unit.limits_kept if name in of_limit]
    by_cell = [of for of in measured if of != "rows"]
    question = "sf.Persons(most_rows=...)"
    if by_cell and axes:
        question = f'sf.Persons(most_rows=..., of="{by_cell[0]}", axes={list(axes)})'
    few, many = (
        least_cost(unit.neighbours, persons, in_rho) for persons in (FEW_PERSONS, MANY_PERSONS)
    )
    return (
        f"to learn how much that leaves out, ask {question} first (sfumato persons): "
        f"at {few} it tells within {int(100 * ENOUGH)}% how many of {FEW_PERSONS:,} "
        f"{unit.several} lose rows, at {many} of {MANY_PERSONS:,}"
    )


@lru_cache(maxsize=16)
def least_cost(neighbours: str, persons: int, in_rho: bool) -> CentralMeasure:
    """The least round cost at which the answer knows each number of persons closely enough.

    It is that of the number of all persons, the sum of most bins: of those beyond a limit less is
    summed. So the price suffices for every limit.

    Raises
    ------
    InternalError
        If no cost that is tried suffices.
    """
    unit = Unit(1, "replace" if neighbours == "replace" else "add-remove", person="person")
    question = Persons(most_rows=1000)
    for amount in _ROUND:
        cost = ZCDP(amount) if in_rho else PureDP(amount)
        if question.preview(_ANY_DOMAIN, unit, cost).of_everyone() <= ENOUGH * persons:
            return cost
    raise InternalError("No cost tells how many persons there are.")
