"""Histograms, also with bounded noise, and histograms over unknown keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product

from audit.subjects.lines import of
from sfumato.answers.counts import Counts
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
from sfumato.domain.domain import Domain, Interval, Keys
from sfumato.domain.lattice import MOST_KEYS
from sfumato.mechanisms.thresholds import RULES, Rule, key_law, law_of_key_counts
from sfumato.privacy.measures import ApproxDP
from sfumato.privacy.unit import Limits, Neighbours, Unit
from sfumato.questions.histogram import Histogram
from sfumato.random.bits import Bits

KEYED = Domain(k=Keys(), x=Interval(0, 2, step=1))
NAMES = range(4)
MANY = 20
"""Rows with which a key is nearly always shown."""
KEYS_OF_PERSON = 3
SELECTED = ApproxDP("1", "0.01")
BOUNDED = ApproxDP("1", "1e-6")


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
    rows = (2, 1, 1)
    relations: tuple[Neighbours, ...] = (*RELATIONS, "add-remove")
    for rule, limit, relation in zip(RULES, rows, relations, strict=True):
        yield _keys(("k",), rule, limit, relation)
    yield _keys(("k", "x"), "truncated-geometric", 1, "add-remove")
    yield _keys_of_persons()
    yield _keys(("k",), "truncated-geometric", 2, "add-remove", by_engine=True)
    yield _keys(("k",), "threshold", 1, "replace", by_engine=True)
