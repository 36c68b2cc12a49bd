"""Who a row belongs to, as one or two 64-bit words that stand for the person and for no one else.

Integers, booleans, dates, times and doubles: one word, which is a secret bijection of the value,
hence exact. Text, bytes and decimals: two words, the AES-256 CBC-MAC of the value's length and
bytes.

Guarantee: two persons share their words never (one word), or with a chance of at most 2**-70 for
any 2**24 persons whose ids are at most 64 bytes long (two words).
Holds because: xor with a constant, multiplication by an odd number and xor of the upper half onto
the lower can each be undone modulo 2**64. CBC-MAC over messages none of which begins another, which
the length in the first block makes sure of, is a pseudorandom function: among q ids of at most b
blocks, the chance that any two meet exceeds that of random 128-bit words, q**2 / 2**129, by at most
12 b q**2 / 2**128 and terms that are smaller still (Bellare, Pietrzak, Rogaway 2005, Thm 3), given
that AES-256 is a pseudorandom permutation. The secret is drawn after the data are given, and no
output shows it. Were two persons to meet, they would keep r rows together, and each could change 2
r rows: that chance is a delta.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sfumato.arrays import Array
from sfumato.data.columns import decoded

_BLOCK = 16
_SECRETS = (
    2**127
)  # where in the key's counter the secrets of ids lie, beyond all priorities of rows


def ids(column: pa.Array) -> pa.Array:
    """Bring ids of persons to one form, missing ones null: NaN is missing, and the two zeros are one person."""
    found = decoded(column)
    if pt.is_floating(found.type):
        found = found.cast(pa.float64())
        return pc.if_else(pc.is_nan(found), None, pc.add(found, 0.0))
    if pt.is_date64(found.type):  # counted in milliseconds, whatever the time of day
        return pc.floor_temporal(found.cast(pa.timestamp("ms")), unit="day")
    return found.cast(pa.int8()) if pt.is_null(found.type) or pt.is_boolean(found.type) else found


class Words:
    """The secret map from ids to words.

    >>> words = Words(bytes(32))
    >>> [len(words.of(pa.array(ids))) for ids in ([1, 2], ["a", "b"])]
    [1, 2]
    """

    def __init__(self, key: bytes) -> None:
        secrets = (
            Cipher(algorithms.AES256(key), modes.CTR(_SECRETS.to_bytes(16, "big")))
            .encryptor()
            .update(bytes(64))
        )
        self._mix = [
            np.uint64(word | 1) for word in np.frombuffer(secrets[:32], np.uint64).tolist()
        ]
        self._block = Cipher(algorithms.AES256(secrets[32:]), modes.ECB()).encryptor()

    def of(self, ids: pa.Array) -> list[Array]:
        """Words of ids without nulls, each a uint64 ndarray of shape (ids,)."""
        plain = _plain(ids)
        return [self._mixed(plain)] if plain is not None else self._macs(ids)

    def _mixed(self, words: Array) -> Array:
        shift, first, second, third = self._mix
        words = words ^ shift
        for factor in (first, second, third):
            words *= factor
            words ^= words >> np.uint64(32)
        return words

    def _macs(self, ids: pa.Array) -> list[Array]:
        if pt.is_decimal(ids.type):
            ids = ids.cast(pa.string())
        offsets, data = _bytes_of(
            ids.cast(pa.binary()).cast(pa.large_binary())
            if pt.is_fixed_size_binary(ids.type)
            else ids
        )
        blocks = -(-np.diff(offsets) // _BLOCK)
        macs = np.empty((len(blocks), 2), np.uint64)
        most = 4
        left = np.argsort(-blocks, kind="stable")  # longest first
        while len(left):
            some = (
                blocks[left] <= most
            )  # lengths of one class differ little, which bounds what padding costs
            rows = left[some]
            left = left[~some]
            macs[rows] = self._class(offsets, data, rows)
            most *= 4
        return [np.ascontiguousarray(macs[:, 0]), np.ascontiguousarray(macs[:, 1])]

    def _class(self, offsets: Array, data: Array, rows: Array) -> Array:
        lengths = offsets[rows + 1] - offsets[rows]
        width = int(-(-lengths.max(initial=0) // _BLOCK)) * _BLOCK
        at = np.arange(width)
        padded = (
            data[np.minimum(offsets[rows, None] + at, len(data) - 1)]
            if width
            else np.zeros((len(rows), 0), np.uint8)
        )
        padded[at >= lengths[:, None]] = 0
        message = padded.view(np.uint64).reshape(len(rows), width // _BLOCK, 2)
        state = self._encrypt(
            np.stack([lengths.astype(np.uint64), np.zeros(len(rows), np.uint64)], axis=1)
        )
        for i in range(width // _BLOCK):
            longer = int(
                np.count_nonzero(lengths > i * _BLOCK)
            )  # rows are sorted, the longest first
            state[:longer] = self._encrypt(state[:longer] ^ message[:longer, i])
        return state

    def _encrypt(self, blocks: Array) -> Array:
        return np.frombuffer(bytearray(self._block.update(blocks.tobytes())), np.uint64).reshape(
            -1, 2
        )


def _plain(ids: pa.Array) -> Array | None:
    """Ids of at most 64 bits as they are: uint64 ndarray of shape (ids,); None for others."""
    type_ = ids.type
    if pt.is_date32(type_):
        ids = ids.view(pa.int32())
    elif pt.is_float64(type_) or pt.is_temporal(type_):
        ids = ids.view(pa.int64())
    elif not pt.is_integer(type_):
        return None
    wide = np.uint64 if pt.is_unsigned_integer(ids.type) else np.int64
    return np.asarray(ids.to_numpy(zero_copy_only=False)).astype(wide, copy=False).view(np.uint64)


def _bytes_of(ids: pa.Array) -> tuple[Array, Array]:
    """Offsets, int64 ndarray of shape (ids + 1,), into bytes."""
    ids = (
        ids.cast(pa.large_string() if pt.is_string(ids.type) else pa.large_binary())
        if not _is_large(ids.type)
        else ids
    )
    _, offsets, data = ids.buffers()
    where = (
        np.frombuffer(offsets, np.int64)[ids.offset : ids.offset + len(ids) + 1]
        if len(ids)
        else np.zeros(1, np.int64)
    )
    return where, np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)


def _is_large(type_: pa.DataType) -> bool:
    return bool(pt.is_large_string(type_) or pt.is_large_binary(type_))
