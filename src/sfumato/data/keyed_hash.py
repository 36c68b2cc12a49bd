"""A keyed hash of whole numbers: what chooses among the cells and rows of a person.

The hash of a fixed number of 64-bit words is their AES-256 CBC-MAC. Messages of one length are
prefix-free, so it is a pseudorandom function, as ``text_hash`` says with its source.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sfumato.arrays import Array

Purpose = Literal["rows", "copies", "cells", "keys"]
"""What is hashed. Each purpose has a secret of its own."""

_PURPOSES: tuple[Purpose, ...] = ("rows", "copies", "cells", "keys")

# The secrets of person tokens lie in the keystream of a scan's key from 2**127 on. These lie
# beyond them.
_SECRETS_COUNTER = 2**127 + 2**64

_BLOCK = 16  # bytes of an AES block


def secret_for(key: bytes, purpose: Purpose) -> bytes:
    """Derive the secret of one purpose from the key of a scan: 32 bytes."""
    counter = _SECRETS_COUNTER + 2 * _PURPOSES.index(purpose)
    mode = modes.CTR(counter.to_bytes(_BLOCK, "big"))
    return Cipher(algorithms.AES256(key), mode).encryptor().update(bytes(32))


class KeyedHash:
    """Hashes rows of words, under a secret that follows from the key of a scan."""

    def __init__(self, key: bytes, purpose: Purpose) -> None:
        secret = secret_for(key, purpose)
        self._cipher = Cipher(algorithms.AES256(secret), modes.ECB()).encryptor()

    def of(self, words: list[Array]) -> Array:
        """Give the hash of each row: uint64 ndarray of shape (rows,).

        Parameters
        ----------
        words : list of int ndarray of shape (rows,)
            Always as many for one purpose and key, and at least one.
        """
        state = np.zeros((len(words[0]), 2), np.uint64)
        for i in range(0, len(words), 2):
            for column, word in enumerate(words[i : i + 2]):
                state[:, column] ^= _unsigned(word)
            state = self._encrypted(state)
        return np.ascontiguousarray(state[:, 0])

    def _encrypted(self, blocks: Array) -> Array:
        # The cipher wants room for one block more than it fills.
        room = np.empty(blocks.nbytes + _BLOCK, np.uint8)
        self._cipher.update_into(blocks.reshape(-1).view(np.uint8).data, room.data)
        return room[: blocks.nbytes].view(np.uint64).reshape(-1, 2)


def _unsigned(word: Array) -> Array:
    """Whole numbers as words of 64 bits; negative ones modulo 2**64."""
    if word.dtype == np.uint64:
        return word
    return word.astype(np.int64, copy=False).view(np.uint64)
