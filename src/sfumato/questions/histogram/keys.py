"""Histograms with an axis of unknown keys: which keys are shown, and what is counted for them.

The field calls this partition selection. If keys are the only axis, the law that selects a key also
releases its count, and the whole cost is spent on it. With other axes, half of epsilon and all of
delta select the keys by their numbers of rows. The other half of epsilon counts every cell of the
keys that are shown, empty cells included.

Guarantee: the two parts together spend exactly the cost (basic composition; the second one is
(eps / 2)-DP whatever keys the first one showed, since the cells are then public and disjoint, and a
key that was not shown is not looked at).

An engine may select the keys where it counts them (``mechanisms/thresholds``): by the same law,
with noise that is a function of each key.

Where nothing but keys is counted and a person has at most one row of each, Gaussian noise needs to
grow with the root of the number of keys only. It is used where it shows keys of fewer rows.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from sfumato.answers import Counts, CountsPreview, SelectsKeys, ShownKeys, error_probability
from sfumato.basics import EPSILON_UNITS, Array, Exactly
from sfumato.domain import Cube, LabelAxis, Lattice
from sfumato.errors import UsageError
from sfumato.mechanisms import (
    DiscreteLaplace,
    KeyLaw,
    KeyRule,
    Law,
    Rule,
    add_noise,
    count_law,
    released,
)
from sfumato.privacy import (
    ApproxDP,
    CentralMeasure,
    Event,
    Proof,
    PureDP,
    Unit,
    laplace_event,
    worst_event,
)
from sfumato.questions.histogram.accuracy import histogram_accuracy
from sfumato.random.bits import Bits

MOST_CELLS_PER_KEY = 2**20

PROOF = Proof(
    sensitivity="of the rows per key, L1 = rows_per_person (twice that under replace), in one key "
    "or over several.",
    because="a key that nobody has is never shown. One row changes the probability that its key is "
    "shown by at most a factor of e^eps and a summand of delta, at the cost of one row "
    "(mechanisms/thresholds); a person's rows together cost at most the whole.",
    not_covered="the choice of columns and of the rule; the time the query takes, which grows "
    "with the number of keys.",
    source="Desfontaines, Voss, Gipson, Mandayam, PoPETs 2022, Thm 1; thresholds: Korolova et al. "
    "2009, Vadhan 2017, section 3.3.",
)

PERSONS_PROOF = Proof(
    sensitivity="of the persons per key, L2 = sqrt(r) for persons of at most r keys (sqrt(2 r) "
    "under replace).",
    because="a key that nobody has is never shown, and one that a single person has is shown with "
    "a probability that is counted in delta. The noise on all others is Gaussian; its exact delta "
    "and that probability together are at most delta, however many keys a person has alone "
    "(mechanisms/gaussian_keys).",
    not_covered="the choice of columns and of the rule; the time the query takes, which grows "
    "with the number of keys; persons who appear under several ids.",
    source="Balle, Wang, ICML 2018; Gopi et al., ICML 2020; noise: Canonne, Kamath, Steinke 2020.",
)

# Releases store this sentence.
SAME_ROWS = (
    "The engine that selects the keys counts the same rows whenever it evaluates a part of its "
    "query again. The noise of a key is then the same, too."
)

NOT_SHOWN_COUNTS_AS_ZERO = (
    "that accuracy includes the threshold: a key that is not shown is taken to have 0 rows"
)


class KeysPreview(CountsPreview, frozen=True, kw_only=True):
    """What a histogram of keys would cost, and how accurate its counts would be.

    The accuracy includes keys that are not shown: their counts are taken to be 0.

    Attributes
    ----------
    selects : TruncatedGeometric, ThresholdLaplace or ThresholdGaussian
        The law that selects the keys.
    rule : {"truncated-geometric", "threshold", "stability"}
    """

    selects: KeyLaw
    rule: Rule

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> int:
        """The error that a count exceeds with probability at most 1 - confidence, whatever it is.

        A key that is not shown counts as 0. By the stability rule it is the accuracy that
        ``histogram_accuracy`` states, by the source's formula.

        Raises
        ------
        UsageError
            If ``simultaneous``: the number of keys that are shown depends on the data.
        """
        if simultaneous:
            raise UsageError(
                "simultaneous accuracy",
                "how many keys are shown depends on the data",
                "Leave simultaneous out",
            )
        alpha = error_probability(confidence)
        counts_cells = isinstance(self.law, DiscreteLaplace)
        if isinstance(self.law, DiscreteLaplace):
            error = self.selects.error_bound_of_cells(self.law, alpha)
        else:
            error = self.selects.error_bound(alpha)
        # The source's formula assumes one row per person.
        if self.rule != "stability" or self.unit.rows_per_person > 1:
            return error
        cost = self.cost
        assert isinstance(cost, ApproxDP)  # without a delta no key can be selected
        epsilon = cost.epsilon / 2 if counts_cells else cost.epsilon
        formula = histogram_accuracy("stability", epsilon=epsilon, alpha=alpha, delta=cost.delta)
        return max(error, math.ceil(formula))


def check_keys(title: str, lattice: Lattice) -> None:
    """Refuse what cannot be released: several axes of keys, or too many cells beside one."""
    keyed = list(lattice.keyed.values())
    if len(keyed) > 1:
        raise UsageError(
            title,
            f"{' and '.join(keyed)} are both axes of unknown keys",
            "Join them into one column, or declare Categories for one",
        )
    cells_per_key = lattice.public_size
    if keyed and cells_per_key > MOST_CELLS_PER_KEY:
        raise UsageError(
            title,
            f"each key would have {cells_per_key:,} cells, and the limit is {MOST_CELLS_PER_KEY:,}",
            "Take fewer bins or axes",
        )


def selection_share(cost: CentralMeasure) -> tuple[CentralMeasure, CentralMeasure]:
    """Divide a cost between the selection of keys and what is published for them.

    Half of epsilon and all of delta select the keys. Without a delta no key can be selected:
    ``key_law`` refuses such a cost, which is returned as it is.

    Raises
    ------
    UsageError
        If epsilon is too small to be divided.
    """
    if not isinstance(cost, ApproxDP):
        return cost, cost
    units = int(cost.epsilon * EPSILON_UNITS)
    if units < 2:
        raise UsageError(
            f"a histogram of keys at {cost}",
            "epsilon has to be shared, and it is the smallest there is",
            "Choose a larger epsilon",
        )
    # The rest of an odd number of units goes to the second part, so that no unit is lost.
    half = Fraction(units // 2, EPSILON_UNITS)
    return ApproxDP(half, cost.delta), PureDP(cost.epsilon - half)


def event_of_cells(cost: CentralMeasure, unit: Unit) -> Event:
    """What the selection of keys draws, and the noise on the cells of those that are shown."""
    selection_cost, rest = selection_share(cost)
    law = count_law(rest, unit)
    selected = worst_event(selection_cost)
    if not isinstance(law, DiscreteLaplace):
        return selected + worst_event(rest)
    return selected + laplace_event(law.scale, unit)


def select_and_count(
    counted: Counts, selects: KeyLaw, cells: Law | None, noise: Bits
) -> tuple[Lattice, Array]:
    """Select keys, and add noise to the counts of the keys that are shown.

    Parameters
    ----------
    counted : Counts
        Of a lattice with one axis of keys.
    selects : TruncatedGeometric, ThresholdLaplace or ThresholdGaussian
    cells : DiscreteLaplace, DiscreteGaussian or None
        The noise on each cell. None: keys are the only axis, and selecting one releases its count.

    Returns
    -------
    lattice : Lattice
        Its axis of keys has the keys that are shown, sorted.
    counts : int64 ndarray of shape (lattice.size,)
    """
    # Whether the engine selects depends on the source, the question and the unit, and not on the
    # data. The distribution of what is shown is the same.
    if isinstance(counted, SelectsKeys):
        shown = counted.select(KeyRule.of(selects, noise))
    else:
        cube, values = select_keys(counted.on(counted.lattice), selects, noise)
        shown = ShownKeys(cube.lattice, values, cube)
    if cells is None:
        return shown.lattice, shown.values
    assert shown.cells is not None
    assert shown.cells.coordinates is not None
    counts = np.zeros(shown.lattice.size, np.int64)
    if len(shown.cells.coordinates):
        indices = np.ravel_multi_index(tuple(shown.cells.coordinates.T), shown.lattice.shape)
        counts[indices] = shown.cells.counts
    return shown.lattice, add_noise(counts, cells, noise)


def select_keys(cube: Cube, selects: KeyLaw, noise: Bits) -> tuple[Cube, Array]:
    """Select keys by their numbers of rows, and keep the cells of these keys.

    Parameters
    ----------
    cube : Cube
        True counts, with one axis of keys.
    selects : TruncatedGeometric, ThresholdLaplace or ThresholdGaussian

    Returns
    -------
    shown : Cube
        True counts, and sums, of the keys that are shown; its lattice names these keys, sorted.
    values : int64 ndarray of shape (keys shown,)
        The noisy number of rows of each of them.
    """
    axis_index, name = next(iter(cube.lattice.keyed.items()))
    assert cube.coordinates is not None
    keys = cube.keys[name]
    key_numbers = cube.coordinates[:, axis_index]
    rows_per_key = np.zeros(len(keys), np.int64)
    np.add.at(rows_per_key, key_numbers, cube.counts)
    selected, values = released(rows_per_key, selects, noise)
    axes = list(cube.lattice.axes)
    axes[axis_index] = LabelAxis(name, tuple(keys.take(selected)))
    # Number the selected keys anew. The others get -1, and their cells are left out.
    new_numbers = np.full(len(keys), -1, np.int64)
    new_numbers[selected] = np.arange(len(selected))
    kept = new_numbers[key_numbers] >= 0
    coordinates = cube.coordinates[kept].copy()
    coordinates[:, axis_index] = new_numbers[coordinates[:, axis_index]]
    sums = None if cube.sums is None else cube.sums[kept]
    lattice = Lattice(tuple(axes))
    return Cube(lattice, cube.counts[kept], coordinates, sums=sums, summed=cube.summed), values


def describe_selection(law: KeyLaw) -> str:
    """Say how many rows a key needs to be shown."""
    half = law.count_kept(0.5)
    most = law.count_kept(0.95)
    return (
        f"a key held by {most:,} rows is shown with probability at least 95%, one held by "
        f"{half:,} with at least 50%; counts near these numbers are less accurate"
    )
