"""Gaussian noise on the residuals of a family of tables, and how much each of them gets.

*What the noise is to make small* (``Aim``), and how much each residual adds to it.

The aim is a weighted sum of the variances of the tables' counts, or the largest ratio of a table's
error to the one that was asked for. The second is a weighted sum, too, whose weights are searched
for: those at which the least weighted sum is largest (duality of convex programs).

*The noise* (``gaussian_design``).

Every residual of the closure is measured once, with a variance parameter s_A^2 of its own. With

    v_A = how much s_A^2 adds to what is to be small (see ``Aim``), and
    c_A = how far one row moves the residual, squared,

the sum of v_A s_A^2 under a bound on the sum of c_A / s_A^2 is least where s_A^2 is in proportion
to sqrt(c_A / v_A) (Cauchy, Schwarz). All of them are then scaled so that the bound is met exactly.

What one person can move
    Within r rows the distance |P_A (x - x')|^2 is convex in the person's counts, for all residuals
    at once, so it is largest where all r rows are in one cell, before and after. Rows that come or
    go move it by r^2 c_A, c_A = prod(1 - 1/d_i). Rows that leave cell j and enter cell k move it by
    r^2 (2 c_A - 2 prod(<P e_j, P e_k>)), which depends on the level at which j and k part along
    each axis. All combinations are tried, and the worst of them for all residuals together counts.
    Where there are too many, each residual gets its own worst case.
    Within a norm c no rows move all residuals together farther than c rows in one cell do, by
    definition (see ``stacked_norm``); under replace, sqrt 2 to 2 times as far.

Noise that is too narrow
    Along which axes of a residual differences may be counted on depends on the noise (see
    ``mechanisms.noise``). A share of rho is left for their slack. All are counted on at
    first, and those whose slack is too large for it are given up until none is left. Several shares
    are tried, and the best one is taken.

Source: Xiao, He, Zhang, Kifer, *ResidualPlanner*, NeurIPS 2023.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from typing import NamedTuple

import numpy as np

from sfumato.basics import Array
from sfumato.mechanisms import log_eta, most_slack
from sfumato.privacy import Neighbours
from sfumato.questions.tables.levels import Levels, Margin, Nesting, Path, contrast, unknown
from sfumato.questions.tables.residuals import closure_of, share_of

# --- what is to be small --------------------------------------------------------------------------

# How often weights are corrected in the search for them.
ROUNDS = 400

# The search ends where the largest ratio is so close to the average.
CLOSE = 1e-6

# Significant digits of the parameters of noise.
DIGITS = 8


@dataclass(frozen=True)
class Aim:
    """What is to be small.

    Attributes
    ----------
    weights : tuple of float, or None
        Of each table, how much the variance of its counts matters.
    accuracies : tuple of float, or None
        Of each table, the error that is asked for: only ratios of them matter.
    """

    weights: tuple[float, ...] | None = None
    accuracies: tuple[float, ...] | None = None

    def solved(
        self,
        solve: Callable[[Array], Array],
        tables: int,
        variances_of: Callable[[Array], Array],
        *,
        rounds: int = ROUNDS,
    ) -> Array:
        """Return what is best for the aim.

        Parameters
        ----------
        solve : callable
            From weights, float64 ndarray of shape (tables,), to what is best for their sum.
        tables : int
        variances_of : callable
            From that to the variances of the tables.
        rounds : int
            How often weights are corrected.
        """
        if self.accuracies is None:
            return solve(np.array(self.weights or (1.0,) * tables))
        scale = 1 / np.square(self.accuracies)
        weights = np.full(tables, 1 / tables)
        best = solve(weights * scale)
        least = math.inf
        for _ in range(rounds):
            candidate = solve(weights * scale)
            ratios = variances_of(candidate) * scale
            if ratios.max() < least:
                best = candidate
                least = ratios.max()
            average = float(weights @ ratios)
            if ratios.max() <= average * (1 + CLOSE):
                break
            weights = weights * ratios / average
        return best

    def of(self, places: Sequence[int], tables: int) -> Aim:
        """Return the same aim for some of so many tables."""
        if len(places) == tables:
            return self
        chosen = (
            None if given is None else tuple(given[place] for place in places)
            for given in (self.weights, self.accuracies)
        )
        return Aim(*chosen)

    def error(self, variances: Array) -> float:
        """Return how large what is to be small is."""
        if self.accuracies is None:
            weights = np.array(self.weights or (1.0,) * len(variances))
            return float(weights @ variances)
        return float((variances / np.square(self.accuracies)).max())


def shares_of_variance(
    axes: Sequence[Levels], tables: Sequence[Margin], residuals: Sequence[Margin]
) -> Array:
    """Return what a residual of variance 1 adds to a count of a table, on average over its cells.

    Returns
    -------
    float64 ndarray of shape (tables, residuals)
    """
    shares = np.ones((len(tables), len(residuals)))
    for at, axis in enumerate(axes):
        depths = range(axis.depth + 1)
        of_axis = np.array(
            [[_mean_share(axis, kept, level) for kept in depths] for level in depths]
        )
        rows = [table[at] for table in tables]
        columns = [residual[at] for residual in residuals]
        shares *= of_axis[np.ix_(rows, columns)]
    return shares


def _mean_share(axis: Levels, kept: int, level: int) -> float:
    """Return what contrasts of a level add to the variance of a cell of another, on average."""
    if kept > level:
        return 0.0
    kinds, index = axis.kinds(level)
    shares = [share_of(kept, path) for path in kinds]
    return float(np.mean(np.array(shares)[index]))


def rounded_up(value: float) -> Fraction:
    """Return a positive number, rounded up to a few significant digits.

    >>> rounded_up(2 / 3)
    Fraction(66666667, 100000000)
    """
    # Upwards: a smaller parameter would be less noise than is paid for.
    unit = Fraction(10) ** (math.floor(math.log10(value)) + 1 - DIGITS)
    return math.ceil(Fraction(value) / unit) * unit


# --- noise ----------------------------------------------------------------------------------------

# By how much a sum of doubles may be too small: far more than it is.
ROUNDING = 1e-9


class ResidualNoise(NamedTuple):
    """The noise of a residual.

    Attributes
    ----------
    margin : tuple of int
    sigma_squared : Fraction
    along : tuple of bool
        Along which axes differences are counted on.
    """

    margin: Margin
    sigma_squared: Fraction
    along: tuple[bool, ...]


@lru_cache(maxsize=64)
def gaussian_design(
    axes: tuple[Levels, ...],
    tables: tuple[Margin, ...],
    aim: Aim,
    rho: Fraction,
    rows: int,
    neighbours: Neighbours,
    known: tuple[Margin, ...] = (),
    norm: int | None = None,
) -> tuple[ResidualNoise, ...]:
    """Return the noise of each residual.

    Parameters
    ----------
    axes : tuple of Levels
    tables : tuple of tuple of int
        The tables that are asked for, by the level of each axis.
    aim : Aim
    rho : Fraction
        What all residuals together may cost.
    rows : int
        Of one person, at most.
    neighbours : {"add-remove", "replace"}
    known : tuple of tuple of int
        Tables whose residuals are known, and get no noise.
    norm : int or None
        What a limit on the stacked norm allows of one person's rows, by so many rows in one cell;
        at most ``rows``. None: there is none.

    Guarantee: rho-zCDP for all residuals together, if each is published as
    ``mechanisms.noise`` says.

    >>> axes = (Levels.flat(2), Levels.flat(2))
    >>> aim = Aim()
    >>> found = gaussian_design(axes, ((1, 1),), aim, Fraction(1, 8), 1, "add-remove")
    >>> [(each.margin, round(float(each.sigma_squared), 2)) for each in found]
    [((0, 0), 16.0), ((1, 0), 8.0), ((0, 1), 8.0), ((1, 1), 4.0)]
    """
    margins = unknown(closure_of(tables), known)
    residuals = tuple(filter(Nesting(axes).has_residual, margins))
    shares = shares_of_variance(axes, tables, residuals)
    problem = _Problem(axes, residuals, shares, aim, float(rho), rows, neighbours, norm)
    # Public numbers say which share is best, so trying several costs nothing.
    designs = [problem.solved(share) for share in (2.0**-20, 2.0**-12, 2.0**-8, 2.0**-5)]
    parameters = [[float(noise.sigma_squared) for noise in design] for design in designs]
    errors = [aim.error(shares @ np.array(of_design)) for of_design in parameters]
    return designs[int(np.argmin(errors))]


@dataclass(frozen=True)
class _Problem:
    """Which noise is best, for one share of rho that is left for slack."""

    axes: tuple[Levels, ...]
    residuals: tuple[Margin, ...]
    shares: Array
    aim: Aim
    rho: float
    rows: int
    neighbours: Neighbours
    norm: int | None

    def solved(self, share: float) -> tuple[ResidualNoise, ...]:
        """Return the noise of the residuals."""
        counted = [[bool(level) for level in margin] for margin in self.residuals]
        while True:
            sigmas = self._scaled(counted, share)
            # The residuals and axes whose slack is too large for the share.
            pairs = max(1, sum(map(sum, counted)))
            # Where ln(1 + eta) is a sum of small terms, the slack is at most 2.2 times that sum.
            most_each = min(most_slack(self.rho, share) / 2.2, 0.01) / pairs
            too_large = []
            for residual, (margin, sigma_squared) in enumerate(
                zip(self.residuals, sigmas, strict=True)
            ):
                terms = log_etas(self.axes, margin, float(sigma_squared))
                used = zip(terms, counted[residual], strict=True)
                too_large += [
                    (residual, at)
                    for at, (term, is_used) in enumerate(used)
                    if is_used and term > most_each
                ]
            if not too_large:
                noise = zip(self.residuals, sigmas, map(tuple, counted), strict=True)
                return tuple(ResidualNoise(*parameters) for parameters in noise)
            # Differences are only ever given up, so this ends.
            for residual, at in too_large:
                counted[residual][at] = False

    def _scaled(self, counted: list[list[bool]], share: float) -> list[Fraction]:
        """Return the best parameters if these differences may be counted on."""
        if self.norm is None:
            of_rows = squared_moves(self.axes, self.residuals, counted, self.neighbours)
            moves = of_rows * self.rows**2
        else:
            of_rows = largest_moves(self.axes, self.residuals, counted)[None]
            moves = of_rows * self.norm**2
        of_one = moves[0]

        def best(weights: Array) -> Array:
            return np.asarray(np.sqrt(of_one / (weights @ self.shares)))

        relative = self.aim.solved(
            best, len(self.shares), lambda variances: self.shares @ variances
        )
        # The worst case counts. Doubles are rounded so that the noise is not too small.
        spent = float((moves / (2 * relative)).sum(axis=1).max()) * (1 + ROUNDING)
        spent *= self._factor(counted, relative)
        scale = spent / (self.rho * (1 - share)) * (1 + ROUNDING)
        return [rounded_up(float(sigma_squared)) for sigma_squared in relative * scale]

    def _factor(self, counted: list[list[bool]], relative: Array) -> float:
        """How much farther than ``norm`` rows in one cell one person moves all residuals, squared.

        The limit on the norm is larger by the share ``ROUNDING`` (see ``stacked_norm``).
        """
        if self.norm is None:
            return 1.0
        if self.neighbours == "add-remove":
            return 1 + ROUNDING
        # Under replace the rows of two persons move them. By the triangle inequality that is twice
        # as far, squared; by the inner products of rows it may be less.
        of_two = 4.0
        inner = inner_products(self.axes, self.residuals, counted)
        if inner is not None:
            of_one = largest_moves(self.axes, self.residuals, counted)
            most_opposed = (inner / relative).sum(axis=1).min()
            opposed = -float(most_opposed / (of_one / relative).sum())
            # Where noise is rounded up, inner products may change so far, in units of one row's.
            share = max(0.0, opposed) + 2e-7
            reach = self.rows / self.norm  # of a person's rows, beside those in one cell
            of_two = min(4.0, 2 + 2 * share * reach**2)
        return (1 + ROUNDING) * of_two


def log_etas(axes: Sequence[Levels], margin: Margin, sigma_squared: float) -> list[float]:
    """Return what the differences along each axis add to the bound on ln(1 + eta) of a residual."""
    cells = Nesting(tuple(axes)).cells(margin)
    return [
        log_eta(sigma_squared, axis.fanouts[level - 1], cells, axis.cells(level)) if level else 0.0
        for axis, level in zip(axes, margin, strict=True)
    ]


def squared_moves(
    axes: Sequence[Levels],
    residuals: Sequence[Margin],
    counted: Sequence[Sequence[bool]],
    neighbours: Neighbours,
) -> Array:
    """Return how far one row moves each residual, squared, in each case that can be the worst.

    Parameters
    ----------
    axes : sequence of Levels
    residuals : sequence of tuple of int
    counted : sequence of sequence of bool
        For each residual, along which axes differences are counted on.
    neighbours : {"add-remove", "replace"}

    Returns
    -------
    float64 ndarray of shape (cases, residuals)
        The first case is a row that comes or goes.
    """
    # Neighbours that add or remove rows have one case: all rows in one cell.
    once = largest_moves(axes, residuals, counted)
    if neighbours == "add-remove":
        return once[None]
    even = all(axis.is_even for axis in axes)
    inner = inner_products(axes, residuals, counted) if even else None
    if inner is None:
        largest = np.array(list(map(partial(_less, axes), residuals, counted)))
        return np.stack([once, 2 * once * (1 + largest)])
    replaced = 2 * np.maximum(once - inner, 0)
    return np.concatenate([once[None], replaced])


def largest_moves(
    axes: Sequence[Levels], residuals: Sequence[Margin], counted: Sequence[Sequence[bool]]
) -> Array:
    """How far a row that comes or goes moves each residual, squared, at most: float64 ndarray."""
    return np.array(list(map(partial(_largest, axes), residuals, counted)))


def inner_products(
    axes: Sequence[Levels], residuals: Sequence[Margin], counted: Sequence[Sequence[bool]]
) -> Array | None:
    """Return the inner products of what two rows add to each residual, by where their cells part.

    Where cells of a level have different numbers of children, all are taken to have the most.

    Returns
    -------
    float64 ndarray of shape (cases, residuals); None if there are too many cases
    """
    cases = math.prod(axis.depth + 1 for axis in axes)
    # So many combinations of levels at which two cells part, times residuals, are tried.
    if cases * len(residuals) > 2**22:
        return None
    inner = np.ones((cases, len(residuals)))
    parted = np.array(list(product(*(range(1, axis.depth + 2) for axis in axes))))
    for at, axis in enumerate(axes):
        entries = _entries(axis)
        for column, (margin, along) in enumerate(zip(residuals, counted, strict=True)):
            inner[:, column] *= entries[int(along[at]), parted[:, at] - 1, margin[at]]
    return inner


def _largest(axes: Sequence[Levels], margin: Margin, along: Sequence[bool]) -> float:
    """c_A: the largest diagonal entry of the projection on the differences counted on."""
    return math.prod(
        1 - 1 / max(axis.fanouts[level - 1])
        for axis, level, used in zip(axes, margin, along, strict=True)
        if used and level
    )


def _less(axes: Sequence[Levels], margin: Margin, along: Sequence[bool]) -> float:
    """Return how negative an entry beside the diagonal can be, in units of the largest on it.

    It is negative along an odd number of axes, each of which makes it smaller by 1 / (f - 1).
    """
    siblings = [
        min((fanout for fanout in axis.fanouts[level - 1] if fanout > 1), default=2)
        for axis, level, used in zip(axes, margin, along, strict=True)
        if used and level
    ]
    return max((1 / (fanout - 1) for fanout in siblings), default=0.0)


def _entries(axis: Levels) -> Array:
    """Entries of the projections of an axis, by whether it is counted on, where cells part, and
    level: float64 ndarray of shape (2, depth + 1, depth + 1).
    """
    levels = range(axis.depth + 1)
    path = Path(tuple(map(max, axis.fanouts)))
    same = [[float(level < parted) for level in levels] for parted in range(1, axis.depth + 2)]
    used = [
        [float(contrast(path, level, parted)) for level in levels]
        for parted in range(1, axis.depth + 2)
    ]
    return np.array([same, used])
