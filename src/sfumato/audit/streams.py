"""Counters as an audit sees them: each row comes at a step, and what is published is in the order in which its noise is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from sfumato.audit.runs import Mechanism, Published, Rows
from sfumato.counters.mechanism import CounterMechanism
from sfumato.counters.tree import ElderTree
from sfumato.random.bits import Bits

S = TypeVar("S")


def of_machine(machine: CounterMechanism[S], steps: int) -> Mechanism:
    """The production steps of a machine of one category, over rows of which the first column is the step, from 0 on.

    The exact audit applies where every draw has its own output: always for Gaussian machines; for a tree, where no place beyond
    the last step is passed through.
    """
    tree: object = machine
    order = draw_order(tree, steps) if isinstance(tree, ElderTree) else list(range(steps))

    def run(rows: Rows, noise: Bits) -> Published:
        found = outputs(
            machine, np.bincount([int(row[0]) for row in rows], minlength=steps).tolist(), noise
        )
        return Published(tuple(found[place] for place in order), found)

    return run


def outputs(machine: CounterMechanism[S], increments: Sequence[int], noise: Bits) -> list[int]:
    """What a machine of one category publishes over a whole stream."""
    state = machine.start()
    found = []
    for increment in increments:
        state, output = machine.step(state, (increment,), noise)
        found.append(output[0])
    return found


def draw_order(tree: ElderTree, steps: int) -> list[int]:
    """Steps, from 0 on, in the order in which the noise at them is drawn.

    >>> from fractions import Fraction
    >>> from sfumato.mechanisms.noise import DiscreteLaplace
    >>> draw_order(ElderTree(4, (3,), DiscreteLaplace(Fraction(1))), 4)
    [0, 2, 1, 3]
    """
    places = dict.fromkeys(place - 1 for step in range(1, steps + 1) for place in tree.path(step))
    return list(places)
