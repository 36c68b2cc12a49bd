"""A keyed hash of texts and bytes: the AES-256 CBC-MAC of the length and the bytes, two words.

It is a pseudorandom function, as ``random/macs.py`` says with its source.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from sfumato.basics.numbers import Array
from sfumato.random.streams import Macs

OBJECT = "\0"
"""What the id of a person begins with that was an object, and no text (see ``objects``)."""

_WRITTEN_INTEGER = r"^(?:\x00[mn])?(?:0|-?[1-9][0-9]{0,19})\z"
_SURE_DIGITS = 18  # so many always fit 64 bits


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
        state = np.zeros((len(blocks[0][0]), 2), np.uint64)
        for block in blocks:
            for column, word in enumerate(block):
                state[:, column] ^= word
            state = self._macs.encrypted(state)
        return [np.ascontiguousarray(state[:, 0]), np.ascontiguousarray(state[:, 1])]


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
    writes = pc.match_substring_regex(texts, _WRITTEN_INTEGER).to_numpy(zero_copy_only=False)
    if not writes.any():
        return words
    found = texts.filter(pa.array(writes)).cast(pa.large_string())
    found = pc.utf8_ltrim(found, f"{OBJECT}mn")
    found_words = words[writes]
    is_sure = pc.less_equal(pc.utf8_length(found), _SURE_DIGITS).to_numpy(zero_copy_only=False)
    sure = found.filter(pa.array(is_sure)).cast(pa.int64())
    found_words[is_sure] = sure.to_numpy(zero_copy_only=False).view(np.uint64)
    for index in np.flatnonzero(~is_sure).tolist():
        number = int(found[index].as_py())
        if -(2**63) <= number < 2**64:
            found_words[index] = number % 2**64
    words = words.copy()
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
    """The bytes of all texts, and where each begins: int64 offsets of shape (texts + 1,)."""
    texts = _as_texts(texts)
    _, offsets, data = texts.buffers()
    all_bytes = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    if len(texts) == 0:
        return np.zeros(1, np.int64), all_bytes
    # An array may be a slice: its offsets begin at ``texts.offset``.
    first = texts.offset
    return np.frombuffer(offsets, np.int64)[first : first + len(texts) + 1], all_bytes
