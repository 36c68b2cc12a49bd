"""From a rough picture to sharp centres: a private partition says where to start and how far rows reach, and steps do the rest.

What makes Lloyd's steps noisy is their reach: over the whole side of d axes a row may move a sum by d half-sides, although rows of
one cluster lie close together. Here a step adds up differences from the centre that the partition suggests, shortened to a reach
that is learnt from the same partition. The partition is paid for, so all that is chosen here is post-processing: first centres,
reach, number of steps. A reach that is too short costs accuracy, never privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.arrays import Array
from sfumato.centers import squared_distances
from sfumato.clustering.lloyd import Step, private_step, step_laws
from sfumato.clustering.space import HALF, Space
from sfumato.clustering.weighted import non_negative
from sfumato.mechanisms.noise import DiscreteGaussian, Law
from sfumato.partition.partition import Partition
from sfumato.privacy.allocation import share
from sfumato.privacy.measures import ZCDP, CentralMeasure
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits

WITHIN = (0.75, 0.9, 0.97, 1.0)  # shares of the rows whose differences a reach may leave whole
MOST_STEPS = 3
SLIGHT, BEARABLE = (
    0.003,
    0.01,
)  # of the loss: noise that allows one more step, and that a reach may bring


@dataclass(frozen=True)
class Rough:
    """A partition as k-means sees it, in units of half a side.

    Attributes
    ----------
    middles, halves : float64 ndarrays of shape (cells, d)
    weights : float64 ndarray of shape (cells,)
        Not negative.
    """

    middles: Array
    halves: Array
    weights: Array

    @classmethod
    def of(cls, space: Space, partition: Partition) -> Rough:
        lower, upper = space.scale_edges(partition.lower), space.scale_edges(partition.upper)
        return cls((lower + upper) / 2, (upper - lower) / 2, non_negative(partition.counts))


@dataclass(frozen=True)
class Course:
    """How many steps are made, what each costs, how far rows reach, and the noise."""

    parts: list[CentralMeasure]
    reach: int
    laws: tuple[Law, Law]


def course(rough: Rough, centres: Array, unit: Unit, cost: CentralMeasure, most: int) -> Course:
    """Choose as many steps as noise allows, and of reaches the one at which noise and shortening together do least harm.

    Parameters
    ----------
    centres : float64 ndarray of shape (k, d), in units of half a side
    cost : PureDP or ZCDP
        Of all steps together.
    most : int
        No reach is longer: what was checked before the charge.
    """
    k, d = centres.shape
    distances = squared_distances(rough.middles, centres)
    groups = distances.argmin(axis=1)
    loss = _mean(
        distances[np.arange(len(groups)), groups] + (rough.halves**2).sum(axis=1) / 3, rough.weights
    )
    rows = np.maximum(np.bincount(groups, rough.weights, k), 1)
    spread = (
        d * float((1 / rows).sum()) / rows.sum()
    )  # what a unit of variance adds to the mean loss
    wanted = {
        min(reach, most): harm
        for reach, harm in _reaches(rough, centres, groups, isinstance(cost, ZCDP)).items()
    }
    for number in range(MOST_STEPS, 0, -1):
        parts = share(cost, [Fraction(1)] * number)
        least = min(parts, key=lambda part: part.money)
        noise = {
            reach: spread * step_laws(least, unit, reach, d)[0].variance / HALF**2
            for reach in wanted
        }
        reach = min(wanted, key=lambda reach: noise[reach] + wanted[reach])
        if noise[reach] <= SLIGHT * loss:
            break
    if noise[reach] > BEARABLE * loss:
        reach = max(1, int(reach * math.sqrt(BEARABLE * loss / noise[reach])))
    return Course(parts, reach, step_laws(least, unit, reach, d))


def _reaches(rough: Rough, centres: Array, groups: Array, euclidean: bool) -> dict[int, float]:
    """Lengths, in the noise's norm, below which given shares of the differences lie; with the loss that shortening to each adds.

    A row is taken to lie half a cell's side from the middle of its cell along each axis, on average.
    """
    away, halves = rough.middles - centres[groups], rough.halves
    length = (
        np.sqrt((away**2 + halves**2 / 3).sum(axis=1))
        if euclidean
        else (np.abs(away) + halves / 2).sum(axis=1)
    )
    order, found = np.argsort(length), {}
    held = np.cumsum(rough.weights[order])
    for share_within in WITHIN:
        most = length[
            order[min(int(np.searchsorted(held, share_within * held[-1])), len(order) - 1)]
        ]
        weights = rough.weights * (1 - np.minimum(1, most / np.maximum(length, 1 / HALF)))
        lost = np.stack(
            [np.bincount(groups, weights * column, len(centres)) for column in away.T], axis=1
        )
        rows = np.maximum(np.bincount(groups, rough.weights, len(centres)), 1)
        found[max(1, int(most * HALF))] = float(((lost**2).sum(axis=1) / rows).sum() / rows.sum())
    return found


def _mean(values: Array, weights: Array) -> float:
    return float(values @ weights / weights.sum()) if weights.sum() > 0 else float(values.mean())


def walk(
    rows: tuple[Array, Array], space: Space, start: Array, chosen: Course, noise: Bits
) -> tuple[Array, tuple[Step, ...]]:
    """Make the steps: the centres, int64 ndarray of shape (k, d), and what was released on the way."""
    centres, steps = start, []
    for _ in chosen.parts:
        steps.append(private_step(rows, centres, centres, chosen.reach, chosen.laws, noise))
        centres = steps[-1].moved(space.extent)
    return centres, tuple(steps)


def described(chosen: Course) -> str:
    """The noise of the steps in words."""
    kind = "L2" if isinstance(chosen.laws[0], DiscreteGaussian) else "L1"
    times, reach = (
        f"{len(chosen.parts)} step{'s' if len(chosen.parts) > 1 else ''}",
        f"{chosen.reach / HALF:.3g} half-sides in {kind}",
    )
    return f"{times} with rows shortened to {reach}: {chosen.laws[0]} on each sum, {chosen.laws[1]} on each count"
