"""How far a report lies from its point: a Gamma law, truncated where the mechanism has a bound; fast in floats, exact in decimals.

T has density proportional to t^(m-1) exp(-k t) on [0, L], or on [0, oo). Words of the keystream stand for uniform U1, U2, ...

*Gamma.* Marsaglia and Tsang 2000: with D = m - 1/3, c = 1 / (3 sqrt D), X normal (Box and Muller: sqrt(-2 ln U1) sin phi, phi uniform
in [-pi/2, pi/2)) and v = (1 + cX)^3, accept D v where v > 0 and ln U3 < X^2/2 + D (1 - v + ln v). That is Gamma(m); over k, it is
rejected where it exceeds L.
*Power*, where the first would hardly ever stay below L. With g >= kL and a = m - 1 - g > -1 draw s = U1^(1/(a+1)), of density
proportional to s^a, and accept T = L s with probability s^g e^(kL (1 - s)), which is at most 1 as ln s <= s - 1 <= 0. The accepted
density is proportional to s^(m-1) e^(-kL s). Of the two the one that accepts more often is used; it accepts a fifth or more.
*Spread.* A uniform point of the d-ball of radius T has radius T U4^(1/d).

Every draw is also computed from the same words to any precision by ``exact``. The floats say for each draw whether they are certain:
``open`` marks draws where a uniform lies within 2^-20 of 0 or 1, where 1 + cX is within 2^-6 of 0, or where a comparison is
closer than its margin. Elsewhere, given that log and exp of the platform are right to 2^-48, the logarithm of a uniform errs by
less than 2^-42, so X by 2^-42, a Gamma draw by 3 sqrt(D) (1 + cX)^2 2^-44 / k with (1 + cX)^2 < 10, and a power by 2^-42 L: less
than ``error`` says. Tests hold both evaluations against each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato.local.constants import exactly, kummer
from sfumato.local.floats import Flags, Floats, circle, exact_angle, exact_circle, exact_unit, unit
from sfumato.local.reals import Level, Uniform
from sfumato.random.bits import Bits, Words

WORDS = 4
_EDGE = 2.0**-20
_NEAR_ZERO = 2.0**-6
_ACCEPT, _BOUND = 2.0**-28, 2.0**-36
_ERROR = 2.0**-41


@dataclass(frozen=True)
class Radius:
    """The law of a radius.

    Attributes
    ----------
    shape : int
        m.
    rate : Fraction
        k.
    reach : Fraction or None
        L; None: no bound.
    spread : int
        d where T is the radius of a ball in which the report is uniform; 0 where T is the radius itself.
    """

    shape: int
    rate: Fraction
    reach: Fraction | None
    spread: int

    @cached_property
    def by_power(self) -> bool:
        """Whether the power proposal accepts more often."""
        if self.reach is None or self._x >= self.shape - 1:
            return False
        m, x = self.shape, self._x
        gamma_stays = float(exactly_below(m, x))
        power_accepts = (m - self._slack) / m * float(kummer(m + 1, Decimal(x)))
        return power_accepts > 0.95 * gamma_stays

    @cached_property
    def _x(self) -> float:
        return math.inf if self.reach is None else float(self.rate * self.reach)

    @cached_property
    def _slack(self) -> float:
        # g: a multiple of 2^-10 that is certainly at least kL, so that it is the same number in floats and decimals.
        return (math.floor(self._x * 1024 * (1 + 2.0**-40)) + 1) / 1024

    def error(self, radii: Floats) -> Floats:
        """How far float radii that are not open may be off, at most: float64 like ``radii``."""
        typical = float(self.reach or 0) if self.by_power else 16 * math.sqrt(self.shape) / float(self.rate)
        return np.asarray((radii + typical) * _ERROR)

    def propose(self, words: Words) -> tuple[Floats, Flags, Flags]:
        """Radii for words of shape (WORDS, n): floats, which are accepted, and which are open; each of shape (n,)."""
        uniforms = unit(words)
        drawn, accepted, unsure = self._power(uniforms) if self.by_power else self._gamma(uniforms, words[1])
        unsure |= (uniforms.min(axis=0) < _EDGE) | (uniforms.max(axis=0) > 1 - _EDGE)
        if self.spread:
            drawn *= np.exp(np.log(uniforms[3]) / self.spread)
        return drawn, accepted, unsure

    def _gamma(self, uniforms: Floats, angles: Words) -> tuple[Floats, Flags, Flags]:
        d = self.shape - 1 / 3
        normal = np.sqrt(-2 * np.log(uniforms[0])) * circle(angles)[1]
        base = 1 + normal / (3 * math.sqrt(d))
        cube = base * base * base
        room = normal * normal / 2 + d * (1 - cube + np.log(np.abs(cube))) - np.log(uniforms[2])
        unsure = (np.abs(base) < _NEAR_ZERO) | (np.abs(room) < _ACCEPT)
        accepted = (base > 0) & (room > 0)
        drawn = cube * (d / float(self.rate))
        if self.reach is not None:
            left = float(self.reach) - drawn
            accepted &= left > 0
            unsure |= np.abs(left) < _BOUND * float(self.reach)
        return drawn, accepted, unsure

    def _power(self, uniforms: Floats) -> tuple[Floats, Flags, Flags]:
        log_share = np.log(uniforms[0]) / (self.shape - self._slack)
        share = np.exp(log_share)
        room = self._slack * log_share + self._x * (1 - share) - np.log(uniforms[1])
        unsure = np.abs(room) < _ACCEPT * (1 + self._x)
        return share * float(self.reach or 0), room > 0, np.asarray(unsure)

    def real(self, words: Sequence[int], bits: Bits) -> list[Uniform]:
        """The real numbers that the words of one draw began."""
        found = [exact_unit(word, bits) for word in words]
        if not self.by_power:
            found[1] = exact_angle(words[1], bits)
        return found

    def exact(self, reals: Sequence[Uniform], level: Level) -> Decimal | None:
        """The radius for the same words, or None where it is rejected."""
        drawn = self._exact_power(reals, level) if self.by_power else self._exact_gamma(reals, level)
        if drawn is None or not self.spread:
            return drawn
        return drawn * (reals[3].known(level.bits).ln() / self.spread).exp()

    def _exact_gamma(self, reals: Sequence[Uniform], level: Level) -> Decimal | None:
        d = self.shape - Decimal(1) / 3
        normal = (-2 * reals[0].known(level.bits).ln()).sqrt() * exact_circle(reals[1], level)[1]
        base = level.safe(1 + normal / (3 * d.sqrt()))
        if base < 0:
            return None
        cube = base**3
        if not level.below(reals[2].known(level.bits).ln(), normal**2 / 2 + d * (1 - cube + cube.ln())):
            return None
        drawn = cube * d / exactly(self.rate)
        if self.reach is not None and not level.below(drawn, exactly(self.reach)):
            return None
        return drawn

    def _exact_power(self, reals: Sequence[Uniform], level: Level) -> Decimal | None:
        reach = exactly(self.reach or Fraction(0))
        slack = Decimal(self._slack)
        log_share = reals[0].known(level.bits).ln() / (self.shape - slack)
        share = log_share.exp()
        if not level.below(reals[1].known(level.bits).ln(), slack * log_share + exactly(self.rate) * reach * (1 - share)):
            return None
        return reach * share

    def draw(self, count: int, bits: Bits) -> tuple[Words, Floats, Flags]:
        """Draw until every radius is accepted or open: words of shape (WORDS, count), radii and flags of shape (count,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            words = bits.words(WORDS * count).reshape(WORDS, count)
            radii, accepted, unsure = self.propose(words)
            missing = np.flatnonzero(~(accepted | unsure))
            while missing.size:
                fresh = bits.words(WORDS * missing.size).reshape(WORDS, missing.size)
                drawn, accepted, doubtful = self.propose(fresh)
                words[:, missing], radii[missing], unsure[missing] = fresh, drawn, doubtful
                missing = missing[~(accepted | doubtful)]
        return words, radii, unsure


def exactly_below(m: int, x: float) -> Decimal:
    """P(Gamma(m) <= x), for choosing a proposal."""
    at = Decimal(x)
    return (m * at.ln() - at - Decimal(math.lgamma(m + 1))).exp() * kummer(m + 1, at)
