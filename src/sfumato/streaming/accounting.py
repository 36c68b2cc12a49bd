"""The privacy loss of trees of Gaussian noise: one tree or several, under the source's names.

A tree of Gaussian nodes is one Gaussian mechanism with the squared sensitivity S of
``squared_tree_sensitivity``, adaptive steps included. Its Renyi divergence at order a is at most
a S / (2 sigma^2), which is rho-zCDP with rho = S / (2 sigma^2) (Bun, Steinke 2016, Lemma 2.4). The
losses of trees that follow each other add up, since one person may have taken part in all of them.
Charging a restart only once would be right only if nobody took part in two trees.

Here ``min_separation`` counts the steps *between* two participations, as the source does. Elsewhere
in this library ``separation`` is their distance, which is one more.
Source: Kairouz et al. 2021, app. D; TensorFlow Privacy, ``tree_aggregation_accountant``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.errors import UsageError
from sfumato.streaming.generators import check_deviation
from sfumato.streaming.sensitivity import levels, squared_tree_sensitivity


def compute_zcdp_tree_restart(
    noise_multiplier: float, steps_list: int | Sequence[int], *, completed: bool = False
) -> float:
    """Return the rho of several trees together, if one person takes part at most once in each.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of a node over the clipping norm.
    steps_list : int or sequence of int
        The number of steps of each tree; trees of no steps cost nothing.
    completed : bool
        Whether trees are completed before a restart (``complete_state``).

    Returns
    -------
    float

    >>> compute_zcdp_tree_restart(1.0, [4, 4])
    3.0
    """
    sigma = check_deviation(noise_multiplier, "noise_multiplier")
    trees = [steps_list] if isinstance(steps_list, int | np.integer) else list(steps_list)
    if not trees or not all(_counts_steps(steps) for steps in trees):
        raise UsageError(
            f"steps_list = {steps_list!r}",
            "it must hold whole numbers of at least 0, and one at least",
            "Give the steps of each tree",
        )
    height = completed_levels if completed else levels
    return _rho(sigma, sum(height(int(steps)) for steps in trees if steps))


def compute_rdp_tree_restart(
    noise_multiplier: float,
    steps_list: int | Sequence[int],
    orders: float | Sequence[float],
    *,
    completed: bool = False,
) -> float | Array:
    """Return the loss of several trees together as Renyi divergences.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of a node over the clipping norm.
    steps_list : int or sequence of int
        The number of steps of each tree.
    orders : float or sequence of float
        Orders above 1.
    completed : bool
        Whether trees are completed before a restart (``complete_state``).

    Returns
    -------
    float, or float64 ndarray like ``orders``

    >>> from sfumato.streaming import compute_rdp_tree_restart
    >>> compute_rdp_tree_restart(2.0, [8, 8], orders=[2, 8]).tolist()
    [2.0, 8.0]
    """
    rho = compute_zcdp_tree_restart(noise_multiplier, steps_list, completed=completed)
    return _renyi(rho, orders)


def compute_zcdp_single_tree(
    noise_multiplier: float, total_steps: int, max_participation: int, min_separation: int
) -> float:
    """Return the rho of one tree, if one person takes part at most ``max_participation`` times.

    Parameters
    ----------
    noise_multiplier : float
    total_steps, max_participation : int
        At least 1.
    min_separation : int
        The least number of steps between two participations; 0 allows neighbouring steps.

    Returns
    -------
    float

    >>> compute_zcdp_single_tree(1.0, 8, max_participation=3, min_separation=2)
    10.0
    """
    sigma = check_deviation(noise_multiplier, "noise_multiplier")
    if not _counts_steps(min_separation):
        raise UsageError(
            f"min_separation = {min_separation!r}",
            "it counts the steps between two participations",
            "Give 0 or more",
        )
    square = squared_tree_sensitivity(
        total_steps, participations=max_participation, separation=int(min_separation) + 1
    )
    return _rho(sigma, square)


def compute_rdp_single_tree(
    noise_multiplier: float,
    total_steps: int,
    max_participation: int,
    min_separation: int,
    orders: float | Sequence[float],
) -> float | Array:
    """Return the loss of one tree as Renyi divergences.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of a node over the clipping norm.
    total_steps, max_participation, min_separation : int
        As in ``compute_zcdp_single_tree``.
    orders : float or sequence of float
        Orders above 1.

    Returns
    -------
    float, or float64 ndarray like ``orders``

    >>> from sfumato.streaming import compute_rdp_single_tree
    >>> compute_rdp_single_tree(2.0, 8, 1, 8, orders=[2, 8]).tolist()
    [1.0, 4.0]
    """
    rho = compute_zcdp_single_tree(noise_multiplier, total_steps, max_participation, min_separation)
    return _renyi(rho, orders)


def get_privacy_spent(
    orders: Sequence[float], rdp: Sequence[float], target_delta: float
) -> tuple[float, float]:
    """Return the least epsilon at ``target_delta`` over the orders given, and its order.

    ``privacy.composition.zcdp_to_approx`` needs no list of orders: it takes the best of all orders,
    and its epsilon is never larger.

    Parameters
    ----------
    orders, rdp : sequences of float, of one length
        Orders above 1, and the divergence at each.
    target_delta : float in (0, 1)

    Returns
    -------
    epsilon, order : float

    Source: Canonne, Kamath, Steinke 2020, Prop. 12.

    >>> orders = [1 + x / 10 for x in range(1, 100)] + list(range(12, 64))
    >>> divergences = compute_rdp_tree_restart(1.13, 1600, orders)
    >>> epsilon, order = get_privacy_spent(orders, divergences, 1e-6)
    >>> round(epsilon, 4), order
    (18.7096, 2.7)
    """
    a = np.atleast_1d(np.asarray(orders, dtype=float))
    divergences = np.atleast_1d(np.asarray(rdp, dtype=float))
    if a.shape != divergences.shape or not (a > 1).all() or not 0 < target_delta < 1:
        raise UsageError(
            "an epsilon from Renyi divergences",
            "orders lie above 1, each has one divergence, and delta lies between 0 and 1",
            "Give two lists of one length, and a delta such as 1e-6",
        )
    epsilon = divergences + np.log1p(-1 / a) - np.log(target_delta * a) / (a - 1)
    best = int(np.argmin(epsilon))
    return max(0.0, float(epsilon[best])), float(a[best])


def completed_levels(steps: int) -> int:
    """Return how many nodes hold a step once a tree is completed: floor(log2(steps - 1)) + 2.

    >>> [completed_levels(t) for t in (1, 2, 3, 4, 5)]
    [1, 2, 3, 3, 4]
    """
    return (steps - 1).bit_length() + 1


def _counts_steps(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        return False
    return bool(value >= 0)


def _rho(sigma: float, square: int) -> float:
    return square / (2 * sigma**2) if sigma else math.inf


def _renyi(rho: float, orders: float | Sequence[float]) -> float | Array:
    a = np.asarray(orders, dtype=float)
    if not (a > 1).all():
        raise UsageError(
            "Renyi divergences", "orders lie above 1", "Give orders such as 2, 4 and 16"
        )
    return float(a * rho) if a.ndim == 0 else a * rho
