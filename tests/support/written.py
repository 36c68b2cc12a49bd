"""What one version of the library writes, so that later ones can be tried on it.

``python tests/support/written.py tests/fixtures/written_by_0_2`` (with ``src`` and ``tests`` in
``PYTHONPATH``) writes a ledger in a file, one of a server, and a release of every kind. Each
version writes a folder of its own, once; the tests of later versions open them all.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

import numpy as np

import sfumato as sf
from sfumato.ledger import Book, open_ledger
from sfumato.ledger.postgres import PostgresStore
from sfumato.testing import deterministic
from support import every_kind, outputs, postgres

ROWS = 240
DOMAIN = sf.Domain(
    age=sf.Interval(0, 100, step=1),
    days=sf.Interval(0, 30),
    ward=sf.Categories(["A", "B", "C"], other="else"),
)
SCHEMA = "written_by"
"""Stands in a dump for the name of the ledger's schema."""

ACCOUNTS = {
    "epsilon": (sf.PureDP(9), {"epsilon": "1"}),
    "delta": (sf.ApproxDP(9, "0.01"), {"epsilon": "1", "delta": "0.001"}),
    "rho": (sf.ZCDP(9), {"rho": "0.5"}),
}
"""The budget of each account, and what each of its charges costs."""

ANSWERED = {
    "histogram": sf.Histogram(["age", "ward"], bins={"age": 10}),
    "mean": sf.Mean("days", by="ward"),
}
"""What was asked without a key."""

PLAN = [sf.Histogram("age", bins=5), sf.Quantiles("age")]
"""What was asked under the key "plan"."""

LEFT = {"failed": sf.Histogram("days", bins=6), "killed": sf.Histogram("days", bins=3)}
"""What was charged and never answered, by key: the process was told of an error, or was killed."""

STREAMS = {"open": sf.Counter(horizon=5, by="ward"), "finished": sf.Counter(horizon=2)}
"""Streams by key, of two steps each."""

STEPS = {
    "open": [(["A", "B"], ["p1", "p2"]), (["A"], ["p1"])],
    "finished": [(2, ["p1", "p2"]), (1, ["p1"])],
}
TOGETHER = sf.PureDP(10)
"""What all accounts of the data set of account "epsilon" may spend."""


def table() -> dict[str, object]:
    """The rows, from whole numbers alone."""
    at = np.arange(ROWS)
    return {
        "age": at * 37 % 101,
        "days": (at * 29 % 61) / 2,
        "ward": [["A", "B", "C", "D"][i * i % 4] for i in range(ROWS)],
        "patient": [f"p{i // 3}" for i in range(ROWS)],
    }


def source(account: str) -> sf.Source:
    """The rows as the data set of an account: each has its own, since measures do not add up."""
    import pyarrow as pa

    return sf.source(
        pa.table(table()), DOMAIN, person="patient", rows_per_person=3, name=f"for {account}"
    )


def publisher(book: Book, account: str) -> sf.Publisher:
    """A publisher at the expense of an account, as it was opened first."""
    budget, _ = ACCOUNTS[account]
    ceiling = TOGETHER if account == "epsilon" else None
    return sf.Publisher(
        source(account), ledger=book, account=account, budget=budget, ceiling=ceiling
    )


def spend(account: str, open_book: Callable[[], Book]) -> dict[str, sf.Release]:
    """Lead an account through all that a ledger keeps; return what it published."""
    _, cost = ACCOUNTS[account]
    with open_book() as book, publisher(book, account) as paying:
        published: dict[str, sf.Release] = {
            name: paying.release(question, **cost) for name, question in ANSWERED.items()
        }
        paying.release(PLAN, key="plan", **cost)
        for key, counter in STREAMS.items():
            with paying.open(counter, key=key, **cost) as stream:
                for number, (rows, persons) in enumerate(STEPS[key]):
                    stream.push(rows, event=f"step {number + 1}", persons=persons)
                published[key] = stream.history()
        with (
            patch("sfumato.publishing.counting.count", side_effect=ZeroDivisionError),
            suppress(sf.InternalError),
        ):
            paying.release(LEFT["failed"], key="failed", **cost)
    child = os.fork()
    if not child:
        with (
            patch("sfumato.publishing.counting.count", side_effect=lambda *_, **__: os._exit(0)),
            open_book() as book,
        ):
            publisher(book, account).release(LEFT["killed"], key="killed", **cost)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    return published


def share(book: Book, spender: str) -> None:
    """Give an account to a spender, who spends half of what they may."""
    book.open_account("shared", "pure", (3 * 10**9, 0))
    book.add_spender("shared", spender, (2 * 10**9, 0))
    with sf.Publisher(source("shared"), ledger=book, account="shared", spender=spender) as theirs:
        theirs.release(ANSWERED["histogram"], epsilon="1")


def write_ledgers(folder: Path) -> None:
    """Write the ledger in a file, and a dump of the one on a server."""
    path = folder / "ledger.sqlite"
    with open_ledger(path) as book:
        book.signer(create=True)
    for account in ACCOUNTS:
        for name, release in spend(account, lambda: open_ledger(path)).items():
            release.save(folder / f"{account}-{name}.json")
    with open_ledger(path) as book:
        share(book, "ann")

    def on_server() -> Book:
        return Book(PostgresStore(postgres.address(), schema=SCHEMA))

    for account in ACCOUNTS:
        spend(account, on_server)
    with on_server() as book:
        share(book, "postgres")
    (folder / "ledger.sql").write_text(dump(), encoding="utf-8")


def dump() -> str:
    """The ledger of the server as SQL, without the lines that psql or new servers alone read."""
    # The package ships several versions, of which the server is the last.
    program = max(Path(postgres.package().__file__).parent.glob("pginstall*/bin/pg_dump"))
    names = [f"--schema={SCHEMA}", f"--schema={SCHEMA}_secrets"]
    found = subprocess.run(
        [program, "--inserts", "--no-owner", *names, postgres.address()],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = found.stdout.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(("\\", "SET transaction_timeout")))


def write_releases(folder: Path) -> None:
    """Write a release of every kind of question, and by every method."""
    folder.mkdir()
    for name, release in every_kind.releases().items():
        release.save(folder / f"{file_name(name)}.json")
    for name, (question, cost) in outputs.QUESTIONS.items():
        budget = sf.ZCDP(100) if "rho" in cost else sf.ApproxDP(100, "0.5")
        with deterministic(2026), sf.Publisher(outputs.source(), budget=budget) as paying:
            paying.release(question, **cost).save(folder / f"{file_name(name)}-2.json")


def file_name(words: str) -> str:
    """Words as the name of a file."""
    return words.replace(",", "").replace(" ", "-")


def main(folder: Path) -> None:
    """Write everything to a new folder."""
    import pyarrow as pa
    import pyarrow.csv

    folder.mkdir()
    pyarrow.csv.write_csv(pa.table(table()), folder / "rows.csv")
    write_ledgers(folder)
    write_releases(folder / "releases")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
