"""Charge first, count second, publish last: the publisher's promises."""

from __future__ import annotations

import pickle
import threading
import time
import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.answers.codec import to_bytes
from sfumato.cube import Cube
from sfumato.data import Source, count
from sfumato.ledger import Hold, open_ledger
from support.canary import sightings

POINTS = np.random.default_rng(5).random((500, 2))
DOMAIN = sf.Domain(x=sf.Interval(0, 1), y=sf.Interval(0, 1))


def table(name: str | None = "points", **unit: object) -> Source:
    return sf.source(POINTS, DOMAIN, name=name, **unit)  # type: ignore[arg-type]


def test_the_same_question_again_is_the_same_answer_for_free(tmp_path: Path) -> None:
    answers = []
    for _ in range(2):  # two processes' worth: everything is opened anew
        with sf.Publisher(table(), ledger=tmp_path / "b.db", account="a", budget="1") as publisher:
            answers.append(publisher.release(sf.Histogram("x"), epsilon="0.25"))
            assert publisher.remaining == Fraction(3, 4)
    assert answers[0] == answers[1]
    assert answers[0].receipt == answers[1].receipt


PEOPLE = pa.table({"x": POINTS[:, 0], "y": POINTS[:, 1], "who": np.arange(500) % 100})


def people(limit: int = 2, name: str | None = "points", **unit: Any) -> Source:
    return sf.source(PEOPLE, DOMAIN, **({"person": "who"} | unit), rows_per_person=limit, name=name)


@pytest.mark.parametrize("change", ["question", "cost", "limit", "account"])
def test_another_question_cost_limit_or_account_is_paid_anew(tmp_path: Path, change: str) -> None:
    with sf.Publisher(people(), ledger=tmp_path / "b.db", account="a", budget="1") as publisher:
        first = publisher.release(sf.Histogram("x"), epsilon="0.25")
    src, account = people(limit=3 if change == "limit" else 2), "b" if change == "account" else "a"
    with sf.Publisher(src, ledger=tmp_path / "b.db", account=account, budget="1") as publisher:
        before = publisher.account.spent
        question = sf.Histogram("y") if change == "question" else sf.Histogram("x")
        second = publisher.release(question, epsilon="0.125" if change == "cost" else "0.25")
        assert publisher.account.spent > before
        assert not second.replayed
    assert first.receipt != second.receipt


OTHERS = {
    "another person column": {"person": "y"},
    "no person column": {"person": None},
    "another relation": {"neighbours": "replace"},
    "another data set": {"name": "other"},
    "a data set without a name": {"name": None},
}


@pytest.mark.parametrize("change", OTHERS)
def test_an_account_is_charged_for_one_unit_and_data_set_only(tmp_path: Path, change: str) -> None:
    """Costs for different persons, relations or data add up to a number that guarantees nothing."""
    with sf.Publisher(people(), ledger=tmp_path / "b.db", account="a", budget="1") as publisher:
        publisher.release(sf.Histogram("x"), epsilon="0.25")
    src = sf.source(
        PEOPLE.rename_columns(["x", "z", "y"]),
        sf.Domain(x=sf.Interval(0, 1)),
        **({"person": "y"} | OTHERS[change]),
    )  # type: ignore[arg-type]
    src = people(**OTHERS[change]) if change != "another person column" else src  # type: ignore[arg-type]
    with pytest.raises(sf.UsageError, match="account"):
        sf.Publisher(src, ledger=tmp_path / "b.db", account="a", budget="1").release(
            sf.Histogram("x"), epsilon="0.25"
        )
    with open_ledger(tmp_path / "b.db") as ledger:
        assert ledger.account("a").spent == (250_000_000, 0)
        assert ledger.verify().ok


def test_an_account_that_nothing_has_bound_is_bound_by_its_first_charge(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "b.db") as ledger:
        ledger.open_account("a", "pure", (10**9, 0))
        sf.Publisher(people(), ledger=ledger, account="a").release(
            sf.Histogram("x"), epsilon="0.25"
        )
        found = ledger.account("a")
        assert (found.protects, found.data) == ("one who, added or removed", "points")
        with pytest.raises(sf.UsageError, match="one row"):
            sf.Publisher(people(person=None, limit=1), ledger=ledger, account="a")
        assert ledger.verify().ok


def test_a_data_set_has_one_ceiling_over_all_accounts(tmp_path: Path) -> None:
    """Three accounts on one source were all granted."""
    for number, account in enumerate("abc"):
        with sf.Publisher(
            people(), ledger=tmp_path / "b.db", account=account, budget="1", ceiling="2"
        ) as publisher:
            if number < 2:
                publisher.release(sf.Histogram("x"), epsilon="0.8", key=account)
                continue
            with pytest.raises(sf.BudgetExceeded, match="ceiling"):
                publisher.release(sf.Histogram("x"), epsilon="0.8", key=account)
            publisher.release(sf.Histogram("x"), epsilon="0.4", key=account)
            assert publisher.ledger.verify().ok
    with sf.Publisher(people(), ledger=tmp_path / "b.db", account="a", ceiling="3") as publisher:
        with pytest.raises(sf.UsageError, match="ceiling"):
            publisher.release(sf.Histogram("y"), epsilon="0.1")
        publisher.release(
            sf.Histogram("x"), epsilon="0.8", key="a"
        )  # a stored answer costs nothing
    with (
        sf.Publisher(people(), ledger=tmp_path / "b.db", account="a") as publisher,
        pytest.raises(sf.BudgetExceeded, match="ceiling"),
    ):
        publisher.release(sf.Histogram("y"), epsilon="0.1")
    for wrong in (sf.ZCDP("1"), "0", "-1"):
        with pytest.raises(sf.UsageError):
            sf.Publisher(people(), ledger=tmp_path / "b.db", account="a", ceiling=wrong)
    with pytest.raises(sf.UsageError, match="name"):
        sf.Publisher(people(name=None), budget="1", ceiling="2")


def test_an_account_in_memory_says_once_that_it_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.publishing.account._warned", False)
    with pytest.warns(sf.errors.SfumatoWarning, match="forgets"):
        sf.Publisher(table(), budget="1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sf.Publisher(table(), budget="1")
        monkeypatch.setattr("sfumato.publishing.account._warned", False)
        sf.Publisher(table(), budget="1", ledger=open_ledger(None))


def test_a_stored_answer_says_that_it_is_one(tmp_path: Path) -> None:
    for replayed in (False, True):
        with sf.Publisher(table(), ledger=tmp_path / "b.db", account="a", budget="1") as publisher:
            answers = publisher.release([sf.Histogram("x"), sf.Histogram("y")], epsilon="0.25")
            assert [answer.replayed for answer in answers] == [replayed, replayed]
            again = publisher.release([sf.Histogram("x"), sf.Histogram("y")], epsilon="0.25")
            assert again == answers
            assert to_bytes(again) == to_bytes(answers)
            assert again[0].replayed
    loaded = sf.load(answers[0].save(tmp_path / "r.json"))
    assert loaded == answers[0]
    assert (loaded.loaded, loaded.replayed, answers[0].loaded) == (True, False, False)


def test_fresh_pays_for_a_new_draw() -> None:
    with sf.Publisher(table(), budget="1") as publisher:
        first = publisher.release(sf.Histogram("x", bins=200), epsilon="0.25")
        second = publisher.release(sf.Histogram("x", bins=200), epsilon="0.25", fresh=True)
        assert publisher.remaining == Fraction(1, 2)
    assert (first.values != second.values).any()


def test_a_key_stands_for_one_question() -> None:
    with sf.Publisher(table(), budget="1") as publisher:
        publisher.release(sf.Histogram("x"), epsilon="0.25", key="k")
        with pytest.raises(sf.UsageError, match="k"):
            publisher.release(sf.Histogram("y"), epsilon="0.25", key="k")
        assert publisher.remaining == Fraction(3, 4)


def test_a_new_draw_is_paid_for_only_where_it_is_asked_for_in_so_many_words() -> None:
    publisher = sf.Publisher(
        sf.source(np.zeros((1, 1)), sf.Domain(x=sf.Interval(0, 1))), budget="1"
    )
    with pytest.raises(sf.UsageError, match="true or false"):
        publisher.release(sf.Histogram("x"), epsilon="0.1", fresh="no")  # type: ignore[call-overload]
    assert publisher.account.spent == (0, 0)


def test_beyond_the_budget_nothing_is_read_and_nothing_is_spent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "sfumato.publishing.counting.count", lambda *_, **__: pytest.fail("the data were read")
    )
    with sf.Publisher(table(), budget="1") as publisher:
        with pytest.raises(sf.BudgetExceeded) as refusal:
            publisher.release(sf.Histogram("x"), epsilon="1.5")
        assert (refusal.value.requested, refusal.value.remaining, refusal.value.account) == (
            Fraction(3, 2),
            1,
            "default",
        )
        assert publisher.remaining == 1


def test_the_charge_is_durable_before_the_data_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_first(*args: object, **named: object) -> list[Cube]:
        with open_ledger(tmp_path / "b.db") as ledger:
            assert ledger.account("a").spent == (250_000_000, 0)
        return count(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr("sfumato.publishing.counting.count", look_first)
    with sf.Publisher(table(), ledger=tmp_path / "b.db", account="a", budget="1") as publisher:
        publisher.release(sf.Histogram("x"), epsilon="0.25")


def test_a_failure_after_the_charge_publishes_nothing_and_the_key_resumes_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    question = sf.Histogram("x")
    with sf.Publisher(table(), budget="1") as publisher:
        with monkeypatch.context() as patch:
            patch.setattr("sfumato.publishing.counting.count", lambda *_, **__: 1 / 0)
            with pytest.raises(
                sf.InternalError, match=r"ZeroDivisionError in test_publisher\.py"
            ) as fault:
                publisher.release(question, epsilon="0.25")
            assert fault.value.__context__ is None
        assert publisher.remaining == Fraction(3, 4)
        assert publisher.release(question, epsilon="0.25").values.shape == (10,)
        assert publisher.remaining == Fraction(3, 4)


def test_a_plan_scans_once_and_charges_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": POINTS[:, 0], "y": POINTS[:, 1]}), path)
    scans = []
    monkeypatch.setattr(
        "sfumato.publishing.counting.count",
        lambda src, lattices, *rest, **named: (
            scans.append(len(lattices)) or count(src, lattices, *rest, **named)
        ),
    )
    with sf.Publisher(sf.source(path, DOMAIN), budget="1") as publisher:
        plan = sf.Plan(
            [sf.Histogram("x", bins=8), sf.Histogram("x", bins=16), sf.Histogram("y")],
            shares=[1, 1, 2],
        )
        answers = publisher.release(plan, epsilon="0.4")
        assert scans == [2]  # 8 bins are unions of 16
        assert [float(a.guarantee.measure.epsilon) for a in answers] == [0.1, 0.1, 0.2]
        assert publisher.remaining == Fraction(3, 5)
        assert [a.receipt.part for a in answers if a.receipt] == ["1 of 3", "2 of 3", "3 of 3"]
        publisher.release(sf.Histogram("x", bins=4), epsilon="0.1")
        assert scans == [2]  # the cube at hand serves it


def test_a_plan_of_one_lattice_refined_by_another_counts_alike() -> None:
    with sf.testing.deterministic(1), sf.Publisher(table(), budget="2") as publisher:
        both = publisher.release(
            [sf.Histogram("x", bins=8), sf.Histogram("x", bins=16)], epsilon="1"
        )
        assert [a.guarantee.private for a in both] == [False, False]


def test_measures_convert_by_name_only() -> None:
    with sf.Publisher(table(), budget=sf.ZCDP("0.5")) as publisher:
        publisher.release(sf.Histogram("x"), rho="0.1")
        publisher.release(sf.Histogram("x"), epsilon="0.2")
        assert publisher.remaining == Fraction(1, 2) - Fraction(1, 10) - Fraction(2, 100)
        with pytest.raises(sf.UsageError, match="no conversion"):
            sf.Publisher(table(), budget="1").release(sf.Histogram("x"), rho="0.1")
    with sf.Publisher(table(), budget=sf.ApproxDP("1", "1e-6")) as publisher:
        answer = publisher.release(sf.Histogram("x"), epsilon="0.5", delta="1e-7")
        assert publisher.remaining == (
            Fraction(1, 2),
            Fraction(1, 10**6),
        )  # known cells need no delta
        assert answer.guarantee.measure == sf.PureDP("0.5")


def test_an_account_keeps_its_total(tmp_path: Path) -> None:
    sf.Publisher(table(), ledger=tmp_path / "b.db", account="a", budget="1").close()
    with pytest.raises(sf.UsageError, match="1"):
        sf.Publisher(table(), ledger=tmp_path / "b.db", account="a", budget="2")
    with sf.Publisher(table(), ledger=tmp_path / "b.db", account="a") as publisher:
        assert publisher.remaining == 1


def test_public_noise_is_stamped_and_never_replayed_as_private() -> None:
    with sf.Publisher(table(), budget="2") as publisher:
        with sf.testing.deterministic(3):
            stamped = publisher.release(sf.Histogram("x"), epsilon="1")
        real = publisher.release(sf.Histogram("x"), epsilon="1")
    assert "NOT PRIVATE" in stamped.guarantee.sentence()
    assert "NOT PRIVATE" in repr(stamped)
    assert real.guarantee.private


def test_a_map_finer_than_the_lattice_is_counted_again_on_its_own_cells() -> None:
    many = sf.source(np.random.default_rng(1).random((1_500_000, 2)), DOMAIN, name="many")
    with sf.Publisher(many, budget="2") as publisher:
        partition = publisher.release(sf.UniformPartitioner(), epsilon="1")
    assert len(partition.counts) > 256**2
    width = partition.upper[:, 0] - partition.lower[:, 0]
    assert np.allclose(width, width[0])
    assert abs(partition.counts.sum() - 1_500_000) < 12 * np.sqrt(2 * len(partition.counts))


def test_without_an_account_or_a_cost_nothing_starts(tmp_path: Path) -> None:
    with pytest.raises(sf.SfumatoError, match="account"):
        sf.Publisher(table(), ledger=tmp_path / "b.db", account="a")
    with sf.Publisher(table(), budget="1") as publisher:
        for cost in ({}, {"epsilon": "1", "rho": "1"}, {"rho": "1", "delta": "1e-6"}):
            with pytest.raises(sf.UsageError):
                publisher.release(sf.Histogram("x"), **cost)


def test_nothing_true_is_held_by_what_is_handed_out() -> None:
    canary = 731_946  # rows in one cell: the true count must be nowhere
    data = np.full((canary, 1), 0.55)
    with sf.Publisher(
        sf.source(data, sf.Domain(x=sf.Interval(0, 1)), name="c"), budget="1"
    ) as publisher:
        answer = publisher.release(sf.Histogram("x", bins=2), epsilon="0.001")
        assert answer.values[1] != canary
        count(publisher.source, [sf.Histogram("x", bins=2).needs(publisher.source.domain).lattice])
        assert not sightings(
            canary,
            answer,
            publisher,
            publisher.source,
            publisher._answering.counting._cubes[0],
            answer.guarantee,
            answer.receipt,
        )


def test_a_second_scan_keeps_the_same_rows_of_each_person(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of a table that did not change; one in memory may have, between two releases."""
    keys = []
    monkeypatch.setattr(
        "sfumato.publishing.counting.count",
        lambda *rest, key: keys.append(key) or count(*rest, key=key),
    )
    pq.write_table(pa.table({"x": POINTS[:, 0]}), tmp_path / "x.parquet")
    for src in (sf.source(tmp_path / "x.parquet", sf.Domain(x=sf.Interval(0, 1))), table()):
        with sf.Publisher(src, budget="1") as publisher:
            for bins in (3, 7):
                publisher.release(sf.Histogram("x", bins=bins), epsilon="0.1")
        with sf.Publisher(src, budget="1") as another:
            another.release(sf.Histogram("x", bins=3), epsilon="0.1")
    assert keys[0] == keys[1] != keys[2]
    assert len(set(keys)) == 5
    assert len(keys[0]) == 32


def test_a_table_changed_in_place_is_counted_anew() -> None:
    rows = np.zeros((1_000, 1))
    with sf.Publisher(
        sf.source(rows, sf.Domain(x=sf.Interval(0, 10)), name="t"), budget="20"
    ) as publisher:
        publisher.release(sf.Histogram("x", bins=2), epsilon="5")
        rows[:] = 9
        changed = publisher.release(sf.Histogram("x", bins=4), epsilon="5")
    assert changed.values[3] > 900


def test_the_order_of_the_domain_is_part_of_what_is_asked() -> None:
    """An array's columns are the axes in order: another order is another table."""
    ledger = open_ledger(None)
    array = np.column_stack([np.full(500, 1.0), np.full(500, 99.0)])
    a, b = sf.Interval(0, 100), sf.Interval(0, 100)
    first = sf.Publisher(
        sf.source(array, sf.Domain(a=a, b=b), name="n"), ledger=ledger, account="x", budget="20"
    )
    second = sf.Publisher(
        sf.source(array, sf.Domain(b=b, a=a), name="n"), ledger=ledger, account="x", budget="20"
    )
    question = sf.Histogram("a", bins=2)
    assert (
        first.release(question, epsilon="5").values[0]
        > 400
        > first.release(question, epsilon="5").values[1]
    )
    assert second.release(question, epsilon="5").values[1] > 400
    ledger.close()


@pytest.mark.parametrize("total", [sf.ZCDP("0.5"), sf.ApproxDP("1", "1e-6")], ids=str)
def test_an_existing_account_of_any_rule_is_found_without_its_total(
    total: object, tmp_path: Path
) -> None:
    sf.Publisher(table(), ledger=tmp_path / "b.db", account="a", budget=total).close()
    with sf.Publisher(table(), ledger=tmp_path / "b.db", account="a") as publisher:
        publisher.release(sf.Histogram("x"), epsilon="0.1")


def test_a_total_rounds_down_and_a_cost_up() -> None:
    with sf.Publisher(table(), budget="0.1234567899") as publisher:
        assert publisher.account.total == (123_456_789, 0)
    with pytest.raises(sf.UsageError, match="smallest unit"):
        sf.Publisher(table(), budget="1e-10")


def test_what_no_sampler_draws_is_refused_before_the_charge() -> None:
    crowd = sf.source(POINTS, DOMAIN, rows_per_person=10**6, name="crowd")
    with sf.Publisher(crowd, budget="1") as publisher:
        with pytest.raises(sf.UsageError, match="2\\*\\*48"):
            publisher.release(sf.Histogram("x"), epsilon="1e-9")
        with pytest.raises(sf.UsageError, match="progress"):
            publisher.release(sf.Histogram("x"), epsilon="0.1", progress=5)
        for key in ("", 5, b"k"):
            with pytest.raises(sf.UsageError, match="key"):
                publisher.release(sf.Histogram("x"), epsilon="0.1", key=key, fresh=True)
        assert publisher.remaining == 1


def test_an_answer_of_another_version_is_a_ledger_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with sf.Publisher(table(), budget="1") as publisher, monkeypatch.context() as patch:
        store = Hold.store
        patch.setattr(Hold, "store", lambda hold, payload: store(hold, b'[{"type":"old"}]'))
        with pytest.raises(sf.LedgerError, match="cannot read"):
            publisher.release(sf.Histogram("x"), epsilon="0.1", key="k")


def test_equal_questions_are_one_question() -> None:
    with sf.Publisher(table(), budget="1") as publisher:
        publisher.release(sf.Histogram("x"), epsilon="0.5")
        publisher.release(sf.Histogram(["x"]), epsilon="0.5")
        assert publisher.remaining == Fraction(1, 2)
    assert sf.Interval(0.0, 10.0) == sf.Interval(0, 10)


def test_defaults_written_out_are_defaults() -> None:
    """Words and numbers that a file or the command line brings are equal to the defaults without being them."""
    for question in (
        sf.Histogram("x"),
        sf.Quantiles("x"),
        sf.KMeans(3),
        *PARTITIONERS,
        sf.Counter(horizon=9),
    ):
        plain = {name: getattr(question, name) for name in question.__struct_fields__}
        again = type(question)(**{name: copied(value) for name, value in plain.items()})
        assert (
            to_bytes(again) == to_bytes(question) == to_bytes(pickle.loads(pickle.dumps(question)))
        )
    with sf.Publisher(table(), budget="1") as publisher:
        publisher.release(sf.Quantiles("x"), epsilon="0.5")
        publisher.release(sf.Quantiles("x", method=copied("auto")), epsilon="0.5")
        assert publisher.remaining == Fraction(1, 2)
        publisher.release(
            sf.UniformPartitioner(), epsilon="0.25"
        )  # all Interval axes, or their names
        publisher.release(sf.UniformPartitioner(["x", "y"]), epsilon="0.25")
        assert publisher.remaining == Fraction(1, 4)
    assert to_bytes(sf.Interval(0, 10, step=1.0)) == to_bytes(sf.Interval(0, 10, step=1))


PARTITIONERS = tuple(
    kind("x")
    for kind in (
        sf.UniformPartitioner,
        sf.AdaptiveGridPartitioner,
        sf.AutoPartitioner,
        sf.PrivTreePartitioner,
        sf.BinaryPartitioner,
        sf.MedianPartitioner,
        sf.MultiQuantilePartitioner,
    )
)


def copied(value: object) -> object:
    """An equal value that is another object."""
    if isinstance(value, str):
        return "".join(list(value))
    return pickle.loads(pickle.dumps(value))


def test_equal_edges_shares_and_steps_are_one_question() -> None:
    with sf.Publisher(table(), budget="9") as publisher:
        for edges in ([0, 1], [0.0, 1.0]):
            publisher.release(sf.Histogram("x", bins=[0, 0.5, *edges[1:]]), epsilon="1")
        assert publisher.remaining == 8
        plans: list[Any] = [
            [sf.Histogram("x")],
            sf.Plan([sf.Histogram("x")], shares=[2]),
            sf.Plan([sf.Histogram("x")]),
        ]
        for plan in plans:
            publisher.release(plan, epsilon="1")
        assert publisher.remaining == 7
    steps = (1, 1.0, np.int64(1), np.float64(1), Decimal("1.0"))
    assert len({to_bytes(sf.Interval(0, 10, step=step)) for step in steps}) == 1  # type: ignore[arg-type]


def test_threads_may_share_a_publisher(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one has counted, and by which choice of rows, is not changed by another in the middle of an answer."""
    people = pa.table({"x": POINTS[:, 0], "who": np.arange(500) % 100})
    source = sf.source(
        people, sf.Domain(x=sf.Interval(0, 1)), person="who", rows_per_person=2, name="people"
    )
    publisher, failed = sf.Publisher(source, budget=100), []
    counting = publisher._answering.counting
    cached = counting._cached

    def slow(lattice: object) -> object:
        time.sleep(0.002)  # for others to come in between; none need come
        return cached(lattice)  # type: ignore[arg-type]

    monkeypatch.setattr(counting, "_cached", slow)

    def ask(who: int) -> None:
        for i in range(6):
            try:
                publisher.release(sf.Histogram("x", bins=2 + i), epsilon="0.1", key=f"{who} {i}")
            except Exception as error:
                failed.append(error)

    threads = [threading.Thread(target=ask, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert publisher.remaining == 100 - 24 * Fraction(1, 10)


def test_a_slip_binds_no_account(tmp_path: Path) -> None:
    """A misspelt person column is found before the first charge, and the account is still free for the right one."""
    with pytest.raises(sf.DataError, match="did you mean 'who'"):
        sf.Publisher(
            people(person="whom"), ledger=tmp_path / "b.db", account="a", budget="1"
        ).release(sf.Histogram("x"), epsilon="1")
    with sf.Publisher(people(), ledger=tmp_path / "b.db", account="a", budget="1") as publisher:
        publisher.release(sf.Histogram("x"), epsilon="1")
        assert publisher.account.protects == "one who, added or removed"


@pytest.mark.parametrize("fault", ["another promise", "no release"])
def test_an_answer_that_is_not_what_was_charged_is_not_stored(fault, monkeypatch):
    honest = sf.Histogram.answer

    def answer(self, counts, unit, cost, noise):
        if fault == "no release":
            return None
        found = honest(self, counts, unit, cost, noise)
        more = msgspec.structs.replace(found.guarantee, measure=sf.PureDP(2 * cost.epsilon))
        return msgspec.structs.replace(found, guarantee=more)

    source = sf.source(np.zeros((3, 1)), sf.Domain(x=sf.Interval(0, 1)), name="t")
    with sf.Publisher(source, budget=3) as publisher:
        with monkeypatch.context() as patch:
            patch.setattr(sf.Histogram, "answer", answer)
            with pytest.raises(sf.UsageError, match="Let ") as refused:
                publisher.release(sf.Histogram("x"), epsilon=1, key="k")
        assert "The charge stands" in "".join(refused.value.__notes__)
        assert publisher.release(
            sf.Histogram("x"), epsilon=1, key="k"
        ).guarantee.measure == sf.PureDP(1)
        assert publisher.remaining == 2
