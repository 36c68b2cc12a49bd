"""Which keys may be shown, and what is counted of them: the part of a histogram that has an axis of unknown keys.

With keys alone, the law that selects a key releases its count at the same price: the whole cost goes there. With other axes
beside them, half of epsilon and all of delta select the keys by their numbers of rows, and the other half counts every cell of
the keys that are shown, empty ones included.

Guarantee: the two parts together spend exactly the cost (basic composition; the second one is (eps / 2)-DP whatever keys the
first one showed, since the cells are then public and disjoint, and a key that was not shown is not looked at).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from sfumato.answers.estimate import error_probability
from sfumato.answers.preview import CountsPreview
from sfumato.arrays import Array
from sfumato.cube import Cube
from sfumato.domain import KeyAxis, LabelAxis, Lattice
from sfumato.errors import UsageError
from sfumato.histogram.accuracy import histogram_accuracy
from sfumato.mechanisms.noise import DiscreteLaplace, Law, add_noise, count_law
from sfumato.mechanisms.thresholds import KeyLaw, Rule, key_law, released
from sfumato.numbers import EPSILON_UNITS, Exactly
from sfumato.privacy.guarantee import Proof
from sfumato.privacy.measures import ApproxDP, CentralMeasure, PureDP
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits

MOST_BESIDE = 2**20  # public cells beside an axis of keys

PROOF = Proof(
    sensitivity="of the rows per key, L1 = rows_per_person (twice that under replace), in one key or over several.",
    because="keys that nobody has are never shown, and a key is shown with a probability that one row changes by a factor of e^eps "
    "and a summand of delta at most, at the price of one row as in mechanisms/thresholds; a person's rows add up to the cost.",
    not_covered="the choice of columns and of the rule; the time the query takes, which grows with the number of keys.",
    source="Desfontaines, Voss, Gipson, Mandayam, PoPETs 2022, Thm 1; thresholds: Korolova et al. 2009, Vadhan 2017, section 3.3.",
)

READ_AS_NOUGHT = (
    "that accuracy includes the threshold: a key that is not shown is read as a count of 0"
)


class KeysPreview(CountsPreview, frozen=True, kw_only=True):
    """What a histogram of keys would cost, and how accurate its counts would be, keys that are not shown among them.

    Attributes
    ----------
    selects : TruncatedGeometric or ThresholdLaplace
        What selects the keys.
    rule : {"truncated-geometric", "threshold", "stability"}
    """

    selects: KeyLaw
    rule: Rule

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> int:
        """By how much a count may be off, whatever it is; a key that is not shown is read as a count of 0.

        By the stability rule it is what ``histogram_accuracy`` says, which is the source's formula.
        """
        if simultaneous:
            raise UsageError(
                "simultaneous accuracy",
                "how many keys are shown depends on the data",
                "Leave simultaneous out",
            )
        alpha = error_probability(confidence)
        beside = isinstance(self.law, DiscreteLaplace)
        reach = (
            self.selects.reach_of_cells(self.law, alpha)
            if isinstance(self.law, DiscreteLaplace)
            else self.selects.reach(alpha)
        )
        if self.rule != "stability" or self.unit.rows_per_person > 1:
            return reach
        cost = self.cost
        assert isinstance(cost, ApproxDP)  # or no key could be selected
        epsilon = cost.epsilon / 2 if beside else cost.epsilon
        formula = histogram_accuracy("stability", epsilon=epsilon, alpha=alpha, delta=cost.delta)
        return max(reach, math.ceil(formula))


def key_axis(lattice: Lattice) -> int | None:
    """Which axis is one of keys; None if there is none."""
    return next((i for i, axis in enumerate(lattice.axes) if isinstance(axis, KeyAxis)), None)


def check_keys(title: str, lattice: Lattice) -> None:
    """Refuse what cannot be released: several axes of keys, or too many cells beside one."""
    keyed = [axis.name for axis in lattice.axes if isinstance(axis, KeyAxis)]
    if len(keyed) > 1:
        raise UsageError(
            title,
            f"{' and '.join(keyed)} are both axes of unknown keys",
            "Join them into one column, or declare Categories for one",
        )
    beside = math.prod(axis.size for axis in lattice.axes if not isinstance(axis, KeyAxis))
    if keyed and beside > MOST_BESIDE:
        raise UsageError(
            title,
            f"each key would have {beside:,} cells, and the limit is {MOST_BESIDE:,}",
            "Take fewer bins or axes",
        )


def laws(cost: CentralMeasure, unit: Unit, rule: Rule, alone: bool) -> tuple[KeyLaw, Law | None]:
    """The law that selects keys, and the noise of the cells where there are other axes; together they spend exactly the cost."""
    if alone or not isinstance(cost, ApproxDP):
        return key_law(cost, unit, rule), None
    whole = int(cost.epsilon * EPSILON_UNITS)
    if whole < 2:
        raise UsageError(
            f"a histogram of keys at {cost}",
            "epsilon is to be shared, and is one unit",
            "Choose a larger epsilon",
        )
    half = Fraction(whole // 2, EPSILON_UNITS)
    return key_law(ApproxDP(half, cost.delta), unit, rule), count_law(
        PureDP(cost.epsilon - half), unit
    )


def shown(cube: Cube, selects: KeyLaw, cells: Law | None, noise: Bits) -> tuple[Lattice, Array]:
    """Select keys, and count: the lattice of what is shown, its keys sorted, and noisy counts over it."""
    at = key_axis(cube.lattice)
    assert at is not None
    assert cube.coordinates is not None
    name = cube.lattice.axes[at].name
    keys, where = cube.keys[name], cube.coordinates[:, at]
    rows = np.zeros(len(keys), np.int64)
    np.add.at(rows, where, cube.counts)
    places, values = released(rows, selects, noise)
    lattice = Lattice(
        tuple(
            LabelAxis(name, tuple(keys.take(places))) if i == at else axis
            for i, axis in enumerate(cube.lattice.axes)
        )
    )
    if cells is None:
        return lattice, values
    row = np.full(len(keys), -1, np.int64)
    row[places] = np.arange(len(places))
    kept = row[where] >= 0
    coordinates = cube.coordinates[kept].copy()
    coordinates[:, at] = row[coordinates[:, at]]
    counts = np.zeros(lattice.size, np.int64)
    if len(coordinates):
        counts[np.ravel_multi_index(tuple(coordinates.T), lattice.shape)] = cube.counts[kept]
    return lattice, add_noise(counts, cells, noise)


def told(law: KeyLaw) -> str:
    """What is kept, in a sentence."""
    half, most = law.count_kept(0.5), law.count_kept(0.95)
    shown = f"a key of {most:,} rows is shown with at least 95% probability, one of {half:,} with at least 50%"
    return f"{shown}; near that, counts are known less well"


def mechanism(selects: KeyLaw, cells: Law | None) -> str:
    """What adds the randomness, in words."""
    if cells is None:
        return f"{selects}, which also selects the keys that are shown"
    assert isinstance(cells, DiscreteLaplace)
    return f"{cells} on each cell; keys are selected by {selects}"
