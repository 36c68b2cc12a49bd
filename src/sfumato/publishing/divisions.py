"""The ways in which a plan may spend its cost, and what each of them leads to.

*How a cost is divided among questions* (``parts_of``), and how accurate each answer would be with
its part.

Everything here follows from previews: no data are read.

A question's half-width is taken to be proportional to the inverse of its epsilon, or of the square
root of its rho. Then sum_i a_i / c_i^p, over parts c_i with a given sum, is least where c_i is
proportional to a_i^(1 / (1 + p)): set the derivatives equal (Lagrange). For histograms with equal
noise, a_i is the number of cells: the shares are the square roots of the cells under Laplace noise
(p = 1), and their powers of 2/3 under Gaussian noise (p = 1/2). For squared half-widths p is
doubled: powers of 1/3 and 1/2.

*Divisions* (``Divider``).

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

from sfumato.answers import (
    AccuracyRequest,
    AnyQuestion,
    CountsPreview,
    CountsRelease,
    Kind,
    Preview,
    Within,
    answer_of,
    kind_of,
    least_alone,
)
from sfumato.basics.numbers import DELTA_UNITS, EPSILON_UNITS, split
from sfumato.domain import Domain
from sfumato.errors import SfumatoError, UsageError
from sfumato.privacy import (
    ZCDP,
    ApproxDP,
    CentralMeasure,
    Money,
    PureDP,
    Unit,
    approx_to_zcdp,
    charge,
    of_units,
    pure_epsilon,
    units_of,
    without_delta,
    zcdp_to_approx,
)

# --- parts ----------------------------------------------------------------------------------------

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


# --- divisions ------------------------------------------------------------------------------------


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
