"""Numbers of rows of made-up persons, their bins, and releases about them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

import sfumato as sf
from sfumato.arrays import Array
from sfumato.demo import flights_path
from sfumato.mechanisms.noise import Law, count_law
from sfumato.persons.bins import upper_ends
from sfumato.persons.question import Persons
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Unit
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


def flights() -> Array:
    """How many flights each aircraft of the demo has."""
    tails = pq.read_table(flights_path(), columns=["tailnum"])["tailnum"].drop_null()
    numbers = pc.value_counts(tails).field("counts")
    return np.asarray(numbers)
