"""Exact (epsilon, delta) audits of the selection of keys, and broken selections.

A selection is run by the production code under a script: chosen integers stand for the noise of
each key that occurs, and their probabilities come from the law's formula as the paper has it,
computed here. All noise values of the law are enumerated, so the output law is whole up to what
``REACH`` cuts off, which is counted against the mechanism.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np

from sfumato.audit.runs import Scripted
from sfumato.mechanisms.gaussian_keys import ThresholdGaussian
from sfumato.mechanisms.thresholds import KeyLaw, TruncatedGeometric, released

Counts = tuple[int, ...]
Output = int | None
Select = Callable[[np.ndarray, Any, Any], tuple[np.ndarray, np.ndarray]]
GAUSSIAN_REACH = 12.0  # sigmas beyond which discrete Gaussian noise is cut off
REACH = 40.0  # scales beyond which discrete Laplace noise is cut off


def curve(epsilon: float, delta: float) -> list[float]:
    """pi(0), pi(1), ... by the recursion of Desfontaines et al., up to 1."""
    pi = [0.0]
    while pi[-1] < 1:
        pi.append(
            min(
                math.exp(epsilon) * pi[-1] + delta,
                1 - math.exp(-epsilon) * (1 - pi[-1] - delta),
                1.0,
            )
        )
    return pi


def masses(law: KeyLaw) -> dict[int, float]:
    """Probabilities of the noise, from its formula."""
    if isinstance(law, TruncatedGeometric):
        pi = curve(float(law.epsilon), float(law.delta))
        middle = next(n for n, p in enumerate(pi) if p >= 0.5)
        return {middle - n: pi[n] - pi[n - 1] for n in range(1, len(pi))}
    if isinstance(law, ThresholdGaussian):
        squared = float(law.sigma_squared)
        top = math.ceil(GAUSSIAN_REACH * math.sqrt(squared))
        heights = {x: math.exp(-(x**2) / (2 * squared)) for x in range(-top, top + 1)}
        total = math.fsum(heights.values())
        return {x: height / total for x, height in heights.items()}
    b = float(law.scale)
    top = math.ceil(REACH * b)
    return {x: math.tanh(1 / (2 * b)) * math.exp(-abs(x) / b) for x in range(-top, top + 1)}


def outputs(count: int, law: KeyLaw, select: Select = released) -> dict[Output, float]:
    """The law of what is published of one key that so many rows have.

    It is nothing, or the noisy count.
    """
    found: defaultdict[Output, float] = defaultdict(float)
    for value, mass in masses(law).items() if count else ((0, 1.0),):
        places, values = select(np.array([count]), law, Scripted((value,)))
        found[values.tolist()[0] if len(places) else None] += mass
    return dict(found)


def excess(one: dict[Output, float], other: dict[Output, float], epsilon: float) -> float:
    """The least delta with P(one) <= e^epsilon P(other) + delta for all sets of outputs."""
    return math.fsum(
        max(0.0, mass - math.exp(epsilon) * other.get(output, 0.0)) for output, mass in one.items()
    )


def _losses(one: dict[Output, float], other: dict[Output, float]) -> list[tuple[float, float]]:
    """Probabilities of one key's outputs under both laws.

    Outputs of equal likelihood ratio are taken together, which loses nothing.
    """
    grouped: defaultdict[float, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for output in one.keys() | other.keys():
        a, b = one.get(output, 0.0), other.get(output, 0.0)
        ratio = math.inf if not b else -math.inf if not a else round(math.log(a / b), 9)
        grouped[ratio][0] += a
        grouped[ratio][1] += b
    return [(a, b) for a, b in grouped.values()]


def neighbours(rows: int, relation: str, keys: int, most: int) -> Iterator[tuple[Counts, Counts]]:
    """All pairs of counts that one person's rows tell apart.

    They stand on top of up to ``most`` rows of others per key, in every way.
    """
    own = [
        placed
        for size in range(rows + 1)
        for placed in combinations_with_replacement(range(keys), size)
    ]
    moves = list(product(own, own)) if relation == "replace" else [(placed, ()) for placed in own]
    for others in product(range(most + 1), repeat=keys):
        for one, other in moves:
            if one != other:
                yield tuple(_plus(others, one)), tuple(_plus(others, other))


def _plus(others: Counts, placed: tuple[int, ...]) -> Counts:
    return tuple(count + placed.count(key) for key, count in enumerate(others))


def worst(
    law: KeyLaw, pairs: Iterator[tuple[Counts, Counts]], epsilon: float, select: Select = released
) -> float:
    """The largest delta that is truly spent at this epsilon, both ways.

    Keys draw their noise independently.
    """
    each = lru_cache(lambda count: outputs(count, law, select))
    losses = lru_cache(lambda a, b: _losses(each(a), each(b)))

    def spent(one: Counts, other: Counts) -> float:
        moved = [losses(a, b) for a, b in zip(one, other, strict=True) if a != b]
        found = (
            (math.prod(a for a, _ in parts), math.prod(b for _, b in parts))
            for parts in product(*moved)
        )
        return math.fsum(max(0.0, a - math.exp(epsilon) * b) for a, b in found)

    return max(max(spent(a, b), spent(b, a)) for a, b in pairs)


# --- selections that are known to be broken -------------------------------------------------------


def shows_empty_keys(counts: np.ndarray, law: KeyLaw, noise: Any) -> tuple[np.ndarray, np.ndarray]:
    """Keys whose count is one are shown for sure: somebody must have them."""
    places = np.flatnonzero(counts > 0)
    noisy = counts[places] + law.sample(len(places), noise)
    shown = (noisy >= law.threshold) | (counts[places] == 1)
    return places[shown], noisy[shown]


def forgets_the_threshold_of_equality(
    counts: np.ndarray, law: KeyLaw, noise: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Off by one: a key is shown from one below the threshold on."""
    places = np.flatnonzero(counts > 0)
    noisy = counts[places] + law.sample(len(places), noise)
    shown = noisy >= law.threshold - 1
    return places[shown], noisy[shown]


def continuous_threshold(epsilon: float, delta: float) -> int:
    """The textbook's threshold for continuous noise, used with discrete noise.

    It is 1 + ln(1 / (2 delta)) / epsilon.
    """
    return math.ceil(1 + math.log(1 / (2 * delta)) / epsilon)
