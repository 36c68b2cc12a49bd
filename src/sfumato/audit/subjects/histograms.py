"""Histograms and uniform grids, and histograms over unknown keys."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product

from sfumato.audit.runs import Mechanism, Published, Rows, count
from sfumato.audit.subjects.subject import COSTS, RELATIONS, UNITS, Subject, less_noise, of
from sfumato.cube import Cube
from sfumato.domain import Domain, Interval, Keys
from sfumato.histogram import Histogram
from sfumato.lattice import MOST_KEYS
from sfumato.mechanisms.thresholds import RULES, Rule, key_law
from sfumato.privacy.measures import ApproxDP
from sfumato.privacy.unit import Neighbours, Unit
from sfumato.random.bits import Bits

QUESTIONS = (Histogram,)
KEYED = Domain(k=Keys(), x=Interval(0, 2, step=1))
NAMES = range(4)
SELECTED = ApproxDP("1", "0.01")


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


def subjects() -> Iterator[Subject]:
    """Every subject of this module."""
    for promise in product(UNITS, COSTS):
        yield of("Histogram", Histogram("x", bins=3), *promise)
    limits = (2, 1, 1)
    relations: tuple[Neighbours, ...] = (*RELATIONS, "add-remove")
    for rule, limit, relation in zip(RULES, limits, relations, strict=True):
        yield _keys(("k",), rule, limit, relation)
    yield _keys(("k", "x"), "truncated-geometric", 1, "add-remove")
