"""Values of a column find their label, whatever form the table has."""

from __future__ import annotations

import pytest

from sfumato.domain.lattice import Label, LabelAxis


@pytest.mark.parametrize(
    ("labels", "values", "cells"),
    [
        (("a", "b"), ["a", " a", "a\t", "A", "a b", "", None], [0, 0, 0, -1, -1, -1, -1]),
        (("a", " a"), ["a", " a", "a ", "  a"], [0, 1, 0, 0]),
        (("true", "false"), ["True", "TRUE ", True, "1", "no", False, 0], [0, 0, 0, 0, -1, 1, 1]),
        (("False", "TRUE"), ["false", "0", False, "true", True], [0, 0, 0, 1, 1]),
        (("true", "false", "maybe"), ["True", True, "1", "true"], [-1, -1, -1, 0]),
        (("true", "TRUE"), ["true", "True", True], [0, -1, -1]),
        ((True, False), [True, "true", 1], [0, -1, -1]),
        ((1, 2), [1, 2.0, "1", True], [0, 1, -1, -1]),
    ],
)
def test_lookup(labels: tuple[Label, ...], values: list[object], cells: list[int]) -> None:
    axis = LabelAxis("x", labels)
    assert axis.lookup(values).tolist() == cells
    assert [axis.lookup([value]).tolist() for value in values] == [[cell] for cell in cells]


def test_a_column_of_booleans_fits_labels_that_say_so() -> None:
    assert LabelAxis("x", ("true", "False")).value_kinds == {"text", "boolean"}
    assert LabelAxis("x", ("true", "false", "maybe")).value_kinds == {"text"}
    assert LabelAxis("x", ("true", "false", "else"), other=True).value_kinds == {"text", "boolean"}
