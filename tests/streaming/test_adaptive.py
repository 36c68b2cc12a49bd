"""Increments that are chosen after seeing earlier outputs: what the stream tells about one person stays below the claim.

An adversary is a function from the outputs so far to the next increment of two streams. They are equal but for one person, who joins
when the adversary says so. Given all outputs, both streams are fixed, so that the loss at an output is a matter of two scripts of noise,
found by running the production steps and believed only when they publish the same numbers again.

For pure epsilon nothing is gained by looking. Averages of losses, as rho is made of, are another matter: noise that is moved
from one step to another by an output keeps its average for every fixed stream, and loses it to an adversary who waits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest

from sfumato.audit.laws import log_sum
from sfumato.audit.runs import Scripted
from sfumato.counters.methods import Contribution, buffers, toeplitz
from sfumato.counters.tree import ElderTree
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy.measures import ZCDP
from sfumato.privacy.unit import Unit
from sfumato.streaming import (
    BLTAggregator,
    EfficientTreeAggregator,
    ToeplitzAggregator,
    TreeAggregator,
)

EPSILON, RHO = Fraction(1), Fraction(1, 2)
HIGH = 1
"""An output above it counts as high."""

Seen = tuple[bool, ...]
"""Which outputs so far were high."""


class Adversary(NamedTuple):
    """What comes at each step, and how many rows of the person with it, by what was seen."""

    others: Callable[[Seen], int]
    person: Callable[[Seen], int]

    def next(self, side: int, seen: Seen) -> int:
        return self.others(seen) + side * self.person(seen)


WAITING: dict[str, Callable[[Seen], bool]] = {
    "first": lambda seen: len(seen) == 0,
    "second": lambda seen: len(seen) == 1,
    "third": lambda seen: len(seen) == 2,
    "second after a high first, else third": lambda seen: (
        (len(seen) == 1 and seen[0]) or (len(seen) == 2 and not seen[0])
    ),
    "second after a low first, else third": lambda seen: (
        (len(seen) == 1 and not seen[0]) or (len(seen) == 2 and seen[0])
    ),
    "third after two unlike ones": lambda seen: len(seen) == 2 and seen[0] != seen[1],
}


def adversaries() -> Iterator[Adversary]:
    """Every way to answer the last output by 0 or 2 rows of others at steps 2 and 3, with every way to wait."""
    for second, third in product(product((0, 2), repeat=2), repeat=2):
        plan = {1: second, 2: third}
        for joins in WAITING.values():
            yield Adversary(
                lambda seen, plan=plan: plan[len(seen)][seen[-1]] if len(seen) in plan else 1,
                lambda s, j=joins: int(j(s)),
            )


# --- trees: exact ratios ----------------------------------------------------------------------------------------------------


def play(
    machine: Any, adversary: Adversary, side: int, script: tuple[int, ...], steps: int
) -> tuple[tuple[int, ...], list[Any]]:
    """The outputs of one stream under a script of noise, and the laws of its draws."""
    noise, state, found = Scripted(script), machine.start(), []
    for _ in range(steps):
        seen = tuple(output > HIGH for output in found)
        state, output = machine.step(state, (adversary.next(side, seen),), noise)
        found.append(output[0])
    return tuple(found), noise.laws


def script_for(
    machine: Any, adversary: Adversary, side: int, wanted: tuple[int, ...]
) -> tuple[int, ...] | None:
    """The script that makes one stream publish these outputs: each draw set by the output that first shows it, over and over."""
    script, order = (
        [0] * len(wanted),
        dict.fromkeys(
            place - 1 for step in range(1, len(wanted) + 1) for place in machine.path(step)
        ),
    )
    for _ in range(len(wanted)):
        for draw, place in enumerate(order):
            script[draw] += (
                wanted[place] - play(machine, adversary, side, tuple(script), len(wanted))[0][place]
            )
    return (
        tuple(script)
        if play(machine, adversary, side, tuple(script), len(wanted))[0] == wanted
        else None
    )


def loss_at(machine: Any, adversary: Adversary, script: tuple[int, ...]) -> Fraction | float:
    """abs(ln P(outputs | one) / P(outputs | other)) for the outputs that a script leads one stream to, exactly."""
    wanted, laws = play(machine, adversary, 0, script, len(script))
    assert len(laws) == len(script)
    other = script_for(machine, adversary, 1, wanted)
    if other is None:
        return math.inf
    assert play(machine, adversary, 1, other, len(script))[1] == laws  # so that normalisers cancel
    return abs(
        sum(
            (
                Fraction(abs(b) - abs(a)) / law.scale
                for a, b, law in zip(script, other, laws, strict=True)
            ),
            Fraction(0),
        )
    )


def loss_of_tree(
    machine: Any, adversary: Adversary, steps: int, values: tuple[int, ...] = (-3, 0, 1, 4)
) -> Fraction | float:
    scripts = list(product(values, repeat=steps))
    assert len({play(machine, adversary, 0, script, steps)[0] for script in scripts}) == len(
        scripts
    )  # one script for each output
    return max(loss_at(machine, adversary, script) for script in scripts)


def tree(steps: int, radices: tuple[int, ...] = (3,), rows: int = 1) -> ElderTree:
    return ElderTree(steps, radices, DiscreteLaplace(Fraction(rows * (len(radices) + 1)) / EPSILON))


def test_no_adversary_learns_more_from_a_tree_than_it_claims() -> None:
    losses = [loss_of_tree(tree(3), adversary, 3, (-2, 0, 3)) for adversary in adversaries()]
    assert max(losses) == EPSILON
    assert len(losses) == 96


@pytest.mark.parametrize("radices", [(), (3,)], ids=str)
@pytest.mark.parametrize("name", ["first", "second after a high first, else third"])
def test_four_steps(name: str, radices: tuple[int, ...]) -> None:
    adversary = Adversary(
        lambda seen: 2 * sum(seen) if len(seen) % 2 else 1 - int(seen[-1:] == (True,)),
        lambda s: int(WAITING[name](s)),
    )
    assert loss_of_tree(tree(4, radices), adversary, 4, (-2, 1, 3)) == EPSILON


def test_two_rows_one_of_which_waits() -> None:
    adversary = Adversary(
        lambda seen: 0,
        lambda seen: int(not seen) + int(len(seen) == 1 and seen[0]) + int(seen == (False, True)),
    )
    assert Fraction(3, 4) * EPSILON <= loss_of_tree(tree(3, rows=2), adversary, 3) <= EPSILON
    assert loss_of_tree(tree(3), adversary, 3) > Fraction(3, 2) * EPSILON


class Eased(ElderTree, frozen=True, tag="eased"):
    """Half the noise once an output was high."""

    def step(self, state, increment, noise):  # type: ignore[no-untyped-def]
        eased = state.step and state.totals[0] + state.noise[-1][0] > HIGH
        return ElderTree(
            self.horizon, self.radices, DiscreteLaplace(self.law.scale / (2 if eased else 1))
        ).step(state, increment, noise)


class Echoing(ElderTree, frozen=True, tag="echoing"):
    """The third step has the noise of the first one."""

    def step(self, state, increment, noise):  # type: ignore[no-untyped-def]
        after, output = super().step(state, increment, noise)
        return after, (after.totals[0] + self.first(noise),) if after.step == 3 else output

    def first(self, noise: Scripted) -> int:
        return noise.values[0]


def test_twin_noise_chosen_by_outputs_is_found() -> None:
    twin = Eased(3, (), DiscreteLaplace(1 / EPSILON))
    patient = Adversary(
        lambda seen: 1, lambda seen: int(WAITING["second after a high first, else third"](seen))
    )
    assert loss_of_tree(tree(3, ()), patient, 3) == EPSILON
    assert loss_of_tree(twin, patient, 3) == 2 * EPSILON


def test_twin_noise_used_again_is_found() -> None:
    adversary = Adversary(lambda seen: 0, lambda seen: int(len(seen) == 2))
    twin = Echoing(3, (), DiscreteLaplace(1 / EPSILON))
    wanted, _ = play(twin, adversary, 0, (1, 0, 0), 3)
    assert script_for(twin, adversary, 1, wanted) is None


def test_increments_that_see_the_state_are_not_covered() -> None:
    """Whoever reads the noise of the third step in the state cancels it: outputs of one stream that the other cannot have."""

    def third(person: int, script: tuple[int, ...]) -> int:
        machine, noise, state = tree(3), Scripted(script), tree(3).start()
        for increment in (person, 0):
            state, _ = machine.step(state, (increment,), noise)
        _, output = machine.step(state, (-state.noise[0][0],), noise)
        return int(output[0])

    scripts = list(product((-2, 0, 3), repeat=3))
    assert {third(0, script) for script in scripts} == {0}
    assert {third(1, script) for script in scripts} == {1}


# --- Gaussian noise: divergences --------------------------------------------------------------------------------------------


Laws = Callable[[Seen], DiscreteGaussian]
Means = Callable[[int, Seen], int]


def moment(
    law: DiscreteGaussian, one: int, other: int, high: bool, edge: int, order: float
) -> float:
    """ln of the sum of p(o - one)^order p(o - other)^(1 - order) over outputs o on one side of the edge."""
    variance = float(law.sigma_squared)
    reach = math.ceil(14 * math.sqrt(variance)) + 2
    centre = round(order * one + (1 - order) * other)
    outputs = np.arange(centre - reach, centre + reach + 1)
    outputs = outputs[outputs > edge] if high else outputs[outputs <= edge]
    if not outputs.size:
        return -math.inf
    normaliser = log_sum(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * variance))
    return (
        log_sum(
            -(order * (outputs - one) ** 2.0 + (1 - order) * (outputs - other) ** 2.0)
            / (2 * variance)
        )
        - normaliser
    )


def divergence(laws: Laws, means: Means, steps: int, edge: int, order: float) -> float:
    """Renyi divergence over its order of all outputs: a tree of what was high, whose branches are sums over integers."""

    def log_moment(seen: Seen) -> float:
        if len(seen) == steps:
            return 0.0
        branches = [
            moment(laws(seen), means(0, seen), means(1, seen), high, edge, order)
            + log_moment((*seen, high))
            for high in (0, 1)
        ]
        return log_sum(np.array(branches))

    return log_moment(()) / (order - 1) / order


def means_of(machine: Any, adversary: Adversary) -> Means:
    """What a machine would publish without noise, had this been seen."""

    def mean(side: int, seen: Seen) -> int:
        state, output = machine.start(), (0,)
        for step in range(len(seen) + 1):
            state, output = machine.step(state, (adversary.next(side, seen[:step]),), Scripted())
        return int(output[0])

    return mean


@pytest.mark.parametrize(
    ("make", "precision"), [(toeplitz, 2), (buffers, 9)], ids=["toeplitz", "buffers"]
)
def test_no_adversary_learns_more_from_gaussian_machines_than_they_claim(
    make, precision: int
) -> None:  # type: ignore[no-untyped-def]
    machine = make(3, 1, Contribution(Unit(), (0, 1)), ZCDP(RHO), precision)
    found = {}
    for name, joins in WAITING.items():
        adversary = Adversary(
            lambda seen: 2 * int(seen[-1:] == (True,)), lambda seen, joins=joins: int(joins(seen))
        )
        means = means_of(machine, adversary)
        found[name] = max(
            divergence(lambda seen: machine.law, means, 3, 2**precision, order)
            for order in (2.0, 8.0)
        )
    assert max(found.values()) <= RHO * (1 + 1e-9)
    assert max(found.values()) == found["first"] > 0.97 * RHO


def test_twin_noise_moved_between_steps_by_an_output_is_found_by_waiting_only() -> None:
    """Charged by what every fixed stream loses; who waits for the step with less noise learns a third more."""
    order, even, less, more = (
        4.0,
        DiscreteGaussian(Fraction(30)),
        DiscreteGaussian(Fraction(5)),
        DiscreteGaussian(Fraction(60)),
    )

    def laws(seen: Seen) -> DiscreteGaussian:
        return even if not seen else less if seen[0] == (len(seen) == 1) else more

    def loss(name: str) -> float:
        return divergence(laws, lambda side, seen: side * WAITING[name](seen), 3, 0, order)

    claim = max(map(loss, ("first", "second", "third")))
    assert loss("second after a low first, else third") < claim
    assert loss("second after a high first, else third") > 1.33 * claim
    fixed = {
        name: divergence(
            lambda _: less, lambda side, seen, n=name: side * WAITING[n](seen), 3, 0, order
        )
        for name in WAITING
    }
    assert (
        max(fixed.values()) <= 1 / (2 * 5) + 1e-9
    )  # the same laws, whatever was seen: nothing is gained


# --- noise for floats: who looks at what, and when --------------------------------------------------------------------------


STEPS = 13


class Counted:
    """Unit vectors, and how many were asked for."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> np.ndarray:
        self.count += 1
        return np.eye(1, 64, self.count - 1).ravel()


def walked(aggregator: Any, drawn: Counted) -> np.ndarray:
    """The matrix of an aggregator, each row only as far as values had been drawn when its step was asked for."""
    state, rows = aggregator.init_state(), []
    for _ in range(STEPS):
        before = drawn.count
        noise, state = aggregator.get_cumsum_and_update(state)
        assert not noise[before:].any()
        rows.append(noise)
    return np.array(rows)


@pytest.mark.parametrize("kind", [TreeAggregator, EfficientTreeAggregator])
def test_noisy_nodes_hold_past_steps_only(kind: type[TreeAggregator]) -> None:
    """total + noise is a function of node sums plus fresh noise, in the order in which the nodes are completed."""
    drawn = Counted()
    applied, nodes = walked(kind(drawn), drawn), []
    for leaf in range(STEPS):
        completed = [level for level in range(4) if (leaf + 1) % (1 << level) == 0]
        nodes += [
            (leaf + 1 - (1 << level), leaf + 1)
            for level in (completed if kind is EfficientTreeAggregator else completed[-1:])
        ]
    sums = np.array(
        [[start <= step < stop for step in range(STEPS)] for start, stop in nodes], dtype=float
    )
    np.testing.assert_allclose(
        applied[:, : len(nodes)] @ sums, np.tril(np.ones((STEPS, STEPS))), atol=1e-12
    )


@pytest.mark.parametrize("kind", [ToeplitzAggregator, BLTAggregator])
def test_strategies_are_lower_triangular(kind) -> None:  # type: ignore[no-untyped-def]
    drawn = Counted()
    applied = walked(kind(drawn, STEPS), drawn)[:, :STEPS]
    strategy = np.linalg.solve(applied, np.tril(np.ones((STEPS, STEPS))))
    assert (np.diag(applied) == 1).all()
    np.testing.assert_allclose(strategy, np.tril(strategy), atol=1e-12)
