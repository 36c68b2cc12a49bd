"""Values that remember of which draws they are combinations, so that tests see an exact matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from sfumato.streaming import Aggregator


@cache
def fraction(weight: float) -> Fraction:
    """Weights of the tree are no dyadic numbers.

    They are read back as the fractions that they stand for.
    """
    return Fraction(weight).limit_denominator(2**14)


class Draws:
    """A generator of symbols: the n-th call gives the n-th unknown."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> Linear:
        self.count += 1
        return Linear({self.count - 1: Fraction(1)})


class Linear:
    """A linear combination of draws."""

    def __init__(self, terms: dict[int, Fraction]) -> None:
        self.terms = terms

    def __add__(self, other: Linear) -> Linear:
        terms = dict(self.terms)
        for draw, weight in other.terms.items():
            terms[draw] = terms.get(draw, Fraction(0)) + weight
        return Linear(terms)

    def __mul__(self, weight: float) -> Linear:
        exact = fraction(weight)
        return Linear({draw: exact * own for draw, own in self.terms.items()})

    @property
    def variance(self) -> Fraction:
        return sum((weight**2 for weight in self.terms.values()), Fraction(0))


class Weights:
    """A linear combination that keeps only how often each weight occurs, and which draws it spans.

    Long streams in exact arithmetic.

    Adding checks that both have no draw in common, which makes variances add up.
    """

    def __init__(self, spans: list[tuple[int, int]], counts: dict[Fraction, int]) -> None:
        self.spans = spans
        self.counts = counts

    def __add__(self, other: Weights) -> Weights:
        spans: list[tuple[int, int]] = []
        for low, high in sorted(self.spans + other.spans):
            assert not spans or spans[-1][1] <= low
            if spans and spans[-1][1] == low:
                spans[-1] = (spans[-1][0], high)
            else:
                spans.append((low, high))
        counts = dict(self.counts)
        for weight, count in other.counts.items():
            counts[weight] = counts.get(weight, 0) + count
        return Weights(spans, counts)

    def __mul__(self, weight: float) -> Weights:
        exact = fraction(weight)
        return Weights(self.spans, {exact * own: count for own, count in self.counts.items()})

    @property
    def variance(self) -> Fraction:
        return sum((count * weight**2 for weight, count in self.counts.items()), Fraction(0))


def weights() -> Callable[[], Weights]:
    drawn = iter(range(10**9))

    def draw() -> Weights:
        at = next(drawn)
        return Weights([(at, at + 1)], {Fraction(1): 1})

    return draw


def steps(aggregator: Aggregator, count: int, state: Any = None) -> list[Any]:
    """The noise of the next steps."""
    state = aggregator.init_state() if state is None else state
    found = []
    for _ in range(count):
        noise, state = aggregator.get_cumsum_and_update(state)
        found.append(noise)
    return found


def matrix(noises: Iterable[Linear | float], draws: int) -> np.ndarray:
    """One row a noise, one column a draw: float64."""
    return np.array(
        [[float(noise.terms.get(draw, 0)) for draw in range(draws)] for noise in noises]
    )


class OneHot:
    """A generator of unit vectors, float64 of shape (size,).

    The matrix of an aggregator that works on arrays.
    """

    def __init__(self, size: int, dtype: str = "float64") -> None:
        self.size = size
        self.count = 0
        self.dtype = dtype

    def __call__(self) -> np.ndarray:
        value = np.zeros(self.size, dtype=self.dtype)
        value[self.count % self.size] = 1
        self.count += 1
        return value
