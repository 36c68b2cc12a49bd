"""Texts that write a whole number count as that number; all others by their bytes."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.priorities import TextHash, with_written_integers, written_decimals

WRITTEN = {
    "0": 0,
    "17": 17,
    "-3": 2**64 - 3,
    "999999999999999999": 10**18 - 1,
    "9223372036854775807": 2**63 - 1,
    "-9223372036854775808": 2**63,
    "18446744073709551615": 2**64 - 1,
}
OTHERS = ["", "-0", "-", "007", "1.0", "1 ", "+1", "18446744073709551616", "N17", "１７", "17\n"]


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.binary(), pa.string_view()])
def test_a_written_integer_has_the_word_of_that_integer(type_: Any) -> None:
    texts = pa.array([*WRITTEN, *OTHERS]).cast(type_)
    if type_ == pa.string_view():
        texts = texts.cast(pa.large_string())
    words = np.arange(len(texts), dtype=np.uint64) + np.uint64(1000)
    found = with_written_integers(texts, words)
    assert found.tolist() == [*WRITTEN.values(), *words[len(WRITTEN) :].tolist()]
    assert words[0] == 1000
    for i in range(len(texts)):
        assert with_written_integers(texts.slice(i, 1), words[i : i + 1])[0] == found[i]


@given(st.lists(st.text("0123456789-/:x\0mn", max_size=24) | st.integers().map(str), max_size=9))
def test_the_digits_of_a_text_are_read_as_python_reads_them(texts: list[str]) -> None:
    words = np.full(len(texts), 2**40 + 1, np.uint64)
    written = [re.fullmatch(r"(?:\0[mn])?(0|-?[1-9][0-9]{0,19})", text) for text in texts]
    numbers = [None if match is None else int(match[1]) for match in written]
    expected = [
        2**40 + 1 if number is None or not -(2**63) <= number < 2**64 else number % 2**64
        for number in numbers
    ]
    assert with_written_integers(pa.array(texts, pa.string()), words).tolist() == expected


@given(st.lists(st.decimals(-(10**9), 10**9, allow_nan=False, places=9), max_size=9))
def test_equal_decimals_are_written_alike_and_others_are_not(numbers: list[Decimal]) -> None:
    plain, wide = (
        written_decimals(pa.array(numbers, type_)).to_pylist()
        for type_ in (pa.decimal128(19, 9), pa.decimal256(70, 50))
    )
    assert plain == wide
    assert [Decimal(text) for text in plain] == numbers
    assert len(set(plain)) == len(set(numbers))


def test_messages_of_blocks_differ_by_every_word() -> None:
    one = np.array([1, 1, 1, 2], np.uint64)
    two = np.array([1, 2, 1, 1], np.uint64)
    three = np.array([1, 1, 2, 1], np.uint64)
    macs = TextHash(bytes(32)).of_blocks([[one, two], [three]])
    assert len(set(zip(*(word.tolist() for word in macs), strict=True))) == 4
