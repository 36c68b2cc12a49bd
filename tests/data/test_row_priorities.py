"""A priority follows from the person and the values, and from nothing else."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from data.row_choice import person_word
from sfumato.answers.counts import Needs, Summed
from sfumato.data import count, source
from sfumato.data.keys import KeyNumbers
from sfumato.data.objects import parse
from sfumato.data.priorities import (
    KeyedHash,
    KeyWords,
    PersonIds,
    PersonTokens,
    chosen_by,
    normalized_ids,
    number_words,
    secret_for,
)
from sfumato.domain.domain import Categories, Domain, Interval, Keys, grid_axis
from sfumato.domain.lattice import EdgesAxis, KeyAxis, LabelAxis, Lattice

KEY = bytes(range(32))
DOMAIN = Domain(x=Interval(0, 10), kind=Categories(["a", "b"]), shop=Keys())


def test_what_is_equal_or_missing_has_one_word() -> None:
    other_nan = np.array([0x7FF8_0000_0000_0001], np.uint64).view(np.float64)[0]
    words = number_words(np.array([0.0, -0.0, math.nan, other_nan, -math.nan, 1.0, math.inf]))
    assert len({*words.tolist()}) == 4
    assert words[0] == words[1]
    assert words[2] == words[3] == words[4]
    assert number_words(np.zeros(0)).tolist() == []


def test_the_columns_that_choose_do_not_depend_on_bins_or_on_the_order_of_needs() -> None:
    x = grid_axis("x", DOMAIN["x"], 10)
    finer = grid_axis("x", DOMAIN["x"], 1000)
    edges = EdgesAxis("x", (0.0, 3.0, 10.0))
    kind = LabelAxis("kind", ("a", "b"))
    needs = [Needs(Lattice((kind, x)), 1), Needs(Lattice((finer,)), 1), Needs(Lattice((edges,)), 1)]
    assert chosen_by(needs) == (kind, x)
    assert [axis.name for axis in chosen_by(needs[::-1])] == ["kind", "x"]
    summed = Needs(Lattice((kind,)), 1, (Summed(finer),), cells=Lattice((KeyAxis("shop"),)))
    assert chosen_by([summed]) == (kind, KeyAxis("shop"), finer)


@pytest.mark.parametrize(
    "type_",
    [
        pa.string(),
        pa.string_view(),
        pa.int16(),
        pa.uint64(),
        pa.float32(),
        pa.float64(),
        pa.decimal128(20, 0),
        pa.decimal128(30, 3),
        pa.decimal256(60, 30),
    ],
)
def test_an_id_is_the_same_person_in_every_type(type_: pa.DataType) -> None:
    ids = normalized_ids(pa.array([5, 7, 12345 % 2**15]).cast(type_))
    tokens = PersonTokens(KEY)
    (words,) = tokens.choice_words(PersonIds(ids), tokens.of(ids))
    assert words.tolist() == [person_word(KEY, number) for number in (5, 7, 12345)]


def test_whole_numbers_of_64_bits_are_the_same_persons_in_every_type() -> None:
    """Also those that have no sign, and among objects."""
    wide = [2**63 - 2**10, 2**63, 2**64 - 2**11, -(2**63)]  # each of them is a double
    tokens = PersonTokens(KEY)
    for column in (
        pa.array([str(number) for number in wide]),
        pa.array([float(number) for number in wide]),
        pa.array([Decimal(number) for number in wide], pa.decimal128(38, 9)),
        parse([*wide[:2], Decimal(wide[2]), float(wide[3])], None),
    ):
        ids = normalized_ids(column)
        (words,) = tokens.choice_words(PersonIds(ids), tokens.of(ids))
        assert words.tolist() == [
            int(tokens._mixed(np.array([number % 2**64], np.uint64))[0]) for number in wide
        ]


def test_ids_that_are_no_whole_numbers_differ() -> None:
    tokens = PersonTokens(KEY)
    for ids in (pa.array([0.5, 1.5, 1e300, 2.0**63, -1.0]), pa.array(["x", "y", "007", "7"])):
        (words,) = tokens.choice_words(PersonIds(ids), tokens.of(ids))
        assert len(set(words.tolist())) == len(ids)


def test_a_day_is_part_of_the_person() -> None:
    ids = pa.array(["x", "x"])
    persons = PersonIds(ids, np.array([3, 4]))
    tokens = PersonTokens(KEY)
    words = tokens.choice_words(persons, tokens.of_persons(persons))
    assert words[0][0] == words[0][1]
    assert words[1].tolist() == [3, 4]


@pytest.mark.parametrize("keys", [["b", "a", "17"], [17, 4, -1], [True, False]])
def test_a_key_has_its_word_whenever_it_occurs(keys: list[object]) -> None:
    words = []
    for order in (keys, keys[::-1]):
        numbers = KeyNumbers()
        of_axis = KeyWords(numbers, KEY)
        found = {}
        for key in order:  # each in a batch of its own
            cells = numbers.cells(pa.array([key, None]))
            found[key], found[None] = of_axis.of(cells).tolist()
        words.append(found)
    assert words[0] == words[1]
    assert len(set(words[0].values())) == len(keys) + 1


def test_keys_choose_by_what_they_are() -> None:
    """With the same rows in another order; keys occur in another order then."""
    draw = np.random.default_rng(0)
    table = pa.table(
        {"shop": [f"s{i}" for i in draw.integers(0, 30, 600)], "p": draw.integers(0, 40, 600)}
    )
    need = Lattice((KeyAxis("shop"),))
    needs = [Needs(need, 1), Needs(need, 1, counted="persons")]
    found = []
    for order in (np.arange(600), draw.permutation(600)):
        src = source(table.take(order), Domain(shop=Keys()), person="p", rows_per_person=3)
        cubes = count(src, needs, key=KEY)
        found.append([(cube.counts.tolist(), cube.keys["shop"].to_pylist()) for cube in cubes])
        assert all(sum(cube.counts) < 600 for cube in cubes)
    assert found[0] == found[1]


def test_each_purpose_has_a_secret_of_its_own() -> None:
    purposes = ("rows", "copies", "cells", "keys")
    assert len({secret_for(KEY, purpose) for purpose in purposes}) == 4
    words = [np.arange(3)]
    hashes = [KeyedHash(KEY, purpose).of(words) for purpose in purposes]
    assert len({tuple(each.tolist()) for each in hashes}) == 4
