"""Histograms over keys that are not known beforehand, and data in which a key is nearly shown."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from sfumato.answers.counts import Counts
from sfumato.audit.keys import KeySelection
from sfumato.audit.runs import Mechanism, Pair, Published, Rows, Selecting, count
from sfumato.audit.subjects.subject import Subject, less_noise
from sfumato.domain.domain import Domain
from sfumato.domain.lattice import MOST_KEYS
from sfumato.mechanisms.thresholds import key_law, law_of_key_counts
from sfumato.privacy.measures import ApproxDP
from sfumato.privacy.unit import Unit
from sfumato.questions.histogram import Histogram
from sfumato.random.bits import Bits

NAMES = range(4)
MANY = 20
"""Rows with which a key is nearly always shown."""


def near_threshold(question: Histogram, unit: Unit, cost: ApproxDP) -> list[Pair]:
    """One person's rows have a key whose count is near the threshold.

    Under replace they move to a key that nobody else has.
    """
    near = key_law(cost, unit, question.selection).threshold - 1
    one: Rows = unit.rows_per_person * ((1.0, 0.5),)
    moved: Rows = unit.rows_per_person * ((2.0, 1.5),) if unit.neighbours == "replace" else ()
    # A key near the threshold may give a person away; in a key of many rows the count may.
    pairs: list[Pair] = []
    for many in (near, near + MANY) if len(question.layout) == 1 else (near,):
        rest: Rows = ((0.0, 0.5), (0.0, 1.5), *(many * ((1.0, 0.5),)), *(MANY * ((2.0, 1.5),)))
        alone = rest[: 2 + many]
        for others in (alone, rest) if unit.neighbours == "replace" else (alone,):
            pairs += [(others + one, others + moved), (others + moved, others + one)]
    return pairs


def of_one_row_each(question: Histogram, unit: Unit, cost: ApproxDP) -> list[Pair]:
    """One person has a row of each of several keys: alone, beside many others, or both."""
    names = NAMES[: unit.rows_per_person]
    many = law_of_key_counts(cost, unit, question.selection).threshold + MANY
    one: Rows = tuple((float(name), 0.5) for name in names)
    pairs: list[Pair] = []
    for shared in range(len(names) + 1):
        rest: Rows = tuple((float(name), 0.5) for name in names[:shared] for _ in range(many))
        pairs += [(rest + one, rest), (rest, rest + one)]
    return pairs


def of_keys(
    name: str,
    question: Histogram,
    domain: Domain,
    unit: Unit,
    cost: ApproxDP,
    pairs: Sequence[Pair],
    in_parts: bool = False,
) -> Subject:
    """A histogram with an axis of keys, published for the data sets of pairs.

    With ``in_parts``, the keys are selected as an engine does it, in small parts.
    """
    lattice = question.needs(domain).lattice
    columns = [("k", "x").index(axis) for axis in question.layout]

    @cache
    def counted(rows: Rows) -> Counts:
        cube = count(tuple(tuple(row[column] for column in columns) for row in rows), lattice)
        return Selecting(cube) if in_parts else cube

    def spending(times: int) -> Mechanism:
        spent = less_noise(cost, times)

        def run(rows: Rows, noise: Bits) -> Published:
            release = question.answer(counted(rows), unit, spent, noise)
            cells_per_key = lattice.size // MOST_KEYS
            counts = release.counts.reshape(-1, cells_per_key).tolist()
            shown = dict(zip(map(int, release.cell_names("k")), counts, strict=True))
            numbers: list[int] = []
            for key in NAMES:
                numbers += [int(key in shown), *shown.get(key, [0] * cells_per_key)]
            return Published(tuple(numbers), release)

        return run

    attack = KeySelection(1 + lattice.size // MOST_KEYS)
    return Subject(
        name,
        unit,
        cost,
        spending(1),
        pairs=tuple(pairs),
        runs=1000,
        exact=attack,
        weaker=spending,
        least=0.45,
    )
