"""Which fault an audit would have seen: without that, to have seen nothing means nothing.

A fault is told by how much more than its claim a mechanism would spend. An *exact* figure grows in proportion when all noise is
made smaller, so one of x sees every fault from claim / x on. A *sampled* bound is not so simple: how far it lies below the truth
depends on the runs, on the pair of data sets and on the event. So the same attack is made, with as many runs, on the same code
that was given more than the claim to spend: enough to halve its noise, and if that is not found out, to quarter it.

Spending grows with the noise's scale in epsilon, and with its square in rho: half the noise is twice the epsilon and four times
the rho.
"""

from __future__ import annotations

from typing import Final

from sfumato.audit.runs import Pair
from sfumato.audit.sampled import Gain, sampled_loss
from sfumato.audit.subjects import Subject
from sfumato.audit.subjects.subject import claimed
from sfumato.privacy.measures import ZCDP, CentralMeasure

SCALES: Final = (2, 4)  # so many times less noise is tried
ENOUGH: Final = 2.5  # so many times less noise must be seen at most, or the row has no power


def times_spent(claim: CentralMeasure, scale: float) -> float:
    """How many times its claim a mechanism spends whose noise is so many times too small."""
    return scale**2 if isinstance(claim, ZCDP) else scale


def of_exact(claim: CentralMeasure, exact: float) -> float | None:
    """The least fault that an exact figure would have seen, as a multiple of the claim."""
    return max(1.0, claimed(claim) / exact) if exact > 0 else None


def of_samples(subject: Subject, pair: Pair, runs: int, gain: Gain) -> float | None:
    """The least of the faults tried that as many runs find out, as a multiple of the claim; None: not one of them."""
    if subject.weaker is None:
        return None
    for scale in SCALES:
        if sampled_loss(subject.weaker(scale), *pair, runs=runs, gain=gain) > claimed(
            subject.claim
        ):
            return times_spent(subject.claim, scale)
    return None


def enough(claim: CentralMeasure, fault: float | None) -> bool:
    """Whether a run that sees faults from this one on says anything."""
    return fault is not None and fault <= times_spent(claim, ENOUGH)
