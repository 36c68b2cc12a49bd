"""Addresses of databases: which texts are none, and that no part of a password is ever shown."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.basics.text import is_clear, kind_of, public_place
from sfumato.cli import run
from sfumato.data import source
from sfumato.data.addresses import read
from sfumato.data.readers.files import is_local
from sfumato.ledger import open_ledger

SECRET = "hunter2"
DOMAIN = sf.Domain(x=sf.Interval(0, 1))

FILES = (
    "budget.db",
    "a folder/budget 2026.db",
    "C:\\ledgers\\budget.db",
    "c:budget.db",
    "2026-11-22T10:30.db",
    "north:2026.db",
    "/srv/ledgers/duckdb:2026.db",
    "ada@home.db",
    "what?.db",
)
ADDRESSES = (
    f"duckdb:budget.db?password={SECRET}",
    f"DuckDB:{SECRET}.db",
    f"jdbc:postgresql://ada:{SECRET}@host/db",
    f"jdbc:sqlserver://host;password={SECRET}",
    f"postgresql+psycopg://ada:{SECRET}@host/db",
    f"postgresql:ada:{SECRET}@host/db",
    f"mysql://ada:{SECRET}@host/db",
    f"sqlite:budget.db?key={SECRET}",
    f"ada:{SECRET}@host/db",
    f"host=host sslpassword={SECRET}",
)
UNCLEAR = tuple(
    f"postgresql://ada:{password}@127.0.0.1:1/db"
    for password in (f"{SECRET}/{SECRET}", f"x@{SECRET}", f"x?{SECRET}", f"x#{SECRET}")
)


@pytest.mark.parametrize("path", FILES)
def test_the_name_of_a_file_is_no_address(path: str) -> None:
    assert kind_of(path) is None
    assert is_local(path)


def test_a_ledger_may_have_a_name_with_a_colon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for path in ("2026-11-22T10:30.db", "north:2026.db", tmp_path / "duckdb:2026.db"):
        open_ledger(path).close()
        assert Path(path).exists()


@pytest.mark.parametrize("address", [*ADDRESSES, *map(Path, ADDRESSES)])
def test_an_address_that_is_no_ledgers_makes_no_file(
    address: str | Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(sf.UsageError, match="a ledger is a file, or a PostgreSQL") as refusal:
        open_ledger(address)
    assert SECRET not in repr(refusal.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ADDRESSES)
def test_commands_refuse_such_a_ledger_without_quoting_it(
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["ledger", "init", "a", "--epsilon", "1", "--ledger", address]) == 2
    # As a word too many, and as an option that there is not.
    assert run(["ledger", "show", address]) == 2
    assert run(["ledger", "show", f"--ledgr={address}"]) == 2
    assert list(tmp_path.iterdir()) == []
    said = capsys.readouterr()
    assert "a ledger is a file" in said.err
    # A file may be named like these two.
    if address.partition(":")[0] not in ("DuckDB", "sqlite"):
        assert SECRET not in said.out + said.err


@pytest.mark.parametrize("address", [*ADDRESSES, *map(Path, ADDRESSES)])
def test_a_source_at_another_address_is_refused_without_quoting_it(address: str | Path) -> None:
    with pytest.raises(sf.SfumatoError) as refusal:
        source(address, DOMAIN)
    assert SECRET not in repr(refusal.value)


@pytest.mark.parametrize("address", UNCLEAR)
def test_an_address_is_refused_in_which_a_password_may_end_too_soon(address: str) -> None:
    assert not is_clear(address)
    assert SECRET not in public_place(address)
    assert SECRET not in str(read(f"{address}?table=t"))
    with pytest.raises(sf.UsageError, match="Write %40 for @") as of_ledger:
        open_ledger(address)
    with pytest.raises(sf.UsageError, match="not clear where") as of_source:
        source(f"{address}?table=t", DOMAIN)
    assert SECRET not in repr(of_ledger.value) + repr(of_source.value)


@pytest.mark.parametrize("name", ["password", "sslpassword", "passfile", "options", "token"])
def test_parameters_of_an_address_are_shown_nowhere(name: str) -> None:
    address = f"postgresql://127.0.0.1:1/db?connect_timeout=1&{name}={SECRET}"
    src = source(f"{address}&table=t", DOMAIN)
    shown = [repr(src), src.title, str(read(f"{address}&table=t"))]
    for failing in (src._reader.names, lambda: open_ledger(address)):
        with pytest.raises(sf.SfumatoError) as refusal:
            failing()
        shown += [repr(refusal.value), str(refusal.value)]
    assert not any(SECRET in text for text in shown)


def test_a_message_that_quotes_what_was_typed_leaves_passwords_out() -> None:
    error = sf.DataError(f"reading postgresql:/ada:{SECRET}@host/db", f"password={SECRET}", "Go")
    copied = pickle.loads(pickle.dumps(error))
    for one in (error, copied):
        assert SECRET not in repr(one) + str(one) + one.asked + one.obstacle
    assert "postgresql:/...@host/db" in str(error)


def test_words_that_hold_no_password_are_quoted_as_they_are() -> None:
    for text in (
        "postgresql://user@host/database",
        "a=b",
        "C:/x:y",
        "ada@home",
        "https://h:80/p",
        "a: b@c",
    ):
        assert sf.DataError(text, text, text).asked == text


def test_the_address_of_a_plan_keeps_what_is_harmless() -> None:
    address = "postgresql://ada:x@host/db?sslmode=require&table=t&sslpassword=x&port=5433"
    assert str(read(address)) == ("postgresql://host/db?sslmode=require&port=5433&table=t")
    assert str(read(f"duckdb:k.db?key={SECRET}&table=t")) == "duckdb:k.db?table=t"
