"""A risk that is still acceptable, and the largest cost or the least noise that stays within it."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import msgspec

from sfumato.basics import (
    EPSILON_UNITS,
    RHO_UNITS,
    Exactly,
    ExplainedStruct,
    fraction,
    least_whole,
    probability,
    root,
)
from sfumato.errors import Infeasible, UsageError, explained_methods
from sfumato.mechanisms import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy import ZCDP, ApproxDP, PureDP, log_odds, plain_probability
from sfumato.risk.bounds import Worlds
from sfumato.risk.membership import (
    Gaussian,
    Laplace,
    Noise,
    Promise,
    Protection,
    advantage,
    posterior,
    true_positive_rate,
)

NOISES = ("laplace", "gaussian", "discrete-laplace", "discrete-gaussian")
FORMS = "disclosure=, advantage=, prior= with posterior=, or fpr= with tpr="
# Parameters of discrete noise are rounded up to a multiple of 1 / SCALE_PARTS.
SCALE_PARTS = 2**20


@explained_methods
class Risk(ExplainedStruct, frozen=True, kw_only=True, tag="risk"):
    """How much may an attacker learn? Give one of four forms.

    Parameters
    ----------
    disclosure : number in (0, 1)
        The largest belief in any one of ``worlds`` equally likely ones (Lee and Clifton's
        requirement).
    advantage : number in (0, 1)
        The largest true-positive rate less false-positive rate of a membership test.
    prior, posterior : numbers in (0, 1)
        An attacker who believes with probability ``prior`` that a person is in the data may come to
        believe it with probability ``posterior``.
    fpr, tpr : numbers in (0, 1)
        A test that accuses a share ``fpr`` of the others may accuse a share ``tpr`` of the members.
    exceeded : number in [0, 1)
        With disclosure, or with prior and posterior: the probability with which the belief may be
        exceeded. Gaussian noise and delta need one above 0.

    Raises
    ------
    UsageError
        If not exactly one form is given, or a number is out of range.
    Infeasible
        If guessing already reaches the limit.

    >>> round(Risk(advantage=.1).epsilon(), 4)
    0.2007
    """

    disclosure: float | None = None
    advantage: float | None = None
    prior: float | None = None
    posterior: float | None = None
    fpr: float | None = None
    tpr: float | None = None
    exceeded: float = 0.0

    def __post_init__(self) -> None:
        names = ("disclosure", "advantage", "prior", "posterior", "fpr", "tpr")
        given = {name for name in names if getattr(self, name) is not None}
        if given not in ({"disclosure"}, {"advantage"}, {"prior", "posterior"}, {"fpr", "tpr"}):
            raise UsageError("a risk", f"it takes one form: {FORMS}", "Write Risk(advantage=0.1)")
        for name in given:
            value = float(probability(getattr(self, name), name))
            msgspec.structs.force_setattr(self, name, value)
        allowed = float(fraction(self.exceeded, "exceeded"))
        if not 0 <= allowed < 1:
            raise UsageError(
                "exceeded outside [0, 1)",
                "it is a probability",
                'Choose exceeded such as 0 or "1e-6"',
            )
        msgspec.structs.force_setattr(self, "exceeded", allowed)
        low, high = (self.fpr, self.tpr) if self.fpr is not None else (self.prior, self.posterior)
        if low is not None and high is not None and low >= high:
            raise Infeasible(
                str(self),
                f"guessing already reaches it: {high:g} is not above {low:g}",
                f"Allow more than {low:g}",
            )

    @property
    def limit(self) -> float:
        """The number that must not be exceeded."""
        limits = (self.disclosure, self.advantage, self.posterior, self.tpr)
        return next(float(limit) for limit in limits if limit is not None)

    @property
    def what(self) -> str:
        """What the limit is about, in a few words."""
        if self.advantage is not None:
            return "the membership advantage"
        if self.fpr is not None:
            return f"the true-positive rate at a false-positive rate of {self.fpr:g}"
        return "the disclosure risk" if self.prior is None else f"a belief that was {self.prior:g}"

    def of(
        self,
        protection: Protection,
        *,
        sensitivity: Exactly = 1,
        worlds: int | Worlds | None = None,
    ) -> float:
        """Return the risk of this form that remains under a guarantee or noise.

        Parameters
        ----------
        protection : PureDP, ApproxDP, ZCDP, Laplace, Gaussian, DiscreteLaplace or DiscreteGaussian
        sensitivity : number
            For noise only.
        worlds : int or Worlds, optional
            For ``disclosure``: the number of equally likely worlds, any two of which are
            neighbours; or which worlds.
        """
        if self.disclosure is not None and isinstance(worlds, Worlds):
            return worlds.belief(protection, self.exceeded, sensitivity)
        if self.advantage is not None:
            return advantage(protection, sensitivity=sensitivity)
        if self.fpr is not None:
            return true_positive_rate(protection, self.fpr, sensitivity=sensitivity)
        prior = self.prior if self.prior is not None else self._prior_of(worlds)
        return posterior(protection, prior, exceeded=self.exceeded, sensitivity=sensitivity)

    def within(
        self,
        protection: Protection,
        *,
        sensitivity: Exactly = 1,
        worlds: int | Worlds | None = None,
    ) -> bool:
        """Tell whether a guarantee or noise stays within this risk."""
        return self.of(protection, sensitivity=sensitivity, worlds=worlds) <= self.limit

    def _prior_of(self, worlds: int | Worlds | None) -> float:
        if isinstance(worlds, Worlds):
            prior = math.exp(-worlds.log_count)
        elif isinstance(worlds, int) and not isinstance(worlds, bool) and worlds >= 2:
            prior = 1 / worlds
        else:
            raise UsageError(
                str(self),
                "it depends on how many worlds are possible",
                "State worlds=(records, size), or the Choice that choose returned for the universe",
            )
        if self.limit <= prior:
            raise Infeasible(
                str(self),
                f"each world has a probability of {prior:.6g} before anything is published",
                f"Allow more than {prior:.6g}, or add worlds",
            )
        return prior

    def epsilon(self, *, worlds: int | Worlds | None = None) -> float:
        """Return the largest pure epsilon within this risk.

        It is a closed form, except for ``Worlds``. Holds because: tanh(epsilon / 2) = advantage;
        odds grow by at most e^epsilon; and the curve of epsilon reaches (fpr, tpr) once either of
        its two lines does.
        """
        if self.advantage is not None:
            return math.log1p(self.advantage) - math.log1p(-self.advantage)
        if self.fpr is not None and self.tpr is not None:
            through_origin = math.log(self.tpr / self.fpr)
            through_one = math.log1p(-self.fpr) - math.log1p(-self.tpr)
            return max(through_origin, through_one)
        prior = self.prior if self.prior is not None else self._prior_of(worlds)
        if self.prior is None and isinstance(worlds, Worlds):
            return float(self._largest(PureDP, EPSILON_UNITS, worlds))
        return log_odds(self.limit) - log_odds(prior)

    def pure(self, *, worlds: int | Worlds | None = None) -> PureDP:
        """Return ``epsilon`` as a cost, rounded down to whole units."""
        units = _floor(self.epsilon(worlds=worlds) * EPSILON_UNITS, str(self))
        # The closed form is computed in floats, which may round it up.
        while not self.within(PureDP(Fraction(units, EPSILON_UNITS)), worlds=worlds):
            units = _floor(units - 1, str(self))
        return PureDP(Fraction(units, EPSILON_UNITS))

    def approx(self, delta: Exactly, *, worlds: int | Worlds | None = None) -> ApproxDP:
        """Return the largest (epsilon, delta) within this risk at a given delta."""
        slack = fraction(delta, "delta")
        level = self._largest(lambda x: ApproxDP(x, slack), EPSILON_UNITS, worlds)
        return ApproxDP(level, slack)

    def zcdp(self, *, worlds: int | Worlds | None = None) -> ZCDP:
        """Return the largest rho within this risk."""
        return ZCDP(self._largest(ZCDP, RHO_UNITS, worlds))

    def largest(self, like: Promise, *, worlds: int | Worlds | None = None) -> Promise:
        """Return the largest cost within this risk, in the measure of another and at its delta."""
        match like:
            case PureDP():
                return self.pure(worlds=worlds)
            case ApproxDP(delta=delta):
                return self.approx(delta, worlds=worlds)
            case ZCDP():
                return self.zcdp(worlds=worlds)

    def _largest(
        self, promise: Callable[[Fraction], Protection], units: int, worlds: int | Worlds | None
    ) -> Fraction:
        if self.disclosure is not None:
            # Called for its refusal: a limit below the prior allows no cost at all.
            self._prior_of(worlds)

        def fits(level: int) -> bool:
            return self.within(promise(Fraction(level, units)), worlds=worlds)

        low = 0
        high = units
        while fits(high) and high < 1000 * units:
            low = high
            high *= 2
        largest = least_whole(lambda level: not fits(level), low, high) - 1
        if largest < 1 and not self.exceeded and (self.disclosure or self.prior):
            raise Infeasible(
                str(self),
                "under a rho or a delta, however small, some answer may raise a belief above it",
                "Allow exceeded=1e-6, or state the risk as fpr= with tpr= or as advantage=, which "
                "they bound; or ask in epsilon alone",
            )
        return Fraction(_floor(largest, str(self)), units)

    def noise(
        self, kind: str, *, sensitivity: Exactly = 1, worlds: int | Worlds | None = None
    ) -> Noise:
        """Return the least noise of a kind within this risk.

        Parameters
        ----------
        kind : "laplace", "gaussian", "discrete-laplace" or "discrete-gaussian"
        sensitivity : number
            By how much one person moves the answer.

        Returns
        -------
        Laplace, Gaussian, DiscreteLaplace or DiscreteGaussian
            It satisfies ``within``; a scale smaller by 1e-5 does not.

        Raises
        ------
        Infeasible
            If no scale up to 10^9 sensitivities does, as with Gaussian noise and exceeded = 0.
        """
        moved = float(fraction(sensitivity, "sensitivity"))

        def fits(scale: float) -> bool:
            return self.within(_made(kind, scale), sensitivity=sensitivity, worlds=worlds)

        low = moved * 1e-3
        high = moved
        while not fits(high):
            low = high
            high *= 2
            if high > moved * 1e9:
                raise Infeasible(
                    f"{kind} noise for {self}",
                    "no amount of it is enough: its privacy loss has no limit",
                    "Allow exceeded=1e-6, or take Laplace noise",
                )
        # The upper end of the bracket: a little more noise than the least one stays within the
        # risk.
        return _made(kind, root(fits, low, high, 1e-9)[1])

    def __str__(self) -> str:
        if self.advantage is not None:
            return f"a membership advantage of at most {self.advantage:g}"
        if self.fpr is not None:
            return (
                f"a true-positive rate of at most {self.tpr:g} "
                f"at a false-positive rate of {self.fpr:g}"
            )
        but = (
            f", except with probability {plain_probability(self.exceeded)}" if self.exceeded else ""
        )
        if self.prior is not None:
            return f"a belief of at most {self.posterior:g} from a prior of {self.prior:g}{but}"
        return f"a disclosure risk of at most {self.disclosure:g}{but}"


def _made(kind: str, scale: float) -> Noise:
    """Return noise of this scale; for discrete noise it is rounded up to a short fraction."""
    match kind:
        case "laplace":
            return Laplace(scale)
        case "gaussian":
            return Gaussian(scale)
        case "discrete-laplace":
            return DiscreteLaplace(_rounded_up(scale))
        case "discrete-gaussian":
            return DiscreteGaussian(_rounded_up(scale * scale))
        case _:
            raise UsageError(
                f"noise {kind!r}", f"there are {', '.join(NOISES)}", "Name one of them"
            )


def _rounded_up(parameter: float) -> Fraction:
    return Fraction(math.ceil(parameter * SCALE_PARTS), SCALE_PARTS)


def _floor(units: float, what: str) -> int:
    if units < 1:
        raise Infeasible(what, "not even the smallest cost stays within it", "Allow more risk")
    return math.floor(units)
