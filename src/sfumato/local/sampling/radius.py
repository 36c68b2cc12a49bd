"""How far a report lies from its point: a Gamma law, truncated where the mechanism has a bound;
fast in floats, exact in decimals.

T has density proportional to t^(m-1) exp(-k t) on [0, L], or on [0, oo). X is a normal of
``random.normal``, and words of the keystream stand for uniform U1, U2, ...

*Gamma.* Marsaglia and Tsang 2000: with D = m - 1/3, c = 1 / (3 sqrt D) and v = (1 + cX)^3, accept D
v where v > 0 and ln U1 < X^2/2 + D (1 - v + ln v). That is Gamma(m); over k, it is rejected where
it exceeds L.
*Power*, where the first would hardly ever stay below L. With g >= kL and a = m - 1 - g >= -1/2 draw
s = U1^(1/(a+1)), of density proportional to s^a, and accept T = L s with probability s^g e^(kL (1 -
s)), which is at most 1 as ln s <= s - 1 <= 0. The accepted density is proportional to s^(m-1)
e^(-kL s). Of the two the one that accepts more often is used; it accepts a fifth or more.
*Spread*: a uniform point of the d-ball of radius T, for m = d + 1. By power its radius is T
U3^(1/d). By gamma it is r, a Gamma(d) over k, accepted where U2 > exp(-k (L - r)): as E = -ln U2 is
exponential, that is where T = r + E/k, a Gamma(d + 1) over k, is below L; and given their sum T, r
has the density d r^(d-1) / T^d of a uniform point's radius.

Every draw is also computed from the same words to any precision by ``exact``. The floats say for
each draw whether they are certain: ``doubtful`` marks draws of a doubtful normal, with a uniform
too near to 0, with 1 + cX within 2^-15 of 0, or with a comparison closer than its margin.
Elsewhere, given that log and exp of the platform are right to 2^-48, and with m < 2^17:

    by gamma, X errs by 2^-49, and |X| < 8, so 1 + cX < 4.3 errs by 2^-48, near 0 by 2^-49, and T by
    (16 sqrt m + k T) 2^-46 / k; ln U1 errs by 2^-30, the other terms that it is compared with by
    2^-29, and exp(-k (L - r)) by 2^-27; by power, a logarithm of a uniform above 2^-20 errs by
    2^-42, and T by 2^-40 L.

``error`` says that or more. Tests hold both evaluations against each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from sfumato.local.sampling.constants import exactly, kummer
from sfumato.local.sampling.floats import Flags, Floats, exact_unit, unit
from sfumato.local.sampling.normals import Normal, normal_at
from sfumato.local.sampling.reals import Level, Uniform
from sfumato.random.bits import Bits, Words
from sfumato.random.normal import Trace, fill

Reals: TypeAlias = list[Uniform | Normal]

_POWER_EDGE, _GAMMA_EDGE = 2.0**-20, 2.0**-32
_NEAR_ZERO = 2.0**-15
_ACCEPT, _SPREAD = 2.0**-28, 2.0**-26
_POWER_ERROR, _GAMMA_ERROR = 2.0**-39, 2.0**-45


@dataclass(frozen=True)
class Radii:
    """Radii and what they were made of.

    Attributes
    ----------
    values : float64 ndarray of shape (n,)
    accepted, doubtful : bool ndarray of shape (n,)
        A radius that is accepted or doubtful may be kept; one that is doubtful must be settled.
    words : uint64 ndarray of shape (uniforms, candidates)
    normals : Trace or None
        Of the candidates, by gamma.
    kept : int64 ndarray of shape (n,)
        Which candidates the radii are.
    """

    values: Floats
    accepted: Flags
    doubtful: Flags
    words: Words
    normals: Trace | None
    kept: NDArray[np.int64]

    def first(self, count: int) -> Radii:
        """The first that may be kept, as many as there are up to ``count``."""
        kept = np.flatnonzero(self.accepted | self.doubtful)[:count]
        return Radii(
            self.values[kept],
            self.accepted[kept],
            self.doubtful[kept],
            self.words,
            self.normals,
            kept,
        )

    def reals(self, row: int, bits: Bits) -> Reals:
        """The real numbers that one radius is made of: its uniforms, then its normal."""
        candidate = int(self.kept[row])
        found: Reals = [exact_unit(word, bits) for word in self.words[:, candidate].tolist()]
        return found if self.normals is None else [*found, normal_at(self.normals, candidate, bits)]


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
        d where T is the radius of a ball in which the report is uniform; 0 where T is the radius
        itself.
    """

    shape: int
    rate: Fraction
    reach: Fraction | None
    spread: int

    @cached_property
    def by_power(self) -> bool:
        """Whether the power proposal accepts more often."""
        if self.reach is None or self._slack > self.shape - 0.5:
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
        # g: a multiple of 2^-10 that is certainly at least kL, so that it is the same number in
        # floats and decimals.
        return (math.floor(self._x * 1024 * (1 + 2.0**-40)) + 1) / 1024

    @property
    def _gamma_shape(self) -> int:
        return self.spread or self.shape

    def error(self, radii: Floats) -> Floats:
        """How far float radii that are not doubtful may be off, at most: float64 like ``radii``."""
        if self.by_power:
            return np.asarray((radii + float(self.reach or 0)) * _POWER_ERROR)
        return np.asarray(
            (radii + 16 * math.sqrt(self._gamma_shape) / float(self.rate)) * _GAMMA_ERROR
        )

    def draw(self, count: int, bits: Bits) -> Radii:
        """Draw radii that are accepted or doubtful: ``count`` of them, independent."""
        tries = count + count // 8 + 16
        while True:
            found = self.propose(tries, bits).first(count)
            if found.values.size == count:
                return found
            # However many are kept, those that are have the same law: so all may be drawn again
            # where they are too few.
            tries = tries * count // max(found.values.size, count // 16, 1) * 9 // 8 + 16

    def propose(self, count: int, bits: Bits) -> Radii:
        """Draw candidates."""
        sizes = np.empty(0 if self.by_power else count)
        normals = None if self.by_power else fill(sizes, bits)
        words = bits.words((1 + self.by_power + bool(self.spread)) * count).reshape(-1, count)
        with np.errstate(divide="ignore", invalid="ignore"):
            drawn, accepted, doubtful = (
                self._power(unit(words)) if normals is None else self._gamma(sizes, unit(words))
            )
        if normals is not None:
            doubtful[normals.doubtful] = True
        return Radii(drawn, accepted, doubtful, words, normals, np.arange(count))

    def _gamma(self, normal: Floats, uniforms: Floats) -> tuple[Floats, Flags, Flags]:
        d = self._gamma_shape - 1 / 3
        base = normal * (1 / (3 * math.sqrt(d)))
        base += 1
        cube = base * base * base
        room = np.log(np.abs(cube))
        room -= cube
        room += 1
        room *= d
        room += normal * normal / 2
        room -= np.log(uniforms[0])
        doubtful = (
            (np.abs(base) < _NEAR_ZERO) | (np.abs(room) < _ACCEPT) | (uniforms[0] < _GAMMA_EDGE)
        )
        accepted = (base > 0) & (room > 0)
        cube *= d / float(self.rate)
        if self.spread:
            left = uniforms[1] - np.exp(np.minimum(cube * float(self.rate) - self._x, 0.0))
            accepted &= left > 0
            doubtful |= np.abs(left) < _SPREAD
        elif self.reach is not None:
            left = float(self.reach) - cube
            accepted &= left > 0
            doubtful |= np.abs(left) <= 2 * self.error(cube)
        return cube, accepted, doubtful

    def _power(self, uniforms: Floats) -> tuple[Floats, Flags, Flags]:
        log_share = np.log(uniforms[0]) / (self.shape - self._slack)
        share = np.exp(log_share)
        room = self._slack * log_share + self._x * (1 - share) - np.log(uniforms[1])
        doubtful = (np.abs(room) < _ACCEPT * (1 + self._x)) | (uniforms.min(axis=0) < _POWER_EDGE)
        drawn = share * float(self.reach or 0)
        if self.spread:
            drawn *= np.exp(np.log(uniforms[2]) / self.spread)
        return drawn, room > 0, doubtful

    def exact(self, reals: Sequence[Uniform | Normal], level: Level) -> Decimal | None:
        """The radius for the same words, or None where it is rejected."""
        uniforms = [each.known(level.bits) for each in reals if isinstance(each, Uniform)]
        if self.by_power:
            return self._exact_power(uniforms, level)
        return self._exact_gamma(cast(Normal, reals[-1]).known(level), uniforms, level)

    def _exact_gamma(
        self, normal: Decimal, uniforms: list[Decimal], level: Level
    ) -> Decimal | None:
        d = self._gamma_shape - Decimal(1) / 3
        base = level.safe(1 + normal / (3 * d.sqrt()))
        if base < 0:
            return None
        cube = base**3
        if not level.below(uniforms[0].ln(), normal**2 / 2 + d * (1 - cube + cube.ln())):
            return None
        drawn = cube * d / exactly(self.rate)
        if self.reach is None:
            return drawn
        # With E = -ln U2 a Gamma of the next shape must stay below the bound; without spread the
        # radius itself must.
        beyond = -uniforms[1].ln() / exactly(self.rate) if self.spread else 0
        return drawn if level.below(drawn + beyond, exactly(self.reach)) else None

    def _exact_power(self, uniforms: list[Decimal], level: Level) -> Decimal | None:
        reach = exactly(self.reach or Fraction(0))
        slack = Decimal(self._slack)
        log_share = uniforms[0].ln() / (self.shape - slack)
        share = log_share.exp()
        if not level.below(
            uniforms[1].ln(), slack * log_share + exactly(self.rate) * reach * (1 - share)
        ):
            return None
        drawn = reach * share
        return drawn * (uniforms[2].ln() / self.spread).exp() if self.spread else drawn


def exactly_below(m: int, x: float) -> Decimal:
    """P(Gamma(m) <= x), for choosing a proposal."""
    at = Decimal(x)
    return (m * at.ln() - at - Decimal(math.lgamma(m + 1))).exp() * kummer(m + 1, at)
