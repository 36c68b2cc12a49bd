"""Numbers of rows of made-up persons, their bins, and releases about them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import sfumato as sf
from sfumato.basics.numbers import Array
from sfumato.demo import flights_path
from sfumato.mechanisms.noise import Law, count_law
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.persons.measured import Spread, upper_ends
from sfumato.questions.persons.question import Persons
from sfumato.random import PublicSeed

DOMAIN = sf.Domain(hour=sf.Interval(0, 24, step=1))
UNIT = Unit(person="rider")


def pareto(n: int, seed: int = 1) -> Array:
    """Numbers of rows with a power law of exponent 1.5."""
    rng = np.random.default_rng(seed)
    return np.floor(rng.pareto(1.5, n) + 1).astype(np.int64)


def lognormal(n: int, seed: int = 1) -> Array:
    """Numbers of rows whose logarithm is normal, with mean 1 and deviation 1."""
    rng = np.random.default_rng(seed)
    return np.maximum(1, np.rint(rng.lognormal(1, 1, n))).astype(np.int64)


def binned(rows: Array, most_rows: int | None) -> Array:
    """The true number of persons in each bin."""
    ends = np.array(upper_ends(most_rows))
    at = np.searchsorted(ends, np.minimum(rows, ends[-1]))
    return np.bincount(at, minlength=len(ends))


def law_at(epsilon: str, unit: Unit = UNIT) -> Law:
    """The noise on each bin at a cost."""
    return count_law(PureDP(Fraction(epsilon)), unit)


def release_of(
    rows: Array, most_rows: int | None = 100, epsilon: str = "1", seed: int = 1, unit: Unit = UNIT
) -> sf.PersonsRelease:
    """The answer about persons with these numbers of rows, from a public seed."""
    question = Persons(most_rows)
    counts = binned(rows, most_rows)
    law = law_at(epsilon, unit)
    return sf.PersonsRelease(
        most_rows=most_rows,
        domain=tuple(DOMAIN.items()),
        counts=counts + law.sample(len(counts), PublicSeed(seed)),
        law=law,
        guarantee=question.promise(
            PureDP(Fraction(epsilon)), unit.of_all_rows, str(law), PublicSeed(seed)
        ),
    )


def spread_of(
    numbers: Array,
    of: Literal["cells", "norm", "largest-cell"],
    most: int = 100,
    epsilon: str = "1",
    seed: int = 1,
    **table: Any,
) -> sf.PersonsRelease:
    """The answer about persons of whom these numbers were measured, in the cells of a table."""
    axes = table.pop("axes", ("hour",))
    rows = release_of(numbers, most, epsilon, seed)
    promise = Persons(most, of, axes, **table).promise(
        PureDP(Fraction(epsilon)), UNIT.of_all_rows, str(rows.law), PublicSeed(seed)
    )
    most_rows = None if of == "cells" else most
    spread = Spread(of, axes, most, **table)
    return msgspec.structs.replace(rows, spread=spread, most_rows=most_rows, guarantee=promise)


def flights() -> Array:
    """How many flights each aircraft of the demo has."""
    tails = pq.read_table(flights_path(), columns=["tailnum"])["tailnum"].drop_null()
    numbers = pc.value_counts(tails).field("counts")
    return np.asarray(numbers)


def flights_by_cell(*columns: str, delay_bins: int = 29) -> tuple[Array, Array]:
    """The person and the cell of every flight of a table, as numbers from 0 on; delays in bins."""
    table = pq.read_table(flights_path(), columns=["tailnum", *columns]).drop_null()
    cells = np.zeros(len(table), np.int64)
    for name in columns:
        if name == "dep_delay":
            delays = np.asarray(table[name], float)
            codes = np.clip((delays + 60) * delay_bins // 300, 0, delay_bins - 1).astype(np.int64)
        else:
            codes = _numbered(table[name])
        cells = cells * (codes.max() + 1) + codes
    return _numbered(table["tailnum"]), cells


def _numbered(column: pa.ChunkedArray) -> Array:
    """Number the distinct values of a column from 0 on."""
    return np.unique(np.asarray(column.to_pylist()), return_inverse=True)[1]


def norms(persons: Array, cells: Array) -> Array:
    """The L2 norm of each person's counts, rounded up."""
    pairs, counts = np.unique(persons * (cells.max() + 1) + cells, return_counts=True)
    squares = np.bincount(pairs // (cells.max() + 1), weights=counts.astype(float) ** 2)
    return np.asarray(np.ceil(np.sqrt(squares[squares > 0]) - 1e-9), np.int64)


def kept_within_norms(persons: Array, cells: Array, most: int, seed: int = 1) -> Array:
    """How many rows each limit on the norm keeps, from 1 to ``most``: of each person's rows, in
    random order, those up to the first with which the norm would be larger.
    """
    order = np.lexsort([np.random.default_rng(seed).random(len(persons)), persons])
    persons, cells = persons[order], cells[order]
    by_cell = np.lexsort([np.arange(len(persons)), cells, persons])
    is_new = np.ones(len(persons), bool)
    is_new[1:] = (np.diff(persons[by_cell]) != 0) | (np.diff(cells[by_cell]) != 0)
    starts = np.flatnonzero(is_new)
    ranks = np.empty(len(persons), np.int64)
    ranks[by_cell] = np.arange(len(persons)) - starts[np.cumsum(is_new) - 1]
    squares = np.cumsum(2 * ranks + 1)
    first_rows = np.flatnonzero(np.diff(persons, prepend=-1))
    before = np.append(0, squares[first_rows[1:] - 1])
    needed = np.sort(squares - before[np.cumsum(np.diff(persons, prepend=-1) != 0) - 1])
    return np.searchsorted(needed, np.arange(1, most + 1) ** 2, side="right")
