"""Histograms and uniform grids, and histograms over unknown keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from audit.subjects.lines import of
from sfumato.answers.counts import Counts
from sfumato.answers.question import AnyQuestion
from sfumato.audit.keys import KeySelection
from sfumato.audit.residuals import bounded_loss
from sfumato.audit.runs import (
    Mechanism,
    Pair,
    Published,
    Rows,
    Selecting,
    count,
    of_question,
    published,
)
from sfumato.audit.subjects.subject import (
    COSTS,
    LINE,
    ON_LINE,
    RELATIONS,
    UNITS,
    Subject,
    less_noise,
)
from sfumato.data import count as data_count
from sfumato.data import source
from sfumato.domain.cube import Cube
from sfumato.domain.domain import Domain, Interval, Keys
from sfumato.domain.lattice import MOST_KEYS
from sfumato.mechanisms.thresholds import RULES, Rule, key_law, law_of_key_counts
from sfumato.privacy.limits import Limits, stated_limits
from sfumato.privacy.measures import ZCDP, ApproxDP, CentralMeasure
from sfumato.privacy.unit import MOST_ROWS, Neighbours, Unit
from sfumato.questions.histogram import Histogram
from sfumato.random.bits import Bits

KEYED = Domain(k=Keys(), x=Interval(0, 2, step=1))
NAMES = range(4)
MANY = 20
"""Rows with which a key is nearly always shown."""
KEYS_OF_PERSON = 3
SELECTED = ApproxDP("1", "0.01")
BOUNDED = ApproxDP("1", "1e-6")
PERSONS = Histogram("x", count="persons")
IN_TWO_BINS = Histogram("x", bins=2, count="persons")


def _keys(
    axes: tuple[str, ...],
    selection: Rule,
    rows_per_person: int,
    relation: Neighbours,
    by_engine: bool = False,
) -> Subject:
    """One person's rows have a key whose count is near the threshold.

    Under replace they move to a key that nobody else has. With ``by_engine``, the keys are selected
    as an engine does it, in small parts.
    """
    unit = Unit(rows_per_person=rows_per_person, neighbours=relation)
    near = key_law(SELECTED, unit, selection).threshold - 1
    one: Rows = rows_per_person * ((1.0, 0.5),)
    moved: Rows = rows_per_person * ((2.0, 1.5),) if relation == "replace" else ()
    # A key near the threshold may give a person away; in a key of many rows the count may.
    pairs: list[Pair] = []
    for many in (near, near + MANY) if len(axes) == 1 else (near,):
        rest: Rows = ((0.0, 0.5), (0.0, 1.5), *(many * ((1.0, 0.5),)), *(MANY * ((2.0, 1.5),)))
        alone = rest[: 2 + many]
        for others in (alone, rest) if relation == "replace" else (alone,):
            pairs += [(others + one, others + moved), (others + moved, others + one)]
    # The source's rule adds twice the noise that rows added or removed need.
    least = 0.48 if selection == "stability" else 0.9
    question = Histogram(axes, selection=selection)
    name = f"Histogram of keys, {selection}"
    if by_engine:
        name += ", by an engine"
    return _of_keys(name, question, unit, pairs, least, by_engine)


def _keys_of_persons() -> Subject:
    """One person has a row of each of three keys: alone, beside many others, or both."""
    names = NAMES[:KEYS_OF_PERSON]
    unit = Unit(len(names), "add-remove", "rider", Limits(rows_per_cell=1))
    many = law_of_key_counts(SELECTED, unit).threshold + MANY
    one: Rows = tuple((float(name), 0.5) for name in names)
    pairs: list[Pair] = []
    for shared in range(len(names) + 1):
        rest: Rows = tuple((float(name), 0.5) for name in names[:shared] for _ in range(many))
        pairs += [(rest + one, rest), (rest, rest + one)]
    return _of_keys("Histogram of keys, one row each", Histogram("k"), unit, pairs, 0.9)


def _of_keys(
    name: str,
    question: Histogram,
    unit: Unit,
    pairs: Sequence[Pair],
    least: float,
    by_engine: bool = False,
) -> Subject:
    """A histogram with an axis of keys, published for the data sets of pairs."""
    lattice = question.needs(KEYED).lattice
    columns = [list(KEYED).index(axis) for axis in question.layout]

    @cache
    def counted(rows: Rows) -> Counts:
        cube = count(tuple(tuple(row[column] for column in columns) for row in rows), lattice)
        return Selecting(cube) if by_engine else cube

    def spending(times: int) -> Mechanism:
        cost = less_noise(SELECTED, times)

        def run(rows: Rows, noise: Bits) -> Published:
            release = question.answer(counted(rows), unit, cost, noise)
            cells_per_key = lattice.size // MOST_KEYS
            counts = release.counts.reshape(-1, cells_per_key).tolist()
            shown = dict(zip(map(int, release.cell_names("k")), counts, strict=True))
            numbers: list[int] = []
            for key in NAMES:
                numbers += [int(key in shown), *shown.get(key, [0] * cells_per_key)]
            return Published(tuple(numbers), release)

        return run

    return Subject(
        name,
        unit,
        SELECTED,
        spending(1),
        pairs=tuple(pairs),
        runs=1000,
        exact=KeySelection(1 + lattice.size // MOST_KEYS),
        weaker=spending,
        least=least,
    )


RIDES = Domain(x=Interval(0, 8, step=1))
KEY = bytes(32)
Ridden: TypeAlias = tuple[int, ...]
"""How many rows a person has in each cell, from the first one on."""

OTHERS: Rows = ((8.0, 0.5), (9.0, 2.5))
"""Rows of two other persons: the person, and the value."""


@cache
def _counted_people(rows: Rows, unit: Unit, question: AnyQuestion) -> Cube:
    """People and their rows, counted by the code that publishing uses."""
    people = np.array(rows, float).reshape(len(rows), 2)
    table = pa.table({"rider": people[:, 0].astype(np.int64), "x": people[:, 1]})
    limits = stated_limits(unit.limits)
    rides = source(table, RIDES, "rider", unit.rows_per_person, unit.neighbours, **limits)
    return data_count(rides, [question.needs(RIDES)], key=KEY)[0]


def _of_person(rider: float, ridden: Ridden) -> Rows:
    return tuple((rider, cell + 0.5) for cell, n in enumerate(ridden) for _ in range(n))


def of_people(
    name: str,
    question: AnyQuestion,
    unit: Unit,
    people: Sequence[Ridden],
    cost: CentralMeasure,
) -> Subject:
    """One person who may have more rows than the limits allow, beside two others.

    Under replace the person becomes another one, with rows of their own. The unit that is printed
    is that of the preview: what the question says that it protects; of any number of rows, the one
    that was given.
    """
    another = people if unit.neighbours == "replace" else [()]
    pairs: list[Pair] = []
    for one, other in product(people, another):
        pair = (OTHERS + _of_person(0.0, one), OTHERS + _of_person(1.0, other))
        pairs += [pair, pair[::-1]]

    def spending(times: int) -> Mechanism:
        spent = less_noise(cost, times)

        def run(rows: Rows, noise: Bits) -> Published:
            counted = _counted_people(rows, unit, question)
            return published(question.answer(counted, unit, spent, noise))

        return run

    protected = question.preview(RIDES, unit, cost).unit
    printed = unit if protected.rows_per_person == MOST_ROWS else protected
    return Subject(
        name, printed, cost, spending(1), universe=OTHERS, pairs=tuple(pairs), weaker=spending
    )


LIMITED: tuple[tuple[int, Limits, tuple[Ridden, ...]], ...] = (
    # The largest L2 norm in one cell, the largest L1 norm in four.
    (
        4,
        Limits(norm_per_person=2),
        ((3,), (0, 0, 0, 0, 3), (1, 1, 1, 1), (0, 0, 0, 0, 1, 1, 1, 1)),
    ),
    (2, Limits(rows_per_cell=1), ((2, 1), (1, 2, 1), (0, 0, 0, 0, 1, 1))),
    (4, Limits(rows_per_cell=2, cells_per_person=2), ((3, 3), (1, 2, 2), (0, 0, 0, 0, 2, 2))),
)
"""Rows in all, limits by cell, and people with as many rows as these allow, and with more."""


MANY_BINS = Domain(x=Interval(0, 50, step=1))
IN_MANY: Rows = ((0.5,), (9.5,), (50.0,))
"""Two values in one block of the coarser level of a tree, and one in another."""


def _ranges(unit: Unit, cost: CentralMeasure) -> Subject:
    """Noisy sums of many bins: of few, noise would be added to each by itself."""
    question = Histogram("x", workload="ranges")

    def spending(times: int) -> Mechanism:
        return of_question(question, MANY_BINS, unit, less_noise(cost, times))

    # Under rho, replace pays as if two rows had no sum in common; in one line of bins they have.
    shares_sums = isinstance(cost, ZCDP) and unit.neighbours == "replace"
    return Subject(
        "Histogram for ranges",
        unit,
        cost,
        spending(1),
        IN_MANY,
        weaker=spending,
        least=0.7 if shares_sums else 0.98,
    )


def _bounded(unit: Unit) -> Subject:
    """Noise with a bound, at the cost of which the bound is printed in the documents."""
    question = Histogram("x", bins=3, noise="bounded")

    def spending(times: int) -> Mechanism:
        return of_question(question, LINE, unit, less_noise(BOUNDED, times))

    return Subject(
        "Histogram with bounded noise",
        unit,
        BOUNDED,
        spending(1),
        ON_LINE,
        exact=bounded_loss,
        weaker=spending,
    )


def subjects() -> Iterator[Subject]:
    """Every subject of this module."""
    for promise in product(UNITS, COSTS):
        yield of("Histogram", Histogram("x", bins=3), *promise)
    yield from map(_bounded, UNITS)
    for promise in product((UNITS[0], UNITS[-1]), COSTS):
        yield _ranges(*promise)
    ridden = ((), (2,), (1, 3), (1, 1, 1), (0, 0, 0, 0, 1), (0, 0, 0, 0, 1, 1))
    for limit, relation, cost in product((1, 2), RELATIONS, COSTS):
        unit = Unit(limit, relation, "rider")
        yield of_people("Histogram of persons", PERSONS, unit, ridden, cost)
    for cost in COSTS:
        unit = Unit(6, person="rider")
        # In two cells nobody is counted more than twice, whatever the limit.
        everywhere = ((), (2,), (1, 0, 0, 0, 1), (1, 1, 1, 1, 1, 1))
        yield of_people("Histogram of persons, 2 bins", IN_TWO_BINS, unit, everywhere, cost)
    for (limit, limits, people), relation, cost in product(LIMITED, RELATIONS, COSTS):
        unit = Unit(limit, relation, "rider", limits)
        yield of_people("Histogram under limits by cell", Histogram("x"), unit, people, cost)
    rows = (2, 1, 1)
    relations: tuple[Neighbours, ...] = (*RELATIONS, "add-remove")
    for rule, limit, relation in zip(RULES, rows, relations, strict=True):
        yield _keys(("k",), rule, limit, relation)
    yield _keys(("k", "x"), "truncated-geometric", 1, "add-remove")
    yield _keys_of_persons()
    yield _keys(("k",), "truncated-geometric", 2, "add-remove", by_engine=True)
    yield _keys(("k",), "threshold", 1, "replace", by_engine=True)
