"""How a cost is divided among questions, and how accurate each answer would be with its part.

Everything here follows from previews: no data are read.

A question's half-width is taken to be proportional to the inverse of its epsilon, or of the square
root of its rho. Then sum_i a_i / c_i^p, over parts c_i with a given sum, is least where c_i is
proportional to a_i^(1 / (1 + p)): set the derivatives equal (Lagrange). For histograms with equal
noise, a_i is the number of cells: the shares are the square roots of the cells under Laplace noise
(p = 1), and their powers of 2/3 under Gaussian noise (p = 1/2). For squared half-widths p is
doubled: powers of 1/3 and 1/2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.answers.accuracy import AccuracyRequest, Kind, Within, least_alone
from sfumato.answers.preview import CountsPreview, Preview
from sfumato.answers.question import AnyQuestion
from sfumato.answers.registry import answer_of
from sfumato.answers.release import CountsRelease
from sfumato.basics.numbers import split
from sfumato.domain.domain import Domain
from sfumato.errors import SfumatoError, UsageError
from sfumato.privacy.measures import ZCDP, ApproxDP, CentralMeasure, pure_epsilon
from sfumato.privacy.unit import Unit

DIGITS = 6  # of a picked share: the same ones on every machine
SMALL_DELTA = Fraction(1, 10**6)


class PlannedQuestion:
    """One question of a plan, where it is asked, with what the plan asks of it.

    Parameters
    ----------
    question : Question
    domain : Domain
    unit : Unit
    within : Within or None
        How accurate its answer must be.
    weight : Fraction
    rows : int or None
        The custodian's public guess.
    found : dict, optional
        What other questions of the plan needed, by measure and accuracy: a search begins there.
    """

    def __init__(
        self,
        question: AnyQuestion,
        domain: Domain,
        unit: Unit,
        within: Within | None,
        weight: Fraction,
        rows: int | None,
        found: dict[tuple[Kind, Within], int] | None = None,
    ) -> None:
        self.question = question
        self.within = within
        self.weight = weight
        self._domain = domain
        self._unit = unit
        self._rows = rows
        self._previews: dict[CentralMeasure, Preview] = {}
        self._needs: dict[Kind, int] = {}
        self._found = {} if found is None else found

    def preview(self, cost: CentralMeasure) -> Preview:
        """What it would publish at a cost; what it refuses, it refuses here."""
        if cost not in self._previews:
            found = self.question.preview(self._domain, self._unit, cost, self._rows)
            self._previews[cost] = found
        return self._previews[cost]

    def half_width(self, cost: CentralMeasure) -> float | None:
        """Of its least accurate number, with 95% confidence; None where it states none."""
        preview = self.preview(cost)
        if not self._states_accuracy(preview):
            return None
        try:
            return float(preview.accuracy())
        except UsageError:  # it depends on what is not known beforehand
            return None

    def accepts(self, cost: CentralMeasure) -> bool:
        """Whether it can be answered at a cost."""
        try:
            self.preview(cost)
        except SfumatoError:
            return False
        return True

    @property
    def takes_rho(self) -> bool:
        """Whether it can be answered at a rho."""
        return self.accepts(ZCDP(1))

    @property
    def uses_delta(self) -> bool:
        """Whether it needs a delta of its own, or makes use of one."""
        approx = ApproxDP(1, SMALL_DELTA)
        if not self.accepts(approx):
            return False
        return isinstance(self.preview(approx).cost, ApproxDP)

    def error(self, cost: CentralMeasure, *, squared: bool) -> float | None:
        """The sum of the half-widths of its numbers, or of their squares, times its weight.

        None if it is no table of counts of a known size: its errors are not in rows, or how many
        they are is not known, and they are not added to those of others.
        """
        preview = self.preview(cost)
        width = self.half_width(cost)
        if not isinstance(preview, CountsPreview) or preview.cells is None or width is None:
            return None
        # Half-widths are whole numbers. Where even the noise is below one, its size still differs.
        width = max(width, 0.5)
        power = 2 if squared else 1
        return float(self.weight) * preview.cells * width**power

    @property
    def counts(self) -> bool:
        """Whether it is a table of counts of a known size."""
        at = ApproxDP(1, SMALL_DELTA)
        return self.accepts(at) and self.error(at, squared=False) is not None

    def _states_accuracy(self, preview: Preview) -> bool:
        """Whether a preview states the accuracy of the answer.

        That of counts from which the answer is computed, such as centres of clusters, is another.
        """
        of_counts = isinstance(preview, CountsPreview)
        return preview.states_accuracy and (not of_counts or self._answers_with_counts())

    def _answers_with_counts(self) -> bool:
        """Whether the noisy counts are the answer, and not what it is computed from."""
        try:
            return issubclass(answer_of(type(self.question)), CountsRelease)
        except UsageError:  # a question of the user's, which is not registered
            return False

    def loss(self, cost: CentralMeasure) -> float:
        """Its half-width; where it states none, the inverse of the epsilon that it may spend."""
        width = self.half_width(cost)
        return max(width, 0.5) if width is not None else 1 / float(pure_epsilon(cost))

    def need(self, kind: Kind) -> int:
        """The least units of a measure at which it is as accurate as requested.

        Raises
        ------
        UsageError
            If it cannot say beforehand how accurate it would be.
        Infeasible
            If no cost suffices.
        """
        assert self.within is not None
        if kind not in self._needs:
            start = self._found.get((kind, self.within))
            self._needs[kind] = least_alone(self._request(kind), kind, start)
            self._found[kind, self.within] = self._needs[kind]
        return self._needs[kind]

    def is_met(self, cost: CentralMeasure) -> bool:
        """Whether its answer is as accurate as requested; true where nothing is."""
        if self.within is None:
            return True
        preview = self.preview(cost)
        width = preview.accuracy(self.within.confidence, self.within.simultaneous)
        return float(width) <= self.within.half_width

    def _request(self, kind: Kind) -> AccuracyRequest:
        assert self.within is not None
        asked = f"the accuracy of {self.question.title}"
        # What it says at some cost, it says at every cost: an axis of keys has no simultaneous
        # accuracy, and a mean none without a number of rows.
        try:
            preview = self.preview(kind.cost(kind.units))
            states = self._states_accuracy(preview)
            if states:
                preview.accuracy(self.within.confidence, self.within.simultaneous)
        except UsageError as error:
            remedy = error.remedy
            if "rows=" in remedy:
                remedy = "State rows= of the plan, your own public guess"
            raise UsageError(f"{asked}, {error.asked}", error.obstacle, remedy) from None
        if not states:
            obstacle = "it cannot say beforehand how accurate its answer would be"
            raise UsageError(asked, obstacle, "Leave it out: it then takes a share by its weight")
        return AccuracyRequest(self.question, self._domain, self._unit, self._rows, self.within)


@dataclass(frozen=True)
class Member:
    """What takes part when units of one measure are divided: a question, or several together.

    Attributes
    ----------
    need : int
        Units that it needs to be as accurate as requested; 0 where nothing is.
    is_open : bool
        Whether it takes part in what the needs leave over.
    fixed : Fraction
        The part of that which it takes by its weight.
    size : float
        Its error, times cost^power: what the rest of it is divided by.
    """

    need: int
    is_open: bool
    fixed: Fraction = Fraction(0)
    size: float = 0.0


def parts_of(total: int, members: Sequence[Member], exponent: float) -> list[int] | None:
    """Divide whole units; None if they are fewer than the members need.

    Needs come first. What they leave is divided among the open members; if none is open, all parts
    grow in proportion.

    Parameters
    ----------
    total : int
    members : sequence of Member
    exponent : float
        1 / (1 + p): open parts are proportional to this power of the sizes.

    Returns
    -------
    list of int, or None
        They add up to the total exactly, and none is below its need.
    """
    needs = [member.need for member in members]
    left = total - sum(needs)
    if left < 0:
        return None
    is_open = [member.is_open for member in members]
    if not any(is_open):
        return split(total, [Fraction(need) for need in needs])
    if left < sum(is_open):
        return None
    weights = _open_weights(members, exponent)
    extra = split(left, weights)
    if any(takes and not more for more, takes in zip(extra, is_open, strict=True)):
        # A unit for each at least: no question is answered for nothing.
        extra = split(left - sum(is_open), weights)
        extra = [more + int(takes) for more, takes in zip(extra, is_open, strict=True)]
    return [need + more for need, more in zip(needs, extra, strict=True)]


def _open_weights(members: Sequence[Member], exponent: float) -> list[Fraction]:
    """The part of each in what is left over: by weight, and the rest by size."""
    every = [member for member in members if member.is_open]
    by_weight = sum((member.fixed for member in every), Fraction(0))
    powers = [member.size**exponent if member.is_open else 0.0 for member in members]
    fixed = [member.fixed if member.is_open else Fraction(0) for member in members]
    largest = max(powers)
    if not largest:
        return fixed
    sizes = [digits(power / largest) for power in powers]
    rest = (1 - by_weight) / sum(sizes)
    return [part + rest * size for part, size in zip(fixed, sizes, strict=True)]


def digits(value: float) -> Fraction:
    """A number in few digits, so that shares are the same on every machine.

    >>> digits(1 / 3)
    Fraction(333333, 1000000)
    """
    return Fraction(f"{value:.{DIGITS}g}")
