"""Means, sums and variances: noise on the sums of each group."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from sfumato.aggregates import Mean, Sum, Variance
from sfumato.audit.subjects.subject import COSTS, PURE, UNITS, Subject, of

QUESTIONS = (Mean, Sum, Variance)


def subjects() -> Iterator[Subject]:
    """Every subject of this module."""
    for promise in product(UNITS, COSTS):
        yield of("Mean", Mean("x"), *promise)
    yield of("Sum", Sum("x"), UNITS[0], PURE)
    yield of("Sum", Sum("x"), UNITS[3], PURE)
    for promise in product(UNITS[::3], COSTS):
        yield of("Variance", Variance("x"), *promise)
    yield of("Mean, chosen clip", Mean("x", clip="auto"), UNITS[0], PURE)
    yield of("Mean, chosen clip", Mean("x", clip="auto"), UNITS[3], COSTS[-1])
