"""What is asked of a family, in one form; what cannot be is refused in test_question."""

from __future__ import annotations

import itertools

import pytest

import sfumato as sf
from sfumato.domain.lattice import LabelAxis, Lattice
from sfumato.questions.tables.asked import checked_numbers, checked_tables, named, require_connected
from sfumato.questions.tables.levels import Chains


def plain(tables: list) -> Chains:
    """Axes of which none is a level of another."""
    names = sorted({name for table in tables for name in table})
    return Chains.of(Lattice(tuple(LabelAxis(name, ("x", "y")) for name in names)))


CHAIN = [[f"a{i}", f"a{i + 1}"] for i in range(19)]
STAR = [["a", name] for name in "bcdef"]
LATE = [["a", "b"], ["c", "d"], ["e", "f"], ["b", "c"], ["d", "e"]]


@pytest.mark.parametrize("tables", [CHAIN, STAR, LATE, [[], ["a"]], [[]], [["a"]]], ids=str)
def test_tables_that_hang_together_by_others_are_connected(tables: list) -> None:
    orders = itertools.permutations(tables) if len(tables) < 6 else [tables, tables[::-1]]
    for order in orders:
        require_connected(order, plain(tables))


@pytest.mark.parametrize("left_out", range(len(CHAIN))[1:-1])
def test_a_chain_without_a_link_is_not(left_out: int) -> None:
    tables = [table for at, table in enumerate(CHAIN) if at != left_out]
    with pytest.raises(sf.UsageError, match="no axis in common"):
        require_connected(tables, plain(tables))


def test_one_form() -> None:
    assert checked_tables(["a", ["b", "a"], []]) == (("a",), ("b", "a"), ())
    assert checked_numbers(2, ["1/2", 3], None) == ((0.5, 3.0), None)
    assert checked_numbers(2, None, "20") == (None, 20.0)
    assert checked_numbers(2, None, [1, 2.5]) == (None, (1.0, 2.5))
    assert named(["a", "b\n"]) == r"a x b\n"
