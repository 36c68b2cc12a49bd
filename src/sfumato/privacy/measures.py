"""Privacy measures: how much is promised, as exact numbers.

Never mixed without a named conversion.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

import msgspec

from sfumato.basics.numbers import (
    DELTA_UNITS,
    EPSILON_UNITS,
    RHO_UNITS,
    Exactly,
    Number,
    decimal,
    fraction,
    positive,
    units_down,
    units_up,
)
from sfumato.errors import UsageError

Money: TypeAlias = tuple[int, int]
"""An amount in whole units: of epsilon or rho, and of delta."""

LARGEST_EPSILON = 10**9
LARGEST_RHO = 10**6
"""The largest costs that a ledger can count."""


class PureDP(msgspec.Struct, frozen=True, tag="pure", forbid_unknown_fields=True):
    """Pure epsilon-differential privacy (Dwork, McSherry, Nissim, Smith, TCC 2006).

    >>> PureDP("0.5").money
    (500000000, 0)
    """

    epsilon: Number

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(
            self, "epsilon", _at_most(positive(self.epsilon, "epsilon"), "epsilon", LARGEST_EPSILON)
        )

    @property
    def money(self) -> Money:
        """What it costs, in whole units, rounded up."""
        return units_up(self.epsilon, EPSILON_UNITS), 0

    def __str__(self) -> str:
        return f"epsilon = {decimal(self.epsilon)}"


class ApproxDP(msgspec.Struct, frozen=True, tag="approx", forbid_unknown_fields=True):
    """Approximate (epsilon, delta)-differential privacy.

    >>> ApproxDP("3", "1e-6").money
    (3000000000, 1000000000000)
    """

    epsilon: Number
    delta: Number

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(
            self, "epsilon", _at_most(positive(self.epsilon, "epsilon"), "epsilon", LARGEST_EPSILON)
        )
        delta = fraction(self.delta, "delta")
        if not 0 <= delta < 1:
            raise UsageError(
                f"delta = {decimal(delta)}",
                "delta is a probability below 1",
                "Choose a delta far below one over the number of persons, such as 1e-6",
            )
        msgspec.structs.force_setattr(self, "delta", delta)

    @property
    def money(self) -> Money:
        """What it costs, in whole units, rounded up."""
        return units_up(self.epsilon, EPSILON_UNITS), units_up(self.delta, DELTA_UNITS)

    def __str__(self) -> str:
        return f"epsilon = {decimal(self.epsilon)}, delta = {decimal(self.delta)}"


class ZCDP(msgspec.Struct, frozen=True, tag="zcdp", forbid_unknown_fields=True):
    """Zero-concentrated differential privacy, rho (Bun and Steinke, TCC 2016).

    >>> ZCDP("0.5").money
    (500000000000, 0)
    """

    rho: Number

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(
            self, "rho", _at_most(positive(self.rho, "rho"), "rho", LARGEST_RHO)
        )

    @property
    def money(self) -> Money:
        """What it costs, in whole units, rounded up."""
        return units_up(self.rho, RHO_UNITS), 0

    def __str__(self) -> str:
        return f"rho = {decimal(self.rho)}"


class MetricDP(msgspec.Struct, frozen=True, tag="metric", forbid_unknown_fields=True):
    """Metric privacy: two persons' reports differ by a factor of at most exp(epsilon * distance).

    Chatzikokolakis, Andres, Bordenabe, Palamidessi, PETS 2013. It composes by adding epsilons, and
    no central account holds it: each person's own device pays.

    >>> import sfumato as sf
    >>> sf.BPM(epsilon=2, L=0.3, dimension=2).guarantee.measure
    MetricDP(epsilon=Fraction(2, 1), metric='euclidean')
    """

    epsilon: Number
    metric: str = "euclidean"

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(
            self, "epsilon", _at_most(positive(self.epsilon, "epsilon"), "epsilon", LARGEST_EPSILON)
        )

    def __str__(self) -> str:
        return f"epsilon = {decimal(self.epsilon)} per unit of {self.metric} distance"


CentralMeasure: TypeAlias = PureDP | ApproxDP | ZCDP
Measure: TypeAlias = CentralMeasure | MetricDP


def spendable(measure: CentralMeasure) -> CentralMeasure:
    """Bring a cost to whole units, rounded down.

    So what a mechanism uses never exceeds what the account was charged.
    """
    match measure:
        case PureDP(epsilon=epsilon):
            return PureDP(_whole(epsilon, EPSILON_UNITS, "epsilon"))
        case ApproxDP(epsilon=epsilon, delta=delta):
            return ApproxDP(
                _whole(epsilon, EPSILON_UNITS, "epsilon"),
                Fraction(units_down(delta, DELTA_UNITS), DELTA_UNITS),
            )
        case ZCDP(rho=rho):
            return ZCDP(_whole(rho, RHO_UNITS, "rho"))


def total_of(measure: CentralMeasure) -> Money:
    """The total of an account, in whole units, rounded down: never more than was stated."""
    match spendable(measure):
        case PureDP(epsilon=epsilon):
            return int(epsilon * EPSILON_UNITS), 0
        case ApproxDP(epsilon=epsilon, delta=delta):
            return int(epsilon * EPSILON_UNITS), int(delta * DELTA_UNITS)
        case ZCDP(rho=rho):
            return int(rho * RHO_UNITS), 0


def without_delta(cost: CentralMeasure) -> CentralMeasure:
    """What a mechanism that needs no delta uses of a cost, and is charged for.

    Parameters
    ----------
    cost : PureDP, ApproxDP or ZCDP

    Returns
    -------
    PureDP or ZCDP

    >>> import sfumato as sf
    >>> from sfumato.extending import without_delta
    >>> without_delta(sf.ApproxDP("0.5", "1e-6"))
    PureDP(epsilon=Fraction(1, 2))
    """
    return PureDP(cost.epsilon) if isinstance(cost, ApproxDP) else cost


def asked_cost(*, epsilon: Exactly | None, delta: Exactly, rho: Exactly | None) -> CentralMeasure:
    """Read the cost of a release from its keywords: ``epsilon`` (with ``delta``) or ``rho``, never
    both.
    """
    return spendable(measure_of("the cost of a release", epsilon=epsilon, delta=delta, rho=rho))


def measure_of(
    what: str,
    *,
    epsilon: Exactly | None = None,
    delta: Exactly = 0,
    rho: Exactly | None = None,
    prefix: str = "",
) -> CentralMeasure:
    """Read a cost or a total as it was given: an epsilon, with or without a delta, or a rho.

    Parameters
    ----------
    what : str
        What is read, as an error names it.
    prefix : str
        Of the three names in an error: "--" where they are options.

    Raises
    ------
    UsageError
        If both epsilon and rho are given, or neither, or a number is out of range.

    >>> str(measure_of("a total", epsilon=3, delta="1e-6"))
    'epsilon = 3, delta = 0.000001'
    """
    has_delta = fraction(delta, "delta") != 0
    if epsilon is not None and rho is None:
        return ApproxDP(epsilon, delta) if has_delta else PureDP(epsilon)
    if rho is not None and epsilon is None:
        if has_delta:
            raise rho_with_delta(prefix)
        return ZCDP(rho)
    equals = " " if prefix == "--" else "="
    quote = "" if prefix == "--" else '"'
    if epsilon is None:
        obstacle = f"neither {prefix}epsilon nor {prefix}rho is given"
    else:
        obstacle = f"{prefix}epsilon and {prefix}rho are both given, and one of them is enough"
    remedy = (
        f"Write {prefix}epsilon{equals}{quote}0.5{quote}, "
        f"or {prefix}rho{equals}{quote}0.01{quote} for Gaussian noise"
    )
    raise UsageError(what, obstacle, remedy)


def rho_with_delta(prefix: str = "") -> UsageError:
    """The error of a rho that is given beside a delta."""
    asked = f"{prefix}rho with {prefix}delta"
    return UsageError(asked, "zero-concentrated privacy has no delta", f"Leave {prefix}delta out")


def _at_most(value: Fraction, name: str, limit: int) -> Fraction:
    if value > limit:
        article = "an" if name == "epsilon" else "a"
        raise UsageError(
            f"{article} {name} above {limit:,}",
            "no ledger counts that far, and it promises nothing",
            f"Choose a smaller {name}",
        )
    return value


def _whole(value: Fraction, units: int, name: str) -> Fraction:
    """A number in whole units, rounded down, as a number again; less than one unit is refused."""
    down = units_down(value, units)
    if down == 0:
        raise UsageError(
            f"{name} = {decimal(value)}",
            f"it is below the smallest unit, {1 / units:g}",
            f"Choose a larger {name}",
        )
    return Fraction(down, units)
