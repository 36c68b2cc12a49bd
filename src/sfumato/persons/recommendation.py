"""The limit on rows per person to take: what it leaves out, and the noise that it needs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from sfumato.answers.estimate import Estimate
from sfumato.answers.question import AnyQuestion, Question
from sfumato.arrays import Array
from sfumato.domain import Axis, Domain
from sfumato.errors import UsageError
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, Law, count_law
from sfumato.numbers import Exactly
from sfumato.persons.release import PersonsRelease
from sfumato.privacy.measures import CentralMeasure, asked_cost, without_delta
from sfumato.privacy.unit import Unit

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

AS_GOOD = 1.02  # times the least error: within it, an end of a bin is preferred


@dataclass(frozen=True)
class Recommendation:
    """The limit on rows per person to take for one question, and what it leads to.

    It follows from a release and from public numbers: it spends nothing, and may be published.

    Attributes
    ----------
    limit : int
        Give it as ``rows_per_person`` of the source.
    error : float
        The mean error per number that it leads to, estimated and counted in rows: rows left out,
        and the mean size of the noise.
    question : str
        What it is for.
    cost : PureDP, ApproxDP or ZCDP
    unit : Unit
        What one person can change, under this limit.
    cells : int
        How many numbers the question publishes.
    kept : Estimate
        The share of rows that the limit keeps.
    affected : Estimate
        How many persons have more rows.
    limits : int64 ndarray of shape (limits,)
        The limits that were compared.
    lost, noise : float64 ndarrays of shape (limits,)
        Per cell: the rows that each limit leaves out, and the mean size of the noise it needs.
    """

    limit: int
    error: float
    question: str
    cost: CentralMeasure
    unit: Unit
    cells: int
    kept: Estimate
    affected: Estimate
    limits: Array
    lost: Array
    noise: Array

    @property
    def curve(self) -> pa.Table:
        """One row per limit that was compared: limit, lost, noise and error, each per cell."""
        import pyarrow as pa

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
        from sfumato.charts import persons

        return persons.draw_recommendation(self, ax)

    def explain(self) -> str:
        """Say which limit to take and what it rests on, a sentence a line."""
        who = self.unit.who
        noise = float(np.interp(self.limit, self.limits, self.noise))
        return "\n".join(
            [
                f"Take at most {self.limit:,} rows of each {who}: rows_per_person={self.limit}.",
                f"For {self.question} at {self.cost} the mean error per number, counted in "
                f"rows, is about {_short(self.error)}: {_short(noise)} of noise, and "
                f"{_short(self.error - noise)} left out.",
                f"It keeps {float(self.kept.low):.1%} to {float(self.kept.high):.1%} of the rows; "
                f"{self.affected.low:,.0f} to {self.affected.high:,.0f} have more than "
                f"{self.limit:,} rows, each with {self.kept.confidence:.0%} confidence.",
                "The limit follows from a release that was paid for, so it is public.",
            ]
        )

    def __str__(self) -> str:
        return self.explain()


def recommend(
    release: PersonsRelease,
    question: AnyQuestion,
    *,
    epsilon: Exactly | None = None,
    delta: Exactly = 0,
    rho: Exactly | None = None,
    domain: Domain | Mapping[str, Axis] | None = None,
) -> Recommendation:
    """Which limit on rows per person makes a question's answer most accurate?

    A low limit leaves out rows; a high one needs more noise. The limit to take has the least sum of
    the two: rows left out per number published, and the mean size of the noise. This is computed
    from the release alone, so it spends nothing.

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

    Returns
    -------
    Recommendation

    Raises
    ------
    UsageError
        If the release has no ``most_rows``, the question publishes a number of counts that is not
        known beforehand, or it does not fit the domain.

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
    unit = Unit(1, release.unit.neighbours, release.unit.person, period=release.unit.period)
    cells, used = _published(question, _domain(release, domain), unit, cost)
    distribution = release.distribution
    limits = distribution.limits
    lost = distribution.lost / cells
    noise = limits * _mean_size_per_row(used, unit)
    chosen = _least(limits, lost + noise, release.limits)
    limit = int(limits[chosen])
    return Recommendation(
        limit=limit,
        error=float(lost[chosen] + noise[chosen]),
        question=question.title,
        cost=used,
        unit=msgspec.structs.replace(unit, rows_per_person=limit),
        cells=cells,
        kept=release.kept(limit),
        affected=release.affected(limit),
        limits=limits,
        lost=lost,
        noise=noise,
    )


def _check(release: object, question: object) -> None:
    """Refuse what no limit can be recommended from, or for."""
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
    release.require_most_rows("a recommended limit")


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
    """How many numbers a question publishes, and what it spends for them."""
    preview = question.preview(domain, unit, cost)
    if question.needs(domain).counted != "rows":
        raise UsageError(
            f"a recommended limit for {question.title}",
            "it does not count rows, so rows per person do not limit it",
            "Choose cells_per_person from what is publicly known",
        )
    if preview.cells is None:
        raise UsageError(
            f"a recommended limit for {question.title}",
            "how many numbers it publishes is not known beforehand",
            "Ask for a question whose labels and bins are declared, such as a histogram",
        )
    return preview.cells, without_delta(preview.cost)


def _mean_size_per_row(cost: CentralMeasure, unit: Unit) -> float:
    """The mean size of the noise on a count, for each row of a person that is counted.

    The scale of the noise is proportional to the limit, and at a limit of 100 the noise is so wide
    that its being whole numbers does not matter.
    """
    law = count_law(cost, msgspec.structs.replace(unit, rows_per_person=100))
    return _mean_size(law) / 100


def _mean_size(law: Law) -> float:
    match law:
        case DiscreteLaplace(scale=scale):
            return float(scale)
        case DiscreteGaussian():
            return math.sqrt(2 / math.pi) * law.sigma


def _least(limits: Array, errors: Array, ends: Array) -> int:
    """Where the error is least; at the end of a bin, if the error there is hardly larger.

    What a limit at the end of a bin leaves out is known best.
    """
    best = int(np.argmin(errors))
    at_ends = np.flatnonzero(np.isin(limits, ends))
    best_end = int(at_ends[np.argmin(errors[at_ends])])
    return best_end if errors[best_end] <= AS_GOOD * errors[best] else best


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"
