"""Answers that were paid for separately become one family, or are refused with the difference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.questions.tables.residuals import Family, Measured

RNG = np.random.default_rng(0)
ROWS = 400
TABLE = pa.table(
    {
        "ward": pa.array(RNG.choice(["a", "b", "c"], ROWS)),
        "sex": pa.array(RNG.choice(["f", "m"], ROWS)),
        "age": pa.array(RNG.uniform(0, 90, ROWS)),
        "who": pa.array([f"p{row // 2}" for row in range(ROWS)]),
    }
)
WARD = sf.Categories(["a", "b", "c"], other="else", missing="not known")
SEX = sf.Categories(["f", "m"], other="else", missing="not known")
DOMAIN = sf.Domain(ward=WARD, sex=SEX, age=sf.Interval(0, 90, missing=True))
CROSSED = sf.Histogram(["sex", "ward"])
WARDS = sf.Histogram("ward")
AGES = sf.Histogram(["age", "ward"], bins=3)


def publisher(
    domain: sf.Domain = DOMAIN, name: str = "visits", version: str | None = "1", **unit: object
) -> sf.Publisher:
    source = sf.source(TABLE, domain, name=name, version=version, **unit)
    return sf.Publisher(source, budget=sf.ZCDP("100"))


def answers(*questions: sf.Question, rho: str = "0.5", **source: object) -> list[sf.Release]:
    with publisher(**source) as paid:
        return [paid.release(question, rho=rho) for question in questions]


def test_tables_add_up_and_have_the_variances_of_least_squares() -> None:
    crossed, wards, ages = answers(CROSSED, WARDS, AGES)
    family = sf.reconcile([crossed, wards, ages])
    assert family.tables == (("sex", "ward"), ("ward",), ("age", "ward"))
    assert family.lattice.names == ("sex", "ward", "age")
    totals = [family[table].values.sum() for table in ("ward", ["sex", "ward"], ["age", "ward"])]
    np.testing.assert_allclose(totals, totals[0], atol=1e-9)
    np.testing.assert_allclose(
        family["sex", "ward"].values.sum(axis=0), family["ward"].values, atol=1e-9
    )
    variance = wards.law.variance
    expected = Family(
        family.chains.levels,
        tuple(Measured(margin, variance) for margin in ((1, 1, 0), (0, 1, 0), (0, 1, 1))),
    )
    assert family._errors.family.variance_of((0, 1, 0)) == expected.variance_of((0, 1, 0))
    assert (family["ward"].accuracy() <= wards.accuracy()).all()


def test_three_axes_have_the_variances_that_least_squares_has() -> None:
    """The figures are those of dense generalised least squares, at 1000 / 3 times the noise."""
    axes = {"a": 3, "b": 4, "c": 5}
    domain = sf.Domain(
        {
            name: sf.Categories(list("klm")[: size - 2], other="else", missing="not known")
            for name, size in axes.items()
        }
    )
    rows = pa.table({name: ["k", "k"] for name in axes})
    paid = sf.Publisher(sf.source(rows, domain, name="two", version="1"), budget=sf.ZCDP("1"))
    # Noise of rho has the variance 1 / (2 rho).
    costs = {"ab": "3/4000", "ac": "1/2000", "b": "3/2000", "bc": "3/10000"}
    family = sf.reconcile(
        [paid.release(sf.Histogram(list(table)), rho=rho) for table, rho in costs.items()]
    )
    expected = {
        "": 3.08747855917667,
        "a": 3.82131404280708,
        "b": 0.81451437127451,
        "c": 5.08901638374638,
        "ab": 1.30789290115611,
        "ac": 2.30457669964332,
        "bc": 3.34292540243719,
    }
    for table, variance in expected.items():
        found = family[list(table)]
        assert found.variances.shape == found.values.shape
        np.testing.assert_allclose(found.variances * 3 / 1000, variance, rtol=1e-12)


def test_estimates_are_those_of_dense_least_squares() -> None:
    crossed, wards = answers(CROSSED, WARDS)
    family = sf.reconcile([wards, crossed])
    # Sexes have 4 cells and wards 5; all counts have the same variance.
    matrix = np.vstack([np.kron(np.ones((1, 4)), np.eye(5)), np.eye(20)])
    noisy = np.concatenate([wards.values, crossed.values.reshape(-1)])
    expected, *_ = np.linalg.lstsq(matrix, noisy.astype(float), rcond=None)
    np.testing.assert_allclose(
        family["sex", "ward"].values, expected.reshape(4, 5), rtol=0, atol=1e-9
    )


def test_the_promise_is_the_sum_of_what_was_paid_and_nothing_new_is_charged() -> None:
    with publisher() as paid:
        parts = [paid.release(question, rho="0.25") for question in (CROSSED, WARDS)]
        before = paid.remaining
        family = sf.reconcile(parts)
        assert paid.remaining == before
    assert family.guarantee.measure == sf.ZCDP("0.5")
    assert family.guarantee.unit == parts[0].guarantee.unit
    assert family.receipt is None
    assert family.paid_by == tuple(part.receipt for part in parts)
    assert family.guarantee.assumptions == parts[0].guarantee.assumptions
    assert "least squares over released tables (sex x ward, ward)" in str(family.guarantee)


def test_families_are_reconciled_with_histograms_in_any_order_of_axes() -> None:
    tables = sf.Tables([["age", "sex"], ["sex", "ward"]], bins=3)
    family, wards = answers(tables, WARDS, rho="20")
    for parts in ([family, wards], [wards, family]):
        both = sf.reconcile(parts)
        near = family["sex", "age"].values
        np.testing.assert_allclose(both["sex", "age"].values, near, atol=8)
        np.testing.assert_allclose(
            both["sex", "ward"].values.sum(axis=0), both["ward"].values, atol=1e-9
        )
        # Residuals of the family and the whole histogram are both measurements of wards.
        one = both._errors.family.variance_of(both.chains.margin(["ward"]))
        assert one < min(wards.law.variance, family._errors.family.variance_of((1, 0, 0)))


def test_it_is_saved_and_loaded_and_reconciled_again(tmp_path: Path) -> None:
    crossed, wards, ages = answers(CROSSED, WARDS, AGES)
    family = sf.reconcile([crossed, wards])
    family.save(tmp_path / "family.json")
    again = sf.load(tmp_path / "family.json")
    np.testing.assert_array_equal(again.values, family.values)
    larger = sf.reconcile([family, ages])
    at_once = sf.reconcile([crossed, wards, ages])
    np.testing.assert_allclose(larger.values, at_once.values, atol=1e-9)
    assert larger.paid_by == at_once.paid_by
    with pytest.raises(sf.UsageError, match="they hold the same answer"):
        sf.reconcile([family, wards])
    assert np.array_equal(family.published(), again.published())


def test_answers_of_one_plan_need_no_version_and_may_limit_persons() -> None:
    unit = {"person": "who", "rows_per_person": 1, "version": None}
    with publisher(**unit) as paid:
        parts = paid.release([CROSSED, WARDS], rho="1")
    family = sf.reconcile(parts)
    assert family.guarantee.measure == sf.ZCDP("1")


def test_the_custodian_may_say_that_the_data_are_the_same() -> None:
    parts = answers(CROSSED, WARDS, version=None)
    with pytest.raises(sf.UsageError, match="no receipt says whether the data changed"):
        sf.reconcile(parts)
    assert sf.reconcile(parts, same_data=True).tables == (("sex", "ward"), ("ward",))


def refused(releases: Sequence[object], words: str, **said: bool) -> None:
    with pytest.raises(sf.UsageError, match=words):
        sf.reconcile(releases, **said)


def test_what_differs_is_said() -> None:
    crossed, wards = answers(CROSSED, WARDS)
    (limited,) = answers(WARDS, person="who", rows_per_person=1)
    refused([crossed, limited], "the one protects one row.* the other one who")
    (replaced,) = answers(WARDS, neighbours="replace")
    refused([crossed, replaced], "added or removed, and the other .* replaced")
    (chosen,) = answers(WARDS, where={"sex": "f"})
    refused([crossed, chosen], "the one protects .* the other")
    (others,) = answers(WARDS, name="staff")
    refused([crossed, others], "about visits, version 1 and about staff, version 1")
    (later,) = answers(WARDS, version="2")
    refused([crossed, later], "version 1 and about visits, version 2", same_data=True)
    (renamed,) = answers(WARDS, domain=sf.Domain(ward=sf.Categories(["a", "b"], other="c")))
    refused([crossed, renamed], "ward has other cells in the one than in the other")
    (sexes,) = answers(sf.Histogram("sex"))
    refused([wards, sexes], "no axis in common")
    refused([crossed, crossed], "they hold the same answer")
    refused([crossed, msgspec.structs.replace(wards, receipt=None)], "it has no receipt")


def test_a_version_within_a_name_or_a_condition_is_no_version() -> None:
    """They are compared as what was stated, not as the text in which both are written."""
    (plain,) = answers(WARDS, name="visits", version="1")
    (joined,) = answers(CROSSED, name="visits, version 1", version=None)
    assert plain.receipt.source == joined.receipt.source
    refused(
        [plain, joined], "about visits, version 1 and about 'visits, version 1'", same_data=True
    )
    parts = answers(CROSSED, WARDS, name="visits, version 1", version=None)
    refused(parts, "no receipt says whether the data changed")
    assert sf.reconcile(answers(CROSSED, WARDS, name="a, version 1", version="2, version 3"))
    ward = sf.Categories(["a", "b, version 2"], other="else", missing="not known")
    domain = sf.Domain(ward=ward, sex=SEX)
    where = {"domain": domain, "where": {"ward": ["a", "b, version 2"]}}
    refused(answers(CROSSED, WARDS, version=None, **where), "no receipt says whether")
    assert sf.reconcile(answers(CROSSED, WARDS, version="2", **where))


@pytest.mark.parametrize(
    ("name", "version", "named"),
    [
        ("visits", None, ""),
        ("visits", "1", ""),
        ("visits, version 1", None, "visits, version 1"),
        ("visits, version 1", "2", "visits, version 1"),
        ("visits", "1, version 2", "visits"),
        ("visits", ", version ", "visits"),
    ],
)
def test_a_receipt_tells_name_and_version_apart(name: str, version: str | None, named: str) -> None:
    (wards,) = answers(WARDS, name=name, version=version, where={"sex": ["f", "m"]})
    assert wards.receipt.named == named
    assert wards.receipt.data(wards.guarantee.unit.conditions) == (name, version)


def test_two_ledgers_may_mean_different_data_by_one_name() -> None:
    """By the number of the charge, or by the key under which they sign."""
    (crossed,) = answers(CROSSED)
    (wards,) = answers(WARDS)
    assert crossed.receipt.entry == wards.receipt.entry
    refused([crossed, wards], "two ledgers paid for them")
    assert sf.reconcile([crossed, wards], same_data=True)
    crossed, wards = answers(CROSSED, WARDS)
    signed = [_signed_by(release, key) for release, key in ((crossed, "a"), (wards, "b"))]
    refused(signed, "two ledgers paid for them")
    assert sf.reconcile([crossed, signed[1]])
    assert sf.reconcile([_signed_by(crossed, "b"), signed[1]])


def _signed_by(release: sf.Release, key: str) -> sf.Release:
    receipt = msgspec.structs.replace(release.receipt, signer=key)
    return msgspec.structs.replace(release, receipt=receipt)


def test_answers_come_as_one_list() -> None:
    crossed, wards = answers(CROSSED, WARDS)
    with pytest.raises(
        sf.UsageError, match=r"2 arguments: .* Write sf\.reconcile\(\[first, second"
    ):
        sf.reconcile(crossed, wards)
    with pytest.raises(sf.UsageError, match="at least two answers"):
        sf.reconcile()


def test_persons_whose_rows_are_chosen_anew_are_refused() -> None:
    parts = answers(CROSSED, WARDS, person="who", rows_per_person=1)
    refused(parts, "which rows of a person are counted is chosen anew for each charge")


def test_limits_by_cell_are_refused_even_in_one_plan() -> None:
    with publisher(person="who", rows_per_person=2, rows_per_cell=1) as paid:
        parts = paid.release([CROSSED, WARDS], rho="1")
    refused(parts, "under limits by cell each table counts rows of its own")


def test_an_axis_that_drops_rows_must_be_in_every_table() -> None:
    dropping = sf.Domain(ward=WARD, sex=sf.Categories(["f", "m"]), age=sf.Interval(0, 90))
    crossed, wards = answers(CROSSED, WARDS, domain=dropping)
    refused([wards, crossed], "sex drops rows without a value or with an unlisted label")
    both, more = answers(CROSSED, sf.Histogram(["ward", "sex"]), rho="0.5", domain=dropping)
    del more
    (again,) = answers(CROSSED, domain=dropping)
    assert sf.reconcile([both, again], same_data=True)["sex"].values.shape == (2,)
    (ages,) = answers(AGES, domain=dropping)
    refused([ages, wards], "age drops rows without a value")


def test_what_is_no_table_of_independent_counts_is_refused() -> None:
    crossed, _ = answers(CROSSED, WARDS)
    with publisher(person="who", rows_per_person=1) as paid:
        persons = paid.release(sf.Histogram("ward", count="persons"), rho="0.5")
    refused([crossed, persons], "it counts persons")
    (ranges,) = answers(
        sf.Histogram("age", bins=4, workload="ranges"), domain=sf.Domain(age=sf.Interval(0, 90))
    )
    refused([crossed, ranges], "do not each have noise of their own")
    visits = sf.source(TABLE, DOMAIN, name="visits", version="1")
    with sf.Publisher(visits, budget=sf.ApproxDP("1", "1e-6")) as paid:
        bounded = paid.release(sf.Histogram("ward", noise="bounded"), epsilon="1", delta="1e-6")
    refused([crossed, bounded], "its noise has a bound")
    (mean,) = answers(sf.Mean("age", by="ward"), domain=DOMAIN)
    refused([crossed, mean], "no table of counts")
    refused([crossed, TABLE], "no table of counts")
    refused([crossed], "at least two answers")
    refused(crossed, "at least two answers")


def test_costs_that_do_not_add_up_are_refused() -> None:
    with publisher() as paid:
        parts = [paid.release(CROSSED, rho="0.5"), paid.release(WARDS, epsilon="1")]
    refused(parts, "some cost rho and others epsilon")
