"""The interval of the share of rows that a limit keeps holds, however many persons there are."""

from __future__ import annotations

import numpy as np
import pytest

from questions.persons.tables import binned, law_at, lognormal, pareto
from sfumato.basics.numbers import Array
from sfumato.mechanisms.noise import Law
from sfumato.questions.persons.measured import lower_ends, share_bounds, upper_ends
from sfumato.random import PublicSeed

TRIALS = 40
MOST_ROWS = 100


def kept(rows: Array, limit: int) -> float:
    """The true share."""
    return float(np.minimum(rows, limit).sum() / max(rows.sum(), 1)) if len(rows) else 1.0


def bounds(rows: Array, limit: int, law: Law, added: Law, alpha: float = 0.2) -> Array:
    """Intervals from many draws of noise of the law ``added``: shape (trials, 2)."""
    counts = binned(rows, MOST_ROWS)
    noise = added.sample(TRIALS * len(counts), PublicSeed(7)).reshape(TRIALS, -1)
    ends = np.array(upper_ends(MOST_ROWS))
    starts = lower_ends(MOST_ROWS)
    found = [share_bounds(counts + each, starts, ends, law, limit, alpha) for each in noise]
    return np.array(found)


def missed(intervals: Array, share: float) -> float:
    return float(((share < intervals[:, 0]) | (share > intervals[:, 1])).mean())


@pytest.mark.parametrize("n", [0, 1, 50, 2000])
@pytest.mark.parametrize("limit", [2, 20])
def test_it_holds_at_every_number_of_persons(n: int, limit: int) -> None:
    rows = np.minimum(pareto(n), MOST_ROWS)
    law = law_at("0.5")
    found = bounds(rows, limit, law, law)
    standard_error = np.sqrt(0.2 * 0.8 / TRIALS)
    assert missed(found, kept(rows, limit)) <= 0.2 + 4 * standard_error


def test_it_misses_where_noise_is_six_times_as_wide_as_stated() -> None:
    """Shown for persons with one row or the most, whom bins hide nothing of."""
    rows = np.concatenate([np.ones(5000, np.int64), np.full(100, MOST_ROWS)])
    ratio = bounds(rows, 1, law_at("0.3"), law_at("0.05"))
    assert missed(ratio, kept(rows, 1)) > 0.4


def test_bounds_lie_between_what_is_possible() -> None:
    rows = np.minimum(lognormal(500), MOST_ROWS)
    law = law_at("0.05")
    found = bounds(rows, 10, law, law)
    assert (found[:, 0] >= 10 / MOST_ROWS).all()
    assert (found[:, 1] <= 1).all()
    assert (found[:, 0] < found[:, 1]).all()


def test_the_largest_limit_keeps_all() -> None:
    ends = np.array(upper_ends(MOST_ROWS))
    zeros = np.zeros(len(ends), np.int64)
    law = law_at("1")
    assert share_bounds(zeros, lower_ends(MOST_ROWS), ends, law, MOST_ROWS, 0.05) == (1, 1)


def test_without_noise_to_speak_of_only_bins_hide_something() -> None:
    rows = np.repeat([1, 2, 100], [10_000, 10_000, 100])
    law = law_at("50")
    low, high = bounds(rows, 2, law, law).mean(axis=0)
    assert low < kept(rows, 2) < high
    assert high - low < 0.1


@pytest.mark.parametrize("alpha", [0.5, 0.05, 0.004, 1e-6])
def test_more_confidence_makes_it_wider(alpha: float) -> None:
    rows = np.minimum(pareto(3000), MOST_ROWS)
    counts = binned(rows, MOST_ROWS)
    ends = np.array(upper_ends(MOST_ROWS))
    law = law_at("0.5")
    found = [
        share_bounds(counts, lower_ends(MOST_ROWS), ends, law, 10, each)
        for each in (alpha, alpha / 2)
    ]
    assert found[1][0] <= found[0][0] <= found[0][1] <= found[1][1]
