"""True sums are exact: those of the functions of each row; and cut where int64 would overflow."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from questions.aggregates.wards import DOMAIN
from sfumato.answers.counts import Needs
from sfumato.data import count
from sfumato.domain.cube import Cube
from sfumato.questions.aggregates.encoding import LARGEST_SUM, group_sums, value_encoding
from sfumato.random.bits import current
from sfumato.testing import deterministic

AXES = {
    "wide": sf.Interval(-3, 7),
    "stepped": sf.Interval(-3, 7, step=0.25),
    "coarse doubles": sf.Interval(2.0**60, 2.0**60 + 2.0**20),
}
GROUPS = 3


@pytest.mark.parametrize("kind", [sf.Mean, sf.Variance, "auto"])
@pytest.mark.parametrize("axis", AXES.values(), ids=AXES)
@pytest.mark.parametrize("several", [False, True])
def test_sums_are_those_of_the_functions_of_each_row(
    kind: type[sf.Mean] | str, axis: sf.Interval, several: bool
) -> None:
    domain = sf.Domain(group=sf.Interval(0, GROUPS, step=1), x=axis, y=sf.Interval(0, 9))
    names = ["x", "y"] if several else "x"
    make = sf.Mean if isinstance(kind, str) else kind
    question = make(names, by="group", **({"clip": "auto"} if kind == "auto" else {}))
    draw = np.random.default_rng(3)
    lower, upper = axis.numbers
    width = upper - lower
    x = draw.uniform(lower - width / 9, upper + width / 9, 4000)
    groups = draw.integers(0, GROUPS, 4000)
    rows = np.stack([groups, x, draw.uniform(0, 9, 4000)], axis=1)
    (cube,) = count(sf.source(rows, domain), [question.needs(domain)])
    for index, summed in enumerate(question.needs(domain).sums):
        column = rows[:, 1 + index]
        encoding = value_encoding(
            "a mean", summed.axis.name, domain[summed.axis.name], question._basis_name
        )
        functions = encoding.basis.functions(summed.axis.locate(column.copy()))
        expected = [functions[groups == group].sum(axis=0).tolist() for group in range(GROUPS)]
        assert group_sums(cube, encoding.basis, 1, index).tolist() == expected


def wages(n_rows: int, value: int, question: sf.Mean | sf.Variance) -> Cube:
    """So many rows, all of one wage, as a scan would have added them up."""
    needs: Needs = question.needs(DOMAIN)
    columns = [value, value**2] if needs.sums[0].squares else [value]
    counts = np.zeros(needs.lattice.size, np.int64)
    at = 0
    if needs.lattice.axes:  # the segments of hats
        (at,) = needs.lattice.axes[0].locate(needs.sums[0].axis.points(np.array([value])))
    counts[at] = n_rows
    sums = counts[:, None].astype(object) * np.array(columns, object)
    if sums.max() < LARGEST_SUM:
        sums = sums.astype(np.int64)
    summed = tuple(each.axis for each in needs.sums)
    return Cube(needs.lattice, counts, sums=sums, summed=summed)


WAGES = [sf.Mean("wage"), sf.Variance("wage"), sf.Mean("wage", clip="auto")]


@pytest.mark.parametrize("question", WAGES, ids=["pair", "quadratic", "hats"])
def test_ten_to_the_ninth_rows_are_added_up_exactly(question: sf.Mean | sf.Variance) -> None:
    for at_upper in (False, True):
        last = question.needs(DOMAIN).sums[0].axis.size - 1
        cube = wages(10**9, last if at_upper else 0, question)
        assert cube.sums is not None
        assert cube.sums.dtype == np.int64
        with deterministic(5):
            release = question.answer(cube, sf.Unit(), sf.PureDP(1), current())
        assert release.released.max() < LARGEST_SUM
        assert float(release.means) == pytest.approx(150 if at_upper else -50)
        assert float(release.counts) == pytest.approx(10**9, rel=1e-6)


def test_a_sum_of_more_than_2_to_the_62_is_cut_and_nothing_raises() -> None:
    last = sf.Variance("wage").needs(DOMAIN).sums[0].axis.size - 1
    with deterministic(5):
        release = sf.Variance("wage").answer(
            wages(2**40, last, WAGES[1]), sf.Unit(), sf.PureDP(1), current()
        )
    assert abs(int(release.released[2]) - LARGEST_SUM) < 2**40
    just_below = LARGEST_SUM // last**2 - 1
    with deterministic(5):
        release = sf.Variance("wage").answer(
            wages(just_below, last, WAGES[1]), sf.Unit(), sf.PureDP(1), current()
        )
    assert float(release.values) == pytest.approx(0, abs=1e-3)
    assert float(release.means) == pytest.approx(150)
