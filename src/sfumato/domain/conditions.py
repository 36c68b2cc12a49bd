"""Public conditions: which rows of a table an answer is about, decided by declared axes alone.

A condition looks at one row at a time, and is fixed before the data are read. Rows that do not
satisfy it are dropped before each person's rows are bounded.

Guarantee: a release under a condition protects a person as one without does, at the same cost.
Holds because: the condition keeps or drops each row whatever the other rows are. So two tables that
differ in one person's rows still differ in that person's rows alone once it is applied. Under
add-remove, at most ``rows_per_person`` rows come or go. Under replace, a <= r rows of one person
become b <= r others, where a or b may now be 0: every bound on replaced persons allows for that.
Not covered: the number of rows that satisfy a condition is not public, under either relation, not
even where each person has exactly one row. Answers under several conditions that no row satisfies
together are charged one by one, and their costs add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec

from sfumato.domain.domain import Domain, Interval, Keys, Listed
from sfumato.domain.lattice import Label
from sfumato.domain.scale import number_of, plain_bound, unit_of
from sfumato.domain.times import plain_value
from sfumato.errors import BoundsRequired, UsageError, nearest, printable, shown

# How many labels a sentence names.
MOST_NAMED = 8


class OneOf(msgspec.Struct, frozen=True, tag="one of", forbid_unknown_fields=True):
    """A row satisfies it if its label on an axis is one of those given, in the axis' order."""

    axis: str
    labels: tuple[Label, ...]

    def __str__(self) -> str:
        named = [printable(str(label)) for label in self.labels]
        if len(named) > MOST_NAMED:
            more = len(named) - MOST_NAMED + 1
            named = [*named[: MOST_NAMED - 1], f"{more:,} more"]
        listed = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} or {named[-1]}"
        return f"{printable(self.axis)} is {listed}"


class Within(
    msgspec.Struct, frozen=True, tag="within", omit_defaults=True, forbid_unknown_fields=True
):
    """A row satisfies it if its value on an Interval axis is at least one, and below another.

    None stands for an end of the axis: values beyond the bounds count as the nearest of them.
    """

    axis: str
    lower: int | float | str | None = None
    upper: int | float | str | None = None

    def __str__(self) -> str:
        name = printable(self.axis)
        below = "before" if isinstance(self.lower, str) or isinstance(self.upper, str) else "below"
        if self.lower is not None and self.upper is not None:
            return f"{name} is from {self.lower} to {below} {self.upper}"
        if self.upper is not None:
            return f"{name} is {below} {self.upper}"
        return f"{name} is known" if self.lower is None else f"{name} is at least {self.lower}"


Condition: TypeAlias = OneOf | Within


def in_words(conditions: Iterable[Condition]) -> str:
    """Conditions as they follow "rows" in a sentence.

    >>> in_words([OneOf("kind", ("a", "b")), Within("age", 18, 65)])
    ' where kind is a or b, and age is from 18 to below 65'
    """
    return f" where {', and '.join(map(str, conditions))}"


def conditions_of(where: object, domain: Domain) -> tuple[Condition, ...]:
    """Read conditions as a user writes them: labels, or a half-open range, for each axis.

    Parameters
    ----------
    where : mapping of str to labels or a pair of bounds
        Labels for axes that have them; ``(lower, upper)`` for an Interval axis, where None stands
        for the axis' own bound.
    domain : Domain

    Returns
    -------
    tuple of OneOf or Within
        In the order of the axes' names: equal conditions are equal however they were written.

    Raises
    ------
    UsageError
        If an axis is not declared, labels are not listed, or a range is none within the bounds.

    >>> from sfumato.domain.domain import Categories
    >>> domain = Domain(kind=Categories(["a", "b", "c"]), age=Interval(0, 120))
    >>> conditions_of({"kind": ["b", "a"], "age": (18, None)}, domain)[0]
    Within(axis='age', lower=18, upper=None)
    """
    if not isinstance(where, Mapping) or not where:
        raise UsageError(
            f"where = {type(where).__name__}",
            "it is a dict with a condition for each axis",
            'Write where={"kind": ["a", "b"], "age": (18, 65)}',
        )
    for name in where:
        if name not in domain:
            raise UsageError(
                f"where {shown(name)}",
                f"the domain has no axis of that name; {nearest(name, domain)}",
                "Declare the axis, or leave the condition out",
            )
    conditions: list[Condition] = []
    # Sorted, so that the same conditions are one condition, in whatever order they were written.
    for name in sorted(where):
        match domain[name]:
            case Interval() as axis:
                conditions.append(_within(name, where[name], axis))
            case Listed() as axis:
                conditions.append(_one_of(name, where[name], axis))
            case Keys():
                raise BoundsRequired(
                    f"where {name!r}",
                    "it is an axis of keys, and what keys there are is not public",
                    f"Declare {name}=Categories([...]) with the labels that the condition names",
                )
    return tuple(conditions)


# --- labels -------------------------------------------------------------------------------------


def _one_of(name: str, given: object, axis: Listed) -> OneOf:
    chosen = _labels(name, given)
    known = {(type(label), label): label for label in axis.all_labels}
    for label in chosen:
        if (type(label), label) not in known:
            likely = nearest(label, map(str, axis.all_labels))
            raise UsageError(
                f"where {name!r} is {shown(label)}",
                f"the axis has no such label; {likely}",
                "Name labels as the domain declares them",
            )
    wanted = {(type(label), label) for label in chosen}
    return OneOf(name, tuple(label for key, label in known.items() if key in wanted))


def _as_listed(given: object) -> object:
    """What an array of NumPy or a column of pandas lists; anything else as it is."""
    return given.tolist() if hasattr(given, "tolist") else given


def _labels(name: str, given: object) -> list[object]:
    """The labels of a condition: a list of them, or a single one."""
    listed = _as_listed(given)
    if isinstance(listed, str | int):
        return [listed]
    stated = f"where {name!r}"
    if not isinstance(listed, Iterable) or isinstance(listed, Mapping | bytes):
        raise UsageError(
            stated,
            f"labels are a list, and this is of type {type(given).__name__}",
            f'Write where={{"{name}": ["a", "b"]}}',
        )
    labels = list(map(plain_value, listed))
    if not labels:
        raise UsageError(
            stated, "the list of labels is empty, and no row satisfies it", "Name a label"
        )
    if isinstance(listed, tuple) and list(map(type, labels)) == [int, int]:
        first, last = labels
        raise UsageError(
            f"{stated} is ({first}, {last})",
            "the axis has labels, and a pair in round brackets could mean a range of them",
            f"Write [{first}, {last}] for the two labels, or range({first}, {last})",
        )
    return labels


# --- ranges -------------------------------------------------------------------------------------


def _within(name: str, given: object, axis: Interval) -> Within:
    stated = f"where {name!r}"
    remedy = f'Write where={{"{name}": ({axis.lower!r}, {axis.upper!r})}}, or a part of that range'
    pair = _as_listed(given)
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise UsageError(stated, "the condition on an Interval is a pair of bounds", remedy)
    ends = [
        bound if end is None else plain_bound(end)
        for end, bound in zip(pair, (axis.lower, axis.upper), strict=True)
    ]
    if any(unit_of(end) != axis.time for end in ends):
        kind = f"the kind of the axis, which holds {axis.scale.declared}"
        raise UsageError(stated, f"its bounds are not of {kind}", remedy)
    low, high = axis.numbers
    lower, upper = map(number_of, ends)
    if obstacle := _range_obstacle(lower, upper, axis):
        raise UsageError(stated, obstacle, remedy)
    # An end of the axis is stored as None, so that equal ranges are equal conditions.
    return Within(name, None if lower == low else ends[0], None if upper == high else ends[1])


def _range_obstacle(lower: float, upper: float, axis: Interval) -> str | None:
    """Say what is wrong with a range of numbers of an axis; None if nothing is."""
    if not (math.isfinite(lower) and math.isfinite(upper)):
        return "its bounds must be finite numbers, or None"
    if not lower < upper:
        return "its lower bound must be below its upper bound"
    low, high = axis.numbers
    return (
        None if low <= lower and upper <= high else "its range leaves the public bounds of the axis"
    )


def as_written(conditions: Iterable[Condition]) -> dict[str, object]:
    """Conditions as ``conditions_of`` reads them."""
    return {
        condition.axis: list(condition.labels)
        if isinstance(condition, OneOf)
        else (condition.lower, condition.upper)
        for condition in conditions
    }
