"""Person tokens: one or two 64-bit words that stand for one person and for nobody else.

Ids that are integers, booleans, dates, times or doubles get a token of one word: a secret
bijection of the value, so two ids never share a token. Ids that are text, bytes or decimals get a
token of two words: the AES-256 CBC-MAC of the length and the bytes.

Guarantee: two persons never share a token of one word. For tokens of two words, the probability
that any two of at most 2**24 persons share one is at most 2**-70, for ids of at most 64 bytes.
Holds because: xor with a constant, multiplication by an odd number, and xor of the upper half onto
the lower half can each be undone modulo 2**64. The length in the first block makes sure that no
message is a prefix of another, and CBC-MAC over prefix-free messages is a pseudorandom function:
among q ids of at most b blocks, the probability of a collision exceeds that of random 128-bit
words, q**2 / 2**129, by at most 12 b q**2 / 2**128 and smaller terms (Bellare, Pietrzak, Rogaway
2005, Thm 3), given that AES-256 is a pseudorandom permutation. The secret is drawn after the data
are fixed, and no output shows it. If two persons shared a token, they would together keep r rows,
and each of them could change 2 r rows: the probability of this is a delta.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sfumato.arrays import Array
from sfumato.data.columns import decoded, numbers
from sfumato.data.moments import times_of

_BLOCK = 16  # bytes of an AES block

# The priorities of rows use the keystream of the same key from counter 0 on. No scan reaches the
# counter at which the secrets of tokens lie.
_SECRETS_COUNTER = 2**127


def normalized_ids(column: pa.Array) -> pa.Array:
    """Bring ids of persons to one form; missing ids become null.

    NaN is missing, and the two zeros are one person.
    """
    ids = times_of(decoded(column))
    if pt.is_floating(ids.type):
        doubles = ids.cast(pa.float64())
        return pc.if_else(pc.is_nan(doubles), None, pc.add(doubles, 0.0))
    if pt.is_date64(ids.type):
        # A date64 counts milliseconds, and may hold a time of day as well.
        return pc.floor_temporal(ids.cast(pa.timestamp("ms")), unit="day")
    if pt.is_null(ids.type) or pt.is_boolean(ids.type):
        return ids.cast(pa.int8())
    return ids


class PersonIds(NamedTuple):
    """Whose each row is.

    Attributes
    ----------
    ids : pyarrow.Array of shape (rows,)
        From ``normalized_ids``; null where the row has no person.
    periods : int64 ndarray of shape (rows,), or None
        Days since 1970-01-01, where a day is part of the person.
    """

    ids: pa.Array
    periods: Array | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def has_person(self) -> Array | None:
        """Which rows have a person: bool ndarray of shape (rows,); None where all have."""
        if not self.ids.null_count:
            return None
        return np.asarray(self.ids.is_valid().to_numpy(zero_copy_only=False))

    def kept(self, which: Array) -> PersonIds:
        """The rows for which a bool ndarray holds."""
        periods = None if self.periods is None else self.periods[which]
        return PersonIds(self.ids.filter(pa.array(which)), periods)


def person_ids(chunk: pa.RecordBatch, columns: Sequence[str]) -> PersonIds:
    """Read whose each row of a chunk is.

    Parameters
    ----------
    chunk : pyarrow.RecordBatch
    columns : sequence of str
        The column of the person, and that of the day that is part of the person, if there is one.
        Without a day, a row has no person.
    """
    ids = normalized_ids(chunk[columns[0]])
    if len(columns) == 1:
        return PersonIds(ids)
    days = numbers(chunk[columns[1]], "day")
    missing = np.isnan(days)
    if missing.any():
        ids = pc.if_else(pa.array(~missing), ids, pa.nulls(len(ids), ids.type))
        days = np.where(missing, 0, days)
    return PersonIds(ids, days.astype(np.int64))


class PersonTokens:
    """The secret map from ids to tokens.

    >>> tokens = PersonTokens(bytes(32))
    >>> [len(tokens.of(pa.array(ids))) for ids in ([1, 2], ["a", "b"])]
    [1, 2]
    """

    def __init__(self, key: bytes) -> None:
        mode = modes.CTR(_SECRETS_COUNTER.to_bytes(16, "big"))
        secrets = Cipher(algorithms.AES256(key), mode).encryptor().update(bytes(64))
        # A factor must be odd to have an inverse modulo 2**64. The first word is only xored.
        self._mix = [
            np.uint64(secret | 1) for secret in np.frombuffer(secrets[:32], np.uint64).tolist()
        ]
        self._cipher = Cipher(algorithms.AES256(secrets[32:]), modes.ECB()).encryptor()

    def of(self, ids: pa.Array) -> list[Array]:
        """Give the words of the tokens: one or two uint64 ndarrays of shape (ids,).

        Parameters
        ----------
        ids : pyarrow.Array
            Ids from ``normalized_ids``, without nulls.
        """
        integers = _as_integers(ids)
        return self._macs(ids) if integers is None else [self._mixed(integers)]

    def of_persons(self, persons: PersonIds) -> list[Array]:
        """The same for persons whose ids are not null, of which a day may be a part.

        With a day, a token is the CBC-MAC of the person's token and the day: two words. All
        messages of a table are equally long.
        """
        words = self.of(persons.ids)
        if persons.periods is None:
            return words
        state = np.zeros((len(persons), 2), np.uint64)
        for block in (words, [persons.periods.view(np.uint64)]):
            for column, word in enumerate(block):
                state[:, column] ^= word
            state = self._encrypt(state)
        return [np.ascontiguousarray(state[:, 0]), np.ascontiguousarray(state[:, 1])]

    def _mixed(self, words: Array) -> Array:
        """Apply a bijection of the 64-bit words: each of its steps can be undone."""
        shift, first, second, third = self._mix
        words = words ^ shift
        for factor in (first, second, third):
            words *= factor
            words ^= words >> np.uint64(32)
        return words

    def _macs(self, ids: pa.Array) -> list[Array]:
        """Compute the CBC-MACs of ids, in classes of similar length: padding then costs little."""
        offsets, data = _bytes_of(ids)
        n_blocks = -(-np.diff(offsets) // _BLOCK)
        macs = np.empty((len(n_blocks), 2), np.uint64)
        remaining = np.argsort(-n_blocks, kind="stable")  # longest first
        most_blocks = 4
        while len(remaining):
            in_class = n_blocks[remaining] <= most_blocks
            rows = remaining[in_class]
            remaining = remaining[~in_class]
            macs[rows] = self._macs_of_class(offsets, data, rows)
            most_blocks *= 4
        return [np.ascontiguousarray(macs[:, 0]), np.ascontiguousarray(macs[:, 1])]

    def _macs_of_class(self, offsets: Array, data: Array, rows: Array) -> Array:
        """CBC-MACs of some ids, which are sorted by length, the longest first."""
        lengths = offsets[rows + 1] - offsets[rows]
        n_blocks = int(-(-lengths.max(initial=0) // _BLOCK))
        padded = _padded(offsets[rows], lengths, data, n_blocks * _BLOCK)
        message = padded.view(np.uint64).reshape(len(rows), n_blocks, 2)
        # The length comes first, so that no message is a prefix of another.
        first_block = np.stack([lengths.astype(np.uint64), np.zeros(len(rows), np.uint64)], axis=1)
        state = self._encrypt(first_block)
        for i in range(n_blocks):
            n_longer = int(np.count_nonzero(lengths > i * _BLOCK))
            state[:n_longer] = self._encrypt(state[:n_longer] ^ message[:n_longer, i])
        return state

    def _encrypt(self, blocks: Array) -> Array:
        encrypted = bytearray(self._cipher.update(blocks.tobytes()))
        return np.frombuffer(encrypted, np.uint64).reshape(-1, 2)


def _as_integers(ids: pa.Array) -> Array | None:
    """Ids of at most 64 bits as uint64 ndarray of shape (ids,); None for other ids."""
    type_ = ids.type
    if pt.is_date32(type_):
        ids = ids.view(pa.int32())
    elif pt.is_float64(type_) or pt.is_temporal(type_):
        ids = ids.view(pa.int64())
    elif not pt.is_integer(type_):
        return None
    wide = np.uint64 if pt.is_unsigned_integer(ids.type) else np.int64
    return np.asarray(ids.to_numpy(zero_copy_only=False)).astype(wide, copy=False).view(np.uint64)


def _padded(starts: Array, lengths: Array, data: Array, width: int) -> Array:
    """Ids as rows of bytes, filled with zeros: uint8 ndarray of shape (ids, width)."""
    if width == 0:
        return np.zeros((len(starts), 0), np.uint8)
    columns = np.arange(width)
    padded = data[np.minimum(starts[:, None] + columns, len(data) - 1)]
    padded[columns >= lengths[:, None]] = 0
    return padded


def _bytes_of(ids: pa.Array) -> tuple[Array, Array]:
    """The bytes of all ids, and where each begins: int64 offsets of shape (ids + 1,)."""
    if pt.is_decimal(ids.type):
        ids = ids.cast(pa.string())
    if pt.is_fixed_size_binary(ids.type):
        ids = ids.cast(pa.binary())
    if pt.is_string(ids.type):
        ids = ids.cast(pa.large_string())
    elif not (pt.is_large_string(ids.type) or pt.is_large_binary(ids.type)):
        ids = ids.cast(pa.large_binary())
    _, offsets, data = ids.buffers()
    all_bytes = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    if len(ids) == 0:
        return np.zeros(1, np.int64), all_bytes
    # An array may be a slice: its offsets begin at ``ids.offset``.
    return np.frombuffer(offsets, np.int64)[ids.offset : ids.offset + len(ids) + 1], all_bytes
