"""The ways from counted cells to centres. Each spends exactly its cost, and ends in what a release holds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.answers.counts import Counts
from sfumato.arrays import Array
from sfumato.clustering.lloyd import Step, private_step, step_laws, steps_for, whole_reach
from sfumato.clustering.packing import packing
from sfumato.clustering.refine import MOST_STEPS, Rough, course, described, walk
from sfumato.clustering.space import Space, nearest
from sfumato.clustering.weighted import weighted_kmeans
from sfumato.cube import Cube
from sfumato.mechanisms.noise import Law, count_law
from sfumato.partition.draft import Draft
from sfumato.partition.partition import Partition
from sfumato.partition.privtree import PrivTreePartitioner
from sfumato.partition.uniform import MOST_CELLS, UniformPartitioner, eugkm_cells
from sfumato.privacy.allocation import of_units, share
from sfumato.privacy.measures import CentralMeasure
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits

START, STEPS = Fraction(3, 5), Fraction(2, 5)  # shares of the partition, and of the steps
HEAD = 4  # levels of the tree that are split without a handicap
SPLITS = Fraction(3, 4)  # of the partition's share, what decides where it is split


@dataclass(frozen=True)
class Clusters:
    """What a way found: see ``KMeansRelease``; ``centres`` is an int64 ndarray of shape (k, d)."""

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
    """Lay a uniform grid, count it, cluster its cells: Su et al. 2016, EUGkM. A number of rows that is known is not paid for again."""
    names = counts.lattice.names
    aim = (
        None
        if rows is None
        else eugkm_cells(max(rows, 0), count_law(cost, unit).effective_epsilon, d=len(names))[0]
    )
    question = UniformPartitioner(
        names, partitions=None if aim is None else max(1, math.ceil(min(aim, MOST_CELLS)))
    )
    partition, law = question.answer(counts, unit, cost, noise), question.laws(cost, unit)[1]
    space = Space(counts.lattice)
    cells, centres = cluster_cells(space, partition, k)
    groups = nearest(cells, centres)
    weights = np.zeros(k, np.int64)
    np.add.at(weights, groups, partition.counts)
    terms = np.bincount(groups, minlength=k)
    return Clusters(centres, weights, terms, law, partition.guarantee.mechanism, partition)


def cluster_cells(space: Space, partition: Partition, k: int) -> tuple[Array, Array]:
    """Weighted k-means on the middles of cells: the middles and the centres, as whole numbers."""
    rough = Rough.of(space, partition)
    centres = weighted_kmeans(rough.middles, rough.weights, packing(k, space.d))
    return space.whole(rough.middles), space.whole(centres)


def privtree(cube: Cube, k: int, unit: Unit, cost: CentralMeasure, noise: Bits) -> Clusters:
    """Split space where rows are, cluster the cells, and refine the centres by steps of a short reach."""
    space, cube = Space(cube.lattice), occupied(cube)
    first, rest = share(cost, [START, STEPS])
    partition = tree_cells(cube, unit, first, noise)
    rough = Rough.of(space, partition)
    start = weighted_kmeans(rough.middles, rough.weights, packing(k, space.d))
    chosen = course(rough, start, unit, rest, longest_reach(space, cost))
    centres, steps = walk(space.rows(cube), space, space.whole(start), chosen, noise)
    mechanism = f"{partition.guarantee.mechanism}; {described(chosen)}"
    return Clusters(
        centres, steps[-1].counts, np.ones(k, np.int64), chosen.laws[1], mechanism, partition, steps
    )


def occupied(cube: Cube) -> Cube:
    """The same cube by its occupied cells alone, which are looked for once."""
    if cube.coordinates is not None:
        return cube
    flat = np.flatnonzero(cube.counts)
    coordinates = np.stack(np.unravel_index(flat, cube.lattice.shape)).T
    return Cube(cube.lattice, cube.counts[flat].astype(np.int64), coordinates)


def tree_cells(cube: Cube, unit: Unit, cost: CentralMeasure, noise: Bits) -> Partition:
    """PrivTree with most of its cost on where to split: which rows lie together matters more here than how many they are."""
    question, draft = PrivTreePartitioner(cube.lattice.names), Draft(cube, unit, cost, noise)
    tests, root = math.floor(draft.total * SPLITS), np.zeros(1, np.int64)
    law, delta = question.law_at(of_units(draft.cost, tests), unit)
    draft.pay(root, tests)
    depth = question.grow(draft, root, np.array([HEAD]), root, law, delta)
    return draft.release(
        question.name,
        depth,
        question.proof,
        f"{law} in each test whether a box is split, noise on the count of each cell",
    )


def dplloyd(
    cube: Cube, k: int, rows: int, unit: Unit, cost: CentralMeasure, noise: Bits
) -> Clusters:
    """Lloyd's steps from public centres, the whole side of every axis as reach: Su et al. 2016, DPLloyd."""
    space = Space(cube.lattice)
    parts, reach, laws = lloyd_laws(space, k, rows, unit, cost)
    where = space.rows(cube)
    centres, middle = space.whole(packing(k, space.d)), np.zeros((k, space.d), np.int64)
    steps: list[Step] = []
    for _ in parts:
        steps.append(private_step(where, centres, middle, reach, laws, noise))
        centres = steps[-1].moved(space.extent)
    mechanism = f"{laws[0]} on each sum and {laws[1]} on each count, in {len(parts)} steps"
    return Clusters(
        centres, steps[-1].counts, np.ones(k, np.int64), laws[1], mechanism, steps=tuple(steps)
    )


def lloyd_laws(
    space: Space, k: int, rows: int, unit: Unit, cost: CentralMeasure
) -> tuple[list[CentralMeasure], int, tuple[Law, Law]]:
    """What each of DPLloyd's steps costs, how far rows reach, and the noise: the same in every step."""
    number = steps_for(rows, k, space.d, count_law(cost, unit).effective_epsilon)
    parts = share(cost, [Fraction(1)] * number)
    least = min(parts, key=lambda part: part.money)
    reach = whole_reach(space.extent, cost)
    return parts, reach, step_laws(least, unit, reach, space.d)


def most_noise(space: Space, unit: Unit, cost: CentralMeasure) -> Law:
    """The noise on counts of steps where they are as many, and reach as far, as they may."""
    least = min(
        share(share(cost, [START, STEPS])[1], [Fraction(1)] * MOST_STEPS),
        key=lambda part: part.money,
    )
    return step_laws(least, unit, longest_reach(space, cost), space.d)[1]


def longest_reach(space: Space, cost: CentralMeasure) -> int:
    """How far apart two rows can be, and so a row from a centre."""
    return 2 * whole_reach(space.extent, cost)
