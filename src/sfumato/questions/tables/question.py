"""A family of tables that add up, as a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import msgspec

from sfumato.answers import Counts, Needs, Question, WithinNorm
from sfumato.basics import require_numbers, settle
from sfumato.domain import Domain, Lattice
from sfumato.errors import InternalError
from sfumato.privacy import CentralMeasure, Event, Proof, Unit
from sfumato.questions.histogram.bins import (
    Bins,
    Width,
    plain_bins,
    plain_width,
    with_whole_numbers,
)
from sfumato.questions.tables.asked import (
    IN_NORM,
    PROOF,
    RESIDUALS,
    axes_lattice,
    checked_numbers,
    checked_tables,
    named,
    require_connected,
    require_flat_limits,
    unit_of_tables,
)
from sfumato.questions.tables.cells import TablesPreview
from sfumato.questions.tables.design import Design, described, design_for
from sfumato.questions.tables.gaussian_design import Aim
from sfumato.questions.tables.levels import Chains, Margin
from sfumato.questions.tables.release import TablesRelease
from sfumato.questions.tables.residuals import closure_of
from sfumato.questions.tables.rounding import steps_of
from sfumato.questions.tables.totals import (
    ALL_ROWS,
    GivenTotals,
    KnownTable,
    PublicTotal,
    assumption,
    known_tables,
    plain_totals,
    require_no_persons,
)
from sfumato.random.bits import Bits

if TYPE_CHECKING:
    TotalsOrNone: TypeAlias = GivenTotals | Sequence[PublicTotal] | None
else:
    # What a file can hold: its keys are texts.
    TotalsOrNone = Sequence[PublicTotal] | dict[str, int | Sequence[int] | dict[str, int]] | None


class Tables(
    Question[TablesRelease],
    frozen=True,
    tag="tables",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """How many rows are in each cell of several tables that share axes, and add up?

    One by one, each table would have noise of its own, and their totals would differ. Here all
    tables are estimated together: every two agree in the margins that they share, and each is more
    accurate than by itself at the same cost. Its answer is a ``TablesRelease``:
    ``release["carrier", "hour"]`` is one of its tables, ``release["hour"]`` a margin of it, and
    ``release[()]`` the total.

    Parameters
    ----------
    tables : list of (str or list of str)
        The axes of each table. Each table shares an axis with another one. An axis of ``Keys`` is
        refused: the cells of all tables must be known beforehand.
    bins, width : number, list, dict, or None
        The bins of Interval axes, as in ``sf.Histogram``; a list has an entry for each Interval
        axis, in the order of the domain.
    weights : list of numbers, or None
        How much the variance of a count of each table matters; above 0. None: all the same, and a
        fiftieth for each margin that was not asked for.
    accuracy : number, list of numbers, or None
        The half-width that is asked for of each table's counts, at the same confidence. The noise
        then makes the largest ratio of a half-width to this number as small as the cost allows.
    totals : dict or None
        Counts that everybody knows, by the axes of a table: ``{"region": {"north": 120, ...}}``, or
        ``{(): 200}`` for the number of all rows. A table of several axes is named by a tuple, and
        so are its cells; a list of counts is in the order of the cells. All tables then have these
        totals exactly, and nothing is spent on them. They must be true of the rows counted, so each
        axis needs a cell for missing values and one for unlisted labels, and no column may name
        persons.
    heading, measured_in, label_names
        Words for people, by name: see ``Question``.

    Notes
    -----
    All tables count the same rows: those with a cell on every axis of the family. A row without a
    value on one of them is dropped from all tables, unless the domain gives it a cell.

    Under rho, the noise is put on the *residuals* of the tables: what each says beyond its own
    margins. Under epsilon and delta it is, too, if that is better. Under epsilon alone noisy tables
    are counted, and combined by least squares.

    Where the source gives ``norm_per_person``, a person's rows in all tables together cost at most
    as much as that many rows in one cell. It is refused under an epsilon alone.

    Raises
    ------
    UsageError
        If an axis is unknown or one of ``Keys``, a table is asked for twice, tables share no axis,
        a table has more than 2^24 cells, or weights or accuracies do not fit the tables. If totals
        contradict each other, lack a cell, name an unknown one, or rows may be left out. If there
        are limits by cell other than on the norm, or the cost does not go with that.

    Guarantee
    ---------
    {proof}

    Under rho, or under epsilon and delta if that is better, instead:
    {residuals_proof}

    Under a limit on the norm of a person's counts, instead:
    {norm_proof}

    >>> import numpy as np, sfumato as sf
    >>> domain = sf.Domain(age=sf.Interval(0, 90), stay=sf.Interval(0, 30), fee=sf.Interval(0, 9))
    >>> visits = sf.source(np.array([[31.0, 2, 1], [64.0, 9, 4]]), domain, name="visits")
    >>> question = sf.Tables([["age", "stay"], ["age", "fee"]], bins=3)
    >>> release = sf.Publisher(visits, budget="1").release(question, epsilon="1")
    >>> release["age", "fee"].values.shape
    (3, 3)
    >>> both = release["age", "fee"].values.sum(axis=1), release["age", "stay"].values.sum(axis=1)
    >>> bool(np.allclose(*both))
    True
    """

    tables: Sequence[str | Sequence[str]]
    bins: Bins = None
    width: Width = None
    weights: Sequence[float] | None = None
    accuracy: float | Sequence[float] | None = None
    totals: TotalsOrNone = None

    proof: ClassVar[Proof] = PROOF
    residuals_proof: ClassVar[Proof] = RESIDUALS
    norm_proof: ClassVar[Proof] = IN_NORM

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(
            self,
            tables=checked_tables(self.tables),
            bins=plain_bins(self.bins),
            width=plain_width(self.width),
        )
        weights, accuracy = checked_numbers(len(self.tables), self.weights, self.accuracy)
        settle(self, weights=weights, accuracy=accuracy, totals=plain_totals(self.totals) or None)

    @property
    def named_tables(self) -> tuple[tuple[str, ...], ...]:
        """The axes of each table."""
        return checked_tables(self.tables)

    @property
    def title(self) -> str:
        return f"Tables of {', '.join(map(named, self.named_tables))}"

    def canonical(self, domain: Domain) -> Tables:
        """Return the question unchanged: its axes are named already."""
        self._margins(self._chains(domain))
        return self

    def asks(self, domain: Domain) -> object:
        """Its cells, tables and what is to be small, in one order."""
        chains = self._chains(domain)
        margins = self._margins(chains)
        aim = self._aim
        of_each = aim.accuracies or aim.weights or (1.0,) * len(margins)
        pairs = sorted(zip(margins, of_each, strict=True))
        # Without weights, margins that were not asked for count, too: another design.
        kind = "weights" if aim.weights is None else "given weights"
        kind = kind if aim.accuracies is None else "accuracy"
        key = ("tables", chains.lattice.axes, kind, pairs)
        known = known_tables(self.public_totals, chains)
        if not known:
            return key
        totals = [(margin, known[margin].ravel().tolist()) for margin in sorted(known)]
        return (*key, totals)

    def needs(self, domain: Domain) -> Needs:
        """The lattice of all axes together: a row that misses any of them is counted nowhere."""
        chains = self._chains(domain)
        known_tables(self.public_totals, chains)
        margins = self._margins(chains)
        for table, margin in zip(self.named_tables, margins, strict=True):
            require_numbers(f"{self.title}: {named(table)}", chains.nesting.cells(margin))
        # Whole tables or residuals: of all margins, these are at least as many numbers.
        numbers = sum(map(chains.nesting.cells, closure_of(margins)))
        require_numbers(self.title, numbers)
        return Needs(chains.finest, numbers)

    def needs_at(self, domain: Domain, unit: Unit, cost: CentralMeasure) -> Needs:
        """The same, with the norm of a person's counts that the noise at this cost allows."""
        needs = self.needs(domain)
        norm = self._design(self._chains(domain), unit, cost).norm if unit.by_cell else None
        return msgspec.structs.replace(needs, norm=norm)

    def shown_lattice(self, domain: Domain) -> Lattice:
        """All axes that tables name, at every level."""
        return axes_lattice(self.title, domain, self.named_tables, self.bins, self.width)

    def require_unit(self, unit: Unit) -> None:
        """Refuse limits that hold on the cells of one table, and totals of limited rows."""
        require_flat_limits(self.title, unit)
        require_no_persons(self.public_totals, unit)

    def require_published(self, domain: Domain) -> None:
        """Refuse tables of which whole numbers that add up need not exist.

        ``published`` of the release would refuse them, after they were paid for.

        Raises
        ------
        Infeasible
            If tables of three or more axes share so many margins.
        """
        chains = self._chains(domain)
        names = tuple(map(named, self.named_tables))
        # The same steps are taken here and by the release, from public sizes alone.
        known = tuple(known_tables(self.public_totals, chains))
        steps_of(self._margins(chains), chains.nesting, names, known)

    def preview(
        self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None
    ) -> TablesPreview:
        """Say how accurate the counts of each table would be."""
        self.require_unit(unit)
        chains = self._chains(domain)
        design = self._design(chains, unit, cost)
        sizes = [chains.nesting.cells(margin) for margin in design.tables]
        preview = TablesPreview(
            self.title,
            design.cost,
            unit_of_tables(unit),
            sum(sizes),
            axes=tuple(axis.fanouts for axis in design.axes),
            tables=design.tables,
            names=tuple(map(named, self.named_tables)),
            measured=design.measured,
            wished=self._aim.accuracies,
            known=design.known,
            totals=tuple(named(total.axes, ALL_ROWS) for total in self.public_totals),
        )
        return with_whole_numbers(preview, self.shown_lattice(domain))

    def event(self, domain: Domain, unit: Unit, cost: CentralMeasure) -> Event:
        """State the noise on all tables that are measured."""
        self.require_unit(unit)
        return self._design(self._chains(domain), unit, cost).event(unit)

    def answer(
        self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits
    ) -> TablesRelease:
        """Add exact noise to the tables or residuals that the design names."""
        # Without a domain, as in audits, all axes are finest ones.
        domain = counts.domain
        chains = Chains.of(counts.lattice) if domain is None else self._chains(domain)
        # All tables follow from one count of the same rows: a person has one choice of rows in all.
        cube = counts.on(chains.finest)
        design = self._design(chains, unit, cost)
        _require_norm(counts, design)
        tables = chains.counts(cube, [measurement.margin for measurement in design.measured])
        proof = self.residuals_proof if design.has_residuals else self.proof
        if design.norm is not None:
            proof = self.norm_proof
        stated = unit_of_tables(unit)
        guarantee = self.promise(
            design.cost, stated, described(design.measured), noise, proof=proof
        )
        if design.has_residuals:
            guarantee = msgspec.structs.replace(guarantee, slack=SLACK)
        if self.public_totals:
            assumptions = (*guarantee.assumptions, assumption(self.public_totals))
            guarantee = msgspec.structs.replace(guarantee, assumptions=assumptions)
        known = known_tables(self.public_totals, chains).items()
        return TablesRelease(
            question=self,
            tables=self.named_tables,
            lattice=chains.lattice,
            measured=design.measured,
            noisy=design.measure(tables, noise),
            guarantee=guarantee,
            totals=tuple(KnownTable(margin, counts.ravel()) for margin, counts in known)
            or msgspec.UNSET,
            trees=chains.trees,
        )

    @property
    def _aim(self) -> Aim:
        accuracy = self.accuracy
        if isinstance(accuracy, int | float):
            accuracy = (float(accuracy),) * len(self.tables)
        weights = self.weights
        return Aim(
            None if weights is None else tuple(weights),
            None if accuracy is None else tuple(accuracy),
        )

    def _chains(self, domain: Domain) -> Chains:
        chains = Chains.of(self.shown_lattice(domain))
        require_connected(self.named_tables, chains)
        return chains

    def _margins(self, chains: Chains) -> tuple[Margin, ...]:
        return tuple(map(chains.margin, self.named_tables))

    def _design(self, chains: Chains, unit: Unit, cost: CentralMeasure) -> Design:
        known = tuple(known_tables(self.public_totals, chains))
        return design_for(chains.levels, self._margins(chains), self._aim, cost, unit, known)

    @property
    def public_totals(self) -> tuple[PublicTotal, ...]:
        """The totals that everybody knows."""
        return plain_totals(self.totals)


SLACK = (
    "discrete Gaussian noise of which differences are published: within the rho that is charged; "
    "integer samplers, no floating point"
)


def _require_norm(counts: Counts, design: Design) -> None:
    """Refuse counts of rows that another norm bounded than the one that the noise is for."""
    norm = counts.norm if isinstance(counts, WithinNorm) else None
    if design.norm not in (None, norm):
        raise InternalError("These counts are not within the norm that the noise is laid out for.")


Tables.examples = (
    Tables(["x"]),
    Tables(["x", []]),
    Tables(["x"], bins=[0, 1, 3], weights=[2]),
)
