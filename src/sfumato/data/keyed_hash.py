"""A keyed hash of whole numbers: what may choose among the cells or rows of a person.

The hash of a fixed number of 64-bit words is their AES-256 CBC-MAC. Messages of one length are
prefix-free, so it is a pseudorandom function, as ``persons`` says with its source.
"""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sfumato.arrays import Array

# Row priorities use the keystream of a scan's key from counter 0 on, and the secrets of person
# tokens from 2**127 on. This lies beyond both.
_SECRET_COUNTER = 2**127 + 2**64


class KeyedHash:
    """Hashes rows of words, under a secret that follows from the key of a scan."""

    def __init__(self, key: bytes) -> None:
        mode = modes.CTR(_SECRET_COUNTER.to_bytes(16, "big"))
        secret = Cipher(algorithms.AES256(key), mode).encryptor().update(bytes(32))
        self._cipher = Cipher(algorithms.AES256(secret), modes.ECB()).encryptor()

    def of(self, words: list[Array]) -> Array:
        """Give the hash of each row: uint64 ndarray of shape (rows,).

        Parameters
        ----------
        words : list of int ndarray of shape (rows,)
            Always as many for one purpose, and at least one.
        """
        n_rows = len(words[0])
        state = np.zeros((n_rows, 2), np.uint64)
        for i in range(0, len(words), 2):
            for j, word in enumerate(words[i : i + 2]):
                state[:, j] ^= (
                    word.astype(np.int64, copy=False).view(np.uint64)
                    if (word.dtype != np.uint64)
                    else word
                )
            state = self._encrypted(state)
        return np.ascontiguousarray(state[:, 0])

    def _encrypted(self, blocks: Array) -> Array:
        return np.frombuffer(bytearray(self._cipher.update(blocks.tobytes())), np.uint64).reshape(
            -1, 2
        )
