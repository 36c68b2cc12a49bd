"""The choice of a counter's mechanism, by its cost, its horizon and its accuracy.

*Totals without a known horizon* (``Segments``): a sequence of elder trees, each three times as long
as the last.

Every tree starts from the final published total of the trees before it, and its noise scale is that
of its own levels. Each row lies in one tree only. The last total of a tree is one draw away from 0,
so k finished trees add k draws to all later totals.

Privacy. Rows of one person may lie in several trees. Each row costs (its size) * levels / scale,
which is its share of epsilon, in the tree in which it lies. The shares of a person's rows add up to
at most epsilon. What a finished tree hands on was published already.

Source: Chan, Shi, Song 2011, section 5. There trees double in length; odd radices make blocks of
powers of 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from operator import add
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from sfumato.basics import Array
from sfumato.errors import Infeasible, InternalError, UsageError, require_fitting
from sfumato.mechanisms import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy import (
    ZCDP,
    ApproxDP,
    CentralMeasure,
    PureDP,
    Unit,
    approx_to_zcdp,
    pure_epsilon,
    squared_factor,
    without_delta,
)
from sfumato.questions.counters.mechanism import Estimator, Whole
from sfumato.questions.counters.toeplitz import (
    BLT_PRECISION,
    LONGEST,
    TOEPLITZ_PRECISION,
    BufferCounter,
    ToeplitzCounter,
    column,
    moved_squared,
)
from sfumato.questions.counters.tree import (
    ElderState,
    ElderTree,
    laplace_sum_half_width,
    mixed_half_widths,
    radices_for,
)
from sfumato.random.bits import Bits
from sfumato.streaming.accounting import squared_sensitivity
from sfumato.streaming.toeplitz import BLT

# --- no known horizon -----------------------------------------------------------------------------

# The first tree takes 3^3 steps.
FIRST = 3

# The noise at a step: distributions, and how many draws of each are added up.
Draws: TypeAlias = tuple[tuple[DiscreteLaplace, int], ...]


class SegmentsState(msgspec.Struct, frozen=True):
    """The state of the current tree, which is secret, and where it starts.

    Attributes
    ----------
    index : int
        The number of the current tree, from 0 on.
    before : tuple of int
        The last published total of all finished trees.
    tree : ElderState
    """

    index: int
    before: Whole
    tree: ElderState


class Segments(msgspec.Struct, frozen=True, tag="segments", forbid_unknown_fields=True):
    """Elder trees of 27, 81, 243, ... steps, one after another.

    Parameters
    ----------
    scale : Fraction
        Of the noise, per level: the L1 norm of a person's rows over epsilon.
    cells : int
        The number of categories.

    >>> trees = Segments(Fraction(1))
    >>> trees.tree(0).radices, [trees.position(step) for step in (1, 27, 28)]
    ((3, 9), [(0, 1), (0, 27), (1, 1)])
    """

    scale: Fraction
    cells: int = 1

    def __post_init__(self) -> None:
        require_fitting(
            self.scale > 0 and self.cells >= 1,
            "elder trees for a running total",
            "their scale or their categories cannot be",
        )

    @property
    def horizon(self) -> None:
        """None: there is no limit on the number of steps."""
        return

    @property
    def law(self) -> DiscreteLaplace:
        """Of the draws of the first tree; later trees have more levels and more noise."""
        return self.tree(0).law

    def tree(self, index: int) -> ElderTree:
        """Return one of the trees, from 0 on."""
        return _tree(self.scale.numerator, self.scale.denominator, self.cells, index)

    def position(self, step: int) -> tuple[int, int]:
        """Return the tree in which a step lies, and the number of the step within that tree."""
        index = 0
        length = 3**FIRST
        while step > length:
            index += 1
            step -= length
            length *= 3
        return index, step

    def start(self) -> SegmentsState:
        """Return the start of the first tree."""
        return SegmentsState(0, (0,) * self.cells, self.tree(0).start())

    def step(
        self, state: SegmentsState, increment: Whole, noise: Bits
    ) -> tuple[SegmentsState, Whole]:
        """Take a step of the current tree, and add what the finished trees published."""
        tree = self.tree(state.index)
        inner, total = tree.step(state.tree, increment, noise)
        output = tuple(map(add, state.before, total))
        if inner.step < tree.horizon:
            return SegmentsState(state.index, state.before, inner), output
        # The next tree starts from this noisy total, never from the true one.
        return SegmentsState(state.index + 1, output, tree.start()), output

    def estimator(self) -> Estimator:
        """Return the outputs themselves: they are the totals."""
        return lambda output: output

    def draws(self, first: int, last: int) -> Iterator[tuple[Draws, Array]]:
        """Group steps ``first`` to ``last`` by the draws that their noise is a sum of.

        Yields
        ------
        draws, indices
            The draws, and the steps that have them, counted from ``first``: an int64 ndarray.
        """
        step = first
        while step <= last:
            index, inner = self.position(step)
            tree = self.tree(index)
            inner_last = min(tree.horizon, inner + last - step)
            edges = tree.edges(np.arange(inner, inner_last + 1))
            finished = tuple((self.tree(i).law, 1) for i in range(index))
            for number in np.unique(edges).tolist():
                indices = np.flatnonzero(edges == number) + (step - first)
                yield (*finished, (tree.law, number)), indices
            step += len(edges)

    def variances(self, first: int, last: int) -> Array:
        """Return the variances of the totals: a float64 ndarray of shape (last - first + 1,)."""
        variances = np.empty(last - first + 1)
        for draws, indices in self.draws(first, last):
            variances[indices] = sum(number * law.variance for law, number in draws)
        return variances

    def half_widths(self, first: int, last: int, alpha: Array | float) -> Array:
        """Return half-widths by the law of the sum of all draws; see ``mixed_half_widths``."""
        halves = np.empty(last - first + 1)
        alphas = np.broadcast_to(alpha, halves.shape)
        for draws, indices in self.draws(first, last):
            scales = tuple((law.scale, number) for law, number in draws)
            halves[indices] = mixed_half_widths(scales, alphas[indices])
        return halves

    def laws(self, first: int, last: int) -> list[str]:
        """Describe the errors of the totals by their draws."""
        descriptions = [""] * (last - first + 1)
        for draws, indices in self.draws(first, last):
            parts = [f"{number} draw{'s' * (number > 1)} of {law}" for law, number in draws]
            for index in indices.tolist():
                descriptions[index] = " and ".join(parts)
        return descriptions

    def __str__(self) -> str:
        return (
            "elder trees of 27, 81, 243, ... steps, one after another, with discrete Laplace noise "
            f"of scale {self.scale} per level"
        )


@lru_cache(maxsize=256)
def _tree(numerator: int, denominator: int, cells: int, index: int) -> ElderTree:
    length = 3 ** (FIRST + index)
    radices = radices_for(length, whole=True)
    levels = len(radices) + 1
    return ElderTree(
        length, radices, DiscreteLaplace(Fraction(numerator, denominator) * levels), cells
    )


# --- the choice -----------------------------------------------------------------------------------

AnyMechanism: TypeAlias = ElderTree | ToeplitzCounter | BufferCounter | Segments
Method: TypeAlias = Literal["auto", "tree", "toeplitz", "blt"]

# Over how many steps mechanisms without a horizon are compared.
COMPARED_STEPS = 1000


class Contribution:
    """What one person's rows can add up to, in units of the resolution.

    Parameters
    ----------
    unit : Unit
    bounds : (int, int)
        The least and the largest value of one row.

    Attributes
    ----------
    row : int
        The largest absolute value of one row.
    largest : int
        The largest absolute sum of a person's rows in one category.
    l1 : int
        The L1 norm of a person's change over all steps and categories: the number of rows times the
        largest row, and twice that under replace.
    squared_factor : int
        By how much the squared L2 norm of a person's change may exceed that of all rows in one
        step and category. It is 2 under replace, where two non-negative changes are subtracted, and
        4 if values of both signs occur.
    """

    def __init__(self, unit: Unit, bounds: tuple[int, int]) -> None:
        self.unit = unit
        self.signed = bounds[0] < 0
        self.row = max(abs(bounds[0]), abs(bounds[1]))
        self.largest = unit.rows_per_person * self.row
        self.l1 = unit.sums_l1(self.row)
        self.squared_factor = squared_factor(unit.neighbours, self.signed)


def mechanism_for(
    method: Method,
    horizon: int | None,
    cells: int,
    contribution: Contribution,
    cost: CentralMeasure,
) -> tuple[AnyMechanism, CentralMeasure]:
    """Choose the mechanism, and return it with the part of the cost that it uses.

    Under pure epsilon there are Laplace trees only. Under (epsilon, delta), a tree at epsilon,
    which needs no delta, is compared with Gaussian noise at the rho that ``approx_to_zcdp`` allows.
    Under rho, a tree at the epsilon that ``pure_epsilon`` allows is compared. "auto" takes the
    mechanism whose largest variance over the horizon is smaller.

    Raises
    ------
    Infeasible
        If the method cannot give a guarantee of this kind.
    """
    if method in ("toeplitz", "blt"):
        if horizon is None:
            raise Infeasible(
                f'method "{method}" without a horizon',
                "its noise is laid out over the horizon",
                'State the horizon, or take method="tree"',
            )
        if isinstance(cost, PureDP):
            raise Infeasible(
                f'method "{method}"',
                "its noise is Gaussian, and pure epsilon allows none",
                'Give delta or rho, or method="tree"',
            )
        return _gaussian(method, horizon, cells, contribution, _rho_of(cost)), cost
    if horizon is None:
        return Segments(_scale_per_level(contribution, cost), cells), without_delta(cost)
    tree = laplace_tree(horizon, cells, contribution, cost)
    if method == "tree" or isinstance(cost, PureDP):
        return tree, without_delta(cost)
    shorter: Method = "toeplitz" if horizon <= LONGEST else "blt"
    try:
        gaussian = _gaussian(shorter, horizon, cells, contribution, _rho_of(cost))
    except UsageError:
        # Delta is so small, or the noise so wide, that no Gaussian mechanism exists.
        return tree, without_delta(cost)
    # Of equal variances the tree is taken, whose privacy is pure.
    if largest_variance(tree) <= largest_variance(gaussian):
        return tree, without_delta(cost)
    return gaussian, cost


def _rho_of(cost: ZCDP | ApproxDP) -> ZCDP:
    return cost if isinstance(cost, ZCDP) else approx_to_zcdp(cost.epsilon, cost.delta)


def errors_of_all(
    chosen: AnyMechanism,
    horizon: int,
    contribution: Contribution,
    cost: CentralMeasure,
    alpha: float,
) -> dict[str, Array]:
    """Compare mechanisms at one cost: half-widths at each step, by the name of the mechanism.

    They are the chosen one, the others, and the binary tree, which all of them improve on.
    Half-widths are in units of the resolution.
    """
    tree = laplace_tree(horizon, 1, contribution, cost)
    others: dict[str, AnyMechanism] = {"elder tree": tree}
    if isinstance(chosen, ElderTree | Segments) and not isinstance(cost, PureDP):
        others["buffers, Gaussian"] = _gaussian("blt", horizon, 1, contribution, _rho_of(cost))
    errors = {"this counter": chosen.half_widths(1, horizon, alpha)}
    for name, other in others.items():
        if type(other) is not type(chosen):
            errors[name] = other.half_widths(1, horizon, alpha)
    # A binary tree has one draw for each digit 1 of the step's number.
    scale = tree.law.scale / tree.levels * horizon.bit_length()
    steps = range(1, horizon + 1)
    binary = [laplace_sum_half_width(scale, step.bit_count(), alpha) for step in steps]
    errors["binary tree"] = np.array(binary, dtype=float)
    return errors


def largest_variance(mechanism: AnyMechanism) -> float:
    """Return the largest variance of an estimate over the horizon, in squared resolution units."""
    return float(mechanism.variances(1, mechanism.horizon or COMPARED_STEPS).max())


def laplace_tree(
    horizon: int, cells: int, contribution: Contribution, cost: CentralMeasure
) -> ElderTree:
    """Return an elder tree with the noise that ``cost`` asks for."""
    radices = radices_for(horizon)
    levels = len(radices) + 1
    return ElderTree(
        horizon, radices, DiscreteLaplace(_scale_per_level(contribution, cost) * levels), cells
    )


def _scale_per_level(contribution: Contribution, cost: CentralMeasure) -> Fraction:
    """Return the L1 norm of a person's rows over epsilon.

    Each row costs its size times levels / scale.
    """
    return Fraction(contribution.l1) / pure_epsilon(cost)


def _gaussian(
    method: Method, horizon: int, cells: int, contribution: Contribution, cost: ZCDP
) -> ToeplitzCounter | BufferCounter:
    match method:
        case "blt":
            # Large contributions leave fewer binary places, so that the integers stay short.
            precision = max(8, BLT_PRECISION - contribution.largest.bit_length())
            return buffers(horizon, cells, contribution, cost, precision)
        case "toeplitz":
            if horizon > LONGEST:
                raise Infeasible(
                    f'method "toeplitz" over {horizon:,} steps',
                    f"it works through all earlier steps, up to {LONGEST:,}",
                    'Take method="blt"',
                )
            return toeplitz(horizon, cells, contribution, cost, TOEPLITZ_PRECISION)
        case "auto" | "tree":
            raise InternalError(f"Method {method!r} adds no Gaussian noise.")


def toeplitz(
    horizon: int, cells: int, contribution: Contribution, cost: ZCDP, precision: int
) -> ToeplitzCounter:
    """Return the square-root factorisation with the noise that ``cost`` asks for.

    Its lattice is 2^-precision units of the resolution.
    """
    unit = contribution.unit
    moved = squared_sensitivity(
        column(horizon, precision),
        participations=unit.rows_per_person,
        # All rows of a person may come in one step.
        separation=0,
        neighbours=unit.neighbours,
        signed=contribution.signed,
    )
    variance = Fraction(int(moved) * contribution.row**2) / (2 * cost.rho)
    return ToeplitzCounter(horizon, DiscreteGaussian(variance), cells, precision)


def buffers(
    horizon: int, cells: int, contribution: Contribution, cost: ZCDP, precision: int
) -> BufferCounter:
    """Return buffers in fixed point with the noise that ``cost`` asks for, rounding included.

    Their unit is 2^-precision of the resolution.
    """
    parameters = BLT.for_horizon(horizon)
    moved = moved_squared(
        parameters,
        precision,
        contribution.largest,
        contribution.squared_factor,
        # Rounding differs only in the categories that the person's rows touch before or after the
        # change.
        touched=min(cells, contribution.unit.counts_l1),
    )
    variance = Fraction(moved) / (2 * cost.rho)
    return BufferCounter(parameters, DiscreteGaussian(variance), cells, precision)
