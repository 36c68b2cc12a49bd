"""Repeatable bits from a public seed, for tests and rehearsals.

No sampler knows of them: they come in by ``override``.
"""

from __future__ import annotations

import hashlib
import threading

import numpy as np

from sfumato.random.bits import Words, keystream_cipher


class PublicSeed:
    """Bits that repeat: whoever knows the seed knows the noise, so nothing drawn from them is
    private.
    """

    private = False

    def __init__(self, seed: int | str | bytes) -> None:
        self._lock = threading.Lock()
        key = hashlib.sha256(f"sfumato public seed {seed!r}".encode()).digest()
        self._cipher = keystream_cipher(key)

    def words(self, count: int) -> Words:
        """Return the next words of the seed's stream, shape (count,)."""
        with self._lock:
            stream = self._cipher.update(bytes(8 * count))
        # A bytearray, so that the array may be written to as any other words may.
        return np.frombuffer(bytearray(stream), dtype=np.uint64)
