"""Priorities of rows: a keyed hash of the person and of the row's values.

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
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from sfumato.answers.counts import Needs
from sfumato.basics.numbers import Array
from sfumato.data.keyed_hash import KeyedHash, secret_for
from sfumato.data.keys import KeyNumbers
from sfumato.data.persons import PersonIds, PersonTokens
from sfumato.data.text_hash import TextHash
from sfumato.domain.lattice import KeyAxis, LabelAxis, LatticeAxis

ChosenBy: TypeAlias = tuple[LatticeAxis, ...]
"""The axes whose columns' values choose among a person's rows."""

_MISSING = np.uint64(0)  # the word of a missing key


def chosen_by(needs: Sequence[Needs]) -> ChosenBy:
    """Which axes' values choose a person's rows, if nothing else says so: all that are counted."""
    found: dict[tuple[str, ...], LatticeAxis] = {}
    for need in needs:
        for axis in need.columns:
            found.setdefault(_value_of(axis), axis)
    return tuple(found[value] for value in sorted(found))


def _value_of(axis: LatticeAxis) -> tuple[str, ...]:
    """Tells axes apart that read different values: bins of one column read the same one."""
    if isinstance(axis, LabelAxis):
        return axis.column_name, "label", repr(axis)
    return axis.column_name, axis.kind


class PersonRows(NamedTuple):
    """Whose the rows of a chunk are, and what chooses among them.

    Attributes
    ----------
    tokens : list of uint64 ndarray of shape (rows,)
        The words of the person token of each row.
    words : list of uint64 ndarray of shape (rows,)
        By which the choice tells persons apart.
    priorities : uint64 ndarray of shape (rows,)
    key_words : mapping of KeyAxis to uint64 ndarray of shape (rows,)
        By which the choice tells keys apart.
    """

    tokens: list[Array]
    words: list[Array]
    priorities: Array
    key_words: Mapping[KeyAxis, Array]


class RowPriorities:
    """Gives the rows of a scan their priorities.

    Parameters
    ----------
    key : bytes of length 32
    """

    def __init__(self, key: bytes) -> None:
        self._tokens = PersonTokens(key)
        self._hash = KeyedHash(key, "rows")

    def of(
        self, persons: PersonIds, values: list[Array], key_words: Mapping[KeyAxis, Array]
    ) -> PersonRows:
        """Give the tokens and priorities of rows, all of which have a person.

        Parameters
        ----------
        persons : PersonIds
        values : list of ndarray of shape (rows,)
            What is hashed, beside the person: always as many in one scan.
        key_words : mapping of KeyAxis to uint64 ndarray of shape (rows,)
        """
        tokens = self._tokens.of_persons(persons)
        words = self._tokens.choice_words(persons, tokens)
        # Without values, all rows of a person are copies.
        priorities = self._hash.of(values, words) if values else self._hash.of(words)
        return PersonRows(tokens, words, priorities, key_words)


def number_words(values: Array) -> Array:
    """The words of numbers, NaN for a missing one: uint64 ndarray of shape (rows,)."""
    if values.min(initial=np.inf) > 0:
        # None of them is missing, and none is zero.
        return values.view(np.uint64)
    words = values + 0.0  # makes the negative zero the other one
    if np.isnan(words.max()):
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
            new = self._of_keys(self._numbers.known_from(len(self._words)))
            self._words = np.concatenate([self._words, new])
        if not len(self._words):
            return np.full(len(cells), _MISSING)
        return np.where(cells < 0, _MISSING, self._words[cells])

    def _of_keys(self, keys: pa.Array) -> Array:
        # As text, so that 17 and "17" are the same, whatever a file format makes of a column.
        return self._texts.of(keys.cast(pa.large_string()))[0]
