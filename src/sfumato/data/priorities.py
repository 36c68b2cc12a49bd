"""Who is one person, tokens of persons, and priorities of rows.

*Persons.* A token is one or two 64-bit words for one person and for nobody else. Two rows belong to
one person if their ids are the same value, exactly:

* Whole numbers, decimals and floating-point numbers are compared as numbers, in full: 7.0 and
  7.000 are one person, and 2^53 and 2^53 + 1 are two. The two zeros are one person.
* Text and bytes are compared as they are written: "7", "07", "7.0" and "7 " are four persons. In
  CSV and Excel files and in the names of folders, every id is text.
* A date is its day, also in 64 bits; a time is an instant, to the last digit of its type; so is a
  period, whatever its year.
* Dictionary, view and large forms, and the width of whole numbers, make no difference.
* Missing, and so nobody: null and NaN.

One table has ids of one kind: number and text are never compared. Where the files of a table have
ids of types in which equal ids might be unequal, or unequal ones equal, the schema is refused
before the charge (``schema.ids_form``); and so is an id that would be read as something else
than it is because an axis reads its column too (``fields.require_exact_ids``).

Ids that are integers, booleans, dates, times or doubles get a token of one word: a secret
bijection of the value, so two ids never share a token. Ids that are text, bytes or decimals get a
token of two words: the AES-256 CBC-MAC of the length and the bytes.

Guarantee: two persons never share a token of one word. For tokens of two words, the probability
that any two of at most 2**24 persons share one is at most 2**-70, for ids of at most 64 bytes.
Holds because: xor with a constant, multiplication by an odd number, and xor of the upper half onto
the lower half can each be undone modulo 2**32. A token of one word is made of the halves of the
value: one is mixed in this way, and the other is mixed after an xor with the first. The length in
the first block makes sure that no message is a prefix of another, and CBC-MAC over prefix-free
messages is a pseudorandom function: among q ids of at most b blocks, the probability of a collision
exceeds that of random 128-bit words, q**2 / 2**129, by at most 12 b q**2 / 2**128 and smaller terms
(Bellare, Pietrzak, Rogaway 2005, Thm 3), given that AES-256 is a pseudorandom permutation. The
secret is drawn after the data are fixed, and no output shows it. If two persons shared a token,
they would together keep r rows, and each of them could change 2 r rows: the probability of this is
a delta.

*Priorities of rows*: a keyed hash of the person and of the row's values.

The hash is over the person and over the values of certain columns, in the order of their names.
Every lattice that is counted under one choice of rows has only such columns. What is hashed is what
a column says, and not the cell of a lattice:

* a number, date or time as its double: the two zeros are one, and what is missing is one;
* a label as its number among the labels that the domain lists;
* a key by the hash of its text, never by a number in order of occurrence.

The hash is a CBC-MAC of the values' words whose chain starts with the person's word. Rows of one
person with different values are different messages of one length under one start, so their hashes
are as if drawn independently. Hashes of two persons are related only if the persons' words, which
are secret, differ in exactly the bits in which the first values of two of their rows differ.

So a row has the same priority on a lattice and on its refinement, wherever it stands in a table,
and whatever the format of the table. Rows of a person that are alike in all of these columns are
copies: they have one priority here, and lie in the same cells.

*Keyed hashes* of whole numbers, texts and bytes, on which both rest.

*Whole numbers* (``KeyedHash``): what chooses among the cells and rows of a person. The hash of a
fixed number of 64-bit words is their AES-256 CBC-MAC. Messages of one length are prefix-free, so it
is a pseudorandom function, as ``random/streams.py`` says with its source.

*Texts and bytes* (``TextHash``): the AES-256 CBC-MAC of the length and the bytes, two words. It is
a pseudorandom function, as ``random/streams.py`` says with its source.

*Arrays* (``Scratch``) whose memory is asked for once. The system fills every page that a process
asks for with zeros. For arrays of a few megabytes this takes as long as a few passes over them. For
the arrays of a chunk, which come and go, ``keep_freed_arrays`` does the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sfumato.answers import Needs
from sfumato.basics import Array, array_of, ndarray_of, pc, without
from sfumato.data.columns import TICKS_A_SECOND, decoded, numbers
from sfumato.data.dates import times_of
from sfumato.data.keys import KeyNumbers
from sfumato.data.reader import ids_name
from sfumato.domain import SECONDS_A_DAY, KeyAxis, LabelAxis, LatticeAxis
from sfumato.random.streams import Macs, padded_words

# --- arrays, and hashes of them -------------------------------------------------------------------

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

    def array(self, name: str, length: int, dtype: np.typing.DTypeLike) -> Array:
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


# What is hashed. Each purpose has a secret of its own.
Purpose = Literal["rows", "copies", "cells", "keys"]

_PURPOSES: tuple[Purpose, ...] = ("rows", "copies", "cells", "keys")

# Where the secrets lie in the keystream of a scan's key: beyond those of person tokens.
_SECRETS_COUNTER = 2**127 + 2**64
_TOKENS_COUNTER = 2**127

_BLOCK = 16  # bytes of an AES block


def secret_for(key: bytes, purpose: Purpose) -> bytes:
    """Derive the secret of one purpose from the key of a scan: 32 bytes."""
    return _keystream(key, _SECRETS_COUNTER + 2 * _PURPOSES.index(purpose), 32)


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


# What the id of a person begins with that was an object, and no text (see ``objects``).
OBJECT = "\0"

_WRITTEN_INTEGER = r"^(?:\x00[mn])?(?:0|-?[1-9][0-9]{0,19})\z"
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
# A word in which each byte is 1.
_BYTES = 0x0101010101010101

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
    # So many digits always fit 64 bits.
    is_sure = ndarray_of(pc.utf8_length(digits)) <= 18
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
    if pa.types.is_fixed_size_binary(texts.type):
        texts = texts.cast(pa.binary())
    if pa.types.is_string(texts.type):
        return texts.cast(pa.large_string())
    if pa.types.is_large_string(texts.type) or pa.types.is_large_binary(texts.type):
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


# --- persons --------------------------------------------------------------------------------------


def normalized_ids(column: pa.Array) -> pa.Array:
    """Bring ids of persons to one form, in which equal ids are alike; missing ids become null."""
    ids = decoded(column)
    if pa.types.is_struct(ids.type):
        ids = times_of(ids)
    if pa.types.is_floating(ids.type):
        doubles = ndarray_of(ids.cast(pa.float64()))
        # The sum with 0 makes the negative zero the positive one: the two are one person.
        return array_of(doubles + 0.0, np.isnan(doubles))
    if pa.types.is_decimal(ids.type):
        return written_decimals(ids)
    if pa.types.is_date64(ids.type):
        # A date64 counts milliseconds, and may hold a time of day as well.
        return pc.floor_temporal(ids.cast(pa.timestamp("ms")), unit="day")
    if pa.types.is_null(ids.type) or pa.types.is_boolean(ids.type):
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


def person_ids(chunk: pa.RecordBatch, columns: Sequence[str]) -> PersonIds:
    """Read whose each row of a chunk is.

    Parameters
    ----------
    chunk : pyarrow.RecordBatch
    columns : sequence of str
        The column of the person, and that of the day that is part of the person, if there is one.
        Without a day, a row has no person.
    """
    apart = chunk.schema.get_field_index(ids_name(columns[0]))
    ids = normalized_ids(chunk[columns[0] if apart < 0 else apart])
    if len(columns) == 1:
        return PersonIds(ids)
    days = numbers(chunk[columns[1]], "day")
    missing = np.isnan(days)
    if missing.any():
        ids = without(ids, array_of(missing))
        # These rows are nobody's now. A NaN would have no whole number.
        days = np.where(missing, 0, days)
    return PersonIds(ids, days.astype(np.int64))


class PersonTokens:
    """The secret map from ids to tokens.

    >>> tokens = PersonTokens(bytes(32))
    >>> [len(tokens.of(pa.array(ids))) for ids in ([1, 2], ["a", "b"])]
    [1, 2]
    """

    def __init__(self, key: bytes) -> None:
        secrets = _keystream(key, _TOKENS_COUNTER, 64)
        # A factor must be odd to have an inverse modulo 2**64. The first word is only xored.
        self._mix = [
            np.uint64(secret | 1) for secret in np.frombuffer(secrets[:32], np.uint64).tolist()
        ]
        self._texts = TextHash(secrets[32:])

    def of(self, ids: pa.Array) -> list[Array]:
        """Give the words of the tokens: one or two uint64 ndarrays of shape (ids,).

        Parameters
        ----------
        ids : pyarrow.Array
            Ids from ``normalized_ids``, without nulls.
        """
        integers = _as_integers(ids)
        return self._texts.of(ids) if integers is None else [self._mixed_halves(integers)]

    def of_persons(self, persons: PersonIds) -> list[Array]:
        """Return the same for persons whose ids are not null, of which a day may be a part.

        With a day, a token is the CBC-MAC of the person's token and the day: two words. All
        messages of a table are equally long.
        """
        words = self.of(persons.ids)
        if persons.periods is None:
            return words
        return self._texts.of_blocks([words, [persons.periods.view(np.uint64)]])

    def choice_words(self, persons: PersonIds, tokens: list[Array]) -> list[Array]:
        """Give the words by which the choice of rows tells persons apart, alike for all formats.

        A whole number has one word, whether the column holds integers, doubles, decimals or texts
        that write it: a bijection of the integer. So has a date or time, by its nanoseconds modulo
        2^64. Any other id has a word that follows from its token. Two persons may share a word,
        with a negligible probability or by times far apart: their rows are then chosen by the same
        hash, but each person's among that person's own.

        Parameters
        ----------
        persons : PersonIds
            Whose ids are not null.
        tokens : list of uint64 ndarray of shape (rows,)
            The persons' tokens.

        Returns
        -------
        list of uint64 ndarray of shape (rows,)
            One word; and the day, where a day is part of the person.
        """
        if persons.periods is not None:
            (word,) = self.choice_words(PersonIds(persons.ids), self.of(persons.ids))
            return [word, persons.periods.view(np.uint64)]
        integers = _as_integers(persons.ids)
        if integers is None:
            return [self._mixed(with_written_integers(persons.ids, tokens[0]))]
        if pa.types.is_temporal(persons.ids.type):
            # A time counts by its nanoseconds, whatever the unit of the column is.
            type_ = persons.ids.type
            is_date = pa.types.is_date32(type_)
            tick = SECONDS_A_DAY * 10**9 if is_date else 10**9 // TICKS_A_SECOND[type_.unit]
            integers = integers * np.uint64(tick)
        if not pa.types.is_floating(persons.ids.type):
            return [self._mixed(integers)]
        doubles = integers.view(np.float64)
        is_whole = (doubles == np.trunc(doubles)) & (doubles >= -(2.0**63)) & (doubles < 2.0**64)
        signed = np.where(doubles < 2.0**63, doubles, doubles - 2.0**64)  # modulo 2**64
        whole = np.where(is_whole, signed, 0).astype(np.int64).view(np.uint64)
        return [self._mixed(np.where(is_whole, whole, integers))]

    def _mixed(self, words: Array) -> Array:
        """Apply a bijection of the 64-bit words: each of its steps can be undone."""
        shift, first, second, third = self._mix
        # This is a new array: what follows works in place, and the ids must stay as they are.
        words = words ^ shift
        for factor in (first, second, third):
            words *= factor
            words ^= words >> np.uint64(32)
        return words

    def _mixed_halves(self, words: Array) -> Array:
        """Apply a bijection under which words below 2**32, and no others, get a lower half of 0.

        So the tokens of most integers can be held in 32 bits. The upper half of a word is mixed by
        steps that leave 0 as it is, and can be undone. The result is combined with the lower half
        by exclusive or, which is mixed then, and becomes the upper half of the token.
        """
        low = words.astype(np.uint32)
        is_wide = len(words) and words.max() >= 2**32
        if is_wide:
            high = self._mixed_half((words >> np.uint64(32)).astype(np.uint32))
            low ^= high
        low ^= self._mix[0].astype(np.uint32)
        tokens = self._mixed_half(low).astype(np.uint64)
        tokens <<= np.uint64(32)
        if is_wide:
            tokens |= high
        return tokens

    def _mixed_half(self, words: Array) -> Array:
        """Apply, in place, a bijection of the 32-bit words that leaves 0 as it is."""
        for factor in self._mix[1:]:
            words *= factor.astype(np.uint32)
            words ^= words >> np.uint32(16)
        return words


def _as_integers(ids: pa.Array) -> Array | None:
    """Return ids of at most 64 bits as uint64 ndarray of shape (ids,); None for other ids."""
    type_ = ids.type
    if pa.types.is_date32(type_):
        ids = ids.view(pa.int32())
    elif pa.types.is_float64(type_) or pa.types.is_temporal(type_):
        ids = ids.view(pa.int64())
    elif not pa.types.is_integer(type_):
        return None
    wide = np.uint64 if pa.types.is_unsigned_integer(ids.type) else np.int64
    return ndarray_of(ids).astype(wide, copy=False).view(np.uint64)


# --- priorities of rows ---------------------------------------------------------------------------

# The axes whose columns' values choose among a person's rows.
ChosenBy: TypeAlias = tuple[LatticeAxis, ...]

_MISSING = np.uint64(0)  # the word of a missing key


def chosen_by(needs: Sequence[Needs]) -> ChosenBy:
    """Return the axes whose values choose a person's rows by default: all that are counted."""
    axes: dict[tuple[str, ...], LatticeAxis] = {}
    for need in needs:
        for axis in need.columns:
            # Axes that read different values are told apart: bins of one column read the same one.
            read: tuple[str, ...] = (axis.column_name, axis.kind)
            if isinstance(axis, LabelAxis):
                read = (axis.column_name, "label", repr(axis))
            axes.setdefault(read, axis)
    # Sorted, so that the order of the questions does not change which rows are kept.
    return tuple(axes[value] for value in sorted(axes))


@dataclass(frozen=True)
class PersonRows:
    """Whose the rows of a chunk are, and what chooses among them.

    Attributes
    ----------
    tokens : list of uint64 ndarray of shape (rows,)
        The words of the person token of each row.
    words : list of uint64 ndarray of shape (rows,)
        By which the choice tells persons apart.
    values : list of ndarray of shape (rows,)
        What is hashed of the row, beside the person.
    key_words : mapping of KeyAxis to uint64 ndarray of shape (rows,)
        By which the choice tells keys apart.
    row_hash : KeyedHash
    """

    tokens: list[Array]
    words: list[Array]
    values: list[Array]
    key_words: Mapping[KeyAxis, Array]
    row_hash: KeyedHash

    @cached_property
    def priorities(self) -> Array:
        """The priorities of the rows, where they are asked for: uint64 ndarray of shape (rows,)."""
        # Without values, all rows of a person are copies.
        if not self.values:
            return self.row_hash.of(self.words)
        return self.row_hash.of(self.values, self.words)


def number_words(values: Array) -> Array:
    """Return the words of numbers, NaN for a missing one: uint64 ndarray of shape (rows,)."""
    if values.min(initial=np.inf) > 0:
        # None of them is missing, and none is zero.
        return values.view(np.uint64)
    words = values + 0.0  # makes the negative zero the other one
    if np.isnan(words.max()):
        # A NaN has many patterns of bits, and what is missing must be one value.
        words[np.isnan(words)] = np.nan
    return np.asarray(words.view(np.uint64))


class KeyWords:
    """The words of one axis' keys, each hashed once.

    Parameters
    ----------
    numbers : KeyNumbers
        Of the axis.
    key : bytes of length 32
    """

    def __init__(self, numbers: KeyNumbers, key: bytes) -> None:
        self._numbers = numbers
        self._texts = TextHash(secret_for(key, "keys"))
        self._words = np.zeros(0, np.uint64)  # of each number

    def of(self, cells: Array) -> Array:
        """Give the words of the keys with some numbers: uint64 ndarray of shape (rows,)."""
        if len(self._words) < len(self._numbers):
            new_keys = self._numbers.known_from(len(self._words))
            # As text, so that 17 and "17" are the same, whatever a file format makes of a column.
            new_words = self._texts.of(new_keys.cast(pa.large_string()))[0]
            self._words = np.concatenate([self._words, new_words])
        if not len(self._words):
            return np.full(len(cells), _MISSING)
        return np.where(cells < 0, _MISSING, self._words[cells])
