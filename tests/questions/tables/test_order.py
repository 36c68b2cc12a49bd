"""The order in which tables are rounded can be met, whatever the numbers."""

from __future__ import annotations

import itertools

import pytest

from questions.tables.families import pairs, tree
from sfumato.questions.tables.levels import (
    Margin,
    Nesting,
    common,
    follows,
    is_margin,
    joined,
    maximal,
)
from sfumato.questions.tables.rounding import MOST_JOINED_CELLS, order_of, running_order


def assert_can_be_met(tables: list[Margin], nesting: Nesting) -> None:
    """Every step has all it shares with those before; two margins share what agrees by then."""
    steps = order_of(tables, nesting)
    assert steps is not None
    met: list[Margin] = []
    for step in steps:
        assert len(step.given) <= 2
        for margin in step.given:
            assert any(is_margin(margin, earlier) for earlier in met)
        for earlier in met:
            shared = common(step.table, earlier)
            if not is_margin(step.table, earlier):
                known = joined(*step.given) if len(step.given) == 2 else step.given[0]
                assert is_margin(shared, known)
        if len(step.given) == 2:
            agreed = common(*step.given)
            assert any(is_margin(agreed, earlier) for earlier in met)
        met.append(step.table)
    for table in tables:
        assert any(is_margin(table, step.table) for step in steps)


@pytest.mark.parametrize("axes", [1, 2, 3, 4])
def test_every_family_of_few_small_axes_can_be_met(axes: int) -> None:
    nesting = Nesting.plain(range(2, 2 + axes))
    everything = list(itertools.product((0, 1), repeat=axes))
    for size in (1, 2, 3, 4) if axes < 4 else (1, 2, 4):
        for tables in itertools.islice(itertools.combinations(everything, size), 0, None, 7):
            assert_can_be_met(list(tables), nesting)


def test_families_over_levels_can_be_met() -> None:
    nesting = Nesting((tree([2, 4]), tree([3]), tree([2, 3])))
    everything = list(itertools.product(range(3), range(2), range(3)))
    for tables in itertools.islice(itertools.combinations(everything, 3), 0, None, 23):
        assert_can_be_met(list(tables), nesting)


def test_margins_come_before_the_tables_that_share_them() -> None:
    steps = order_of([(1, 1, 1, 0), (0, 1, 1, 1)], Nesting.plain([2, 3, 4, 5]))
    assert steps is not None
    tables = [step.table for step in steps]
    assert tables[0] == (0, 0, 0, 0)
    assert tables.index((0, 1, 1, 0)) < tables.index((1, 1, 1, 0))
    assert (1, 1, 1, 1) not in tables


def test_ten_axes_and_all_pairs_need_no_table_that_was_not_asked_for() -> None:
    steps = order_of(pairs(10), Nesting.plain([2] * 10))
    assert steps is not None
    assert len(steps) == 1 + 10 + 45


def test_all_pairs_below_their_own_table_are_met_but_for_one_which_is_said_to_be_missed() -> None:
    steps = order_of([(1, 1, 1), *pairs(3)], Nesting.plain([2, 3, 4]))
    assert steps is not None
    (last,) = (step for step in steps if step.table == (1, 1, 1))
    # The largest margin is the one that follows: it is the sum of the fewest cells.
    assert set(last.given) == {(1, 1, 0), (1, 0, 1)}
    assert last.missed == ((0, 1, 1),)


def test_a_cycle_of_margins_moves_its_table_before_one_of_them() -> None:
    tables = [(1, 1, 1, 0, 0, 0), (1, 1, 0, 1, 0, 0), (0, 1, 1, 0, 1, 0), (1, 0, 1, 0, 0, 1)]
    nesting = Nesting.plain([2] * 6)
    steps = order_of(tables, nesting)
    assert steps is not None
    assert all(follows(step.table, tables) for step in steps)
    assert_can_be_met(tables, nesting)


TRIPLES = [table for table in itertools.product((0, 1), repeat=4) if sum(table) == 3]


def test_all_triples_of_four_axes_need_their_joint_table() -> None:
    steps = order_of(TRIPLES, Nesting.plain([2, 3, 4, 5]))
    assert steps is not None
    assert maximal(step.table for step in steps) == [(1, 1, 1, 1)]


def test_a_joint_table_that_is_too_large_is_refused() -> None:
    assert order_of(TRIPLES, Nesting.plain([40, 40, 40, 40])) is None
    assert MOST_JOINED_CELLS < 40**4


def test_a_running_order_is_found_in_a_chain_and_not_in_a_cycle() -> None:
    chain = [(1, 1, 0, 0), (0, 1, 1, 0), (0, 0, 1, 1)]
    found = running_order(chain)
    assert found is not None
    for place in range(1, len(found)):
        before = found[:place]
        shared = [common(found[place], earlier) for earlier in before]
        union = tuple(map(max, *before)) if len(before) > 1 else before[0]
        assert common(found[place], union) in shared
    assert running_order([*chain, (1, 0, 0, 1)]) is None
    assert running_order([]) == []
