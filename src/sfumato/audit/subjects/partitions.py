"""Partitions: grids, trees of counts, and trees whose splits are chosen by the data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from sfumato.answers.question import AnyQuestion
from sfumato.audit.runs import Mechanism, Published, Rows, of_question
from sfumato.audit.subjects.subject import (
    CONCENTRATED,
    COSTS,
    FIRST_DRAWS,
    LINE,
    ON_LINE,
    PURE,
    UNITS,
    Subject,
    less_noise,
    of,
)
from sfumato.partition.adaptive import AdaptiveGridPartitioner
from sfumato.partition.auto import AutoPartitioner
from sfumato.partition.binary import BinaryPartitioner
from sfumato.partition.median import MedianPartitioner
from sfumato.partition.multi_quantile import MultiQuantilePartitioner
from sfumato.partition.partition import Partition
from sfumato.partition.privtree import PrivTreePartitioner
from sfumato.partition.tree.cover import Splits
from sfumato.partition.uniform import UniformPartitioner
from sfumato.privacy.measures import CentralMeasure
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits

QUESTIONS = (
    UniformPartitioner,
    AdaptiveGridPartitioner,
    BinaryPartitioner,
    MedianPartitioner,
    MultiQuantilePartitioner,
    PrivTreePartitioner,
    AutoPartitioner,
)


def _tree(name: str, question: AnyQuestion, unit: Unit, cost: CentralMeasure) -> Subject:
    """A tree of counts, where its noisy number of rows is small, and where it is large."""
    subject = replace(of(name, question, unit, cost, (0, 40)), universe=ON_LINE[::2], runs=1000)
    # Under replace a count of all rows costs nothing, so a tree spends less than it claims.
    return replace(subject, least=0.2) if unit.neighbours == "replace" else subject


def _chosen(name: str, question: AnyQuestion, unit: Unit) -> Subject:
    """A tree whose splits are chosen from the data: the output includes where they are.

    Its exact audits are among the tests.
    """
    rows_per_person = unit.rows_per_person

    def spending(times: int) -> Mechanism:
        mechanism = of_question(question, LINE, unit, less_noise(PURE, times))

        def run(rows: Rows, noise: Bits) -> Published:
            output = mechanism(rows, noise)
            partition = output.public
            assert isinstance(partition, Partition)
            assert isinstance(partition.cover, Splits)
            return Published((*partition.cover.cut.tolist(), *output.numbers), partition)

        return run

    rest: Rows = ((0.5,), (1.5,))
    replaced: Rows = rows_per_person * ((0.5,),) if unit.neighbours == "replace" else ()
    pair = rest + rows_per_person * ((2.5,),), rest + replaced
    return Subject(name, unit, PURE, spending(1), pair=pair, runs=1000, weaker=spending)


def subjects() -> Iterator[Subject]:
    """Every subject of this module."""
    for promise in product(UNITS, COSTS):
        yield of("Uniform grid, given", UniformPartitioner(partitions=3), *promise)
        yield of("Uniform grid, noisy rows", UniformPartitioner(theta=1), *promise, FIRST_DRAWS)
    blocks = UniformPartitioner(theta=0.01, stop_below=1)
    yield _tree("Uniform grid, blocks", blocks, UNITS[0], PURE)
    yield _tree("Uniform grid, blocks", blocks, UNITS[1], CONCENTRATED)
    yield _tree("Binary partition", BinaryPartitioner(depth=2, stop_below=1), UNITS[0], PURE)
    yield _tree(
        "Binary partition", BinaryPartitioner(depth=2, stop_below=1), UNITS[3], CONCENTRATED
    )
    yield _tree("Adaptive grid", AdaptiveGridPartitioner(), UNITS[2], PURE)
    yield _tree("Automatic partition", AutoPartitioner(), UNITS[0], PURE)
    yield _tree("Automatic partition", AutoPartitioner(), UNITS[1], CONCENTRATED)
    yield _chosen("Median partition", MedianPartitioner(depth=1), UNITS[3])
    yield _chosen("Multi-quantile partition", MultiQuantilePartitioner(depth=1, fanout=3), UNITS[0])
    yield _chosen("PrivTree", PrivTreePartitioner(), UNITS[1])
