"""A keyed hash of whole numbers: what chooses among the cells and rows of a person.

The hash of a fixed number of 64-bit words is their AES-256 CBC-MAC. Messages of one length are
prefix-free, so it is a pseudorandom function, as ``text_hash`` says with its source.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sfumato.basics.numbers import Array
from sfumato.data.scratch import Scratch

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
        self._scratch = Scratch()
        self._turn = 0  # a block is encrypted from one array to the other

    def of(self, words: list[Array], start: Sequence[Array] = ()) -> Array:
        """Give the hash of each row: uint64 ndarray of shape (rows,).

        Parameters
        ----------
        words : list of int ndarray of shape (rows,)
            At least one. Hashes are as if drawn independently among rows of as many words; those of
            fewer or more words are not independent of them.
        start : sequence of int ndarray of shape (rows,)
            At most two words that the first block is combined with, by exclusive or. Rows with the
            same start have the same hash only if they have the same words, but for collisions. Rows
            with different starts have hashes of different messages, unless their first two words
            differ just as their starts do.
        """
        n_rows = len(words[0])
        state = self._scratch.array("state", 2 * n_rows, np.uint64).reshape(n_rows, 2)
        for column in range(2):
            word = words[column] if column < len(words) else None
            _set(state[:, column], word, start[column] if column < len(start) else None)
        state = self._encrypted(state)
        for i in range(2, len(words), 2):
            for column, word in enumerate(words[i : i + 2]):
                state[:, column] ^= _unsigned(word)
            state = self._encrypted(state)
        return np.ascontiguousarray(state[:, 0])

    def _encrypted(self, blocks: Array) -> Array:
        # The cipher wants room for one block more than it fills.
        room = self._scratch.array(f"room {self._turn}", blocks.nbytes + _BLOCK, np.uint8)
        self._turn = 1 - self._turn
        self._cipher.update_into(blocks.reshape(-1).view(np.uint8).data, room.data)
        return room[: blocks.nbytes].view(np.uint64).reshape(-1, 2)


def _set(column: Array, word: Array | None, start: Array | None) -> None:
    """Fill one half of each block."""
    if word is None or start is None:
        one = start if word is None else word
        column[:] = 0 if one is None else _unsigned(one)
    else:
        np.bitwise_xor(_unsigned(word), _unsigned(start), out=column)


def _unsigned(word: Array) -> Array:
    """Whole numbers as words of 64 bits; negative ones modulo 2**64."""
    if word.dtype == np.uint64:
        return word
    return word.astype(np.int64, copy=False).view(np.uint64)
