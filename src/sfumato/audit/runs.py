"""Mechanisms as an audit runs them: rows in, published numbers out, with noise or with a script."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import combinations_with_replacement, permutations, product
from typing import NoReturn, TypeAlias

import numpy as np
import pyarrow as pa

from sfumato.answers.codec import to_bytes
from sfumato.answers.counts import Counts, Needs, ShownKeys
from sfumato.answers.question import AnyQuestion
from sfumato.answers.release import Release
from sfumato.audit.laws import log_mass
from sfumato.basics.numbers import Array
from sfumato.data.packed_counts import RowForm, empty_counts
from sfumato.data.selecting import keys_of_groups
from sfumato.domain.cube import Cube, KeyList
from sfumato.domain.domain import Domain
from sfumato.domain.lattice import KeyAxis, LabelAxis, Lattice, LatticeAxis
from sfumato.errors import InternalError
from sfumato.mechanisms.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    Drawn,
    Law,
    Script,
    Selection,
)
from sfumato.mechanisms.thresholds import KEY, ROWS_OF_KEY, KeyRule
from sfumato.privacy.measures import CentralMeasure
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits

Rows: TypeAlias = tuple[tuple[float, ...], ...]
Pair: TypeAlias = tuple[Rows, Rows]
Draws: TypeAlias = tuple[int, ...]


class NotAdditive(Exception):
    """The exact audit does not apply: numbers do not follow recorded draws one for one."""


class Exhausted(Exception):
    """A closed script is used up.

    Attributes
    ----------
    law, size
        What the mechanism asked for next.
    """

    def __init__(self, law: Drawn | Selection, size: int) -> None:
        super().__init__(law, size)
        self.law = law
        self.size = size


class Scripted(Script):
    """Supplies the integers of a script as noise, then zeros, and records each law asked for.

    A selection is told which edges to choose: each integer says by how many edges one lies above
    the lowest that it can be. So every integer stands for an outcome.

    Parameters
    ----------
    script : tuple of int
    closed : bool
        At the end of the script raise ``Exhausted`` instead of supplying zeros.

    >>> from fractions import Fraction
    >>> from sfumato.mechanisms.noise import DiscreteLaplace
    >>> DiscreteLaplace(Fraction(2)).sample(3, Scripted((5, -1)))
    array([ 5, -1,  0])
    """

    def __init__(self, script: Draws = (), closed: bool = False) -> None:
        self.script = script
        self.closed = closed
        self.laws: list[Drawn | Selection] = []
        self.values: list[int] = []
        self.log_of_choices = 0.0

    def words(self, count: int) -> NoReturn:
        """Refuse raw bits: randomness that no recorded law describes cannot be audited."""
        raise NotAdditive(
            f"{count} words of raw bits were asked for, and no recorded law describes them"
        )

    def draw(self, law: Drawn, size: int) -> Array:
        """The next ``size`` integers of the script: int64 ndarray."""
        ahead = self._ahead(law, size)
        self.laws += [law] * size
        self.values += ahead.tolist()
        return ahead

    def choose(self, selection: Selection) -> Array:
        """The edges that the next integers of the script stand for: int64 ndarray of shape (m,).

        ``log_of_choices`` adds up how likely they are.
        """
        size = selection.size
        apart = np.arange(size) if selection.distinct else np.zeros(size, np.int64)
        top = selection.edges - 1 - int(apart[-1])
        offsets = np.maximum.accumulate(np.clip(self._ahead(selection, size), 0, top))
        chosen = selection.first + offsets + apart
        self.laws += [selection] * size
        self.values += offsets.tolist()
        self.log_of_choices += selection.log_probability(chosen)
        return np.asarray(chosen)

    def _ahead(self, law: Drawn | Selection, size: int) -> Array:
        start = len(self.values)
        ahead = list(self.script[start : start + size])
        if self.closed and len(ahead) < size:
            raise Exhausted(law, size)
        return np.array(ahead + [0] * (size - len(ahead)), dtype=np.int64)

    def noise_laws(self) -> list[Law]:
        """The laws of the values supplied, all of them laws whose probabilities are known here.

        Raises
        ------
        NotAdditive
            If one of them is not.
        """
        found = [law for law in self.laws if isinstance(law, DiscreteLaplace | DiscreteGaussian)]
        if len(found) != len(self.laws):
            raise NotAdditive("a value was asked for whose law is not one of noise on counts")
        return found

    def log_likelihood(self) -> float:
        """The logarithm of the probability of the values supplied."""
        pairs = zip(self.noise_laws(), self.values, strict=True)
        return math.fsum(log_mass(law, value) for law, value in pairs)


@dataclass(frozen=True)
class Published:
    """An output.

    Attributes
    ----------
    numbers : tuple of int
        The noisy numbers, in the order in which their noise was drawn.
    public : object
        All that is published, encodable as JSON.
    shown : tuple of int
        Other numbers that are published, such as where a tree is cut. Samples look at them, too.
    """

    numbers: Draws
    public: object
    shown: Draws = ()

    @cached_property
    def everything(self) -> bytes:
        """All that is published, as bytes."""
        return to_bytes(self.public)


Mechanism: TypeAlias = Callable[[Rows, Bits], Published]


def of_question(
    question: AnyQuestion, domain: Domain, unit: Unit, cost: CentralMeasure
) -> Mechanism:
    """A question's own code from rows to release."""
    needs = question.needs_at(domain, unit, cost)

    def answer(counts: Counts, noise: Bits) -> Release:
        return question.answer(counts, unit, cost, noise)

    if not needs.sums:
        return of_counts(needs.lattice, answer)
    counted = lru_cache(maxsize=1024)(partial(count_needs, needs=needs, domain=domain))
    return lambda rows, noise: published(answer(counted(rows), noise))


class Rescanned:
    """Rows that are counted on each lattice that a question asks for, as a publisher does."""

    def __init__(self, rows: Rows, lattice: Lattice, domain: Domain | None = None) -> None:
        self.lattice = lattice
        self.domain = domain
        self.on = lru_cache(maxsize=16)(partial(count, rows))

    def serves(self, lattice: Lattice) -> bool:
        """True, because there are rows to count."""
        return True


class Selecting:
    """Counts of keys alone, from which an engine selects: it applies the rule to small parts.

    Parameters
    ----------
    cube : Cube
        On a lattice of one axis of keys.
    """

    PART = 2
    """Keys in a part."""

    domain = None

    def __init__(self, cube: Cube) -> None:
        self._cube = cube
        self.lattice = cube.lattice

    def serves(self, lattice: Lattice) -> bool:
        """False, because the engine gives nothing but keys that are shown."""
        return False

    def on(self, lattice: Lattice) -> NoReturn:
        """Refuse true counts."""
        raise InternalError("An audited engine gives nothing but keys that are shown.")

    def select(self, rule: KeyRule, /) -> ShownKeys:
        """Apply the rule by the code that engines use."""
        (keys,) = self._cube.keys.values()
        held = self._cube.coordinates
        assert held is not None
        groups = pa.record_batch(
            {
                KEY: pa.array(keys.take(held[:, 0]), pa.int64()),
                ROWS_OF_KEY: pa.array(self._cube.counts, pa.int64()),
            }
        )
        parts = [groups.slice(start, self.PART) for start in range(0, len(groups), self.PART)]
        shown = keys_of_groups(self.lattice, list(rule.shown_of(parts)))
        assert shown is not None
        return shown


def of_counts(lattice: Lattice, answer: Callable[[Counts, Bits], Release]) -> Mechanism:
    """A question's code from rows to release, counted on a given lattice first."""
    counted = lru_cache(maxsize=1024)(lambda rows: Rescanned(rows, lattice))

    def run(rows: Rows, noise: Bits) -> Published:
        return published(answer(counted(rows), noise))

    return run


def count(rows: Rows, lattice: Lattice) -> Cube:
    """Count rows on a lattice by the code that publishing uses. Keys and labels are integers."""
    array = np.array(rows, dtype=float).reshape(len(rows), len(lattice.axes))
    keys = {
        axis.name: sorted({int(x) for x in array[:, i]})
        for i, axis in enumerate(lattice.axes)
        if isinstance(axis, KeyAxis)
    }
    columns = [_cells(axis, array[:, i].copy(), keys) for i, axis in enumerate(lattice.axes)]
    cube = Cube.of_cells(lattice, np.stack(columns, axis=1))
    return replace(cube, keys={name: KeyList(found) for name, found in keys.items()})


def count_needs(rows: Rows, needs: Needs, domain: Domain) -> Cube:
    """Count rows, and add up their values where that is needed, by the code that publishing uses.

    A row holds a number for each axis of the lattice. Where values are added up, it holds one for
    each axis of the domain, in its order; there are no keys then.
    """
    if not needs.sums:
        return count(rows, needs.lattice)
    array = np.array(rows, dtype=float).reshape(len(rows), len(domain))
    columns = dict(zip(domain, array.T, strict=True))
    cells = {axis: _cells(axis, columns[axis.name].copy(), {}) for axis in needs.columns}
    form = RowForm(needs)
    counts = empty_counts(form.packing, needs.sums)
    counts.add(form.of(cells))
    return counts.cube()


def _cells(axis: LatticeAxis, values: Array, keys: Mapping[str, list[int]]) -> Array:
    match axis:
        case KeyAxis(name=name):
            return np.searchsorted(np.array(keys[name], np.int64), values.astype(np.int64))
        case LabelAxis():
            return axis.lookup(values.tolist())
    return axis.locate(values)


def published(release: Release) -> Published:
    """A release as an output: its numbers in the order of their noise, and all of it."""
    return Published(release.numbers(), release)


def published_counts(counts: Array, **seen: object) -> Published:
    """Counts as an output, with other named things that are published."""
    numbers = tuple(int(x) for x in counts)
    return Published(numbers, {"counts": numbers, **seen})


def neighbours(universe: Rows, unit: Unit, others: int = 2) -> list[Pair]:
    """All ordered pairs of neighbouring data sets over a small universe.

    Each has up to ``others`` rows of other persons, and the rows of one person, who differs. Under
    replace that person may have fewer rows, or none, as when rows with missing values are dropped.

    >>> neighbours(((0.5,),), Unit(), others=0)
    [(((0.5,),), ()), ((), ((0.5,),))]
    """
    background = _bags(universe, others)
    own = _bags(universe, unit.rows_per_person)
    changes: list[Pair] = []
    if unit.neighbours == "replace":
        changes += permutations(own, 2)
    else:
        for rows in own:
            if rows:
                changes += [(rows, ()), ((), rows)]
    return [(rest + one, rest + other) for rest, (one, other) in product(background, changes)]


def _bags(universe: Rows, most: int) -> list[Rows]:
    """All multisets of at most ``most`` rows."""
    sizes = range(most + 1)
    return [rows for size in sizes for rows in combinations_with_replacement(universe, size)]
