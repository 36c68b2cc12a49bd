"""Mechanisms as an audit runs them: rows in, published numbers out, with noise or with a script.

*Probabilities of noise* (``log_mass``), computed from its parameter as the papers state them. No
method of the law that is audited is used, so that a mistake there cannot hide here.

*Counter mechanisms* (``of_machine``): each row comes at a step.

The exact audit needs published numbers in the order in which their noise is drawn. A tree draws the
noise of later steps together with that of earlier ones, so its outputs are put into that order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import combinations_with_replacement, permutations, product
from typing import NoReturn, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from sfumato.answers import AnyQuestion, Counts, Needs, Release, ShownKeys
from sfumato.basics import Array, to_bytes
from sfumato.data.key_selection import keys_of_groups
from sfumato.data.packed_counts import RowForm, empty_counts
from sfumato.domain import Cube, Domain, KeyAxis, KeyList, LabelAxis, Lattice, LatticeAxis
from sfumato.errors import InternalError, UsageError
from sfumato.mechanisms import (
    KEY,
    ROWS_OF_KEY,
    CountLaw,
    DiscreteGaussian,
    DiscreteLaplace,
    Drawn,
    KeyRule,
    Law,
    Script,
    Selection,
    TruncatedGeometric,
    TruncatedLaplace,
)
from sfumato.privacy import CentralMeasure, Unit
from sfumato.questions.counters.mechanism import CounterMechanism
from sfumato.questions.counters.tree import ElderTree
from sfumato.random.bits import Bits

# --- probabilities of noise -----------------------------------------------------------------------


def log_weight(law: CountLaw) -> Callable[[Array], Array]:
    """Return the logarithm of the unnormalised probability, for an array of integers."""
    match law:
        case DiscreteLaplace(scale=scale):
            return lambda x: -np.abs(x) / float(scale)
        case DiscreteGaussian(sigma_squared=sigma_squared):
            return lambda x: -np.square(x, dtype=float) / (2 * float(sigma_squared))
        case TruncatedLaplace(scale=scale, bound=bound):
            return lambda x: np.where(np.abs(x) <= bound, -np.abs(x) / float(scale), -np.inf)


def support(law: CountLaw, reach: float = 60) -> Array:
    """Return the integers that carry all but about exp(-reach) of the probability, in order."""
    match law:
        case DiscreteLaplace(scale=scale):
            top = math.ceil(float(scale) * reach) + 2
        case DiscreteGaussian(sigma_squared=sigma_squared):
            top = math.ceil(math.sqrt(2 * float(sigma_squared) * reach)) + 2
        case TruncatedLaplace(bound=bound):
            top = bound
    return np.arange(-top, top + 1)


def masses(law: CountLaw, values: Array) -> Array:
    """Return probabilities of integers: float64 ndarray of the shape of ``values``."""
    return np.exp(log_weight(law)(values) - _log_normaliser(law))


# A sigma^2 from which on a discrete Gaussian equals the continuous one to the last bit.
#
# They differ by terms of exp(-2 pi^2 sigma^2), which underflow.
SMOOTH = 10**8


@lru_cache(maxsize=4096)
def log_mass(law: Law, value: int) -> float:
    """Return the logarithm of the probability of one integer."""
    if isinstance(law, DiscreteLaplace):
        # In closed form: ln tanh(1 / 2b) - |x| / b with scale b.
        scale = float(law.scale)
        return math.log(math.tanh(1 / (2 * scale))) - abs(value) / scale
    return float(log_weight(law)(np.array(value))) - _log_normaliser(law)


@lru_cache(maxsize=4096)
def log_at_least(law: Law, value: int) -> float:
    """Return the logarithm of P(Z >= value)."""
    if isinstance(law, DiscreteLaplace):
        # With q = exp(-1 / scale): q^k / (1 + q) for k >= 1; below, what is left of 1.
        inverse = 1 / float(law.scale)
        log_total = math.log1p(math.exp(-inverse))
        if value > 0:
            return -value * inverse - log_total
        return math.log1p(-math.exp(-(1 - value) * inverse - log_total))
    values = support(law)
    above = values >= value
    if not above.any():
        return -math.inf
    return log_sum(log_weight(law)(values[above])) - _log_normaliser(law)


@lru_cache(maxsize=4096)
def renyi(law: Law, shift: int, alpha: float) -> float:
    """Return the Renyi divergence of order alpha between a law and itself shifted by an integer."""
    if isinstance(law, DiscreteGaussian) and law.sigma_squared > SMOOTH:
        # Canonne, Kamath, Steinke 2020, Prop. 5, with equality.
        return alpha * shift**2 / (2 * float(law.sigma_squared))
    # The sum needs values far out: its terms fall off only at about alpha * shift.
    values = support(law, 200 * alpha)
    weight = log_weight(law)
    terms = alpha * weight(values) + (1 - alpha) * weight(values - shift)
    return (log_sum(terms) - _log_normaliser(law)) / (alpha - 1)


@lru_cache(maxsize=64)
def key_masses(law: object) -> tuple[Array, Array]:
    """Return the noise on the count of a key that shows it as often as (epsilon, delta) allow.

    Returns
    -------
    values : int64 ndarray
        Rising.
    probabilities : float64 ndarray
        The steps of pi(0), pi(1), ..., by the recursion of Desfontaines et al. 2022, Def. 2 and
        Thm 1.
    """
    if not isinstance(law, TruncatedGeometric):
        raise UsageError(
            f"the probabilities of {type(law).__name__}",
            "the audit knows no formula for them",
            "Audit it by its outputs",
        )
    growth = math.exp(float(law.epsilon))
    delta = float(law.delta)
    curve = [0.0]
    while curve[-1] < 1:
        last = curve[-1]
        curve.append(min(growth * last + delta, 1 - (1 - last - delta) / growth, 1.0))
    middle = next(n for n, probability in enumerate(curve) if probability >= 0.5)
    # A count is shown from ``middle`` on, so that a key of n rows is shown with probability pi(n).
    steps = np.diff(np.array(curve))
    return middle - np.arange(len(curve) - 1, 0, -1), steps[::-1]


def log_sum(terms: Array) -> float:
    """Return ln of the sum of exp(terms), without overflow."""
    top = float(terms.max())
    if not math.isfinite(top):
        return top
    return top + math.log(float(np.exp(terms - top).sum()))


@lru_cache(maxsize=64)
def _log_normaliser(law: CountLaw) -> float:
    if isinstance(law, DiscreteGaussian) and law.sigma_squared > SMOOTH:
        around = 2 * math.pi * float(law.sigma_squared)
        return math.log(around) / 2
    return log_sum(log_weight(law)(support(law)))


# --- mechanisms -----------------------------------------------------------------------------------

Rows: TypeAlias = tuple[tuple[float, ...], ...]
Pair: TypeAlias = tuple[Rows, Rows]
Draws: TypeAlias = tuple[int, ...]


def with_draw(script: Draws, index: int, draw: int) -> Draws:
    """Return a script of which one draw is another."""
    return (*script[:index], draw, *script[index + 1 :])


class NotAdditive(Exception):
    """The exact audit does not apply: numbers do not follow recorded draws one for one."""


class Scripted(Script):
    """Supplies the integers of a script as noise, then zeros, and records each law asked for.

    A selection is told which edges to choose: each integer says by how many edges one lies above
    the lowest that it can be. So every integer stands for an outcome.

    Parameters
    ----------
    script : tuple of int

    >>> from fractions import Fraction
    >>> from sfumato.mechanisms.noise import DiscreteLaplace
    >>> DiscreteLaplace(Fraction(2)).sample(3, Scripted((5, -1)))
    array([ 5, -1,  0])
    """

    def __init__(self, script: Draws = ()) -> None:
        self.script = script
        self.laws: list[Drawn | Selection] = []
        self.values: list[int] = []
        self.log_of_choices = 0.0

    def words(self, count: int) -> NoReturn:
        """Refuse raw bits: randomness that no recorded law describes cannot be audited."""
        raise NotAdditive(
            f"{count} words of raw bits were asked for, and no recorded law describes them"
        )

    def draw(self, law: Drawn, size: int) -> Array:
        """Return the next ``size`` integers of the script: int64 ndarray."""
        ahead = self._ahead(size)
        self.laws += [law] * size
        self.values += ahead.tolist()
        return ahead

    def choose(self, selection: Selection) -> Array:
        """The edges that the next integers of the script stand for: int64 ndarray of shape (m,).

        ``log_of_choices`` adds up how likely they are.
        """
        size = selection.size
        apart = np.arange(size) * selection.distinct
        top = selection.edges - 1 - int(apart[-1])
        ahead = np.clip(self._ahead(size), 0, top)
        offsets = np.maximum.accumulate(ahead)
        chosen = selection.first + offsets + apart
        self.laws += [selection] * size
        self.values += offsets.tolist()
        self.log_of_choices += selection.log_probability(chosen)
        return chosen

    def _ahead(self, size: int) -> Array:
        start = len(self.values)
        ahead = list(self.script[start : start + size])
        return np.array(ahead + [0] * (size - len(ahead)), dtype=np.int64)

    def noise_laws(self) -> list[Law]:
        """The laws of the values supplied, all of them laws whose probabilities are known here.

        Raises
        ------
        NotAdditive
            If one of them is not.
        """
        known = [law for law in self.laws if isinstance(law, Law)]
        if len(known) != len(self.laws):
            raise NotAdditive("a value was asked for whose law is not one of noise on counts")
        return known

    def log_likelihood(self) -> float:
        """Return the logarithm of the probability of the values supplied."""
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


def run_script(mechanism: Mechanism, rows: Rows, script: Draws) -> tuple[Published, Scripted]:
    """Return the output of a script, and what the mechanism asked for."""
    noise = Scripted(script)
    return mechanism(rows, noise), noise


def of_question(
    question: AnyQuestion, domain: Domain, unit: Unit, cost: CentralMeasure
) -> Mechanism:
    """Return a question's own code from rows to release."""
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
        return keys_of_groups(self.lattice, list(rule.shown_of(parts)))


def of_counts(lattice: Lattice, answer: Callable[[Counts, Bits], Release]) -> Mechanism:
    """Return a question's code from rows to release, counted on a given lattice first."""
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
    return replace(cube, keys={name: KeyList(held) for name, held in keys.items()})


def count_needs(rows: Rows, needs: Needs, domain: Domain) -> Cube:
    """Count rows, and add up their values where that is needed, by the code that publishing uses.

    A row holds a number for each axis of the lattice. Where values are added up, it holds one for
    each axis of the domain, in its order; there are no keys then.
    """
    if not needs.sums:
        return count(rows, needs.lattice)
    values = np.array(rows, dtype=float)
    array = values.reshape(len(rows), len(domain))
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
    """Return a release as an output: its numbers in the order of their noise, and all of it."""
    return Published(release.numbers(), release)


def published_counts(counts: Array, **seen: object) -> Published:
    """Counts as an output, with other named things that are published."""
    numbers = tuple(int(x) for x in counts)
    return Published(numbers, {"counts": numbers, **seen})


def neighbours(universe: Rows, unit: Unit, others: int = 2) -> list[Pair]:
    """Return all ordered pairs of neighbouring data sets over a small universe.

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
    return [
        (rest + own_rows, rest + other) for rest, (own_rows, other) in product(background, changes)
    ]


def _bags(universe: Rows, most: int) -> list[Rows]:
    return [
        rows for size in range(most + 1) for rows in combinations_with_replacement(universe, size)
    ]


# --- counters -------------------------------------------------------------------------------------

S = TypeVar("S")


def of_machine(counter: CounterMechanism[S], steps: int) -> Mechanism:
    """Return the code that publishes the steps of a counter mechanism of one category.

    The first column of a row is its step, from 0 on. The exact audit applies if every draw has an
    output of its own: always for Gaussian mechanisms, and for a tree whose nodes lie at steps up
    to the last one.
    """
    tree: object = counter
    order = draw_order(tree, steps) if isinstance(tree, ElderTree) else list(range(steps))

    def run(rows: Rows, noise: Bits) -> Published:
        increments = np.bincount([int(row[0]) for row in rows], minlength=steps).tolist()
        totals = outputs(counter, increments, noise)
        return Published(tuple(totals[index] for index in order), totals)

    return run


def outputs(counter: CounterMechanism[S], increments: Sequence[int], noise: Bits) -> list[int]:
    """Return what a counter mechanism of one category publishes over a whole stream."""
    state = counter.start()
    totals = []
    for increment in increments:
        state, output = counter.step(state, (increment,), noise)
        totals.append(output[0])
    return totals


def draw_order(tree: ElderTree, steps: int) -> list[int]:
    """Return the steps, from 0 on, in the order in which the noise at them is drawn.

    >>> from fractions import Fraction
    >>> from sfumato.mechanisms.noise import DiscreteLaplace
    >>> draw_order(ElderTree(4, (3,), DiscreteLaplace(Fraction(1))), 4)
    [0, 2, 1, 3]
    """
    nodes = (node for step in range(1, steps + 1) for node in tree.path(step))
    # A node is drawn when it is first passed; dict.fromkeys keeps the first occurrence.
    return list(dict.fromkeys(node - 1 for node in nodes))
