"""Sums over all subsets of one size."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from risk import worlds as defined
from sfumato.risk import distinct_answers as world_answers
from sfumato.risk import sensitivity as subsets
from sfumato.risk.choice import choose
from sfumato.risk.universe import column_of, parse


@given(
    st.lists(st.integers(-9, 9).map(lambda x: x / 10), min_size=3, max_size=9), st.integers(1, 8)
)
def test_sums_on_a_lattice(universe, size):
    size = min(size, len(universe) - 1)
    found, logs = subsets.lattice_sums(np.sort(universe), size)
    expected = Counter(np.round(defined.answers(universe, size, "sum"), 9).tolist())
    assert found == pytest.approx(sorted(expected), abs=1e-9)
    assert logs == pytest.approx(np.log([expected[v] for v in sorted(expected)]))


def test_records_off_any_lattice_are_not_counted():
    assert subsets.lattice_sums(np.sort(np.random.default_rng(1).normal(size=8)), 4) is None


@pytest.mark.parametrize("query", ["sum", "mean", "var", "std"])
def test_two_halves_make_all_subsets(query):
    universe = np.sort(np.random.default_rng(2).normal(size=11))
    for size in (1, 4, 6, 10):
        found = np.sort(subsets.split_in_half(universe, size, parse(query)))
        assert found == pytest.approx(np.sort(defined.answers(universe, size, query)), abs=1e-12)


def test_24_choose_12_is_exact():
    universe = np.random.default_rng(5).integers(0, 30, 24)
    assert choose(universe, 12, "mean").exact
    found = world_answers.distinct_answers(column_of(universe, 12), parse("sum"))
    assert round(float(np.exp(found.log_weight).sum())) == math.comb(24, 12)
    halves = world_answers.collapse(
        subsets.split_in_half(np.sort(universe).astype(float), 12, parse("sum")), 1e-9
    )
    assert halves.values == pytest.approx(found.values)
    assert halves.log_weight == pytest.approx(found.log_weight)
