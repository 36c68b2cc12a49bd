"""A person token stands for one person and for nobody else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from data.releases import released
from sfumato.data import count, source
from sfumato.data.bounding import KEY_BYTES
from sfumato.data.external_partitions import (
    N_PARTITIONS,
)
from sfumato.data.persons import PersonTokens
from sfumato.domain import Domain, Interval, grid_axis
from sfumato.lattice import Lattice

TWO = sf.Interval(0, 2)


def test_times_of_one_day_in_date64_are_one_person() -> None:
    days = pa.array([0, 1, 86_399_999, 86_400_000, -1], pa.int64()).view(pa.date64())
    assert sum(released(pa.table({"p": days, "x": [1.0] * 5}), "x", TWO, 2, person="p")) == 3


KEY = bytes(range(KEY_BYTES))


HARD = [
    "",
    "\0",
    "a",
    "a\0",
    "a\0\0",
    "b",
    "é",
    "x" * 15,
    "x" * 16,
    "x" * 17,
    "x" * 64,
    "x" * 65,
    "x" * 5000,
    "x" * 5001,
    "x" * 16 + "\0",
]


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_texts_have_tokens_of_their_own_whatever_else_is_in_the_batch(type_: Any) -> None:
    words = PersonTokens(KEY)
    ids = pa.array(HARD).cast(type_)
    together = list(zip(*(word.tolist() for word in words.of(ids)), strict=True))
    assert len(set(together)) == len(HARD)
    alone = [tuple(int(word[0]) for word in words.of(ids.slice(i, 1))) for i in range(len(HARD))]
    assert alone == together
    assert together != list(
        zip(*(word.tolist() for word in PersonTokens(bytes(32)).of(ids)), strict=True)
    )
    assert [len(word) for word in words.of(ids.slice(0, 0))] == [0, 0]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=100))
def test_tokens_of_integers_are_a_bijection(ids: list[int]) -> None:
    (words,) = PersonTokens(KEY).of(pa.array(ids, pa.int64()))
    assert len(set(words.tolist())) == len(set(ids))


@given(st.lists(st.integers(0, 2**33), min_size=1, max_size=100))
def test_tokens_of_small_numbers_and_of_no_others_fit_into_their_upper_halves(
    ids: list[int],
) -> None:
    tokens = PersonTokens(KEY)
    (words,) = tokens.of(pa.array(ids, pa.int64()))
    assert len(set(words.tolist())) == len(set(ids))
    for number, word in zip(ids, words.tolist(), strict=True):
        assert (word % 2**32 == 0) == (number < 2**32)
        # Nor does a token depend on what else is in the batch.
        assert tokens.of(pa.array([number], pa.int64()))[0].tolist() == [word]


def test_halves_are_mixed_by_a_bijection_that_fixes_0() -> None:
    tokens = PersonTokens(KEY)
    words = np.arange(2**20, dtype=np.uint32) * np.uint32(4099)
    mixed = tokens._mixed_half(words.copy())
    assert len(np.unique(mixed)) == 2**20
    assert mixed[0] == 0
    assert np.bincount(mixed >> np.uint32(26), minlength=64).max() < 1.05 * 2**14


def test_partitions_are_even_for_consecutive_ids() -> None:
    (words,) = PersonTokens(KEY).of(pa.array(range(64_000), pa.int64()))
    assert (
        np.bincount((words >> np.uint64(58)).astype(np.int64), minlength=N_PARTITIONS).max() < 1500
    )


DOMAIN = Domain(x=Interval(0, 1000, step=1), y=Interval(0, 1))


FINE = Lattice((grid_axis("x", DOMAIN["x"], 1000),))


def test_the_two_zeros_are_one_person() -> None:
    frame = pa.table({"x": [1, 2], "p": [0.0, -0.0]})
    assert count(source(frame, Domain(x=DOMAIN["x"]), person="p"), [FINE])[0].total == 1
