"""Several quantiles at once: JointExp against enumeration, through all of its paths, and against
what is known to be broken.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import Infeasible, UsageError
from sfumato.mechanisms import jointexp
from sfumato.mechanisms import jointexp as scans
from sfumato.mechanisms.jointexp import JointLaw, joint_slack, tuples
from sfumato.mechanisms.selection import Ranks, joint_sensitivity, nested
from sfumato.privacy.unit import Unit
from sfumato.random.bits import current
from support import selections
from support.selections import BETWEEN, PLACES, WIDE, data_sets, worst

ADD, SWAP = Unit(), Unit(neighbours="replace")
QUARTILES = [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]
UNEVEN = [Fraction(1, 5), Fraction(1, 4), Fraction(9, 10)]


def law_of(at, epsilon, unit, edges, chosen, distinct=False):
    def law(cells):
        made = JointLaw(
            Ranks.of_counts(np.array(cells), edges.start, edges.stop),
            at,
            Fraction(epsilon),
            unit,
            distinct=distinct,
        )
        return made.log_probabilities(chosen)

    return law


@pytest.mark.parametrize("unit", [ADD, Unit(2, "replace")], ids=str)
@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("at", [QUARTILES, UNEVEN, UNEVEN[:2]], ids=str)
def test_the_law_on_every_small_data_set(at, distinct, unit):
    edges = range(6)
    chosen = selections.tuples(edges, len(at), distinct)
    for cells in data_sets(5, 6 if unit == ADD and not distinct else 4):
        expected = selections.joint(cells, at, 3.0, float(joint_sensitivity(at, unit)), chosen)
        assert (
            np.abs(
                np.exp(law_of(at, "3", unit, edges, chosen, distinct)(cells)) - np.exp(expected)
            ).max()
            < 1e-9
        )


@pytest.mark.deep
def test_the_law_on_every_data_set_of_six_rows_in_eight_cells(evidence):
    """n <= 6, a lattice of 8 cells, ties and all: the largest error of a probability, and of its
    logarithm.
    """
    figures = {}
    for at, distinct in ((QUARTILES, False), (UNEVEN, True)):
        chosen, errors, logs, number = selections.tuples(range(9), 3, distinct), 0.0, 0.0, 0
        for cells in data_sets(8, 6):
            expected = selections.joint(cells, at, 2.0, float(joint_sensitivity(at, ADD)), chosen)
            found = law_of(at, "2", ADD, range(9), chosen, distinct)(cells)
            errors = max(errors, float(np.abs(np.exp(found) - np.exp(expected)).max()))
            logs = max(logs, float(np.abs(found - expected).max()))
            number += 1
        figures[f"{'distinct ' if distinct else ''}{[str(q) for q in at]}"] = {
            "data sets": number,
            "error": errors,
            "of ln P": logs,
        }
        assert errors < 1e-9
    evidence("jointexp-law", figures)


@pytest.mark.parametrize(
    ("unit", "log_total", "expected"),
    [
        (
            SWAP,
            2.665319119899,
            {(1, 2, 3): 0.047819626865, (1, 3, 4): 0.047819626865, (2, 2, 2): 0.003322364373},
        ),
        (ADD, 2.384892664627, {(1, 2, 3): 0.055860785053}),
    ],
)
def test_the_continuous_form_of_the_source(unit, log_total, expected):
    """Data 1..5 in [0, 6], quartiles: six intervals, here of 2^24 edges each; k quantiles in one
    make w^k / k! of its volume.
    """
    wide = 2**24
    ranks = Ranks(np.arange(6), wide * np.arange(7), 5)
    law = JointLaw(ranks, QUARTILES, Fraction(1), unit)
    for intervals, p in expected.items():
        ways = math.prod(math.comb(wide + k - 1, k) for k in np.bincount(intervals) if k)
        found = math.exp(law.log_probabilities(wide * np.array([intervals]))[0]) * ways
        assert found == pytest.approx(p, rel=2e-6)
        if intervals == (1, 2, 3):
            utility = selections.utilities((1,) * 5, QUARTILES, np.array([intervals]))[0]
            rate = 1 / (2 * float(joint_sensitivity(QUARTILES, unit)))
            assert rate * utility - math.log(found) == pytest.approx(log_total, abs=2e-6)


def wide_law(at, epsilon, unit):
    """ln P of one tuple of each pattern of groups, on an axis of 2^20 cells."""
    chosen = selections.tuples(range(len(BETWEEN)), len(at))

    def law(cells):
        ranks = Ranks.of_cells(np.array(PLACES), np.array(cells), 0, WIDE + 1)
        return JointLaw(ranks, at, Fraction(epsilon), unit).log_probabilities(
            np.array(BETWEEN)[chosen]
        )

    return law


@pytest.mark.parametrize(
    "unit", [Unit(r, relation) for r in (1, 2) for relation in ("add-remove", "replace")], ids=str
)
@pytest.mark.parametrize("at", [QUARTILES, UNEVEN[1:]], ids=str)
def test_no_more_is_spent_than_claimed(at, unit):
    tied = worst(
        law_of(at, "1", unit, range(4), selections.tuples(range(4), len(at))), data_sets(3, 3), unit
    )
    wide = worst(wide_law(at, "1", unit), data_sets(4, 4), unit)
    assert max(tied, wide) <= 1 + 1e-9
    if unit.rows_per_person == 1:
        assert wide > (0.8 if unit.neighbours == "add-remove" else 0.9)


def test_broken_twins_are_caught():
    small = list(data_sets(4, 4))
    assert worst(wide_law(QUARTILES, "2", ADD), small, ADD) > 1.6
    assert (
        worst(wide_law(QUARTILES, "1", ADD), small, SWAP) > 1.2
    )  # the add-remove sensitivity under replace
    assert worst(wide_law(QUARTILES, "1", ADD), small, Unit(rows_per_person=2)) > 1.2


def test_the_replace_sensitivity_inside_nodes_spends_a_quarter_too_much():
    """A person leaves one node and enters another: what leaving costs in the one and entering in
    the other add up.
    """
    small = list(data_sets(4, 4))
    assert 2 * worst(wide_law(QUARTILES, "1", SWAP), small, ADD) == pytest.approx(1.25, abs=1e-3)
    unit, share = nested(SWAP, Fraction(1))
    assert 0.8 < 2 * worst(wide_law(QUARTILES, share, unit), small, ADD) <= 1 + 1e-9


def observed(law, chosen, draws):
    names = {tuple(row): i for i, row in enumerate(chosen.tolist())}
    return np.bincount(
        [names[tuple(law.draw(current()).tolist())] for _ in range(draws)], minlength=len(chosen)
    )


def surprise(counts, log_p):
    """A chi-square over outcomes that expect five draws or more and over all others together, in
    standard deviations.
    """
    expected = counts.sum() * np.exp(log_p)
    common = expected >= 5
    found, right = (np.append(x[common], x[~common].sum() + 1e-9) for x in (counts, expected))
    statistic = ((found - right) ** 2 / right).sum()
    return (statistic - len(right)) / math.sqrt(2 * len(right))


@pytest.mark.parametrize(
    ("cells", "at", "epsilon", "distinct"),
    [
        ((2, 0, 0, 1, 3, 0, 1), QUARTILES, 2, False),
        ((2, 0, 0, 1, 3, 0, 1), QUARTILES, 2, True),
        ((0, 0, 0), UNEVEN, 1, False),
        ((0, 6, 0, 0, 0), UNEVEN, 1, False),
    ],
)
def test_draws_follow_the_law(cells, at, epsilon, distinct):
    edges = range(len(cells) + 1)
    chosen = selections.tuples(edges, len(at), distinct)
    law = JointLaw(Ranks.of_counts(np.array(cells)), at, Fraction(epsilon), ADD, distinct=distinct)
    counts = observed(law, chosen, 1_500)
    right = selections.joint(cells, at, float(epsilon), float(joint_sensitivity(at, ADD)), chosen)
    assert surprise(counts, right) < 6


def test_multisets_drawn_as_independent_places_would_be_noticed():
    """One group of four edges, no rows: multisets are even; three independent places, sorted, are
    not.
    """
    chosen = selections.tuples(range(4), 3)
    rng = np.random.default_rng(5)
    names = {tuple(row): i for i, row in enumerate(chosen.tolist())}
    mixed = np.bincount(
        [names[tuple(sorted(row))] for row in rng.integers(0, 4, (3_000, 3)).tolist()],
        minlength=len(chosen),
    )
    even = np.full(len(chosen), -math.log(len(chosen)))
    assert surprise(mixed, even) > 60
    assert (
        surprise(
            observed(
                JointLaw(Ranks.of_counts(np.zeros(3, int)), QUARTILES, Fraction(1), ADD),
                chosen,
                3_000,
            ),
            even,
        )
        < 6
    )


class ClampOfThree(JointLaw):
    def _clamp_of(self, number):
        return Fraction(3)


@pytest.mark.parametrize("distinct", [False, True])
def test_the_clamp_by_its_own_law(distinct):
    """With a clamp of 3 instead of 60 both kinds of draws occur, and both refusals."""
    cells, chosen = (2, 0, 1, 3, 0, 1), selections.tuples(range(1, 7), 3, distinct)
    ranks = Ranks.of_counts(np.array(cells), 1)
    law = ClampOfThree(ranks, QUARTILES, Fraction(4), ADD, distinct=distinct)
    free = selections.joint(cells, QUARTILES, 4.0, float(joint_sensitivity(QUARTILES, ADD)), chosen)
    right = selections.normalised(np.maximum(free - free.max(), -3.0))
    counts = observed(law, chosen, 2_500)
    assert surprise(counts, right) < 6
    assert surprise(counts, free) > 10


def big(seed, atoms):
    """Enough rows for blocks, windows and overlaps: 300 cells, some of them heavy."""
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, 3, 300)
    cells[rng.integers(0, 300, atoms)] += rng.integers(1, 400, atoms)
    return cells


def plainly(cells, at, rate):
    """ln Z over groups of single edges by the textbook recursion in logarithms, pair by pair."""
    below, n = np.concatenate([[0], np.cumsum(cells)]), int(cells.sum())
    ends = [0.0, *map(float, at), 1.0]
    alpha = -rate * np.abs(below - n * ends[1])
    for j in range(1, len(at)):
        gaps = below[:, None] - below[None, :]
        step = np.where(
            np.tri(len(below), dtype=bool),
            -rate * np.abs(gaps - n * (ends[j + 1] - ends[j])),
            -np.inf,
        )
        alpha = np.logaddexp.reduce(alpha[None, :] + step, axis=1)
    return float(np.logaddexp.reduce(alpha - rate * np.abs(n - below - n * (1 - ends[-2]))))


@pytest.mark.parametrize("atoms", [0, 2, 20])
@pytest.mark.parametrize("epsilon", ["0.05", "1", "40"])
def test_the_total_against_the_textbook_recursion(monkeypatch, atoms, epsilon):
    """With blocks of 16 terms, so that carries and checkpoints occur."""
    monkeypatch.setattr(scans, "BLOCK", 16)
    at = [Fraction(i, 12) for i in (1, 2, 3, 6, 9, 11)]
    for seed in range(4):
        cells = big(seed, atoms)
        law = JointLaw(Ranks.of_counts(cells), at, Fraction(epsilon), ADD)
        one = np.sort(np.random.default_rng(seed).integers(0, 301, (1, 6)))
        one = np.concatenate([one, law.draw(current())[None]])
        utility = selections.utilities(tuple(cells), at, one)
        expected = float(law._rate * law._whole) * utility - plainly(
            cells, at, law._rate * law._whole
        )
        found = law.log_probabilities(one)
        assert found[1] == pytest.approx(expected[1], abs=1e-9)
        assert found[0] == pytest.approx(
            max(expected[0], found[0]), abs=1e-9
        )  # the first may lie below the clamp


def test_ten_quantiles_in_one_atom():
    """All rows in one cell: the best tuples straddle it; distinct ones cannot repeat an edge."""
    cells = np.zeros(40, np.int64)
    cells[20] = 10_000
    at = [Fraction(i, 11) for i in range(1, 11)]
    for distinct in (False, True):
        drawn = JointLaw(Ranks.of_counts(cells), at, Fraction(1), ADD, distinct=distinct).draw(
            current()
        )
        assert (np.diff(drawn) >= distinct).all()
        assert 0 <= drawn[0] <= drawn[-1] <= 40


def test_slack_is_small_and_charged():
    assert float(joint_slack(9, 2**20, ADD)) < 5e-9
    assert joint_slack(9, 2**20, Unit(7)) == 7 * joint_slack(
        9, 2**20, ADD
    )  # a person's rows may lie in seven nodes
    with pytest.raises(UsageError, match="slack"):
        JointLaw(Ranks.of_counts(np.ones(3, int)), QUARTILES, Fraction(1, 10**11), ADD)
    law = JointLaw(Ranks.of_counts(np.ones(3, int)), QUARTILES, Fraction(1), ADD)
    charged = 1 - joint_slack(3, 4, ADD)
    assert (
        charged * (1 - 2**-40)
        < law._exact_rate * 4 * 2 * joint_sensitivity(QUARTILES, ADD)
        <= charged
    )


@pytest.mark.parametrize(("quantiles", "edges", "rows"), [(1, 2, 1), (9, 2**20, 7), (3, 2**14, 2)])
def test_the_slack_is_that_of_the_proof(quantiles, edges, rows):
    """The errors of the top of the module: of a factor, of the terms of a sum, of the scans."""
    factor = Fraction(1, 2**41)
    stage = (32 + Fraction(edges, 2**14)) * factor + Fraction(1, 2**38)
    # Of each stage twice, for a sum and for its denominator, with two stages more for both ends.
    of_tuple = 2 * (quantiles + 2) * stage
    # ln P of either table errs by it, and the range of the loss is twice the loss.
    assert joint_slack(quantiles, edges, Unit(rows)) == 4 * of_tuple * rows


@pytest.mark.parametrize("number", [1, 2, 35, 10**6, 10**200])
def test_the_clamp_is_far_beyond_the_number_of_tuples(number):
    """So a draw takes an even tuple with a probability below e^-48."""
    assert math.log(number) + 48 <= jointexp.clamp_of(number) <= math.log(number) + 49


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(10**20, 7), Fraction(2, 3**60)])
def test_a_rate_is_rounded_down_to_a_double(rate):
    found = jointexp.rounded_rate(rate)
    assert Fraction(float(found)) == found
    assert rate * (1 - Fraction(1, 2**50)) < found < rate


def test_what_is_too_much_at_once_is_refused():
    with pytest.raises(Infeasible, match="tuples"):
        tuples(200, 2**20)
    with pytest.raises(Infeasible, match="distinct"):
        tuples(5, 4, True)
    assert tuples(3, 5) == 35
    assert tuples(3, 5, True) == 10
    assert jointexp.LARGEST_CLAMP + 50 <= jointexp.LARGEST_EXPONENT


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("epsilon", [1, 10, 100, 1000])
def test_large_atoms_and_empty_cells_have_a_law(epsilon):
    """Whether a run fails would tell one row's presence, so none may: beginnings that cannot be
    have no weight, and set no scale.
    """
    rng = np.random.default_rng(epsilon)
    for _ in range(60):
        cells = int(rng.integers(5, 200))
        parts = min(int(rng.choice([3, 7, 10, 16])), cells)
        heavy = int(rng.choice([1, 30, 1000, 10**5, 10**9]))
        counts = rng.integers(0, 3, cells) * (
            rng.random(cells) < rng.choice([0.05, 0.4, 1])
        ) * heavy + rng.integers(0, 2, cells)
        at = [Fraction(i, parts) for i in range(1, parts)]
        law = JointLaw(
            Ranks.of_counts(counts, 1, cells), at, Fraction(epsilon), Unit(), distinct=True
        )
        chosen = law.draw(current())
        assert (np.diff(chosen) > 0).all()
        assert np.isfinite(law.log_probabilities(np.array([chosen]))).all()
    outcomes = np.array(list(itertools.combinations(range(1, 9), 4)))
    law = JointLaw(
        Ranks.of_counts(np.array([0, 0, 0, 0, 10**6, 0, 0, 3, 0]), 1, 9),
        [Fraction(i, 5) for i in range(1, 5)],
        Fraction(epsilon),
        Unit(),
        distinct=True,
    )
    assert np.exp(law.log_probabilities(outcomes)).sum() == pytest.approx(1, abs=1e-12)
