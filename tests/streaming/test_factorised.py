"""Aggregators of Toeplitz matrices: law, sensitivity, states."""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import pytest

from sfumato.errors import UsageError
from sfumato.streaming import (
    Aggregator,
    BLTAggregator,
    EfficientTreeAggregator,
    GaussianNoiseGenerator,
    Spec,
    ToeplitzAggregator,
    TreeAggregator,
    coefficients,
    get_step_idx,
)
from sfumato.streaming.toeplitz import root_norm
from streaming.linear import OneHot, steps
from support.effort import lines

KINDS = [ToeplitzAggregator, lambda values, horizon: BLTAggregator(values, horizon, buffers=2)]


def applied(kind, horizon: int, dtype: str = "float64", copies: int = 1) -> np.ndarray:  # type: ignore[no-untyped-def]
    """The matrix B with noise = B z, from unit vectors."""
    unit = OneHot(horizon, dtype)
    found = steps(kind(lambda: np.tile(unit(), copies), horizon), horizon)
    return np.array([row[-horizon:] for row in found], dtype=float)


@pytest.mark.parametrize("kind", KINDS)
def test_the_error_law_is_that_of_the_matrix(kind) -> None:  # type: ignore[no-untyped-def]
    b = applied(kind, 40)
    np.testing.assert_allclose((b**2).sum(axis=1), kind(OneHot(40), 40).variances(40), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("copies", [1, 500])
@pytest.mark.parametrize("kind", KINDS)
def test_the_sensitivity_is_that_of_the_strategy_that_the_matrix_implies(
    kind, dtype: str, copies: int
) -> None:  # type: ignore[no-untyped-def]
    """C = B^-1 A from the matrix that is applied, also where arrays are large and single.

    Its worst column is the first.
    """
    b = applied(kind, 40, dtype, copies)
    c = np.linalg.solve(b, np.tril(np.ones((40, 40))))
    worst = max((c**2).sum(axis=0))
    claimed = kind(OneHot(40), 40).squared_sensitivity(40)
    assert worst * (1 - 1e-5) <= claimed
    assert claimed == pytest.approx(worst, rel=2e-6 if dtype == "float64" else 1e-4)


def test_the_square_root_is_applied() -> None:
    b = applied(KINDS[0], 30)
    np.testing.assert_allclose(b[:, 0], coefficients(30), rtol=1e-12)
    np.testing.assert_allclose(b @ b, np.tril(np.ones((30, 30))), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_scalars_arrays_and_nested_values_give_the_same(kind) -> None:  # type: ignore[no-untyped-def]
    drawn = np.random.default_rng(4).normal(size=30)
    found = []
    for shape in (
        float,
        lambda x: np.full(3, x),
        lambda x: np.full(70_001, x),
        lambda x: {"a": [np.full(2, x), float(x)]},
        np.float64,
    ):
        values = iter(map(shape, drawn))
        found.append(steps(kind(lambda values=values: next(values), 20), 20))
    scalars = np.array(found[0])
    for other in (
        np.array(found[1])[:, 0],
        np.array(found[2])[:, -1],
        np.array([x["a"][1] for x in found[3]]),
        np.array(found[4]),
    ):
        np.testing.assert_allclose(other, scalars, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_horizon_is_what_stepping_gives(kind) -> None:  # type: ignore[no-untyped-def]
    aggregator = kind(GaussianNoiseGenerator(2.0), 500)
    state = aggregator.value_generator.initialize()
    for count in (1, 2, 100, 500):
        found = steps(aggregator, count, aggregator._first(state))
        np.testing.assert_allclose(aggregator.whole(count, state), found, rtol=1e-10, atol=1e-12)


class InPlace:
    """A tensor that is changed in place."""

    def __init__(self, x: float) -> None:
        self.x = x

    def __add__(self, other: InPlace) -> InPlace:
        return InPlace(self.x + other.x)

    def __mul__(self, weight: float) -> InPlace:
        return InPlace(self.x * weight)

    def __iadd__(self, other: float) -> InPlace:
        self.x += other
        return self

    def __float__(self) -> float:
        return self.x


SHAPES = {
    "small": lambda x: np.full(3, x),
    "large": lambda x: np.full(20_000, x, "float32"),
    "other": InPlace,
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "kind",
    [
        *KINDS,
        lambda values, _: TreeAggregator(values),
        lambda values, _: EfficientTreeAggregator(values),
    ],
)
def test_who_adds_to_noise_in_place_changes_no_state(kind, shape: str) -> None:  # type: ignore[no-untyped-def]
    drawn = np.random.default_rng(6).normal(size=40).tolist()
    values = iter(map(SHAPES[shape], drawn))
    plain = iter(drawn)
    aggregator = kind(lambda: next(values), 12)
    state = aggregator.init_state()
    found = []
    for _ in range(12):
        noise, state = aggregator.get_cumsum_and_update(state)
        found.append(float(np.ravel(noise)[-1]))
        noise += 1e6
    np.testing.assert_allclose(
        found, steps(kind(lambda: next(plain), 12), 12), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("spec", [(3,), Spec((20_000,), "float32")])
@pytest.mark.parametrize("kind", KINDS)
def test_a_step_asked_for_again_has_the_same_noise_whatever_was_done_to_it(kind, spec) -> None:  # type: ignore[no-untyped-def]
    aggregator = kind(GaussianNoiseGenerator(1.0, spec), 6)
    state = aggregator.init_state()
    for _ in range(6):
        noise, after = aggregator.get_cumsum_and_update(state)
        kept = noise.copy()
        noise += 1e6
        np.testing.assert_array_equal(aggregator.get_cumsum_and_update(state)[0], kept)
        state = after


@pytest.mark.parametrize("kind", KINDS)
def test_values_that_change_their_kind(kind) -> None:  # type: ignore[no-untyped-def]
    for wrong in (np.zeros(4), np.zeros(3, "float32"), [np.zeros(3)] * 2):
        values = iter([np.zeros(3), wrong])
        with pytest.raises(UsageError):
            steps(kind(lambda values=values: next(values), 4), 2)
    with pytest.raises(UsageError, match="half precision"):
        kind(lambda: np.zeros(3, "float16"), 4).init_state()
    with pytest.raises(UsageError, match="half precision"):
        kind(lambda: [np.zeros(3), np.zeros(3, "float16")], 4).init_state()


@pytest.mark.parametrize("kind", KINDS)
def test_beyond_the_horizon(kind) -> None:  # type: ignore[no-untyped-def]
    aggregator = kind(lambda: 1.0, 3)
    state = aggregator.init_state()
    for step in range(3):
        assert get_step_idx(state) == step
        _, state = aggregator.get_cumsum_and_update(state)
    for refused in (
        lambda: aggregator.get_cumsum_and_update(state),
        lambda: aggregator.variances(4),
        lambda: aggregator.whole(4),
    ):
        with pytest.raises(UsageError):
            refused()
    with pytest.raises(UsageError, match="longer horizon"):
        aggregator.get_cumsum_and_update(state)
    again = aggregator.reset_state(state)
    assert get_step_idx(again) == 0
    assert steps(aggregator, 3, again) == steps(aggregator, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_step_draws_nothing(kind) -> None:  # type: ignore[no-untyped-def]
    drawn = iter([1.0, 2.0, 3.0])
    assert len(steps(kind(lambda: next(drawn), 3), 3)) == 3


@pytest.mark.parametrize(("horizon", "factor"), [(2**10, 5.9), (2**14, 6.7), (2**20, 7.5)])
def test_largest_variance_at_one_price_beside_honaker(horizon: int, factor: float) -> None:
    def largest(aggregator: Aggregator) -> float:
        return float(aggregator.variances(horizon).max() * aggregator.squared_sensitivity(horizon))

    honaker = largest(EfficientTreeAggregator(lambda: 0.0))
    root = largest(ToeplitzAggregator(lambda: 0.0, horizon))
    buffered = largest(BLTAggregator(lambda: 0.0, horizon))
    assert root == pytest.approx(root_norm(horizon) ** 2, rel=1e-7)
    assert honaker / root > factor
    assert buffered < 1.01 * root


def test_price() -> None:
    assert (
        str(
            TreeAggregator(lambda: 0.0).cost(
                noise_multiplier=1, steps=8, participations=3, separation=3
            )
        )
        == "rho = 10"
    )
    rho = ToeplitzAggregator(lambda: 0.0, 100).cost(noise_multiplier=2, steps=100).rho
    assert float(rho) == pytest.approx(root_norm(100) / 8, rel=1e-8)
    assert float(rho) >= root_norm(100) / 8
    for wrong in (0, -1, float("nan")):
        with pytest.raises(UsageError):
            TreeAggregator(lambda: 0.0).cost(noise_multiplier=wrong, steps=8)
    for wrong in (0, -1, True, 2.5):
        with pytest.raises(UsageError):
            TreeAggregator(lambda: 0.0).variances(wrong)


def test_arrays_of_other_libraries_pass_through() -> None:
    """Anything with + and *: here Fractions in a class of their own."""

    class Tensor:
        def __init__(self, x: float) -> None:
            self.x = x

        def __add__(self, other: Tensor) -> Tensor:
            return Tensor(self.x + other.x)

        def __mul__(self, weight: float) -> Tensor:
            return Tensor(self.x * weight)

    drawn = np.random.default_rng(5).normal(size=40).tolist()
    for kind in (*KINDS, lambda values, _: EfficientTreeAggregator(values)):
        ours = iter(drawn)
        plain = iter(drawn)
        found = steps(kind(lambda ours=ours: Tensor(next(ours)), 12), 12)
        assert [one.x for one in found] == pytest.approx(
            steps(kind(lambda plain=plain: next(plain), 12), 12), rel=1e-12
        )


@pytest.mark.deep
def test_figures(evidence) -> None:  # type: ignore[no-untyped-def]
    """What is left of Honaker's largest variance at one price, the buffered form's loss, and the
    effort to find its parameters.
    """
    from sfumato.streaming import toeplitz as blt

    figures = []
    for horizon in (2**10, 2**14, 2**20, 10**7):
        blt._fewest.cache_clear()
        blt._optimal.cache_clear()
        start = time.process_time()
        found = blt.BLT.for_horizon(horizon)
        seconds = time.process_time() - start
        blt._fewest.cache_clear()
        blt._optimal.cache_clear()
        effort = lines(partial(blt.BLT.for_horizon, horizon), "sfumato/streaming/")
        honaker = EfficientTreeAggregator(lambda: 0.0)
        largest = float(honaker.variances(horizon).max() * honaker.squared_sensitivity(horizon))
        figure = {
            "horizon": horizon,
            "buffers": len(found.theta),
            "loss": found.loss(),
            "search_cpu_s": seconds,
            "search_lines": effort,
        }
        figures.append(figure | {"honaker_over_square_root": largest / root_norm(horizon) ** 2})
        assert found.loss() < 0.01
        assert effort < 60_000
    evidence("streaming", figures)
