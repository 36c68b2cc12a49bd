"""The hash is the CBC-MAC of its words, which another library's mode computes too."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.row_choice import mac, secret
from sfumato.data.priorities import KeyedHash

KEY = bytes(range(32))
WORD = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.lists(WORD, min_size=5, max_size=5), max_size=6), st.integers(1, 5), WORD)
def test_it_is_the_mac_of_the_words(rows: list[list[int]], n_words: int, start: int) -> None:
    hashed = KeyedHash(KEY, "copies")
    words = [np.array([row[i] for row in rows], np.int64) for i in range(n_words)]
    starts = [np.full(len(rows), start, np.int64)]
    for given_start, number in (((), 0), (starts, start % 2**64)):
        found = hashed.of(words, given_start).tolist()
        assert found == [mac(secret(KEY, 1), row[:n_words], number) for row in rows]


@pytest.mark.parametrize("length", [1, 1000, 10])
def test_a_result_stays_when_others_are_computed(length: int) -> None:
    hashed = KeyedHash(KEY, "rows")
    first = hashed.of([np.arange(100)])
    before = first.tolist()
    hashed.of([np.arange(length) + 7, np.arange(length), np.arange(length)])
    assert first.tolist() == before


def test_a_start_of_two_words_counts_in_full() -> None:
    hashed = KeyedHash(KEY, "rows")
    one, two = np.array([1, 1, 2]), np.array([1, 2, 1])
    assert len(set(hashed.of([np.zeros(3, np.int64)], [one, two]).tolist())) == 3
