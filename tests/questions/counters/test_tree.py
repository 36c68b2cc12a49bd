"""The elder tree: what its noise costs, also when increments are chosen after seeing outputs.

An adversary is a function from the outputs so far to the next increment of two streams. They are
equal but for one person, who joins when the adversary says so. Given all outputs, both streams are
fixed. The loss at an output is therefore a matter of two scripts of noise. They are found by
running the production steps, and believed only when they publish the same numbers again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from questions.counters.adversaries import EPSILON, WAITING, Adversary
from sfumato.audit.runs import Scripted
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.questions.counters.tree import ElderTree, radices_for


@pytest.mark.parametrize(
    ("horizon", "times_smaller"), [(365, 6.0), (2**10, 7.5), (2**14, 7.9), (2**20, 8.0)]
)
def test_elder_trees_beat_the_binary_one(horizon, times_smaller):
    """The largest variance over the horizon; the binary tree adds one draw per digit 1."""
    radices = radices_for(horizon)
    steps = np.arange(1, horizon + 1)
    levels = horizon.bit_length()
    ones = np.zeros(horizon, dtype=int)
    for bit in range(levels):
        ones += steps >> bit & 1
    edges = ElderTree(horizon, radices, DiscreteLaplace(Fraction(1))).edges(steps)
    ratio = ones.max() * levels**2 / (edges.max() * (len(radices) + 1) ** 2)
    assert round(ratio, 1) == times_smaller


@pytest.mark.parametrize("radices", [(), (3,), (3, 5), (7, 3), (3, 3, 3)], ids=str)
def test_paths(radices):
    """Every step has one elder, a block away, and no row depends on more draws than there are
    levels.
    """
    tree = ElderTree(60, radices, DiscreteLaplace(Fraction(1)))
    elder = {}
    for step in range(1, 61):
        path = [0, *tree.path(step)]
        assert path[-1] == step
        assert len(path) - 1 == tree.edges(np.array([step]))[0]
        for before, place in pairwise(path):
            assert elder.setdefault(place, before) == before
            assert abs(place - before) in tree.blocks
    for moment in range(1, 61):
        lies_under = sum(min(ends) < moment <= max(ends) for ends in elder.items())
        assert lies_under <= tree.levels


HIGH = 1
"""An output above it counts as high."""


def adversaries() -> Iterator[Adversary]:
    """Yield every way to wait, with every answer of 0 or 2 rows of others at steps 2 and 3."""
    for second, third in product(product((0, 2), repeat=2), repeat=2):
        plan = {1: second, 2: third}
        for joins in WAITING.values():
            yield Adversary(
                lambda seen, plan=plan: plan[len(seen)][seen[-1]] if len(seen) in plan else 1,
                lambda s, j=joins: int(j(s)),
            )


def play(
    mechanism: Any, adversary: Adversary, side: int, script: tuple[int, ...], steps: int
) -> tuple[tuple[int, ...], list[Any]]:
    """The outputs of one stream under a script of noise, and the laws of its draws."""
    noise = Scripted(script)
    state = mechanism.start()
    found = []
    for _ in range(steps):
        seen = tuple(output > HIGH for output in found)
        state, output = mechanism.step(state, (adversary.next(side, seen),), noise)
        found.append(output[0])
    return tuple(found), noise.laws


def script_for(
    mechanism: Any, adversary: Adversary, side: int, wanted: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Return the script of noise with which one stream publishes these outputs.

    Each draw is set by the output that first depends on it, until nothing changes.
    """
    script = [0] * len(wanted)
    order = dict.fromkeys(
        place - 1 for step in range(1, len(wanted) + 1) for place in mechanism.path(step)
    )
    for _ in range(len(wanted)):
        for draw, place in enumerate(order):
            script[draw] += (
                wanted[place]
                - play(mechanism, adversary, side, tuple(script), len(wanted))[0][place]
            )
    return (
        tuple(script)
        if play(mechanism, adversary, side, tuple(script), len(wanted))[0] == wanted
        else None
    )


def loss_at(mechanism: Any, adversary: Adversary, script: tuple[int, ...]) -> Fraction | float:
    """Return the exact privacy loss at the outputs of one stream under a script of noise."""
    wanted, laws = play(mechanism, adversary, 0, script, len(script))
    assert len(laws) == len(script)
    other = script_for(mechanism, adversary, 1, wanted)
    if other is None:
        return math.inf
    assert (
        play(mechanism, adversary, 1, other, len(script))[1] == laws
    )  # so that normalisers cancel
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
    mechanism: Any, adversary: Adversary, steps: int, values: tuple[int, ...] = (-3, 0, 1, 4)
) -> Fraction | float:
    scripts = list(product(values, repeat=steps))
    assert len({play(mechanism, adversary, 0, script, steps)[0] for script in scripts}) == len(
        scripts
    )  # one script for each output
    return max(loss_at(mechanism, adversary, script) for script in scripts)


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


def test_noise_chosen_by_outputs_is_found() -> None:
    broken = Eased(3, (), DiscreteLaplace(1 / EPSILON))
    patient = Adversary(
        lambda seen: 1, lambda seen: int(WAITING["second after a high first, else third"](seen))
    )
    assert loss_of_tree(tree(3, ()), patient, 3) == EPSILON
    assert loss_of_tree(broken, patient, 3) == 2 * EPSILON


def test_noise_used_again_is_found() -> None:
    adversary = Adversary(lambda seen: 0, lambda seen: int(len(seen) == 2))
    broken = Echoing(3, (), DiscreteLaplace(1 / EPSILON))
    wanted, _ = play(broken, adversary, 0, (1, 0, 0), 3)
    assert script_for(broken, adversary, 1, wanted) is None


def test_increments_that_see_the_state_are_not_covered() -> None:
    """Whoever reads the noise in the state can cancel it.

    One stream then has outputs of its own.
    """

    def third(person: int, script: tuple[int, ...]) -> int:
        mechanism = tree(3)
        noise = Scripted(script)
        state = tree(3).start()
        for increment in (person, 0):
            state, _ = mechanism.step(state, (increment,), noise)
        _, output = mechanism.step(state, (-state.noise[0][0],), noise)
        return int(output[0])

    scripts = list(product((-2, 0, 3), repeat=3))
    assert {third(0, script) for script in scripts} == {0}
    assert {third(1, script) for script in scripts} == {1}
