"""Uniform bits: one AES-256-CTR keystream per process, keyed by the operating system and never seeded by the user.

Guarantee: given that AES-256 is a pseudorandom permutation and that ``os.urandom`` is unpredictable, the words are
indistinguishable from uniform ones. One key yields at most 2**30 bytes, 2**26 blocks, so that the distance between a
permutation and a function costs at most 2**(2*26 - 129) = 2**-77 per key.
No word is handed out twice: words leave under a lock, the small pool is wiped as it is spent, a forked child drops pool
and key before its first word, and a keystream refuses to be copied or pickled.
Not covered: the pool and the key may be swapped to disk; nothing here runs in constant time; the keystream is as good as
the operating system's seed.
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
from numpy.typing import NDArray

from sfumato.errors import InternalError

Words: TypeAlias = NDArray[np.uint64]

KEY_BYTES = 2**30
"""How many bytes one key yields before the next key is drawn."""

_POOL_WORDS = 512
_SMALL = 64
_ZEROS = memoryview(bytes(2**18))


class Bits(Protocol):
    """Where samplers take their bits from; ``private`` says whether the outcome may be called private."""

    @property
    def private(self) -> bool:
        """Whether nobody can predict the words."""

    def words(self, count: int) -> Words:
        """Return fresh uniform words, shape (count,), in an array that belongs to the caller."""


def _cipher(key: bytes) -> CipherContext:
    # Every key is used for one stream only, so the counter may start at zero.
    return Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()


class Keystream:
    """Private bits for one process: thread-safe, keyed anew after a fork and after ``key_bytes`` bytes."""

    private = True

    def __init__(self, key_bytes: int = KEY_BYTES) -> None:
        self._key_bytes = key_bytes
        self._forget()
        _streams.add(self)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._process = -1
        self._left = 0
        self._next = _POOL_WORDS
        self._pool = np.zeros(_POOL_WORDS, dtype=np.uint64)

    def words(self, count: int) -> Words:
        """Return fresh uniform words, shape (count,), in an array that belongs to the caller; ``count`` is at least 0."""
        if count < 0:
            raise InternalError(f"A sampler asked for {count} words.")
        with self._lock:
            if self._process != os.getpid():
                self._left, self._next, self._process = 0, _POOL_WORDS, os.getpid()
            if count <= _SMALL:
                return self._from_pool(count)
            fresh = np.empty(count, dtype=np.uint64)
            self._encrypt(fresh.data.cast("B"))
            return fresh

    def _from_pool(self, count: int) -> Words:
        if self._next + count > _POOL_WORDS:
            self._encrypt(self._pool.data.cast("B"))
            self._next = 0
        start = self._next
        # First of all: an interrupt after the wipe must not leave wiped words next in line.
        self._next += count
        spent = self._pool[start : start + count]
        fresh = spent.copy()
        spent.fill(0)
        return fresh

    def _encrypt(self, target: memoryview) -> None:
        start = 0
        while start < len(target):
            if self._left <= 0:
                self._context, self._left = _cipher(os.urandom(32)), self._key_bytes
            stop = min(len(target), start + len(_ZEROS), start + self._left)
            self._context.update_into(_ZEROS[: stop - start], target[start:stop])
            self._left -= stop - start
            start = stop

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a keystream is not copied: two copies would hand out the same words")


class PublicSeed:
    """Repeatable bits for tests: whoever knows the seed knows the noise, so nothing drawn from them is private."""

    private = False

    def __init__(self, seed: int | str | bytes) -> None:
        self._lock = threading.Lock()
        self._context = _cipher(hashlib.sha256(f"sfumato public seed {seed!r}".encode()).digest())

    def words(self, count: int) -> Words:
        """Return the next words of the seed's stream, shape (count,)."""
        with self._lock:
            return np.frombuffer(bytearray(self._context.update(bytes(8 * count))), dtype=np.uint64)


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
    """Return the bits in force: the process-wide keystream, or those of the innermost ``override``."""
    return _override.get() or _process_wide


@contextmanager
def override(bits: Bits) -> Iterator[Bits]:
    """Put other bits in force for the enclosed block of this thread or task; other threads keep the keystream."""
    token = _override.set(bits)
    try:
        yield bits
    finally:
        _override.reset(token)
