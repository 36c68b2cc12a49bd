"""Doubles are read without a word of what was given."""

import numpy as np
import pytest

from sfumato.basics.numbers import as_floats


@pytest.mark.parametrize(
    "values", ["secret", ["secret"], [[1, 2], [3]], [object()], None, {"a": 1}]
)
def test_what_is_no_array_of_doubles_has_no_shape_that_fits(values):
    found = as_floats(values)
    assert found.shape in ((0,), ())
    assert found.size == 0 or np.isnan(found)


def test_doubles_are_read_as_they_are():
    assert as_floats([[1, 2.5], [3, 4]]).tolist() == [[1, 2.5], [3, 4]]
    assert as_floats(np.array([1, 2], np.float32)).dtype == np.float64
