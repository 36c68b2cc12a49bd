"""The limit on a person to take: what it leaves out, and the noise that it needs.

``Candidates`` are limits of one kind: the noise that each needs, and the rows that each leaves out.

A limit on rows leaves out what exceeds it. Under a limit on the norm, a person whose counts have
the norm v keeps a random share of about c / v of the rows: the counts shrink in proportion. So a
limit c leaves out the share sum (v - c) / sum v of all rows, over the persons beyond it. The same
formula holds of cells, since those counted are chosen at random, and bounds what a limit on rows in
a cell leaves out, since the cell with most rows loses the largest share.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa

from sfumato.answers import AnyQuestion, Axes, Estimate, Question, drawn
from sfumato.basics import Array, Exactly
from sfumato.domain import Axis, Domain
from sfumato.errors import UsageError, explained, explained_methods, shown
from sfumato.mechanisms import DiscreteGaussian, DiscreteLaplace, Law, count_law
from sfumato.privacy import CentralMeasure, Limits, Unit, asked_cost, limits_of, without_delta
from sfumato.questions.persons.measured import LimitName, Measured
from sfumato.questions.persons.release import PersonsRelease, range_in_words

# --- candidates -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidates:
    """Limits of one kind for one question, and what else bounds a person beside them.

    Attributes
    ----------
    release : PersonsRelease
        What was measured of each person decides the kind.
    cells : int
        The cells of the question.
    knows_cells : bool
        Whether the noise of the question rests on its number of cells too.
    counts_persons : bool
        Whether the question counts each person once in a cell.
    rows_per_cell, cells_per_person : int or None
        Limits that stand beside those that are compared.
    """

    release: PersonsRelease
    cells: int
    knows_cells: bool = False
    counts_persons: bool = False
    rows_per_cell: int | None = None
    cells_per_person: int | None = None

    def unit(self, limit: int) -> Unit:
        """What one person can change under a limit, as the source states it."""
        unit = msgspec.structs.replace(self.release.unit, rows_per_person=1, limits=msgspec.UNSET)
        match self.release.of:
            case "rows":
                return msgspec.structs.replace(unit, rows_per_person=limit)
            case "norm":
                return _within(unit, limit**2, Limits(norm_per_person=limit))
            case "largest-cell":
                cells = min(self.cells_per_person or self.cells, self.cells)
                return _within(unit, limit * cells, Limits(limit, cells))
            case "cells":
                if self.counts_persons:
                    return unit.counting_persons(limit)
                assert self.rows_per_cell is not None
                return _within(unit, limit * self.rows_per_cell, Limits(self.rows_per_cell, limit))

    def noise(self, limits: Array, cost: CentralMeasure) -> Array:
        """The mean size of the noise on each number that each limit needs: float64 ndarray."""
        # With so many rows, the noise is so wide that its being whole numbers does not matter.
        many = msgspec.structs.replace(self.unit(1), rows_per_person=100, limits=msgspec.UNSET)
        law = count_law(cost, many)
        if isinstance(law, DiscreteLaplace):
            mean_size = float(law.scale)
        else:
            mean_size = math.sqrt(2 / math.pi) * law.sigma
        size_per_row = mean_size / _sensitivity(many, law)
        units = [self.unit(limit) for limit in limits.tolist()]
        if self.knows_cells:
            units = [unit.on_cells(self.cells) for unit in units]
        return size_per_row * np.array([_sensitivity(unit, law) for unit in units])

    def lost(self, rows: PersonsRelease | int | None) -> Array:
        """The rows (or persons) per cell that each limit of the distribution leaves out.

        It is a float64 ndarray of shape (draws, limits).

        Parameters
        ----------
        rows : PersonsRelease, int or None
            How many rows there are, where that does not follow from the release.
        """
        distribution = self.release.distribution
        if self.release.of == "rows" or self.counts_persons:
            return distribution.lost / self.cells
        return distribution.shares_lost * _number_of_rows(self.release, rows) / self.cells


def _within(unit: Unit, rows: int, limits: Limits) -> Unit:
    return msgspec.structs.replace(unit, rows_per_person=rows, limits=limits)


def _number_of_rows(release: PersonsRelease, rows: object) -> float:
    """How many rows there are: as stated, or from an answer about the rows of each person."""
    request = f"a recommended limit from {release.title!r}"
    if isinstance(rows, int) and not isinstance(rows, bool) and rows > 0:
        return float(rows)
    if rows is None:
        raise UsageError(
            request,
            f"how many rows there are does not follow from {release.measured.noun}",
            "Give rows=: the answer to sf.Persons(most_rows=1000), or a number that is public",
        )
    if not isinstance(rows, PersonsRelease) or rows.of != "rows":
        raise UsageError(
            f"{request}, with rows= of type {type(rows).__name__}",
            "it is neither a whole number nor an answer about the rows of each person",
            "Give the answer to sf.Persons(most_rows=1000)",
        )
    return rows.distribution.number_of_rows


def _sensitivity(unit: Unit, law: Law) -> float:
    match law:
        case DiscreteLaplace():
            return float(unit.counts_l1)
        case DiscreteGaussian():
            return math.sqrt(unit.counts_l2_squared)


# --- the recommendation ---------------------------------------------------------------------------

CONFIDENCE = 0.95  # the share of the draws that an advice tells of


@explained_methods
@dataclass(frozen=True)
class Recommendation:
    """The limit on a person to take for one question, and what it leads to.

    It follows from a release and from public numbers: it spends nothing, and may be published.

    Attributes
    ----------
    limit : int
        Give it to the source, under the name that ``name`` says.
    error : float
        The mean error per number that it leads to, estimated and counted in rows (in persons, if
        the question counts them): rows left out, and the mean size of the noise.
    question : str
        What it is for.
    cost : PureDP, ApproxDP or ZCDP
    unit : Unit
        What one person can change, under this limit.
    cells : int
        How many numbers the question publishes.
    kept : Estimate or None
        The share of rows that the limit keeps. None where no interval of it follows from the
        release: see ``measured.share_bounds``.
    affected : Estimate
        How many persons are beyond the limit.
    limits : int64 ndarray of shape (limits,)
        The limits that were compared.
    lost, noise : float64 ndarrays of shape (limits,)
        Per cell: the rows that each limit leaves out, the median of what fits the noisy counts, and
        the mean size of the noise it needs.
    times_best : float
        Of the distributions that fit the noisy counts, the error under this limit is at most so
        many times the best limit's in 95%. It is no guarantee.
    measured : Measured
        What was measured of each person, in words.
    share : float
        The share of rows that the limit keeps, estimated.

    >>> import pyarrow as pa, sfumato as sf
    >>> visits = pa.table({"patient": ["a", "a", "a", "b", "c"], "ward": ["1", "1", "2", "1", "2"]})
    >>> domain = sf.Domain(ward=sf.Categories(["1", "2"]))
    >>> src = sf.source(visits, domain, person="patient", rows_per_person=12, name="visits")
    >>> persons = sf.Publisher(src, budget="1").release(sf.Persons(most_rows=100), epsilon="0.2")
    >>> advice = sf.recommend(persons, sf.Histogram("ward"), epsilon="0.8")
    >>> advice.name, 1 <= advice.limit <= 100
    ('rows_per_person', True)
    """

    limit: int
    error: float
    question: str
    cost: CentralMeasure
    unit: Unit
    cells: int
    kept: Estimate | None
    affected: Estimate
    limits: Array
    lost: Array
    noise: Array
    times_best: float
    measured: Measured
    share: float

    @property
    def name(self) -> LimitName:
        """The limit of ``sf.source`` that it is."""
        return self.measured.limit

    @property
    def title(self) -> str:
        """What it is about, for reports."""
        return f"The limit to take: {self.name}"

    @property
    def settings(self) -> dict[str, int]:
        """The limits to give to ``sf.source``: this one, and those that were stated beside it."""
        if self.unit.limits is msgspec.UNSET:
            return {self.name: self.limit}
        return self.unit.limits.given

    @property
    def axis(self) -> str:
        """What pictures write below the limits."""
        return self.measured.axis

    @property
    def noun(self) -> str:
        """What errors are counted in."""
        return "persons" if self.unit.counts_persons else "rows"

    @property
    def curve(self) -> pa.Table:
        """One row per limit that was compared: limit, lost, noise and error, each per cell."""
        return pa.table(
            {
                "limit": self.limits,
                "lost": self.lost,
                "noise": self.noise,
                "error": self.lost + self.noise,
            }
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw rows left out, noise and their sum for every limit, and mark the one to take."""
        return drawn("persons.draw_recommendation", self, ax)

    def explain(self) -> str:
        """Say which limit to take and what it rests on, a sentence a line."""
        noise = float(np.interp(self.limit, self.limits, self.noise))
        return "\n".join(
            [
                self.advice,
                f"For {self.question} at {self.cost} the mean error per number, counted in "
                f"{self.noun}, is about {_short(self.error)}: {_short(noise)} of noise, and "
                f"{_short(self.error - noise)} left out.",
                self.nearness,
                self._what_it_keeps,
                "The limit follows from a release that was paid for, so it is public.",
            ]
        )

    @property
    def advice(self) -> str:
        """Which limit to take, in one sentence."""
        settings = ", ".join(f"{name}={limit}" for name, limit in self.settings.items())
        who = self.unit.who
        match self.name:
            case "rows_per_person":
                return f"Take at most {self.limit:,} rows of each {who}: {settings}."
            case "cells_per_person":
                beside = self.settings["rows_per_cell"]
                within = "" if beside == 1 else f", of at most {beside:,} rows each"
                return f"Count each {who} in at most {_cells(self.limit)}{within}: {settings}."
            case "norm_per_person":
                return (
                    f"Keep the L2 norm of the counts of each {who} at or below {self.limit:,}: "
                    f"{settings}."
                )
            case "rows_per_cell":
                return f"Take at most {self.limit:,} rows of each {who} in a cell: {settings}."

    @property
    def nearness(self) -> str:
        """How near to the best limit's error this one leads, in one sentence."""
        times = math.ceil(100 * self.times_best - 1e-9) / 100
        return (
            f"Of the distributions that fit the noisy counts, this limit is within {times:.2f} "
            f"times the best limit's error in {CONFIDENCE:.0%}."
        )

    @property
    def _what_it_keeps(self) -> str:
        affected = range_in_words(self.affected)
        if self.kept is None:
            kept_of = "the rows" if self.name != "cells_per_person" else "these rows"
            return (
                f"It keeps about {self.share:.1%} of {kept_of}, as estimated. With "
                f"{self.affected.confidence:.0%} confidence, {affected} persons "
                f"{self.measured.beyond}."
            )
        kept = f"{float(self.kept.low):.1%} to {float(self.kept.high):.1%}"
        confidence = f"each with {self.kept.confidence:.0%} confidence"
        if self.name == "rows_per_person":
            return (
                f"It keeps {kept} of the rows; {affected} have more than {self.limit:,} rows, "
                f"{confidence}."
            )
        kept_of = self.measured.kept_of.format(who=self.unit.who)
        return f"It keeps {kept} of {kept_of}; {affected} {self.measured.beyond}, {confidence}."

    def __str__(self) -> str:
        return self.explain()


@explained
def recommend(
    release: PersonsRelease,
    question: AnyQuestion,
    *,
    epsilon: Exactly | None = None,
    delta: Exactly = 0,
    rho: Exactly | None = None,
    domain: Domain | Mapping[str, Axis] | None = None,
    rows: PersonsRelease | int | None = None,
    rows_per_cell: int | None = None,
    cells_per_person: int | None = None,
) -> Recommendation:
    """Which limit on a person makes a question's answer most accurate?

    A low limit leaves out rows; a high one needs more noise. The error of a limit is the sum of the
    two: rows left out per number published, and the mean size of the noise. Many distributions fit
    the noisy counts of the release. For each of them the error of a limit is some multiple of the
    best limit's; the limit to take has the least mean of these multiples. This is computed from
    releases alone, so it spends nothing.

    What the release measured decides which limit it is: ``rows_per_person`` from the rows of each
    person, ``norm_per_person``, ``rows_per_cell`` or ``cells_per_person`` from
    ``sf.Persons(of="norm")``, ``of="largest-cell"`` or ``of="cells"``. The last three hold on the
    cells of one table, so release and question must be about the same cells. Under rho, a limit on
    the norm allows most rows for the same noise.

    Parameters
    ----------
    release : PersonsRelease
        The answer to ``sf.Persons(most_rows=...)``.
    question : question
        What is to be asked under the limit. It must publish a number of counts or sums that is
        known beforehand: a histogram, means or sums by group.
    epsilon, delta, rho : number or text
        What the question is to cost: give epsilon (with delta) or rho.
    domain : Domain or None
        The public axes of the question. None: those of the source that the release is about.
    rows : PersonsRelease, int or None
        How many rows there are, for a limit on the norm, on rows in a cell, or on cells in which
        rows are counted: the answer about the rows of each person, or a number that is public.
    rows_per_cell : int or None
        For a limit on the cells in which rows are counted: the limit on rows that stands beside it.
    cells_per_person : int or None
        For a limit on rows in a cell: the limit on cells that stands beside it. None: all cells.

    Returns
    -------
    Recommendation

    Raises
    ------
    UsageError
        If the release has no ``most_rows``, the question publishes a number of counts that is not
        known beforehand, is about other cells than the release, or does not fit the domain; or if a
        limit beside the recommended one, or the number of rows, is needed and not given.

    >>> import pyarrow as pa, sfumato as sf
    >>> trips = pa.table({"rider": [i % 500 for i in range(2000)], "hour": [7] * 2000})
    >>> domain = sf.Domain(hour=sf.Interval(0, 24, step=1))
    >>> src = sf.source(trips, domain, person="rider", name="trips")
    >>> pub = sf.Publisher(src, budget="2")
    >>> persons = pub.release(sf.Persons(most_rows=100), epsilon="1")
    >>> recommend(persons, sf.Histogram("hour"), epsilon="1").limit in (3, 4)
    True
    """
    _check(release, question)
    cost = asked_cost(epsilon=epsilon, delta=delta, rho=rho)
    # The limit is what is looked for: those of the source do not hold for the question to come.
    unit = msgspec.structs.replace(release.unit, rows_per_person=1, limits=msgspec.UNSET)
    public = _domain(release, domain)
    cells, used = _published(question, public, unit, cost)
    counts_persons = _counts_persons(release, question, public, cells)
    beside = _limits_beside(release, counts_persons, rows_per_cell, cells_per_person)
    knows_cells = release.of != "rows" and _knows_cells(question, public, unit, used, cells)
    candidates = Candidates(release, cells, knows_cells, counts_persons, *beside)
    limits = release.distribution.limits
    lost_by_draw = candidates.lost(rows)
    noise = candidates.noise(limits, used)
    errors = lost_by_draw + noise
    times_best = errors / errors.min(axis=1, keepdims=True)
    chosen = _least(limits, times_best.mean(axis=0), release.limits)
    lost = np.median(lost_by_draw, axis=0)
    limit = int(limits[chosen])
    return Recommendation(
        limit=limit,
        error=float(lost[chosen] + noise[chosen]),
        question=question.title,
        cost=used,
        unit=candidates.unit(limit),
        cells=cells,
        kept=release.kept(limit) if release.measured.kept_of and beside[0] is None else None,
        affected=release.affected(limit),
        limits=limits,
        lost=lost,
        noise=noise,
        times_best=float(np.quantile(times_best[:, chosen], CONFIDENCE)),
        measured=release.measured,
        share=release.distribution.kept(limit),
    )


def _check(release: object, question: object) -> None:
    if not isinstance(release, PersonsRelease):
        raise UsageError(
            f"a recommendation from a {type(release).__name__}",
            "a limit is recommended from the rows of each person",
            "Release sf.Persons(most_rows=1000) first, and give its answer",
        )
    if not isinstance(question, Question):
        raise UsageError(
            f"a recommendation for a {type(question).__name__}",
            "a limit is recommended for one question",
            'Write sf.Histogram("hour") or another question',
        )
    release.require_most("a recommended limit")


def _domain(release: PersonsRelease, given: Domain | Mapping[str, Axis] | None) -> Domain:
    domain = release.domain_of_source() if given is None else given
    if domain is None:
        raise UsageError(
            "a recommended limit",
            "the release does not say which axes the source has",
            "Give domain= as well",
        )
    return domain if isinstance(domain, Domain) else Domain(domain)


def _published(
    question: AnyQuestion, domain: Domain, unit: Unit, cost: CentralMeasure
) -> tuple[int, CentralMeasure]:
    preview = question.preview(domain, unit, cost)
    if preview.cells is None:
        raise UsageError(
            f"a recommended limit for {question.title}",
            "how many numbers it publishes is not known beforehand",
            "Ask for a question whose labels and bins are declared, such as a histogram",
        )
    return preview.cells, without_delta(preview.cost)


def _counts_persons(
    release: PersonsRelease, question: AnyQuestion, domain: Domain, n_cells: int
) -> bool:
    """Tell whether the question counts persons; refused where the release does not limit it."""
    needs = question.needs(domain)
    request = f"a recommended limit for {question.title}, from {release.title!r}"
    if needs.of_each_person or (needs.counted == "persons" and not needs.row_lattice.axes):
        raise UsageError(
            request,
            "it counts each person once, whatever the limit",
            "Ask for a histogram, means or sums by group",
        )
    if needs.counted == "persons" and release.of != "cells":
        raise UsageError(
            request,
            "it does not count rows, so only the cells of each person limit it",
            f'Release sf.Persons(of="cells", axes={list(needs.row_lattice.names)})',
        )
    if release.spread is not msgspec.UNSET:
        cells = release.spread.cells(domain)
        if cells.size != n_cells or not set(cells.axes) <= set(needs.row_lattice.axes):
            raise UsageError(
                request,
                "a limit by cell holds on the cells of one table, and theirs differ",
                "Release sf.Persons with the axes and bins of the question",
            )
    return needs.counted == "persons"


def _knows_cells(
    question: AnyQuestion, domain: Domain, unit: Unit, cost: CentralMeasure, n_cells: int
) -> bool:
    """Tell whether the noise of a question rests on its number of cells too: seen by an example."""
    # One row in each of all cells is one row less than this limit allows.
    more = msgspec.structs.replace(
        unit, rows_per_person=n_cells + 1, limits=Limits(rows_per_cell=1)
    )
    return question.preview(domain, more, cost).unit != more


def _limits_beside(
    release: PersonsRelease,
    counts_persons: bool,
    rows_per_cell: int | None,
    cells_per_person: int | None,
) -> tuple[int | None, int | None]:
    """The limits on rows in a cell and on cells that stand beside the one that is looked for."""
    needs_rows = release.of == "cells" and not counts_persons
    if needs_rows and rows_per_cell is None:
        raise UsageError(
            "a recommended limit on the cells in which rows are counted",
            "without a limit on rows in a cell, all rows of a person may lie in one",
            "Give rows_per_cell=, or recommend from the norm of each person",
        )
    for name, limit, used in (
        ("rows_per_cell", rows_per_cell, needs_rows),
        ("cells_per_person", cells_per_person, release.of == "largest-cell"),
    ):
        if limit is not None and not used:
            raise UsageError(
                f"a recommended {release.measured.limit} with {name} = {shown(limit)}",
                "that limit does not stand beside it",
                "Leave it out",
            )
    limits_of(rows_per_cell, cells_per_person, None)  # refuses what is no whole number
    return rows_per_cell, cells_per_person


def _least(limits: Array, times_best: Array, ends: Array) -> int:
    """Return where a mean is least; at the end of a bin, if it is hardly larger there.

    What a limit at the end of a bin leaves out is known best.
    """
    best = int(np.argmin(times_best))
    at_ends = np.flatnonzero(np.isin(limits, ends))
    best_end = int(at_ends[np.argmin(times_best[at_ends])])
    return best_end if times_best[best_end] <= 1.02 * times_best[best] else best


def _cells(number: int) -> str:
    return "one cell" if number == 1 else f"{number:,} cells"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"
