"""``sfumato audit``, ``bench`` and ``doctor``: what this machine's own runs say of Sfumato.

The first tests whether each mechanism keeps within its privacy claim. The second measures how fast
this machine counts rows, draws noise, charges and releases, on generated rows, in a folder that is
removed in the end. The third checks that this machine is fit to publish.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import os
import platform
import shlex
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato import __version__
from sfumato.answers import discover
from sfumato.audit import COLUMNS, sentence
from sfumato.audit import audit as audited
from sfumato.audit.findings import Finding, Progress
from sfumato.cli.layers import LayeredCommand
from sfumato.cli.options import json_option, ledger_option, report_option
from sfumato.cli.output import emit_json, print_messages, table
from sfumato.cli.publishing import page_of
from sfumato.data import count, source
from sfumato.data.readers.spark import fitness
from sfumato.domain import Domain, Interval
from sfumato.errors import InternalError, LedgerError, SfumatoError, UsageError
from sfumato.ledger import open_ledger
from sfumato.mechanisms import DiscreteGaussian, DiscreteLaplace
from sfumato.publishing.publisher import Publisher
from sfumato.questions.histogram import Histogram
from sfumato.random.bits import current


@click.command(cls=LayeredCommand)
@click.option(
    "--quick/--deep",
    default=True,
    help="Quick takes about 7 minutes of one core; deep far longer, on larger data with more runs."
    "  [default: quick]",
)
@click.option(
    "--only",
    metavar="TEXT",
    help="Audit only the subjects with this text in their name.  [default: all]",
)
@report_option
@json_option
def audit(quick: bool, only: str | None, page: Path | None, as_json: bool) -> int:
    """Test whether each mechanism keeps within its privacy claim.

    The audit attacks the code and prints, beside each claim, how much privacy loss it could show.
    Exit code 70 means that a mechanism exceeds its claim or could not be judged.

    exact: the largest privacy loss over small neighbouring data sets, computed from the code that
    publishes. sampled: a lower bound on the loss, from outputs alone, at 99.9% confidence. Both
    are in the unit of the claim, epsilon or rho.

    least fault: the smallest loss that this run would have detected, as a multiple of the claim.
    A verdict of "no power" says that the run would have missed even a mechanism with half the
    noise. It is neither a pass nor a failure; the last line counts such rows.
    """
    refused = discover()
    if only is not None and only in refused:
        raise refused[only]
    with _progress_bar() as progress:
        findings = audited(not quick, progress, only=only, processes=os.cpu_count() or 1)
    said = page_of(findings, page, "What an audit found")
    if as_json:
        emit_json(findings)
    else:
        _show(findings)
        print_messages(sentence(findings))
    if only is None:
        print_messages(*(f"Left out: {refusal}" for refusal in refused.values()))
    print_messages(*said)
    return InternalError.exit_code if any(finding.failed for finding in findings) else 0


def _show(findings: Sequence[Finding]) -> None:
    if not sys.stdout.isatty():
        table(COLUMNS, [finding.row() for finding in findings])
        return
    # A terminal shortens long tables, so each subject has one of its own.
    for name, group in groupby(findings, key=attrgetter("subject")):
        rows = [finding.row()[1:] for finding in group]
        table(COLUMNS[1:], rows, title=name)


@contextmanager
def _progress_bar() -> Iterator[Progress | None]:
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("Auditing"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("")
        yield lambda done, total, name: bar.update(
            task, completed=done, total=total, description=name
        )


BINS = 32  # of each axis
SCALE = Fraction(100)  # of the noise


class Sizes(NamedTuple):
    """How much is done in each run, and how many runs there are."""

    rows: int
    draws: int
    charges: int
    runs: int


FULL = Sizes(rows=4_000_000, draws=1_000_000, charges=300, runs=5)
QUICK = Sizes(rows=400_000, draws=200_000, charges=30, runs=3)


class Figure(NamedTuple):
    """One line of the output, and with --json one object."""

    what: str
    figure: int | float
    unit: str


class Bench(LayeredCommand):
    """The command, which also says where its former subjects and options are."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options; a subject, or an option that has left, is refused."""
        for word in args:
            # Version 0.2.0 had these options; the repository does their work now.
            has_moved = word.partition("=")[0] in ("--peers", "--out")
            if has_moved or not word.startswith("-"):
                raise UsageError(
                    f"{ctx.command_path} {word}",
                    "this command measures your machine alone, and comparisons are run from a "
                    "checkout of Sfumato's repository",
                    f"Type there: python -m benchmarks {shlex.join(args)}",
                )
        return super().parse_args(ctx, args)


@click.command(cls=Bench)
@click.option("--quick", is_flag=True, help="Use smaller samples and fewer runs.")
@json_option
def bench(quick: bool, as_json: bool) -> None:
    """Measure how fast Sfumato is on this machine.

    It counts generated rows with and without persons, draws exact noise, makes durable charges,
    and publishes one small table. Figures are medians, by the clock on the wall. Nothing of yours
    is read, and nothing is left behind.
    """
    sizes = QUICK if quick else FULL
    with tempfile.TemporaryDirectory(prefix="sfumato-bench-") as name:
        folder = Path(name)
        figures = [*_counts(folder / "rows.parquet", sizes), _draws("Laplace", sizes)]
        figures += [_draws("Gaussian", sizes), _charges(folder / "charges.db", sizes)]
        figures.append(_release(folder / "budget.db", sizes))
    system = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    machine = f"Sfumato {__version__}, {system}, {os.cpu_count()} cores"
    if as_json:
        emit_json({"machine": machine, "figures": [figure._asdict() for figure in figures]})
    else:
        table(Figure._fields, figures, machine)
    print_messages(
        "Comparisons with other libraries are in docs/evidence/bench.md of Sfumato's repository, "
        "where python -m benchmarks --peers measures them."
    )


def _counts(path: Path, sizes: Sizes) -> Iterator[Figure]:
    generator = np.random.default_rng(1)
    columns = {name: generator.random(sizes.rows) for name in ("x", "y")}
    # A person has ten rows on average, of which four are counted.
    persons = generator.integers(0, sizes.rows // 10, sizes.rows)
    pq.write_table(pa.table({**columns, "person": persons}), path)
    domain = Domain(x=Interval(0, 1), y=Interval(0, 1))
    needs = [Histogram(["x", "y"], bins=BINS).needs(domain)]
    alone = source(path, domain)
    bounded = source(path, domain, person="person", rows_per_person=4)
    for what, rows in {"without persons": alone, "with persons": bounded}.items():
        seconds = _seconds(partial(count, rows, needs), sizes.runs)
        yield _rate(f"count a Parquet file, {what}", sizes.rows / seconds, "rows a second")


def _draws(name: str, sizes: Sizes) -> Figure:
    law = DiscreteLaplace(SCALE) if name == "Laplace" else DiscreteGaussian(SCALE**2)
    seconds = _seconds(lambda: law.sample(sizes.draws, current()), sizes.runs)
    return _rate(f"draw exact {name} noise", sizes.draws / seconds, "draws a second")


def _charges(path: Path, sizes: Sizes) -> Figure:
    """Charge a ledger in SQLite; each charge is on the disk before the next begins."""
    with open_ledger(path) as ledger:
        ledger.open_account("bench", "pure", (10**9, 0))
        keys = (f"question {number}" for number in itertools.count())
        seconds = _seconds(
            lambda: ledger.reserve("bench", next(keys), "0" * 64, (1, 0), "bench"), sizes.charges
        )
    return _rate("charge a ledger in a file", 1 / seconds, "charges a second")


def _release(path: Path, sizes: Sizes) -> Figure:
    """Publish a histogram of a small table: check, charge, count, add noise and store."""

    rows = np.random.default_rng(1).random((1000, 1))
    table = source(rows, Domain(x=Interval(0, 1)), name="bench")
    publisher = Publisher(table, ledger=path, account="bench", budget=10**6)
    question = Histogram("x", bins=BINS)
    seconds = _seconds(lambda: publisher.release(question, epsilon=1, fresh=True), 4 * sizes.runs)
    return _rate(f"publish {BINS} bins of 1,000 rows", 1000 * seconds, "milliseconds")


def _seconds(work: Callable[[], object], runs: int) -> float:
    """Median seconds of one call, after a first one that is not measured."""
    work()
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def _rate(what: str, value: float, unit: str) -> Figure:
    """A figure of three digits."""
    figure = float(f"{value:.3g}")
    return Figure(what, int(figure) if figure.is_integer() else figure, unit)


# --- sfumato doctor -------------------------------------------------------------------------------

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
