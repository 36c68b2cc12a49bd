"""Keyed hashes of whole numbers, texts and bytes, and arrays that are used again and again.

*Arrays* (``Scratch``) whose memory is asked for once. The system fills every page that a process
asks for with zeros. For arrays of a few megabytes this takes as long as a few passes over them. For
the arrays of a chunk, which come and go, ``keep_freed_arrays`` does the same.

*Whole numbers* (``KeyedHash``): what chooses among the cells and rows of a person. The hash of a
fixed number of 64-bit words is their AES-256 CBC-MAC. Messages of one length are prefix-free, so it
is a pseudorandom function, as ``random/streams.py`` says with its source.

*Texts and bytes* (``TextHash``): the AES-256 CBC-MAC of the length and the bytes, two words. It is
a pseudorandom function, as ``random/streams.py`` says with its source.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import DTypeLike

from sfumato.basics import Array, array_of, ndarray_of, pc
from sfumato.random.streams import Macs, padded_words

_LEAST_BYTES = 2**22  # numpy asks for huge pages from this size on


def keep_freed_arrays() -> None:
    """Let the memory of freed arrays below ``_LEAST_BYTES`` be used again in this process.

    The allocator of glibc gives freed memory back to the system until a larger block was freed once
    than those that come and go. Then it keeps what would be asked for again: a third of the time of
    a scan of numbers. Other allocators keep it anyway.
    """
    np.empty(_LEAST_BYTES, np.uint8)


class Scratch:
    """Hands out arrays by name. An array is valid until its name is asked for again."""

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}

    def array(self, name: str, length: int, dtype: DTypeLike) -> Array:
        """Give an array of the length and type; what is in it is arbitrary.

        Parameters
        ----------
        name : str
            Always of one type.
        """
        held = self._arrays.get(name)
        if held is None or len(held) < length:
            itemsize = np.dtype(dtype).itemsize
            # A little more than was asked for: the next partition may be a little larger.
            room = length + length // 8
            if room * itemsize >= _LEAST_BYTES // 4:
                room = max(room, _LEAST_BYTES // itemsize)
            held = self._arrays[name] = np.empty(room, dtype)
        return held[:length]


Purpose = Literal["rows", "copies", "cells", "keys"]
"""What is hashed. Each purpose has a secret of its own."""

_PURPOSES: tuple[Purpose, ...] = ("rows", "copies", "cells", "keys")

# Where the secrets lie in the keystream of a scan's key: beyond those of person tokens.
_SECRETS_COUNTER = 2**127 + 2**64
_TOKENS_COUNTER = 2**127

_BLOCK = 16  # bytes of an AES block


def secret_for(key: bytes, purpose: Purpose) -> bytes:
    """Derive the secret of one purpose from the key of a scan: 32 bytes."""
    return _keystream(key, _SECRETS_COUNTER + 2 * _PURPOSES.index(purpose), 32)


def secrets_of_tokens(key: bytes) -> bytes:
    """Derive what person tokens are made with from the key of a scan: 64 bytes."""
    return _keystream(key, _TOKENS_COUNTER, 64)


def _keystream(key: bytes, counter: int, n_bytes: int) -> bytes:
    mode = modes.CTR(counter.to_bytes(_BLOCK, "big"))
    return Cipher(algorithms.AES256(key), mode).encryptor().update(bytes(n_bytes))


class KeyedHash:
    """Hashes rows of words, under a secret that follows from the key of a scan."""

    def __init__(self, key: bytes, purpose: Purpose) -> None:
        self._macs = Macs(secret_for(key, purpose))

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
        blocks = [words[first : first + 2] for first in range(0, len(words), 2)]
        return _chained(self._macs, blocks, start)[0]


def _chained(
    macs: Macs, blocks: Sequence[Sequence[Array]], start: Sequence[Array] = ()
) -> list[Array]:
    """Encrypt the chains of all rows together, block by block: the two words of each last block."""
    state = np.zeros((len(blocks[0][0]), 2), np.uint64)
    for column, word in enumerate(start):
        state[:, column] = _unsigned(word)
    for block in blocks:
        for column, word in enumerate(block):
            state[:, column] ^= _unsigned(word)
        state = macs.encrypted(state)
    return [np.ascontiguousarray(state[:, 0]), np.ascontiguousarray(state[:, 1])]


def _unsigned(word: Array) -> Array:
    """Whole numbers as words of 64 bits; negative ones modulo 2**64."""
    if word.dtype == np.uint64:
        return word
    return word.astype(np.int64, copy=False).view(np.uint64)


OBJECT = "\0"
"""What the id of a person begins with that was an object, and no text (see ``objects``)."""

_WRITTEN_INTEGER = r"^(?:\x00[mn])?(?:0|-?[1-9][0-9]{0,19})\z"
_SURE_DIGITS = 18  # so many always fit 64 bits
_LONGEST_INTEGER = len("\0n-") + 20


class TextHash:
    """Hashes texts under a secret of 32 bytes."""

    def __init__(self, secret: bytes) -> None:
        self._macs = Macs(secret)

    def of(self, texts: pa.Array) -> list[Array]:
        """Give the two words of each text: uint64 ndarrays of shape (texts,).

        Parameters
        ----------
        texts : pyarrow.Array
            Of text or bytes, without nulls.
        """
        macs = self._macs.of(*_bytes_of(texts))
        return [np.ascontiguousarray(macs[:, 0]), np.ascontiguousarray(macs[:, 1])]

    def of_blocks(self, blocks: list[list[Array]]) -> list[Array]:
        """Give the CBC-MACs of messages of one length: two uint64 ndarrays of shape (rows,).

        Parameters
        ----------
        blocks : list of lists of uint64 ndarray of shape (rows,)
            One or two words for each block.
        """
        return _chained(self._macs, blocks)


def with_written_integers(texts: pa.Array, words: Array) -> Array:
    """Give texts that write a whole number of 64 bits that number in place of their word.

    So 17, 17.00 and "17" are the same for a hash, whatever a file format makes of a column; and a
    time that was an object is its nanoseconds.

    Parameters
    ----------
    texts : pyarrow.Array
        Of text or bytes, without nulls.
    words : uint64 ndarray of shape (texts,)
        It is not changed.
    """
    texts = _as_texts(texts)
    offsets, data = _bytes_of(texts)
    lengths = np.diff(offsets)
    start = padded_words(offsets[:-1], lengths, data, 2)
    numbers, is_plain = _plain_numbers(start, lengths)
    if is_plain.all():
        return numbers
    first = start[:, 0] & np.uint64(0xFF)
    may_write = (first == ord("-")) | (first == ord(OBJECT)) | (lengths > _BLOCK)
    odd = np.flatnonzero(may_write & ~is_plain & (lengths <= _LONGEST_INTEGER))
    # The words of the caller are tokens of persons, and must stay as they are.
    words = np.where(is_plain, numbers, words)
    if len(odd):
        words[odd] = _with_odd_integers(texts.take(array_of(odd)), words[odd])
    return words


def _plain_numbers(start: Array, lengths: Array) -> tuple[Array, Array]:
    """Read texts of at most 16 digits, of which only a single one may begin with 0.

    Parameters
    ----------
    start : uint64 ndarray of shape (texts, 2)
        The first 16 bytes of each text, filled with zeros.
    lengths : int64 ndarray of shape (texts,)

    Returns
    -------
    numbers : uint64 ndarray of shape (texts,)
        Anything where a text is none of these.
    is_plain : bool ndarray of shape (texts,)
    """
    numbers, is_plain = _digits(start[:, 0], np.clip(lengths, 0, 8))
    is_plain &= (start[:, 0] & np.uint64(0xFF) != ord("0")) | (lengths == 1)
    is_plain &= (lengths > 0) & (lengths <= _BLOCK)
    longer = np.flatnonzero(is_plain & (lengths > 8))
    if len(longer):
        n_digits = lengths[longer] - 8
        last, is_plain[longer] = _digits(start[longer, 1], n_digits)
        numbers[longer] = numbers[longer] * _POWERS_OF_TEN[n_digits] + last
    return numbers, is_plain


_POWERS_OF_TEN = np.array([10**power for power in range(9)], np.uint64)
_BYTES = 0x0101010101010101
"""A word in which each byte is 1."""

# By how many bytes of a word are read.
_FREE_BITS = np.array([63, *range(56, -1, -8)], np.uint64)
_LEADING_ZEROS = np.array(
    [_BYTES * ord("0") & (1 << 8 * n_free) - 1 for n_free in range(8, -1, -1)], np.uint64
)


def _digits(words: Array, lengths: Array) -> tuple[Array, Array]:
    """Read the first bytes of words as a number, and tell whether all of them are digits.

    All eight bytes of a word are read at once: two digits make a number below 100, and so on.

    Parameters
    ----------
    words : uint64 ndarray of shape (words,)
        The first byte is the lowest one; those that are not read are 0.
    lengths : int64 ndarray of shape (words,)
        How many bytes are read: at most 8.
    """
    # Leading zeros fill the word. Where nothing is read, it is 0 already, and any move does.
    words = words << _FREE_BITS.take(lengths)
    words |= _LEADING_ZEROS.take(lengths)
    high = np.uint64(_BYTES * 0xF0)
    # A byte is a digit if it is at least "0" and, with 6 added to it, at most "?".
    is_low = (words & high) == np.uint64(_BYTES * ord("0"))
    are_digits = is_low & (((words + np.uint64(_BYTES * 6)) & high) == np.uint64(_BYTES * ord("0")))
    words &= np.uint64(_BYTES * 0x0F)
    for mask, factor, n_bits in (
        (0xFFFFFFFFFFFFFFFF, 10 * 2**8 + 1, 8),
        (0x00FF00FF00FF00FF, 100 * 2**16 + 1, 16),
        (0x0000FFFF0000FFFF, 10_000 * 2**32 + 1, 32),
    ):
        words &= np.uint64(mask)
        words *= np.uint64(factor)
        words >>= np.uint64(n_bits)
    return words, are_digits


def _with_odd_integers(texts: pa.Array, words: Array) -> Array:
    """Do the same for texts that may be anything, by a pattern."""
    writes = ndarray_of(pc.match_substring_regex(texts, _WRITTEN_INTEGER))
    if not writes.any():
        return words
    digits = texts.filter(array_of(writes)).cast(pa.large_string())
    digits = pc.utf8_ltrim(digits, f"{OBJECT}mn")
    found_words = words[writes]
    is_sure = ndarray_of(pc.utf8_length(digits)) <= _SURE_DIGITS
    sure = digits.filter(array_of(is_sure)).cast(pa.int64())
    found_words[is_sure] = ndarray_of(sure).view(np.uint64)
    for index in np.flatnonzero(~is_sure).tolist():
        number = int(digits[index].as_py())
        if -(2**63) <= number < 2**64:
            found_words[index] = number % 2**64
    words[writes] = found_words
    return words


def written_decimals(decimals: pa.Array) -> pa.Array:
    """Write decimals so that equal ones of any scale are written alike: LargeStringArray.

    >>> from decimal import Decimal
    >>> written_decimals(pa.array([Decimal("7.50"), Decimal("700.00"), None])).to_pylist()
    ['7.5', '700', None]
    """
    texts = decimals.cast(pa.large_string())
    # Arrow writes small numbers, and those of a negative scale, with an exponent.
    has_exponent = pc.match_substring(texts, "E")
    if pc.any(has_exponent).as_py():
        odd = texts.filter(has_exponent.fill_null(False)).to_pylist()
        written = pa.array([format(Decimal(text), "f") for text in odd], pa.large_string())
        texts = pc.replace_with_mask(texts, has_exponent.fill_null(False), written)
    stripped = pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")
    # Without a point, the zeros at the end are digits of a whole number.
    return pc.if_else(pc.match_substring(texts, "."), stripped, texts)


def _as_texts(texts: pa.Array) -> pa.Array:
    """Text as large strings, anything else as large bytes."""
    if pt.is_fixed_size_binary(texts.type):
        texts = texts.cast(pa.binary())
    if pt.is_string(texts.type):
        return texts.cast(pa.large_string())
    if pt.is_large_string(texts.type) or pt.is_large_binary(texts.type):
        return texts
    return texts.cast(pa.large_binary())


def _bytes_of(texts: pa.Array) -> tuple[Array, Array]:
    """Return the bytes of all texts, and where each begins: int64 offsets of shape (texts + 1,)."""
    texts = _as_texts(texts)
    _, offsets, data = texts.buffers()
    all_bytes = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    if len(texts) == 0:
        return np.zeros(1, np.int64), all_bytes
    # An array may be a slice: its offsets begin at ``texts.offset``.
    first = texts.offset
    return np.frombuffer(offsets, np.int64)[first : first + len(texts) + 1], all_bytes
