"""Uniform bits for all noise: a keystream, repeatable bits for tests, and bits of a secret key.

*The keystream*: one AES-256-CTR keystream per process, keyed by the operating system. Users cannot
seed it. Code that draws noise takes its bits as a parameter of type ``Bits``; only the public entry
points ask for ``current()``. ``override`` is the one seam through which other bits come into force:
``sfumato.testing.deterministic`` and the audit use it, and whatever is made under bits that are not
private says so.

Guarantee: the words are indistinguishable from uniform ones, given that AES-256 is a pseudorandom
permutation and that ``os.urandom`` is unpredictable. One key yields at most 2**30 bytes, which is
2**26 blocks, so that the distance between a permutation and a function costs at most 2**(2*26 -
129) = 2**-77 per key.
Holds because: no word is handed out twice. Words leave under a lock; the pool of small requests is
wiped as it is spent; a forked child drops pool and key before its first word; a keystream refuses
to be copied or pickled.
Not covered: the pool and the key may be swapped to disk; nothing here runs in constant time; the
keystream is as good as the operating system's seed.

*Repeatable bits* (``PublicSeed``) come from a public seed, for tests and rehearsals. No sampler
knows of them: they come in by ``override``.

*Bits of a secret key and a position* (``Derived``) can be read again: noise of a saved state.

The noise of a charge comes from such bits, too (``of_charge``): the key is drawn with the charge,
kept in the secrets of the ledger, and wiped when the answer is stored. Whoever resumes the charge
draws the same words, so that no failed attempt chooses among several draws.

Guarantee: given that AES-256 is a pseudorandom permutation, the words of distinct positions and
keys are indistinguishable from independent uniform ones to whoever does not hold the key.
Holds because: the stream of a position is AES-CTR under a key of its own, which is two blocks of
AES under the secret key. Up to 2^25 positions those keys differ from random ones with an advantage
of at most 2^-77. Each stream changes its key every 2^30 bytes.
Not covered: whoever holds the key, in a state, a pickle or a checkpoint, knows all noise that comes
from it.
"""

from __future__ import annotations

import hashlib
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NoReturn, Protocol, TypeAlias

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from sfumato.errors import InternalError

Words: TypeAlias = np.typing.NDArray[np.uint64]
"""64-bit words of uniform bits."""

KEY_BYTES = 2**30
"""How many bytes one key yields before the next key is drawn."""

_POOL_WORDS = 512
_ZEROS = memoryview(bytes(2**18))


class Bits(Protocol):
    """Where samplers take their bits from; ``private`` says whether the outcome may be called
    private.

    >>> from sfumato.random.bits import current
    >>> current().private
    True
    """

    @property
    def private(self) -> bool:
        """Whether nobody can predict the words."""

    def words(self, count: int) -> Words:
        """Return fresh uniform words, shape (count,), in an array that belongs to the caller."""


def keystream_cipher(key: bytes) -> CipherContext:
    """Start the AES-256-CTR keystream of a key that is used for no other stream."""
    # Every key is used for one stream only, so the counter may start at zero.
    return Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()


class Keystream:
    """Private bits for one process: thread-safe, with a new key after a fork and after
    ``KEY_BYTES`` bytes.
    """

    private = True

    def __init__(self) -> None:
        self._forget()
        _streams.add(self)

    def _forget(self) -> None:
        # The lock is new as well: a fork may have copied one that another thread held.
        self._lock = threading.Lock()
        self._process = -1
        self._drop_key()
        self._pool = np.zeros(_POOL_WORDS, dtype=np.uint64)

    def _drop_key(self) -> None:
        """Spend the pool and the key, so that the next word comes from a new key."""
        self._bytes_left = 0
        self._next = _POOL_WORDS

    def words(self, count: int) -> Words:
        """Return fresh uniform words, shape (count,), in an array that belongs to the caller.

        Parameters
        ----------
        count : int
            At least 0.
        """
        if count < 0:
            raise InternalError(f"A sampler asked for {count} words.")
        with self._lock:
            # The fork handler does the same. This covers forks that bypass it.
            if self._process != os.getpid():
                self._drop_key()
                self._process = os.getpid()
            if count <= 64:
                return self._from_pool(count)
            fresh = np.empty(count, dtype=np.uint64)
            self._encrypt(fresh.data.cast("B"))
            return fresh

    def _from_pool(self, count: int) -> Words:
        # What is left of the pool is dropped, not used first: words are handed out in one piece.
        if self._next + count > _POOL_WORDS:
            self._encrypt(self._pool.data.cast("B"))
            self._next = 0
        start = self._next
        # The position moves first: an interrupt after the wipe must not leave wiped words next in
        # line.
        self._next += count
        spent = self._pool[start : start + count]
        fresh = spent.copy()
        spent.fill(0)
        return fresh

    def _encrypt(self, target: memoryview) -> None:
        """Fill the target with keystream, changing the key wherever one is used up."""
        start = 0
        while start < len(target):
            if self._bytes_left <= 0:
                self._cipher = keystream_cipher(os.urandom(32))
                self._bytes_left = KEY_BYTES
            stop = min(len(target), start + len(_ZEROS), start + self._bytes_left)
            self._cipher.update_into(_ZEROS[: stop - start], target[start:stop])
            self._bytes_left -= stop - start
            start = stop

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a keystream is not copied: two copies would hand out the same words")


_streams: weakref.WeakSet[Keystream] = weakref.WeakSet()
_process_wide = Keystream()
_override: ContextVar[Bits | None] = ContextVar("sfumato_bits", default=None)


def _forget_all() -> None:
    for stream in list(_streams):
        stream._forget()


# Windows has no fork, and there each process starts with an empty keystream anyway.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


def current() -> Bits:
    """Return the bits in force: those of the innermost ``override``, or the keystream."""
    return _override.get() or _process_wide


@contextmanager
def override(bits: Bits) -> Iterator[Bits]:
    """Put other bits in force for the enclosed block of this thread or task; other threads keep the
    keystream.
    """
    token = _override.set(bits)
    try:
        yield bits
    finally:
        _override.reset(token)


# --- repeatable bits ------------------------------------------------------------------------------


class PublicSeed:
    """Bits that repeat: whoever knows the seed knows the noise, so nothing drawn from them is
    private.
    """

    private = False

    def __init__(self, seed: int | str | bytes) -> None:
        self._lock = threading.Lock()
        self._cipher = keystream_cipher(
            hashlib.sha256(f"sfumato public seed {seed!r}".encode()).digest()
        )

    def words(self, count: int) -> Words:
        """Return the next words of the seed's stream, shape (count,)."""
        with self._lock:
            stream = self._cipher.update(bytes(8 * count))
        # A bytearray, so that the array may be written to as any other words may.
        return np.frombuffer(bytearray(stream), dtype=np.uint64)


# --- bits of a secret key and a position ----------------------------------------------------------


def secret_key(bits: Bits | None = None) -> bytes:
    """Draw a key: 32 bytes of the given bits, or of those in force."""
    # 256 bits, so that keys never repeat by chance, however many there are.
    return (current() if bits is None else bits).words(4).tobytes()


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
            stop = min(len(target), start + len(_ZEROS), start + self._bytes_left)
            self._cipher.update_into(_ZEROS[: stop - start], target[start:stop])
            self._bytes_left -= stop - start
            start = stop
        return fresh


def of_charge(seed: bytes, in_force: Bits) -> Bits:
    """Return the bits for the noise of a charge: those of its seed, from the first on.

    Parameters
    ----------
    seed : bytes of length 32
        Drawn for this charge alone.
    in_force : Bits
        What was in force when it was charged. Bits that an ``override`` put in force stay.
    """
    return Derived(seed, 0) if in_force is _process_wide else in_force
