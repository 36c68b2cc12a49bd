"""How far a report lies from its point: a Gamma law, truncated where the mechanism has a bound.

T has density proportional to t^(m-1) exp(-k t) on [0, L], or on [0, oo). X is a normal of
``random.normal``, and words of the keystream stand for uniform U1, U2, ...

*Gamma.* Marsaglia and Tsang 2000: with D = m - 1/3, c = 1 / (3 sqrt D) and v = (1 + cX)^3, accept D
v where v > 0 and ln U1 < X^2/2 + D (1 - v + ln v). That is Gamma(m); over k, it is rejected where
it exceeds L.
*Power*, where the first would hardly ever stay below L. With g >= kL and a = m - 1 - g >= -1/2 draw
s = U1^(1/(a+1)), of density proportional to s^a, and accept T = L s with probability s^g e^(kL (1 -
s)), which is at most 1 as ln s <= s - 1 <= 0. The accepted density is proportional to s^(m-1)
e^(-kL s). Of the two proposals the one that accepts more often is used; it accepts a fifth or more.
*Inside a ball*: a uniform point of the d-ball of radius T, for m = d + 1. By power its distance is
T U3^(1/d). By gamma it is r, a Gamma(d) over k, accepted where U2 > exp(-k (L - r)): as E = -ln U2
is exponential, that is where T = r + E/k, a Gamma(d + 1) over k, is below L; and given their sum T,
r has the density d r^(d-1) / T^d of a uniform point's distance.

Every draw is also computed from the same words to any precision by ``exact``. The floats say for
each draw whether they are certain: ``doubtful`` marks draws of a doubtful normal, with a uniform
too near to 0, with 1 + cX within 2^-15 of 0, or with a comparison closer than its margin.
Elsewhere, given that log and exp of the platform are right to 2^-48, and with m < 2^17:

    by gamma, X errs by 2^-49, and |X| < 8, so 1 + cX < 4.3 errs by 2^-48, near 0 by 2^-49, and
    T by (16 sqrt m + k T) 2^-46 / k;
    ln U1 errs by 2^-30, the other terms that it is compared with by 2^-29, and exp(-k (L - r)) by
    2^-27;
    by power, a logarithm of a uniform above 2^-20 errs by 2^-42, and T by 2^-40 L.

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

from sfumato.local.constants import Flags, Floats, exactly, kummer
from sfumato.local.reals import Level, Normal, Uniform, normal_at
from sfumato.random.bits import Bits, Words
from sfumato.random.normal import Trace, fill, unit

# The real numbers that a distance is made of: its uniforms, then its normal, by gamma.
Reals: TypeAlias = list[Uniform | Normal]

# Uniforms below these are doubtful: their logarithms err by too much.
_POWER_LEAST_UNIFORM = 2.0**-20
_GAMMA_LEAST_UNIFORM = 2.0**-32

_NEAR_ZERO = 2.0**-15

# Margins of comparisons, each twice what both sides may be off by, or more.
_ACCEPT_MARGIN = 2.0**-28
_BALL_MARGIN = 2.0**-26

_POWER_ERROR = 2.0**-39
_GAMMA_ERROR = 2.0**-45


@dataclass(frozen=True)
class Distances:
    """Distances and what they were made of.

    Attributes
    ----------
    values : float64 ndarray of shape (n,)
    accepted, doubtful : bool ndarray of shape (n,)
        A distance that is accepted or doubtful may be kept; one that is doubtful must be settled.
    words : uint64 ndarray of shape (uniforms, candidates)
    normals : Trace or None
        Of the candidates, by gamma.
    kept : int64 ndarray of shape (n,)
        Which candidates the distances are.
    """

    values: Floats
    accepted: Flags
    doubtful: Flags
    words: Words
    normals: Trace | None
    kept: np.typing.NDArray[np.int64]

    def first(self, count: int) -> Distances:
        """The first that may be kept, as many as there are up to ``count``."""
        kept = np.flatnonzero(self.accepted | self.doubtful)[:count]
        return Distances(
            self.values[kept],
            self.accepted[kept],
            self.doubtful[kept],
            self.words,
            self.normals,
            kept,
        )

    def reals(self, row: int, bits: Bits) -> Reals:
        """The real numbers that one distance is made of."""
        candidate = int(self.kept[row])
        words = self.words[:, candidate].tolist()
        drawn: Reals = [Uniform.of_unit(word, bits) for word in words]
        if self.normals is not None:
            drawn.append(normal_at(self.normals, candidate, bits))
        return drawn


@dataclass(frozen=True)
class DistanceLaw:
    """The law of a distance.

    Attributes
    ----------
    shape : int
        m.
    rate : Fraction
        k.
    radius : Fraction or None
        L; None: no bound.
    ball : int
        d where T is the radius of a d-ball in which the report is uniform; 0 where T is the
        distance itself.
    """

    shape: int
    rate: Fraction
    radius: Fraction | None
    ball: int

    @cached_property
    def by_power(self) -> bool:
        """Whether the power proposal accepts more often."""
        if self.radius is None or self._g > self.shape - 0.5:
            return False
        m = self.shape
        power_accepts = (m - self._g) / m * float(kummer(m + 1, Decimal(self._x)))
        return power_accepts > 0.95 * float(gamma_below(m, self._x))

    @cached_property
    def _x(self) -> float:
        return math.inf if self.radius is None else float(self.rate * self.radius)

    @cached_property
    def _g(self) -> float:
        # A multiple of 2^-10 that is certainly at least kL: so it is the same number in floats and
        # decimals.
        return (math.floor(self._x * 1024 * (1 + 2.0**-40)) + 1) / 1024

    @property
    def _gamma_shape(self) -> int:
        return self.ball or self.shape

    def error(self, distances: Floats) -> Floats:
        """How far floats that are not doubtful may be off, at most: float64 like ``distances``."""
        if self.by_power:
            return (distances + float(self.radius or 0)) * _POWER_ERROR
        typical = 16 * math.sqrt(self._gamma_shape) / float(self.rate)
        return (distances + typical) * _GAMMA_ERROR

    def draw(self, count: int, bits: Bits) -> Distances:
        """Draw distances that are accepted or doubtful: ``count`` of them, independent."""
        tries = count + count // 8 + 16
        while True:
            distances = self.propose(tries, bits).first(count)
            if distances.values.size == count:
                return distances
            # However many are kept, those that are have the same law. So where they are too few,
            # all may be drawn again.
            tries = tries * count // max(distances.values.size, count // 16, 1) * 9 // 8 + 16

    def propose(self, count: int, bits: Bits) -> Distances:
        """Draw candidates."""
        sizes = np.empty(0 if self.by_power else count)
        normals = None if self.by_power else fill(sizes, bits)
        uniforms = 1 + self.by_power + bool(self.ball)
        words = bits.words(uniforms * count).reshape(-1, count)
        with np.errstate(divide="ignore", invalid="ignore"):
            if normals is None:
                drawn, accepted, doubtful = self._power(unit(words))
            else:
                drawn, accepted, doubtful = self._gamma(sizes, unit(words))
                doubtful[normals.doubtful] = True
        return Distances(drawn, accepted, doubtful, words, normals, np.arange(count))

    def _gamma(self, normal: Floats, uniforms: Floats) -> tuple[Floats, Flags, Flags]:
        d = self._gamma_shape - 1 / 3
        # In place: these arrays are long, and stay in the cache.
        base = normal * (1 / (3 * math.sqrt(d)))
        base += 1
        cube = base * base * base
        room = np.log(np.abs(cube))
        room -= cube
        room += 1
        room *= d
        room += normal * normal / 2
        room -= np.log(uniforms[0])
        is_close = np.abs(room) < _ACCEPT_MARGIN
        doubtful = (np.abs(base) < _NEAR_ZERO) | is_close | (uniforms[0] < _GAMMA_LEAST_UNIFORM)
        accepted = (base > 0) & (room > 0)
        cube *= d / float(self.rate)
        if self.ball:
            left = uniforms[1] - np.exp(np.minimum(cube * float(self.rate) - self._x, 0.0))
            accepted &= left > 0
            doubtful |= np.abs(left) < _BALL_MARGIN
        elif self.radius is not None:
            left = float(self.radius) - cube
            accepted &= left > 0
            doubtful |= np.abs(left) <= 2 * self.error(cube)
        return cube, accepted, doubtful

    def _power(self, uniforms: Floats) -> tuple[Floats, Flags, Flags]:
        shape_beyond = self.shape - self._g
        log_share = np.log(uniforms[0]) / shape_beyond
        share = np.exp(log_share)
        room = self._g * log_share + self._x * (1 - share) - np.log(uniforms[1])
        is_close = np.abs(room) < _ACCEPT_MARGIN * (1 + self._x)
        doubtful = is_close | (uniforms.min(axis=0) < _POWER_LEAST_UNIFORM)
        drawn = share * float(self.radius or 0)
        if self.ball:
            drawn *= np.exp(np.log(uniforms[2]) / self.ball)
        return drawn, room > 0, doubtful

    def exact(self, reals: Sequence[Uniform | Normal], level: Level) -> Decimal | None:
        """The distance for the same words, or None where it is rejected."""
        uniforms = [real.known(level.bits) for real in reals if isinstance(real, Uniform)]
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
        if self.radius is None:
            return drawn
        # In a ball r + E/k must stay below the bound, with E = -ln U2; otherwise the distance
        # itself must.
        beyond = -uniforms[1].ln() / exactly(self.rate) if self.ball else 0
        return drawn if level.below(drawn + beyond, exactly(self.radius)) else None

    def _exact_power(self, uniforms: list[Decimal], level: Level) -> Decimal | None:
        radius = exactly(self.radius or Fraction(0))
        g = Decimal(self._g)
        log_share = uniforms[0].ln() / (self.shape - g)
        share = log_share.exp()
        room = g * log_share + exactly(self.rate) * radius * (1 - share)
        if not level.below(uniforms[1].ln(), room):
            return None
        drawn = radius * share
        return drawn * (uniforms[2].ln() / self.ball).exp() if self.ball else drawn


def gamma_below(m: int, x: float) -> Decimal:
    """P(Gamma(m) <= x), for choosing a proposal."""
    at = Decimal(x)
    return (m * at.ln() - at - Decimal(math.lgamma(m + 1))).exp() * kummer(m + 1, at)
