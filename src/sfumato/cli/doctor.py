"""``sfumato doctor``: is this machine fit to publish?"""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click

from sfumato import __version__
from sfumato.cli.options import json_option, ledger_option
from sfumato.cli.output import emit_json, table
from sfumato.errors import SfumatoError

NEEDED = (
    "numpy",
    "scipy",
    "pyarrow",
    "cryptography",
    "msgspec",
    "matplotlib",
    "jinja2",
    "click",
    "rich",
)
EXTRAS = {"dp-accounting": "risk"}


@click.command()
@ledger_option
@json_option
def doctor(ledger: Path, as_json: bool) -> int:
    """Check this machine: libraries, randomness, disk, ledger. Exit code 5 if the ledger is at fault, 70 if noise is."""
    checks = [
        (
            "sfumato",
            True,
            f"{__version__} on Python {platform.python_version()}, {platform.system()}",
        ),
        _libraries(),
        _extras(),
    ]
    checks += [
        _try("randomness", _randomness),
        _try("disk", lambda: _disk(ledger)),
        _try("ledger", lambda: _ledger(ledger)),
    ]
    if as_json:
        emit_json([{"check": name, "ok": ok, "detail": detail} for name, ok, detail in checks])
    else:
        table(
            ["check", "", "detail"],
            [(name, "ok" if ok else "FAULT", detail) for name, ok, detail in checks],
        )
    failed = {name for name, ok, _ in checks if not ok}
    return 70 if failed - {"ledger", "disk"} else 5 if failed else 0


def _try(name: str, check: Callable[[], str]) -> tuple[str, bool, str]:
    try:
        return name, True, check()
    except SfumatoError as error:
        return name, False, str(error)
    except (OSError, sqlite3.Error, AssertionError) as error:
        return name, False, f"{type(error).__name__}: the check failed"


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _libraries() -> tuple[str, bool, str]:
    found = {name: _version(name) for name in NEEDED}
    missing = [name for name, version in found.items() if version is None]
    return (
        "libraries",
        not missing,
        f"missing: {', '.join(missing)}"
        if missing
        else ", ".join(f"{n} {v}" for n, v in found.items()),
    )


def _extras() -> tuple[str, bool, str]:
    words = [
        f"{extra} ({name} {_version(name) or 'not installed'})" for name, extra in EXTRAS.items()
    ]
    return "extras", True, ", ".join(words)


def _randomness() -> str:
    """Draw enough noise to see that it is noise: two draws differ, and the spread is within eight standard errors."""
    from fractions import Fraction

    from sfumato.mechanisms.noise import DiscreteLaplace
    from sfumato.random.bits import current

    law, size = DiscreteLaplace(Fraction(10)), 200_000
    first, second = law.sample(size, current()), law.sample(size, current())
    spread = float((first.astype(float) ** 2).mean())
    if (first == second).all() or abs(spread / law.variance - 1) > 8 * (5 / size) ** 0.5:
        raise AssertionError
    return f"keystream and sampler sound: mean square {spread:.1f}, expected {law.variance:.1f}"


def _disk(ledger: Path) -> str:
    folder = ledger.resolve().parent
    with tempfile.TemporaryDirectory(dir=folder) as place:
        connection = sqlite3.connect(Path(place) / "try.db", isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("CREATE TABLE t (x)")
            started = time.perf_counter()
            for i in range(50):
                connection.execute("INSERT INTO t VALUES (?)", (i,))
            rate = 50 / (time.perf_counter() - started)
        finally:
            connection.close()
    return f"{shutil.disk_usage(folder).free / 2**30:,.0f} GiB free, {rate:,.0f} durable commits a second"


def _ledger(ledger: Path) -> str:
    from sfumato.errors import LedgerError
    from sfumato.ledger import open_ledger

    if not ledger.exists():
        return f"{ledger} does not exist yet"
    with open_ledger(ledger, create=False) as book:
        found = book.verify()
    if not found.ok:
        raise LedgerError(f"verifying {ledger}", str(found.fault), "Restore a copy that verifies")
    return f"{ledger}: {found.entries} entries, all in order"
