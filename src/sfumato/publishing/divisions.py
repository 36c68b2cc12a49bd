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

*Divisions* (``divide``).

A plan that costs (epsilon, delta) may answer any of its questions within a rho, together: the rho
that ``approx_to_zcdp`` allows for their part of epsilon and of delta. All others are answered at
parts of epsilon, as they are alone.

Guarantee: the cost. Holds because: answers at rho_1, ..., rho_k are (rho_1 + ... + rho_k)-zCDP
together (Bun, Steinke 2016, Lemma 1.7), which is (epsilon', delta')-DP by Canonne, Kamath, Steinke
2020, Cor. 13; with the other answers it adds up to (epsilon, delta) (Dwork, Lei 2009). All parts
are fixed before any answer is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import msgspec

from sfumato.answers import (
    AnyQuestion,
    CountsPreview,
    CountsRelease,
    Kind,
    Preview,
    Within,
    answer_of,
    kind_of,
    least,
)
from sfumato.basics import DELTA_UNITS, EPSILON_UNITS, split
from sfumato.errors import SfumatoError, UsageError
from sfumato.privacy import (
    ZCDP,
    ApproxDP,
    CentralMeasure,
    Event,
    Money,
    PureDP,
    approx_to_zcdp,
    charge_together,
    of_units,
    pure_epsilon,
    sum_of,
    units_of,
    without_delta,
    worst_event,
    zcdp_to_approx,
)

# --- parts ----------------------------------------------------------------------------------------

DIGITS = 6  # of a picked share: the same ones on every machine
SMALL = ApproxDP(1, Fraction(1, 10**6))  # a cost at which a question shows whether it uses a delta


class Choice(msgspec.Struct, frozen=True):
    """How the cost of a plan is spent, and why.

    Attributes
    ----------
    cost : PureDP, ApproxDP or ZCDP
        Of the whole plan, at most: as it was stated, or the least one that is accurate enough;
        without the delta, if no question uses it.
    costs : tuple of measure
        What each question may spend. Those in rho add up to the rho that their part of an
        (epsilon, delta) allows; all others add up to the rest of it.
    block : ApproxDP or None
        What the questions in rho are charged together, where the cost is an (epsilon, delta).
    in_rho : tuple of int
        The places of the questions that are answered within one rho, out of an (epsilon, delta).
    sentences : tuple of str
        What was picked, and why.
    """

    cost: CentralMeasure
    costs: tuple[CentralMeasure, ...]
    block: ApproxDP | None = None
    in_rho: tuple[int, ...] = ()
    sentences: tuple[str, ...] = ()

    def money(self, used: Sequence[CentralMeasure], rule: str) -> Money:
        """Charge for what the questions use of their parts, in the units of an account.

        What is charged for several questions in rho together is charged whole.
        """
        together = self.in_rho if self.block is not None and rule != "zcdp" else ()
        charged = [cost for i, cost in enumerate(used) if i not in together]
        if together and self.block is not None:
            charged.append(self.block)
        return charge_together(charged, rule)

    def event(self, events: Sequence[Event]) -> Event:
        """The event of the whole plan, from those of its questions.

        Questions in rho that are charged one (epsilon, delta) together draw what that allows.
        """
        if self.block is None:
            return sum_of(events)
        apart = [event for i, event in enumerate(events) if i not in self.in_rho]
        return sum_of([*apart, worst_event(self.block)])

    def __str__(self) -> str:
        return " ".join(self.sentences)


@dataclass(frozen=True)
class Candidate:
    """One question of a plan, with what the plan asks of it.

    Attributes
    ----------
    question : Question
    preview : function of a cost
        What the question would publish at a cost; what it refuses, it refuses there.
    within : Within or None
        How accurate its answer must be.
    weight : Fraction
        What its errors weigh.
    share : Fraction or None
        Its stated share; None: the shares are picked.
    power : {1, 2}
        Whether half-widths are added up, or their squares.
    starts : dict
        What other questions of the plan needed, by measure and accuracy: a search begins there.
    needs : dict
        What this question needs, by measure.
    """

    question: AnyQuestion
    preview: Callable[[CentralMeasure], Preview]
    within: Within | None
    weight: Fraction
    share: Fraction | None = None
    power: int = 1
    starts: dict[tuple[Kind, Within], int] = field(default_factory=dict, repr=False)
    needs: dict[Kind, int] = field(default_factory=dict, repr=False)

    @property
    def is_open(self) -> bool:
        """Whether no accuracy is asked of it."""
        return self.within is None

    @property
    def claim(self) -> Fraction:
        """Its share, or what it weighs among the open questions; 0 if it is none of them."""
        if self.share is not None:
            return self.share
        return self.weight if self.is_open else Fraction(0)

    def half_width(self, cost: CentralMeasure) -> float | None:
        """Return that of its least accurate number, at 95% confidence; None if it states none."""
        preview = self.preview(cost)
        if not self._states_accuracy(preview):
            return None
        try:
            return float(preview.accuracy())
        except UsageError:  # it depends on what is not known beforehand
            return None

    def accepts(self, cost: CentralMeasure) -> bool:
        """Tell whether it can be answered at a cost."""
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
        return self.accepts(SMALL) and isinstance(self.preview(SMALL).cost, ApproxDP)

    @property
    def counts(self) -> bool:
        """Whether it is a table of counts of a known size."""
        return self.accepts(SMALL) and self.error(SMALL) is not None

    def error(self, cost: CentralMeasure) -> float | None:
        """Add up the half-widths of its numbers, or their squares, times its weight.

        None if it is no table of counts of a known size: its errors are not in rows, or how many
        they are is not known, and they are not added to those of others.
        """
        preview = self.preview(cost)
        width = self.half_width(cost)
        if not isinstance(preview, CountsPreview) or preview.cells is None or width is None:
            return None
        # Half-widths are whole numbers. Where even the noise is below one, its size still differs.
        return float(self.weight) * preview.cells * max(width, 0.5) ** self.power

    def loss(self, cost: CentralMeasure) -> float:
        """Return its half-width, or, where it states none, the inverse of its epsilon."""
        width = self.half_width(cost)
        return max(width, 0.5) if width is not None else 1 / float(pure_epsilon(cost))

    def _states_accuracy(self, preview: Preview) -> bool:
        """Tell whether a preview states the accuracy of the answer.

        That of counts from which the answer is computed, such as centres of clusters, is another.
        """
        if not isinstance(preview, CountsPreview):
            return preview.states_accuracy
        try:
            is_answer = issubclass(answer_of(type(self.question)), CountsRelease)
        except UsageError:  # a question of the user's, which is not registered
            return False
        return preview.states_accuracy and is_answer

    def need(self, kind: Kind) -> int:
        """Return the least units of a measure at which it is accurate enough; 0 if it is open.

        Raises
        ------
        UsageError
            If it cannot say beforehand how accurate it would be.
        Infeasible
            If no cost suffices.
        """
        if self.within is not None and kind not in self.needs:
            self._require_accuracy(kind.cost(kind.units), self.within)
            start = self.starts.get((kind, self.within), kind.units)
            units = least(
                lambda units: self.is_met(kind.cost(units)), start, kind.most, str(self.within)
            )
            self.needs[kind] = self.starts[kind, self.within] = units
        return self.needs.get(kind, 0)

    def is_met(self, cost: CentralMeasure) -> bool:
        """Tell whether its answer is as accurate as requested; true where nothing is."""
        if self.within is None:
            return True
        width = self.preview(cost).accuracy(self.within.confidence, self.within.simultaneous)
        return float(width) <= self.within.half_width

    def _require_accuracy(self, cost: CentralMeasure, within: Within) -> None:
        """Refuse a question that cannot say beforehand how accurate its answer would be.

        What it says at some cost, it says at every cost: an axis of keys has no simultaneous
        accuracy, and a mean none without a number of rows.
        """
        subject = f"the accuracy of {self.question.title}"
        try:
            preview = self.preview(cost)
            states = self._states_accuracy(preview)
            if states:
                preview.accuracy(within.confidence, within.simultaneous)
        except UsageError as error:
            guess = "State rows= of the plan, your own public guess"
            remedy = guess if "rows=" in error.remedy else error.remedy
            raise UsageError(f"{subject}, {error.asked}", error.obstacle, remedy) from None
        if not states:
            raise UsageError(
                subject,
                "it cannot say beforehand how accurate its answer would be",
                "Leave it out: it then takes a share by its weight",
            )


class Part(msgspec.Struct, frozen=True):
    """What takes part when units of one measure are divided: a question, or several together.

    Attributes
    ----------
    need : int
        Units that it needs to be as accurate as requested; 0 where nothing is.
    fixed : Fraction or None
        The part of what the needs leave over that it takes by its weight; None: it takes none.
    size : float
        Its error, times cost^power: what the rest of it is divided by.
    """

    need: int
    fixed: Fraction | None = None
    size: float = 0.0


def divided_units(total: int, parts: Sequence[Part], exponent: float) -> list[int] | None:
    """Divide whole units; None if they are fewer than the parts need.

    Needs come first. What they leave is divided among the open parts; if none is open, all grow in
    proportion.

    Parameters
    ----------
    total : int
    parts : sequence of Part
    exponent : float
        1 / (1 + p): open parts are proportional to this power of the sizes.

    Returns
    -------
    list of int, or None
        They add up to the total exactly, and none is below its need.
    """
    needs = [part.need for part in parts]
    is_open = [part.fixed is not None for part in parts]
    left = total - sum(needs)
    if left < sum(is_open):
        return None
    if not any(is_open):
        return split(total, [Fraction(need) for need in needs])
    weights = _open_weights(parts, exponent)
    # Needs come first: an open question never takes what an accuracy was promised from.
    extra = split(left, weights)
    if any(more < takes for more, takes in zip(extra, is_open, strict=True)):
        # A unit for each at least: no question is answered for nothing.
        needs = [need + takes for need, takes in zip(needs, is_open, strict=True)]
        extra = split(left - sum(is_open), weights)
    return [need + more for need, more in zip(needs, extra, strict=True)]


def _open_weights(parts: Sequence[Part], exponent: float) -> list[Fraction]:
    """Return what each takes of the units left over: by weight, and the rest by size."""
    fixed = [part.fixed or Fraction(0) for part in parts]
    powers = [0.0 if part.fixed is None else part.size**exponent for part in parts]
    largest = max(powers)
    if not largest:
        return fixed
    sizes = [digits(power / largest) for power in powers]
    rest = (1 - sum(fixed, Fraction(0))) / sum(sizes)
    return [share + rest * size for share, size in zip(fixed, sizes, strict=True)]


def digits(value: float) -> Fraction:
    """Round a number to few digits, so that shares are the same on every machine.

    >>> digits(1 / 3)
    Fraction(333333, 1000000)
    """
    return Fraction(f"{value:.{DIGITS}g}")


def spent(
    candidates: Sequence[Candidate], cost: CentralMeasure, in_rho: Sequence[int]
) -> CentralMeasure:
    """Return a cost without its delta, where no question would use it."""
    return cost if in_rho or _delta_users(candidates, in_rho) else without_delta(cost)


def needed(candidates: Sequence[Candidate], kind: Kind, in_rho: Sequence[int]) -> Fraction:
    """Return the least epsilon, or rho, at which every question is as accurate as requested.

    Parameters
    ----------
    candidates : sequence of Candidate
    kind : Kind
        The measure of the cost.
    in_rho : sequence of int
    """
    if kind.name == "zcdp":
        return Fraction(sum(candidate.need(kind) for candidate in candidates), kind.units)
    deltas, for_block = _deltas(candidates, kind.delta, in_rho)
    together = _block_need([candidates[i] for i in in_rho], for_block)
    alone = _outside(in_rho, candidates)
    units = sum(candidates[i].need(Kind.of("pure", deltas[i])) for i in alone)
    return together + Fraction(units, kind.units)


def divide(
    candidates: Sequence[Candidate], cost: CentralMeasure, in_rho: tuple[int, ...]
) -> Choice | None:
    """Divide a cost among questions, some in one rho; None if it is less than they need."""
    if isinstance(cost, ApproxDP):
        return _divide_approx(candidates, cost, in_rho)
    parts = _divide_alike(candidates, cost, range(len(candidates)))
    return None if parts is None else Choice(cost, tuple(parts))


def _divide_approx(
    candidates: Sequence[Candidate], cost: ApproxDP, in_rho: tuple[int, ...]
) -> Choice | None:
    """Divide an (epsilon, delta): parts of it for questions alone, and one for those in rho."""
    deltas, for_block = _deltas(candidates, cost.delta, in_rho)
    level = Fraction(1, len(candidates))
    alone = _outside(in_rho, candidates)
    shares = _shares(candidates)
    members = [
        _part(candidates[i], shares[i], _epsilon_part(cost, level, deltas[i]), level) for i in alone
    ]
    if in_rho:
        members.append(_block(candidates, cost, in_rho, for_block))
    units = divided_units(int(cost.epsilon * EPSILON_UNITS), members, _exponent(candidates, 1.0))
    if units is None:
        return None
    epsilons = [Fraction(part, EPSILON_UNITS) for part in units]
    costs: dict[int, CentralMeasure] = {
        i: _with_delta(epsilon, deltas[i]) for i, epsilon in zip(alone, epsilons, strict=False)
    }
    block = None
    if in_rho:
        block = ApproxDP(epsilons[-1], for_block)
        inner = _divide_alike(candidates, approx_to_zcdp(block.epsilon, block.delta), in_rho)
        if inner is None:
            return None
        costs |= dict(zip(in_rho, inner, strict=True))
    parts = tuple(costs[i] for i in range(len(candidates)))
    return Choice(spent(candidates, cost, in_rho), parts, block, in_rho)


def _outside(in_rho: Sequence[int], candidates: Sequence[Candidate]) -> list[int]:
    return [i for i in range(len(candidates)) if i not in in_rho]


def _delta_users(candidates: Sequence[Candidate], in_rho: Sequence[int]) -> list[int]:
    return [i for i in _outside(in_rho, candidates) if candidates[i].uses_delta]


def _block_need(candidates: Sequence[Candidate], delta: Fraction) -> Fraction:
    kind = Kind.of("zcdp")
    units = sum(candidate.need(kind) for candidate in candidates)
    if not units:
        return Fraction(0)
    return Fraction(zcdp_to_approx(Fraction(units, kind.units), delta).epsilon)


def _deltas(
    candidates: Sequence[Candidate], delta: Fraction, in_rho: Sequence[int]
) -> tuple[list[Fraction], Fraction]:
    """Divide a delta among the questions outside of the rho that use it, and the rho."""
    users = _delta_users(candidates, in_rho)
    groups = [[i] for i in users]
    if in_rho:
        groups.append(list(in_rho))
    deltas = [Fraction(0)] * len(candidates)
    if not groups or not delta:
        return deltas, Fraction(0)
    weights = [_stated_share(candidates, group) for group in groups]
    # Whole units, so that the parts add up to the delta exactly.
    parts = [Fraction(part, DELTA_UNITS) for part in split(int(delta * DELTA_UNITS), weights)]
    for_block = parts.pop() if in_rho else Fraction(0)
    for i, part in zip(users, parts, strict=True):
        deltas[i] = part
    return deltas, for_block


def _stated_share(candidates: Sequence[Candidate], group: Sequence[int]) -> Fraction:
    """Return the shares of a group together; 1 where shares are picked."""
    shares = (candidates[i].share or Fraction(0) for i in group)
    return sum(shares, Fraction(0)) or Fraction(1)


def _divide_alike(
    candidates: Sequence[Candidate], cost: PureDP | ZCDP, among: Sequence[int]
) -> list[CentralMeasure] | None:
    shares = _shares(candidates)
    # No share is above 0 where none of the questions is open: each then has what it needs.
    whole = sum((shares[i] for i in among), Fraction(0)) or Fraction(1)
    level = Fraction(1, len(among))
    reference = of_units(cost, max(1, int(units_of(cost) * level)))
    members = [_part(candidates[i], shares[i] / whole, reference, level) for i in among]
    power = 0.5 if isinstance(cost, ZCDP) else 1.0
    units = divided_units(units_of(cost), members, _exponent(candidates, power))
    return None if units is None else [of_units(cost, part) for part in units]


def _exponent(candidates: Sequence[Candidate], power: float) -> float:
    """Return 1 / (1 + p), where the error that counts falls to the power p of its cost."""
    return 1 / (1 + power * candidates[0].power)


def _part(
    candidate: Candidate, fixed: Fraction, reference: CentralMeasure, level: Fraction
) -> Part:
    """Make a question a part: by its share, its need, its error at a cost, or its weight.

    Parameters
    ----------
    candidate : Candidate
    fixed : Fraction
        Its part of what is divided, by its share or its weight.
    reference : measure
        The cost at which its error is looked up. It is the same for all, so that rounding to whole
        half-widths does not tell apart what is alike.
    level : Fraction
        Which part of what is divided that cost is.
    """
    if candidate.share is not None:
        return Part(0, fixed)
    if not candidate.is_open:
        return Part(candidate.need(kind_of(reference)))
    error = candidate.error(reference)
    if error is None:
        return Part(0, fixed)
    power = candidate.power * (0.5 if isinstance(reference, ZCDP) else 1.0)
    return Part(0, Fraction(0), error * float(level) ** power)


def _block(
    candidates: Sequence[Candidate], cost: ApproxDP, in_rho: Sequence[int], delta: Fraction
) -> Part:
    """Make the questions in rho one part.

    Their error falls with their epsilon as one's does, since the rho of an (epsilon, delta) grows
    about with the square of epsilon.
    """
    shares = _shares(candidates)
    part = sum((shares[i] for i in in_rho), Fraction(0))
    if candidates[0].share is not None:
        return Part(0, part)
    need = int(_block_need([candidates[i] for i in in_rho], delta) * EPSILON_UNITS)
    is_open = [i for i in in_rho if candidates[i].is_open]
    if not is_open:
        return Part(need)
    reference = _epsilon_part(cost, part, Fraction(0))
    rho = approx_to_zcdp(Fraction(reference.epsilon), delta)
    inner = _divide_alike(candidates, rho, is_open) or []
    unknown = Fraction(0)
    error_sum = 0.0
    for i, own in zip(is_open, inner, strict=False):
        error = candidates[i].error(own)
        if error is None:
            unknown += shares[i]
        else:
            error_sum += error
    return Part(need, unknown, error_sum * float(part) ** candidates[0].power)


def _shares(candidates: Sequence[Candidate]) -> list[Fraction]:
    """Return the part of each by its share, or by its weight among those that are open."""
    claims = [candidate.claim for candidate in candidates]
    whole = sum(claims, Fraction(0)) or Fraction(1)
    return [claim / whole for claim in claims]


def _epsilon_part(cost: ApproxDP, part: Fraction, delta: Fraction) -> PureDP | ApproxDP:
    """Return a part of an epsilon, one unit at least, with a delta."""
    units = max(1, int(cost.epsilon * part * EPSILON_UNITS))
    return _with_delta(Fraction(units, EPSILON_UNITS), delta)


def _with_delta(epsilon: Fraction, delta: Fraction) -> PureDP | ApproxDP:
    return ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
