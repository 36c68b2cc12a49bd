"""Rows are ordered exactly, however many leading bits they share; copies get numbers."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.row_order import CopyNumbers, first_rows, ordered_rows, ranges

KEY = bytes(range(32))
# Many rows share a person, or a priority; some differ in the last bits only.
WORD = st.integers(0, 2**64 - 1) | st.integers(0, 3) | st.sampled_from([7 << 60, (7 << 60) + 1])
ROWS = st.lists(st.tuples(WORD, WORD, WORD), min_size=1, max_size=60)


def columns(rows: list[tuple[int, int, int]]) -> list[np.ndarray]:
    return [np.array(column, np.uint64) for column in zip(*rows, strict=True)]


@given(ROWS, st.sampled_from([1, 2]))
def test_rows_stand_by_person_and_priority(rows: list[tuple[int, int, int]], words: int) -> None:
    *tokens, priorities = columns(rows)
    found = ordered_rows(tokens[:words], priorities)
    given_rows = [(*row[:words], row[2]) for row in rows]
    in_order = [given_rows[i] for i in found.order]
    assert sorted(found.order.tolist()) == list(range(len(rows)))
    assert in_order == sorted(given_rows)
    assert [tuple(row) for row in zip(*found.tokens, strict=True)] == [row[:-1] for row in in_order]
    repeated = [i for i in range(1, len(rows)) if in_order[i] == in_order[i - 1]]
    assert found.copies.tolist() == repeated


def test_bits_that_all_tokens_share_are_left_out() -> None:
    draw = np.random.default_rng(0)
    tokens = draw.integers(0, 2**40, 5000).astype(np.uint64) | np.uint64(5 << 58)
    priorities = draw.integers(0, 2**63, 5000).astype(np.uint64)
    for common in (0, 6, 24):
        order = ordered_rows([tokens], priorities, common).order
        assert order.tolist() == np.lexsort([priorities, tokens]).tolist()


@pytest.mark.parametrize("alike", [12, 40, 63])
def test_many_ties_of_leading_bits_are_told_apart(alike: int) -> None:
    draw = np.random.default_rng(alike)
    tokens = draw.integers(0, 2 ** (64 - alike), 3000).astype(np.uint64)
    priorities = draw.integers(0, 2 ** (64 - alike) + 5, 3000).astype(np.uint64)
    found = ordered_rows([tokens], priorities)
    pairs = list(zip(tokens[found.order].tolist(), priorities[found.order].tolist(), strict=True))
    assert pairs == sorted(pairs)
    assert found.copies.tolist() == [i for i in range(1, 3000) if pairs[i] == pairs[i - 1]]


@given(ROWS, st.integers(0, 12))
def test_copies_stand_where_their_own_priorities_put_them(
    rows: list[tuple[int, int, int]], limit: int
) -> None:
    (tokens, _, priorities) = columns([(row[0] % 4, 0, row[2] % 5) for row in rows])
    numbers = CopyNumbers(KEY)
    found = ordered_rows([tokens], priorities)
    numbers.number(found, priorities, limit)
    own: dict[int, list[int]] = {}
    for token, several in groupby(sorted(zip(tokens.tolist(), priorities.tolist(), strict=True))):
        first, count = token[1], len(list(several))
        of_copies = numbers.priorities(
            np.full(count, first, np.uint64), np.arange(1, count + 1, dtype=np.int64)
        )
        assert of_copies[0] == first
        assert len(set(of_copies.tolist())) == count
        own.setdefault(token[0], []).extend((priority, first) for priority in of_copies.tolist())
    wanted = []
    for token in sorted(own):
        is_cut = len(own[token]) > limit
        in_order = sorted(own[token]) if is_cut else sorted(own[token], key=lambda pair: pair[1])
        wanted += [(token, first) for _, first in in_order]
    placed = zip(tokens[found.order].tolist(), priorities[found.order].tolist(), strict=True)
    assert list(placed) == wanted


@given(st.lists(st.integers(0, 4), max_size=30), st.integers(1, 40))
def test_first_rows_are_the_first_of_each_person(persons: list[int], limit: int) -> None:
    persons.sort()
    found = first_rows([np.array(persons, np.uint64)], limit).tolist()
    assert found == [persons[:i].count(person) < limit for i, person in enumerate(persons)]


def test_ranges_may_be_empty() -> None:
    indices, numbers = ranges(np.array([4, 4, 0]), np.array([4, 6, 1]))
    assert indices.tolist() == [4, 5, 0]
    assert numbers.tolist() == [1, 1, 2]
    assert ranges(np.zeros(0, np.int64), np.zeros(0, np.int64))[0].tolist() == []


def test_persons_whose_tokens_differ_in_one_word_only_are_told_apart():
    """Texts have tokens of two words, and no word alone says whose a row is."""
    same, unlike = np.full(7, 9, np.uint64) << np.uint64(60), np.array([2, 1, 2, 1, 3, 1, 2])
    priorities = np.array([5, 9, 5, 1, 7, 4, 3], np.uint64) << np.uint64(50)
    for tokens in ([same, unlike.astype(np.uint64)], [unlike.astype(np.uint64) << 60, same]):
        found = ordered_rows(tokens, priorities)
        of_each = [np.sort(priorities[unlike == person]) for person in (1, 2, 3)]
        assert priorities[found.order].tolist() == np.concatenate(of_each).tolist()
        assert found.copies.tolist() == [5]
        assert first_rows(found.tokens, 2).nonzero()[0].tolist() == [0, 1, 3, 4, 6]
