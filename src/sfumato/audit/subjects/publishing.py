"""From a table to a release, as users run it."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from functools import cache

import msgspec
import numpy as np

from sfumato.answers.question import AnyQuestion
from sfumato.audit.runs import Mechanism, Pair, Published, Rows, published
from sfumato.audit.subjects.subject import LINE, PURE, Subject
from sfumato.basics.numbers import Array
from sfumato.domain.domain import Domain
from sfumato.mechanisms.noise import Drawn, Script, Selection
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Neighbours, Unit
from sfumato.publishing.publisher import Publisher
from sfumato.questions.histogram import Histogram
from sfumato.random.bits import Bits, Words, override


class _WithKey(Script):
    """A script that also hands out the key by which each person's rows are chosen.

    Here all rows of a person are alike, so that the key decides nothing. Noise that is drawn from
    raw bits does not pass for noise: there would be fewer draws than published numbers.
    """

    def __init__(self, script: Script) -> None:
        self.script = script

    def words(self, count: int) -> Words:
        """A constant key."""
        return np.zeros(count, np.uint64)

    def draw(self, law: Drawn, size: int) -> Array:
        """What the script hands out."""
        return self.script.draw(law, size)

    def choose(self, selection: Selection) -> Array:
        """What the script hands out."""
        return self.script.choose(selection)


def of_publisher(question: AnyQuestion, domain: Domain, unit: Unit, cost: PureDP) -> Mechanism:
    """From a table to a release as users run it.

    Rows are bounded for each person, charged, counted, stored and read back. The first column of a
    row is the number of a person; the others are the axes of the domain. The receipt is left out:
    its random identifier and its date differ from run to run.
    """

    @cache
    def publisher(rows: Rows) -> Publisher:
        import pyarrow as pa

        from sfumato.data import source

        names = (str(unit.person), *domain)
        values = [list(column) for column in zip(*rows, strict=True)]
        columns = dict(zip(names, values, strict=True))
        bounded = source(
            pa.table(columns),
            domain,
            person=unit.person,
            rows_per_person=unit.rows_per_person,
            neighbours=unit.neighbours,
            name="audit",
        )
        opened = Publisher(bounded, budget=10**9)
        weakref.finalize(run, opened.close)
        return opened

    def run(rows: Rows, noise: Bits) -> Published:
        with override(_WithKey(noise) if isinstance(noise, Script) else noise):
            release = publisher(rows).release(question, epsilon=cost.epsilon, fresh=True)
        return published(msgspec.structs.replace(release, receipt=None))

    return run


def _end_to_end(rows_per_person: int, neighbours: Neighbours) -> Subject:
    """One person has five rows, more than the limit; under replace they lie elsewhere."""
    unit = Unit(rows_per_person=rows_per_person, neighbours=neighbours, person="who")
    rest: Rows = ((2.0, 1.5),)
    swapped = rest + 5 * ((1.0, 2.5),) if neighbours == "replace" else rest
    pair: Pair = rest + 5 * ((1.0, 0.5),), swapped

    def spending(times: int) -> Mechanism:
        return of_publisher(Histogram("x", bins=3), LINE, unit, PureDP(times * PURE.epsilon))

    return Subject(
        "Publisher, table to release",
        unit,
        PURE,
        spending(1),
        universe=rest,
        pairs=(pair, pair[::-1]),
        runs=250,
        weaker=spending,
    )


def subjects() -> Iterator[Subject]:
    """Every subject of this module."""
    yield _end_to_end(1, "add-remove")
    yield _end_to_end(2, "replace")
