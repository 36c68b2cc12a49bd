"""One person beside two others: tables of people and their rows, counted as publishing counts.

Histograms over keys that are not known beforehand, and data in which a key is nearly shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product

import numpy as np
import pyarrow as pa

from sfumato.answers import AnyQuestion, Counts
from sfumato.audit.keys import KeySelection
from sfumato.audit.runs import Mechanism, Pair, Published, Rows, Selecting, count, published
from sfumato.audit.subjects.subject import Subject, less_noise
from sfumato.data import count as count_rows
from sfumato.data import source
from sfumato.domain import MOST_KEYS, Cube, Domain
from sfumato.mechanisms import key_law, law_of_key_counts
from sfumato.privacy import ApproxDP, CentralMeasure, Limits, Unit, stated_limits
from sfumato.publishing.counting import ReleaseCounts
from sfumato.questions.histogram import Histogram
from sfumato.random.bits import Bits

# By which the rows of a person are chosen.
KEY = bytes(32)
# More rows of a person than any table here has.
MANY_ROWS = 10**6
PERSON = "who"
# Rows of a person in all, and limits by cell.
LIMITS = (
    (4, Limits(norm_per_person=2)),
    (2, Limits(rows_per_cell=1)),
    (4, Limits(rows_per_cell=2, cells_per_person=2)),
)

# How many rows people have in each group along y, as many as limits allow, and more.
#
# The first ones have the largest L2 norm in one group, the others the largest L1 norm in several.
ROWS_IN_GROUPS = ((3,), (0, 0, 0, 0, 3), (1, 1, 1, 1), (0, 0, 0, 0, 1, 1, 1, 1), (2, 1), (2, 2, 1))
# Persons with so many rows of one value in each group.
IN_GROUPS: tuple[Rows, ...] = tuple(
    tuple((x, y + 0.5) for y, n in enumerate(counts) for _ in range(n))
    for counts, x in product(ROWS_IN_GROUPS, (0.0, 3.0))
)
IN_FEW_GROUPS: tuple[Rows, ...] = (
    ((0, 0), (3, 1), (0, 1)),
    ((0, 0), (0, 0), (3, 8), (3, 8)),
    # Several rows in a group: a mean and a sum between the bounds, and a sum beyond them.
    ((0, 1), (3, 1), (1, 1), (3, 2), (3, 2)),
    # More groups than anybody is counted in.
    ((3, 0), (0, 1), (3, 2), (0, 2)),
    # Values in two segments of which one hat may be made: each has its own, and both a group.
    ((1.4, 0), (1.6, 0)),
)


def visitors(axes: Sequence[str]) -> tuple[Rows, ...]:
    """People: the values of each of their rows, along these axes."""
    if "y" not in axes:
        in_line = ((0,), (3,), (0, 0, 3), (0, 1, 2), (3, 3, 3, 3), 9 * (1,))
        return tuple(tuple((float(x),) * len(axes) for x in person) for person in in_line)
    persons = (*IN_FEW_GROUPS, *IN_GROUPS)
    at = [("x", "y").index(axis) for axis in axes]
    return tuple(tuple(tuple(row[i] for i in at) for row in person) for person in persons)


def people(unit: Unit, axes: Sequence[str]) -> tuple[Pair, ...]:
    """Pairs of tables that differ in one person; under replace, that person becomes another one.

    The first column says whose a row is.
    """
    rest = tuple((8.0 + i, *row) for i, row in enumerate((len(axes) * (0.5,), len(axes) * (2.5,))))
    tried = ((), *visitors(axes))
    another = tried if unit.neighbours == "replace" else ((),)
    pairs: list[Pair] = []
    for mine, theirs in product(tried, another):
        first = rest + tuple((0.0, *row) for row in mine)
        second = rest + tuple((1.0, *row) for row in theirs)
        pairs += [(first, second), (second, first)]
    return tuple(pairs)


def of_people(
    question: AnyQuestion, domain: Domain, unit: Unit, cost: CentralMeasure, claim: CentralMeasure
) -> Mechanism:
    """Return a question's own code from the rows of people to its release, at a cost.

    What is counted, and which rows of a person, is that of the cost that is claimed.
    """
    needs = question.needs_at(domain, unit, claim)
    norm = question.needs_at(domain, unit, cost).norm

    @cache
    def counted(rows: Rows) -> Cube:
        who, *values = np.array(rows, float).reshape(len(rows), 1 + len(domain)).T
        columns = dict(zip(domain, values, strict=True))
        table = pa.table({PERSON: who.astype(np.int64), **columns})
        limits = stated_limits(unit.limits)
        rides = source(table, domain, PERSON, unit.rows_per_person, unit.neighbours, **limits)
        return count_rows(rides, [needs], key=KEY)[0]

    def run(rows: Rows, noise: Bits) -> Published:
        counts = ReleaseCounts(counted(rows), None, domain, norm)
        return published(question.answer(counts, unit, cost, noise))

    return run


NAMES = range(4)
# Rows with which a key is nearly always shown.
MANY = 20


def near_threshold(question: Histogram, unit: Unit, cost: ApproxDP) -> list[Pair]:
    """One person's rows have a key whose count is near the threshold.

    Under replace they move to a key that nobody else has.
    """
    near = key_law(cost, unit, question.selection).threshold - 1
    person: Rows = unit.rows_per_person * ((1.0, 0.5),)
    moved: Rows = unit.rows_per_person * ((2.0, 1.5),) if unit.neighbours == "replace" else ()
    # A key near the threshold may give a person away; in a key of many rows the count may.
    pairs: list[Pair] = []
    for many in (near, near + MANY) if len(question.layout) == 1 else (near,):
        rest: Rows = ((0.0, 0.5), (0.0, 1.5), *(many * ((1.0, 0.5),)), *(MANY * ((2.0, 1.5),)))
        alone = rest[: 2 + many]
        for others in (alone, rest) if unit.neighbours == "replace" else (alone,):
            pairs += [(others + person, others + moved), (others + moved, others + person)]
    return pairs


def of_one_row_each(question: Histogram, unit: Unit, cost: ApproxDP) -> list[Pair]:
    """One person has a row of each of several keys: alone, beside many others, or both."""
    names = NAMES[: unit.rows_per_person]
    many = law_of_key_counts(cost, unit, question.selection).threshold + MANY
    person: Rows = tuple((float(name), 0.5) for name in names)
    pairs: list[Pair] = []
    for shared in range(len(names) + 1):
        rest: Rows = tuple((float(name), 0.5) for name in names[:shared] for _ in range(many))
        pairs += [(rest + person, rest), (rest, rest + person)]
    return pairs


def of_keys(
    name: str,
    question: Histogram,
    domain: Domain,
    unit: Unit,
    cost: ApproxDP,
    pairs: Sequence[Pair],
    in_parts: bool = False,
) -> Subject:
    """Return a histogram with an axis of keys, published for the data sets of pairs.

    With ``in_parts``, the keys are selected as an engine does it, in small parts.
    """
    lattice = question.needs(domain).lattice
    columns = [("k", "x").index(axis) for axis in question.layout]

    @cache
    def counted(rows: Rows) -> Counts:
        cube = count(tuple(tuple(row[column] for column in columns) for row in rows), lattice)
        return Selecting(cube) if in_parts else cube

    def spending(times: int) -> Mechanism:
        spent = less_noise(cost, times)

        def run(rows: Rows, noise: Bits) -> Published:
            release = question.answer(counted(rows), unit, spent, noise)
            cells_per_key = lattice.size // MOST_KEYS
            counts = release.counts.reshape(-1, cells_per_key).tolist()
            shown = dict(zip(map(int, release.cell_names("k")), counts, strict=True))
            numbers: list[int] = []
            for key in NAMES:
                numbers += [int(key in shown), *shown.get(key, [0] * cells_per_key)]
            return Published(tuple(numbers), release)

        return run

    attack = KeySelection(1 + lattice.size // MOST_KEYS)
    return Subject(
        name,
        unit,
        cost,
        spending(1),
        pairs=tuple(pairs),
        runs=1000,
        exact=attack,
        weaker=spending,
        least=0.45,
    )
