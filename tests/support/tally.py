"""A question as a package of its own would define it.

It is copied into one, and installed, by ``installed``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import msgspec
import numpy as np
import pyarrow as pa

from sfumato.answers.counts import Counts, Needs
from sfumato.answers.estimate import error_probability
from sfumato.answers.preview import Preview
from sfumato.answers.question import Question
from sfumato.answers.release import Release
from sfumato.basics.numbers import Exactly, sidak
from sfumato.domain.domain import Domain
from sfumato.mechanisms.noise import Law, add_noise, count_law
from sfumato.privacy.guarantee import Guarantee, Proof
from sfumato.privacy.measures import ZCDP, CentralMeasure, PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.histogram import Histogram
from sfumato.random.bits import Bits

PROOF = Proof(
    "L1 = rows_per_person.",
    "cells are disjoint and public.",
    "the choice of columns.",
    "Dwork et al. 2006.",
)


class TallyRelease(
    Release, frozen=True, kw_only=True, eq=False, tag="tally-release", forbid_unknown_fields=True
):
    """Noisy counts of equal parts of an axis."""

    axis: str
    counts: np.ndarray
    law: Law

    @property
    def values(self) -> np.ndarray:
        return self.counts

    @property
    def title(self) -> str:
        return f"Tally of {self.axis}"

    def numbers(self) -> tuple[int, ...]:
        return tuple(self.counts.tolist())

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> np.ndarray:
        alpha = error_probability(confidence)
        half = self.law.half_width(sidak(alpha, self.counts.size) if simultaneous else alpha)
        return np.full(self.counts.shape, half)

    def to_frame(self) -> pa.Table:
        return pa.table({"part": np.arange(self.counts.size), "count": self.counts})


class Tally(Question[TallyRelease], frozen=True, tag="tally", forbid_unknown_fields=True):
    """How many rows lie in each part of an axis? Noisy counts of equal parts.

    Parameters
    ----------
    axis : str
        An Interval axis.
    parts : int
        How many equal parts it has.
    marks : list of str
        Words that change nothing.
    positive : bool
        Show counts below nought
        as nought.
    """

    axis: str
    parts: int = 3
    marks: Sequence[str] = ()
    positive: bool = False
    by_mark: dict[str, int] = msgspec.field(default_factory=dict)

    proof: ClassVar[Proof] = PROOF
    examples: ClassVar[tuple[Question[Release], ...]] = ()

    @property
    def title(self) -> str:
        return f"Tally of {self.axis}"

    def canonical(self, domain: Domain) -> Self:
        return self

    def needs(self, domain: Domain) -> Needs:
        return Histogram(self.axis, bins=self.parts).needs(domain)

    def preview(
        self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None
    ) -> Preview:
        return Histogram(self.axis, bins=self.parts).preview(domain, unit, cost, rows)

    def noise_cost(self, cost: CentralMeasure) -> CentralMeasure:
        return cost

    def answer(self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits) -> TallyRelease:
        law = count_law(self.noise_cost(cost), unit)
        noisy = add_noise(counts.on(counts.lattice).counts, law, noise)
        noisy = np.maximum(noisy, 0) if self.positive else noisy
        guarantee = Guarantee(cost, unit, str(law), self.proof, private=noise.private)
        return TallyRelease(axis=self.axis, counts=noisy, law=law, guarantee=guarantee)


class HalfTally(Tally, frozen=True, tag="half-tally", forbid_unknown_fields=True):
    """A broken twin: it adds half the noise."""

    def noise_cost(self, cost: CentralMeasure) -> CentralMeasure:
        return ZCDP(4 * cost.rho) if isinstance(cost, ZCDP) else PureDP(2 * cost.epsilon)


Tally.examples = (Tally("x"), Tally("x", parts=2))
HalfTally.examples = (HalfTally("x"),)
