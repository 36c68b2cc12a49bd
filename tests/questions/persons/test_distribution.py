"""Estimated losses are those of the persons, where noise lets them be seen."""

from __future__ import annotations

import numpy as np
import pytest

from questions.persons.tables import binned, law_at, lognormal, pareto
from sfumato.basics.numbers import Array
from sfumato.questions.persons.measured import Distribution, estimated, lower_ends, upper_ends


def of(rows: Array, most_rows: int, epsilon: str) -> Distribution:
    ends = np.array(upper_ends(most_rows))
    return estimated(binned(rows, most_rows), lower_ends(most_rows), ends, law_at(epsilon))


@pytest.mark.parametrize("rows", [pareto(20_000), lognormal(20_000)], ids=["pareto", "lognormal"])
def test_losses_are_nearly_those_of_the_persons(rows: Array) -> None:
    rows = np.minimum(rows, 1000)
    found = of(rows, 1000, "50")
    assert found.number_of_rows == pytest.approx(rows.sum(), rel=0.03)
    for limit in (1, 2, 5, 10, 30):
        lost = np.maximum(rows - limit, 0).sum()
        estimate = np.interp(limit, found.limits, np.median(found.lost, axis=0))
        assert estimate == pytest.approx(lost, rel=0.1)


@pytest.mark.parametrize("most_rows", [2, 3, 5000, 5001, 10**9])
def test_every_bound_has_limits_up_to_itself(most_rows: int) -> None:
    found = of(pareto(100), most_rows, "1")
    assert found.limits[0] == 1
    assert found.limits[-1] == most_rows
    assert (np.diff(found.limits) > 0).all()
    assert (np.diff(found.lost, axis=1) <= 0).all()
    assert (found.lost >= 0).all()
    assert 0 <= found.kept(1) <= found.kept(most_rows) <= 1 + 1e-9


def test_of_nobody_nothing_is_lost() -> None:
    nobody = Distribution(np.arange(1, 4), np.zeros((2, 3)), np.zeros(2))
    assert nobody.kept(1) == 1
