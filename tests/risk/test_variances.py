"""Changes of variances, against the definition."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from risk import worlds
from risk.test_bounds import NUMBERS
from sfumato import risk
from sfumato.risk import sensitivity as variances
from sfumato.risk.choice import choose
from sfumato.risk.universe import column_of, parse

LUMPS = st.lists(
    st.integers(-4, 4) | st.sampled_from([50, 51, -30]) | NUMBERS, min_size=3, max_size=8
)


@settings(max_examples=25)
@given(LUMPS, st.integers(2, 7))
def test_variances_of_sets_of_any_size(universe, size):
    size = min(size, len(universe) - 1)
    column = column_of(universe, size)
    scale = max(1.0, float(np.abs(column.centred).max()))
    true = worlds.unbounded(universe, size, "var")
    assert variances.least_sensitivity(column.centred, size, parse("var")) == pytest.approx(
        true, rel=1e-9, abs=1e-12 * scale**2
    )
    limit = worlds.unbounded(universe, size, "std")
    assert (
        variances.least_sensitivity(column.centred, size, parse("std"))
        <= limit * (1 + 1e-9) + 1e-7 * scale
    )


def test_variances_at_scale_and_bounds_of_standard_deviations():
    universe = np.random.default_rng(8).lognormal(size=20_000)
    assert choose(universe, 10_000, "var").one_sided is False
    one_sided = choose(universe, 10_000, "std")
    assert (one_sided.exact, one_sided.one_sided) == (False, True)
    assert any("lower bound" in note for note in one_sided.caveats)
    assert 0 < one_sided.epsilon < math.inf
    few = np.sort(universe[:9])
    safe = variances.least_sensitivity(few - few[4], 5, parse("std"))
    assert risk.upper_bound_epsilon(few, 5, "std", sensitivity=safe) <= risk.upper_bound_epsilon(
        few, 5, "std"
    ) * (1 + 1e-12)
