"""Quantiles selected given a noisy number of rows: enumeration, the loss, and broken twins."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.test_jointexp import observed, surprise
from sfumato.errors import UsageError
from sfumato.mechanisms import joint_total
from sfumato.mechanisms.joint_total import (
    JointTotalLaw,
    step_of_totals,
    total_slack,
    totals_around,
)
from sfumato.mechanisms.jointexp import JointLaw, joint_slack
from sfumato.mechanisms.selection import Ranks, joint_sensitivity
from sfumato.privacy.unit import Unit
from sfumato.random import PublicSeed
from sfumato.random.bits import current
from support import selections
from support.selections import BETWEEN, PLACES, WIDE, data_sets, worst

ADD = Unit()
QUARTILES = [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]
UNEVEN = [Fraction(1, 5), Fraction(1, 4), Fraction(9, 10)]


def enumerated(cells, at, rate, totals, chosen):
    """exp(rate u) of every tuple and number of rows: float64 ndarray (tuples, numbers)."""
    below = np.concatenate([[0], np.cumsum(cells)])
    ends = np.full((len(chosen), 1), below[-1])
    gaps = np.diff(np.concatenate([below[chosen], ends], axis=1), axis=1, prepend=0)
    shares = np.diff([0.0, *map(float, at), 1.0])
    errors = np.abs(gaps[:, None, :] - shares * np.asarray(totals, float)[None, :, None])
    return np.exp(-rate * errors.sum(axis=2))


def law_of(at, totals, epsilon, unit, edges, chosen):
    def law(cells):
        ranks = Ranks.of_counts(np.array(cells), edges.start, edges.stop)
        return JointTotalLaw(ranks, at, totals, Fraction(epsilon), unit).log_probabilities(chosen)

    return law


def wide_law(at, totals, epsilon, unit):
    """ln P of one tuple of each pattern of groups, on an axis of 2^20 cells."""
    chosen = np.array(BETWEEN)[selections.tuples(range(len(BETWEEN)), len(at))]

    def law(cells):
        ranks = Ranks.of_cells(np.array(PLACES), np.array(cells), 0, WIDE + 1)
        return JointTotalLaw(ranks, at, totals, Fraction(epsilon), unit).log_probabilities(chosen)

    return law


@pytest.mark.parametrize("totals", [[4], [0, 2, 9]], ids=str)
@pytest.mark.parametrize("unit", [ADD, Unit(2, "replace")], ids=str)
@pytest.mark.parametrize("at", [QUARTILES, UNEVEN, UNEVEN[:2]], ids=str)
def test_the_law_on_every_small_data_set(at, unit, totals):
    edges = range(5)
    chosen = selections.tuples(edges, len(at))
    for cells in data_sets(4, 3):
        weights = enumerated(cells, at, 1.5 / unit.counts_l1, totals, chosen).sum(axis=1)
        found = np.exp(law_of(at, totals, "3", unit, edges, chosen)(cells))
        assert np.abs(found - weights / weights.sum()).max() < 1e-8


def test_draws_follow_the_law():
    for cells, at, totals in (
        ((2, 0, 0, 1, 3, 0, 1), QUARTILES, [3, 8, 13]),
        ((0, 0, 0), UNEVEN, [2]),
    ):
        chosen = selections.tuples(range(len(cells) + 1), 3)
        law = JointTotalLaw(Ranks.of_counts(np.array(cells)), at, totals, Fraction(2), ADD)
        counts = observed(law, chosen, 1_500)
        right = enumerated(cells, at, 1.0, totals, chosen).sum(axis=1)
        assert surprise(counts, np.log(right / right.sum())) < 6
        jointexp = selections.joint(cells, at, 2.0, float(joint_sensitivity(at, ADD)), chosen)
        assert not any(cells) or surprise(counts, jointexp) > 6


def test_the_clamp_by_its_own_law(monkeypatch):
    """With a clamp of 2, pairs come from both sources, and are refused by both."""
    monkeypatch.setattr(joint_total, "clamp_of", lambda number: Fraction(2))
    cells, chosen, totals = (2, 0, 1, 3, 0), selections.tuples(range(6), 3), [0, 3, 6, 9]
    law = JointTotalLaw(Ranks.of_counts(np.array(cells)), QUARTILES, totals, Fraction(4), ADD)
    free = enumerated(cells, QUARTILES, 2.0, totals, chosen)
    right = np.maximum(free, free.max() * math.exp(-2)).sum(axis=1)
    counts = observed(law, chosen, 2_500)
    assert surprise(counts, np.log(right / right.sum())) < 6
    assert surprise(counts, np.log(free.sum(axis=1) / free.sum())) > 10


@pytest.mark.parametrize("totals", [[3], [0, 2, 4]], ids=str)
@pytest.mark.parametrize(
    "unit", [Unit(r, relation) for r, relation in ((1, "add-remove"), (2, "replace"))], ids=str
)
@pytest.mark.parametrize("at", [QUARTILES, UNEVEN[1:]], ids=str)
def test_no_more_is_spent_than_claimed(at, unit, totals):
    tied = worst(
        law_of(at, totals, "1", unit, range(4), selections.tuples(range(4), len(at))),
        data_sets(3, 3),
        unit,
    )
    wide = worst(wide_law(at, totals, "1", unit), data_sets(4, 4), unit)
    assert max(tied, wide) <= 1 + 1e-9
    if unit.rows_per_person == 1:
        assert wide > 0.4


def test_broken_twins_are_caught():
    """Half the noise; a person of two rows; and the true number of rows in place of a noisy one."""
    small = list(data_sets(4, 4))
    assert worst(wide_law(QUARTILES, [3], "2", ADD), small, ADD) > 1.4
    assert worst(wide_law(QUARTILES, [3], "1", ADD), small, Unit(2)) > 1.2
    assert worst(wide_law(QUARTILES, [3], "1", ADD), small, Unit(neighbours="replace")) > 1.2
    # JointExp at the sensitivity r: one row more also moves the share of every gap.
    chosen = np.array(BETWEEN)[selections.tuples(range(len(BETWEEN)), 3)]

    def with_true_rows(cells):
        ranks = Ranks.of_cells(np.array(PLACES), np.array(cells), 0, WIDE + 1)
        epsilon = joint_sensitivity(QUARTILES, ADD)
        return JointLaw(ranks, QUARTILES, epsilon, ADD).log_probabilities(chosen)

    assert worst(with_true_rows, small, ADD) > 1.2


@pytest.mark.parametrize(("m", "beside", "expected"), [(3, 7, 2.0), (9, 7, 2.9), (20, 0, 4.4)])
def test_it_is_nearer_than_jointexp(m, beside, expected):
    """Where each cell holds one row, gaps have errors of scale 2 / epsilon."""
    at = [Fraction(i, m + 1) for i in range(1, m + 1)]
    rows = 2**12
    ranks = Ranks.of_counts(np.ones(rows, np.int64))
    totals = totals_around(rows + 5, beside, step_of_totals(m, Fraction(1), ADD))
    law = JointTotalLaw(ranks, at, totals, Fraction(1), ADD)
    targets = rows * np.array([float(q) for q in at])
    bits = PublicSeed("nearer")
    error = np.mean([np.abs(law.draw(bits) - targets).mean() for _ in range(150)])
    # JointExp: 2.4, 4.8 and 7.4. The bits are fixed.
    assert 0.75 * expected < error < 1.25 * expected


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), 1, 1000])
def test_large_atoms_and_no_rows_have_a_law(epsilon):
    rng = np.random.default_rng(3)
    for _ in range(20):
        cells = int(rng.integers(5, 100))
        counts = rng.integers(0, 3, cells) * (rng.random(cells) < rng.choice([0, 0.1, 1]))
        counts[rng.integers(cells)] += int(rng.choice([0, 30, 10**5]))
        for totals in ([40], totals_around(int(counts.sum()), 7, 10)):
            ranks = Ranks.of_counts(counts)
            drawn = JointTotalLaw(ranks, QUARTILES, totals, Fraction(epsilon), ADD).draw(current())
            assert 0 <= drawn[0] <= drawn[1] <= drawn[2] <= cells


def test_what_cannot_be_kept_is_refused():
    ranks = Ranks.of_counts(np.ones(3, int))
    with pytest.raises(UsageError, match="slack"):
        JointTotalLaw(ranks, QUARTILES, [3], Fraction(1, 10**11), ADD)
    assert total_slack(3, 100, ADD) > joint_slack(3, 100, ADD)
    assert totals_around(5, 1, 7) == [0, 5, 12]
