"""What an adversary can come to believe about which data set was published.

*One query with Laplace noise.*

The adversary knows the universe and the size of the published set, and sees one answer with Laplace
noise of scale sensitivity / epsilon. The worlds are the subsets of that size. Here are the
adversary's posteriors, bounds of them, and the epsilon for a risk. All beliefs are computed from
logarithms of densities.

*Which data sets are possible* (``Worlds``), and what a guarantee lets anybody believe of one of
them.

Lee and Clifton's bound is for one query with Laplace noise. This one is for any answer under a
guarantee, or for several together. The adversary knows ``records`` persons, and that ``size`` of
them are in the data.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias, cast

import numpy as np

from sfumato.basics import Array, Exactly, ExplainedStruct, as_floats, fraction
from sfumato.errors import UsageError, explained, explained_methods
from sfumato.privacy import ZCDP, ApproxDP, PureDP, Unit, group
from sfumato.risk.distinct_answers import (
    MOST_LISTED,
    Answers,
    checked_prior,
    distinct_answers,
    listed_answers,
    loose_epsilon,
    prior_answers,
    read_risk,
    tight_epsilon,
)
from sfumato.risk.membership import Protection, loss
from sfumato.risk.sensitivity import unbounded, world_range
from sfumato.risk.universe import (
    ByColumn,
    Column,
    Pick,
    Query,
    QueryName,
    Universe,
    at_least_zero,
    by_column,
    log_choose,
    parse,
)

# --- one query with Laplace noise -----------------------------------------------------------------

BOUNDS = ("tight", "loose")

Prior: TypeAlias = ByColumn[np.typing.ArrayLike] | None
Scale: TypeAlias = ByColumn[Exactly] | None


@explained
def prior_belief(universe: Universe, size: int) -> Array | dict[str, Array]:
    """Return what the adversary believes beforehand: every world is as likely.

    Parameters
    ----------
    universe : array of shape (n,), or a frame or dict of columns
    size : int
        The number of records in a published set, 1 to n.

    Returns
    -------
    float64 ndarray of shape (worlds,), or a dict of them by column
        In the order of ``itertools.combinations``.

    >>> prior_belief([1, 2, 3, 4], 3)
    array([0.25, 0.25, 0.25, 0.25])
    """

    def of_column(column: Column, _: Pick) -> Array:
        if column.worlds > MOST_LISTED and not column.leaves_one_out:
            raise UsageError(
                "a list of priors",
                f"there are more than {MOST_LISTED:,} worlds",
                "Each is 1 / C(n, size)",
            )
        return np.full(column.worlds, 1 / column.worlds)

    return by_column(universe, size, of_column)


@explained
def posterior_belief(
    universe: Universe,
    size: int,
    query: QueryName,
    result: ByColumn[Exactly],
    epsilon: Exactly,
    prior: Prior = None,
    sensitivity: Scale = None,
) -> Array | dict[str, Array]:
    """Return what the adversary believes of each world after seeing ``result``.

    Parameters
    ----------
    universe : array of shape (n,), or a frame or dict of columns
    size : int
    query : str or ("percentile", q)
    result : float
        The noisy answer; a dict by column if the answers differ.
    epsilon : number
    prior : array of shape (worlds,), optional
        None: uniform.
    sensitivity : float, optional
        None: the unbounded one over this universe.

    Returns
    -------
    float64 ndarray of shape (worlds,), or a dict of them by column
        In the order of ``itertools.combinations``.

    Source: Lee and Clifton 2011, Def. 3 and eq. (2).

    >>> posterior_belief([1, 2, 3, 4], 3, "mean", 2.20131, 2).round(4)
    array([0.339 , 0.4003, 0.1799, 0.0808])
    """
    parsed = parse(query)
    level = at_least_zero(epsilon, "epsilon")

    def of_column(column: Column, pick: Pick) -> Array:
        # A type checker joins the members of a union to object.
        seen = float(fraction(cast(Exactly, pick(result)), "result"))
        given = pick(prior)
        answers = listed_answers(column, parsed)
        before = np.ones(len(answers)) if given is None else checked_prior(given, column)
        scale = _sensitivity(column, parsed, pick(sensitivity))
        # A world may have been ruled out, and another be further away than floats reach.
        with np.errstate(divide="ignore", over="ignore"):
            beliefs = np.log(before)
            if scale > 0:
                distance = np.abs(seen - answers)
                beliefs = beliefs - (distance - distance.min()) / scale * level
        weights = np.exp(beliefs - beliefs.max())
        return np.asarray(weights / weights.sum())

    return by_column(universe, size, of_column)


@explained
def confidence(
    prior: ByColumn[np.typing.ArrayLike], posterior: ByColumn[np.typing.ArrayLike]
) -> float | dict[str, float]:
    """How much did the adversary learn?

    Parameters
    ----------
    prior, posterior : array of shape (worlds,), or a dict of them by column
        What ``prior_belief`` and ``posterior_belief`` return.

    Returns
    -------
    float, or a dict by column
        The largest gain of belief in any world, from -1 to 1.

    Raises
    ------
    UsageError
        If they are not probabilities of the same worlds.

    Source: Lee and Clifton 2011, Def. 4.

    >>> from sfumato import risk
    >>> prior = risk.prior_belief([1, 2, 3, 4], 3)
    >>> posterior = risk.posterior_belief([1, 2, 3, 4], 3, "mean", result=2.2, epsilon=2)
    >>> round(risk.confidence(prior, posterior), 4)
    0.1495
    """
    if isinstance(posterior, dict):
        before = {name: prior[name] if isinstance(prior, dict) else prior for name in posterior}
        return {name: _gain(before[name], belief) for name, belief in posterior.items()}
    return _gain(prior, posterior)


def _gain(prior: object, posterior: object) -> float:
    before = as_floats(prior)
    after = as_floats(posterior)
    same_worlds = after.size > 0 and before.shape in ((), after.shape)
    if not (same_worlds and np.isfinite(before).all() and np.isfinite(after).all()):
        raise UsageError(
            "confidence",
            "prior and posterior are not probabilities of the same worlds",
            "Give two arrays of one shape",
        )
    return float((after - before).max())


@explained
def disclosure_risk(posterior: ByColumn[np.typing.ArrayLike]) -> float | dict[str, float]:
    """How sure is the adversary of the likeliest world?

    Parameters
    ----------
    posterior : array of shape (worlds,), or a dict of them by column
        What ``posterior_belief`` returns.

    Returns
    -------
    float, or a dict by column
        The largest probability.

    Raises
    ------
    UsageError
        If there is no probability in it.

    Source: Lee and Clifton 2011, Def. 5.

    >>> from sfumato import risk
    >>> posterior = risk.posterior_belief([1, 2, 3, 4], 3, "mean", result=2.2, epsilon=2)
    >>> round(risk.disclosure_risk(posterior), 4)
    0.3995
    """
    if isinstance(posterior, dict):
        return {name: _largest(belief) for name, belief in posterior.items()}
    return _largest(posterior)


def _largest(posterior: object) -> float:
    after = as_floats(posterior)
    if after.size == 0 or not np.isfinite(after).all():
        raise UsageError(
            "disclosure risk", "there are no probabilities", "Give what posterior_belief returns"
        )
    return float(after.max())


@explained
def upper_bound_posterior(
    universe: Universe,
    size: int,
    query: QueryName,
    *,
    epsilon: Exactly,
    prior: Prior = None,
    sensitivity: Scale = None,
) -> float | dict[str, float]:
    """How sure can the adversary become, at most? Return the loose bound.

    It is 1 / (1 + (N - 1) exp(-epsilon Dv / Df)), where N is the number of worlds, Dv the largest
    difference between two worlds' answers, and Df the unbounded sensitivity. With a prior whose
    largest entry is a, (1 - a) / a replaces N - 1.

    Parameters
    ----------
    universe : array of shape (n,), or a frame or dict of columns
    size : int
        The number of records in a published set, 1 to n.
    query : str or ("percentile", q)
        "mean", "median", "sum", "count", "var" or "std".
    epsilon : number
        At least 0.
    prior : array of shape (worlds,), optional
        None: uniform.
    sensitivity : float, optional
        None: the unbounded one over this universe.

    Returns
    -------
    float, or a dict by column
        A probability.

    Holds because: every other world is at most Dv away.
    Source: Lee and Clifton 2011, eq. (4) and (5).

    >>> round(upper_bound_posterior([1, 2, 3, 4], 3, "mean", epsilon=.5), 12)
    0.377866841489
    """
    parsed = parse(query)
    level = at_least_zero(epsilon, "epsilon")

    def of_column(column: Column, pick: Pick) -> float:
        odds, slope = loose_parts(column, parsed, pick(prior), pick(sensitivity))
        return float(loose_curve(odds, slope, np.array([level]))[0])

    return by_column(universe, size, of_column)


@explained
def tighter_upper_bound_posterior(
    universe: Universe,
    size: int,
    query: QueryName,
    *,
    epsilon: Exactly,
    prior: Prior = None,
    sensitivity: Scale = None,
) -> float | dict[str, float]:
    """How sure can the adversary become? Return the tight bound, which is the worst posterior.

    It is the maximum over i of a[i] / (sum over j of a[j] exp(-epsilon |f[i] - f[j]| / Df)). Under
    a uniform prior, worlds with equal answers are counted, not listed.

    Parameters
    ----------
    universe : array of shape (n,), or a frame or dict of columns
    size : int
        The number of records in a published set, 1 to n.
    query : str or ("percentile", q)
        "mean", "median", "sum", "count", "var" or "std".
    epsilon : number
        At least 0.
    prior : array of shape (worlds,), optional
        None: uniform.
    sensitivity : float, optional
        None: the unbounded one over this universe.

    Returns
    -------
    float, or a dict by column
        A probability.

    Holds because: by the triangle inequality no output favours world i more than f[i] itself, where
    the bound is attained.
    Source: Lee and Clifton 2011, eq. (3); here with every world, and worlds of equal answers kept
    apart.

    Raises
    ------
    Infeasible
        If there are too many worlds for an exact answer.

    >>> round(tighter_upper_bound_posterior([1, 2, 3, 4], 3, "mean", epsilon=.5), 12)
    0.329178829301
    """
    parsed = parse(query)
    level = at_least_zero(epsilon, "epsilon")

    def of_column(column: Column, pick: Pick) -> float:
        answers, scale = tight_parts(column, parsed, pick(prior), pick(sensitivity))
        return risk_at(answers, scale, level)

    return by_column(universe, size, of_column)


@explained
def upper_bound_epsilon(
    universe: Universe,
    size: int,
    query: QueryName,
    risk: Exactly = 1 / 3,
    *,
    prior: Prior = None,
    sensitivity: Scale = None,
) -> float | dict[str, float]:
    """Which epsilon keeps the loose bound within the risk?

    It is (Df / Dv) ln((N - 1) risk / (1 - risk)), and infinity if answers never differ.

    Parameters
    ----------
    universe : array of shape (n,), or a frame or dict of columns
    size : int
        The number of records in a published set, 1 to n.
    query : str or ("percentile", q)
        "mean", "median", "sum", "count", "var" or "std".
    risk : number in (0, 1)
        The largest probability that the adversary may give to any one world.
    prior : array of shape (worlds,), optional
        None: uniform.
    sensitivity : float, optional
        None: the unbounded one over this universe.

    Returns
    -------
    float, or a dict by column

    Raises
    ------
    Infeasible
        If the risk is below the largest prior.

    Source: Lee and Clifton 2011, eq. (7).

    >>> round(upper_bound_epsilon([1, 2, 3, 4], 3, "mean"), 11)
    0.33788759009
    """
    parsed = parse(query)
    limit = read_risk(risk)

    def of_column(column: Column, pick: Pick) -> float:
        odds, slope = loose_parts(column, parsed, pick(prior), pick(sensitivity))
        return loose_epsilon(odds, slope, limit)

    return by_column(universe, size, of_column)


@explained
def optimal_epsilon(
    universe: Universe,
    size: int,
    query: QueryName,
    risk: Exactly = 1 / 3,
    bound: str = "tight",
    *,
    prior: Prior = None,
    sensitivity: Scale = None,
) -> float | dict[str, float]:
    """Which is the largest epsilon whose worst posterior stays within the risk?

    Parameters
    ----------
    universe : array of shape (n,), or a frame or dict of columns
    size : int
    query : str or ("percentile", q)
    risk : number in (0, 1)
    bound : "tight" or "loose"
    prior : array of shape (worlds,), optional
    sensitivity : float, optional
        None: the unbounded one over this universe.

    Returns
    -------
    float, or a dict by column
        It satisfies the requirement as ``tighter_upper_bound_posterior`` computes it, and 1e-9 more
        does not. Infinity: an exact answer would satisfy it. 0: no answer at all does.

    Raises
    ------
    Infeasible
        If the risk is below the largest prior, or there are too many worlds for the tight bound.

    Source: Lee and Clifton 2011, section 5.2; the source's ``binary_search_epsilon``.

    >>> round(optimal_epsilon([1, 2, 3, 4], 3, "median"), 11)
    0.69314718056
    """
    if bound not in BOUNDS:
        raise UsageError(f"bound {bound!r}", 'there are "tight" and "loose"', "Name one of them")
    if bound == "loose":
        return upper_bound_epsilon(
            universe, size, query, risk, prior=prior, sensitivity=sensitivity
        )
    parsed = parse(query)
    limit = read_risk(risk)

    def of_column(column: Column, pick: Pick) -> float:
        answers, scale = tight_parts(column, parsed, pick(prior), pick(sensitivity))
        return tight_epsilon(answers, scale, limit)

    return by_column(universe, size, of_column)


def tight_parts(
    column: Column,
    query: Query,
    prior: np.typing.ArrayLike | None = None,
    sensitivity: Exactly | None = None,
) -> tuple[Answers, float]:
    """Return the distinct answers, and the sensitivity."""
    if prior is None:
        answers = distinct_answers(column, query)
    else:
        answers = prior_answers(column, query, prior)
    return answers, _sensitivity(column, query, sensitivity)


def loose_parts(
    column: Column,
    query: Query,
    prior: np.typing.ArrayLike | None = None,
    sensitivity: Exactly | None = None,
) -> tuple[float, float]:
    """Return ln of the odds against the likeliest world, and Dv / Df: 0 if answers never differ."""
    apart = world_range(column, query)
    odds = -math.inf
    if prior is not None:
        top = float(checked_prior(prior, column).max())
        if top < 1:
            odds = math.log((1 - top) / top)
    elif column.log_worlds > 0:
        # ln(N - 1) from ln N, since doubles may not hold the number N of worlds.
        odds = column.log_worlds + math.log1p(-math.exp(-column.log_worlds))
    scale = _sensitivity(column, query, sensitivity)
    return odds, apart / scale if apart > 0 else 0.0


def loose_curve(odds: float, slope: float, epsilons: Array) -> Array:
    """Return the loose bound at each epsilon, as a float64 ndarray like ``epsilons``."""
    return np.exp(-np.logaddexp(0.0, odds - slope * epsilons))


def risk_at(answers: Answers, scale: float, epsilon: float) -> float:
    """Return the tight bound at one epsilon."""
    return math.exp(answers.worst(epsilon / scale if scale > 0 else 0.0).log_risk)


def _sensitivity(column: Column, query: Query, given: Exactly | None) -> float:
    if given is None:
        if column.size == 1:
            raise UsageError(
                f"the {query} of single records",
                "taking one away leaves nothing to ask, so there is no unbounded sensitivity",
                "Choose size = 2 or more, or state the sensitivity of your mechanism",
            )
        return unbounded(column, query, 1)
    scale = float(fraction(given, "sensitivity"))
    if scale <= 0:
        raise UsageError(
            "the sensitivity",
            "it must be above 0",
            "Leave it out, and it is taken from the universe",
        )
    return scale


# --- possible data sets ---------------------------------------------------------------------------

# The most exchanges of records that are added up. Leaving out worlds further away errs on the safe
# side.
FARTHEST = 100_000


@explained_methods
class Worlds(ExplainedStruct, frozen=True):
    """The worlds in which any ``size`` of ``records`` persons are in the data, all equally likely.

    Parameters
    ----------
    records, size : int
        1 <= size < records.
    steps : 1 or 2
        How many changes of one person exchange one person for another: 2 under add-remove, and 1
        under replace.

    >>> round(Worlds(4, 3).belief(PureDP("0.5"), 0), 4)
    0.4754
    """

    records: int
    size: int
    steps: Literal[1, 2] = 2

    def __post_init__(self) -> None:
        numbers = (self.records, self.size)
        whole = all(isinstance(number, int) and not isinstance(number, bool) for number in numbers)
        if not whole or not 1 <= self.size < self.records <= 10**15 or self.steps not in (1, 2):
            raise UsageError(
                "possible worlds",
                "they are given as records and size, whole numbers, with 1 <= size < records",
                "Write worlds=(1000, 999), or the Choice that sf.choose returned",
            )

    def under(self, unit: Unit) -> Worlds:
        """Return the same worlds with the steps of a unit of privacy."""
        return Worlds(self.records, self.size, 1 if unit.neighbours == "replace" else 2)

    @property
    def log_count(self) -> float:
        """ln of the number of worlds."""
        return log_choose(self.records, self.size)

    def belief(self, of: Protection, exceeded: float, sensitivity: Exactly = 1) -> float:
        """Return the largest belief in any one world after an answer under a guarantee or noise.

        Holds because: C(size, h) C(records - size, h) worlds differ in h exchanges, of ``steps``
        changes of a person each. Under pure epsilon each of them has at least e^(-h steps epsilon)
        of the likelihood of the best. Otherwise the worlds one exchange away are taken together as
        one alternative, in which hockey-stick and Renyi divergences are convex. Worlds further away
        are then left out, which errs on the safe side.
        """
        # Without a delta, the bound for pure privacy holds, which counts all worlds.
        if isinstance(of, ApproxDP) and of.delta == 0:
            of = PureDP(of.epsilon)
        match of:
            case PureDP(epsilon=epsilon):
                h = np.arange(1.0, min(self.size, self.records - self.size, FARTHEST) + 1)
                removed = np.log(self.size - h + 1)
                others = self.records - self.size
                added = np.log(others - h + 1)
                # C(size, h) C(records - size, h) from its ratio to the one before
                orders = 2 * np.log(h)
                log_counts = np.cumsum(removed + added - orders)
                exponents = h * (float(epsilon) * self.steps)
                against = float(np.logaddexp.reduce(log_counts - exponents))
            case ApproxDP() | ZCDP():
                against = self._log_nearest - loss(group(of, self.steps), exceeded)
            case _:
                apart = fraction(sensitivity, "sensitivity") * self.steps
                against = self._log_nearest - loss(of, exceeded, apart)
        return math.exp(-float(np.logaddexp(0.0, against)))

    @property
    def _log_nearest(self) -> float:
        return math.log(self.size) + math.log(self.records - self.size)
