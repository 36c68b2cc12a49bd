"""Texts that write a whole number count as that number; all others by their bytes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.data.text_hash import TextHash, with_written_integers

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


def test_a_decimal_counts_as_its_text() -> None:
    texts = pa.array([Decimal(17), Decimal(-3)], pa.decimal128(20, 0))
    words = np.array([1, 2], np.uint64)
    assert with_written_integers(texts, words).tolist() == [17, 2**64 - 3]
    cents = pa.array([Decimal("17.00")], pa.decimal128(20, 2))
    assert with_written_integers(cents, words[:1]).tolist() == [1]


def test_messages_of_blocks_differ_by_every_word() -> None:
    one = np.array([1, 1, 1, 2], np.uint64)
    two = np.array([1, 2, 1, 1], np.uint64)
    three = np.array([1, 1, 2, 1], np.uint64)
    macs = TextHash(bytes(32)).of_blocks([[one, two], [three]])
    assert len(set(zip(*(word.tolist() for word in macs), strict=True))) == 4
