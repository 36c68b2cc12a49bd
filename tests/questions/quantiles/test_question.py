"""The question from table to answer: values in order, ranks as good as stated, and refusals."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.audit.runs import count
from sfumato.privacy.allocation import share, units_of
from sfumato.questions.quantiles.ranks import Paid
from sfumato.random import PublicSeed, override
from sfumato.random.bits import current
from support.canary import overheard, sightings
from support.quantile_data import DOMAIN, METHODS


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_values_are_near_and_in_order(table, method, neighbours):
    source = sf.source(table, DOMAIN, name="t", neighbours=neighbours)
    with sf.Publisher(source, budget="100") as publisher:
        release = publisher.release(
            sf.Quantiles("x", at=[0.1, 0.5, 0.9], method=method), epsilon="2"
        )
    true = np.sort(table["x"].to_numpy())
    assert release.values.shape == (3,)
    assert (np.diff(release.values) >= 0).all()
    errors = np.abs(np.searchsorted(true, release.values) - 6_000 * np.array([0.1, 0.5, 0.9]))
    # False alarms have probability 1e-9, because the tails are exponential.
    assert errors.max() <= 1.5 * release.accuracy(0.999999, True).max()
    assert np.allclose(
        release.values, release.lattice.axes[0].points(release.edges), rtol=0, atol=0
    )


def test_the_cost_is_shared_between_axes_and_not_between_labels():
    question = sf.Quantiles(["x", "y"])
    lattice = question.needs(DOMAIN).lattice
    methods = question.axis_methods(lattice, sf.Unit(), sf.PureDP("1"))
    # A fifth of each axis' part pays for its ranks.
    assert [method.cost.epsilon for method in methods.values()] == [Fraction(2, 5)] * 2
    assert [method.rank_cost.epsilon for method in methods.values()] == [Fraction(1, 10)] * 2

    by_kind = sf.Quantiles("x", by="kind", at=[0.5])
    lattice = by_kind.needs(DOMAIN).lattice
    (method,) = by_kind.axis_methods(lattice, sf.Unit(3), sf.PureDP("1")).values()
    assert method.shares == [(sf.Unit(3), Fraction(4, 5))]
    assert method.rank_cost == sf.PureDP("0.2")
    # Under replace a person may leave one label and enter another: each gets half of the rest.
    replace = sf.Unit(neighbours="replace")
    (method,) = by_kind.axis_methods(lattice, replace, sf.PureDP("1")).values()
    assert method.shares == [(sf.Unit(), Fraction(2, 5))]


@pytest.mark.parametrize("paid", Paid)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("cost", [sf.PureDP("0.100000001"), sf.ZCDP("0.3000000000007")], ids=str)
def test_values_and_ranks_spend_the_cost_in_whole_units(cost, method, paid):
    """Selections and counts of gaps add up to the cost to the last unit; trees pay for values."""
    question = sf.Quantiles(["x", "y"], by="kind", method=method)
    lattice = question.needs(DOMAIN).lattice
    methods = question.axis_methods(lattice, sf.Unit(), cost, paid).values()
    spent = sum(units_of(part) for each in methods for part in (each.cost, each.rank_cost) if part)
    rows = units_of(share(cost, [Fraction(1, 5), Fraction(4, 5)])[0])
    assert spent == units_of(cost) - (rows if paid is Paid.ROWS else 0)
    has_ranks = paid is Paid.RANKS and method != "tree"
    assert [each.rank_cost is not None for each in methods] == [has_ranks] * 2


def test_costs_in_rho(table):
    source = sf.source(table, DOMAIN, name="t")
    with sf.Publisher(source, budget=sf.ZCDP("2")) as publisher:
        for method in METHODS:
            release = publisher.release(sf.Quantiles("x", method=method), rho="0.5")
            assert str(release.guarantee.measure) == "rho = 0.5"
        chosen = publisher.release(sf.Quantiles("x"), rho="0.1").guarantee.mechanism
        assert chosen.endswith("; discrete Gaussian noise of sigma 5 on the rows between values")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rows", [0, 1, 50])
def test_empty_tables_and_ties_are_answered(method, rows):
    question = sf.Quantiles("y", at=[0.25, 0.5, 0.75], method=method)
    cube = count(((7.0,),) * rows, question.needs(sf.Domain(y=DOMAIN["y"])).lattice)
    release = question.answer(cube, sf.Unit(), sf.PureDP("1"), current())
    assert ((release.values >= 0) & (release.values <= 100)).all()


def test_quantiles_are_read_as_they_are_meant():
    question = sf.Quantiles("x", at=np.linspace(0, 1, 12)[1:-1])
    assert question.at == tuple(Fraction(i, 11) for i in range(1, 11))
    assert sf.Quantiles("x", at=0.5).at == (Fraction(1, 2),)
    assert sf.Quantiles("x", at=["1/3"]).at == (Fraction(1, 3),)
    assert sf.Quantiles("x", at=[0.123456789]).at == (Fraction(123457, 10**6),)


@pytest.mark.parametrize(
    "make",
    [
        lambda: sf.Quantiles("x", at=[]),
        lambda: sf.Quantiles("x", at=[0, 0.5]),
        lambda: sf.Quantiles("x", at=[0.5, 1]),
        lambda: sf.Quantiles("x", at=[0.5, 0.5]),
        lambda: sf.Quantiles("x", at=[0.5, 0.25]),
        lambda: sf.Quantiles("x", at=[float("nan")]),
        lambda: sf.Quantiles("x", at=["half"]),
        lambda: sf.Quantiles("x", at=[0.5, 0.5000000001]),
        lambda: sf.Quantiles("x", method="best"),
        lambda: sf.Quantiles("x", by=3),
        lambda: sf.Quantiles(3),
    ],
)
def test_what_is_no_question_is_refused(make):
    with pytest.raises(sf.UsageError) as refusal:
        make()
    assert len(refusal.value.args) == 3


@pytest.mark.parametrize(
    ("question", "epsilon"),
    [
        (sf.Quantiles("kind"), "1"),
        (sf.Quantiles("x", by="y"), "1"),
        (sf.Quantiles("x", by="nothing"), "1"),
        (sf.Quantiles("y", at=[i / 202 for i in range(1, 202)]), "1"),
        (sf.Quantiles("x", at=[i / 100 for i in range(1, 100)], method="joint"), "1"),
        (sf.Quantiles("x"), "0.000000001"),
    ],
    ids=lambda q: str(q)[:60],
)
def test_what_cannot_be_answered_is_refused_before_the_charge(publisher, question, epsilon):
    with pytest.raises(sf.UsageError):
        publisher.release(question, epsilon=epsilon)
    assert publisher.account.spent == (0, 0)


def test_nothing_unpaid_is_shown():
    canary = 918_273
    values = np.full((canary, 1), 0.25)
    with sf.Publisher(
        sf.source(values, sf.Domain(x=sf.Interval(0, 1)), name="t"), budget="9"
    ) as publisher:
        # The noise is so wide that noisy numbers of rows are other numbers.
        for method in METHODS:
            question = sf.Quantiles("x", method=method)
            assert not overheard(
                canary, lambda question=question: publisher.release(question, epsilon="1e-6")
            )
        with override(PublicSeed(1)):
            release = publisher.release(sf.Quantiles("x"), epsilon="1e-6")
        assert not sightings(canary, release)


def test_the_command(table, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    import pyarrow.parquet as pq

    from sfumato.cli import run

    pq.write_table(table, tmp_path / "t.parquet")
    words = [
        "quantiles",
        str(tmp_path / "t.parquet"),
        "--axis",
        "x=-5..5",
        "--axis",
        "kind=a,b,c",
        "--by",
        "kind",
        "--at",
        "0.25,0.5",
    ]
    words += [
        "--epsilon",
        "1",
        "--budget",
        "2",
        "--ledger",
        str(tmp_path / "l.db"),
        "--plot",
        str(tmp_path / "q.png"),
    ]
    assert run(words) == 0
    said = capsys.readouterr()
    assert (
        said.out.splitlines()[1]
        == "kind\tquantile\tvalue\tlow\thigh\trank\trank_error\trows\tknown\tcell_low\tcell_high"
    )
    assert len(said.out.splitlines()) == 2 + 6
    assert "Of the rows counted, each rank is within" in said.err
    assert (tmp_path / "q.png").exists()
