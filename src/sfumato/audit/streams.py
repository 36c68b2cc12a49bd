"""Counter mechanisms as an audit runs them: each row comes at a step.

The exact audit needs published numbers in the order in which their noise is drawn. A tree draws the
noise of later steps together with that of earlier ones, so its outputs are put into that order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from sfumato.audit.runs import Mechanism, Published, Rows
from sfumato.questions.counters.mechanism import CounterMechanism
from sfumato.questions.counters.tree import ElderTree
from sfumato.random.bits import Bits

S = TypeVar("S")


def of_machine(counter: CounterMechanism[S], steps: int) -> Mechanism:
    """The code that publishes the steps of a counter mechanism of one category.

    The first column of a row is its step, from 0 on. The exact audit applies if every draw has an
    output of its own: always for Gaussian mechanisms, and for a tree whose nodes lie at steps up
    to the last one.
    """
    tree: object = counter
    order = draw_order(tree, steps) if isinstance(tree, ElderTree) else list(range(steps))

    def run(rows: Rows, noise: Bits) -> Published:
        increments = np.bincount([int(row[0]) for row in rows], minlength=steps).tolist()
        found = outputs(counter, increments, noise)
        return Published(tuple(found[index] for index in order), found)

    return run


def outputs(counter: CounterMechanism[S], increments: Sequence[int], noise: Bits) -> list[int]:
    """What a counter mechanism of one category publishes over a whole stream."""
    state = counter.start()
    found = []
    for increment in increments:
        state, output = counter.step(state, (increment,), noise)
        found.append(output[0])
    return found


def draw_order(tree: ElderTree, steps: int) -> list[int]:
    """The steps, from 0 on, in the order in which the noise at them is drawn.

    >>> from fractions import Fraction
    >>> from sfumato.mechanisms.noise import DiscreteLaplace
    >>> draw_order(ElderTree(4, (3,), DiscreteLaplace(Fraction(1))), 4)
    [0, 2, 1, 3]
    """
    nodes = (node for step in range(1, steps + 1) for node in tree.path(step))
    # A node is drawn when it is first passed; dict.fromkeys keeps the first occurrence.
    return list(dict.fromkeys(node - 1 for node in nodes))
