"""Sensitivities against the enumeration of all participation patterns on small horizons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, combinations_with_replacement, pairwise, product

import numpy as np
import pytest

from sfumato.errors import UsageError
from sfumato.streaming import (
    BLT,
    coefficients,
    dyadic_coefficients,
    squared_sensitivity,
    squared_tree_sensitivity,
)
from sfumato.streaming.accounting import tree_bound


def patterns(steps: int, participations: int, separation: int) -> Iterator[tuple[int, ...]]:
    choose = combinations if separation else combinations_with_replacement
    for many in range(1, participations + 1):
        for pattern in choose(range(steps), many):
            if all(later - earlier >= separation for earlier, later in pairwise(pattern)):
                yield pattern


def nodes_touched(pattern: tuple[int, ...], steps: int) -> int:
    """The sum of squared counts over the nodes that are complete within ``steps``."""
    heights = range(steps.bit_length())
    return sum(
        count**2
        for height in heights
        for node, count in Counter(step >> height for step in pattern).items()
        if (node + 1) << height <= steps
    )


def strategy(column: np.ndarray) -> np.ndarray:
    steps = len(column)
    return np.array([[column[t - i] if t >= i else 0 for i in range(steps)] for t in range(steps)])


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 8, 11, 13])
def test_trees_against_every_pattern(steps: int) -> None:
    for participations, separation in product((1, 2, 3, 4), (0, 1, 2, 3, 5)):
        worst = max(
            nodes_touched(pattern, steps) for pattern in patterns(steps, participations, separation)
        )
        found = squared_tree_sensitivity(
            steps, participations=participations, separation=separation
        )
        assert (
            found
            == worst
            <= tree_bound(steps, participations=participations, separation=separation)
        )


def test_a_tree_whose_worst_pattern_is_not_the_densest() -> None:
    """Steps 0, 3, 8, 11 of 16 cost as much as 0, 3, 6, 9; the bound by heights is above both."""
    assert nodes_touched((0, 3, 8, 11), 16) == nodes_touched((0, 3, 6, 9), 16) == 40
    assert squared_tree_sensitivity(16, participations=4, separation=3) == 40
    assert tree_bound(16, participations=4, separation=3) == 42


COLUMNS = {
    "whole numbers": np.array([9, 9, 4, 4, 3, 1, 0, 0, 0]),
    "square root, dyadic": dyadic_coefficients(9, 12),
    "square root": coefficients(9),
    "buffered": BLT.for_horizon(9, 2).coefficients(),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_toeplitz_against_every_pattern(column: np.ndarray) -> None:
    matrix = strategy(column)
    for participations, separation in product((1, 2, 3, 9), (0, 1, 2, 4)):
        if participations == 9 and separation == 0:
            continue
        worst = max(
            (matrix[:, pattern].sum(axis=1) ** 2).sum()
            for pattern in patterns(9, participations, separation)
        )
        found = squared_sensitivity(column, participations=participations, separation=separation)
        assert worst <= found <= worst * (1 + 1e-8)
        assert column.dtype.kind == "f" or found == worst


@pytest.mark.parametrize("kind", [np.int64, np.uint64, np.int32])
@pytest.mark.parametrize("separation", [0, 1, 2])
def test_no_integer_is_too_large_for_an_exact_square(kind: type, separation: int) -> None:
    """Sums of squares, and sums of columns, that leave 64 bits."""
    for largest in (2**31 - 1, 2**31, 2**40 + 1, 2**62 + 3, 2**63 + 5):
        if largest > np.iinfo(kind).max:
            continue
        column = [largest, largest, largest // 3, 7]
        for many in (1, 2, 3):
            starts = range(0, many * separation, separation) if separation else [0] * many
            sums = [
                sum(column[t - start] for start in starts if start <= t) for t in range(len(column))
            ]
            found = squared_sensitivity(
                np.array(column, kind), participations=many, separation=separation
            )
            assert found == sum(x * x for x in sums)


def test_replacing_a_pattern_by_another() -> None:
    """Non-negative contributions: at most twice the square, against all pairs of patterns.

    Signed ones: four times, reached.
    """
    matrix = strategy(dyadic_coefficients(6, 8))
    moves = [matrix[:, pattern].sum(axis=1) for pattern in (*patterns(6, 2, 2), ())]
    worst = max(((one - other) ** 2).sum() for one, other in product(moves, moves))
    column = dyadic_coefficients(6, 8)
    found = squared_sensitivity(column, participations=2, separation=2, neighbours="replace")
    assert worst <= found == 2 * squared_sensitivity(column, participations=2, separation=2)
    most = max(((one + other) ** 2).sum() for one, other in product(moves, moves))
    assert (
        squared_sensitivity(
            column, participations=2, separation=2, neighbours="replace", signed=True
        )
        == most
    )


def test_contributions_with_signs_are_never_worse() -> None:
    matrix = strategy(dyadic_coefficients(7, 8))
    bound = squared_sensitivity(dyadic_coefficients(7, 8), participations=3, separation=2)
    for pattern in patterns(7, 3, 2):
        for signs in product((-1, 1), repeat=len(pattern)):
            assert ((matrix[:, pattern] * signs).sum(axis=1) ** 2).sum() <= bound


@pytest.mark.parametrize(
    "call",
    [
        lambda: squared_sensitivity(np.array([1.0, 2.0])),
        lambda: squared_sensitivity(np.array([1.0, -1.0])),
        lambda: squared_sensitivity(np.array([1.0, np.nan])),
        lambda: squared_sensitivity(np.array([])),
        lambda: squared_sensitivity(np.array([3, -1])),
        lambda: squared_sensitivity(np.array([[2, 1]])),
        lambda: squared_sensitivity(np.ones(3), participations=0),
        lambda: squared_sensitivity(np.ones(3), separation=-1),
        lambda: squared_sensitivity(np.ones(3), participations=True),
        lambda: squared_sensitivity(np.ones(3), neighbours="swap"),
        lambda: squared_tree_sensitivity(0),
        lambda: squared_tree_sensitivity(3, participations=1.5),
    ],
)
def test_refusals(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError):
        call()
