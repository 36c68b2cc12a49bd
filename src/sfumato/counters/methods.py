"""Which mechanism a counter takes at a price: by measure, by horizon, and by how accurate it is."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, TypeAlias, overload

import numpy as np

from sfumato.arrays import Array
from sfumato.counters import blt as exact_blt
from sfumato.counters import toeplitz as exact_toeplitz
from sfumato.counters.blt import BufferCounter
from sfumato.counters.laplace_sums import laplace_sum_half_width
from sfumato.counters.segments import Segments
from sfumato.counters.toeplitz import ToeplitzCounter
from sfumato.counters.tree import ElderTree, radices_for
from sfumato.errors import Infeasible, InternalError, UsageError
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy.composition import approx_to_zcdp, pure_epsilon
from sfumato.privacy.measures import ZCDP, ApproxDP, CentralMeasure, PureDP, without_delta
from sfumato.privacy.unit import Unit, squared_factor
from sfumato.streaming.blt import BLT
from sfumato.streaming.sensitivity import squared_sensitivity

AnyMachine: TypeAlias = ElderTree | ToeplitzCounter | BufferCounter | Segments
Method: TypeAlias = Literal["auto", "tree", "toeplitz", "blt"]

FAR = 1000
"""Where machines without a horizon are compared."""


class Reach:
    """What one person's rows can add up to, in grains.

    Parameters
    ----------
    unit : Unit
    bounds : (int, int)
        The least and the largest of one row.

    Attributes
    ----------
    l1 : int
        Added and removed over all steps and categories: rows times the largest row, twice that under replace.
    largest : int
        What the rows of one person can add up to in one place, in size.
    squared_factor : int
        By how much the squared length of one person's change may exceed that of all rows in one place: 2 under replace, where two
        non-negative changes are subtracted, 4 if values of both signs occur.
    """

    def __init__(self, unit: Unit, bounds: tuple[int, int]) -> None:
        self.unit = unit
        self.signed = bounds[0] < 0
        self.row = max(abs(bounds[0]), abs(bounds[1]))
        self.largest = unit.rows_per_person * self.row
        self.l1 = unit.sums_l1(self.row)
        self.squared_factor = squared_factor(unit.neighbours, self.signed)


def machine_for(
    method: Method, horizon: int | None, cells: int, reach: Reach, cost: CentralMeasure
) -> tuple[AnyMachine, CentralMeasure]:
    """Choose the mechanism, and what of the cost it uses.

    Pure epsilon has Laplace trees only. Under (epsilon, delta) a tree at epsilon, which needs no delta, competes with Gaussian noise at
    the rho that ``approx_to_zcdp`` allows; under rho, a tree at the epsilon that ``zcdp_to_pure`` allows. "auto" takes the one whose
    largest variance over the horizon is smaller.

    Raises
    ------
    Infeasible
        If the method cannot keep a promise of this kind.
    """
    tree = laplace_tree(horizon, cells, reach, cost)
    if method == "tree" or horizon is None or (method == "auto" and isinstance(cost, PureDP)):
        return _without_horizon(method, tree, cost)
    if isinstance(cost, PureDP):
        raise Infeasible(
            f'method "{method}"',
            "its noise is Gaussian, and pure epsilon allows none",
            'Give delta or rho, or method="tree"',
        )
    if method != "auto":
        return _gaussian(method, horizon, cells, reach, _rho_of(cost)), cost
    try:
        gaussian = _gaussian(
            "toeplitz" if horizon <= exact_toeplitz.LONGEST else "blt",
            horizon,
            cells,
            reach,
            _rho_of(cost),
        )
    except UsageError:  # so small a delta, or so wide a noise, that there is none
        return tree, without_delta(cost)
    return (
        (tree, without_delta(cost))
        if largest_variance(tree) <= largest_variance(gaussian)
        else (gaussian, cost)
    )


def _rho_of(cost: ZCDP | ApproxDP) -> ZCDP:
    return cost if isinstance(cost, ZCDP) else approx_to_zcdp(cost.epsilon, cost.delta)


def _without_horizon(
    method: Method, tree: AnyMachine, cost: CentralMeasure
) -> tuple[AnyMachine, CentralMeasure]:
    if method in ("toeplitz", "blt"):
        raise Infeasible(
            f'method "{method}" without a horizon',
            "its noise is laid out over the horizon",
            'State it, or take method="tree"',
        )
    return tree, without_delta(cost)


def errors_of_all(
    chosen: AnyMachine, horizon: int, reach: Reach, cost: CentralMeasure, alpha: float
) -> dict[str, Array]:
    """Half-widths in grains, by method, at this cost: the chosen one, the others, and the binary tree that all of them improve on."""
    tree = laplace_tree(horizon, 1, reach, cost)
    machines: dict[str, AnyMachine] = {"this counter": chosen, "elder tree": tree}
    if isinstance(chosen, ElderTree | Segments) and not isinstance(cost, PureDP):
        machines["buffers, Gaussian"] = _gaussian("blt", horizon, 1, reach, _rho_of(cost))
    kept = {
        name: one
        for name, one in machines.items()
        if name == "this counter" or type(one) is not type(chosen)
    }
    errors = {name: one.half_widths(1, horizon, alpha) for name, one in kept.items()}
    scale = tree.law.scale / tree.levels * horizon.bit_length()
    binary = [
        laplace_sum_half_width(scale, step.bit_count(), alpha) for step in range(1, horizon + 1)
    ]
    return errors | {"binary tree": np.array(binary, dtype=float)}


def largest_variance(machine: AnyMachine) -> float:
    """The largest variance of an estimate over the horizon, in squared grains."""
    return float(machine.variances(1, machine.horizon or FAR).max())


@overload
def laplace_tree(horizon: int, cells: int, reach: Reach, cost: CentralMeasure) -> ElderTree: ...
@overload
def laplace_tree(
    horizon: int | None, cells: int, reach: Reach, cost: CentralMeasure
) -> ElderTree | Segments: ...
def laplace_tree(
    horizon: int | None, cells: int, reach: Reach, cost: CentralMeasure
) -> ElderTree | Segments:
    """An elder tree with the noise that ``cost`` asks for; without a horizon, one tree after another."""
    scale = Fraction(reach.l1) / pure_epsilon(cost)
    if horizon is None:
        return Segments(scale, cells)
    radices = radices_for(horizon)
    return ElderTree(horizon, radices, DiscreteLaplace(scale * (len(radices) + 1)), cells)


def _gaussian(
    method: Method, horizon: int, cells: int, reach: Reach, cost: ZCDP
) -> ToeplitzCounter | BufferCounter:
    match method:
        case "blt":
            return buffers(
                horizon,
                cells,
                reach,
                cost,
                max(8, exact_blt.PRECISION - reach.largest.bit_length()),
            )
        case "toeplitz":
            most = exact_toeplitz.LONGEST
            if horizon > most:
                asked = f'method "toeplitz" over {horizon:,} steps'
                raise Infeasible(
                    asked,
                    f"it works through all earlier steps, up to {most:,}",
                    'Take method="blt"',
                )
            return toeplitz(horizon, cells, reach, cost, exact_toeplitz.PRECISION)
        case "auto" | "tree":
            raise InternalError(f"Method {method!r} adds no Gaussian noise.")


def toeplitz(horizon: int, cells: int, reach: Reach, cost: ZCDP, precision: int) -> ToeplitzCounter:
    """The square-root factorisation on a lattice of 2^-precision grains, with the noise that ``cost`` asks for."""
    column, unit = exact_toeplitz.column(horizon, precision), reach.unit
    moved = squared_sensitivity(
        column,
        participations=unit.rows_per_person,
        separation=0,
        neighbours=unit.neighbours,
        signed=reach.signed,
    )
    return ToeplitzCounter(
        horizon,
        DiscreteGaussian(Fraction(int(moved) * reach.row**2) / (2 * cost.rho)),
        cells,
        precision,
    )


def buffers(horizon: int, cells: int, reach: Reach, cost: ZCDP, precision: int) -> BufferCounter:
    """Buffers in fixed point of 2^-precision grains, with the noise that ``cost`` asks for, rounding included."""
    parameters = BLT.for_horizon(horizon)
    moved = exact_blt.moved_squared(
        parameters, precision, reach.largest, reach.squared_factor, min(cells, reach.unit.counts_l1)
    )
    return BufferCounter(
        parameters, DiscreteGaussian(Fraction(moved) / (2 * cost.rho)), cells, precision
    )
