"""Exact audits beyond ``likelihoods``: residuals, which are sums of draws, and noise with a bound.

*Residuals* (``residual_loss``): published numbers that are sums and differences of draws.

There are more draws than published numbers, so an output does not determine its script, and
``likelihoods`` does not apply. Here the published numbers are y + L z for the draws z: y is what
draws of zero give, and L what draws of one add to that. Both are measured, under scripts, and
further scripts are tried to see that there is nothing else. Draws that no published number has in
common are independent, so divergences add up over such groups. In each group the probabilities of
all outputs are added up over the draws that lead to them.

*Nothing else is published.* For a script of one data set, another is made with which its neighbour
publishes the same numbers; then all that is published must be the same bytes.

*Lower bounds.* Draws and outputs far out are left out. A Renyi divergence of order above 1 is a sum
of positive terms, so what is found is never too large, but for what is left out of the neighbour's
probability of an output: only outputs near the middle are used, where that is below 1e-9 of it.

Source: the probabilities of noise are those of ``runs``.

*Noise with a bound* (``bounded_loss``): epsilon at the stated delta.

Each published number is a count and a draw of its own, which never exceeds a bound. An output that
one data set can have and its neighbour cannot is then no fault by itself: delta allows for it. The
figure is the least epsilon with

    P(outputs | one) <= e^epsilon P(outputs | other) + delta    for all sets of outputs.

A script (``runs.Scripted``) shows by how much each draw must differ for the neighbour to publish
the same bytes, as in ``likelihoods``. The draws are independent, so the logarithm of the quotient
of the two probabilities is a sum of independent terms, one for each number that differs. Its law is
computed here from the formula of the noise; no method of the law that is audited is used.

Source: Dwork, Roth 2014, section 3.5 (the divergence that defines delta).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import TypeAlias

import numpy as np

from sfumato.audit.likelihoods import FAR, Loss, check_additive, largest, least_epsilon
from sfumato.audit.runs import (
    Draws,
    Mechanism,
    NotAdditive,
    Pair,
    Rows,
    Scripted,
    log_sum,
    masses,
    run_script,
    with_draw,
)
from sfumato.basics import Array
from sfumato.mechanisms import DiscreteGaussian, Law, TruncatedLaplace
from sfumato.privacy import ZCDP, ApproxDP, CentralMeasure

# --- residuals ------------------------------------------------------------------------------------

# How often each draw enters each number of a group.
Matrix: TypeAlias = tuple[Draws, ...]

# Draws in one group.
MOST_DRAWS = 4


def residual_loss(
    mechanism: Mechanism, pairs: Sequence[Pair], claim: CentralMeasure, alphas: Sequence[float]
) -> Loss:
    """Return the largest loss of published sums and differences of draws: a rho.

    Raises
    ------
    NotAdditive
        If the enumeration cannot judge the mechanism.
    """
    if not isinstance(claim, ZCDP):
        raise NotAdditive("sums of draws are audited for rho only")
    # Larger orders are about outputs farther out.
    orders = [alpha for alpha in alphas if alpha <= 4.0]
    # Measured on one data set: ``moved`` and ``is_all`` find out where another behaves
    # otherwise.
    linear = _Linear.of(mechanism, pairs[0][0])
    best = Loss(0.0, pairs[0])
    seen: set[bytes] = set()
    for pair in pairs:
        moved = linear.moved(mechanism, pair)
        if moved is None:
            return Loss(math.inf, pair)
        if moved.tobytes() in seen:
            continue
        seen.add(moved.tobytes())
        if not linear.is_all(mechanism, pair, moved):
            return Loss(math.inf, pair)
        loss = max(linear.divergence(moved, alpha) / alpha for alpha in orders)
        if loss > best.loss:
            best = Loss(loss, pair)
    return best


@dataclass(frozen=True)
class _Linear:
    """What draws add to the published numbers.

    Attributes
    ----------
    laws : tuple of Law
        Of the draws.
    matrix : int64 ndarray of shape (numbers, draws)
    groups : tuple of (numbers, draws)
        The indices of numbers that have draws in common, and of these.
    """

    laws: tuple[Law, ...]
    matrix: Array
    groups: tuple[tuple[Draws, Draws], ...]

    @classmethod
    def of(cls, mechanism: Mechanism, rows: Rows) -> _Linear:
        """Measure it with one draw at a time."""
        start, noise = run_script(mechanism, rows, ())
        laws = tuple(noise.noise_laws())
        zeros = (0,) * len(laws)
        columns = [
            _numbers(mechanism, rows, with_draw(zeros, index, 1)) for index in range(len(laws))
        ]
        matrix = (np.array(columns) - start.numbers).T
        for script in _scripts(len(laws)):
            predicted = matrix @ np.array(script) + start.numbers
            if not np.array_equal(predicted, _numbers(mechanism, rows, script)):
                raise NotAdditive("the published numbers are no sums of draws")
        return cls(laws, matrix, tuple(_groups(matrix)))

    def moved(self, mechanism: Mechanism, pair: Pair) -> Array | None:
        """Return how far the numbers of one data set are from the other's; None if laws differ."""
        output, noise = run_script(mechanism, pair[0], ())
        other_output, other_noise = run_script(mechanism, pair[1], ())
        if any(tuple(script.noise_laws()) != self.laws for script in (noise, other_noise)):
            return None
        if len(output.numbers) != len(other_output.numbers):
            return None
        return np.subtract(other_output.numbers, output.numbers)

    def is_all(self, mechanism: Mechanism, pair: Pair, moved: Array) -> bool:
        """Return whether nothing else is published: where numbers are equal, all is."""
        for script in _scripts(len(self.laws)):
            here, _ = run_script(mechanism, pair[0], script)
            there, _ = run_script(mechanism, pair[1], self._same(script, moved))
            if here.everything != there.everything:
                return False
        return True

    def _same(self, script: Draws, moved: Array) -> Draws:
        draws = np.array(script)
        for number, far in enumerate(moved.tolist()):
            # A draw that enters this number alone makes good for it.
            alone = (self.matrix != 0).sum(axis=0) == 1
            own = np.flatnonzero(alone & (np.abs(self.matrix[number]) == 1))
            if not own.size:
                raise NotAdditive("no draw enters one published number alone")
            draws[own[0]] -= far * self.matrix[number, own[0]]
        return tuple(draws.tolist())

    def divergence(self, moved: Array, alpha: float) -> float:
        """Return the Renyi divergence between the numbers and the moved ones."""
        total = 0.0
        for numbers, draws in self.groups:
            shift = moved[list(numbers)]
            if shift.any():
                matrix = tuple(map(tuple, self.matrix[np.ix_(numbers, draws)].tolist()))
                law = {self.laws[draw] for draw in draws}
                if len(law) != 1:
                    raise NotAdditive("numbers have draws of several laws in common")
                total += _divergence(law.pop(), matrix, tuple(shift.tolist()), alpha)
        return total


def _numbers(mechanism: Mechanism, rows: Rows, script: Draws) -> Array:
    return np.array(run_script(mechanism, rows, script)[0].numbers)


def _scripts(size: int) -> list[Draws]:
    """Draws far up and down, and mixed ones."""
    mixed = tuple((-1) ** at * (at * at + 1) for at in range(size))
    return [(FAR,) * size, (-FAR,) * size, mixed, tuple(FAR * draw for draw in mixed)]


def _groups(matrix: Array) -> list[tuple[Draws, Draws]]:
    """Numbers that have draws in common, directly or by others."""
    left = set(range(len(matrix)))
    groups = []
    while left:
        numbers = {left.pop()}
        while True:
            draws = np.flatnonzero(matrix[sorted(numbers)].any(axis=0))
            more = set(np.flatnonzero(matrix[:, draws].any(axis=1)).tolist()) | numbers
            if more == numbers:
                break
            numbers = more
        left -= numbers
        if len(draws) > MOST_DRAWS:
            raise NotAdditive(f"{len(draws)} draws enter the same numbers; ask for fewer cells")
        groups.append((tuple(sorted(numbers)), tuple(draws.tolist())))
    return groups


@lru_cache(maxsize=4096)
def _divergence(law: Law, matrix: Matrix, shift: Draws, alpha: float) -> float:
    logs, reach = _log_masses(law, matrix)
    half = reach // 2
    terms = [
        alpha * log + (1 - alpha) * logs[moved]
        for key, log in logs.items()
        if max(map(abs, key)) <= half and (moved := tuple(map(int.__sub__, key, shift))) in logs
    ]
    return log_sum(np.array(terms)) / (alpha - 1)


@lru_cache(maxsize=64)
def _log_masses(law: Law, matrix: Matrix) -> tuple[Mapping[Draws, float], int]:
    """Return ln of the probability of each output of all draws up to a reach, and the reach."""
    draws = len(matrix[0])
    if not isinstance(law, DiscreteGaussian):
        raise NotAdditive("sums of draws are audited for Gaussian noise only")
    # Single draws are enumerated as far as their probability is about exp(-60).
    exponents = 2 * float(law.sigma_squared) * 60
    reach = math.ceil(math.sqrt(exponents))
    # Of the draws of one group, so many are enumerated at most.
    reach = min(reach, (math.floor((2**19) ** (1 / draws)) - 1) // 2)
    scripts = np.indices((2 * reach + 1,) * draws).reshape(draws, -1).T - reach
    probabilities = masses(law, scripts).prod(axis=1)
    outputs, places = np.unique(scripts @ np.array(matrix).T, axis=0, return_inverse=True)
    logs = np.log(np.bincount(places.reshape(-1), probabilities))
    return dict(zip(map(tuple, outputs.tolist()), logs.tolist(), strict=True)), reach


# --- noise with a bound ---------------------------------------------------------------------------

# Of sums of probabilities in doubles, as a share of delta.
ROUNDING = 1e-9


def bounded_loss(
    mechanism: Mechanism, pairs: Sequence[Pair], claim: CentralMeasure, alphas: Sequence[float]
) -> Loss:
    """Return the largest epsilon over pairs of data sets, at the delta of the claim.

    Raises
    ------
    NotAdditive
        If a number does not move one for one with a draw of bounded noise, or the draws have
        several laws.
    """
    del alphas  # of the divergences of other measures
    assert isinstance(claim, ApproxDP)
    for rows in {rows for pair in pairs for rows in pair}:
        check_additive(mechanism, rows, (0,))
    delta = float(claim.delta)
    return largest((_loss_of_pair(mechanism, pair, delta), pair) for pair in pairs)


def _loss_of_pair(mechanism: Mechanism, pair: Pair, delta: float) -> float:
    rows, other = pair
    output, drawn = run_script(mechanism, rows, ())
    laws = set(drawn.laws)
    law = laws.pop() if len(laws) == 1 else None
    if not isinstance(law, TruncatedLaplace):
        raise NotAdditive("the draws do not all have one law of noise with a bound")
    reached = mechanism(other, Scripted())
    if len(reached.numbers) != len(output.numbers):
        return math.inf
    both = zip(output.numbers, reached.numbers, strict=True)
    script = tuple(number - other_number for number, other_number in both)
    if mechanism(other, Scripted(script)).everything != output.everything:
        return math.inf
    return epsilon_at(law, [abs(shift) for shift in script if shift], delta)


def epsilon_at(law: TruncatedLaplace, shifts: Sequence[int], delta: float) -> float:
    """The least epsilon at which noise of this law and noise that is shifted differ by delta.

    Parameters
    ----------
    law : TruncatedLaplace
        Of each number; its scale and bound are read.
    shifts : sequence of int
        By how much each number differs, if it does: above 0.
    delta : float

    Returns
    -------
    float
        Infinite if one of them has outputs of more than delta that the other cannot have.
    """
    scale = float(law.scale)
    x = np.arange(-law.bound, law.bound + 1)
    # In steps of 1 / scale: the quotient is q^(|x| - |x - shift|) where both are possible.
    steps = [_steps(x, masses(law, x), shift) for shift in shifts]
    shared: Array = reduce(np.convolve, steps, np.ones(1))
    most = sum(shifts)
    losses = np.arange(-most, most + 1) / scale
    totals = [step.sum() for step in steps]
    only_one = 1 - float(np.prod(totals))

    def excess(epsilon: float) -> float:
        above = losses > epsilon
        return only_one + float((shared[above] * -np.expm1(epsilon - losses[above])).sum())

    if only_one > delta * (1 + ROUNDING) + 1e-15:
        return math.inf
    return least_epsilon(excess, max(delta, only_one), most / scale)


def _steps(x: Array, mass: Array, shift: int) -> Array:
    """The probabilities of -shift, ..., shift steps; those of impossible outputs are missing."""
    is_possible = np.abs(x - shift) <= x[-1]
    size = np.abs(x[is_possible] - shift) - np.abs(x[is_possible])
    return np.bincount(size + shift, mass[is_possible], 2 * shift + 1)
