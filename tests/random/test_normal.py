"""Normal floats and the bits that they are made of: the law, its tail, and that a position always reads the same."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from sfumato.random import PublicSeed, current
from sfumato.random.derived import Derived, secret_key
from sfumato.random.normal import _TAIL, _edges, _tails, standard_normal


def test_the_layers_are_of_equal_area_and_end_at_nought() -> None:
    edges = _edges(_TAIL)
    height = np.exp(-(edges**2) / 2)
    area = _TAIL * math.exp(-(_TAIL**2) / 2) + math.sqrt(math.pi / 2) * math.erfc(_TAIL / math.sqrt(2))
    assert len(edges) == 257
    np.testing.assert_allclose(edges[1:-1] * np.diff(height[1:]), area, rtol=1e-9)
    assert edges[0] * height[1] == pytest.approx(area)


def test_the_law() -> None:
    draws = standard_normal(2_000_000, current())
    assert stats.kstest(draws, "norm").pvalue > 1e-9
    for edge in (*_edges(_TAIL)[1:-1:32], 3.0, 3.66, 4.0, 4.5):
        expected = 2 * stats.norm.sf(edge)
        far = (np.abs(draws) > edge).sum()
        low, high = stats.binom.ppf(5e-10, len(draws), expected), stats.binom.isf(5e-10, len(draws), expected)
        assert low <= far <= high
    assert abs(np.mean(draws)) < 6.2 / math.sqrt(len(draws))
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 6.2 / math.sqrt(len(draws))


def test_a_near_miss_would_show() -> None:
    draws = standard_normal(2_000_000, current())
    assert stats.kstest(draws * 1.01, "norm").pvalue < 1e-9


def test_the_tail() -> None:
    draws = _tails(200_000, current())
    assert draws.min() >= _TAIL
    assert stats.kstest(stats.norm.sf(draws) / stats.norm.sf(_TAIL), "uniform").pvalue > 1e-9


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scales_and_dtypes(dtype: str) -> None:
    one = standard_normal(40_000, PublicSeed(1), dtype=dtype)
    other = standard_normal(40_000, PublicSeed(1), scale=3.0, dtype=dtype)
    assert one.dtype == dtype
    np.testing.assert_allclose(3 * one, other, rtol=1e-6)
    assert standard_normal(0, current(), dtype=dtype).shape == (0,)


def test_a_position_reads_the_same_however_it_is_cut() -> None:
    key = secret_key()
    whole = Derived(key, 5).words(100_000)
    cut = Derived(key, 5)
    np.testing.assert_array_equal(np.concatenate([cut.words(n) for n in (1, 0, 99, 40_000, 59_900)]), whole)


def test_positions_and_keys_have_nothing_in_common() -> None:
    key = secret_key()
    seen = [set(Derived(k, position).words(1000).tolist()) for k in (key, secret_key()) for position in (0, 1, 2**40)]
    assert len(set().union(*seen)) == 6000


def test_the_stream_changes_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.random import derived

    monkeypatch.setattr(derived, "KEY_BYTES", 64)
    words = derived.Derived(secret_key(), 0).words(64)
    assert len(set(words.tolist())) == 64


def test_a_key_comes_from_the_bits_in_force() -> None:
    assert secret_key(PublicSeed(3)) == secret_key(PublicSeed(3))
    assert secret_key() != secret_key()
    assert not Derived(bytes(32), 0, private=False).private
