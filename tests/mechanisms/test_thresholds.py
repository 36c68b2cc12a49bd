"""Selection of keys: what it truly spends, how often it keeps, and whether its intervals hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from sfumato.audit.runs import Scripted
from sfumato.errors import UsageError
from sfumato.mechanisms.gaussian_keys import ThresholdGaussian
from sfumato.mechanisms.thresholds import (
    RULES,
    KeyLaw,
    ThresholdLaplace,
    TruncatedGeometric,
    key_law,
    released,
)
from sfumato.privacy.measures import ZCDP, ApproxDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.random import PublicSeed, current
from support import selection

ROUNDING = 1e-9
EPSILON, DELTA = 1.0, 0.05
COST = ApproxDP("1", "0.05")
USUAL = ApproxDP("1", "1e-6")
RELATIONS = ("add-remove", "replace")


def pairs(rows: int, relation: str):
    """Rows shared on one key and spread over two, beside what others have; enough of others for
    every branch of the law.
    """
    return selection.neighbours(rows, relation, keys=2, most=3 if rows < 3 else 2)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_it_spends_no_more_than_it_claims(rows: int, relation: str, rule: str) -> None:
    law = key_law(COST, Unit(rows, relation), rule)
    found = selection.worst(law, pairs(rows, relation), EPSILON)
    cut = 0.0 if isinstance(law, TruncatedGeometric) else 4 * math.exp(-selection.REACH)
    assert found <= DELTA * (1 + ROUNDING) + cut
    if rule == "truncated-geometric" and relation == "add-remove":
        assert found == pytest.approx(DELTA, rel=1e-6)  # nothing is left on the table


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("rows", [1, 3])
def test_counts_of_keys_that_are_surely_shown_are_private(rows: int, rule: str) -> None:
    """The rows of one person leave a key of many rows, and those of another enter a second one."""
    law = key_law(COST, Unit(rows, "replace"), rule)
    many = 60 * rows
    assert law.kept(many) > 0.99
    moved = (many + rows, many), (many, many + rows)
    assert selection.worst(law, iter([moved]), EPSILON) <= DELTA * (1 + ROUNDING)
    if rule != "stability":  # its noise is that of a replacement under either relation
        narrow = key_law(COST, Unit(rows), rule)
        assert selection.worst(narrow, iter([moved]), EPSILON) > 1.2 * DELTA


def placements(rows: int, largest: int) -> Iterator[tuple[int, ...]]:
    """All ways to place so many rows in keys, the fullest key first."""
    if not rows:
        yield ()
    for first in range(min(rows, largest), 0, -1):
        for rest in placements(rows - first, first):
            yield (first, *rest)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("rows", [1, 2, 5, 12])
@pytest.mark.parametrize("epsilon", ["0.3", "3", "40"])
def test_the_threshold_is_the_least_that_delta_allows(
    epsilon: str, rows: int, relation: str
) -> None:
    """By 60 digits, over all ways to place a person's rows in keys that nobody else has."""
    law = key_law(ApproxDP(epsilon, "1e-6"), Unit(rows, relation), "threshold")
    assert isinstance(law, ThresholdLaplace)
    with mpmath.workdps(60):
        # Under replace rows go, then others come: each at half of epsilon, and both within delta.
        sides = 1 if relation == "add-remove" else 2
        each = mpmath.mpf(epsilon) / sides
        delta = mpmath.mpf("1e-6") / sum(mpmath.exp(i * each) for i in range(sides))
        assert law.scale == Fraction(rows * sides) / Fraction(epsilon)
        q = mpmath.exp(-each / rows)

        def noticed(tau: int) -> mpmath.mpf:
            ways = placements(rows, rows)
            return max(sum(q ** (tau - a) / (1 + q) for a in way) for way in ways)

        assert law.tau >= rows
        assert noticed(law.tau) <= delta
        assert law.tau == rows or noticed(law.tau - 1) > delta * (1 - mpmath.mpf("1e-10"))


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(0.5, 0.1), (1, 0.01), (2, 0.2), (3, 0.001), (0.2, 0.3), (6, 0.05)],
    ids=str,
)
def test_one_row_at_every_count(epsilon: float, delta: float) -> None:
    """All counts from none to where a key is surely shown: pi is tight somewhere on the way up and
    somewhere on the way down.
    """
    law = TruncatedGeometric(Fraction(str(epsilon)), Fraction(str(delta)))
    last = law.shape.last
    found = [
        selection.excess(selection.outputs(a, law), selection.outputs(b, law), epsilon)
        for n in range(last + 3)
        for a, b in ((n, n + 1), (n + 1, n))
    ]
    assert max(found) == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 7.0])
def test_the_curve_is_the_recursion(epsilon: float) -> None:
    pi = selection.curve(epsilon, 1e-6)
    law = TruncatedGeometric(Fraction(str(epsilon)), Fraction(1, 10**6))
    assert law.shape.last == len(pi) - 1
    assert law.kept(np.arange(len(pi))) == pytest.approx(pi, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(
    ("epsilon", "half", "most"), [("1", 14, 16), ("0.5", 26, 30), ("0.1", 109, 132)]
)
def test_counts_that_are_kept(epsilon: str, half: int, most: int) -> None:
    law = key_law(ApproxDP(epsilon, "1e-6"), Unit())
    assert (law.count_kept(0.5), law.count_kept(0.95)) == (half, most)
    assert law.kept(0) == 0


def test_twin_divides_epsilon_and_delta_by_the_rows() -> None:
    """(eps / r, delta / r) is not enough where rows share a key: 1.32 times delta for 2 rows at eps
    1, 5.46 times for 10 at eps 3.
    """
    for rows, epsilon, factor in ((2, 1.0, 1.32), (4, 1.0, None), (10, 3.0, 5.46)):
        delta = 1e-3
        law = TruncatedGeometric(Fraction(str(epsilon)) / rows, Fraction(str(delta)) / rows)
        shared = selection.excess(selection.outputs(rows, law), selection.outputs(0, law), epsilon)
        truth = max(
            selection.excess(selection.outputs(n + rows, law), selection.outputs(n, law), epsilon)
            for n in range(law.shape.last)
        )
        assert max(shared, truth) > delta * 1.2
        if factor is not None:
            assert max(shared, truth) / delta == pytest.approx(factor, abs=0.01)


@pytest.mark.parametrize("relation", RELATIONS)
def test_twin_uses_the_threshold_of_continuous_noise(relation: str) -> None:
    """The textbook's threshold with discrete noise spends up to 2 / (1 + q) times delta."""
    worst = 0.0
    for delta in (0.01, 0.013, 0.017, 0.02, 0.025, 0.03):
        law = ThresholdLaplace(Fraction(1), selection.continuous_threshold(1.0, delta))
        worst = max(
            worst, selection.worst(law, selection.neighbours(1, "add-remove", 1, 1), 1.0) / delta
        )
        sound = key_law(ApproxDP("1", str(delta)), Unit(), "threshold")
        assert (
            selection.worst(sound, selection.neighbours(1, "add-remove", 1, 1), 1.0)
            <= delta * (1 + ROUNDING) + 1e-15
        )
    assert worst > 1.2


@pytest.mark.parametrize(
    "twin",
    [selection.shows_empty_keys, selection.forgets_the_threshold_of_equality],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("rule", ["truncated-geometric", "threshold"])
def test_twins_of_the_code_are_caught(rule: str, twin: Callable) -> None:
    law = key_law(COST, Unit(), rule)
    assert selection.worst(law, pairs(1, "add-remove"), EPSILON, twin) > 1.2 * DELTA


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("count", [12, 14, 16, 33])
def test_keys_are_kept_as_often_as_the_curve_says(rule: str, count: int) -> None:
    law = key_law(USUAL, Unit(), rule)
    places, values = released(np.full(200_000, count), law, PublicSeed(f"{rule} {count}"))
    expected = float(law.kept(count))
    low, high = stats.binom.ppf(5e-10, 200_000, expected), stats.binom.isf(5e-10, 200_000, expected)
    assert low <= len(places) <= high
    assert not len(values) or values.min() >= law.threshold


@pytest.mark.deep
def test_kept_curves_over_a_million_draws(evidence: Callable[[str, object], None]) -> None:
    figures = {}
    for rule in RULES:
        law = key_law(USUAL, Unit(), rule)
        for count in (8, 12, 13, 14, 15, 16, 18, 30, 34, 36):
            kept, expected = (
                len(released(np.full(10**6, count), law, current())[0]),
                float(law.kept(count)),
            )
            assert abs(kept / 10**6 - expected) <= 6.8 * math.sqrt(
                max(expected * (1 - expected), 1e-6) / 10**6
            )
            figures[f"{rule}, {count} rows"] = [kept / 10**6, expected]
    evidence("kept_keys", figures)


def laws() -> list[KeyLaw]:
    return [key_law(USUAL, Unit(), rule) for rule in RULES] + [
        key_law(ApproxDP("0.3", "1e-4"), Unit(3, "replace")),
        ThresholdGaussian(Fraction(90), 50),
    ]


@pytest.mark.parametrize("law", laws(), ids=str)
@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_intervals_hold_given_that_the_key_was_shown(law: KeyLaw, alpha: float) -> None:
    """Exactly, by the law: for every count, even one that is shown once in a million."""
    mass = {x: p for x, p in selection.masses(law).items() if p > 0}
    values = np.arange(law.threshold, law.threshold + 3 * law.half_width(1e-6) + 200)
    low, high = law.interval(values, alpha)
    for n in [1, 2, 5, *range(law.threshold - 5, law.threshold + 6, 2), law.threshold + 40]:
        chance = np.array([mass.get(int(o) - n, 0.0) for o in values])
        assert chance[(low <= n) & (n <= high)].sum() >= (1 - alpha) * chance.sum() * (1 - 1e-7)


def test_intervals_that_forget_the_selection_do_not_hold() -> None:
    law = key_law(USUAL, Unit(), "threshold")
    values, half = np.arange(law.threshold, law.threshold + 100), law.half_width(0.05)
    chance = law.tail(values - 5) - law.tail(values - 4)
    assert chance[values - half <= 5].sum() < 0.01 * chance.sum()


@pytest.mark.parametrize("law", laws(), ids=str)
def test_half_widths_and_reach_are_the_smallest_that_will_do(law: KeyLaw) -> None:
    mass = selection.masses(law)
    for alpha in (0.3, 0.05, 0.001):
        half, reach = law.half_width(alpha), law.error_bound(alpha)
        for k, fits in ((half, True), (half - 1, False)):
            assert (sum(p for x, p in mass.items() if abs(x) > k) <= alpha * (1 + 1e-9)) == fits

        def missed(a: int, n: int) -> float:
            return sum(
                p for x, p in mass.items() if abs((n + x if n + x >= law.threshold else 0) - n) > a
            )

        counts = {*range(1, 2 * law.threshold + 20, 1 + law.threshold // 8), reach, reach + 1}
        assert max(missed(reach, n) for n in counts) <= alpha * (1 + 1e-9)
        assert max(missed(reach - 1, n) for n in counts) > alpha


def test_a_selected_count_is_never_of_a_key_that_nobody_has() -> None:
    for law in laws():
        places, _ = released(np.zeros(1000, np.int64), law, current())
        assert len(places) == 0


def test_no_noise_shows_a_key_that_nobody_has() -> None:
    """Noise as large as can be is drawn for the one key that occurs, and for no other."""
    for law in laws():
        assert law.kept(0) == 0
        counts = np.array([0, 7, 0])
        places, values = released(counts, law, Scripted((law.threshold - 1,)))
        assert places.tolist() == [1]
        assert values.tolist() == [law.threshold + 6]


@pytest.mark.parametrize("cost", [PureDP(1), ZCDP(1), ApproxDP(1, 0)], ids=str)
def test_keys_need_a_delta(cost: object) -> None:
    with pytest.raises(UsageError, match="delta"):
        key_law(cost, Unit())  # type: ignore[arg-type]


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(UsageError, match="truncated-geometric"):
        key_law(USUAL, Unit(), "truncated")  # type: ignore[arg-type]


@pytest.mark.parametrize(("epsilon", "delta"), [("1e-7", "1e-6"), ("1", "0.5"), ("1", "0")])
def test_laws_that_are_too_wide_or_promise_nothing(epsilon: str, delta: str) -> None:
    with pytest.raises(UsageError):
        TruncatedGeometric(Fraction(epsilon), Fraction(delta))


def test_group_privacy_of_one_step_is_rounded_down() -> None:
    for rows in (2, 3, 12, 100):
        law = key_law(USUAL, Unit(rows))
        assert isinstance(law, TruncatedGeometric)
        whole = sum(math.exp(i / rows) for i in range(rows)) * float(law.delta)
        assert whole == pytest.approx(1e-6, rel=1e-9)
        assert law.delta <= Fraction(1, 10**6)


@pytest.mark.parametrize("rule", ["threshold", "stability"])
def test_noise_that_cannot_be_drawn_is_refused_when_it_is_chosen(rule: str) -> None:
    with pytest.raises(UsageError, match="at most 2"):
        key_law(ApproxDP("1e-9", "1e-6"), Unit(10**6), rule)


@pytest.mark.parametrize(
    ("scale", "tau"), [(Fraction(0), 5), (Fraction(-1), 5), (Fraction(2), 0), (Fraction(2), 2**62)]
)
def test_no_law_without_noise_or_threshold(scale: Fraction, tau: int) -> None:
    with pytest.raises(UsageError):
        ThresholdLaplace(scale, tau)
