"""The buffered counter charges for its rounding."""

from fractions import Fraction

import pytest

import sfumato as sf


@pytest.mark.parametrize(
    ("rows", "neighbours", "touched"),
    [(1, "add-remove", 1), (1, "replace", 2), (2, "replace", 3), (3, "add-remove", 3)],
)
def test_rounding_is_charged_in_every_category_that_a_person_touches(rows, neighbours, touched):
    unit = sf.Unit(rows, neighbours)
    rho = Fraction(1, 2)
    by = sf.Categories(["a", "b", "c"])
    mechanism = sf.Counter(5000, by=by, method="blt").settle(None, unit, sf.ZCDP(rho)).mechanism
    parts = mechanism.parameters
    precision = mechanism.precision
    rounding = 1 + sum(
        Fraction(w) / (1 - Fraction(t)) for w, t in zip(parts.omega, parts.theta, strict=True)
    )
    factor = 2 if neighbours == "replace" else 1
    # sqrt(linear) + sqrt(rounded) <= sigma sqrt(2 rho), without a root but that of the product
    linear = parts.squared_norm() * factor * rows**2 * 4**precision
    rounded = rounding**2 * 5000 * touched
    room = mechanism.law.sigma_squared * 2 * rho - linear - rounded
    assert room >= 0
    assert room**2 >= 4 * linear * rounded
