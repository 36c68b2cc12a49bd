"""Constants against mpmath, and the vectors that the paper's formulas give."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import mpmath as mp
import pytest

from sfumato.local.bpm import BPM
from sfumato.local.constants import DIGITS, constants, context, kummer
from support.effort import lines

VECTORS = [
    ((2, "0.3", 2), "normalizer", 0.693833871844),
    ((2, "0.3", 2), "ball", 0.132856866375),
    ((1, 1, 2), "normalizer", 0.262091353373),
    ((1, 1, 2), "ball", 0.435143959704),
    ((1, 1, 2), "background", 0.867762185532),
    ((4, "0.3", 3), "ball", 0.0379527723151),
    ((8, 6, 8), "normalizer", 102.520596261),
    ((8, 6, 8), "ball", 0.999999999882),
]


@pytest.mark.parametrize(("parameters", "what", "value"), VECTORS)
def test_known_values(parameters: tuple[object, object, int], what: str, value: float) -> None:
    bpm = BPM(*parameters)

    found = (
        math.exp(bpm.log_normalizer)
        if what == "normalizer"
        else getattr(bpm, f"{what}_probability")
    )
    assert found == pytest.approx(value, rel=1e-11)


def test_probabilities_too_small_for_subtraction() -> None:
    eight, many = BPM(4, "0.3", 8), BPM(4, "0.3", 64)
    assert (eight.ball_probability, eight.signal_probability) == (
        pytest.approx(7.1e-6, rel=0.01),
        pytest.approx(9.4e-7, rel=0.01),
    )
    assert (many.ball_probability, many.signal_probability) == (
        pytest.approx(9.3e-67, rel=0.01),
        pytest.approx(1.7e-68, rel=0.02),
    )


@pytest.mark.parametrize("d", [1, 2, 3, 8, 64, 256, 1024])
def test_constants_against_mpmath(d: int) -> None:
    mp.mp.dps = 60
    for epsilon in (Fraction(1, 100), Fraction(1, 2), Fraction(2), Fraction(10), Fraction(64)):
        for reach in (Fraction(1, 100), Fraction(3, 10), Fraction(1), Fraction(7), Fraction(100)):
            k, length = (mp.mpf(x.numerator) / x.denominator for x in (epsilon, reach))
            # The incomplete gamma function by its own series in Kummer's function, DLMF 8.5.1.
            ball = mp.pi ** (mp.mpf(d) / 2) / mp.gamma(mp.mpf(d) / 2 + 1)
            lower = {
                n: (k * length) ** n / n * mp.exp(-k * length) * mp.hyp1f1(1, n + 1, k * length)
                for n in (d, d + 1)
            }
            inside = d * ball * lower[d] / k**d
            whole = inside + mp.exp(-k * length) * ((1 + 2 * length) ** d - ball * length**d)
            found = constants(epsilon, reach, d)
            wanted = {
                "log_normalizer": -mp.log(whole),
                "ball_probability": inside / whole,
                "signal_probability": ball * lower[d + 1] / k**d / whole,
                "background_probability": (1 + 2 * length) ** d * mp.exp(-k * length) / whole,
            }
            for name, value in wanted.items():
                ours = mp.mpf(str(getattr(found, name)))
                assert abs(ours - value) <= mp.mpf("1e-12") * abs(value) + mp.mpf("1e-40"), (
                    name,
                    d,
                    epsilon,
                    reach,
                )


@pytest.mark.parametrize(("d", "product"), [(2, 6.6), (3, 10.9), (8, 25.8), (64, 245)])
def test_the_automatic_reach_for_small_epsilon(d: int, product: float) -> None:
    bpm = BPM("0.001", "auto", d)
    assert float(bpm.L) * 0.001 == pytest.approx(product, rel=0.01)


@pytest.mark.parametrize("epsilon", ["0.5", 2, 8, 64])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_automatic_reach_is_the_smallest_within_five_percent(epsilon: object, d: int) -> None:
    bpm = BPM(epsilon, "auto", d)
    limit = d * (d + 1) / float(bpm.epsilon) ** 2
    assert bpm.variance <= 1.05 * limit
    assert BPM(epsilon, bpm.L * Fraction(99, 100), d).variance > 1.05 * limit


def test_ten_thousand_dimensions_neither_overflow_nor_take_long() -> None:
    def work() -> None:
        assert BPM(2, 10_000, 10_000).ball_probability < 1e-6
        assert BPM(64, "auto", 10_000).signal_probability > 0.99

    assert lines(work, "sfumato/local/") < 4_000_000  # a second or so


@pytest.mark.parametrize("c", [1, 2, 3, 40, 100])
def test_both_sums_of_kummers_function_are_right_to_all_digits(c: int) -> None:
    """The series, and the finite sum for a large argument; whatever dominates either of them."""
    for x in (Decimal("0.001"), Decimal(7), Decimal(2 * c + 100), Decimal(2 * c + 101)):
        with localcontext(context()):
            found = kummer(c, x)
        with mp.workdps(DIGITS + 20):
            exact = mp.hyp1f1(1, c, mp.mpf(str(x)))
            assert abs(mp.mpf(str(found)) / exact - 1) < mp.mpf(10) ** (5 - DIGITS)
