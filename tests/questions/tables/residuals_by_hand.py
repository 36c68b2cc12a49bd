"""Residuals of small families as matrices, and all tables of one person, for brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np

from sfumato.questions.tables.gaussian_design import ResidualNoise, log_etas
from sfumato.questions.tables.levels import Levels
from support.residual_slack import slack_of


def flat(*sizes: int) -> tuple[Levels, ...]:
    return tuple(map(Levels.flat, sizes))


FAMILIES = {
    "two tables": (flat(2, 3, 2), ((1, 1, 0), (0, 1, 1))),
    "one table": (flat(3, 2), ((1, 1),)),
    "three axes": (flat(2, 2, 3), ((1, 1, 1),)),
    "an axis of one cell": (flat(1, 3), ((1, 1), (1, 0))),
    "levels": ((Levels(((2,), (2, 2))), Levels.flat(2)), ((2, 0), (1, 1))),
    "uneven levels": ((Levels(((2,), (3, 1))), Levels.flat(2)), ((2, 1),)),
}


def projections(axes: tuple[Levels, ...], noise: ResidualNoise) -> np.ndarray:
    """From the cells of all axes to the residual of a table, as far as it is counted on."""
    found = np.ones((1, 1))
    for axis, level, along in zip(axes, noise.margin, noise.along, strict=True):
        sums = axis.summed(np.eye(axis.cells(axis.depth)), 0, axis.depth, level)
        found = np.kron(found, axis.centred(sums, 0, level) if along else sums)
    return found


def tables_of_one_person(cells: int, rows: int) -> list[np.ndarray]:
    found = []
    for size in range(rows + 1):
        chosen = itertools.combinations_with_replacement(range(cells), size)
        found += [np.bincount(np.array(each, int), minlength=cells) for each in chosen]
    return found


def slack_spent(axes: tuple[Levels, ...], design: tuple) -> float:
    """H."""
    found = []
    for noise in design:
        terms = log_etas(axes, noise.margin, float(noise.sigma_squared))
        used = [term for term, along in zip(terms, noise.along, strict=True) if along]
        found.append(slack_of(math.fsum(used)))
    return math.fsum(found)
