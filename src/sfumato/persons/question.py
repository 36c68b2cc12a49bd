"""How many persons are there, and how many rows has each? As a question."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from sfumato.answers.counts import Counts, Needs
from sfumato.answers.question import Question
from sfumato.domain import Domain
from sfumato.errors import UsageError, shown
from sfumato.lattice import Lattice
from sfumato.mechanisms.noise import Law, add_noise, count_law
from sfumato.persons.bins import LARGEST, rows_axis
from sfumato.persons.preview import PersonsPreview
from sfumato.persons.release import PersonsRelease, counted_persons
from sfumato.privacy.guarantee import Proof
from sfumato.privacy.measures import CentralMeasure, without_delta
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits


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

    Parameters
    ----------
    most_rows : int or None
        A public bound: nobody has more rows than this. A person who has more is counted as one with
        this number. Without it the answer says how many persons a limit affects, but not which
        share of the rows it keeps.

    Raises
    ------
    UsageError
        If ``most_rows`` is not a whole number from 2 to 10^9, or the source has no person column.

    Guarantee
    ---------
    {proof}

    >>> Persons(most_rows=1000).title
    'Rows of each person'
    >>> Persons(most_rows=1)
    Traceback (most recent call last):
        ...
    sfumato.errors.UsageError: most_rows = 1: it is a whole number from 2 to 10^9. Give a bound...
    """

    most_rows: int | None = None

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
        most: object = self.most_rows
        if most is None:
            return
        if isinstance(most, bool) or not isinstance(most, int) or not 2 <= most <= LARGEST:
            raise UsageError(
                f"most_rows = {shown(most)}",
                "it is a whole number from 2 to 10^9",
                "Give a bound that is publicly known, such as 1000",
            )

    @property
    def title(self) -> str:
        return "Rows of each person"

    def needs(self, domain: Domain) -> Needs:
        """One axis of numbers of rows: the bins of persons."""
        lattice = Lattice((rows_axis(self.most_rows),))
        return Needs(lattice, lattice.size, counted="rows of each person")

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
        bins = rows_axis(self.most_rows).size
        return PersonsPreview(
            self.title, without_delta(cost), unit.of_all_rows, bins, law, self.most_rows
        )

    def answer(
        self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits
    ) -> PersonsRelease:
        """Add exact noise to the number of persons in each bin."""
        law = self._law(cost, unit)
        promise = self.promise(without_delta(cost), unit.of_all_rows, str(law), noise)
        domain = counts.domain
        return PersonsRelease(
            most_rows=self.most_rows,
            domain=() if domain is None else tuple(domain.items()),
            counts=add_noise(counts.on(counts.lattice).counts, law, noise),
            law=law,
            guarantee=msgspec.structs.replace(promise, counted=counted_persons(unit)),
        )

    def _law(self, cost: CentralMeasure, unit: Unit) -> Law:
        """The noise on each bin: one person is in one bin, whatever the limit on rows is."""
        if unit.person is None:
            raise UsageError(
                self.title,
                "no column of the source names the person behind a row",
                'Write sf.source(data, domain, person="rider_id")',
            )
        one_bin = Unit(1, unit.neighbours, unit.person, period=unit.period)
        return count_law(cost, one_bin)


Persons.examples = (Persons(), Persons(most_rows=12))
