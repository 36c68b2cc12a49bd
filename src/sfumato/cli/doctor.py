"""``sfumato doctor``: check that this machine is fit to publish."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import click

from sfumato import __version__
from sfumato.cli.layers import LayeredCommand
from sfumato.cli.options import json_option, ledger_option
from sfumato.cli.output import emit_json, table
from sfumato.data.readers.spark import fitness
from sfumato.errors import InternalError, LedgerError, SfumatoError
from sfumato.ledger import open_ledger
from sfumato.mechanisms import DiscreteLaplace
from sfumato.random.bits import current

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
EXTRAS = {
    "dp-accounting": "risk",
    "xlsxwriter": "excel",
    "duckdb": "duckdb",
    "psycopg": "postgres",
    "adbc-driver-postgresql": "postgres",
}
DRAWS = 200_000
COMMITS = 50


class Line(NamedTuple):
    """One line of the output, and with --json one object."""

    check: str
    ok: bool
    detail: str


@click.command(cls=LayeredCommand)
@ledger_option
@json_option
def doctor(ledger: str | Path, as_json: bool) -> int:
    """Check that this machine is fit to publish: libraries, randomness, disk and ledger.

    Exit code 5 means that the disk or the ledger is at fault; 70, that a library is missing or the
    noise is wrong.
    """
    system = f"{__version__} on Python {platform.python_version()}, {platform.system()}"
    checks = [
        Line("sfumato", True, system),
        *_libraries(),
        # Nothing is wrong if tables in Spark cannot be counted.
        Line("spark", True, fitness()),
        _checked("randomness", _randomness),
        _checked("disk", lambda: _disk(ledger)),
        _checked("ledger", lambda: _ledger(ledger)),
    ]
    if as_json:
        emit_json([line._asdict() for line in checks])
    else:
        rows = [(line.check, "ok" if line.ok else "FAULT", line.detail) for line in checks]
        table(["check", "result", "detail"], rows)
    failed = {line.check for line in checks if not line.ok}
    if failed - {"ledger", "disk"}:
        return InternalError.exit_code
    return LedgerError.exit_code if failed else 0


def _checked(name: str, check: Callable[[], str]) -> Line:
    """Run a check that returns its detail, or raises."""
    try:
        return Line(name, True, check())
    except SfumatoError as error:
        return Line(name, False, str(error))
    except (OSError, sqlite3.Error, AssertionError) as error:
        return Line(name, False, f"{type(error).__name__}: the check failed")


def _libraries() -> tuple[Line, Line]:
    versions = {name: _version(name) for name in NEEDED}
    missing = [name for name, version in versions.items() if version is None]
    libraries = ", ".join(f"{name} {version}" for name, version in versions.items())
    if missing:
        libraries = f"missing: {', '.join(missing)}"
    # Nothing is wrong if an optional library is missing.
    extras = [
        f"{extra} ({name} {_version(name) or 'not installed'})" for name, extra in EXTRAS.items()
    ]
    return Line("libraries", not missing, libraries), Line("extras", True, ", ".join(extras))


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _randomness() -> str:
    """Draw noise twice: the draws must differ, and their spread must be that of the law."""
    law = DiscreteLaplace(Fraction(10))
    first = law.sample(DRAWS, current())
    second = law.sample(DRAWS, current())
    mean_square = float((first.astype(float) ** 2).mean())
    # The square of a Laplace variable has a relative variance of 5. Eight standard errors keep the
    # probability of a false alarm below 1e-9.
    tolerance = 8 * (5 / DRAWS) ** 0.5
    if (first == second).all() or abs(mean_square / law.variance - 1) > tolerance:
        raise AssertionError
    return (
        f"two draws of noise differ; their mean square is {mean_square:.1f}, "
        f"expected {law.variance:.1f}"
    )


def _disk(ledger: str | Path) -> str:
    """Commit to a database beside the ledger, with the ledger's own settings."""
    if isinstance(ledger, str):
        return "the ledger is in a database, whose server looks after its disk"
    folder = ledger.resolve().parent
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        connection = sqlite3.connect(Path(temporary) / "try.db", isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("CREATE TABLE t (x)")
            started = time.perf_counter()
            for i in range(COMMITS):
                connection.execute("INSERT INTO t VALUES (?)", (i,))
            rate = COMMITS / (time.perf_counter() - started)
        finally:
            connection.close()
    free = shutil.disk_usage(folder).free / 2**30
    return f"{free:,.0f} GiB free; {rate:,.0f} writes a second reach the disk safely"


def _ledger(ledger: str | Path) -> str:
    if isinstance(ledger, Path) and not ledger.exists():
        return f"{ledger} does not exist yet; the first release creates it"
    with open_ledger(ledger, create=False) as book:
        verification = book.verify()
        label = book.label
    if not verification.ok:
        raise LedgerError(
            f"verifying {label}", str(verification.fault), "Restore a copy that verifies"
        )
    return f"{label} verifies, with {verification.entries} entries"
