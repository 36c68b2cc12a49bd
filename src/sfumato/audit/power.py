"""The power of an audit: which fault it would have detected.

Without power, an audit that finds nothing says nothing. The size of a fault is the privacy loss of
the faulty mechanism, as a multiple of the claim.

An *exact* figure grows in proportion when all noise is made smaller, so a figure of x detects every
fault from claim / x on. How far a *sampled* bound lies below the truth depends on the number of
runs, the pair of data sets and the event. So the same attack is made, with as many runs, on the
same code with half the noise that the claim asks for; and if that is not detected, with a quarter.
Its bits are public and fixed, so that a row has power in every run or in none.

Half the noise is twice the epsilon, but four times the rho: rho grows with the square.
"""

from __future__ import annotations

from typing import Final

from sfumato.audit.runs import Pair
from sfumato.audit.sampled import Gain, sampled_loss
from sfumato.audit.subjects import Subject
from sfumato.audit.subjects.subject import claimed
from sfumato.privacy.measures import ZCDP, CentralMeasure
from sfumato.random.bits import PublicSeed

SCALES: Final = (2, 4)
"""The faults tried: this many times less noise."""
ENOUGH: Final = 2.5
"""A row has power if it detects a mechanism with this many times less noise."""


def times_spent(claim: CentralMeasure, scale: float) -> float:
    """How many times its claim a mechanism spends if its noise is ``scale`` times too small."""
    return scale**2 if isinstance(claim, ZCDP) else scale


def of_exact(claim: CentralMeasure, exact: float) -> float | None:
    """The least fault that an exact figure detects, as a multiple of the claim; None if none."""
    return max(1.0, claimed(claim) / exact) if exact > 0 else None


def of_samples(subject: Subject, pair: Pair, runs: int, gain: Gain) -> float | None:
    """The least of the faults tried that sampling detects, as a multiple of the claim.

    Parameters
    ----------
    subject : Subject
        Its ``weaker`` gives the faulty mechanisms.
    pair : pair of data sets
    runs : int
        As many as the audit itself makes.
    gain : callable
        See ``sampled``.

    Returns
    -------
    float or None
        None if none of them is detected.
    """
    if subject.weaker is None:
        return None
    for scale in SCALES:
        # The same bits every time: what a run could have detected must not be left to luck.
        bits = PublicSeed(f"{subject.name}, {scale} times less noise")
        loss = sampled_loss(subject.weaker(scale), *pair, runs=runs, gain=gain, noise=bits)
        if loss > claimed(subject.claim):
            return times_spent(subject.claim, scale)
    return None


def enough(claim: CentralMeasure, fault: float | None) -> bool:
    """Whether a run that detects faults from this size on has power."""
    return fault is not None and fault <= times_spent(claim, ENOUGH)
