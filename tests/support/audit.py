"""How much one person can change what is published: exact likelihood ratios, found by running the production code.

Nothing about a mechanism is derived again here. It is run with *scripted noise*: the exact samplers are replaced by a script
that hands out chosen integers and records the law each was asked from. What a mechanism publishes is then a deterministic
function of rows and script, and

    P(output | rows) = the product of the recorded probabilities of the script that leads from those rows to that output.

For a neighbour that script is searched for, and believed only when the neighbour, run with it, publishes *the same bytes*: so
bounds, edges or cells that follow the data show as a likelihood of nought. That there is one script only is what
``check_additive`` establishes: each published number moves one for one with its own draw, and leaves earlier numbers alone.

Which outputs to look at. For Laplace noise on additive numbers |o - f'| - |o - f| is largest at o = f, by the triangle
inequality, in every coordinate at once: the output of the all-zero script attains the supremum. Where the first draw decides
what comes next (the number of rows, which lays a grid) its values are enumerated, and the draws after it are zero.
Mechanisms that are not additive (an unpaid retry loop) are refused; ``lower_bound`` enumerates all their scripts in a box.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, permutations, product
from typing import Any, Literal, TypeAlias
from unittest import mock

import msgspec
import numpy as np

from sfumato.cube import Cube
from sfumato.domain import Domain, Lattice
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, Law
from sfumato.privacy.measures import CentralMeasure
from sfumato.privacy.unit import Unit
from sfumato.random import discrete
from sfumato.release import to_bytes
from support.statistics import log_weight, masses, support

Rows: TypeAlias = tuple[tuple[float, ...], ...]
Script: TypeAlias = tuple[int, ...]
FAR, CHECKED = 1000, 8


class NotAdditive(AssertionError):
    """Published numbers do not follow the recorded draws one for one: the exact audit does not apply."""


class Exhausted(Exception):
    """A closed script ran out; ``law`` and ``size`` say what was asked for next."""

    def __init__(self, law: Law, size: int) -> None:
        super().__init__(law, size)
        self.law, self.size = law, size


# --- scripted noise ---------------------------------------------------------------------------------------------------


@dataclass
class Scripted:
    """Stands where bits stand: hands out chosen integers as noise, then zeros, and records every law that was asked for.

    ``closed``: raise ``Exhausted`` rather than hand out zeros.
    """

    script: Script = ()
    closed: bool = False
    laws: list[Law] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    private: bool = True  # the release must print what it prints in production

    def words(self, count: int) -> np.ndarray:
        """Refuse: randomness that no recorded law describes cannot be audited."""
        raise AssertionError(f"{count} words of raw bits were asked for: the audit knows the laplace and gaussian samplers only")

    def draw(self, law: Law, size: int) -> np.ndarray:
        """Hand out the next ``size`` integers of the script."""
        start = len(self.values)
        ahead = list(self.script[start : start + size])
        if self.closed and len(ahead) < size:
            raise Exhausted(law, size)
        ahead += [0] * (size - len(ahead))
        self.laws += [law] * size
        self.values += ahead
        return np.array(ahead, dtype=np.int64)

    def log_likelihood(self) -> float:
        """The logarithm of the probability of what was handed out."""
        return math.fsum(log_mass(law, value) for law, value in zip(self.laws, self.values, strict=True))


@contextmanager
def recorded() -> Iterator[None]:
    """Replace the exact samplers by ones that take their values from a ``Scripted``, for all production code."""
    laplace = lambda scale, size, bits: bits.draw(DiscreteLaplace(Fraction(scale)), size)  # noqa: E731
    gaussian = lambda sigma_squared, size, bits: bits.draw(DiscreteGaussian(Fraction(sigma_squared)), size)  # noqa: E731
    with mock.patch.object(discrete, "laplace", laplace), mock.patch.object(discrete, "gaussian", gaussian):
        yield


@lru_cache(maxsize=4096)
def log_mass(law: Law, value: int) -> float:
    """The logarithm of the probability of an integer under a law, as the papers state it."""
    if isinstance(law, DiscreteLaplace):
        return math.log(math.tanh(1 / (2 * float(law.scale)))) - abs(value) / float(law.scale)
    return float(log_weight(law)(np.array(value))) - _log_normaliser(law)


@lru_cache(maxsize=64)
def _log_normaliser(law: Law) -> float:
    return math.log(float(np.exp(log_weight(law)(support(law))).sum()))


# --- mechanisms -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Published:
    """What everybody sees: the noisy numbers in the order in which they were drawn, and all of the release as bytes."""

    numbers: tuple[int, ...]
    everything: bytes


Mechanism: TypeAlias = Callable[[Rows, Any], Published]


def of_question(question: Any, domain: Domain, unit: Unit, cost: CentralMeasure) -> Mechanism:
    """The production code from rows to release: the kernel, the cube, the answer."""
    lattice = question.needs(domain)

    def run(rows: Rows, noise: Any) -> Published:
        return published(question.answer(count(rows, lattice), unit, cost, noise))

    return run


def count(rows: Rows, lattice: Lattice) -> Cube:
    """Count rows on a lattice with the production kernel; the cube counts them again where a question asks for it."""
    array = np.array(rows, dtype=float).reshape(len(rows), len(lattice.axes))
    cells = [axis.locate(np.ascontiguousarray(array[:, i])) for i, axis in enumerate(lattice.axes)]  # type: ignore[union-attr]
    cube = Cube.of_cells(lattice, np.stack(cells, axis=1))
    return Cube(cube.lattice, cube.counts, cube.coordinates, lambda finer: count(rows, finer))


def published(release: Any) -> Published:
    """Take a release apart: a noisy number of rows, where there is one, was drawn before the counts."""
    first = [] if getattr(release, "rows", None) is None else [release.rows]
    return Published((*first, *release.counts.tolist()), to_bytes(release))


def published_counts(counts: np.ndarray, **seen: Any) -> Published:
    """What a mechanism of a few lines publishes: its counts, and whatever else is named."""
    numbers = tuple(int(x) for x in counts)
    return Published(numbers, msgspec.json.encode({"counts": counts.tolist(), **seen}))


# --- neighbours -------------------------------------------------------------------------------------------------------


def neighbours(universe: Rows, unit: Unit, others: int = 2) -> list[tuple[Rows, Rows]]:
    """All ordered pairs of neighbouring data sets: up to ``others`` rows of other persons, and one person's rows.

    Under replace a person may bring fewer rows, or none, as when rows with missing values are dropped.
    """
    r = unit.rows_per_person
    background = [rows for size in range(others + 1) for rows in combinations_with_replacement(universe, size)]
    own = [rows for size in range(r + 1) for rows in combinations_with_replacement(universe, size)]
    if unit.neighbours == "replace":
        moves = list(permutations(own, 2))
    else:
        moves = [pair for rows in own if rows for pair in ((rows, ()), ((), rows))]
    return [(rest + one, rest + other) for rest, (one, other) in product(background, moves)]


# --- the exact audit --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Loss:
    """The largest log-likelihood ratio found, and where."""

    epsilon: float
    one: Rows = ()
    other: Rows = ()
    output: tuple[int, ...] = ()


def audit(mechanism: Mechanism, pairs: Iterable[tuple[Rows, Rows]], first_draws: Sequence[int] = (0,)) -> Loss:
    """The largest ln P(output | one) / P(output | other) over pairs and over the outputs described at the top.

    Raises
    ------
    NotAdditive
        If the mechanism's numbers do not follow its draws one for one, or it draws randomness that is not recorded.
    """
    pairs = list(pairs)
    run = _Runner(mechanism)
    worst = Loss(0.0)
    with recorded():
        for rows in {rows for pair in pairs for rows in pair}:
            check_additive(run, rows, first_draws)
        for (one, other), first in product(pairs, first_draws):
            found, noise = run(one, (first,))
            script = run.solve(other, found)
            loss = math.inf if script is None else noise.log_likelihood() - run(other, script)[1].log_likelihood()
            if loss > worst.epsilon:
                worst = Loss(loss, one, other, found.numbers)
    return worst


def empirical_epsilon(
    question: Any,
    domain: Domain,
    unit: Unit,
    cost: CentralMeasure,
    *,
    universe: Rows,
    others: int = 2,
    first_draws: Sequence[int] = (0,),
) -> float:
    """What a question truly spends on small data: the largest log-likelihood ratio over all neighbours and outputs."""
    return audit(of_question(question, domain, unit, cost), neighbours(universe, unit, others), first_draws).epsilon


class _Runner:
    """Runs a mechanism under scripts, remembers the outcomes, and finds the script that leads to an output."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self._known: dict[tuple[Rows, Script], tuple[Published, Scripted]] = {}

    def fresh(self, rows: Rows, script: Script) -> tuple[Published, Scripted]:
        noise = Scripted(script)
        return self.mechanism(rows, noise), noise

    def __call__(self, rows: Rows, script: Script) -> tuple[Published, Scripted]:
        key = (tuple(sorted(rows, key=repr)), script)
        if key not in self._known:
            self._known[key] = self.fresh(rows, script)
        return self._known[key]

    def solve(self, rows: Rows, target: Published) -> Script | None:
        """The script under which these rows publish ``target`` to the last byte, or None."""
        script = (0,) * len(target.numbers)
        reached = -1
        while True:
            got, _ = self(rows, script)
            if got.everything == target.everything:
                return script
            off = [i for i, (a, b) in enumerate(zip(got.numbers, target.numbers, strict=False)) if a != b]
            if not off or off[0] <= reached:
                return None
            reached = off[0]
            moved = list(script)
            for i in off:
                moved[i] += target.numbers[i] - got.numbers[i]
            script = tuple(moved)


def check_additive(run: _Runner, rows: Rows, first_draws: Sequence[int]) -> None:
    """Check that a script and an output determine each other: see the top of this file.

    On scripts that reach into every corner: all noise far below, all far above, and mixed. Data-dependent loops, clipping and
    rounding show at one of them. Beyond its first ``CHECKED`` numbers a release is taken to go on as it began.
    """
    rng = np.random.default_rng(len(rows))
    mixed = [(first, *(int(x) for x in rng.integers(-9, 10, CHECKED))) for first in (first_draws[0], first_draws[-1])]
    for base in (*mixed, (-FAR,) * CHECKED, (FAR,) * CHECKED):
        seen, noise = run.fresh(rows, base)
        if seen != run.fresh(rows, base)[0]:
            raise NotAdditive("the same draws led to two outputs: there is randomness that no recorded law describes")
        if len(seen.numbers) != len(noise.values):
            raise NotAdditive(f"{len(noise.values)} draws led to {len(seen.numbers)} numbers")
        for i in range(min(len(seen.numbers), CHECKED)):
            moved = run.fresh(rows, (*noise.values[:i], noise.values[i] + 1, *noise.values[i + 1 :]))[0]
            before, at = seen.numbers[:i], seen.numbers[i]
            if moved.numbers[: i + 1] != (*before, at + 1):
                raise NotAdditive(f"number {i} does not move one for one with its draw")


# --- mechanisms that are not additive -----------------------------------------------------------------------------------


def lower_bound(mechanism: Mechanism, one: Rows, other: Rows, *, reach: int, draws: int) -> float:
    """A lower bound on ln P(output | one) / P(output | other), from all scripts of up to ``draws`` draws within ``reach``.

    What is cut off counts fully for ``other``, so that the bound is valid whatever happens there.
    """
    with recorded():
        law, _ = _explore(mechanism, one, reach, draws)
        against, cut = _explore(mechanism, other, reach, draws)
    return max(math.log(mass / (against.get(output, 0.0) + cut)) for output, mass in law.items())


def _explore(mechanism: Mechanism, rows: Rows, reach: int, draws: int) -> tuple[dict[bytes, float], float]:
    law: defaultdict[bytes, float] = defaultdict(float)
    waiting: list[Script] = [()]
    while waiting:
        script = waiting.pop()
        noise = Scripted(script, closed=True)
        try:
            seen = mechanism(rows, noise)
        except Exhausted as wanted:
            if len(script) + wanted.size <= draws:
                waiting += [script + more for more in product(range(-reach, reach + 1), repeat=wanted.size)]
        else:
            law[seen.everything] += math.exp(noise.log_likelihood())
    return dict(law), max(0.0, 1 - math.fsum(law.values()))


# --- concentrated privacy ---------------------------------------------------------------------------------------------------


def renyi(law: Law, shift: int, alpha: float) -> float:
    """The Renyi divergence of order alpha between a law and itself shifted by an integer."""
    values = support(law, 200 * alpha)
    weight = log_weight(law)
    exponent = alpha * weight(values) + (1 - alpha) * weight(values - shift)
    top = float(exponent.max())
    return (top + math.log(float(np.exp(exponent - top).sum())) - _log_normaliser(law)) / (alpha - 1)


def audit_renyi(
    mechanism: Mechanism,
    pairs: Iterable[tuple[Rows, Rows]],
    alphas: Sequence[float] = (1.01, 1.5, 2, 4, 16, 64),
    first: Literal["decides", "plain"] = "plain",
) -> float:
    """The largest D_alpha(one || other) / alpha over pairs and orders: rho-zCDP promises at most rho.

    ``first="decides"``: the first draw decides what comes next, and its values are enumerated; the divergences of what comes
    next are averaged as the definition has it, not bounded by their maximum.
    """
    pairs, run, worst = list(pairs), _Runner(mechanism), 0.0
    with recorded():
        for rows in {rows for pair in pairs for rows in pair}:
            check_additive(run, rows, (0,))
        for one, other in pairs:
            for alpha in alphas:
                worst = max(worst, _divergence(run, one, other, alpha, first == "decides") / alpha)
    return worst


def _divergence(run: _Runner, one: Rows, other: Rows, alpha: float, decides: bool) -> float:
    if not decides:
        return _after(run, (one, other), alpha, ())
    law = run(one, ())[1].laws[0]
    values = support(law, 40)
    start = run(one, ())[0].numbers[0] - run(other, ())[0].numbers[0]  # how far the first number moves
    log_terms = alpha * np.log(masses(law, values)) + (1 - alpha) * np.array([log_mass(law, int(v) + start) for v in values])
    rest = np.array([_after(run, (one, other), alpha, (int(v),)) for v in values])
    terms = log_terms + (alpha - 1) * rest
    top = float(terms.max())
    return (top + math.log(float(np.exp(terms - top).sum()))) / (alpha - 1)


def _after(run: _Runner, pair: tuple[Rows, Rows], alpha: float, prefix: Script) -> float:
    """The divergence of the draws that follow a prefix: independent, so that it adds up."""
    (one, other), skip = pair, len(prefix)
    found, noise = run(one, prefix)
    script = run.solve(other, found)
    if script is None:
        return math.inf
    moves = zip(noise.laws[skip:], noise.values[skip:], script[skip:], strict=True)
    return math.fsum(_renyi(law, abs(needed - had), alpha) for law, had, needed in moves)


_renyi = lru_cache(maxsize=4096)(renyi)
