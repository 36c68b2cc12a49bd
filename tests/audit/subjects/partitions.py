"""Partitions: grids, trees of counts, and trees whose splits are chosen by the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from audit.subjects.lines import of
from sfumato.answers.question import AnyQuestion
from sfumato.audit.decisions import Decisions
from sfumato.audit.runs import Mechanism, Pair, Published, Rows, neighbours, of_question
from sfumato.audit.subjects.subject import (
    CONCENTRATED,
    COSTS,
    LINE,
    ON_LINE,
    PURE,
    UNITS,
    Subject,
    less_noise,
)
from sfumato.domain.domain import Domain, Interval
from sfumato.privacy.measures import CentralMeasure
from sfumato.privacy.unit import Unit
from sfumato.questions.partition.adaptive import AdaptiveGridPartitioner, AutoPartitioner
from sfumato.questions.partition.estimates import Splits
from sfumato.questions.partition.fixed_depth import (
    BinaryPartitioner,
    MedianPartitioner,
    MultiQuantilePartitioner,
)
from sfumato.questions.partition.privtree import PrivTreePartitioner
from sfumato.questions.partition.release import Partition
from sfumato.questions.partition.uniform import UniformPartitioner
from sfumato.random.bits import Bits


def _tree(name: str, question: AnyQuestion, unit: Unit, cost: CentralMeasure) -> Subject:
    """A tree of counts, where its noisy number of rows is small, and where it is large."""
    subject = replace(of(name, question, unit, cost), universe=ON_LINE[::2], runs=1000)
    # Under replace a count of all rows costs nothing, so a tree spends less than it claims.
    return replace(subject, least=0.2) if unit.neighbours == "replace" else subject


def _showing_cuts(
    question: AnyQuestion, domain: Domain, unit: Unit, cost: CentralMeasure
) -> Mechanism:
    """A question's code, whose samples look at where the tree is cut, too."""
    mechanism = of_question(question, domain, unit, cost)

    def run(rows: Rows, noise: Bits) -> Published:
        output = mechanism(rows, noise)
        partition = output.public
        assert isinstance(partition, Partition)
        assert isinstance(partition.cover, Splits)
        return replace(output, shown=tuple(partition.cover.cut.tolist()))

    return run


def _deciding(
    name: str,
    question: AnyQuestion,
    unit: Unit,
    cost: CentralMeasure,
    pairs: Sequence[Pair],
    decisions: Decisions,
    domain: Domain = LINE,
) -> Subject:
    """A tree whose splits depend on the data, by all decisions that it can make."""

    def spending(times: int) -> Mechanism:
        return _showing_cuts(question, domain, unit, less_noise(cost, times))

    # Part of the cost pays for numbers that these small data do not change.
    return Subject(
        name,
        unit,
        cost,
        spending(1),
        pairs=tuple(pairs),
        runs=500,
        exact=decisions,
        weaker=spending,
        least=0.6,
    )


WIDE = Domain(x=Interval(0, 1024, step=1))
FOUR = Domain(x=Interval(0, 4, step=1))
FIVE = Domain(x=Interval(0, 5, step=1))
NEAR_END: Rows = 2 * ((1020.5,),)
"""Most edges get worse by a row beyond these, and a few get better."""
BESIDE: Pair = (*NEAR_END, (1023.5,)), NEAR_END
ACROSS: Pair = ((0.5,), (0.5,)), ((0.5,), (3.5,))
CUTS = (0, 1019, 1021)
HEAD_STARTS = ((), (300,))
"""Noisy numbers of rows with which boxes are split by tests, and at first without a handicap."""
BLOCKS = ((900, 0, 40),)
"""Two blocks, of which one is said to hold so many rows that it is split without a handicap."""


def _trees_by_choices() -> Iterator[Subject]:
    median = MedianPartitioner(depth=1)
    quantiles = MultiQuantilePartitioner(depth=1, fanout=3)
    deep = MedianPartitioner(depth=2)
    name = "Median partition"
    beside = (BESIDE, BESIDE[::-1])
    yield _deciding(name, median, UNITS[0], PURE, beside, Decisions(offsets=CUTS), WIDE)
    for unit, cost in ((UNITS[0], CONCENTRATED), (UNITS[1], PURE)):
        pairs = neighbours(((0.5,), (3.5,)), unit, 1)
        yield _deciding("Median partition, two levels", deep, unit, cost, pairs, Decisions(), FOUR)
    for unit, cost in ((UNITS[0], PURE), (UNITS[1], CONCENTRATED)):
        pairs = neighbours(((0.5,), (4.5,)), unit, 1)
        yield _deciding("Multi-quantile partition", quantiles, unit, cost, pairs, Decisions(), FIVE)


def _trees_by_tests() -> Iterator[Subject]:
    privtree = PrivTreePartitioner()
    pairs = neighbours(((0.5,), (2.5,)), UNITS[0], 0)
    yield _deciding("PrivTree", privtree, UNITS[0], PURE, pairs, Decisions(HEAD_STARTS))
    # A row that moves to the other half leaves one path of tests and enters another.
    moves = (ACROSS, ACROSS[::-1])
    yield _deciding("PrivTree", privtree, UNITS[1], PURE, moves, Decisions(), FOUR)
    pairs = neighbours(((0.5,),), UNITS[2], 0)
    yield _deciding("PrivTree", privtree, UNITS[2], PURE, pairs, Decisions(HEAD_STARTS[:1]))
    for unit in UNITS[:2]:
        pairs = neighbours(((0.5,), (3.5,)), unit, 0)
        yield _deciding("PrivTree in blocks", privtree, unit, PURE, pairs, Decisions(BLOCKS), FOUR)


def subjects() -> Iterator[Subject]:
    """Every subject of this module."""
    for promise in product(UNITS, COSTS):
        yield of("Uniform grid, given", UniformPartitioner(partitions=3), *promise)
        yield of("Uniform grid, noisy rows", UniformPartitioner(theta=1), *promise)
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
    yield from _trees_by_choices()
    yield from _trees_by_tests()
