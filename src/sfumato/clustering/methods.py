"""The methods that find centres from counted cells. Each spends exactly its cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.answers.counts import Counts
from sfumato.basics.numbers import Array
from sfumato.clustering.lloyd import Step, full_radius, private_step, step_laws, steps_for
from sfumato.clustering.packing import packing
from sfumato.clustering.refine import (
    MOST_STEPS,
    cluster_cells,
    describe,
    schedule_steps,
    take_steps,
)
from sfumato.clustering.space import Space, nearest
from sfumato.domain.cube import Cube
from sfumato.mechanisms.noise import Law, count_law
from sfumato.partition.draft import Draft
from sfumato.partition.partition import Partition
from sfumato.partition.privtree import PrivTreePartitioner
from sfumato.partition.uniform import MOST_CELLS, UniformPartitioner, eugkm_cells
from sfumato.privacy.allocation import of_units, share
from sfumato.privacy.measures import CentralMeasure
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits

PARTITION_SHARE = Fraction(3, 5)
STEPS_SHARE = Fraction(2, 5)
HEAD_START = 4
"""Levels of the tree that are split without a handicap."""
SPLITS_SHARE = Fraction(3, 4)
"""Share of the partition's cost that decides where it is split."""


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
    cells, start = cluster_cells(space, partition, k)
    centres = space.whole(start)
    groups = nearest(space.whole(cells.middles), centres)
    weights = np.zeros(k, np.int64)
    np.add.at(weights, groups, partition.counts)
    terms = np.bincount(groups, minlength=k)
    return Clusters(centres, weights, terms, law, partition.guarantee.mechanism, partition)


def privtree(cube: Cube, k: int, unit: Unit, cost: CentralMeasure, noise: Bits) -> Clusters:
    """Split space where rows are, cluster the cells, and refine the centres by clipped steps."""
    space = Space(cube.lattice)
    cube = occupied(cube)
    for_partition, for_steps = share(cost, [PARTITION_SHARE, STEPS_SHARE])
    partition = tree_cells(cube, unit, for_partition, noise)
    cells, start = cluster_cells(space, partition, k)
    schedule = schedule_steps(cells, start, unit, for_steps, longest_radius(space, cost))
    centres, steps = take_steps(space.rows(cube), space, space.whole(start), schedule, noise)
    _, law = schedule.laws
    mechanism = f"{partition.guarantee.mechanism}; {describe(schedule)}"
    terms = np.ones(k, np.int64)
    return Clusters(centres, steps[-1].counts, terms, law, mechanism, partition, steps)


def occupied(cube: Cube) -> Cube:
    """The same cube, stored by its occupied cells, so that they are searched for once."""
    if cube.coordinates is not None:
        return cube
    flat = np.flatnonzero(cube.counts)
    coordinates = np.stack(np.unravel_index(flat, cube.lattice.shape)).T
    return Cube(cube.lattice, cube.counts[flat].astype(np.int64), coordinates)


def tree_cells(cube: Cube, unit: Unit, cost: CentralMeasure, noise: Bits) -> Partition:
    """Make a PrivTree that spends most of its cost on where to split.

    Which rows lie together matters more here than how many they are.
    """
    question = PrivTreePartitioner(cube.lattice.names)
    draft = Draft(cube, unit, cost, noise)
    for_tests = math.floor(draft.total * SPLITS_SHARE)
    root = np.zeros(1, np.int64)
    law, delta = question.law_at(of_units(draft.cost, for_tests), unit)
    draft.pay(root, for_tests)
    depth = question.grow(draft, root, np.array([HEAD_START]), root, law, delta)
    return draft.release(
        question.name,
        depth,
        question.proof,
        f"{law} in each test whether a box is split, noise on the count of each cell",
    )


def dplloyd(
    cube: Cube, k: int, rows: int, unit: Unit, cost: CentralMeasure, noise: Bits
) -> Clusters:
    """Take Lloyd's steps from public centres, clipping no row: DPLloyd of Su et al. 2016."""
    space = Space(cube.lattice)
    costs, radius, laws = lloyd_laws(space, k, rows, unit, cost)
    sum_law, law = laws
    where = space.rows(cube)
    centres = space.whole(packing(k, space.d))
    middle = np.zeros((k, space.d), np.int64)
    steps: list[Step] = []
    for _ in costs:
        step = private_step(where, centres, middle, radius, laws, noise)
        steps.append(step)
        centres = step.moved(space.extent)
    mechanism = f"{sum_law} on each sum and {law} on each count, in {len(costs)} steps"
    terms = np.ones(k, np.int64)
    return Clusters(centres, steps[-1].counts, terms, law, mechanism, steps=tuple(steps))


def lloyd_laws(
    space: Space, k: int, rows: int, unit: Unit, cost: CentralMeasure
) -> tuple[list[CentralMeasure], int, tuple[Law, Law]]:
    """What each of DPLloyd's steps costs, the clip radius, and the noise on sums and counts.

    The radius and the noise are the same in every step.
    """
    number = steps_for(rows, k, space.d, count_law(cost, unit).effective_epsilon)
    costs = share(cost, [Fraction(1)] * number)
    # Shares in whole units may differ by one. The noise of the least one is enough for all.
    least = min(costs, key=lambda part: part.money)
    radius = full_radius(space.extent, cost)
    return costs, radius, step_laws(least, unit, radius, space.d)


def most_noise(space: Space, unit: Unit, cost: CentralMeasure) -> Law:
    """The noise on counts of refining steps if their number and radius are the largest."""
    _, for_steps = share(cost, [PARTITION_SHARE, STEPS_SHARE])
    least = min(share(for_steps, [Fraction(1)] * MOST_STEPS), key=lambda part: part.money)
    _, law = step_laws(least, unit, longest_radius(space, cost), space.d)
    return law


def longest_radius(space: Space, cost: CentralMeasure) -> int:
    """How far apart two rows can be, and so how far a row can be from a centre."""
    return 2 * full_radius(space.extent, cost)
