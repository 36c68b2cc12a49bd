"""The Toeplitz counter: exact sums, and what adversaries learn who choose increments by outputs.

Waiting cannot raise a loss under pure epsilon. Averages of losses, of which rho is made, are
another matter. Noise that an output moves from one step to another keeps its average for every
fixed stream, and loses it to an adversary who waits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import sfumato as sf
from publishing.visits import source
from questions.counters.adversaries import WAITING, Adversary, Seen
from sfumato.audit.runs import Scripted, log_sum
from sfumato.mechanisms.noise import DiscreteGaussian
from sfumato.privacy.measures import ZCDP
from sfumato.privacy.unit import Unit
from sfumato.questions.counters.methods import Contribution, buffers, toeplitz
from sfumato.random.bits import override

RHO = Fraction(1, 2)


Laws = Callable[[Seen], DiscreteGaussian]


Means = Callable[[int, Seen], int]


def moment(
    law: DiscreteGaussian, one: int, other: int, high: bool, edge: int, order: float
) -> float:
    """Return ln of the sum of p(o - one)^order p(o - other)^(1 - order).

    The sum is over the outputs o on one side of the edge.
    """
    variance = float(law.sigma_squared)
    reach = math.ceil(14 * math.sqrt(variance)) + 2
    centre = round(order * one + (1 - order) * other)
    outputs = np.arange(centre - reach, centre + reach + 1)
    outputs = outputs[outputs > edge] if high else outputs[outputs <= edge]
    if not outputs.size:
        return -math.inf
    normaliser = log_sum(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * variance))
    return (
        log_sum(
            -(order * (outputs - one) ** 2.0 + (1 - order) * (outputs - other) ** 2.0)
            / (2 * variance)
        )
        - normaliser
    )


def divergence(laws: Laws, means: Means, steps: int, edge: int, order: float) -> float:
    """Return the Renyi divergence of all outputs over its order.

    It runs over the tree of which outputs were high; its branches are sums over integers.
    """

    def log_moment(seen: Seen) -> float:
        if len(seen) == steps:
            return 0.0
        branches = [
            moment(laws(seen), means(0, seen), means(1, seen), high, edge, order)
            + log_moment((*seen, high))
            for high in (0, 1)
        ]
        return log_sum(np.array(branches))

    return log_moment(()) / (order - 1) / order


def means_of(mechanism: Any, adversary: Adversary) -> Means:
    """Return what a mechanism would publish without noise after these outputs."""

    def mean(side: int, seen: Seen) -> int:
        state = mechanism.start()
        output = (0,)
        for step in range(len(seen) + 1):
            state, output = mechanism.step(state, (adversary.next(side, seen[:step]),), Scripted())
        return int(output[0])

    return mean


@pytest.mark.parametrize(
    ("make", "precision"), [(toeplitz, 2), (buffers, 9)], ids=["toeplitz", "buffers"]
)
def test_no_adversary_learns_more_from_gaussian_mechanisms_than_they_claim(
    make, precision: int
) -> None:  # type: ignore[no-untyped-def]
    mechanism = make(3, 1, Contribution(Unit(), (0, 1)), ZCDP(RHO), precision)
    found = {}
    for name, joins in WAITING.items():
        adversary = Adversary(
            lambda seen: 2 * int(seen[-1:] == (True,)), lambda seen, joins=joins: int(joins(seen))
        )
        means = means_of(mechanism, adversary)
        found[name] = max(
            divergence(lambda seen: mechanism.law, means, 3, 2**precision, order)
            for order in (2.0, 8.0)
        )
    assert max(found.values()) <= RHO * (1 + 1e-9)
    assert max(found.values()) == found["first"] > 0.97 * RHO


def test_noise_moved_between_steps_by_an_output_is_found_by_waiting_only() -> None:
    """The charge covers every fixed stream, but an adversary who waits learns a third more."""
    order = 4.0
    even = DiscreteGaussian(Fraction(30))
    less = DiscreteGaussian(Fraction(5))
    more = DiscreteGaussian(Fraction(60))

    def laws(seen: Seen) -> DiscreteGaussian:
        return even if not seen else less if seen[0] == (len(seen) == 1) else more

    def loss(name: str) -> float:
        return divergence(laws, lambda side, seen: side * WAITING[name](seen), 3, 0, order)

    claim = max(map(loss, ("first", "second", "third")))
    assert loss("second after a low first, else third") < claim
    assert loss("second after a high first, else third") > 1.33 * claim
    fixed = {
        name: divergence(
            lambda _: less, lambda side, seen, n=name: side * WAITING[n](seen), 3, 0, order
        )
        for name in WAITING
    }
    assert (
        max(fixed.values()) <= 1 / (2 * 5) + 1e-9
    )  # the same laws, whatever was seen: nothing is gained


@pytest.fixture
def publisher(tmp_path: Path) -> Iterator[sf.Publisher]:
    with sf.Publisher(source(), ledger=tmp_path / "b.db", account="a", budget="3") as opened:
        yield opened


def test_a_toeplitz_state_of_an_earlier_version_goes_on(publisher: sf.Publisher) -> None:
    from sfumato.questions.counters.toeplitz import ColumnState
    from sfumato.random import current

    mechanism = sf.Counter(9, method="toeplitz").settle(None, sf.Unit(), sf.ZCDP("0.5")).mechanism
    old = msgspec.json.decode(b'{"increments":[[3],[-700],[90]]}', type=ColumnState)
    with override(Scripted()) as none:
        after, output = mechanism.step(old, (5,), none)  # type: ignore[arg-type]
        state = mechanism.start()
        for increment in (3, -700, 90, 5):
            state, expected = mechanism.step(state, (increment,), none)  # type: ignore[arg-type]
    assert after.values() == state.values() == [3, -700, 90, 5]  # type: ignore[union-attr]
    assert output == expected
    assert current() is not None


@pytest.mark.parametrize("large", [100, 2**31, 2**53, 2**70])
def test_toeplitz_sums_are_exact_whatever_the_increments(large: int) -> None:
    from sfumato.questions.counters.toeplitz import column

    mechanism = sf.Counter(12, method="toeplitz").settle(None, sf.Unit(), sf.ZCDP("0.5")).mechanism
    weights = column(12, 16).tolist()
    increments = [large, -3, large, 0, -large, 127, -128, 128, -129, large - 1, 5, large]
    state = mechanism.start()
    for step, increment in enumerate(increments, 1):
        with override(Scripted()) as none:
            state, (output,) = mechanism.step(state, (increment,), none)  # type: ignore[arg-type]
        assert output == sum(
            w * x for w, x in zip(weights, reversed(increments[:step]), strict=False)
        )
