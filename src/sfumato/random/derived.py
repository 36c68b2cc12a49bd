"""Bits that can be read again, from a secret key and a position: noise of a saved state.

Guarantee: given that AES-256 is a pseudorandom permutation, the words of distinct positions and
keys are indistinguishable from independent uniform ones to whoever does not hold the key.
Holds because: the stream of a position is AES-CTR under a key of its own, which is two blocks of
AES under the secret key. Up to 2^25 positions those keys differ from random ones with an advantage
of at most 2^-77. Each stream changes its key every 2^30 bytes.
Not covered: whoever holds the key, in a state, a pickle or a checkpoint, knows all noise that comes
from it.
"""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sfumato.random.bits import KEY_BYTES, Bits, Words, current, keystream_cipher

_PIECE = 2**18
_ZEROS = memoryview(bytes(_PIECE))


def secret_key(bits: Bits | None = None) -> bytes:
    """Draw a key: 32 bytes of the given bits, or of those in force."""
    source = current() if bits is None else bits
    return source.words(4).tobytes()


class Derived:
    """The words of one position of a secret key, from the first on.

    The same key and position give the same words.
    """

    def __init__(self, key: bytes, position: int, *, private: bool = True) -> None:
        self.private = private
        self._key = key
        self._position = position
        self._round = 0
        self._change_key()

    def _change_key(self) -> None:
        block_cipher = Cipher(algorithms.AES256(self._key), modes.ECB()).encryptor()
        # One block names position, round and half of the key: 11 + 4 + 1 bytes. So no two keys come
        # from the same block.
        name = self._position.to_bytes(11, "big") + self._round.to_bytes(4, "big")
        own_key = block_cipher.update(name + bytes([0]) + name + bytes([1]))
        self._cipher = keystream_cipher(own_key)
        self._bytes_left = KEY_BYTES
        self._round += 1

    def words(self, count: int) -> Words:
        """Return the next words, shape (count,), in an array that belongs to the caller."""
        fresh = np.empty(count, dtype=np.uint64)
        target = fresh.data.cast("B")
        start = 0
        while start < len(target):
            if not self._bytes_left:
                self._change_key()
            stop = min(len(target), start + _PIECE, start + self._bytes_left)
            self._cipher.update_into(_ZEROS[: stop - start], target[start:stop])
            self._bytes_left -= stop - start
            start = stop
        return fresh
