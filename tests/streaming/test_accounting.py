"""The cost of trees."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sfumato.errors import UsageError
from sfumato.privacy.measures import zcdp_to_approx
from sfumato.streaming import (
    compute_rdp_single_tree,
    compute_rdp_tree_restart,
    compute_zcdp_single_tree,
    compute_zcdp_tree_restart,
    get_privacy_spent,
    squared_tree_sensitivity,
)
from sfumato.streaming.accounting import completed_levels

ORDERS = [1 + x / 10 for x in range(1, 100)] + list(range(12, 64))


def test_the_accountant_of_the_page() -> None:
    """Noise 1.13, 1,600 steps, one participation, delta 1e-6.

    18.7096 over the source's orders, and no more over all orders.
    """
    epsilon, order = get_privacy_spent(ORDERS, compute_rdp_tree_restart(1.13, [1600], ORDERS), 1e-6)
    assert epsilon == pytest.approx(18.7096, abs=5e-5)
    rho = compute_zcdp_tree_restart(1.13, 1600)
    assert float(zcdp_to_approx(Fraction(rho), Fraction(1, 10**6)).epsilon) <= epsilon
    assert compute_rdp_tree_restart(1.13, 1600, order) == pytest.approx(order * rho)


def test_accounts_of_trees() -> None:
    assert compute_zcdp_tree_restart(1.0, [4, 4, 0]) == 3.0
    assert compute_zcdp_tree_restart(1.0, [5], completed=True) == 2.0
    assert compute_zcdp_tree_restart(0.0, [5]) == math.inf
    for steps, many, between in product((1, 7, 16), (1, 2, 3), (0, 1, 4)):
        square = squared_tree_sensitivity(steps, participations=many, separation=between + 1)
        assert compute_zcdp_single_tree(2.0, steps, many, between) == square / 8
        found = compute_rdp_single_tree(2.0, steps, many, between, ORDERS)
        np.testing.assert_allclose(found, np.array(ORDERS) * square / 8)


@pytest.mark.parametrize("orders", [1, 0.5, [2, 1], [0.5, 2], [2, math.nan]])
def test_there_is_no_divergence_of_an_order_that_is_not_above_1(orders: float) -> None:
    with pytest.raises(UsageError, match="orders"):
        compute_rdp_tree_restart(1.0, [4], orders)
    with pytest.raises(UsageError, match="orders"):
        get_privacy_spent(orders, np.ones(np.shape(orders)), 1e-6)


@pytest.mark.parametrize("wrong", [-1, True, 1.5, "4"])
def test_steps_that_are_no_number_of_steps(wrong: object) -> None:
    for steps in ([4, wrong], [wrong], []):
        with pytest.raises(UsageError, match="steps_list"):
            compute_zcdp_tree_restart(1.0, steps)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="min_separation"):
        compute_zcdp_single_tree(1.0, 8, 2, wrong)  # type: ignore[arg-type]


def test_levels_of_completed_trees() -> None:
    for taken in range(1, 70):
        whole = 1
        while whole < taken:
            whole *= 2
        assert completed_levels(taken) == whole.bit_length()
