"""The exact audit of residuals finds what is spent, and faults."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.audit.likelihoods import ALPHAS
from sfumato.audit.residuals import residual_loss
from sfumato.audit.runs import Mechanism, NotAdditive, Published, Rows, neighbours, of_question
from sfumato.audit.subjects.subject import LINE, ON_LINE
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, add_noise
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.tables import Tables
from sfumato.questions.tables import design as design_module
from sfumato.random.bits import Bits

CLAIM = ZCDP("0.125")
PAIRS = neighbours(ON_LINE, Unit(), others=1)


def loss_of(mechanism: Mechanism) -> float:
    return residual_loss(mechanism, PAIRS, CLAIM, ALPHAS).loss


def of_tables(rho: str = "0.125") -> Mechanism:
    return of_question(Tables(["x"]), LINE, Unit(), ZCDP(rho))


def test_tables_of_residuals_spend_their_claim() -> None:
    assert 0.97 <= loss_of(of_tables()) / 0.125 <= 1


def test_half_the_noise_is_told() -> None:
    assert loss_of(of_tables("0.5")) > 0.3


def test_whole_tables_at_the_price_of_residuals_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(design_module, "differences", lambda axes, margin, counts: counts)
    monkeypatch.setattr(
        design_module, "published_shape", lambda axes, each: whole_shape(axes, each.margin)
    )
    assert loss_of(of_tables()) > 1.1 * 0.125


def whole_shape(axes: tuple, margin: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(axis.cells(level) for axis, level in zip(axes, margin, strict=True))


def published(make) -> Mechanism:
    def run(rows: Rows, noise: Bits) -> Published:
        cells = LINE["x"].on_lattice(
            "x", lambda name, axis: Tables(["x"]).needs(LINE).lattice.axes[0]
        )
        counts = np.bincount(cells.locate(np.array([row[0] for row in rows], float)), minlength=3)
        numbers, more = make(counts, noise)
        return Published(tuple(int(number) for number in numbers), [numbers.tolist(), more])

    return run


def differences(counts: np.ndarray, noise: Bits) -> np.ndarray:
    noisy = add_noise(counts, DiscreteGaussian(2), noise)
    return noisy[:-1] - noisy[-1]


def test_what_else_is_published_is_told() -> None:
    assert loss_of(published(lambda counts, noise: (differences(counts, noise), 0))) < 0.3
    leaks = published(lambda counts, noise: (differences(counts, noise), int(counts[0])))
    assert loss_of(leaks) == np.inf


def test_noise_that_depends_on_the_data_is_told() -> None:
    def uneven(counts: np.ndarray, noise: Bits) -> tuple[np.ndarray, int]:
        law = DiscreteGaussian(2 + int(counts[0] > 0))
        return add_noise(counts, law, noise), 0

    assert loss_of(published(uneven)) == np.inf


def test_what_it_cannot_judge_is_refused() -> None:
    with pytest.raises(NotAdditive, match="no sums of draws"):
        loss_of(published(lambda counts, noise: (np.maximum(differences(counts, noise), 0), 0)))
    with pytest.raises(NotAdditive, match="Gaussian noise only"):
        loss_of(published(lambda c, noise: (add_noise(c, DiscreteLaplace(2), noise), 0)))
    with pytest.raises(NotAdditive, match="for rho only"):
        residual_loss(of_tables(), PAIRS, PureDP(1), ALPHAS)
