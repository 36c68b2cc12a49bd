"""What version 0.2 wrote is opened by the library of today: ledgers, releases and plans.

A row of ``WRITTEN`` is a folder that ``support/written.py`` filled. The next version adds its own.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.answers import registry
from sfumato.basics.structs import to_bytes
from sfumato.cli import run
from sfumato.ledger import Book, open_ledger
from sfumato.ledger.moving import migrate
from sfumato.ledger.postgres import PostgresStore
from sfumato.ledger.sqlite import SQLiteStore
from sfumato.publishing.verifying import verify, verify_signature
from sfumato.reports.page import report
from support import postgres, written

FIXTURES = Path(__file__).parents[1] / "fixtures"
WRITTEN = ("written_by_0_2",)
STORES = ("file", "server")
ACCOUNTS = tuple(written.ACCOUNTS)
FOLDER = FIXTURES / WRITTEN[0]
UPGRADED = FOLDER / "upgraded"
RELEASES = sorted(
    path
    for name in WRITTEN
    for path in (FIXTURES / name).rglob("*.json")
    if path.parent.name != "published"  # those are of version 0.1
)
PLANS = sorted(path for name in WRITTEN for path in (FIXTURES / name / "plans").glob("*.toml"))


@dataclass(frozen=True)
class Ledger:
    """A copy of a ledger, and who its spender is."""

    open: Callable[[], Book]
    spender: str


def copied(book: Path, folder: Path) -> Path:
    """A copy of a ledger and its secrets, with the modes that they were written with."""
    for name in (book.name, f"{book.name}.secrets"):
        shutil.copy(book.with_name(name), folder / name)
        os.chmod(folder / name, 0o600)
    return folder / book.name


def restored(dump: Path, folder: Path) -> str:
    """Restore a dump on the tests' server, and return the schema that its ledger is in."""
    import psycopg

    schema = postgres.schema_of(folder)
    text = dump.read_text("utf-8").replace(written.SCHEMA, schema)
    with psycopg.connect(postgres.address(), autocommit=True) as server:
        server.execute(text.encode())
    return schema


@pytest.fixture(params=[(name, store) for name in WRITTEN for store in STORES], ids=" ".join)
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    """A copy of each ledger that was written."""
    name, store = request.param
    if store == "file":
        path = copied(FIXTURES / name / "ledger.sqlite", tmp_path)
        yield Ledger(lambda: open_ledger(path, create=False), "ann")
        return
    schema = restored(FIXTURES / name / "ledger.sql", tmp_path)

    def open_book() -> Book:
        return Book(PostgresStore(postgres.address(), schema=schema, create=False))

    yield Ledger(open_book, "postgres")


def test_a_ledger_verifies(ledger: Ledger) -> None:
    with ledger.open() as book:
        found = book.verify()
        assert found.ok, found.faults
        heads = [(entry.sequence, entry.hash) for entry in book.log()]
        assert len(heads) == found.entries > 50
        assert book.verify(heads[9]).ok
        rules = {account.name: account.rule for account in book.accounts()}
    assert set(rules) == {*ACCOUNTS, "shared"}


@pytest.mark.parametrize("account", ACCOUNTS)
def test_answers_are_shown_again_at_no_cost(ledger: Ledger, account: str) -> None:
    _, cost = written.ACCOUNTS[account]
    with written.publisher(ledger.open(), account) as publisher:
        spent = publisher.account.spent
        for question in written.ANSWERED.values():
            assert publisher.release(question, **cost).replayed
        plan = publisher.release(written.PLAN, key="plan", **cost)
        assert [release.replayed for release in plan] == [True, True]
        assert publisher.account.spent == spent
        assert publisher.ledger.verify().ok


@pytest.mark.parametrize("key", written.LEFT)
@pytest.mark.parametrize("account", ACCOUNTS)
def test_a_charge_that_was_not_answered_is_resumed(ledger: Ledger, account: str, key: str) -> None:
    _, cost = written.ACCOUNTS[account]
    question = written.LEFT[key]
    with written.publisher(ledger.open(), account) as publisher:
        spent = publisher.account.spent
        with pytest.raises(sf.UsageError, match="stands for"):
            publisher.release(written.ANSWERED["mean"], key=key, **cost)
        assert not publisher.release(question, key=key, **cost).replayed
        assert publisher.release(question, key=key, **cost).replayed
        assert publisher.account.spent == spent
        assert publisher.ledger.verify().ok


@pytest.mark.parametrize("account", ACCOUNTS)
def test_a_stream_goes_on_where_it_stopped(ledger: Ledger, account: str) -> None:
    _, cost = written.ACCOUNTS[account]
    with written.publisher(ledger.open(), account) as publisher:
        spent = publisher.account.spent
        stream = publisher.open(written.STREAMS["open"], key="open", **cost)
        before = stream.history().values.tolist()
        assert len(before) == 2
        # A step that was taken is not taken again.
        again = stream.push(["A"], event="step 2", persons=["p1"])
        assert again.step == 2
        for step in (3, 4, 5):
            stream.push(["A", "C"], event=f"step {step}", persons=["p1", "p9"])
        assert stream.history().values.tolist()[:2] == before
        assert not stream.remaining
        over = publisher.open(written.STREAMS["finished"], key="finished", **cost)
        assert not over.remaining
        with pytest.raises(sf.UsageError, match="horizon"):
            over.push(1, event="step 3", persons=["p1"])
        assert publisher.account.spent == spent
        assert publisher.ledger.verify().ok


def test_limits_hold(ledger: Ledger) -> None:
    """The total of an account, and the ceiling of its data set."""
    with written.publisher(ledger.open(), "epsilon") as publisher:
        assert publisher.remaining == 2
        with pytest.raises(sf.BudgetExceeded):
            publisher.release(sf.Histogram("age"), epsilon="2.01")
    with sf.Publisher(
        written.source("epsilon"), ledger=ledger.open(), account="second", budget="9"
    ) as second:
        with pytest.raises(sf.BudgetExceeded, match="for epsilon"):
            second.release(sf.Histogram("age"), epsilon="3.01")
        assert second.account.spent == (0, 0)
        second.release(sf.Histogram("age"), epsilon="3")
        assert second.ledger.verify().ok
    for account, cost in (("delta", {"epsilon": "2.01"}), ("rho", {"rho": "5.51"})):
        with (
            written.publisher(ledger.open(), account) as publisher,
            pytest.raises(sf.BudgetExceeded),
        ):
            publisher.release(sf.Histogram("age"), **cost)


def test_a_spender_keeps_to_their_ceiling(ledger: Ledger) -> None:
    with sf.Publisher(
        written.source("shared"), ledger=ledger.open(), account="shared", spender=ledger.spender
    ) as theirs:
        assert theirs.remaining == 1
        assert theirs.release(written.ANSWERED["histogram"], epsilon="1").replayed
        with pytest.raises(sf.BudgetExceeded):
            theirs.release(written.ANSWERED["mean"], epsilon="1.01")
        theirs.release(written.ANSWERED["mean"], epsilon="1")
        assert theirs.remaining == 0
        assert theirs.ledger.verify().ok


def test_a_ledger_moves_to_another_store(ledger: Ledger, tmp_path: Path) -> None:
    with ledger.open() as book:
        entries = list(book.log())
        migrate(book._store, SQLiteStore(tmp_path / "moved.sqlite"))
    with open_ledger(tmp_path / "moved.sqlite") as book:
        assert list(book.log()) == entries
        assert book.verify().ok
    moved = open_ledger(tmp_path / "moved.sqlite")
    with written.publisher(moved, "rho") as publisher:
        assert publisher.release(written.ANSWERED["mean"], rho="0.5").replayed


@pytest.mark.parametrize("path", RELEASES, ids=lambda path: path.stem)
def test_a_release_is_read(path: Path) -> None:
    release = sf.load(path)
    assert to_bytes(release) == path.read_bytes()
    assert release.title
    assert release.to_frame().num_rows
    assert str(release.guarantee)
    release.accuracy()


@pytest.mark.parametrize("name", ["variance", "means"])
def test_stored_values_are_said_to_be_cut_to_their_steps(name: str) -> None:
    """Later versions round to the nearest step, and say so."""
    release = sf.load(FOLDER / "releases" / f"{name}.json")
    assert "each value cut to its step of 1" in release.about
    assert "nearest" not in release.about


def test_releases_of_every_kind_are_reported(tmp_path: Path) -> None:
    releases = {type(release): release for release in map(sf.load, RELEASES)}
    page = report([*releases.values()], tmp_path / "page.html").read_text("utf-8")
    assert "<h1" in page
    assert "added or removed" in page
    assert page.count('<section class="answer"') == len(releases)


def test_every_kind_of_release_was_written() -> None:
    kinds = {registry.tag_of(type(sf.load(path))) for path in RELEASES}
    assert kinds == {registry.tag_of(kind) for kind in registry.releases()}


@pytest.mark.parametrize("account", ACCOUNTS)
@pytest.mark.parametrize("name", [*written.ANSWERED, *written.STREAMS])
def test_a_release_is_what_the_ledger_has(account: str, name: str, tmp_path: Path) -> None:
    release = sf.load(FOLDER / f"{account}-{name}.json")
    with open_ledger(copied(FOLDER / "ledger.sqlite", tmp_path)) as book:
        verdict = verify(release, book)
        assert verdict.ok, verdict.reason
        signer = book.signer()
    assert signer is not None
    assert verify_signature(release, signer).ok


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_a_plan_is_checked_and_released(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["check", str(path)]) == 0
    assert run(["preview", str(path)]) == 0
    assert run(["release", str(path), "--ledger", "budget.db"]) == 0
    assert run(["ledger", "verify", "--ledger", "budget.db"]) == 0
