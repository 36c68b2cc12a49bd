"""Say in sentences what was picked for a plan, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import msgspec

from sfumato.answers.accuracy import kind_of
from sfumato.errors import SfumatoError
from sfumato.privacy.measures import ApproxDP, CentralMeasure
from sfumato.publishing.divisions import Divider, Division
from sfumato.publishing.plan import Plan

WORTH_SAYING = 1.005  # times as much


@dataclass(frozen=True)
class Offer:
    """One way to spend a cost, and what it leads to.

    Attributes
    ----------
    division : Division
    score : float
        The predicted error, or the cost that is needed: the least one is taken.
    """

    division: Division
    score: float


@dataclass(frozen=True)
class Why:
    """Why the best of several offers is the best.

    Attributes
    ----------
    plan : Plan
    cost : measure
        Of the whole plan.
    divider : Divider
    best : Offer
    offers : tuple of Offer
        All that are accurate enough.
    rule : str or None
        The measure of the account.
    needs : dict
        If every question has an accuracy: the epsilon or rho that they need, by the questions that
        are answered in rho.
    """

    plan: Plan
    cost: CentralMeasure
    divider: Divider
    best: Offer
    offers: tuple[Offer, ...]
    rule: str | None
    needs: Mapping[tuple[int, ...], Fraction]

    def sentences(self, *, is_least: bool) -> tuple[str, ...]:
        """What was picked, and why; ``is_least``: the cost was picked, too."""
        said = [self._of_noise(), self._of_shares(is_least)]
        return tuple(f"{one[:1].upper()}{one[1:]}." for one in said if one)

    # --- noise ------------------------------------------------------------------------------------

    def _of_noise(self) -> str:
        if not isinstance(self.cost, ApproxDP):
            return ""
        picked = self._noise(self.best.division.in_rho)
        if self.needs:
            return f"{picked}, {self._of_needs()}"
        others = [offer for offer in self.offers if offer is not self.best]
        if not others:
            return f"{picked}, {self._only_way()}"
        rival = min(others, key=lambda offer: offer.score)
        with_rival = self._noise(rival.division.in_rho)
        return f"{picked}, because {self._errors(rival, with_rival)}"

    def _of_needs(self) -> str:
        """What the accuracies need with the noise that was picked, and with another."""
        best = self.best.division.in_rho
        others = [way for way in self.needs if way != best]
        if not others:
            return self._only_way()
        rival = min(others, key=self.needs.__getitem__)
        ours, theirs = (self._level(way) for way in (best, rival))
        asked = "because the accuracy that is asked for needs"
        return f"{asked} {ours} with it and {theirs} with {self._noise(rival)}"

    def _level(self, way: tuple[int, ...]) -> CentralMeasure:
        """The cost that the accuracies need."""
        kind = kind_of(self.cost)
        return self.divider.spent(kind.cost(int(self.needs[way] * kind.units)), way)

    def _only_way(self) -> str:
        """Why there was nothing to compare it with."""
        if self.plan.noise is not msgspec.UNSET:
            return "as the plan states"
        if self.rule == "pure":
            return "because the account counts epsilon alone"
        if self.plan.shares is not None:
            return "because with any other some answer would be less accurate, at the stated shares"
        return "because with any other the cost is not enough"

    def _noise(self, in_rho: tuple[int, ...]) -> str:
        """The noise, in words, if these questions are answered in rho."""
        questions = self.divider.questions
        number = len(questions)
        if not in_rho:
            named = "Laplace noise"
            return named if all(each.counts for each in questions) else f"pure epsilon ({named})"
        named = "Gaussian noise"
        if not all(questions[i].counts for i in in_rho):
            named = "a common rho (Gaussian noise on counts)"
        return (
            named if len(in_rho) == number else f"{named} for {len(in_rho)} of {number} questions"
        )

    def _errors(self, rival: Offer, with_rival: str) -> str:
        """How accurate the two are, side by side."""
        ours = self._widths(self.best.division.costs)
        theirs = self._widths(rival.division.costs)
        number = len(self.plan.questions)
        if ours is None or theirs is None:
            times = rival.score / self.best.score
            return f"at {self.cost} errors are {times:.2f} times as large with {with_rival}"
        if len(set(ours)) == len(set(theirs)) == 1:
            each = "one question has" if number == 1 else f"{number:,} questions have"
            return (
                f"{each} +-{ours[0]:,.6g} at {self.cost} with it and +-{theirs[0]:,.6g} "
                f"with {with_rival}"
            )
        sums = [self._total(offer.division.costs) for offer in (self.best, rival)]
        return (
            f"{self._what} add up to {sums[0]:,.6g} at {self.cost} with it "
            f"and to {sums[1]:,.6g} with {with_rival}"
        )

    def _widths(self, costs: Sequence[CentralMeasure]) -> list[float] | None:
        """The half-widths of the open questions; None unless all of them are counts."""
        found = []
        for each, cost in zip(self.divider.questions, costs, strict=True):
            width = each.half_width(cost)
            if each.within is None:
                if width is None or not each.counts:
                    return None
                found.append(width)
        return found

    def _total(self, costs: Sequence[CentralMeasure]) -> float:
        """The error of all open questions that are counts."""
        parts = zip(self.divider.questions, costs, strict=True)
        squared = self.divider.squared
        errors = [each.error(cost, squared=squared) for each, cost in parts if each.within is None]
        return sum(error for error in errors if error is not None)

    @property
    def _what(self) -> str:
        """What is added up."""
        squares = "squares of the " if self.divider.squared else ""
        weighed = "weighted " if self.plan.weights is not msgspec.UNSET else ""
        return f"the {weighed}{squares}half-widths of all counts"

    # --- shares -----------------------------------------------------------------------------------

    def _of_shares(self, is_least: bool) -> str:
        if self.plan.shares is not None:
            return ""
        if is_least:
            least = self.divider.spent(self.cost, self.best.division.in_rho)
            return f"{least} is the least cost at which every answer is as accurate as requested"
        is_open = [each.within is None for each in self.divider.questions]
        if not any(is_open):
            enough = self._level(self.best.division.in_rho)
            return (
                "each question has what it needs for the accuracy that is asked for, and "
                f"{enough} would be enough"
            )
        if not all(is_open):
            return (
                "questions with an accuracy have what they need; with the rest, "
                f"{self._what} of the others add up to the least"
            )
        return self._beside_equal_shares()

    def _beside_equal_shares(self) -> str:
        """What picked shares gain over equal ones, and at whose expense."""
        ours = self.best.division
        shares = [Fraction(1)] * len(self.plan.questions)
        divider = Divider(self.divider.questions, shares, squared=self.divider.squared)
        try:
            equal = divider.divided(self.cost, ours.in_rho)
        except SfumatoError:
            return ""
        if equal is None or equal == ours or not self._total(ours.costs):
            return ""
        least = f"the shares make {self._what} add up to the least{self._reach(ours)}"
        times = self._total(equal.costs) / self._total(ours.costs)
        if times < WORTH_SAYING:
            return least
        ones = ", ".join("1" for _ in shares[:3])
        dots = ", ..." if len(shares) > 3 else ""
        return (
            f"{least}: with equal shares, shares=[{ones}{dots}], "
            f"they add up to {times:.2f} times as much{self._reach(equal)}"
        )

    def _reach(self, division: Division) -> str:
        """The smallest and the largest half-width of a count, in brackets."""
        widths = [
            width
            for each, cost in zip(self.divider.questions, division.costs, strict=True)
            if each.counts and (width := each.half_width(cost)) is not None
        ]
        ends = dict.fromkeys(f"+-{width:,.6g}" for width in (min(widths), max(widths)))
        return f" ({' to '.join(ends)})"
