"""The noise that a counter settles on, against what one person can do, enumerated: values, categories, units, methods."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.counters.toeplitz import column

UNITS = [
    sf.Unit(rows_per_person=r, neighbours=which)
    for r in (1, 2)
    for which in ("add-remove", "replace")
]
VALUES = {
    "counts": (1, (0, 1)),
    "sums": (sf.Interval(0, 4, step=1), (0, 4)),
    "signed": (sf.Interval(-3, 2, step=1), (-3, 2)),
}
T = 4


def changes(unit, ends, cells):
    """What one person can add to a stream of T steps, or exchange in it, at the ends of the interval: arrays of shape (T, cells)."""
    rows = [(step, cell, end) for step in range(T) for cell in range(cells) for end in ends if end]
    tables = []
    for number in range(unit.rows_per_person + 1):
        for chosen in itertools.combinations_with_replacement(rows, number):
            tables.append(np.zeros((T, cells), dtype=int))
            for step, cell, end in chosen:
                tables[-1][step, cell] += end
    return (
        tables
        if unit.neighbours == "add-remove"
        else [one - other for one in tables for other in tables]
    )


@pytest.mark.parametrize("by", [None, sf.Categories(["a", "b"])], ids=["", "by"])
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("unit", UNITS[:2] + UNITS[2:3], ids=str)
def test_the_noise_of_a_counter_pays_for_what_one_person_can_do(unit, value, by):
    interval, ends = VALUES[value]
    moved = changes(unit, ends, 1 if by is None else 2)
    most = max(int(np.abs(each).sum()) for each in moved)
    for horizon in (1, T, 365):
        machine = (
            sf.Counter(horizon, value=interval, by=by)
            .settle(None, unit, sf.PureDP("0.3"))
            .mechanism
        )
        assert machine.law.scale == most * machine.levels / Fraction("0.3")
    assert sf.Counter(None, value=interval, by=by).settle(
        None, unit, sf.PureDP("0.3")
    ).mechanism.scale == most / Fraction("0.3")
    machine = (
        sf.Counter(T, value=interval, by=by, method="toeplitz")
        .settle(None, unit, sf.ZCDP("0.3"))
        .mechanism
    )
    first = column(T, machine.precision).astype(object)
    matrix = np.array([[first[i - j] if i >= j else 0 for j in range(T)] for i in range(T)])
    largest = max(int(((matrix @ each) ** 2).sum()) for each in moved)
    assert machine.law.sigma_squared >= largest / (2 * Fraction("0.3"))
    rounded = (
        sf.Counter(T, value=interval, by=by, method="blt")
        .settle(None, unit, sf.ZCDP("0.3"))
        .mechanism
    )
    norm = int(max(np.square(np.cumsum(each, axis=0)[-1]).sum() for each in moved))
    assert rounded.law.sigma_squared > norm * 4**rounded.precision / (2 * Fraction("0.3"))
