"""An older copy of a ledger that is put back is noticed by its anchor."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.cli import run
from sfumato.ledger import open_ledger
from sfumato.ledger.anchor import Anchor
from support.tampering import secrets_of

EMPTY = pa.table({"x": pa.array([], pa.float64()), "who": pa.array([], pa.string())})
DOMAIN = sf.Domain(x=sf.Interval(0, 1))


def test_an_older_copy_put_back_is_noticed_by_its_anchor(tmp_path):
    path = tmp_path / "b.db"
    anchor = tmp_path / "elsewhere" / "anchor"
    anchor.parent.mkdir()

    def copy(name: str) -> None:
        for file in (path, secrets_of(path)):
            shutil.copy(file, tmp_path / f"{name}{file.name}")

    def put_back(name: str) -> None:
        for file in (path, secrets_of(path)):
            shutil.copy(tmp_path / f"{name}{file.name}", file)
            os.chmod(file, 0o600)

    def book() -> sf.Publisher:
        return sf.Publisher(
            sf.source(EMPTY, DOMAIN, name="visits"),
            ledger=open_ledger(path, anchor=anchor),
            account="a",
            budget=sf.ZCDP("9"),
        )

    with book() as publisher:
        publisher.release(sf.Histogram("x"), rho="1")
        publisher.open(sf.Counter(9), rho="1", key="k").push(1)
    copy("one")
    with book() as publisher:
        publisher.open(sf.Counter(9), rho="1", key="k").push(1)
    copy("two")
    put_back("one")
    with pytest.raises(sf.LedgerError, match="older copy"):
        book()
    put_back("two")
    with book() as publisher:
        publisher.release(sf.Histogram("x", bins=3), rho="1")
    put_back("two")
    with pytest.raises(sf.LedgerError, match="older copy"):
        book()
    anchor.write_text("not an anchor\n")
    with pytest.raises(sf.LedgerError, match="anchor"):
        book()


def test_a_torn_line_of_an_anchor_says_nothing(path, tmp_path):
    """A full disk, or a loss of power, leaves the beginning of a line."""
    anchor = tmp_path / "anchor"
    whole = f"entry 12 {'ab' * 32}"
    for length in range(len(whole)):
        anchor.write_text(f"entry 3 {'cd' * 32}\n{whole[:length]}")
        assert Anchor(anchor).read().entry == (3, "cd" * 32)
        Anchor(anchor).note(f"entry 13 {'ef' * 32}")
        assert Anchor(anchor).read().entry == (13, "ef" * 32)
    anchor.write_text("entry " + "9" * 5000 + " " + "ab" * 32 + "\n")
    with pytest.raises(sf.LedgerError, match="not an anchor's"):
        Anchor(anchor).read()


def test_the_command_line_notices_an_older_copy_by_its_anchor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("x\n1\n2\n")
    asked = [
        "histogram",
        "t.csv",
        "--axis",
        "x=0..4",
        "--epsilon",
        "1",
        "--budget",
        "9",
        "--ledger",
        "b.db",
        "--anchor",
        "anchor",
    ]
    assert run(asked) == 0
    copies = {name: Path(name).read_bytes() for name in ("b.db", "b.db.secrets")}
    assert run([*asked, "--fresh"]) == 0
    assert run(asked) == 0
    assert "Nothing was spent: this is the stored answer." in capsys.readouterr().err
    assert run(["ledger", "verify", "--ledger", "b.db", "--anchor", "anchor"]) == 0
    for name, content in copies.items():
        Path(name).write_bytes(content)
    assert run(asked) == 5
    assert "older copy" in capsys.readouterr().err
    assert run(["ledger", "verify", "--ledger", "b.db"]) == 0
    assert run(["ledger", "verify", "--ledger", "b.db", "--anchor", "anchor"]) == 5
    assert "older copy" in capsys.readouterr().err


def test_a_line_that_does_not_fit_on_the_disk_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk may take the beginning of a line, and say how much it took instead of failing."""
    anchor = Anchor(tmp_path / "anchor")
    anchor.note(f"entry 1 {'0' * 64}")
    write = os.write
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda handle, text: write(handle, text[:20]))
        with pytest.raises(sf.LedgerError, match="disk is full"):
            anchor.note(f"entry 2 {'0' * 64}")
    assert anchor.read().entry == (1, "0" * 64)


@pytest.mark.parametrize("number", ["9" * 5000, "9" * 25])
def test_an_anchor_with_numbers_that_no_ledger_has_is_refused(number: str, tmp_path: Path) -> None:
    anchor = tmp_path / "anchor"
    for line in (f"entry {number} ab", f"stream {number} 1 ab", f"stream 1 {number} ab"):
        anchor.write_text(line + "\n")
        with (
            open_ledger(tmp_path / "b.db", anchor=anchor) as book,
            pytest.raises(sf.LedgerError, match="not an anchor's"),
        ):
            book.open_account("a", "pure", (1, 0))


def test_an_anchor_that_cannot_be_written_is_refused_before_the_charge(tmp_path: Path) -> None:
    source = sf.source(np.array([[1.0]]), sf.Domain(x=sf.Interval(0, 4)), name="t")
    with sf.Publisher(source, ledger=tmp_path / "b.db", account="a", budget="1"):
        pass
    book = open_ledger(tmp_path / "b.db", anchor=tmp_path / "no folder" / "anchor")
    with pytest.raises(sf.LedgerError, match="can be written"):
        sf.Publisher(source, ledger=book, account="a").release(
            sf.Histogram("x", bins=2), epsilon="1"
        )
    book.close()
    with open_ledger(tmp_path / "b.db") as book:
        assert book.account("a").spent == (0, 0)
    with pytest.raises(sf.UsageError, match="not a path"):
        open_ledger(tmp_path / "b.db", anchor=5)  # type: ignore[arg-type]
