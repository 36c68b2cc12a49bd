"""What the uniform grid truly spends, over all small neighbours and all grids, by the production code."""

import pytest

from sfumato.audit.likelihoods import pure_loss, renyi_loss
from sfumato.audit.runs import neighbours, of_question
from sfumato.domain import Domain, Interval
from sfumato.partition.uniform import UniformPartitioner
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit

LINE = Domain(x=Interval(0, 3, step=1))
PLANE = Domain(x=Interval(0, 2, step=1), y=Interval(0, 2, step=1))
LINE_ROWS = ((0.5,), (1.0,), (3.0,))
PLANE_ROWS = ((0.0, 0.0), (2.0, 0.0), (1.0, 1.0))
UNITS = [
    Unit(rows_per_person=r, neighbours=neighbours)
    for r in (1, 3)
    for neighbours in ("add-remove", "replace")
]
NOISY = UniformPartitioner(theta=1)
GIVEN = UniformPartitioner(partitions=9)
FIRST_DRAWS = (-100, -3, 0, 1, 4, 10, 100)


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize(
    ("domain", "universe"), [(LINE, LINE_ROWS), (PLANE, PLANE_ROWS)], ids=["line", "plane"]
)
def test_pure(domain, universe, unit):
    given = pure_loss(
        of_question(GIVEN, domain, unit, PureDP("2")), neighbours(universe, unit, others=0)
    ).loss
    assert given <= 2 * (1 + 1e-9)
    assert given == pytest.approx(2, rel=0.01)
    others = 1 if unit.rows_per_person == 1 else 0
    noisy = pure_loss(
        of_question(NOISY, domain, unit, PureDP("2")),
        neighbours(universe, unit, others),
        FIRST_DRAWS,
    ).loss
    assert noisy <= 2 * (1 + 1e-9)
    assert noisy == pytest.approx(2, rel=0.01)


@pytest.mark.parametrize("unit", UNITS[:2], ids=str)
def test_concentrated(unit):
    mechanism = of_question(NOISY, LINE, unit, ZCDP("0.5"))
    rho = renyi_loss(
        mechanism, neighbours(LINE_ROWS, unit, others=0), alphas=(1.5, 2, 8), decides=True
    ).loss
    assert rho <= 0.5 * (1 + 1e-9)
    assert rho >= 0.5 * 0.97
