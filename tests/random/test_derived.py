"""Words of a key and a position: they read the same however they are cut, and share nothing with
others.
"""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.random import PublicSeed
from sfumato.random.bits import Derived, secret_key


def test_a_position_reads_the_same_however_it_is_cut() -> None:
    key = secret_key()
    whole = Derived(key, 5).words(100_000)
    cut = Derived(key, 5)
    np.testing.assert_array_equal(
        np.concatenate([cut.words(n) for n in (1, 0, 99, 40_000, 59_900)]), whole
    )


def test_positions_and_keys_have_nothing_in_common() -> None:
    key = secret_key()
    seen = [
        set(Derived(k, position).words(1000).tolist())
        for k in (key, secret_key())
        for position in (0, 1, 2**40)
    ]
    assert len(set().union(*seen)) == 6000


def test_the_stream_changes_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.random import bits as derived

    monkeypatch.setattr(derived, "KEY_BYTES", 64)
    words = derived.Derived(secret_key(), 0).words(64)
    assert len(set(words.tolist())) == 64


def test_a_key_comes_from_the_bits_in_force() -> None:
    assert secret_key(PublicSeed(3)) == secret_key(PublicSeed(3))
    assert secret_key() != secret_key()
    assert not Derived(bytes(32), 0, private=False).private
