"""Bits that can be read again: a function of a secret key and a position, for noise that belongs to a saved state.

Guarantee: given that AES-256 is a pseudorandom permutation, the words of distinct positions and keys are indistinguishable from
independent uniform ones to whoever does not hold the key.
Holds because: the stream of a position is AES-CTR under a key of its own, two blocks of AES under the secret key; up to 2^25
positions those keys differ from random ones with an advantage of at most 2^-77, and each stream changes its key every 2^30 bytes.
Not covered: whoever holds the key, in a state, a pickle or a checkpoint, knows all noise that comes from it.
"""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sfumato.random.bits import KEY_BYTES, Bits, Words, current

_PIECE = 2**18
_ZEROS = memoryview(bytes(_PIECE))


def secret_key(bits: Bits | None = None) -> bytes:
    """Draw a key: 32 bytes of the bits in force."""
    return (current() if bits is None else bits).words(4).tobytes()


class Derived:
    """The words of one position of a secret key, from the first on; two of them with the same key and position are the same."""

    def __init__(self, key: bytes, position: int, *, private: bool = True) -> None:
        self.private = private
        self._key, self._position, self._round = key, position, 0
        self._rekey()

    def _rekey(self) -> None:
        block = Cipher(algorithms.AES256(self._key), modes.ECB()).encryptor()
        names = [
            self._position.to_bytes(11, "big") + self._round.to_bytes(4, "big") + bytes([half])
            for half in (0, 1)
        ]
        own = block.update(b"".join(names))
        self._context = Cipher(algorithms.AES256(own), modes.CTR(bytes(16))).encryptor()
        self._left, self._round = KEY_BYTES, self._round + 1

    def words(self, count: int) -> Words:
        """Return the next words, shape (count,), in an array that belongs to the caller."""
        fresh = np.empty(count, dtype=np.uint64)
        target, start = fresh.data.cast("B"), 0
        while start < len(target):
            if not self._left:
                self._rekey()
            stop = min(len(target), start + _PIECE, start + self._left)
            self._context.update_into(_ZEROS[: stop - start], target[start:stop])
            self._left -= stop - start
            start = stop
        return fresh
