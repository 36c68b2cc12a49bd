"""Which noise the tables of a family get: what is measured, and with which law.

Laplace noise on the tables of a family, and the norm that bounds what one person adds to them.

*Which share of epsilon each table gets* (``laplace_shares``).

Tables that were not asked for may be measured, too: a total that is counted by itself with a small
share makes every table better. All margins of the tables are candidates. The search looks at their
sizes and at public weights alone. Candidates whose share comes out tiny are left out, and the
shares are rounded to whole parts, so that a preview and the answer use the same.

Noise of scale L1 / (epsilon share) has a variance in proportion to 1 / share^2 (for all but tiny
scales), so the precision of a residual grows with the squares of the shares of the tables that
measure it. What is to be small is not convex in the shares: the search starts at several points,
and any shares are valid.

*The norm that bounds what one person adds to all tables of a family* (``stacked_norm``), for noise
on residuals.

The residuals A of a family get Gaussian noise with parameters s_A^2 (see ``gaussian_design``). A
person with counts h in the cells of all axes together moves them by

    K(h) = sum over A of |P_A M_A h|^2 / s_A^2,

M_A adding cells up to those of A, and P_A projecting on the differences that are counted on. K is
the square of a norm, and all residuals cost K(h) / 2. One row costs K_0 / 2 at most, and n rows in
one cell n^2 times that. Rows in different cells cost less: where the noise is laid out for one
table, the sum of the squared counts.

*A limit c on the norm* keeps the rows of a person, in random order, up to the first with which K
would exceed c^2 K_0. So nobody costs more than c rows in one cell. Persons whose rows spread over
many cells keep far more than c.

In sums over tables
    Along an axis whose differences are counted on, the contrasts of f siblings have the matrix
    I - J / f. It lies below I - J / f' (the difference has no negative eigenvalue) for the largest
    f' of the level. So K(h) is at most, and where all cells of a level have equally many children
    equal to, the sum over A of 1 / s_A^2 times a product over axes of a difference: of what lies in
    the same cell of A's level, less 1 / f' of what does in the same cell of the level before.
    Multiplied out, that is a sum over tables B of v_B |M_B h|^2.
In whole numbers
    Multiplied by a large number and rounded up, the 1 / s_A^2 and then the v_B are whole numbers
    w_B. Both are done upwards, and neither a residual nor a table has negative squares, so
    Q(h) = sum over B of w_B |M_B h|^2 is at least the multiple of K(h). The limit on Q is the same
    multiple of c^2 K_0 (1 + 1e-9), rounded down. So Q(h) within its limit has K(h) at most c^2 K_0
    (1 + 1e-9), which is what is paid for: c rows in one cell then fit whatever is rounded.
Under replace
    One person's h becomes another's h'. By the triangle inequality K(h - h') <= 4 c^2 K_0. Often it
    is half of that: if two rows have an inner product of at least -k K_0, wherever they lie, then
    K(h - h') <= 2 c^2 K_0 + 2 k K_0 r^2, where nobody has more than r rows.

Guarantee: of persons within the limit, all residuals cost what ``gaussian_design`` says for its
``norm``.
Source: the norm that noise of any covariance needs: Nikolov, Talwar, Zhang, STOC 2013, section 2;
residuals: Xiao, He, Zhang, Kifer, NeurIPS 2023.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product

import msgspec
import numpy as np

from sfumato.basics import Array, largest_remainders
from sfumato.errors import UsageError
from sfumato.mechanisms import DiscreteGaussian, DiscreteLaplace, Law, add_noise
from sfumato.privacy import (
    ZCDP,
    ApproxDP,
    CentralMeasure,
    Event,
    PureDP,
    StackedNorm,
    Unit,
    Weighed,
    approx_to_zcdp,
    laplace_event,
    sum_of,
    without_delta,
    worst_event,
)
from sfumato.questions.tables.gaussian_design import (
    ROUNDING,
    Aim,
    ResidualNoise,
    gaussian_design,
    shares_of_variance,
)
from sfumato.questions.tables.levels import (
    Levels,
    Margin,
    Nesting,
    follows,
    is_margin,
    maximal,
    unknown,
)
from sfumato.questions.tables.residuals import Family, Measured, closure_of
from sfumato.questions.tables.trees import UnevenFamily
from sfumato.random.bits import Bits


class Measurement(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What was measured of a family, and the noise on it.

    Attributes
    ----------
    margin : tuple of int
        The level of each axis; 0 where the table is summed over it.
    law : DiscreteLaplace or DiscreteGaussian
        Of the noise on each count of the table.
    whole : bool
        Whether the noisy table was published. False: only its residual was, as differences against
        the last cell along each of its axes.
    """

    margin: tuple[int, ...]
    law: Law
    whole: bool = True


@dataclass(frozen=True)
class Design:
    """The measurements of a family of tables.

    Attributes
    ----------
    axes : tuple of Levels
    tables : tuple of tuple of int
        The tables that are asked for, by the level of each axis.
    measured : tuple of Measurement
    cost : PureDP, ApproxDP or ZCDP
        What they cost together.
    known : tuple of tuple of int
        The tables that are known without being measured.
    norm : StackedNorm or None
        What bounds a person's rows in all tables, where the unit limits a norm.
    """

    axes: tuple[Levels, ...]
    tables: tuple[Margin, ...]
    measured: tuple[Measurement, ...]
    cost: CentralMeasure
    known: tuple[Margin, ...] = ()
    norm: StackedNorm | None = None

    @property
    def family(self) -> Family:
        """The family with the variances of this noise."""
        return family_of(self.axes, self.measured, self.known)

    @property
    def has_residuals(self) -> bool:
        """Whether residuals are measured, and not whole tables."""
        return not all(measurement.whole for measurement in self.measured)

    def event(self, unit: Unit) -> Event:
        """What the noise on all tables draws; of Gaussian noise, what its rho or cost says."""
        laws = [measurement.law for measurement in self.measured]
        scales = [law.scale for law in laws if isinstance(law, DiscreteLaplace)]
        if len(scales) < len(self.measured):
            return worst_event(self.cost)
        return sum_of([laplace_event(scale, unit) for scale in scales])

    def measure(self, tables: Mapping[Margin, Array], noise: Bits) -> Array:
        """Add the noise to true tables, and give what is published: int64 ndarray, flat.

        Parameters
        ----------
        tables : mapping from margin to int64 ndarray
            The true counts of each margin that is measured, with one dimension for each axis.
        noise : Bits
        """
        published = []
        for measurement in self.measured:
            # The noise is that of the whole table, also where only its differences are kept: these
            # draws are what the proof is about.
            noisy = add_noise(tables[measurement.margin], measurement.law, noise)
            shown = (
                noisy if measurement.whole else differences(self.axes, measurement.margin, noisy)
            )
            published.append(shown.ravel())
        return np.concatenate(published)


def described(measured: Sequence[Measurement]) -> str:
    """Return the noise in words."""
    laws = list(dict.fromkeys(measurement.law for measurement in measured))
    which = "a table" if len(measured) == 1 else f"{len(measured):,} tables"
    if not all(measurement.whole for measurement in measured):
        which += ", of which only residuals are kept"
    if len(laws) == 1:
        return f"{laws[0]} to each count of {which}"
    if isinstance(laws[0], DiscreteGaussian):
        kind = "Gaussian noise of sigma"
        sizes = [law.sigma for law in laws if isinstance(law, DiscreteGaussian)]
    else:
        kind = "Laplace noise of scale"
        sizes = [float(law.scale) for law in laws if isinstance(law, DiscreteLaplace)]
    return f"discrete {kind} between {min(sizes):.4g} and {max(sizes):.4g} to each count of {which}"


def family_of(
    axes: Sequence[Levels], measured: Sequence[Measurement], known: Sequence[Margin] = ()
) -> Family:
    """The family of what was measured, with the variances of its noise, and then what is known."""
    # Noise that is all but never there has a variance that doubles cannot hold.
    noisy = (
        Measured(measurement.margin, max(measurement.law.variance, 1e-100), measurement.whole)
        for measurement in measured
    )
    exact = (Measured(margin, 0.0) for margin in known)
    return Family(tuple(axes), (*noisy, *exact))


def design_for(
    axes: tuple[Levels, ...],
    tables: tuple[Margin, ...],
    aim: Aim,
    cost: CentralMeasure,
    unit: Unit,
    known: tuple[Margin, ...] = (),
) -> Design:
    """The best noise for a family of tables at a cost, where some tables are ``known`` already.

    Raises
    ------
    UsageError
        If all of them are known, or a norm is to be limited under an epsilon alone.

    Guarantee: ``cost`` for all that is measured. See ``gaussian_design`` and ``laplace_shares``.
    Under (epsilon, delta) it is Gaussian noise on residuals, at the rho that allows, or Laplace
    noise on tables, without the delta: whichever is better for the aim. Under a limit on a norm it
    is Gaussian noise.
    """
    places = [at for at, table in enumerate(tables) if not follows(table, known)]
    if not places:
        raise UsageError(
            "a family of tables",
            "all of its tables follow from its public totals",
            "Publish these totals as they are, or ask for a table that does not follow from them",
        )
    chosen = tuple(tables[at] for at in places)
    others: list[Margin] = []
    aim = aim.of(places, len(tables))
    if len(chosen) > 1 and aim == Aim():
        # Readers look at margins, too, so these count a fiftieth if nothing else was said: a total
        # that is far better known costs the tables next to nothing.
        others = [margin for margin in unknown(closure_of(chosen), known) if margin not in chosen]
        aim = Aim((1.0,) * len(chosen) + (0.02,) * len(others))
    request = _Asked(axes, (*chosen, *others), aim, unit, known)
    return replace(_best(request, cost), tables=tables)


@dataclass(frozen=True)
class _Asked:
    """The tables that noise is designed for, none of which is known."""

    axes: tuple[Levels, ...]
    tables: tuple[Margin, ...]
    aim: Aim
    unit: Unit
    known: tuple[Margin, ...]


def _best(request: _Asked, cost: CentralMeasure) -> Design:
    if isinstance(cost, ZCDP):
        return _gaussian(request, cost)
    if isinstance(cost, ApproxDP) and cost.delta:
        try:
            gaussian = _gaussian(request, approx_to_zcdp(cost.epsilon, cost.delta))
        except UsageError:  # they allow no Gaussian noise at all
            if request.unit.by_cell:
                raise
            return _laplace(request, PureDP(cost.epsilon))
        # The rho that they allow pays for the noise; what is promised stays what was asked for.
        gaussian = replace(gaussian, cost=cost)
        if request.unit.by_cell:  # only Gaussian noise follows a norm
            return gaussian
        laplace = _laplace(request, PureDP(cost.epsilon))
        # Public sizes and weights decide which is better, so the choice costs nothing.
        means = [_mean_variances(design, request.tables) for design in (gaussian, laplace)]
        errors = list(map(request.aim.error, means))
        return gaussian if errors[0] < errors[1] else laplace
    if request.unit.by_cell:
        raise UsageError(
            f"a family of tables under a limit on the L2 norm, at {cost}",
            "only Gaussian noise follows the norm, and under an epsilon alone there is none",
            "Ask for it under rho, or give the source rows_per_person in place of norm_per_person",
        )
    return _laplace(request, PureDP(cost.epsilon))


def _mean_variances(design: Design, tables: Sequence[Margin]) -> Array:
    """Return the variance of a count of each table, on average over its cells.

    Where regions have different numbers of towns, whole tables are a little better than this.
    """
    family = design.family
    residuals = list(filter(family.nesting.has_residual, closure_of(tables)))
    variances = [1 / family.total_precisions[kept] for kept in residuals]
    shares = shares_of_variance(design.axes, tables, residuals)
    return np.asarray(shares @ np.array(variances))


def _gaussian(request: _Asked, cost: ZCDP) -> Design:
    unit = request.unit
    norm = None  # rows alone are limited
    if unit.limits is not msgspec.UNSET:
        assert unit.limits.norm_per_person is not None
        norm = min(unit.limits.norm_per_person, unit.rows_counted)
    noise_of_residuals = gaussian_design(
        request.axes,
        request.tables,
        request.aim,
        cost.rho,
        unit.rows_counted,
        unit.neighbours,
        request.known,
        norm,
    )
    measured = tuple(
        Measurement(noise.margin, DiscreteGaussian(noise.sigma_squared), whole=False)
        for noise in noise_of_residuals
    )
    stacked = (
        None
        if norm is None
        else stacked_norm(request.axes, noise_of_residuals, norm, unit.rows_counted)
    )
    return Design(request.axes, request.tables, measured, cost, request.known, stacked)


def _laplace(request: _Asked, cost: PureDP) -> Design:
    # The shares add up to 1: every table counts the same rows, so their epsilons add up.
    shares = laplace_shares(request.axes, request.tables, request.aim, request.known)
    l1 = request.unit.counts_l1
    measured = tuple(
        Measurement(margin, DiscreteLaplace(l1 / (cost.epsilon * share)))
        for margin, share in shares
    )
    return Design(request.axes, request.tables, measured, without_delta(cost), request.known)


def differences(axes: Sequence[Levels], margin: Margin, counts: Array) -> Array:
    """Return what determines the residual of a table: differences against the last sibling."""
    for along, (axis, level) in enumerate(zip(axes, margin, strict=True)):
        if level:
            counts = axis.differences(counts, along, level)
    return counts


def published_shape(axes: Sequence[Levels], measured: Measurement) -> tuple[int, ...]:
    """Return the shape of what was published of a measurement."""
    nesting = Nesting(tuple(axes))
    if measured.whole:
        return nesting.shape(measured.margin)
    return nesting.residual_shape(measured.margin)


def published_arrays(
    axes: Sequence[Levels], measured: Sequence[Measurement], published: Array
) -> list[Array]:
    """Return what was published of each measurement, with one dimension for each axis."""
    shapes = [published_shape(axes, measurement) for measurement in measured]
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    flat = np.split(published, ends[:-1])
    return list(map(np.reshape, flat, shapes))


def tables_of(
    axes: Sequence[Levels], measured: Sequence[Measurement], published: Array
) -> list[Array]:
    """Return the noisy table of each measurement, or one with the same residual.

    Returns
    -------
    list of int64 ndarray
        One dimension for each axis.
    """
    tables = []
    for measurement, numbers in zip(
        measured, published_arrays(axes, measured, published), strict=True
    ):
        table = numbers
        for along, (axis, level) in enumerate(zip(axes, measurement.margin, strict=True)):
            if level and not measurement.whole:
                table = axis.padded(table, along, level)
        tables.append(table)
    return tables


def published_numbers(axes: Sequence[Levels], measured: Sequence[Measurement]) -> int:
    """Return how many numbers are published."""
    return sum(math.prod(published_shape(axes, measurement)) for measurement in measured)


def estimated(
    axes: Sequence[Levels],
    measured: Sequence[Measurement],
    published: Array,
    known: Mapping[Margin, Array] | None = None,
) -> dict[Margin, Array]:
    """The residuals of all margins that follow from what was published, and from what is known."""
    known = known or {}
    family = family_of(axes, measured, tuple(known))
    # What is known comes last, as ``family_of`` has it.
    counts = [*tables_of(axes, measured, published), *known.values()]
    if (uneven := UnevenFamily.of(family)) is not None:
        return uneven.residuals(counts)
    closure = closure_of([measurement.margin for measurement in family.measured])
    return {kept: family.residual(kept, counts) for kept in closure}


# --- shares of epsilon ----------------------------------------------------------------------------

# Shares are multiples of this part of the whole.
PARTS = 10_000


@lru_cache(maxsize=64)
def laplace_shares(
    axes: tuple[Levels, ...],
    tables: tuple[Margin, ...],
    aim: Aim,
    known: tuple[Margin, ...] = (),
) -> tuple[tuple[Margin, Fraction], ...]:
    """Return the margins that are measured, and their shares, which add up to 1.

    Parameters
    ----------
    axes : tuple of Levels
        Where cells of a level have different numbers of children, averages are looked at.
    tables : tuple of tuple of int
        The tables whose errors are to be small, by the level of each axis; all different.
    aim : Aim
    known : tuple of tuple of int
        Tables that are known, and are not measured.

    >>> axes = (Levels.flat(2), Levels.flat(3))
    >>> shares = laplace_shares(axes, ((1, 0), (0, 1)), Aim())
    >>> [(margin, str(share)) for margin, share in shares]
    [((1, 0), '4871/10000'), ((0, 1), '5129/10000')]
    """
    if len(tables) == 1:
        return ((tables[0], Fraction(1)),)
    # What is no margin of another table keeps a share, so that everything can be estimated.
    largest = maximal(tables)
    candidates = unknown(closure_of(tables), known)
    # With more margins, only tables that are no margins of others are measured.
    if len(candidates) > 256:
        candidates = largest
    problem = _Problem(axes, tables, candidates, aim, known)
    shares = problem.solved(np.ones(len(candidates)))
    # Margins with smaller shares are not measured.
    kept = [
        margin
        for margin, share in zip(candidates, shares.tolist(), strict=True)
        if share >= 0.004 or margin in largest
    ]
    # The shares of what is left out go to the others, by a search of their own.
    shares = _Problem(axes, tables, kept, aim, known).solved(np.ones(len(kept)))
    # One part is kept for each margin: noise of a share of 0 has no scale.
    spare = PARTS - len(kept)
    parts = largest_remainders(shares / shares.sum() * spare, spare).tolist()
    rounded = [Fraction(part + 1, PARTS) for part in parts]
    return tuple(zip(kept, rounded, strict=True))


class _Problem:
    """Shares of some margins, and the variances of the tables that follow."""

    def __init__(
        self,
        axes: Sequence[Levels],
        tables: Sequence[Margin],
        measured: Sequence[Margin],
        aim: Aim,
        known: Sequence[Margin],
    ) -> None:
        residuals = unknown(closure_of(tables), known)
        nesting = Nesting(tuple(axes))
        sizes = {margin: nesting.cells(margin) for margin in {*residuals, *measured}}
        self._aim = aim
        self._tables = tables
        largest = maximal(tables)
        self._is_largest = np.array([margin in largest for margin in measured])
        self._residuals = shares_of_variance(axes, tables, residuals)
        # A residual of zero contrasts has no variance, however little is known of it.
        self._precisions = np.array(
            [
                [
                    sizes[kept] / sizes[margin] if is_margin(kept, margin) else 0.0
                    for margin in measured
                ]
                for kept in residuals
            ]
        )

    def solved(self, start: Array) -> Array:
        """Return the best shares that are found: float64 ndarray of shape (measured,)."""
        starts = [start, np.where(self._is_largest, 1.0, 0.05)]
        latest: list[Array] = []

        def best(weights: Array) -> Array:
            ends = [self._descended(weights, start) for start in (latest or starts)]
            latest[:] = [min(ends, key=lambda shares: self._error(weights, shares))]
            return latest[0]

        return self._aim.solved(best, len(self._tables), self._variances, rounds=40)

    def _variances(self, shares: Array) -> Array:
        return np.asarray(self._residuals @ (1 / (self._precisions @ shares**2)))

    def _error(self, weights: Array, shares: Array) -> float:
        return float(weights @ self._variances(shares))

    def _descended(self, weights: Array, start: Array) -> Array:
        from scipy.optimize import minimize

        of_residuals = weights @ self._residuals

        def error(logarithms: Array) -> tuple[float, Array]:
            shares = _normalised(logarithms)
            precisions = self._precisions @ shares**2
            value = float(np.sum(of_residuals / precisions))
            slope = -2 * shares * ((of_residuals / precisions**2) @ self._precisions)
            inner = shares * (slope - slope @ shares)
            return math.log(value), inner / value

        descent = minimize(
            error, np.log(start), jac=True, method="L-BFGS-B", options={"maxiter": 200}
        )
        return _normalised(descent.x)


def _normalised(logarithms: Array) -> Array:
    sizes = np.exp(logarithms - logarithms.max())
    return np.asarray(np.maximum(sizes / sizes.sum(), 1e-12))


# --- the norm -------------------------------------------------------------------------------------

# Sums of whole numbers stay below 2^63: see ``StackedNorm``.
BITS = 61

# What one row costs is summed up to so many further bits.
FINER_BITS = 32


@lru_cache(maxsize=64)
def stacked_norm(
    axes: tuple[Levels, ...], noise: tuple[ResidualNoise, ...], norm: int, rows: int
) -> StackedNorm:
    """Return the limit of a norm on the counts of one person, for this noise.

    Parameters
    ----------
    axes : tuple of Levels
    noise : tuple of ResidualNoise
        From ``gaussian_design``.
    norm : int
        As many rows in one cell cost as much as a person's rows may: 1 to ``asked.MOST_NORM``.
    rows : int
        How many rows of a person are counted at most; at most norm^2 of them are.

    >>> from fractions import Fraction
    >>> total = ResidualNoise((0,), Fraction(2), (False,))
    >>> residual = ResidualNoise((1,), Fraction(1), (True,))
    >>> found = stacked_norm((Levels.flat(2),), (total, residual), norm=2, rows=4)
    >>> [(each.margin, found.most // each.weight) for each in found.weighed]  # as for one table
    [((1,), 4)]
    """
    counted = min(rows, norm**2)
    scale = _scale(axes, noise, norm, counted)
    weights: dict[Margin, Fraction] = {}
    of_one_row = 0
    for residual in noise:
        # Weights are rounded up and the limit down: nobody within it costs more than is paid.
        precision = math.ceil(scale / residual.sigma_squared)
        for margin, factor in _terms(axes, residual):
            weights[margin] = weights.get(margin, Fraction(0)) + precision * factor
        exact = scale * 2**FINER_BITS * _diagonal(axes, residual) / residual.sigma_squared
        of_one_row += math.floor(exact)
    rounded = [(margin, math.ceil(weight)) for margin, weight in sorted(weights.items())]
    return StackedNorm(
        tuple(axis.fanouts for axis in axes),
        tuple(Weighed(margin, weight) for margin, weight in rounded if weight),
        most=math.floor(norm**2 * of_one_row * (1 + Fraction(ROUNDING))) >> FINER_BITS,
        rows=counted,
    )


def _scale(
    axes: Sequence[Levels], noise: Sequence[ResidualNoise], norm: int, rows: int
) -> Fraction:
    """Return a power of 2 by which all weights are multiplied before they are rounded."""
    of_one_row = all_weights = 0.0
    for residual in noise:
        precision = 1 / float(residual.sigma_squared)
        of_one_row += float(_diagonal(axes, residual)) * precision
        all_weights += (
            math.fsum(abs(float(factor)) for _, factor in _terms(axes, residual)) * precision
        )
    # The sum over any person's rows must stay below 2^63 after weights were rounded up.
    largest = norm**2 * of_one_row + all_weights * (2 * rows + 1)
    return Fraction(2) ** (BITS - math.ceil(math.log2(largest)))


def _largest_fanouts(axes: Sequence[Levels], residual: ResidualNoise) -> Iterator[int]:
    """Give the most siblings at the level of each axis; 0 where differences are not counted on."""
    for axis, level, used in zip(axes, residual.margin, residual.along, strict=True):
        yield max(axis.fanouts[level - 1]) if used and level else 0


def _diagonal(axes: Sequence[Levels], residual: ResidualNoise) -> Fraction:
    """Return how far one row moves a residual, squared."""
    return math.prod(
        (1 - Fraction(1, fanout) for fanout in _largest_fanouts(axes, residual) if fanout),
        start=Fraction(1),
    )


def _terms(axes: Sequence[Levels], residual: ResidualNoise) -> Iterator[tuple[Margin, Fraction]]:
    """Return the squared contrasts of a residual, as a sum of squared counts of tables."""
    along = []
    for level, fanout in zip(residual.margin, _largest_fanouts(axes, residual), strict=True):
        here = [(level, Fraction(1))]
        along.append([*here, (level - 1, Fraction(-1, fanout))] if fanout else here)
    for chosen in product(*along):
        margin = tuple(level for level, _ in chosen)
        yield margin, math.prod((factor for _, factor in chosen), start=Fraction(1))
