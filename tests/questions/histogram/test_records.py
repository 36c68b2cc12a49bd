"""Bins by records: what they spend, how even they are, and what is refused.

Broken versions, which spend more than they say, must be caught.
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

from sfumato.audit.runs import count, neighbours, renyi
from sfumato.audit.selections import bins_of, law_loss, law_of_bins
from sfumato.basics.numbers import EPSILON_UNITS, RHO_UNITS
from sfumato.basics.structs import from_bytes, from_plain, to_bytes
from sfumato.data import source
from sfumato.domain.cube import Cube
from sfumato.domain.domain import Categories, Domain, Interval, Keys
from sfumato.domain.lattice import EdgesAxis, GridAxis, Lattice
from sfumato.errors import UsageError
from sfumato.mechanisms.selection import rank_sensitivity
from sfumato.privacy.measures import ZCDP, ApproxDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.publishing.publisher import Publisher
from sfumato.questions.histogram import Histogram, HistogramRelease
from sfumato.questions.histogram.records import RecordBins
from sfumato.random import PublicSeed
from support.canary import overheard, sightings
from support.laws import Recorder, loss
from support.selections import single

DOMAIN = Domain(
    x=Interval(0, 6, step=1),
    fine=Interval(0, 1),
    day=Interval("2013-01-01", "2014-01-01"),
    kind=Categories(["a"]),
    shop=Keys(),
)
UNITS = [
    Unit(rows_per_person=r, neighbours=relation)
    for r in (1, 2)
    for relation in ("add-remove", "replace")
]
COSTS = [PureDP("1"), PureDP("0.3"), ApproxDP("0.7", "1e-6"), ZCDP("0.5"), ZCDP("1/7")]
PURE = PureDP("1")
ON_SIX = ((0.5,), (2.5,), (5.5,))


def laid(cost=PURE, unit=None, question=None):
    return bins_of(question or Histogram("x", records=10), DOMAIN, unit or Unit(), cost)


def answer(question, values, cost=PURE, unit=None, noise=None):
    lattice = question.needs(DOMAIN).lattice
    (axis,) = lattice.axes
    cube = Cube.of_cells(lattice, axis.locate(np.asarray(values, float)).reshape(-1, 1))
    return question.answer(cube, unit or Unit(), cost, noise or PublicSeed("records"))


# --- the question ------------------------------------------------------------


def test_it_travels():
    for question in (
        Histogram("fine", records=1000),
        Histogram("x", records=np.int64(10), rows=500),
    ):
        assert to_bytes(from_bytes(to_bytes(question), Histogram)) == to_bytes(question)
    assert from_plain({"axes": "x", "records": 10, "rows": 500}, Histogram) == Histogram(
        "x", records=10, rows=500
    )
    release = answer(Histogram("fine", records=100), np.linspace(0, 1, 1000))
    again = from_bytes(to_bytes(release), HistogramRelease)
    assert again == release
    assert again.rows == release.rows
    assert isinstance(again.lattice.axes[0], EdgesAxis)


@pytest.mark.parametrize(
    "wrong",
    [
        {"records": 0},
        {"records": -5},
        {"records": True},
        {"records": 2.5},
        {"records": "many"},
        {"records": 10**16},
        {"records": 10, "rows": 0},
        {"records": 10, "bins": 4},
        {"records": 10, "width": 1},
        {"rows": 10},
        {"axes": ["x", "fine"], "records": 10},
        {"axes": "kind", "records": 10},
        {"axes": "shop", "records": 10},
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_in_three_parts(wrong):
    with pytest.raises(UsageError) as refused:
        Histogram(**({"axes": "x"} | wrong)).needs(DOMAIN)
    assert all((refused.value.asked, refused.value.obstacle, refused.value.remedy))


def test_an_axis_of_one_step_and_a_cost_of_a_few_units_are_refused():
    with pytest.raises(UsageError, match="one step"):
        Histogram("y", records=10).needs(Domain(y=Interval(0, 1, step=1)))
    with pytest.raises(UsageError, match="levels"):
        Histogram("x", records=10).preview(DOMAIN, Unit(), PureDP("1e-8"))


# --- shares of the cost ------------------------------------------------------------


@pytest.mark.parametrize("stated", [None, 1000])
@pytest.mark.parametrize("cost", COSTS, ids=str)
def test_shares_add_up_to_the_cost_for_every_number_of_bins(cost, stated):
    """In integers, no path spends more, and no part uses more than its share."""
    for unit in UNITS:
        bins = laid(cost, unit, Histogram("fine", records=10, rows=stated))
        rows, cuts, counts = bins.units
        whole = RHO_UNITS if isinstance(cost, ZCDP) else EPSILON_UNITS
        assert rows + cuts + counts == math.floor(
            (cost.rho if isinstance(cost, ZCDP) else cost.epsilon) * whole
        )
        assert (rows == 0) == (stated is not None)
        for number in (2, 3, 4, 5, 100, 4096):
            shares = bins.shares(number)
            assert len(shares) == math.ceil(math.log2(number))
            used = [epsilon * (2 if unit.neighbours == "replace" else 1) for _, epsilon in shares]
            spent = sum(e**2 / 8 for e in used) if isinstance(cost, ZCDP) else sum(used)
            assert (
                Fraction(cuts, whole) * (1 - Fraction(1, 10**6)) <= spent <= Fraction(cuts, whole)
            )
            assert all(inner.neighbours == "add-remove" for inner, _ in shares)


@pytest.mark.parametrize("stated", [None, 1000])
@pytest.mark.parametrize("cost", COSTS, ids=str)
def test_noise_on_rows_and_counts_spends_their_shares(cost, stated, monkeypatch):
    monkeypatch.setattr(
        RecordBins,
        "cut",
        lambda self, held, bins, noise: np.linspace(0, self.axis.cells, bins + 1).astype(np.int64),
    )
    for unit in UNITS:
        bins = laid(cost, unit, Histogram("x", records=10, rows=stated))
        noise = Recorder()
        bins.answer(Cube(Lattice((bins.axis,)), np.full(bins.axis.cells, 30)), noise)
        whole = RHO_UNITS if isinstance(cost, ZCDP) else EPSILON_UNITS
        shares = [Fraction(part, whole) for part in (bins.units[0], bins.units[2]) if part]
        assert [loss(law, unit) for law, _ in noise.drawn] == shares
        assert noise.drawn[0][1] == 1 or stated is not None


def test_a_publisher_charges_the_cost_and_no_delta():
    with Publisher(
        source(np.linspace(0, 1, 500)[:, None], Domain(fine=Interval(0, 1))),
        budget=ApproxDP(1, "1e-6"),
    ) as publisher:
        release = publisher.release(Histogram("fine", records=50), epsilon="0.5", delta="1e-9")
        assert publisher.account.spent == (5 * 10**8, 0)
        assert release.guarantee.measure == PureDP("0.5")


# --- what is spent ------------------------------------------------------------


def cut_law(bins, cells, number):
    """The probability of every tuple of edges, by following every cut with the paper's weights."""
    shares = bins.shares(number)

    def node(lower, upper, parts, level):
        parts = min(parts, upper - lower)
        if parts == 1:
            return {(): 1.0}
        unit, epsilon = shares[level]
        below = parts // 2
        found = {}
        q = Fraction(below, parts)
        logs = single(
            cells[lower:upper],
            q,
            float(epsilon),
            float(rank_sensitivity(q, unit)),
            range(1, upper - lower),
        )
        for cut, p in zip(range(lower + 1, upper), np.exp(logs), strict=True):
            for left, p_left in node(lower, cut, below, level + 1).items():
                for right, p_right in node(cut, upper, parts - below, level + 1).items():
                    edges = (*left, cut, *right)
                    found[edges] = found.get(edges, 0) + p * p_left * p_right
        return found

    return node(0, len(cells), number, 0)


def counted(rows):
    return tuple(count(rows, Histogram("x", records=10).needs(DOMAIN).lattice).counts.tolist())


def in_bins(cells, edges):
    return np.add.reduceat(np.array(cells), [0, *edges])


def spent(bins, number, paid=None, others=2):
    """The largest loss over all small neighbours and all outcomes: noisy rows, edges, noisy counts.

    ``paid`` is what the cuts really use. None: what they say.
    """
    law = lru_cache(maxsize=None)(lambda cells: cut_law(paid or bins, cells, number))
    losses = [0.0]
    of_rows = float(bins.rows_law.scale)
    of_counts = float(bins.law.scale)
    for one, other in {(counted(a), counted(b)) for a, b in neighbours(ON_SIX, bins.unit, others)}:
        first = abs(sum(one) - sum(other)) / of_rows
        for edges, p in law(one).items():
            moved = np.abs(in_bins(one, edges) - in_bins(other, edges)).sum() / of_counts
            losses.append(first + math.log(p / law(other)[edges]) + moved)
    return max(losses)


@pytest.mark.parametrize("number", [2, 3, 4])
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_no_more_than_the_cost_is_spent(unit, number):
    loss = spent(laid(unit=unit), number, others=3 - unit.rows_per_person)
    assert loss <= 1 + 1e-9
    assert loss >= 0.55


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_no_more_than_rho_is_spent(unit):
    """Cuts are enumerated. The divergences of rows and counts are closed forms."""
    bins = laid(ZCDP("0.5"), unit)
    number = 3
    law = lru_cache(maxsize=None)(lambda cells: cut_law(bins, cells, number))
    of_rows = bins.rows_law
    of_counts = bins.law
    worst = 0.0
    for one, other in {
        (counted(a), counted(b))
        for a, b in neighbours(ON_SIX, unit, others=2 - unit.rows_per_person)
    }:
        for alpha in (1.2, 8.0):
            terms = []
            for edges, p in law(one).items():
                counts = sum(
                    renyi(of_counts, int(s), alpha)
                    for s in in_bins(one, edges) - in_bins(other, edges)
                )
                terms.append(
                    alpha * math.log(p)
                    + (1 - alpha) * math.log(law(other)[edges])
                    + (alpha - 1) * counts
                )
            first = renyi(of_rows, sum(one) - sum(other), alpha)
            worst = max(worst, (first + np.logaddexp.reduce(terms) / (alpha - 1)) / alpha)
    assert 0.25 <= worst <= 0.5 * (1 + 1e-9)


class CutsUnpaid(RecordBins):
    """Broken: cuts are chosen at the whole cost, beside counts that have their share of it."""

    @property
    def units(self):
        rows, _, counts = super().units
        return rows, EPSILON_UNITS, counts


class OneRowOfMany(RecordBins):
    """Broken: selections for one row, whatever the number of rows per person."""

    def shares(self, bins):
        return [(Unit(), epsilon) for _, epsilon in super().shares(bins)]


class LevelsUnshared(RecordBins):
    """Broken: each level of cuts spends what all of them may."""

    def shares(self, bins):
        return super().shares(2) * (bins - 1).bit_length()


class TrueQuantiles(RecordBins):
    """Broken: edges at the true quantiles."""

    def log_probability(self, held, edges):
        rows = np.repeat(*held)
        number = len(edges) - 1
        true = [
            int(rows[len(rows) * i // number]) + 1 if len(rows) else i for i in range(1, number)
        ]
        return 0.0 if edges[1:-1] == true else -1e9


def broken(kind, unit=None):
    sound = laid(unit=unit)
    return kind(sound.axis, sound.records, sound.stated, sound.unit, sound.cost)


@pytest.mark.parametrize(
    ("kind", "unit"),
    [(CutsUnpaid, Unit()), (OneRowOfMany, UNITS[2]), (LevelsUnshared, Unit())],
    ids=str,
)
def test_broken_relations_are_caught(kind, unit):
    sound = laid(unit=unit)
    assert spent(sound, 3) <= 1
    assert spent(sound, 3, paid=broken(kind, unit)) > 1.03


def test_edges_at_true_quantiles_are_caught():
    pairs = neighbours(ON_SIX, Unit(), others=2)
    assert law_loss(law_of_bins(laid(), tuple(range(1, 6)), (20, 30)), pairs).loss <= 1
    assert (
        law_loss(law_of_bins(broken(TrueQuantiles), tuple(range(1, 6)), (20, 30)), pairs).loss > 1e6
    )


# --- the draw ------------------------------------------------------------


def surprise(drawn, law):
    """The p-value of a chi-squared test, rare outcomes taken together."""
    from scipy.stats import chi2

    expected = np.array(list(law.values())) * len(drawn)
    seen = np.bincount(drawn, minlength=len(law))
    rare = expected < 5
    expected, seen = (np.append(x[~rare], x[rare].sum() + 1e-9) for x in (expected, seen))
    return chi2.sf(((seen - expected) ** 2 / expected).sum(), len(expected) - 1)


@pytest.mark.parametrize(
    ("number", "unit"), [(3, Unit()), (4, Unit(neighbours="replace"))], ids=str
)
def test_edges_are_drawn_by_their_law(number, unit):
    bins = laid(PureDP("6"), unit)
    cells = (3, 0, 1, 0, 0, 4)
    noise = PublicSeed("cuts")
    occupied = np.flatnonzero(cells)
    rows = np.array(cells)[occupied]
    law = cut_law(bins, cells, number)
    assert math.fsum(law.values()) == pytest.approx(1)
    for edges, p in law.items():
        if number == 3 and len(edges) == 2:
            log_probability = bins.log_probability((occupied, rows), [0, *edges, 6])
            assert log_probability == pytest.approx(math.log(p), abs=1e-9)
    places = {edges: i for i, edges in enumerate(law)}
    drawn = [
        places[tuple(bins.cut((occupied, rows), number, noise)[1:-1].tolist())] for _ in range(1200)
    ]
    assert surprise(drawn, law) > 1e-9
    unshared = LevelsUnshared(bins.axis, bins.records, bins.stated, bins.unit, bins.cost)
    assert surprise(drawn, cut_law(unshared, cells, number)) < 1e-9


def test_bins_hold_about_equally_many_rows():
    values = np.random.default_rng(5).beta(2, 5, 100_000)
    for records in (20_000, 2000):
        question = Histogram("fine", records=records)
        bins = bins_of(question, DOMAIN, Unit(), PURE)
        deviations = []
        for seed in range(3):
            release = answer(question, values, noise=PublicSeed(f"even {seed}"))
            edges = release.lattice.axes[0].edges()
            assert len(release.counts) == bins.bins(release.rows)
            true = np.histogram(values, edges)[0]
            deviations += np.abs(true - 100_000 / len(true)).tolist()
            assert (
                np.abs(release.values - true) <= release.accuracy("0.999999", simultaneous=True)
            ).all()
        most, typically = bins.share_errors(len(true))
        assert max(deviations) <= most
        assert np.mean(np.array(deviations) <= typically) >= 0.9
        assert 2 * np.quantile(deviations, 0.95) >= typically / 2


def test_few_rows_equal_rows_and_narrow_axes():
    for question, values in [
        (Histogram("fine", records=1), []),
        (Histogram("fine", records=10), [0.5] * 1000),
        (Histogram("x", records=1), [0, 3, 3, 3, 5] * 100),
        (Histogram("day", records=2), range(15706, 16070)),
        (Histogram("fine", records=5, rows=50), [1.0]),
    ]:
        release = answer(question, values)
        edges = release.lattice.axes[0].edges()
        assert (np.diff(edges) > 0).all()
        assert (edges[0], edges[-1]) == DOMAIN[question.axes[0]].numbers
        assert (release.rows is None) == (question.rows is not None)
        assert len(release.counts) >= 2
    assert Histogram("fine", records=5, rows=50).preview(DOMAIN, Unit(), PURE).cells == 10


def test_bins_by_records_know_the_step() -> None:
    question = Histogram("x", records=200, rows=2_000)
    fine = question.needs(Domain(x=Interval(0, 121, step=1))).lattice
    axis = fine.axes[0]
    assert isinstance(axis, GridAxis)
    draw = np.random.default_rng(11)
    ages = np.clip(draw.gamma(4, 10, 2_000).astype(int), 0, 120).astype(float)
    cube = Cube.of_cells(fine, axis.locate(ages)[:, None])
    release = question.answer(cube, Unit(), PureDP("50"), PublicSeed("r"))
    cut = release.lattice.axes[0]
    assert isinstance(cut, EdgesAxis)
    assert cut.extremes()[1].tolist() == [edge - 1 for edge in cut.bounds[1:]]


def test_the_preview_says_what_is_paid_for_what():
    said = str(Histogram("fine", records=100).preview(DOMAIN, Unit(), PURE, rows=10_000))
    assert "edges cost epsilon = 0.45, their counts epsilon = 0.5" in said
    assert "noisy number of rows, at epsilon = 0.05" in said
    assert "each of 100 counts" in said
    unknown = Histogram("fine", records=100).preview(DOMAIN, Unit(), PURE)
    assert unknown.cells is None
    assert unknown.accuracy() == 6
    release = answer(Histogram("fine", records=100), np.linspace(0, 1, 10_000))
    assert "cut" in release.guarantee.mechanism
    assert release.guarantee.proof == Histogram.records_proof


def test_nothing_true_is_shown():
    true = 8_675_309
    question = Histogram("x", records=10**6)
    cube = Cube(question.needs(DOMAIN).lattice, np.array([true, 0, 0, 0, 0, 0]))
    release = question.answer(cube, Unit(), PureDP("0.001"), PublicSeed("canary"))
    assert not sightings(
        true,
        release,
        release.guarantee,
        release.values,
        release.to_frame().to_pylist(),
        release.rows,
        cube,
        question,
    )
    assert not overheard(
        true, lambda: question.answer(cube, Unit(), PureDP("1e-8"), PublicSeed("canary"))
    )
