"""The ways in which a plan may spend its cost, and what each of them leads to.

A plan that costs (epsilon, delta) may answer any of its questions within a rho, together: the rho
that ``approx_to_zcdp`` allows for their part of epsilon and of delta. All others are answered at
parts of epsilon, as they are alone.

Guarantee: the cost. Holds because: answers at rho_1, ..., rho_k are (rho_1 + ... + rho_k)-zCDP
together (Bun, Steinke 2016, Lemma 1.7), which is (epsilon', delta')-DP by Canonne, Kamath, Steinke
2020, Cor. 13; with the other answers it adds up to (epsilon, delta) (Dwork, Lei 2009). All parts
are fixed before any answer is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.answers.accuracy import Kind, kind_of
from sfumato.basics.numbers import DELTA_UNITS, EPSILON_UNITS, split
from sfumato.privacy.allocation import of_units, units_of
from sfumato.privacy.measures import (
    ZCDP,
    ApproxDP,
    CentralMeasure,
    Money,
    PureDP,
    approx_to_zcdp,
    charge,
    without_delta,
    zcdp_to_approx,
)
from sfumato.publishing.plan_parts import Member, PlannedQuestion, parts_of


@dataclass(frozen=True)
class Division:
    """One way to spend a cost.

    Attributes
    ----------
    in_rho : tuple of int
        The questions that are answered within one rho.
    costs : tuple of measure
        What each question may spend.
    block : ApproxDP or None
        What the questions in rho are charged together, where the cost is an (epsilon, delta).
    """

    in_rho: tuple[int, ...]
    costs: tuple[CentralMeasure, ...]
    block: ApproxDP | None = None

    def money(self, used: Sequence[CentralMeasure], rule: str) -> Money:
        """The charge for what the questions use of their parts, in an account's units.

        What is charged for several questions in rho together is charged whole.
        """
        together = self.in_rho if self.block is not None and rule != "zcdp" else ()
        charges = [charge(cost, rule) for i, cost in enumerate(used) if i not in together]
        if together and self.block is not None:
            charges.append(charge(self.block, rule))
        return sum(first for first, _ in charges), sum(second for _, second in charges)


class Divider:
    """Divides costs among the questions of a plan.

    Parameters
    ----------
    questions : sequence of PlannedQuestion
    shares : sequence of Fraction or None
        As stated; None: they are picked.
    squared : bool
        Whether the sum of squared half-widths is made least, and not that of half-widths.
    """

    def __init__(
        self,
        questions: Sequence[PlannedQuestion],
        shares: Sequence[Fraction] | None,
        *,
        squared: bool,
    ) -> None:
        self.questions = list(questions)
        self.shares = shares
        self.squared = squared
        self._equal = self._equal_parts()
        self._delta_users = [i for i, each in enumerate(self.questions) if each.uses_delta]

    def spent(self, cost: CentralMeasure, in_rho: tuple[int, ...]) -> CentralMeasure:
        """A cost without its delta, where no question would use it."""
        users = set(self._delta_users) - set(in_rho)
        return cost if in_rho or users else without_delta(cost)

    # --- what is needed ---------------------------------------------------------------------------

    def needed(self, kind: Kind, in_rho: tuple[int, ...]) -> Fraction:
        """The least epsilon, or rho, at which every question is as accurate as requested.

        Parameters
        ----------
        kind : Kind
            The measure of the cost.
        in_rho : tuple of int
        """
        if kind.name == "zcdp":
            wanted = [each for each in self.questions if each.within is not None]
            return sum((Fraction(each.need(kind), kind.units) for each in wanted), Fraction(0))
        deltas, for_block = self._deltas(kind.delta, in_rho)
        found = self._block_need(in_rho, for_block)
        for i, each in enumerate(self.questions):
            if each.within is not None and i not in in_rho:
                found += Fraction(each.need(Kind.of("pure", deltas[i])), kind.units)
        return found

    def _block_need(self, in_rho: tuple[int, ...], delta: Fraction) -> Fraction:
        """The epsilon that the questions in rho need together."""
        kind = Kind.of("zcdp")
        wanted = [self.questions[i] for i in in_rho if self.questions[i].within is not None]
        units = sum(each.need(kind) for each in wanted)
        if not units:
            return Fraction(0)
        return Fraction(zcdp_to_approx(Fraction(units, kind.units), delta).epsilon)

    def _deltas(self, delta: Fraction, in_rho: tuple[int, ...]) -> tuple[list[Fraction], Fraction]:
        """The delta of each question outside of the rho, and that of the rho: equal parts."""
        users = [i for i in self._delta_users if i not in in_rho]
        if self.shares is None:
            weights = [Fraction(1)] * len(users) + [Fraction(1)] * bool(in_rho)
        else:
            weights = [self.shares[i] for i in users]
            weights += [sum((self.shares[i] for i in in_rho), Fraction(0))] * bool(in_rho)
        found = [Fraction(0)] * len(self.questions)
        if not weights or not delta:
            return found, Fraction(0)
        parts = [Fraction(part, DELTA_UNITS) for part in split(int(delta * DELTA_UNITS), weights)]
        for i, part in zip(users, parts, strict=False):
            found[i] = part
        return found, parts[-1] if in_rho else Fraction(0)

    # --- division ---------------------------------------------------------------------------------

    def divided(self, cost: CentralMeasure, in_rho: tuple[int, ...]) -> Division | None:
        """Divide a cost; None if it is less than the questions need."""
        everyone = tuple(range(len(self.questions)))
        if not isinstance(cost, ApproxDP):
            parts = self._parts(cost, everyone)
            return None if parts is None else Division((), tuple(parts))
        deltas, for_block = self._deltas(cost.delta, in_rho)
        alone = [i for i in everyone if i not in in_rho]
        each = Fraction(1, len(everyone))
        members = [
            self._member(i, self._equal[i], _epsilon_part(cost, each, deltas[i]), each)
            for i in alone
        ]
        if in_rho:
            members.append(self._block(cost, in_rho, for_block))
        units = self._shared(int(cost.epsilon * EPSILON_UNITS), members, 1.0)
        if units is None:
            return None
        epsilons = [Fraction(part, EPSILON_UNITS) for part in units]
        found: dict[int, CentralMeasure] = {
            i: _with_delta(epsilon, deltas[i]) for i, epsilon in zip(alone, epsilons, strict=False)
        }
        if not in_rho:
            return Division((), tuple(found[i] for i in everyone))
        block = ApproxDP(epsilons[-1], for_block)
        inner = self._parts(approx_to_zcdp(block.epsilon, block.delta), in_rho)
        if inner is None:
            return None
        found |= dict(zip(in_rho, inner, strict=True))
        return Division(in_rho, tuple(found[i] for i in everyone), block)

    def _parts(self, cost: PureDP | ZCDP, among: Sequence[int]) -> list[CentralMeasure] | None:
        """Divide an epsilon or a rho among some questions, all in its measure."""
        whole = sum((self._equal[i] for i in among), Fraction(0))
        each = Fraction(1, len(among))
        members = []
        for i in among:
            part = self._equal[i] / whole if whole else Fraction(0)
            members.append(self._member(i, part, _part_of(cost, each), each))
        power = 0.5 if isinstance(cost, ZCDP) else 1.0
        units = self._shared(units_of(cost), members, power)
        return None if units is None else [of_units(cost, part) for part in units]

    def _shared(self, total: int, members: list[Member], power: float) -> list[int] | None:
        return parts_of(total, members, 1 / (1 + self._power(power)))

    def _power(self, power: float) -> float:
        """The power of its cost to which the error that counts falls."""
        return 2 * power if self.squared else power

    def _member(self, i: int, part: Fraction, reference: CentralMeasure, level: Fraction) -> Member:
        """A question that takes part: by its share, its need, its error at a cost, or its weight.

        Parameters
        ----------
        i : int
        part : Fraction
            Its part of what is divided, by its share or its weight.
        reference : measure
            The cost at which its error is looked up. It is the same for all, so that rounding to
            whole half-widths does not tell apart what is alike.
        level : Fraction
            Which part of what is divided that cost is.
        """
        if self.shares is not None:
            return Member(0, True, part)
        each = self.questions[i]
        if each.within is not None:
            return Member(each.need(kind_of(reference)), False)
        power = self._power(0.5 if isinstance(reference, ZCDP) else 1.0)
        error = each.error(reference, squared=self.squared)
        if error is None:
            return Member(0, True, part)
        return Member(0, True, size=error * float(level) ** power)

    def _block(self, cost: ApproxDP, in_rho: tuple[int, ...], delta: Fraction) -> Member:
        """The questions in rho as one member: their error falls with their epsilon as one's does,
        since the rho of an (epsilon, delta) grows about with the square of epsilon.
        """
        part = sum((self._equal[i] for i in in_rho), Fraction(0))
        if self.shares is not None:
            return Member(0, True, part)
        need = int(self._block_need(in_rho, delta) * EPSILON_UNITS)
        is_open = [i for i in in_rho if self.questions[i].within is None]
        if not is_open:
            return Member(need, False)
        reference = _epsilon_part(cost, part, Fraction(0))
        inner = self._parts(approx_to_zcdp(Fraction(reference.epsilon), delta), is_open)
        size = 0.0
        by_weight = Fraction(0)
        for i, own in zip(is_open, inner or [], strict=False):
            error = self.questions[i].error(own, squared=self.squared)
            size += error or 0.0
            by_weight += self._equal[i] if error is None else 0
        return Member(need, True, by_weight, size * float(part) ** self._power(1.0))

    def _equal_parts(self) -> list[Fraction]:
        """The part of each question by its share, or by its weight among those that are open."""
        weights = [each.weight if each.within is None else Fraction(0) for each in self.questions]
        if self.shares is not None:
            weights = list(self.shares)
        whole = sum(weights, Fraction(0))
        return [weight / whole if whole else Fraction(0) for weight in weights]


def _part_of(cost: PureDP | ZCDP, part: Fraction) -> CentralMeasure:
    """A part of a cost, one unit at least."""
    return of_units(cost, max(1, int(units_of(cost) * part)))


def _epsilon_part(cost: ApproxDP, part: Fraction, delta: Fraction) -> PureDP | ApproxDP:
    """A part of an epsilon, one unit at least, with a delta."""
    units = max(1, int(cost.epsilon * part * EPSILON_UNITS))
    return _with_delta(Fraction(units, EPSILON_UNITS), delta)


def _with_delta(epsilon: Fraction, delta: Fraction) -> PureDP | ApproxDP:
    return ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
