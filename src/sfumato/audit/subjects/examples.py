"""Questions by examples: their own, and for those of the library some with groups or persons.

Quantiles and bins by records are attacked by the law of what is selected, on small data.

``Question.examples`` are about one axis "x" and rows. ``MORE`` adds groups, keys, persons, and
promises with a delta. Each is asked at every promise that it can keep, under both relations, and
attacked exactly wherever there is an attack for its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from typing import TypeAlias

import msgspec
import numpy as np

from sfumato.answers import AnyQuestion, tag_of
from sfumato.audit.decisions import Decisions
from sfumato.audit.likelihoods import additive_loss
from sfumato.audit.residuals import bounded_loss, residual_loss
from sfumato.audit.runs import Mechanism, Rows, neighbours, of_question
from sfumato.audit.selections import (
    Selecting,
    axis_method,
    bins_of,
    law_of,
    law_of_bins,
    run_of,
    run_of_bins,
    run_of_gaps,
    run_of_tree,
    selection_loss,
)
from sfumato.audit.subjects.people import (
    LIMITS,
    PERSON,
    near_threshold,
    of_keys,
    of_one_row_each,
    of_people,
    people,
)
from sfumato.audit.subjects.subject import (
    COSTS,
    LINE,
    ON_LINE,
    RELATIONS,
    UNITS,
    Attack,
    Subject,
    less_noise,
)
from sfumato.domain import Domain, Interval, Keys
from sfumato.errors import UsageError
from sfumato.privacy import ZCDP, ApproxDP, CentralMeasure, Limits, Unit
from sfumato.questions.aggregates import Mean, Sum, Variance
from sfumato.questions.clustering import KMeans
from sfumato.questions.histogram import Histogram
from sfumato.questions.partition.fixed_depth import MedianPartitioner, MultiQuantilePartitioner
from sfumato.questions.partition.privtree import PrivTreePartitioner
from sfumato.questions.partition.release import OverAxes
from sfumato.questions.quantiles import Quantiles
from sfumato.questions.quantiles.methods import AxisMethod
from sfumato.questions.tables import Tables

# --- quantiles, and bins by records ---------------------------------------------------------------

WIDE = Domain(x=Interval(0, 2**13, step=1))
LOW = (5.0,)
NEXT = (12.0,)
LATE = (2.0**13 - 20,)
LAST = (2.0**13 - 9,)
# Between NEXT and LATE lie nearly all edges: a selection loses most where one group is wide.
ON_WIDE: Rows = (LOW, NEXT, LAST)
BETWEEN = (5, 12, 2**13 - 20, 2**13 - 9, 2**13)
# As multiples of the records of a bin, numbers of rows that make two bins or three.
NOISY_ROWS = (-4, 2, 3)
FEW = Domain(x=Interval(0, 12, step=1))
ON_FEW: Rows = ((0.0,), (1.0,), (11.0,))
# More cells than the fan-out of a tree of counts.
TWO_LEVELS = Domain(x=Interval(0, 20, step=1))
# Rows beside which quantiles are far from the ends.
ON_LINE_ALONE: Rows = (*3 * ((0.5,),), *5 * ((1.5,),), *3 * ((2.5,),))


# An axis, rows on it, and the cells whose edges are the outcomes; none: all cells.
AxisTried: TypeAlias = tuple[Domain, Rows, tuple[int, ...]]


def quantiles(name: str, question: Quantiles, unit: Unit, cost: CentralMeasure) -> Subject:
    """Quantiles by a selection, or read off a tree of counts.

    The axis is longer than that of examples where that makes a selection lose more.
    """
    if question.method == "tree":
        return _of_tree(name, question, unit, cost)
    # A divergence needs all outcomes, so there must be few.
    needs_all = isinstance(cost, ZCDP)
    domain, universe, cells = (LINE, ON_LINE, ()) if needs_all else (WIDE, ON_WIDE, BETWEEN)
    others = unit.rows_per_person * (ON_LINE_ALONE if needs_all else _crowd(question, unit))

    def spending(times: int) -> Mechanism:
        spent = less_noise(cost, times)
        return Selecting(
            run_of(question, domain, unit, spent, others),
            law_of(question, domain, unit, spent, cells, others),
        )

    # To choose several edges at once beside a noisy number of rows takes long.
    runs = 50 if question.method == "auto" and len(question.at) > 1 else 500
    return _selecting(name, unit, cost, spending, universe, selection_loss, runs)


def _crowd(question: Quantiles, unit: Unit) -> Rows:
    """Rows of other persons beside which the loss was found to be large."""
    replaced = unit.neighbours == "replace"
    if len(question.at) == 1:
        return (NEXT,) if replaced else (LAST,)
    if question.method == "recursive":
        return (*5 * (NEXT,), *3 * (LAST,)) if replaced else (LAST,)
    # Given a noisy number of rows, a selection loses most where gaps hold about their shares.
    return 3 * (NEXT,) if replaced else 4 * (LOW, NEXT, LATE, LAST)


def _of_tree(name: str, question: Quantiles, unit: Unit, cost: CentralMeasure) -> Subject:
    """Quantiles read off a tree of noisy counts of two levels."""

    def spending(times: int) -> Mechanism:
        return run_of_tree(question, TWO_LEVELS, unit, less_noise(cost, times))

    return Subject(name, unit, cost, spending(1), ((0.5,), (19.5,)), runs=2000, weaker=spending)


def ranks(question: Quantiles, unit: Unit, cost: CentralMeasure) -> Subject:
    """Counts of the rows between quartiles, at the part of the cost that pays for ranks."""
    lattice = question.needs(WIDE).lattice

    def method_at(times: int) -> AxisMethod:
        return axis_method(question, lattice, unit, less_noise(cost, times))

    def spending(times: int) -> Mechanism:
        method = method_at(times)
        edges = method.subcells * np.array([NEXT[0], LATE[0], LAST[0]], np.int64)
        return run_of_gaps(method, lattice, edges)

    claim = method_at(1).rank_cost
    assert claim is not None
    return Subject("Ranks of quartiles", unit, claim, spending(1), ON_WIDE, weaker=spending)


def bins_by_records(name: str, question: Histogram, unit: Unit, cost: CentralMeasure) -> Subject:
    """Bins by records: for noisy numbers of rows, or where the number of rows is stated."""
    if question.rows is not None:

        def few(times: int) -> Mechanism:
            return of_question(question, FEW, unit, less_noise(cost, times))

        return _selecting(name, unit, cost, few, ON_FEW, Decisions())

    assert question.records is not None
    seen = tuple(times * question.records for times in NOISY_ROWS)

    def spending(times: int) -> Mechanism:
        spent = less_noise(cost, times)
        return Selecting(
            run_of_bins(question, WIDE, unit, spent, most=3),
            law_of_bins(
                bins_of(question, WIDE, unit, spent),
                (5, 6, 12, 13, 2**13 - 10, 2**13 - 9, 2**13 - 1),
                seen,
            ),
        )

    return _selecting(name, unit, cost, spending, ON_WIDE, selection_loss)


def _selecting(
    name: str,
    unit: Unit,
    cost: CentralMeasure,
    spending: Callable[[int], Mechanism],
    universe: Rows,
    exact: Attack,
    runs: int = 500,
) -> Subject:
    return Subject(
        name, unit, cost, spending(1), universe, runs=runs, exact=exact, weaker=spending, least=0.35
    )


# --- more examples --------------------------------------------------------------------------------

# Those of the examples, each of which is about one or two of them.
AXES = {
    "k": Keys(),
    "x": LINE["x"],
    "y": Interval(0, 8, step=1),
    "z": Interval(0, 50, step=1),
}
DOMAINS = (("x",), ("y",), ("z",), ("k",), *combinations(AXES, 2))
# Of three rows: inside a cell, on an edge between two cells, and at the closed upper end.
VALUES = {"k": (0.0, 1.0, 1.0), "x": (0.25, 1.0, 3.0), "y": (0.0, 8.0, 8.0), "z": (0.5, 9.5, 50.0)}

MORE: dict[type[AnyQuestion], tuple[AnyQuestion, ...]] = {
    Histogram: (
        Histogram(["x", "y"]),
        Histogram("z", workload="ranges"),
        Histogram(["x", "y"], count="persons"),
        Histogram("x", bins=2, count="persons"),
        Histogram("x", noise="bounded"),
        Histogram("k"),
        Histogram("k", selection="threshold"),
        Histogram("k", selection="stability"),
        Histogram(["k", "x"]),
    ),
    Mean: (
        Mean("x", by="y"),
        Mean("x", by="y", clip="auto"),
        Mean("x", by="y", per="person"),
        Mean("x", by="y", per="person", clip="auto"),
    ),
    Sum: (Sum("x", by="y", per="person", clip=(0, 5)),),
    Variance: (Variance("x", by="y"), Variance("x", by="y", per="person")),
    Tables: (Tables([["x", "y"], "y"], bins={"x": [0, 1, 3], "y": [0, 4, 8]}),),
}


# --- subjects -------------------------------------------------------------------------------------

# One row of a person, added or removed, or two, replaced; for epsilon and for rho.
PROMISES = tuple(product((UNITS[0], UNITS[3]), COSTS))
DELTA = ApproxDP("1", "0.01")
PERSONS = tuple(
    (Unit(unit.rows_per_person, unit.neighbours, PERSON), cost) for unit, cost in PROMISES
)
WITHIN_LIMITS = tuple(
    (Unit(rows, relation, PERSON, limits), cost)
    for (rows, limits), relation, cost in product(LIMITS, RELATIONS, COSTS)
)
ONE_ROW_EACH = Unit(3, "add-remove", PERSON, Limits(rows_per_cell=1))
# Whose keys are also selected as an engine does it, in small parts.
IN_PARTS = (
    (Histogram("k"), UNITS[0]),
    (Histogram("k", selection="threshold"), UNITS[3]),
)
# A cost at which two rows in a cell lie within what can be enumerated of the noise.
SHARP = ZCDP("2")
AT_SHARP = tuple((unit, SHARP) for unit, cost in WITHIN_LIMITS[:4] if cost in COSTS[1:])

# Options that a title names.
IN_TITLE = ("axes", "value", "by", "per", "of", "count", "tables", "n_clusters")
ENDS = ON_LINE[::2]
APART: Rows = ((0.5,), (2.5,))


def subjects(kinds: Iterable[type[AnyQuestion]]) -> Iterator[Subject]:
    """Yield the examples of these kinds of questions, at every promise that they accept."""
    for kind in kinds:
        promises = WITHIN_LIMITS
        for question in (*kind.examples, *MORE.get(kind, ())):
            yield from _of_rows_or_persons(question)
            limited = list(_within_limits(question, promises))
            # A norm for rows added or removed, a limit by cell for rows replaced; for rho.
            promises = (WITHIN_LIMITS[1], WITHIN_LIMITS[7]) if limited else promises
            yield from limited
        if kind is Quantiles:
            for unit, cost in PROMISES:
                yield ranks(Quantiles("x"), unit, cost)


def _of_rows_or_persons(question: AnyQuestion) -> Iterator[Subject]:
    """At the first kind of promise that the question accepts."""
    for promises in (PROMISES, PERSONS, tuple((unit, DELTA) for unit in (UNITS[0], UNITS[3]))):
        accepted = [promise for promise in promises if _answers(question, *promise)]
        for unit, cost in accepted:
            yield of_example(question, unit, cost)
            if (question, unit) in IN_PARTS:
                yield of_example(question, unit, cost, in_parts=True)
        if accepted:
            return


def _within_limits(
    question: AnyQuestion, promises: Sequence[tuple[Unit, CentralMeasure]]
) -> Iterator[Subject]:
    """Yield a question about many cells, under limits on a person's rows in these."""
    if question == Histogram("k"):
        yield of_example(question, ONE_ROW_EACH, DELTA)
    elif "y" in domain_of(question) and _answers(question, *PROMISES[0]):
        for unit, cost in AT_SHARP if isinstance(question, Tables) else promises:
            if _answers(question, unit, cost):
                yield of_example(question, unit, cost)


def of_example(
    question: AnyQuestion, unit: Unit, cost: CentralMeasure, *, in_parts: bool = False
) -> Subject:
    """Return a question about the axes of examples as a subject.

    If its numbers do not follow its noise one for one, it is judged by its outputs alone.
    """
    name = f"{tag_of(type(question))}: {', '.join((question.title, *_options(question)))}"
    domain = domain_of(question)
    if isinstance(question, Histogram) and isinstance(cost, ApproxDP) and "k" in domain:
        pairs_of = of_one_row_each if unit == ONE_ROW_EACH else near_threshold
        pairs = pairs_of(question, unit, cost)
        name += ", in parts" if in_parts else ""
        return of_keys(name, question, domain, unit, cost, pairs, in_parts)
    if isinstance(question, Histogram) and question.records is not None:
        return bins_by_records(name, question, unit, cost)
    if isinstance(question, Quantiles):
        return quantiles(name, question, unit, cost)
    return _of_numbers(name, question, domain, unit, cost)


def _of_numbers(
    name: str, question: AnyQuestion, domain: Domain, unit: Unit, cost: CentralMeasure
) -> Subject:
    """A question whose published numbers follow its draws, given what tests and choices decide."""

    def spending(times: int) -> Mechanism:
        spent = less_noise(cost, times)
        if unit.person is not None:
            return of_people(question, domain, unit, spent, cost)
        return of_question(question, domain, unit, spent)

    attack = _attack(question, cost)
    subject = Subject(
        name,
        unit,
        cost,
        spending(1),
        tuple(zip(*(VALUES[axis] for axis in domain), strict=True)),
        exact=attack,
        weaker=spending,
        may_be_sampled=True,
    )
    if unit.person is not None:
        return replace(subject, pairs=people(unit, tuple(domain)), runs=200)
    if isinstance(attack, Decisions):
        # Part of the cost pays for numbers that these small data do not change.
        return replace(subject, pairs=tuple(neighbours(APART, unit, 0)), runs=60, least=0.45)
    if isinstance(question, OverAxes | KMeans):
        return replace(subject, universe=ENDS, runs=1000)
    # A chosen clip publishes many numbers, and takes long.
    return replace(subject, runs=500) if getattr(question, "clip", None) == "auto" else subject


def _attack(question: AnyQuestion, cost: CentralMeasure) -> Attack:
    if isinstance(cost, ApproxDP):
        # Noise with a bound has an exact audit at a delta; other noise is judged by its outputs.
        return bounded_loss
    if isinstance(question, Tables) and isinstance(cost, ZCDP):
        return residual_loss
    # Questions whose tests and cuts depend on the data, and show.
    if (
        isinstance(question, (MedianPartitioner, MultiQuantilePartitioner, PrivTreePartitioner))
        or getattr(question, "method", None) == "privtree"
    ):
        return Decisions()
    return additive_loss


def _options(question: AnyQuestion) -> Iterator[str]:
    for field in msgspec.structs.fields(question):
        value: object = getattr(question, field.name)
        if field.name in IN_TITLE or value == field.default or field.default is msgspec.NODEFAULT:
            continue
        match value:
            case str():
                yield value
            case bool() | int() | Fraction():
                yield f"{field.name} = {float(value):g}"
            case _:
                yield field.name.replace("_", " ")


@cache
def domain_of(question: AnyQuestion) -> Domain:
    """Return the axes that a question is about, of those that examples may name."""
    for names in DOMAINS:
        domain = Domain(**{name: AXES[name] for name in names})
        try:
            question.needs(domain)
        except UsageError:
            continue
        return domain
    return LINE


def _answers(question: AnyQuestion, unit: Unit, cost: CentralMeasure) -> bool:
    """Return whether a question can be asked at this cost, by its preview, which reads no data."""
    # The law of bins for noisy numbers of rows is too large; where rows are stated, it is not.
    by_noisy_rows = isinstance(question, Histogram) and question.records and question.rows is None
    if isinstance(cost, ZCDP) and by_noisy_rows:
        return False
    try:
        question.preview(domain_of(question), unit, cost)
    except UsageError:
        return False
    return True
