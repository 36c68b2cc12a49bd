"""A public seed repeats, and says that nothing drawn from it is private."""

from __future__ import annotations

import numpy as np

from sfumato.random.bits import Keystream, PublicSeed


def test_a_public_seed_repeats_and_says_so():
    assert Keystream().private
    assert not PublicSeed(1).private
    whole, parts = PublicSeed(1), PublicSeed(1)
    assert np.array_equal(whole.words(12), np.concatenate([parts.words(5), parts.words(7)]))
    assert not np.array_equal(PublicSeed(1).words(4), PublicSeed("1").words(4))
    assert PublicSeed(b"x").words(3).flags.writeable
