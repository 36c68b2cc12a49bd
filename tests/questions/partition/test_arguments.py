"""Ranges that users pass: arrays of any shape, and what is refused."""

import numpy as np
import pytest

from sfumato.domain.domain import Domain, Interval
from sfumato.errors import UsageError
from sfumato.privacy.measures import PureDP
from support.partitions import made

BOX = Domain(x=Interval(0, 16, step=1), y=Interval(0, 8, step=1))
ONE = PureDP(1)
RNG = np.random.default_rng(7)


@pytest.mark.parametrize("shape", [(5,), (2, 3), (0,), (1,)])
def test_arrays_of_ranges(shape):
    p = made(BOX, 30)
    lower, width = RNG.uniform(-1, 12, shape), RNG.uniform(0, 8, shape)
    many = p.count(x=(lower, lower + width), y=(1, 5))
    assert many.value.shape == many.low.shape == many.high.shape == shape
    for index in np.ndindex(*shape):
        one = p.count(x=(lower[index], lower[index] + width[index]), y=(1, 5))
        assert isinstance(one.value, float)
        assert (one.value, one.low, one.high) == pytest.approx(
            (many.value[index], many.low[index], many.high[index])
        )


@pytest.mark.parametrize(
    "ranges",
    [{"q": (0, 1)}, {"x": (2, 1)}, {"x": (0, np.nan)}, {"x": 3}, {"x": ([0, 1], [1, 2, 3])}],
    ids=str,
)
def test_ranges_that_make_no_sense(ranges):
    with pytest.raises(UsageError):
        made(BOX, 4).count(**ranges)


@pytest.mark.parametrize(
    "ranges",
    [{"x": ("a", "b")}, {"x": (1, 2, 3)}, {"x": (None, 1)}, {"x": ([0.0], ["b"])}],
    ids=str,
)
def test_ranges_of_another_kind_are_refused_in_three_parts(ranges):
    with pytest.raises(UsageError):
        made(BOX, 4).count(**ranges)
