"""Partitions of unity: they add up to M, and give back a value and its square, as exact integers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sfumato.aggregates.basis import FINE, Basis, basis_within


@pytest.mark.parametrize("name", ["pair", "quadratic"])
@pytest.mark.parametrize("points", [1, 2, 3, 120, 2**16])
@pytest.mark.parametrize("multiple", [1, 7])
def test_functions_add_up_and_give_back_the_value(name: str, points: int, multiple: int) -> None:
    basis = Basis(name, points, multiple)
    x = np.unique(np.linspace(0, points, 200).astype(np.int64))
    found = basis.functions(x)
    assert (found >= 0).all()
    assert (found.sum(axis=1) == basis.unity).all()
    for value, row in zip(x.tolist(), found.tolist(), strict=True):
        weighted = sum(Fraction(w) * f for w, f in zip(basis.weights.tolist(), row, strict=True))
        assert weighted == Fraction(value, points) * basis.unity
    if name == "quadratic":
        squares = [Fraction(value, points) ** 2 * basis.unity for value in x.tolist()]
        assert squares == [row[2] for row in found.tolist()]


def test_one_row_moves_the_sums_by_exactly_m_in_l1_and_at_most_m_in_l2() -> None:
    for basis in (Basis("pair", 8), Basis("quadratic", 8)):
        found = basis.functions(np.arange(9)).astype(float)
        assert np.abs(found).sum(axis=1).tolist() == [basis.unity] * 9
        assert np.sqrt((found**2).sum(axis=1)).max() == basis.unity


def test_two_rows_that_replace_each_other_move_the_sums_by_at_most_root_2_m_in_l2() -> None:
    for basis in (Basis("pair", 8), Basis("quadratic", 8)):
        found = basis.functions(np.arange(9)).astype(float)
        apart = found[:, None, :] - found[None, :, :]
        assert np.sqrt((apart**2).sum(axis=2)).max() == pytest.approx(np.sqrt(2) * basis.unity)


def test_the_pair_has_no_squares() -> None:
    with pytest.raises(ValueError, match="second moments"):
        _ = Basis("pair", 3).squares


@pytest.mark.parametrize("name", ["pair", "quadratic"])
@pytest.mark.parametrize("points", [1, 2, 120, 2**16])
@pytest.mark.parametrize("unity", [0, 1, 3, 100, 2**20, 2**48])
def test_a_basis_stays_within_the_unity_that_its_noise_allows(
    name: str, points: int, unity: int
) -> None:
    found = basis_within(name, points, unity)
    if found is None:
        assert unity < 1
        return
    assert found.unity <= unity
    assert found.points <= points
    coarser = found.points < points
    assert not coarser or Basis(name, found.points + 1).unity > unity
    # Where there is room, noise is finer than 2^-16 of a row.
    assert found.unity >= min(FINE, unity // 2)
