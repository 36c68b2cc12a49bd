"""The methods that find centres from counted cells. Each spends exactly its cost.

*To refine rough centres* (``Schedule``): a private partition says where to start, and
noisy steps do the rest.

Lloyd's steps are noisy because of how far a row may lie from the origin of its sum. Over the whole
range of d axes a row may change a sum by d half-sides, although the rows of one cluster lie close
together. Here a step adds up differences from the centre that the partition suggests, clipped to a
radius that is chosen from the same partition. The partition is paid for, so every choice made here
is post-processing: the first centres, the clip radius and the number of steps. A radius that is too
short costs accuracy, never privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.answers import Counts
from sfumato.basics import Array, several, squared_distances
from sfumato.domain import Cube
from sfumato.mechanisms import DiscreteGaussian, Law, count_law
from sfumato.privacy import ZCDP, CentralMeasure, Unit, of_units, share
from sfumato.questions.clustering.error import NoisyCells, group_sums, packing
from sfumato.questions.clustering.lloyd import (
    HALF,
    Space,
    Step,
    full_radius,
    nearest,
    private_step,
    step_laws,
    steps_for,
)
from sfumato.questions.partition.growth import Draft
from sfumato.questions.partition.privtree import PrivTreePartitioner
from sfumato.questions.partition.release import Partition
from sfumato.questions.partition.uniform import MOST_CELLS, UniformPartitioner, eugkm_cells
from sfumato.random.bits import Bits

# --- refining rough centres -----------------------------------------------------------------------

MOST_STEPS = 3

# Noise of this share of the loss, or less, is accepted from a clip radius.
BEARABLE = 0.01


@dataclass(frozen=True)
class Schedule:
    """The steps to be made: what each costs, the clip radius, and the noise on sums and counts."""

    costs: list[CentralMeasure]
    clip_radius: int
    laws: tuple[Law, Law]


def schedule_steps(
    cells: NoisyCells,
    weights: Array,
    centres: Array,
    unit: Unit,
    cost: CentralMeasure,
    most: int,
) -> Schedule:
    """Choose the number of steps and the clip radius.

    There are as many steps as the noise allows. Among a few radii, the one is taken at which noise
    and clipping together add least to the loss.

    Parameters
    ----------
    cells : NoisyCells
    weights : float64 ndarray of shape (cells,)
        The rows that they are taken to hold.
    centres : float64 ndarray of shape (k, d), in units of half a side
    unit : Unit
    cost : PureDP or ZCDP
        What all steps together cost.
    most : int
        Upper limit of the radius, which was checked before the charge.
    """
    k, d = centres.shape
    distances = squared_distances(cells.middles, centres)
    groups = distances.argmin(axis=1)
    # The mean squared distance of rows to their centres. Rows are taken to lie evenly in each cell.
    to_centre = distances[np.arange(len(groups)), groups]
    squared = to_centre + (cells.halves**2).sum(axis=1) / 3
    all_rows = weights.sum()
    loss = float(squared @ weights / all_rows if all_rows > 0 else squared.mean())
    rows = np.maximum(np.bincount(groups, weights, k), 1)
    # What a unit of variance on every sum adds to the mean loss.
    loss_per_variance = d * float((1 / rows).sum()) / rows.sum()
    clipping_loss = {
        min(radius, most): added
        for radius, added in _radii(cells, weights, centres, groups, isinstance(cost, ZCDP)).items()
    }
    for number in range(MOST_STEPS, 0, -1):
        costs = share(cost, [Fraction(1)] * number)
        # Shares in whole units may differ by one. The noise of the least one is enough for all.
        least = min(costs, key=lambda part: part.money)
        noise_loss = {
            radius: loss_per_variance * step_laws(least, unit, radius, d)[0].variance / HALF**2
            for radius in clipping_loss
        }
        radius = min(
            clipping_loss, key=lambda candidate: noise_loss[candidate] + clipping_loss[candidate]
        )
        # Noise of this share of the loss, or less, allows one more step.
        if noise_loss[radius] <= 0.003 * loss:
            break
    if noise_loss[radius] > BEARABLE * loss:
        # The variance falls with the square of the radius.
        radius = max(1, int(radius * math.sqrt(BEARABLE * loss / noise_loss[radius])))
    return Schedule(costs, radius, step_laws(least, unit, radius, d))


def _radii(
    cells: NoisyCells, weights: Array, centres: Array, groups: Array, euclidean: bool
) -> dict[int, float]:
    """Return radii that leave given shares of the differences whole, and the loss that each adds.

    On average a row is taken to lie half of a cell's half-width from the middle along each axis.
    """
    k = len(centres)
    offsets = cells.middles - centres[groups]
    if euclidean:
        length = np.sqrt((offsets**2 + cells.halves**2 / 3).sum(axis=1))
    else:
        length = (np.abs(offsets) + cells.halves / 2).sum(axis=1)
    order = np.argsort(length)
    rows_within = np.cumsum(weights[order])
    rows = np.maximum(np.bincount(groups, weights, k), 1)
    added = {}
    # A clip radius may leave these shares of the rows whole.
    for share_within in (0.75, 0.9, 0.97, 1.0):
        last = int(np.searchsorted(rows_within, share_within * rows_within[-1]))
        radius = length[order[min(last, len(order) - 1)]]
        kept_share = np.minimum(1, radius / np.maximum(length, 1 / HALF))
        lost = group_sums(groups, offsets * (weights * (1 - kept_share))[:, None], k)
        lost_squares = ((lost**2).sum(axis=1) / rows).sum()
        added[max(1, int(radius * HALF))] = float(lost_squares / rows.sum())
    return added


def take_steps(
    rows: tuple[Array, Array],
    space: Space,
    start: Array,
    schedule: Schedule,
    noise: Bits,
    origins: Array | None = None,
) -> tuple[Array, tuple[Step, ...]]:
    """Take the steps of a schedule.

    Parameters
    ----------
    rows : int64 ndarrays of shapes (cells, d) and (cells,)
        As ``Space.rows``.
    space : Space
    start : int64 ndarray of shape (k, d)
        The first centres.
    schedule : Schedule
    noise : Bits
    origins : int64 ndarray of shape (k, d), or None
        From where rows are measured and clipped. None: from the centres of each step.

    Returns
    -------
    centres : int64 ndarray of shape (k, d)
    steps : tuple of Step
        What was released on the way.
    """
    centres = start
    steps = []
    for _ in schedule.costs:
        middles = centres if origins is None else origins
        step = private_step(rows, centres, middles, schedule.clip_radius, schedule.laws, noise)
        steps.append(step)
        centres = step.moved(space.extent)
    return centres, tuple(steps)


def describe(schedule: Schedule) -> str:
    """Return the noise of the steps, as the guarantee states it."""
    sum_law, count_law = schedule.laws
    norm = "L2" if isinstance(sum_law, DiscreteGaussian) else "L1"
    steps = several(len(schedule.costs), "step")
    radius = f"{schedule.clip_radius / HALF:.3g} half-widths of the axes, in {norm}"
    return (
        f"{steps} with rows clipped to a radius of {radius}: "
        f"{sum_law} on each sum, {count_law} on each count"
    )


# --- the methods ----------------------------------------------------------------------------------

PARTITION_SHARE = Fraction(3, 5)
STEPS_SHARE = Fraction(2, 5)


@dataclass(frozen=True)
class Clusters:
    """What a method found: the fields of ``KMeansRelease``, with centres of shape (k, d)."""

    centres: Array
    weights: Array
    terms: Array
    law: Law
    mechanism: str
    partition: Partition | None = None
    steps: tuple[Step, ...] = ()


def eugkm(
    counts: Counts, k: int, unit: Unit, cost: CentralMeasure, noise: Bits, rows: int | None = None
) -> Clusters:
    """Lay a uniform grid, count it, and cluster its cells: EUGkM of Su et al. 2016.

    Parameters
    ----------
    rows : int or None
        A noisy number of rows that is paid for already. None: a part of the cost pays for it.
    """
    names = counts.lattice.names
    partitions = None
    if rows is not None:
        epsilon = count_law(cost, unit).effective_epsilon
        aim, _ = eugkm_cells(max(rows, 0), epsilon, d=len(names))
        partitions = max(1, math.ceil(min(aim, MOST_CELLS)))
    question = UniformPartitioner(names, partitions=partitions)
    partition = question.answer(counts, unit, cost, noise)
    _, law = question.laws(cost, unit)
    space = Space(counts.lattice)
    cells = NoisyCells.of(space, partition)
    start, _ = cells.clustered(k)
    centres = space.whole(start)
    groups = nearest(space.whole(cells.middles), centres)
    weights = np.zeros(k, np.int64)
    # Signed counts: those cut at 0 would make the weights too large.
    np.add.at(weights, groups, partition.counts)
    terms = np.bincount(groups, minlength=k)
    return Clusters(centres, weights, terms, law, partition.guarantee.mechanism, partition)


def privtree(cube: Cube, k: int, unit: Unit, cost: CentralMeasure, noise: Bits) -> Clusters:
    """Split space where rows are, cluster the cells, and refine the centres by clipped steps."""
    space = Space(cube.lattice)
    # Stored by its occupied cells, so that they are searched for once.
    coordinates, occupied = cube.occupied()
    cube = Cube(cube.lattice, occupied, coordinates)
    for_partition, for_steps = share(cost, [PARTITION_SHARE, STEPS_SHARE])
    # A PrivTree that spends most of its cost on where to split: which rows lie together matters
    # more here than how many they are.
    question = PrivTreePartitioner(cube.lattice.names)
    draft = Draft(cube, unit, for_partition, noise)
    # Three quarters of the cost decide where it is split.
    for_tests = math.floor(draft.total * Fraction(3, 4))
    root = np.zeros(1, np.int64)
    test_law, delta = question.law_at(of_units(draft.cost, for_tests), unit)
    draft.pay(root, for_tests)
    # Four levels of the tree are split without a handicap.
    depth = question.grow(draft, root, np.array([4]), root, test_law, delta)
    partition = draft.release(
        question.name,
        depth,
        question.proof,
        f"{test_law} in each test whether a box is split, noise on the count of each cell",
    )
    cells = NoisyCells.of(space, partition)
    start, cell_weights = cells.clustered(k)
    schedule = schedule_steps(
        cells, cell_weights, start, unit, for_steps, longest_radius(space, cost)
    )
    centres, steps = take_steps(space.rows(cube), space, space.whole(start), schedule, noise)
    _, law = schedule.laws
    mechanism = f"{partition.guarantee.mechanism}; {describe(schedule)}"
    return Clusters(
        centres, steps[-1].counts, np.ones(k, np.int64), law, mechanism, partition, steps
    )


def dplloyd(
    cube: Cube, k: int, rows: int, unit: Unit, cost: CentralMeasure, noise: Bits
) -> Clusters:
    """Take Lloyd's steps from public centres, clipping no row: DPLloyd of Su et al. 2016."""
    space = Space(cube.lattice)
    schedule = lloyd_schedule(space, k, rows, unit, cost)
    start = space.whole(packing(k, space.d))
    middle = np.zeros((k, space.d), np.int64)
    centres, steps = take_steps(space.rows(cube), space, start, schedule, noise, origins=middle)
    sum_law, law = schedule.laws
    mechanism = f"{sum_law} on each sum and {law} on each count, in {len(schedule.costs)} steps"
    return Clusters(centres, steps[-1].counts, np.ones(k, np.int64), law, mechanism, steps=steps)


def lloyd_schedule(space: Space, k: int, rows: int, unit: Unit, cost: CentralMeasure) -> Schedule:
    """Return what each of DPLloyd's steps costs, the radius that clips no row, and the noise."""
    number = steps_for(rows, k, space.d, count_law(cost, unit).effective_epsilon)
    costs = share(cost, [Fraction(1)] * number)
    # Shares in whole units may differ by one. The noise of the least one is enough for all.
    least = min(costs, key=lambda part: part.money)
    radius = full_radius(space.extent, cost)
    return Schedule(costs, radius, step_laws(least, unit, radius, space.d))


def most_noise(space: Space, unit: Unit, cost: CentralMeasure) -> Law:
    """Return the noise on counts of refining steps if their number and radius are the largest."""
    _, for_steps = share(cost, [PARTITION_SHARE, STEPS_SHARE])
    costs = share(for_steps, [Fraction(1)] * MOST_STEPS)
    least = min(costs, key=lambda part: part.money)
    return step_laws(least, unit, longest_radius(space, cost), space.d)[1]


def longest_radius(space: Space, cost: CentralMeasure) -> int:
    """Return how far apart two rows can be, and so how far a row can be from a centre."""
    return 2 * full_radius(space.extent, cost)
