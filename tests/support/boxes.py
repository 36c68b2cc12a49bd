"""A lower bound on the loss of mechanisms that the exact audit refuses, such as a retry loop."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import product

from sfumato.audit.runs import Array, Draws, Mechanism, Rows, Scripted
from sfumato.mechanisms.noise import Drawn


class Exhausted(Exception):
    """A script is used up; the size is that of what the mechanism asked for next."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class Closed(Scripted):
    """A script that ends, where others go on with zeros."""

    def draw(self, law: Drawn, size: int) -> Array:
        if len(self.values) + size > len(self.script):
            raise Exhausted(size)
        return super().draw(law, size)


def lower_bound(mechanism: Mechanism, one: Rows, other: Rows, *, reach: int, draws: int) -> float:
    """Return a lower bound on the largest ln P(output | one) / P(output | other).

    All scripts of up to ``draws`` draws from -reach to reach are run. Their outputs have at least
    the probability found under ``one``. Under ``other`` they have at most the probability found
    plus all that was not enumerated, so the bound holds whatever happens there.
    """
    masses, _ = _enumerate(mechanism, one, reach, draws)
    against, missing = _enumerate(mechanism, other, reach, draws)
    return max(
        math.log(mass / (against.get(output, 0.0) + missing)) for output, mass in masses.items()
    )


def _enumerate(
    mechanism: Mechanism, rows: Rows, reach: int, draws: int
) -> tuple[dict[bytes, float], float]:
    """The probability of each output, as far as scripts in the box lead; and what is missing."""
    masses: defaultdict[bytes, float] = defaultdict(float)
    waiting: list[Draws] = [()]
    while waiting:
        script = waiting.pop()
        noise = Closed(script)
        try:
            output = mechanism(rows, noise)
        except Exhausted as wanted:
            # The mechanism asked for more than the script has: go on with every continuation.
            if len(script) + wanted.size <= draws:
                values = range(-reach, reach + 1)
                waiting += [script + more for more in product(values, repeat=wanted.size)]
        else:
            masses[output.everything] += math.exp(noise.log_likelihood())
    return dict(masses), max(0.0, 1 - math.fsum(masses.values()))
