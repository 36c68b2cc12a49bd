"""Floats are near to the real numbers that they stand for, and doubtful ones are settled."""

from __future__ import annotations

import math
from decimal import Context, localcontext

import numpy as np
import pytest

from sfumato.local.reals import Level, Normal, normal_at
from sfumato.random import PublicSeed
from sfumato.random.normal import ERROR, FAR, SLOTS, fill, tables


def exactly(number: Normal, bits: int = 160) -> float:
    with localcontext(Context(prec=80)):
        return float(number.known(Level(bits)))


def test_floats_are_near_to_the_real_numbers() -> None:
    bits = PublicSeed("near")
    values = np.empty(60_000)
    trace = fill(values, bits)
    assert trace.rest.size > 100
    assert trace.doubtful.size == 0
    for position in (*range(100), *trace.rest[:100].tolist()):
        assert abs(exactly(normal_at(trace, position, bits)) - values[position]) <= ERROR


class _Given:
    """Words that a test chose, then ordinary ones."""

    private = False

    def __init__(self, *given: int) -> None:
        self._given, self._rest = list(given), PublicSeed("given")

    def words(self, count: int) -> np.ndarray:
        found = self._rest.words(count)
        some = self._given[:count]
        found[: len(some)] = some
        self._given = self._given[count:]
        return found


def test_the_tail_beyond_the_strips() -> None:
    """x = sqrt(64 - 2 ln U), kept where V w c x < f(8): always for a small V, never for a large
    one, which draws afresh.
    """
    rest, tail = SLOTS - 1, int(tables().starts[-1])
    for word, sign in ((rest, 1), (rest | 1 << 63, -1)):
        kept = exactly(Normal(word, [tail, 2**63, 0], PublicSeed(1)))
        assert kept == pytest.approx(sign * math.sqrt(64 + 2 * math.log(2)), abs=1e-15)
    again = Normal(rest, [tail, 2**63, 2**64 - 1], PublicSeed(1))
    assert 0 < exactly(again) < FAR
    assert exactly(again) == pytest.approx(exactly(again, 320), abs=1e-15)


def test_doubtful_trials_are_marked_and_settled() -> None:
    tail = int(tables().starts[-1])
    # Two ordinary draws and one of the rest, whose first trial lies beyond the strips.
    values = np.empty(3)
    bits = _Given(7, SLOTS - 1, 9, *(tail for _ in range(17)))
    trace = fill(values, bits)
    assert trace.rest.tolist() == trace.doubtful.tolist() == [1]
    assert exactly(normal_at(trace, 0, bits)) == pytest.approx(values[0], abs=ERROR)
    assert math.isfinite(exactly(normal_at(trace, 1, bits)))
