"""Mechanisms as an audit sees them: rows in, published numbers out, under real noise or under a script."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import combinations_with_replacement, permutations, product
from typing import NoReturn, TypeAlias

import numpy as np

from sfumato.answers.codec import to_bytes
from sfumato.answers.counts import Counts
from sfumato.answers.question import AnyQuestion
from sfumato.answers.release import Release
from sfumato.arrays import Array
from sfumato.audit.laws import log_mass
from sfumato.cube import Cube, KeyList
from sfumato.domain import Domain
from sfumato.lattice import KeyAxis, LabelAxis, Lattice, LatticeAxis
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, Law
from sfumato.mechanisms.scripts import Drawn, Script
from sfumato.privacy.measures import CentralMeasure
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits

Rows: TypeAlias = tuple[tuple[float, ...], ...]
Pair: TypeAlias = tuple[Rows, Rows]
Draws: TypeAlias = tuple[int, ...]


class NotAdditive(Exception):
    """Published numbers do not follow the recorded draws one for one: the exact audit does not apply."""


class Exhausted(Exception):
    """A closed script ran out; ``law`` and ``size`` say what was asked for next."""

    def __init__(self, law: Drawn, size: int) -> None:
        super().__init__(law, size)
        self.law, self.size = law, size


class Scripted(Script):
    """Hands out the integers of a script, then zeros, and records every law that was asked for.

    Parameters
    ----------
    script : tuple of int
    closed : bool
        Raise ``Exhausted`` rather than hand out zeros.

    >>> from fractions import Fraction
    >>> from sfumato.mechanisms.noise import DiscreteLaplace
    >>> DiscreteLaplace(Fraction(2)).sample(3, Scripted((5, -1)))
    array([ 5, -1,  0])
    """

    def __init__(self, script: Draws = (), closed: bool = False) -> None:
        self.script, self.closed = script, closed
        self.laws: list[Drawn] = []
        self.values: list[int] = []

    def words(self, count: int) -> NoReturn:
        """Refuse: randomness that no recorded law describes cannot be audited."""
        raise NotAdditive(
            f"{count} words of raw bits were asked for, and no recorded law describes them"
        )

    def draw(self, law: Drawn, size: int) -> Array:
        """Hand out the next ``size`` integers of the script: int64 ndarray."""
        start = len(self.values)
        ahead = list(self.script[start : start + size])
        if self.closed and len(ahead) < size:
            raise Exhausted(law, size)
        ahead += [0] * (size - len(ahead))
        self.laws += [law] * size
        self.values += ahead
        return np.array(ahead, dtype=np.int64)

    def noise_laws(self) -> list[Law]:
        """The laws of what was handed out, all of them of noise on counts: those whose masses are known here."""
        found = [law for law in self.laws if isinstance(law, DiscreteLaplace | DiscreteGaussian)]
        if len(found) != len(self.laws):
            raise NotAdditive("a value was asked for whose law is not one of noise on counts")
        return found

    def log_likelihood(self) -> float:
        """The logarithm of the probability of what was handed out."""
        return math.fsum(
            log_mass(law, value) for law, value in zip(self.noise_laws(), self.values, strict=True)
        )


@dataclass(frozen=True)
class Published:
    """What everybody sees: the noisy numbers in the order in which they were drawn, and all that is public with them."""

    numbers: Draws
    public: object

    @cached_property
    def everything(self) -> bytes:
        """All of it, to the last byte."""
        return to_bytes(self.public)


Mechanism: TypeAlias = Callable[[Rows, Bits], Published]


def of_question(
    question: AnyQuestion, domain: Domain, unit: Unit, cost: CentralMeasure
) -> Mechanism:
    """The production code from rows to release: the kernel, the cube, the answer."""
    return of_counts(
        question.needs(domain).lattice,
        lambda counts, noise: question.answer(counts, unit, cost, noise),
    )


class Rescanned:
    """Rows that are counted again on every lattice that a question asks for, as a publisher counts its source."""

    def __init__(self, rows: Rows, lattice: Lattice) -> None:
        self.lattice = lattice
        self.on = lru_cache(maxsize=16)(partial(count, rows))

    def serves(self, lattice: Lattice) -> bool:
        """Always: there are rows to count."""
        return True


def of_counts(lattice: Lattice, answer: Callable[[Counts, Bits], Release]) -> Mechanism:
    """The same on a lattice of one's own choice."""
    counted = lru_cache(maxsize=1024)(lambda rows: Rescanned(rows, lattice))

    def run(rows: Rows, noise: Bits) -> Published:
        return published(answer(counted(rows), noise))

    return run


def count(rows: Rows, lattice: Lattice) -> Cube:
    """Count rows on a lattice with the production kernel, keys and labels being whole numbers; again where a question asks for it."""
    array = np.array(rows, dtype=float).reshape(len(rows), len(lattice.axes))
    keys = {
        axis.name: sorted({int(x) for x in array[:, i]})
        for i, axis in enumerate(lattice.axes)
        if isinstance(axis, KeyAxis)
    }
    columns = [_cells(axis, array[:, i].copy(), keys) for i, axis in enumerate(lattice.axes)]
    cube = Cube.of_cells(lattice, np.stack(columns, axis=1))
    return replace(cube, keys={name: KeyList(found) for name, found in keys.items()})


def _cells(axis: LatticeAxis, values: Array, keys: Mapping[str, list[int]]) -> Array:
    match axis:
        case KeyAxis(name=name):
            return np.searchsorted(np.array(keys[name], np.int64), values.astype(np.int64))
        case LabelAxis():
            return axis.lookup(values.tolist())
    return axis.locate(values)


def published(release: Release) -> Published:
    """Take a release apart: its numbers as they were drawn, and all that is public with them."""
    return Published(release.numbers(), release)


def published_counts(counts: Array, **seen: object) -> Published:
    """What a mechanism of a few lines publishes: its counts, and whatever else is named."""
    numbers = tuple(int(x) for x in counts)
    return Published(numbers, {"counts": numbers, **seen})


def neighbours(universe: Rows, unit: Unit, others: int = 2) -> list[Pair]:
    """All ordered pairs of neighbouring data sets: up to ``others`` rows of other persons, and one person's rows.

    Under replace a person may bring fewer rows, or none, as when rows with missing values are dropped.

    >>> neighbours(((0.5,),), Unit(), others=0)
    [(((0.5,),), ()), ((), ((0.5,),))]
    """
    background = _bags(universe, others)
    own = _bags(universe, unit.rows_per_person)
    if unit.neighbours == "replace":
        moves = list(permutations(own, 2))
    else:
        moves = [pair for rows in own if rows for pair in ((rows, ()), ((), rows))]
    return [(rest + one, rest + other) for rest, (one, other) in product(background, moves)]


def _bags(universe: Rows, most: int) -> list[Rows]:
    return [
        rows for size in range(most + 1) for rows in combinations_with_replacement(universe, size)
    ]
