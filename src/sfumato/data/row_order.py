"""Order rows by person and priority, and number a person's copies of one row.

One sort of 64-bit words does it: a word has leading bits of the person's token, leading bits of the
priority, and the index of the row. Where leading bits cannot tell rows apart, those rows alone are
sorted again, by all bits. So the order is exact.
"""

from __future__ import annotations

import msgspec
import numpy as np

from sfumato.basics import Array
from sfumato.data.priorities import KeyedHash, Scratch

_ROWS_AT_ONCE = 2**15

# How many more bits of a token than of a row's index are sorted by: with n rows, at most about n /
# 256 pairs of persons then share them.
_SPARE_BITS = 7


class OrderedRows(msgspec.Struct):
    """Rows in the order of person and priority.

    Attributes
    ----------
    order : int64 ndarray of shape (rows,)
        Which row stands where.
    tokens : list of uint64 ndarray of shape (rows,)
        The words of the person token of each row, in order.
    copies : int64 ndarray
        Where in the order a row stands that equals the one above it in person and priority.
    """

    order: Array
    tokens: list[Array]
    copies: Array


def ordered_rows(
    tokens: list[Array],
    priorities: Array,
    common_bits: int = 0,
    scratch: Scratch | None = None,
) -> OrderedRows:
    """Order rows by person token, then by priority.

    Parameters
    ----------
    tokens : list of uint64 ndarray of shape (rows,)
        The words of the person token of each row.
    priorities : uint64 ndarray of shape (rows,)
    common_bits : int
        How many leading bits the tokens of all rows have in common.
    scratch : Scratch or None
        Where the result lies, until the next call with it. None: in new arrays.

    >>> tokens = [np.array([5, 3, 5], np.uint64) << np.uint64(40)]
    >>> ordered_rows(tokens, np.array([9, 2, 4], np.uint64)).order.tolist()
    [1, 2, 0]
    """
    scratch = scratch or Scratch()
    n_rows = len(priorities)
    index_bits = n_rows.bit_length()
    person_bits = min(index_bits + _SPARE_BITS, 63 - index_bits)
    keys = scratch.array("keys", n_rows, np.uint64)
    _pack(keys, tokens[0], common_bits, person_bits, priorities, index_bits)
    keys.sort()
    order = scratch.array("order", n_rows, np.int64)
    words = [scratch.array(f"word {i}", n_rows, np.uint64) for i in range(len(tokens))]
    np.bitwise_and(keys, _low_bits(index_bits), out=order.view(np.uint64))
    for word, ordered in zip(tokens, words, strict=True):
        # In this mode numpy writes to the room at once. No index is out of bounds.
        word.take(order, out=ordered, mode="clip")
    alike, tied = _neighbours(keys, words, 64 - person_bits, index_bits)
    if len(alike):
        # Different persons share the leading bits.
        columns = [priorities, *tokens[::-1]]
        places = _sort_runs(keys, 64 - person_bits, alike, order, columns)
        for word, ordered in zip(tokens, words, strict=True):
            ordered[places] = word[order[places]]
        # The keys say no more here which rows are alike: all neighbours are compared.
        above = places[places > 0] - 1
        same = np.logical_and.reduce([word[above] == word[above + 1] for word in words])
        is_tied = np.zeros(n_rows, bool)
        is_tied[tied] = True
        is_tied[above] = same
        tied = np.flatnonzero(is_tied)
    return OrderedRows(order, words, _copies(order, priorities, tied, keys, index_bits))


def _pack(
    keys: Array,
    first_word: Array,
    common_bits: int,
    person_bits: int,
    priorities: Array,
    index_bits: int,
) -> None:
    """Fill in leading bits of the token, then of the priority, then the index of each row.

    A part of the rows at a time, which stays in the processor's cache.
    """
    person = ~_low_bits(64 - person_bits)
    priority = ~person & ~_low_bits(index_bits)
    room = np.empty(min(len(keys), _ROWS_AT_ONCE), np.uint64)
    for start in range(0, len(keys), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        here = keys[part]
        bits = room[: len(here)]
        np.left_shift(first_word[part], np.uint64(common_bits), out=bits)
        bits &= person
        np.right_shift(priorities[part], np.uint64(person_bits), out=here)
        here &= priority
        here |= bits
        here |= np.arange(start, start + len(here), dtype=np.uint64)


def _neighbours(
    keys: Array, words: list[Array], person_low: int, index_bits: int
) -> tuple[Array, Array]:
    """Find rows whose keys do not tell them from the next row.

    Returns
    -------
    alike : int64 ndarray
        Where the next row is of another person with the same leading bits.
    tied : int64 ndarray
        Where it is of the same person, with the same leading bits of the priority.
    """
    alike: list[Array] = []
    tied: list[Array] = []
    for start in range(0, len(keys) - 1, _ROWS_AT_ONCE):
        stop = min(start + _ROWS_AT_ONCE, len(keys) - 1)
        changes = keys[start + 1 : stop + 1] ^ keys[start:stop]
        differ = _differ([word[start : stop + 1] for word in words])
        is_alike = changes <= _low_bits(person_low)
        is_alike &= differ
        alike.append(np.flatnonzero(is_alike) + start)
        is_tied = changes <= _low_bits(index_bits)
        is_tied &= ~differ
        tied.append(np.flatnonzero(is_tied) + start)
    none = np.zeros(0, np.int64)
    return np.concatenate([none, *alike]), np.concatenate([none, *tied])


def _low_bits(count: int) -> np.uint64:
    return np.uint64(2**count - 1)


def _differ(words: list[Array]) -> Array:
    """Tell whether a row is another person's than the one above it: bool ndarray of (rows - 1,)."""
    differ = words[0][1:] != words[0][:-1]
    for word in words[1:]:
        differ |= word[1:] != word[:-1]
    return np.asarray(differ)


def _copies(order: Array, priorities: Array, tied: Array, keys: Array, index_bits: int) -> Array:
    """Bring rows of one person whose leading bits are alike into order, and find the copies.

    Parameters
    ----------
    tied : int64 ndarray
        Where the row above is alike.
    """
    above = priorities[order[tied]]
    below = priorities[order[tied + 1]]
    wrong = tied[below < above]
    if len(wrong):
        _sort_runs(keys, index_bits, wrong, order, [priorities])
        above = priorities[order[tied]]
        below = priorities[order[tied + 1]]
    return np.asarray(tied[below == above] + 1)


def _sort_runs(
    keys: Array, low_bits: int, where: Array, order: Array, columns: list[Array]
) -> Array:
    """Sort anew the rows whose keys are those of some rows but for the low bits; say where.

    Parameters
    ----------
    keys : uint64 ndarray of shape (rows,)
        Ascending.
    where : int64 ndarray
        Where these rows stand.
    columns : list of ndarray of shape (rows,)
        What the rows of ``order`` are sorted by, in place, the last one first.
    """
    low = _low_bits(low_bits)
    # The keys themselves are not moved: they still ascend, and so the runs are found.
    values = distinct_ascending(keys[where] & ~low)
    starts = np.searchsorted(keys, values)
    stops = np.searchsorted(keys, values | low, side="right")
    places, runs = ranges(starts, stops)
    rows = order[places]
    order[places] = rows[np.lexsort([*(column[rows] for column in columns), runs])]
    return places


def distinct_ascending(numbers: Array) -> Array:
    """Return each of some ascending numbers once.

    Neighbours are compared: ``np.unique`` hashes, and takes many times as long.

    >>> distinct_ascending(np.array([2, 2, 5])).tolist()
    [2, 5]
    """
    is_first = np.ones(len(numbers), bool)
    np.not_equal(numbers[1:], numbers[:-1], out=is_first[1:])
    return numbers[is_first]


def run_starts(columns: list[Array]) -> Array:
    """Tell where each run of equal rows begins, of rows that are sorted: int64 ndarray.

    >>> run_starts([np.array([2, 2, 2]), np.array([0, 0, 1])]).tolist()
    [0, 2]
    """
    is_first = np.ones(len(columns[0]), bool)
    is_first[1:] = _differ(columns)
    return np.flatnonzero(is_first)


def ranges(starts: Array, stops: Array) -> tuple[Array, Array]:
    """Join ranges of indices.

    Returns
    -------
    indices : int64 ndarray
    numbers : int64 ndarray
        Which range each index is of.

    >>> [found.tolist() for found in ranges(np.array([3, 8]), np.array([5, 9]))]
    [[3, 4, 8], [0, 0, 1]]
    """
    lengths = stops - starts
    numbers = np.repeat(np.arange(len(lengths)), lengths)
    offsets = starts - (np.cumsum(lengths) - lengths)
    return np.arange(len(numbers)) + offsets[numbers], numbers


# --- copies ---------------------------------------------------------------------------------------


class CopyNumbers:
    """Gives the copies of a row priorities of their own.

    Of a person's rows that are alike, the first has the priority p that follows from the values.
    The second, third and further ones have the keyed hash of p and their number, 2, 3, ...

    Parameters
    ----------
    key : bytes of length 32
        The secret of a scan.
    """

    def __init__(self, key: bytes) -> None:
        self._hash = KeyedHash(key, "copies")

    def priorities(self, first: Array, numbers: Array) -> Array:
        """Give the priorities of copies: uint64 ndarray of shape (rows,).

        Parameters
        ----------
        first : uint64 ndarray of shape (rows,)
            The priority of the first copy of each row.
        numbers : int64 ndarray of shape (rows,)
            From 1 on.
        """
        later = numbers > 1
        priorities = first.copy()
        if later.any():
            priorities[later] = self._hash.of([first[later], numbers[later]])
        return priorities

    def number(self, rows: OrderedRows, priorities: Array, limit: int) -> None:
        """Bring the rows of persons who have copies into the order of their copies' priorities.

        Persons with at most ``limit`` rows stay as they are: their order must not matter.
        """
        if not len(rows.copies):
            return
        starts = run_starts(rows.tokens)
        stops = np.append(starts[1:], len(rows.order))
        having = distinct_ascending(np.searchsorted(starts, rows.copies, side="right") - 1)
        having = having[stops[having] - starts[having] > limit]
        places, persons = ranges(starts[having], stops[having])
        if not len(places):
            return
        own = rows.order[places]
        is_copy = np.zeros(len(rows.order), bool)
        is_copy[rows.copies] = True
        # A row that is no copy begins anew with number 1.
        indices = np.arange(len(places))
        firsts = np.maximum.accumulate(np.where(is_copy[places], 0, indices))
        of_copies = self.priorities(priorities[own], indices - firsts + 1)
        order = ordered_rows([spread(persons)], of_copies).order
        rows.order[places] = own[order]


def spread(numbers: Array) -> Array:
    """Return numbers that ascend as words whose leading bits tell them apart and ascend."""
    bits = int(numbers[-1]).bit_length()
    return numbers.astype(np.uint64) << np.uint64(64 - bits) if bits else numbers.astype(np.uint64)


def first_rows(tokens: list[Array], limit: int) -> Array:
    """Tell whether each row is among the first of its person: bool ndarray of shape (rows,).

    The rows are sorted by person, so a row is among the first r of its person if the row that
    stands r rows earlier is another person's.
    """
    is_first = np.ones(len(tokens[0]), bool)
    later = is_first[limit:]
    np.not_equal(tokens[0][limit:], tokens[0][:-limit], out=later)
    for word in tokens[1:]:
        later |= word[limit:] != word[:-limit]
    return is_first
