"""Families of tables beside separate tables, one full table that is summed, and mbi.

All have the same cost, rho = 1/8, for one row added or removed. The error is the mean over all
cells of the tables that were asked for of the squared error, and over draws of the noise. Without
privacy it is 0. mbi is given the separate tables, fits a graphical model to them, and gives the
tables of that model, which agree; its seconds are those of a later run, without the time to
compile. Only the tables of Sfumato have intervals.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from benchmarks import peers
from benchmarks.measuring import Chart, Row
from sfumato.basics.numbers import Array
from sfumato.demo import flights_path
from sfumato.domain.cube import Cube
from sfumato.domain.lattice import LabelAxis, Lattice
from sfumato.mechanisms.noise import add_noise, count_law
from sfumato.privacy.measures import ZCDP
from sfumato.privacy.unit import Unit
from sfumato.questions.tables.question import Tables
from sfumato.random.bits import current

SEPARATE = "separate tables"
SUMMED = "one full table, summed"
MBI = "mbi"
CHART = Chart("mean squared error", ("who", "family"), others=(SEPARATE, SUMMED, MBI))
RHO = ZCDP("0.125")
BINARY_AXES = 10


@dataclass(frozen=True, eq=False)
class Family:
    """Tables to publish.

    Attributes
    ----------
    name : str
    cube : Cube
        The true counts over all axes.
    tables : tuple of tuple of str
    """

    name: str
    cube: Cube
    tables: tuple[tuple[str, ...], ...]

    def margins(self, counts: Array) -> Array:
        """The tables of one table over all axes, one after another: shape (numbers,)."""
        names = self.cube.lattice.names
        whole = counts.reshape(self.cube.lattice.shape)
        found = []
        for table in self.tables:
            over = tuple(at for at, name in enumerate(names) if name not in table)
            kept = [name for name in names if name in table]
            sums = whole.sum(axis=over)
            found.append(sums.transpose([kept.index(name) for name in table]).reshape(-1))
        return np.concatenate(found)

    def sizes(self) -> list[int]:
        """How many cells each table has."""
        cells = dict(zip(self.cube.lattice.names, self.cube.lattice.shape, strict=True))
        return [int(np.prod([cells[name] for name in table])) for table in self.tables]


def rows(quick: bool = False) -> list[Row]:
    """Measure the flights and ten binary axes."""
    runs = 3 if quick else 20
    return [row for family in (flights(), binary()) for row in _of_family(family, runs)]


def flights() -> Family:
    """The flights out of New York: five tables that share carriers, hours and origins."""
    tables = (
        ("carrier", "hour"),
        ("carrier", "dest"),
        ("origin", "hour"),
        ("month", "carrier"),
        ("origin",),
    )
    names = ("carrier", "origin", "dest", "month", "hour")
    columns = pq.read_table(flights_path(), columns=list(names)).to_pydict()
    axes, places = [], []
    for name in names:
        labels, cells = np.unique(np.array(columns[name]).astype(str), return_inverse=True)
        axes.append(LabelAxis(name, tuple(labels.tolist())))
        places.append(cells)
    lattice = Lattice(tuple(axes))
    flat = np.ravel_multi_index(tuple(places), lattice.shape)
    return Family("flights", Cube(lattice, np.bincount(flat, minlength=lattice.size)), tables)


def binary() -> Family:
    """10^5 rows of ten binary axes, each like the one before it, and all tables of two axes."""
    rng = np.random.default_rng(7)
    values = rng.random((10**5, BINARY_AXES)) < 0.3
    for axis in range(1, BINARY_AXES):
        like_before = rng.random(len(values)) < 0.5
        values[like_before, axis] = values[like_before, axis - 1]
    names = [f"x{axis}" for axis in range(BINARY_AXES)]
    places = values @ (1 << np.arange(BINARY_AXES)[::-1])
    counts = np.bincount(places, minlength=2**BINARY_AXES)
    lattice = Lattice(tuple(LabelAxis(name, ("no", "yes")) for name in names))
    pairs = tuple(itertools.combinations(names, 2))
    return Family("all pairs of ten binary axes", Cube(lattice, counts), pairs)


def _of_family(family: Family, runs: int) -> list[Row]:
    dense = family.cube.counts
    truth = family.margins(dense)
    noisy, spreads = _separate(family, truth, runs)
    found = [_row(family, SEPARATE, noisy - truth, 0.0)]
    law = count_law(RHO, Unit())
    started = time.perf_counter()
    summed = [family.margins(add_noise(dense, law, current())) for _ in range(runs)]
    seconds = (time.perf_counter() - started) / runs
    found.append(_row(family, SUMMED, np.array(summed) - truth, seconds))
    found += _ours(family, truth, runs)
    found += _mbi(family, truth, noisy, spreads)
    return found


def _row(family: Family, who: str, errors: Array, seconds: float) -> Row:
    return {
        "family": family.name,
        "who": who,
        "mean squared error": float((errors**2).mean()),
        "seconds": seconds,
    }


def _separate(family: Family, truth: Array, runs: int) -> tuple[Array, Array]:
    """Each table with noise of its own, and the standard deviations of these."""
    share = ZCDP(RHO.rho / len(family.tables))
    law = count_law(share, Unit())
    noisy = np.array([add_noise(truth, law, current()) for _ in range(runs)])
    return noisy, np.full(len(family.tables), law.variance**0.5)


def _ours(family: Family, truth: Array, runs: int) -> list[Row]:
    question = Tables(family.tables)
    estimated, published = [], []
    seconds = np.zeros(2)
    for _ in range(runs):
        started = time.perf_counter()
        release = question.answer(family.cube, Unit(), RHO, current())
        estimated.append(release.values)
        answered = time.perf_counter()
        published.append(release.published())
        seconds += [answered - started, time.perf_counter() - answered]
    return [
        _row(family, "sfumato", np.array(estimated) - truth, float(seconds[0] / runs)),
        _row(family, "sfumato, published", np.array(published) - truth, float(seconds[1] / runs)),
    ]


def _mbi(family: Family, truth: Array, noisy: Array, spreads: Array) -> list[Row]:
    """The tables of the model that mbi fits to the separate ones, if it is installed."""
    if peers.python("mbi") is None:
        return [{"family": family.name, "who": peers.absent("mbi")}]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "noisy.npz")
        np.savez(path, sizes=family.cube.lattice.shape, spreads=spreads, noisy=noisy)
        seconds = peers.ask(
            "mbi",
            "tables",
            list[float],
            path=path,
            names=list(family.cube.lattice.names),
            asked=[list(table) for table in family.tables],
            runs=len(noisy),
        )
        fitted = np.load(f"{path}.fitted.npy")
    assert seconds is not None
    return [_row(family, MBI, fitted - truth, float(np.median(seconds[1:])))]
