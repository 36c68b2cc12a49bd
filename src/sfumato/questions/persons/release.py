"""The answer: how many persons have how many rows, and what follows for every limit on rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import msgspec
import numpy as np
import pyarrow as pa

from sfumato.answers import Axes, CountsRelease, Estimate, drawn, error_probability
from sfumato.basics import Array, Exactly, table_of, whole
from sfumato.domain import Axis, Domain
from sfumato.errors import UsageError, require_fitting
from sfumato.mechanisms import Law, sum_half_width
from sfumato.privacy import Unit, asked_rows, limit_in_words
from sfumato.questions.persons.measured import (
    LARGEST,
    MEASURED,
    Distribution,
    Measured,
    Of,
    Spread,
    bin_names,
    estimated,
    lower_ends,
    share_bounds,
    title_of,
    upper_ends,
)


class PersonsRelease(
    CountsRelease,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="persons-release",
    forbid_unknown_fields=True,
):
    """How many persons have how many rows, with noise on each number of persons.

    If persons were counted by how their rows spread over cells, ``spread`` says so, and "rows"
    below stands for what was measured: cells, the norm of a person's counts, or the rows in the
    person's largest cell. Limits are then those on cells, on the norm or on rows in a cell.

    Attributes
    ----------
    most_rows : int or None
        The public bound on a person's rows. Persons with more are counted in the last bin.
    domain : tuple of pairs of a name and an axis
        The public axes of the source, for ``sf.recommend``; empty where they are not known.
    counts : int64 ndarray of shape (bins,)
        Noisy numbers of persons; they may be negative.
    law : DiscreteLaplace or DiscreteGaussian
        The noise on each of them, independent of the others.
    spread : Spread
        What was measured, and the table whose cells it is about; unset where rows were counted.

    >>> import numpy as np, sfumato as sf
    >>> import pyarrow as pa
    >>> visits = pa.table({"patient": ["a", "a", "a", "b", "c"], "ward": ["1", "1", "2", "1", "2"]})
    >>> domain = sf.Domain(ward=sf.Categories(["1", "2"]))
    >>> src = sf.source(visits, domain, person="patient", rows_per_person=12, name="visits")
    >>> release = sf.Publisher(src, budget="1").release(sf.Persons(most_rows=100), epsilon="1")
    >>> release.counts.ndim, release.persons(confidence="0.95").confidence
    (1, 0.95)
    >>> sf.recommend(release, sf.Histogram("ward"), epsilon="1").name
    'rows_per_person'
    """

    _in_details: ClassVar[frozenset[str]] = frozenset(
        {"domain_of_source", "law", "measured", "most", "of", "require_most", "spread"}
    )

    noun: ClassVar[str] = "number of persons"

    most_rows: int | None
    domain: tuple[tuple[str, Axis], ...]
    counts: Array
    law: Law
    spread: Spread | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        require_fitting(
            self.counts.shape == (len(upper_ends(self.most)),),
            "numbers of persons",
            "its numbers of persons do not fit its bins",
        )

    @property
    def title(self) -> str:
        axes = () if self.spread is msgspec.UNSET else self.spread.axes
        return title_of(self.measured, self.unit.who, axes)

    @property
    def of(self) -> Of:
        """What was measured of each person."""
        return "rows" if self.spread is msgspec.UNSET else self.spread.of

    @property
    def measured(self) -> Measured:
        """The same in words, and the limit that bounds it."""
        return MEASURED[self.of]

    @property
    def most(self) -> int | None:
        """The largest number that persons are told apart by; None where nothing bounds it."""
        return self.most_rows if self.spread is msgspec.UNSET else self.spread.most

    @property
    def unit(self) -> Unit:
        """What one person can change, as the source states it."""
        return self.guarantee.unit

    @property
    def noise(self) -> Law:
        """The law of the noise on each number of persons."""
        return self.law

    @property
    def facts(self) -> tuple[str, ...]:
        """How many persons there are, and what some limits leave out."""
        everyone = self.persons()
        first = (
            f"There are {everyone.low:,.0f} to {everyone.high:,.0f} {self.unit.several} "
            "with 95% confidence."
        )
        # At these ends of bins about half, nine tenths and all persons keep all rows.
        beyond = np.cumsum(self.counts[::-1])[::-1]
        # Of the persons in bins after each end; the last bin has none after it.
        after = np.append(beyond[1:], 0)[: len(self.limits)]
        total = max(int(beyond[0]), 1)
        telling = [int(np.argmax(after <= share * total)) for share in (0.5, 0.1, 0.01)]
        limits = [int(self.limits[at]) for at in dict.fromkeys(telling)]
        others = [f"If {self._limited(limit)}, {self._left_out(limit)}" for limit in limits]
        return (first, *others)

    @property
    def limits(self) -> Array:
        """The largest number of rows in each bin: int64 ndarray of shape (bins,).

        Where nothing bounds it, the last bin has no end, and ``limits`` is one number shorter.
        """
        ends = np.array(upper_ends(self.most), np.int64)
        return ends if self.most is not None else ends[:-1]

    # --- what follows -----------------------------------------------------------------------------

    def persons(self, confidence: Exactly = "0.95") -> Estimate:
        """How many persons there are.

        Parameters
        ----------
        confidence : number in (0, 1)
        """
        return self._persons_from(0, len(self.counts), confidence)

    def affected(self, limit: int, confidence: Exactly = "0.95") -> Estimate:
        """How many persons have more rows than a limit, and would lose some.

        Parameters
        ----------
        limit : int
            Rows per person. At the end of a bin the interval is narrowest.
        confidence : number in (0, 1)

        Raises
        ------
        UsageError
            If the limit is not a whole number from 1 on.
        """
        limit = self._limit(limit)
        ends = np.array(upper_ends(self.most), np.int64)
        # Bins that lie above the limit altogether, and those that lie above it at least in part.
        above = int(np.searchsorted(lower_ends(self.most), limit, side="right"))
        reaching = int(np.searchsorted(ends, limit, side="right"))
        return self._persons_from(above, len(self.counts), confidence, reaching)

    def kept(self, limit: int, confidence: Exactly = "0.95") -> Estimate:
        """Which share of the rows a limit on rows per person keeps.

        The interval holds however many persons there are, if nobody has more than ``most_rows``
        rows. If persons were counted by their cells, it is the share of all pairs of a person and a
        cell with rows of that person.

        Parameters
        ----------
        limit : int
            Rows per person, from 1 to ``most_rows``.
        confidence : number in (0, 1)

        Raises
        ------
        UsageError
            If the question stated no ``most_rows``, the limit lies above it, or persons were
            counted by a norm or a largest cell, from which no share of rows follows.
        """
        noun = self.measured.noun
        if not self.measured.kept_of:
            raise UsageError(
                f"the share of rows that a limit on {noun} keeps",
                "how many rows a person has does not follow from it",
                "Ask how many persons it affects, or use sf.recommend",
            )
        most = self.require_most("the share of rows that a limit keeps")
        limit = self._limit(limit)
        if limit > most:
            raise UsageError(
                f"the share of {noun} kept at a limit of {limit:,}",
                f"nobody has more than {most:,} {noun}, as the question stated",
                f"Ask for a limit of at most {most:,}, or ask sf.Persons again",
            )
        alpha = error_probability(confidence)
        lowest, highest = self._ends
        low, high = share_bounds(self.counts, lowest, highest, self.law, limit, alpha)
        value = float(np.clip(self.distribution.kept(limit), low, high))
        # At least limit / most of the rows is kept whatever the data are: known is what says more.
        known = low > limit / most or high < 1
        return Estimate(value, low, high, 1 - alpha, self.about, known)

    @cached_property
    def distribution(self) -> Distribution:
        """The numbers of rows that every limit leaves out, of draws that fit the noisy counts."""
        self.require_most("what limits leave out")
        lowest, highest = self._ends
        return estimated(self.counts, lowest, highest, self.law)

    def require_most(self, request: str) -> int:
        """The public bound on what was measured of a person.

        Raises
        ------
        UsageError
            If the question did not state one.
        """
        if self.most is None:
            raise UsageError(
                request,
                "without a bound on a person's rows, a few persons may have nearly all of them",
                "Ask sf.Persons(most_rows=1000), with a bound that is publicly known",
            )
        return self.most

    @property
    def _ends(self) -> tuple[Array, Array]:
        return lower_ends(self.most), np.array(upper_ends(self.most), np.int64)

    def _limit(self, limit: object) -> int:
        """Read a limit; refused where no bin ends the persons that it affects."""
        noun = self.measured.noun
        number = whole(
            limit,
            "limit",
            1,
            LARGEST,
            obstacle=f"a limit on {noun} per person is a whole number from 1 to 10^9",
            remedy="Give a number such as 100",
        )
        if self.most is None and number > int(self.limits[-1]):
            raise UsageError(
                f"a limit of {number:,} {noun} per person",
                f"without most_rows, persons with more than {int(self.limits[-1]):,} {noun} are "
                "counted together",
                "Ask sf.Persons(most_rows=...) with a larger bound",
            )
        return number

    def _persons_from(
        self, first: int, stop: int, confidence: Exactly, reaching: int | None = None
    ) -> Estimate:
        """Return the number of persons in the last bins.

        The lower end is of the bins from ``first`` on, the upper end of those from ``reaching`` on,
        where a limit lies within a bin.
        """
        alpha = error_probability(confidence)
        wider = first if reaching is None else reaching
        fewest = int(self.counts[first:stop].sum())
        most = int(self.counts[wider:stop].sum())
        # Persons of a bin that the limit cuts may be on either side of it: they are in the upper
        # end only.
        low = fewest - sum_half_width(self.law, stop - first, alpha)
        high = most + sum_half_width(self.law, stop - wider, alpha)
        low = max(low, 0)
        high = max(high, low)
        value = int(np.clip(round((fewest + most) / 2), low, high))
        return Estimate(value, low, high, 1 - alpha, self.about)

    # --- forms ------------------------------------------------------------------------------------

    def to_frame(self) -> pa.Table:
        """One row per bin: what each limit at the end of a bin leaves out.

        ``rows`` (or ``cells``, ``norm``, ``largest_cell``) names the bin; ``count``, ``low`` and
        ``high`` are the noisy number of persons in
        it and its 95% interval. ``limit`` is the largest number of rows in the bin: ``affected`` is
        how many persons have more, and ``kept`` the share of rows that the limit keeps, each with
        its 95% interval. ``kept`` is null where no ``most_rows`` was stated, and absent where it
        does not follow.
        """
        low, high = self.interval("0.95")
        limits = self.limits.tolist()
        # Nobody is in more cells than there are.
        exact = self.of == "cells" and self.most is not None and self.most != self.most_rows
        columns: dict[str, object] = {
            self.of.replace("-", "_"): bin_names(self.most, exact=exact),
            "count": self.counts,
            "low": low,
            "high": high,
            "limit": self._column(limits, pa.int64()),
        }
        columns |= self._columns_of("affected", list(map(self.affected, limits)), pa.int64())
        if not self.measured.kept_of:
            return table_of(columns)
        kept = [] if self.most is None else list(map(self.kept, limits))
        return table_of(columns | self._columns_of("kept", kept, pa.float64()))

    def _columns_of(
        self, name: str, estimates: list[Estimate], kind: pa.DataType
    ) -> dict[str, object]:
        return {
            name: self._column([estimate.value for estimate in estimates], kind),
            f"{name}_low": self._column([estimate.low for estimate in estimates], kind),
            f"{name}_high": self._column([estimate.high for estimate in estimates], kind),
        }

    def _column(self, values: Sequence[object], kind: pa.DataType) -> pa.Array:
        missing = [None] * (len(self.counts) - len(values))
        return pa.array([*values, *missing], kind)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw which share of the rows each limit keeps; without ``most_rows``, how many persons
        each limit affects. The band is the 95% interval.
        """
        return drawn("persons.draw", self, ax)

    # --- in later answers -------------------------------------------------------------------------

    def sentence(self, limit: int) -> str:
        """How much a limit on rows per person leaves out, for pages about other answers.

        It is empty where the limit is beyond what is known.
        """
        if self.most is None and limit > int(self.limits[-1]):
            return ""
        limited = self._limited(limit)
        return f"{limited[0].upper()}{limited[1:]}: {self._left_out(limit)}"

    def _limited(self, limit: int) -> str:
        """Return what a limit does, as a sentence without its beginning and end."""
        return limit_in_words(self.measured.limit, limit, self.unit.who)

    def _left_out(self, limit: int) -> str:
        of_all = f"of about {self.persons().value:,.0f} {self.unit.several} {self.measured.beyond}"
        affected = self.affected(limit)
        said = f"{range_in_words(affected)} {of_all}"
        if self.most is None or not self.measured.kept_of:
            unknown = "; how many of their rows are missing is not known"
            return f"{said}, with 95% confidence{unknown if affected.high >= 1 else ''}."
        kept = self.kept(min(limit, self.most))
        # Rounded down, so that what is said holds too.
        least = math.floor(float(kept.low) * 1000) / 10
        kept_of = self.measured.kept_of.format(who=self.unit.who)
        assumed = ""
        # Where the cells alone bound what is kept, nothing is assumed.
        if self.most_rows is not None and (self.of == "rows" or self.most == self.most_rows):
            assumed = f", if nobody has more than {self.most_rows:,} rows"
        return (
            f"{said}, and at least {least:.1f}% of {kept_of} are kept, each with 95% "
            f"confidence{assumed}."
        )

    def domain_of_source(self) -> Domain | None:
        """The public axes of the source, where they are known."""
        return Domain(dict(self.domain)) if self.domain else None


def range_in_words(number: Estimate) -> str:
    """The interval of a number of persons in words: "none", "at most 3" or "2 to 5".

    Holds because: the number is whole, so that one of at most 0.4 is 0.
    """
    low = math.ceil(number.low)
    high = math.floor(number.high)
    if high <= 0:
        return "none"
    if low == high:
        return f"{low:,}"
    return f"at most {high:,}" if low <= 0 else f"{low:,} to {high:,}"


def counted_persons(unit: Unit, of: Of = "rows") -> str:
    """Return which rows an answer about persons is about, in words."""
    by = MEASURED[of].by
    if of == "rows":
        return (
            f"{asked_rows(unit)}All rows that name {unit.anyone} are counted, before any limit on "
            f"rows per person. Rows without one are not. Each {unit.who} is counted once, by {by}."
        )
    return (
        f"{asked_rows(unit)}All rows that name {unit.anyone} and lie in a cell are counted, before "
        f"any limit. Other rows are not. Each {unit.who} is counted once, by {by}."
    )
