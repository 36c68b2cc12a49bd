"""What is said of an axis that is declared wrongly, and what to write in its place."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.errors import LONGEST_SHOWN, BoundsRequired, UsageError

OF_CLASS = {
    "Interval": ("an Interval needs public bounds", "Interval(lower, upper)"),
    "Categories": ("Categories need public labels", 'Categories(["a", "b"])'),
    "Keys": ("Keys is a class", "Keys()"),
}
"""Obstacle and remedy where the class of an axis is given, by its name."""


def no_list_of_labels(labels: object) -> UsageError:
    """The error of what is no list of labels."""
    asked = f"Categories({type(labels).__name__})"
    remedy = 'Write Categories(["a", "b"])'
    if isinstance(labels, str):
        parts = ", ".join(repr(part.strip()) for part in labels[:LONGEST_SHOWN].split(","))
        if len(labels) < LONGEST_SHOWN:
            remedy = f"Write Categories([{parts}])"
        return UsageError(asked, "it is one text, and categories are a list of labels", remedy)
    if isinstance(labels, set | frozenset):
        remedy = "Write Categories(sorted(labels)): answers list labels in this order"
    elif hasattr(labels, "tolist") or hasattr(labels, "to_list"):
        remedy = "Write the labels out in a list, from public knowledge and not from the column"
    return UsageError(asked, "categories are a list of labels", remedy)


def no_axis(name: str, given: object) -> BoundsRequired:
    """The error of what is no axis; where it is clear what was meant, how that is written."""
    asked = f"axis {name!r} as {type(given).__name__}"
    obstacle = "an axis has public bounds or labels, and they are never read off the data"
    remedy = f'{name}=Interval(0, 100), {name}=Categories(["a", "b"]) or {name}=Keys()'
    if isinstance(given, type) and given.__name__ in OF_CLASS:
        asked = f"axis {name!r}"
        obstacle, written = OF_CLASS[given.__name__]
        remedy = f"{name}={written}"
    elif isinstance(given, tuple | list) and _are_bounds(given):
        remedy = f"{name}=Interval({given[0]!r}, {given[1]!r})"
    elif isinstance(given, list) and given and all(isinstance(each, str) for each in given):
        remedy = f"{name}=Categories([...]), with the list in it"
    return BoundsRequired(asked, obstacle, f"Write {remedy}")


def _are_bounds(given: Sequence[object]) -> bool:
    return len(given) == 2 and all(type(each) in (int, float) for each in given)


def no_domain(given: object) -> UsageError:
    """The error of what is no dict of axes."""
    asked = f"Domain({type(given).__name__})"
    remedy = "Write Domain(age=Interval(0, 121, step=1))"
    if hasattr(given, "domain"):
        remedy = "Write source.domain"
    return UsageError(asked, "a domain is a dict of axes by name", remedy)
