"""Keyed hashes of many messages at once: their AES-256 CBC-MACs, two words each.

The length in the first block makes sure that no message is a prefix of another, and CBC-MAC over
prefix-free messages is a pseudorandom function (Bellare, Pietrzak, Rogaway 2005, Thm 3), given that
AES-256 is a pseudorandom permutation.
"""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from sfumato.random.bits import Words

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]

BLOCK = 16
"""Bytes of an AES block."""


class Macs:
    """Hashes messages under a secret of 32 bytes."""

    def __init__(self, secret: bytes) -> None:
        self._cipher = Cipher(algorithms.AES256(secret), modes.ECB()).encryptor()

    def encrypted(self, blocks: Words) -> Words:
        """Encrypt each block by itself: uint64 ndarray of shape (blocks, 2)."""
        encrypted = bytearray(self._cipher.update(blocks.tobytes()))
        return np.frombuffer(encrypted, np.uint64).reshape(-1, 2)

    def of(self, offsets: Offsets, data: Bytes, head: int = 0) -> Words:
        """Give the two words of each message: uint64 ndarray of shape (messages, 2).

        Messages are hashed in classes of similar length: padding then costs little.

        Parameters
        ----------
        offsets : int64 ndarray of shape (messages + 1,)
            Where each message begins in ``data``, and where the last one ends.
        data : uint8 ndarray
        head : int
            A number below 2^64 that is hashed before each message: hashes of one message under
            different heads are as if drawn independently.
        """
        n_blocks = -(-np.diff(offsets) // BLOCK)
        macs = np.empty((len(n_blocks), 2), np.uint64)
        remaining = np.argsort(-n_blocks, kind="stable")  # longest first
        most_blocks = 4
        while len(remaining):
            in_class = n_blocks[remaining] <= most_blocks
            messages = remaining[in_class]
            remaining = remaining[~in_class]
            macs[messages] = self._of_class(offsets, data, messages, head)
            most_blocks *= 4
        return macs

    def _of_class(self, offsets: Offsets, data: Bytes, messages: Offsets, head: int) -> Words:
        """Hash some messages, which are sorted by length, the longest first."""
        lengths = offsets[messages + 1] - offsets[messages]
        n_blocks = int(-(-lengths.max(initial=0) // BLOCK))
        padded = _padded(offsets[messages], lengths, data, n_blocks * BLOCK)
        blocks = padded.view(np.uint64).reshape(len(messages), n_blocks, 2)
        # The length comes first, so that no message is a prefix of another.
        first_block = np.empty((len(messages), 2), np.uint64)
        first_block[:, 0] = lengths
        first_block[:, 1] = head
        state = self.encrypted(first_block)
        for i in range(n_blocks):
            n_longer = int(np.count_nonzero(lengths > i * BLOCK))
            state[:n_longer] = self.encrypted(state[:n_longer] ^ blocks[:n_longer, i])
        return state


def _padded(starts: Offsets, lengths: Offsets, data: Bytes, width: int) -> Bytes:
    """Messages as rows of bytes, filled with zeros: uint8 ndarray of shape (messages, width)."""
    if width == 0:
        return np.zeros((len(starts), 0), np.uint8)
    columns = np.arange(width)
    padded: Bytes = data[np.minimum(starts[:, None] + columns, len(data) - 1)]
    padded[columns >= lengths[:, None]] = 0
    return padded
