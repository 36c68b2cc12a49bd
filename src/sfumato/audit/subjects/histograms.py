"""Histograms and uniform grids, and histograms over unknown keys."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
import pyarrow as pa

from sfumato.audit.runs import Mechanism, Published, Rows, count, published
from sfumato.audit.subjects.subject import COSTS, RELATIONS, UNITS, Subject, less_noise, of
from sfumato.cube import Cube
from sfumato.data import count as data_count
from sfumato.data import source
from sfumato.domain import Domain, Interval, Keys
from sfumato.histogram import Histogram
from sfumato.lattice import MOST_KEYS
from sfumato.mechanisms.thresholds import RULES, Rule, key_law
from sfumato.privacy.measures import ApproxDP, CentralMeasure
from sfumato.privacy.unit import Neighbours, Unit
from sfumato.random.bits import Bits

QUESTIONS = (Histogram,)
KEYED = Domain(k=Keys(), x=Interval(0, 2, step=1))
NAMES = range(4)
SELECTED = ApproxDP("1", "0.01")
PERSONS = Histogram("x", count="persons")


def _keys(
    axes: tuple[str, ...], selection: Rule, rows_per_person: int, relation: Neighbours
) -> Subject:
    """One person's rows have a key whose count is near the threshold.

    Under replace they move to a key that nobody else has.
    """
    unit = Unit(rows_per_person=rows_per_person, neighbours=relation)
    question = Histogram(axes, selection=selection)
    lattice = question.needs(KEYED).lattice
    columns = [list(KEYED).index(name) for name in axes]

    @cache
    def counted(rows: Rows) -> Cube:
        return count(tuple(tuple(row[column] for column in columns) for row in rows), lattice)

    def spending(times: int) -> Mechanism:
        cost = less_noise(SELECTED, times)

        def run(rows: Rows, noise: Bits) -> Published:
            release = question.answer(counted(rows), unit, cost, noise)
            cells_per_key = lattice.size // MOST_KEYS
            counts = release.counts.reshape(-1, cells_per_key).tolist()
            shown = dict(zip(map(int, release.cell_names("k")), counts, strict=True))
            numbers: list[int] = []
            for name in NAMES:
                numbers += [int(name in shown), *shown.get(name, [0] * cells_per_key)]
            return Published(tuple(numbers), release)

        return run

    near = key_law(SELECTED, unit, selection).threshold - 1
    rest: Rows = ((0.0, 0.5), (0.0, 1.5), *(near * ((1.0, 0.5),)))
    moved = rest + rows_per_person * ((2.0, 1.5),) if relation == "replace" else rest
    pair = rest + rows_per_person * ((1.0, 0.5),), moved
    name = f"Histogram of keys, {selection}"
    return Subject(name, unit, SELECTED, spending(1), pair=pair, runs=2000, weaker=spending)


RIDES = Domain(x=Interval(0, 4, step=1))
RIDDEN: Rows = ((0.0, 0.5), (0.0, 1.5), (0.0, 2.5), (0.0, 3.5))
"""Rows of one person, each in a cell of its own: the person, and the value."""
KEY = bytes(32)


@cache
def _counted_persons(rows: Rows, limit: int) -> Cube:
    """Persons by cell, counted by the code that publishing uses."""
    people = np.array(rows, float).reshape(len(rows), 2)
    table = pa.table({"rider": people[:, 0].astype(np.int64), "x": people[:, 1]})
    rides = source(table, RIDES, person="rider", rows_per_person=limit)
    return data_count(rides, [PERSONS.needs(RIDES)], key=KEY)[0]


def _persons(limit: int, relation: Neighbours, cost: CentralMeasure) -> Subject:
    """One person with up to one row more than the limit on cells, others with one row each.

    Under replace the person becomes another one, with rows of their own.
    """
    unit = Unit(limit, relation, "rider")
    others: Rows = ((8.0, 0.5), (9.0, 2.5))
    sizes = range(limit + 2)
    own = [rows for size in sizes for rows in combinations_with_replacement(RIDDEN, size)]
    another = own if relation == "replace" else [()]
    pairs = []
    for one, rows in product(own, another):
        other = tuple((1.0, x) for _, x in rows)
        pairs += [(others + one, others + other), (others + other, others + one)]

    def run(rows: Rows, noise: Bits) -> Published:
        return published(PERSONS.answer(_counted_persons(rows, limit), unit, cost, noise))

    counting = unit.counting_persons(limit)
    name = "Histogram of persons"
    return Subject(name, counting, cost, run, universe=RIDDEN, pairs=tuple(pairs))


def subjects() -> Iterator[Subject]:
    """Every subject of this module."""
    for promise in product(UNITS, COSTS):
        yield of("Histogram", Histogram("x", bins=3), *promise)
    for limit, relation, cost in product((1, 2), RELATIONS, COSTS):
        yield _persons(limit, relation, cost)
    limits = (2, 1, 1)
    relations: tuple[Neighbours, ...] = (*RELATIONS, "add-remove")
    for rule, limit, relation in zip(RULES, limits, relations, strict=True):
        yield _keys(("k",), rule, limit, relation)
    yield _keys(("k", "x"), "truncated-geometric", 1, "add-remove")
