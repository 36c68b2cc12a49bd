"""The same question is the same answer for free; another one is paid for."""

from __future__ import annotations

import pickle
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.basics.structs import to_bytes
from sfumato.data import Source, count
from sfumato.ledger import open_ledger
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
    source = people(limit=3 if change == "limit" else 2)
    account = "b" if change == "account" else "a"
    question = sf.Histogram("y" if change == "question" else "x")
    epsilon = "0.125" if change == "cost" else "0.25"
    with sf.Publisher(source, ledger=tmp_path / "b.db", account=account, budget="1") as publisher:
        before = publisher.account.spent
        second = publisher.release(question, epsilon=epsilon)
        assert publisher.account.spent > before
        assert not second.replayed
    assert first.receipt != second.receipt


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


def test_public_noise_is_stamped_and_never_replayed_as_private() -> None:
    with sf.Publisher(table(), budget="2") as publisher:
        with sf.testing.deterministic(3):
            stamped = publisher.release(sf.Histogram("x"), epsilon="1")
        real = publisher.release(sf.Histogram("x"), epsilon="1")
    assert "NOT PRIVATE" in stamped.guarantee.sentence()
    assert "NOT PRIVATE" in repr(stamped)
    assert real.guarantee.private


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


def test_the_order_of_the_domain_is_part_of_what_is_asked() -> None:
    """An array's columns are the axes in order: another order is another table."""
    ledger = open_ledger(None)
    array = np.column_stack([np.full(500, 1.0), np.full(500, 99.0)])
    percent = sf.Interval(0, 100)
    question = sf.Histogram("a", bins=2)

    def values(domain: sf.Domain) -> np.ndarray:
        source = sf.source(array, domain, name="n")
        publisher = sf.Publisher(source, ledger=ledger, account="x", budget="20")
        return publisher.release(question, epsilon="5").values

    first = values(sf.Domain(a=percent, b=percent))
    second = values(sf.Domain(b=percent, a=percent))
    assert first[0] > 400 > first[1]
    assert second[1] > 400
    ledger.close()


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


def test_equal_questions_are_one_question() -> None:
    with sf.Publisher(table(), budget="1") as publisher:
        publisher.release(sf.Histogram("x"), epsilon="0.5")
        publisher.release(sf.Histogram(["x"]), epsilon="0.5")
        assert publisher.remaining == Fraction(1, 2)
    assert sf.Interval(0.0, 10.0) == sf.Interval(0, 10)


def test_defaults_written_out_are_defaults() -> None:
    """Defaults that a file or the command line states are equal objects, and not the same ones."""
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


# --- limits by cell -------------------------------------------------------------------------------

LEVELS: list[Any] = [
    sf.UniformPartitioner(),
    sf.PrivTreePartitioner(),
    sf.KMeans(n_clusters=2),
    sf.Quantiles("x", at=[0.5]),
    sf.Histogram("x", records=10),
]


@pytest.mark.parametrize("question", LEVELS, ids=lambda question: question.title)
def test_what_counts_on_several_lattices_is_refused_under_limits_by_cell(question: Any) -> None:
    limited = sf.source(PEOPLE, DOMAIN, person="who", norm_per_person=3, name="points")
    publisher = sf.Publisher(limited, budget=1)
    for asking in (publisher.preview, publisher.release):
        with pytest.raises(sf.UsageError, match="these hold on the cells of one table"):
            asking([sf.Histogram("x"), question], epsilon=1)
    assert publisher.remaining == 1


def test_a_table_under_a_norm_gets_the_noise_of_the_norm() -> None:
    limited = sf.source(PEOPLE, DOMAIN, person="who", norm_per_person=3, name="points")
    publisher = sf.Publisher(limited, budget=sf.ZCDP("2"))
    release = publisher.release(sf.Histogram("x", bins=4), rho="0.5")
    assert release.law.sigma_squared == 9
    assert release.guarantee.unit == limited.unit
    assert "counts cut to a norm of 3" in release.guarantee.sentence()
    assert (
        "are cut to a norm of 3 (whoever has at most 3 rows keeps them all); "
        in release.guarantee.counted
    )


def test_a_stream_keeps_no_limits_by_cell_and_no_period() -> None:
    table = PEOPLE.append_column("day", pa.array([1] * len(PEOPLE), pa.int32()).cast(pa.date32()))
    counter = sf.Counter(8)
    for unit in ({"person": "who", "norm_per_person": 3}, {"person": ["who", "day"]}):
        publisher = sf.Publisher(sf.source(table, DOMAIN, name="p", **unit), budget=1)
        with pytest.raises(sf.UsageError, match="a stream keeps a limit"):
            publisher.open(counter, epsilon=1)
        assert publisher.remaining == 1


def test_the_log_says_what_was_charged_and_what_was_not(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="sfumato"), sf.Publisher(table(), budget="1") as publisher:
        first = publisher.release(sf.Histogram("x"), epsilon="0.25")
        again = publisher.release(sf.Histogram("x"), epsilon="0.25")
    assert caplog.messages == [
        "Charged to account 'default': Histogram of x.",
        "Stored answer, nothing spent: Histogram of x.",
    ]
    assert "stored answer, nothing spent" in repr(again)
    assert "stored" not in repr(first)


def test_nothing_is_logged_at_the_levels_that_scripts_show(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with sf.Publisher(table(), budget="1") as publisher:
        for _ in range(2):
            publisher.release(sf.Histogram("x"), epsilon="0.25")
    assert not caplog.messages
