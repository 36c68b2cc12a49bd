"""What was paid for is paid once: by the state of the data, and from one seed in every attempt."""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.basics.processes import current
from sfumato.ledger import Book, Hold, open_ledger
from sfumato.ledger.postgres import PostgresStore
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.publishing import answering
from sfumato.publishing.counting import Draws
from sfumato.publishing.verifying import verify
from sfumato.random.bits import Bits
from support import every_kind, postgres
from support.statistics import check_law
from support.tampering import secrets_of
from support.workers import AfterStatement, Worker, statements

DOMAIN = sf.Domain(age=sf.Interval(0, 100))
AGES = sf.Histogram("age", bins=4)
HALF: dict[str, Any] = {"epsilon": "0.5"}


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return written(tmp_path / "visits.csv", 50)


def written(path: Path, rows: int, day: int = 1) -> Path:
    """A file of so many rows, last changed on a day of January 2026."""
    path.parent.mkdir(exist_ok=True)
    path.write_text("age\n" + "".join(f"{17 * i % 100}\n" for i in range(rows)))
    at = 1_767_225_600 + 86_400 * day
    os.utime(path, (at, at))
    return path


def opened(data: object, ledger: Path, **source: Any) -> sf.Publisher:
    return sf.Publisher(
        sf.source(data, DOMAIN, **source), ledger=ledger, account="ages", budget="9"
    )


def spent(ledger: Path) -> Fraction:
    with open_ledger(ledger) as book:
        assert book.verify().ok
        return Fraction(book.account("ages").spent[0], 10**9)


# --- by the state of the data ---------------------------------------------------------------------


def test_a_file_that_was_changed_is_told_and_nothing_is_spent(ledger: Path, table: Path) -> None:
    with opened(table, ledger) as publisher:
        first = publisher.release(AGES, **HALF)
    for rows, day in ((51, 2), (50, 2), (49, 1)):
        # The last has another size at the same time; the one before, equal content at another.
        written(table, rows, day)
        with opened(table, ledger) as publisher:
            with pytest.raises(sf.StoredElsewhere) as told:
                publisher.release(AGES, **HALF)
            assert first.receipt is not None
            assert (told.value.entry, told.value.day) == (
                first.receipt.entry,
                first.receipt.time[:10],
            )
            assert "2026-01" not in str(told.value)
            # Another question, or another cost, was never paid for.
            assert not publisher.release(AGES, epsilon="0.01", fresh=True).replayed
    assert spent(ledger) == Fraction("0.53")
    written(table, 50, 1)
    with opened(table, ledger) as publisher:
        assert publisher.release(AGES, **HALF) == first


def test_time_size_and_number_of_files_are_told_alike(ledger: Path, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    written(folder / "a.csv", 30)
    written(folder / "b.csv", 20)
    with opened(str(folder / "*.csv"), ledger) as publisher:
        publisher.release(AGES, **HALF)

    def told() -> str:
        with (
            opened(str(folder / "*.csv"), ledger) as publisher,
            pytest.raises(sf.StoredElsewhere) as refusal,
        ):
            publisher.release(AGES, **HALF)
        return str(refusal.value)

    said = []
    written(folder / "a.csv", 30, day=2)
    said.append(told())
    written(folder / "a.csv", 31)
    said.append(told())
    written(folder / "c.csv", 1)
    said.append(told())
    (folder / "a.csv").unlink()
    said.append(told())
    assert len(set(said)) == 1
    assert spent(ledger) == Fraction("0.5")


def test_a_version_or_a_fresh_draw_pays_and_is_found_again(ledger: Path, table: Path) -> None:
    with opened(table, ledger) as publisher:
        first = publisher.release(AGES, **HALF)
    written(table, 60, 2)
    with opened(table, ledger, version="february") as publisher:
        assert not publisher.release(AGES, **HALF).replayed
        assert publisher.release(AGES, **HALF).replayed
    with opened(table, ledger) as publisher:
        fresh = publisher.release(AGES, fresh=True, **HALF)
        assert publisher.release(AGES, **HALF) == fresh != first
    assert spent(ledger) == Fraction("1.5")
    written(table, 61, 3)
    with (
        opened(table, ledger, version="february") as publisher,
        pytest.raises(sf.StoredElsewhere),
    ):
        publisher.release(AGES, **HALF)
    with opened(table, ledger, name="another name") as publisher:
        assert not publisher.release(AGES, **HALF).replayed


def test_the_name_and_the_options_are_the_place(ledger: Path, table: Path, tmp_path: Path) -> None:
    with opened(table, ledger, name="visits") as publisher:
        publisher.release(AGES, **HALF)
    moved = written(tmp_path / "moved.csv", 70)
    parquet = tmp_path / "moved.parquet"
    pq.write_table(pa.table({"age": [1.0, 2.0]}), parquet)
    for data in (moved, parquet):
        with (
            opened(data, ledger, name="visits") as publisher,
            pytest.raises(sf.StoredElsewhere),
        ):
            publisher.release(AGES, **HALF)
    with opened(moved, ledger, name="visits", thousands=",") as publisher:
        assert not publisher.release(AGES, **HALF).replayed


def test_last_months_plan_on_this_months_file_is_told(ledger: Path, table: Path) -> None:
    plan = sf.Plan([AGES, sf.Quantiles("age", at=["0.5"])], shares=[1, 2])
    with opened(table, ledger) as publisher:
        january = publisher.release(plan, epsilon="1")
    written(table, 80, 30)
    with opened(table, ledger) as publisher:
        with pytest.raises(sf.StoredElsewhere, match="paid for it on"):
            publisher.release(plan, epsilon="1")
        stored = publisher.release(plan, epsilon="1", stored=True)
    assert [release.receipt.as_of for release in stored if release.receipt] == [
        release.receipt.time[:10] for release in january if release.receipt
    ]
    assert spent(ledger) == 1


def test_a_charge_of_before_has_no_place_and_pays_as_it_did(ledger: Path, table: Path) -> None:
    with opened(table, ledger) as publisher:
        publisher.release(AGES, **HALF)
        secrets = publisher.ledger._opened_secrets().store

        def forget(rows: Any) -> None:
            ((account, name, derived),) = rows.names()
            rows.keep(account, name._replace(place=None), derived=derived)

        secrets.writing(forget)
        assert publisher.release(AGES, **HALF).replayed
    written(table, 51, 2)
    with opened(table, ledger) as publisher:
        assert not publisher.release(AGES, **HALF).replayed


# --- stored=True ----------------------------------------------------------------------------------


@pytest.mark.parametrize("has_key", [False, True])
def test_a_stored_answer_says_its_day_everywhere(
    ledger: Path, table: Path, tmp_path: Path, has_key: bool
) -> None:
    with opened(table, ledger) as publisher:
        publisher.ledger.signer(create=has_key) if has_key else None
        first = publisher.release(AGES, **HALF)
    written(table, 51, 2)
    with opened(table, ledger) as publisher:
        stored = publisher.release(AGES, stored=True, **HALF)
        assert stored.replayed
        assert stored.values.tolist() == first.values.tolist()
        receipt = stored.receipt
        assert receipt is not None
        day = receipt.time[:10]
        assert receipt.as_of == day
        loaded = sf.load(stored.save(tmp_path / "stored.json"))
        said = f"As of {day}: the data may have changed since"
        page = Path(sf.report([stored], tmp_path / "page.html")).read_text()
        for text in (str(stored), stored._repr_html_(), stored.scope, str(loaded), page):
            assert said in text
        assert f"as of {day}" in repr(stored)
        (dated,) = [text for name, text in receipt.lines() if name == "As of"]
        assert dated.startswith(f"{day}: {said.partition(': ')[2]}")
        verdict = verify(loaded, publisher.ledger)
        assert verdict.ok, verdict.reason
        edited = receipt.__class__(**{**_fields(receipt), "as_of": "2026-01-01"})
        assert not verify(_with(loaded, edited), publisher.ledger).ok
    assert spent(ledger) == Fraction("0.5")


def _fields(receipt: sf.Receipt) -> dict[str, Any]:
    return {name: getattr(receipt, name) for name in receipt.__struct_fields__}


def _with(release: sf.Release, receipt: sf.Receipt) -> sf.Release:
    from msgspec.structs import replace

    return replace(release, receipt=receipt)


def test_where_nothing_is_stored_it_is_refused_and_nothing_charged(
    ledger: Path, table: Path
) -> None:
    with opened(table, ledger) as publisher:
        for source in ({}, {"epsilon": "0.25"}):
            with pytest.raises(sf.UsageError, match="has none at this cost"):
                publisher.release(AGES, stored=True, **(HALF | source))
            publisher.release(AGES, fresh=True, epsilon="0.125")
    assert spent(ledger) == Fraction("0.25")
    with opened(table, ledger, version="2") as publisher, pytest.raises(sf.UsageError):
        publisher.release(AGES, stored=True, epsilon="0.125")


@pytest.mark.parametrize("other", [{"fresh": True}, {"key": "k"}])
def test_it_goes_with_neither_fresh_nor_a_key(
    ledger: Path, table: Path, other: dict[str, Any]
) -> None:
    with opened(table, ledger) as publisher:
        publisher.release(AGES, **HALF)
        with pytest.raises(sf.UsageError, match="pays for none"):
            publisher.release(AGES, stored=True, **HALF, **other)
        with pytest.raises(sf.UsageError, match="true or false"):
            publisher.release(AGES, stored="yes", **HALF)
    assert spent(ledger) == Fraction("0.5")


# --- one seed in every attempt --------------------------------------------------------------------


class Killed(KeyboardInterrupt):
    """Stands for the end of a process."""


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The answers that attempts would have stored; none of them does."""
    drawn: list[bytes] = []

    def die(hold: Hold, payload: bytes) -> bytes:
        drawn.append(payload)
        raise Killed

    monkeypatch.setattr(Hold, "store", die)
    return drawn


@pytest.mark.parametrize("kind", every_kind.QUESTIONS)
def test_every_attempt_draws_the_same(
    kind: str, attempts: list[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    question, cost = every_kind.QUESTIONS[kind]
    rows = tmp_path / "rows.parquet"
    pq.write_table(every_kind.source()._data, rows)  # type: ignore[arg-type]

    def ask(before: bool) -> sf.Release:
        src = sf.source(rows, every_kind.DOMAIN, person="id", rows_per_person=2)
        with sf.Publisher(
            src, ledger=tmp_path / "b.db", account="a", budget=sf.ApproxDP(90, "0.5")
        ) as publisher:
            if before:  # counts at hand, of rows that are chosen for another charge
                with monkeypatch.context() as patch:
                    patch.setattr(Hold, "store", stores)
                    publisher.release(sf.Histogram(["year", "carrier"]), epsilon="1", fresh=True)
            return publisher.release(question, **cost)

    for before in (True, False, True):
        with pytest.raises(Killed):
            ask(before)
    assert len(attempts) == 3
    assert len(set(attempts)) == 1
    monkeypatch.setattr(Hold, "store", stores)
    with open_ledger(tmp_path / "b.db") as book:
        spent_before = book.account("a").spent
    ask(before=False)
    with open_ledger(tmp_path / "b.db") as book:
        assert book.account("a").spent == spent_before
        number = max(entry.sequence for entry in book.log() if entry.kind == "reserve")
        stored = [book.answer(entry.sequence) for entry in book.log() if entry.kind == "reserve"]
    assert number
    assert attempts[0] in stored


stores = Hold.store


def test_what_is_kept_is_read_back(tmp_path: Path) -> None:
    publisher = sf.Publisher(every_kind.source(), ledger=tmp_path / "b.db", budget="9,0.5")
    for question, _ in every_kind.QUESTIONS.values():
        plan = sf.Plan([question]).settled(every_kind.DOMAIN)
        needs = plan.needs(every_kind.DOMAIN)
        counting = publisher._answering.counting
        rows = counting.proposed_choice("state", sf.random.bits.current(), needs)
        draws = Draws(bytes(range(32)), rows)
        assert Draws.of(draws.kept()) == draws


def published(rounds: int, kill_above: float, kills: int) -> list[int]:
    """The noise of published counts, where large ones are killed several times before they are."""
    rows = sf.source(np.zeros((0, 1)), sf.Domain(x=sf.Interval(0, 1)), name="none")
    question = sf.Histogram("x", bins=2)
    noise = []
    with sf.Publisher(rows, budget=rounds) as publisher:
        for number in range(rounds):
            left = kills

            def store(hold: Hold, payload: bytes) -> bytes:
                nonlocal left
                (release,) = answering.read_stored(
                    _stored(payload), [question.uncaptioned().as_in_files()]
                )
                if left and release.values[0] > kill_above:
                    left -= 1
                    raise Killed
                return stores(hold, payload)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Hold, "store", store)
                noise.append(_until_published(publisher, question, f"{number}"))
    return noise


def _stored(payload: bytes) -> Any:
    class Answered:
        stored = payload

    return Answered()


def _until_published(publisher: sf.Publisher, question: sf.Histogram, key: str) -> int:
    while True:
        try:
            return int(publisher.release(question, epsilon=1, key=key).values[0])
        except Killed:
            pass


LAW = DiscreteLaplace(Fraction(1))


def test_kills_on_large_outputs_leave_the_law_of_what_is_published() -> None:
    check_law(np.array(published(300, 0, 3)), LAW, near_miss=DiscreteLaplace(Fraction(2)))


def test_with_fresh_noise_in_each_attempt_they_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: what 0.2.0 did, as often as it is asked."""

    def of_process(seed: bytes, in_force: Bits) -> Bits:
        return in_force

    monkeypatch.setattr(answering, "of_charge", of_process)
    with pytest.raises(AssertionError):
        check_law(np.array(published(300, 0, 3)), LAW, near_miss=DiscreteLaplace(Fraction(2)))


def test_another_state_of_the_data_is_given_neither_the_seed_nor_the_charge(
    ledger: Path, table: Path, attempts: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(table, ledger) as publisher, pytest.raises(Killed):
        publisher.release(AGES, **HALF)
    written(table, 51, 2)
    with opened(table, ledger) as publisher:
        with pytest.raises(sf.StoredElsewhere, match="has no answer"):
            publisher.release(AGES, **HALF)
        with pytest.raises(Killed):
            publisher.release(AGES, fresh=True, **HALF)
        assert len(publisher.ledger._opened_secrets().store.reading(lambda r: r.seeds())) == 2
    assert len(set(attempts)) == 2
    written(table, 50, 1)
    monkeypatch.setattr(Hold, "store", stores)
    with opened(table, ledger) as publisher:
        release = publisher.release(AGES, **HALF)
    with open_ledger(ledger) as book:
        assert release.receipt is not None
        assert book.answer(release.receipt.entry) == attempts[0]
    assert spent(ledger) == 1


def test_a_key_that_a_refusal_left_free_chooses_rows_for_the_question_that_pays(
    tmp_path: Path, ledger: Path
) -> None:
    """The refused one was about a column that the other table does not have."""
    answers = []
    for name, cost in (("age", "5"), ("height", "0.5")):
        rows = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table({"id": [1, 1, 2, 2], name: [1.0, 2.0, 3.0, 4.0]}), rows)
        people = sf.source(rows, sf.Domain({name: sf.Interval(0, 4)}), person="id")
        with sf.Publisher(people, ledger=ledger, account="ages", budget="1") as publisher:
            try:
                answers.append(publisher.release(sf.Histogram(name), epsilon=cost, key="k"))
            except sf.BudgetExceeded:
                assert name == "age"
    (answer,) = answers
    assert answer.counts.shape == (10,)
    assert spent(ledger) == Fraction("0.5")


def test_the_seed_is_in_no_file_once_the_answer_is_stored(
    ledger: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds: list[bytes] = []

    def store(hold: Hold, payload: bytes) -> bytes:
        seeds.append(hold.seed)
        assert any(hold.seed in content for content in _files(ledger))
        return stores(hold, payload)

    monkeypatch.setattr(Hold, "store", store)
    with opened(table, ledger) as publisher:
        for number in range(5):
            publisher.release(AGES, epsilon="0.1", key=f"{number}")
            for seed in seeds:
                assert not any(_holds(content, seed) for content in _files(ledger))
    assert len(set(seeds)) == 5


def _files(ledger: Path) -> list[bytes]:
    return [path.read_bytes() for path in secrets_of(ledger).parent.glob("budget.db*")]


def _holds(content: bytes, seed: bytes) -> bool:
    """Whether any eighth of a key is in a file."""
    return any(seed[start : start + 8] in content for start in range(0, 64, 8))


# --- kills ----------------------------------------------------------------------------------------


LEDGERS: dict[str, Callable[[Path], Book]] = {
    "SQLite": lambda folder: open_ledger(folder / "budget.db"),
    "PostgreSQL": lambda folder: Book(
        PostgresStore(postgres.address(), schema=postgres.schema_of(folder))
    ),
}


@pytest.mark.skipif(not current(), reason="this system does not tell who has died")
@pytest.mark.parametrize("kind", LEDGERS)
@pytest.mark.parametrize("stride", [4, pytest.param(1, marks=pytest.mark.deep)])
def test_killed_after_any_statement_no_charge_is_lost_and_one_answer_is_drawn(
    kind: str, stride: int, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each process that dies has a server's connections of its own.
    def release(number: int) -> sf.Release:
        src = sf.source(table, DOMAIN)
        with sf.Publisher(src, ledger=LEDGERS[kind](tmp_path), account="ages") as publisher:
            return publisher.release(sf.Histogram("age", bins=number + 2), epsilon="0.1")

    def noting(hold: Hold, payload: bytes) -> bytes:
        with (tmp_path / "drawn").open("ab") as drawn:
            drawn.write(payload + b"\n")
        return stores(hold, payload)

    with LEDGERS[kind](tmp_path) as book:
        book.open_account("ages", "pure", (100 * 10**9, 0))
    release(0)  # which binds the account
    last = statements(lambda: release(1))
    monkeypatch.setattr(Hold, "store", noting)
    numbers = range(2, last, stride)
    for number in numbers:
        Worker(partial(release, number), AfterStatement(number)).join()
        answer = release(number)
        assert answer.receipt is not None
        with LEDGERS[kind](tmp_path) as book:
            stored = book.answer(answer.receipt.entry)
        attempts = set((tmp_path / "drawn").read_bytes().splitlines())
        (tmp_path / "drawn").write_bytes(b"")
        assert attempts == {stored}
    with LEDGERS[kind](tmp_path) as book:
        kinds = [entry.kind for entry in book.log()]
        assert kinds.count("reserve") == kinds.count("store") == 2 + len(numbers)
        assert book.account("ages").spent == ((2 + len(numbers)) * 10**8, 0)
        assert book.verify().ok
        assert not book._opened_secrets().store.reading(lambda rows: rows.seeds())
