"""Helpers of tests of partitions: answers without a publisher, costs, and losses of counts."""

import numpy as np

from sfumato.audit.runs import count
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.partition.uniform import UniformPartitioner
from sfumato.random import PublicSeed

ONE = PureDP(1)
RNG = np.random.default_rng(7)


def answer(question, domain, rows, cost=ONE, unit=Unit(), seed="p"):  # noqa: B008
    return question.answer(
        count(rows, question.needs(domain).lattice), unit, cost, PublicSeed(seed)
    )


def made(domain, partitions, rows=200, cost=ONE, noise=None):
    question = UniformPartitioner(partitions=partitions)
    bounds = np.array([axis.numbers for axis in domain.values()])
    points = bounds[:, 0] + RNG.random((rows, len(bounds))) * (bounds[:, 1] - bounds[:, 0])
    cube = count(tuple(map(tuple, points.tolist())), question.needs(domain).lattice)
    if noise is None:
        return question.answer(cube, Unit(), cost, PublicSeed("partition"))
    return question.answer(cube, Unit(), cost, noise)


def whole(cost):
    """The number of a measure, epsilon or rho."""
    return cost.rho if isinstance(cost, ZCDP) else cost.epsilon


def others(unit):
    """How many rows of other persons the data sets of an enumeration have."""
    return 1 if unit.rows_per_person == 1 else 0


def counts_loss(here, there):
    """Loss of counts whose noiseless values are these, on the same boxes."""
    which = np.zeros(len(here.noisy), int) if here.which is None else here.which
    loss = sum(
        abs(int(a - b)) / float(here.laws[w].scale)
        for a, b, w in zip(here.noisy, there.noisy, which, strict=True)
    )
    if here.inner is not None:
        inner = zip(here.inner.count, there.inner.count, here.inner.which, strict=True)
        loss += sum(abs(int(a - b)) / float(here.laws[w].scale) for a, b, w in inner)
    return loss
