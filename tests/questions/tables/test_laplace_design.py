"""Shares of epsilon add up, and are as good as any that a search finds."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from sfumato.questions.tables.design import PARTS, laplace_shares
from sfumato.questions.tables.gaussian_design import Aim
from sfumato.questions.tables.levels import Levels
from sfumato.questions.tables.residuals import Family, Measured


def flat(*sizes: int) -> tuple[Levels, ...]:
    return tuple(map(Levels.flat, sizes))


def error_of(axes: tuple[Levels, ...], tables: tuple, shares: list, aim: Aim) -> float:
    measured = tuple(Measured(margin, 2 / float(share) ** 2) for margin, share in shares)
    family = Family(axes, measured)
    return aim.error(np.array([family.variance_of(table) for table in tables]))


FAMILIES = {
    "flights": (flat(16, 24, 3), ((1, 1, 0), (1, 0, 1), (0, 0, 1))),
    "small": (flat(2, 3), ((1, 1), (1, 0))),
    "pairs": (
        flat(2, 2, 2, 2),
        tuple(
            tuple(int(at in pair) for at in range(4))
            for pair in itertools.combinations(range(4), 2)
        ),
    ),
    "one": (flat(4), ((1,),)),
    "levels": ((Levels(((2,), (3, 3))), Levels.flat(2)), ((2, 0), (1, 1))),
}
AIMS = {
    "equal": lambda n: Aim(),
    "weights": lambda n: Aim(weights=tuple(range(1, n + 1))),
    "accuracies": lambda n: Aim(accuracies=tuple(float(i) for i in range(1, n + 1))),
}


TRIED = [(name, "equal") for name in FAMILIES] + [("small", "weights"), ("levels", "accuracies")]


@pytest.mark.parametrize(("family", "aim"), TRIED)
def test_shares_add_up_and_no_small_change_is_better(family: str, aim: str) -> None:
    axes, tables = FAMILIES[family]
    wanted = AIMS[aim](len(tables))
    shares = laplace_shares(axes, tables, wanted)
    assert sum(share for _, share in shares) == 1
    assert all(share > 0 and PARTS % share.denominator == 0 for _, share in shares)
    family = Family(axes, tuple(Measured(margin, 1.0) for margin, _ in shares))
    assert all(kept in family.precisions for table in tables for kept in family.estimable(table))
    least = error_of(axes, tables, list(shares), wanted)
    for one, other in itertools.permutations(range(len(shares)), 2):
        moved = [share for _, share in shares]
        step = moved[one] / 5
        moved[one] -= step
        moved[other] += step
        changed = [(margin, share) for (margin, _), share in zip(shares, moved, strict=True)]
        assert error_of(axes, tables, changed, wanted) > least * 0.999
    equal = [(table, Fraction(1, len(tables))) for table in tables]
    assert least <= error_of(axes, tables, equal, wanted) * 1.001


def test_ten_binary_axes_in_pairs_gain() -> None:
    axes = flat(*[2] * 10)
    both = itertools.combinations(range(10), 2)
    pairs = tuple(tuple(int(at in pair) for at in range(10)) for pair in both)
    shares = laplace_shares(axes, pairs, Aim())
    separate = [(pair, Fraction(1, 45)) for pair in pairs]
    least = error_of(axes, pairs, list(shares), Aim())
    assert 45 * 2 * 45**2 / least > 3.2
    assert least <= error_of(axes, pairs, separate, Aim()) * 1.001


def test_many_margins_are_no_candidates() -> None:
    axes = flat(*[2] * 9)
    tables = ((1,) * 9, (1,) * 8 + (0,))
    assert laplace_shares(axes, tables, Aim()) == ((tables[0], 1),)
