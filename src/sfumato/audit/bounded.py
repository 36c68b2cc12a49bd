"""The exact audit of noise with a bound: epsilon at the stated delta.

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
from collections.abc import Sequence
from functools import reduce

import numpy as np

from sfumato.audit.laws import masses
from sfumato.audit.likelihoods import Loss, check_additive
from sfumato.audit.runs import Mechanism, NotAdditive, Pair, Scripted
from sfumato.basics.numbers import Array
from sfumato.mechanisms.bounded_noise import TruncatedLaplace
from sfumato.privacy.measures import ApproxDP, CentralMeasure

HALVINGS = 60
ROUNDING = 1e-9
"""Of sums of probabilities in doubles, as a share of delta."""


def bounded_loss(
    mechanism: Mechanism, pairs: Sequence[Pair], claim: CentralMeasure, alphas: Sequence[float]
) -> Loss:
    """The largest epsilon over pairs of data sets, at the delta of the claim.

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
    found = [(_loss_of_pair(mechanism, pair, float(claim.delta)), pair) for pair in pairs]
    loss, pair = max(found, key=lambda each: each[0])
    return Loss(loss, pair)


def _loss_of_pair(mechanism: Mechanism, pair: Pair, delta: float) -> float:
    """The least epsilon for one data set against its neighbour."""
    one, other = pair
    drawn = Scripted()
    output = mechanism(one, drawn)
    law = _law(drawn)
    reached = mechanism(other, Scripted())
    if len(reached.numbers) != len(output.numbers):
        return math.inf
    both = zip(output.numbers, reached.numbers, strict=True)
    script = tuple(number - other_number for number, other_number in both)
    if mechanism(other, Scripted(script)).everything != output.everything:
        return math.inf
    return epsilon_at(law, [abs(shift) for shift in script if shift], delta)


def _law(drawn: Scripted) -> TruncatedLaplace:
    """The one law of all draws."""
    laws = set(drawn.laws)
    law = laws.pop() if len(laws) == 1 else None
    if not isinstance(law, TruncatedLaplace):
        raise NotAdditive("the draws do not all have one law of noise with a bound")
    return law


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
    mass = masses(law, x)
    # In steps of 1 / scale: the quotient is q^(|x| - |x - shift|) where both are possible.
    steps = [_steps(x, mass, shift) for shift in shifts]
    shared: Array = reduce(np.convolve, steps, np.ones(1))
    most = sum(shifts)
    losses = np.arange(-most, most + 1) / scale
    only_one = 1 - float(np.prod([each.sum() for each in steps]))

    def excess(epsilon: float) -> float:
        above = losses > epsilon
        return only_one + float((shared[above] * -np.expm1(epsilon - losses[above])).sum())

    if only_one > delta * (1 + ROUNDING) + 1e-15:
        return math.inf
    low = 0.0
    high = most / scale
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if excess(middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def _steps(x: Array, mass: Array, shift: int) -> Array:
    """The probabilities of -shift, ..., shift steps; those of impossible outputs are missing."""
    is_possible = np.abs(x - shift) <= x[-1]
    size = np.abs(x[is_possible] - shift) - np.abs(x[is_possible])
    return np.bincount(size + shift, mass[is_possible], 2 * shift + 1)
