"""A domain with every kind of axis, and the answers to questions over it."""

from __future__ import annotations

import numpy as np

from sfumato.audit.runs import count
from sfumato.domain.cube import Cube
from sfumato.domain.domain import Categories, Domain, Interval, Keys
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Unit
from sfumato.random import PublicSeed

DOMAIN = Domain(
    age=Interval(0, 100),
    hour=Interval(0, 24, step=1),
    day=Interval("2013-01-01", "2013-01-15"),
    kind=Categories(["a", "b"], other="else"),
    shop=Keys(),
    brand=Keys(),
)
HALF = PureDP("0.5")


def answer(question, rows=(), cost=HALF, unit=None, noise=None):
    lattice = question.needs(DOMAIN).lattice
    cube = count(tuple(rows), lattice) if rows else _empty(lattice)
    return question.answer(cube, unit or Unit(), cost, noise or PublicSeed("histogram"))


def _empty(lattice):
    return Cube.of_cells(lattice, np.zeros((0, len(lattice.axes)), np.int64))
