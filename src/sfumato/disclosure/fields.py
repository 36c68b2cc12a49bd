"""The fields of a disclosure document: what is filled in, and what is left to a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = str | int | float | list[str]

TODO = "TODO: "
"""How a field begins that only a person can fill in."""


@dataclass(frozen=True)
class Field:
    """One value of the document.

    Attributes
    ----------
    value : str, int, float or list of str
    constant : bool
        Whether it is the same in every document of this library.
    by_hand : bool
        Whether a person wrote it, or must.
    """

    value: Value
    constant: bool = False
    by_hand: bool = False

    @property
    def missing(self) -> bool:
        """Whether a person still has to fill it in."""
        texts = self.value if isinstance(self.value, list) else [self.value]
        return any(TODO in text for text in texts if isinstance(text, str))


Tree: TypeAlias = Mapping[str, "Field | Tree"]


def todo(what: str) -> Field:
    """A field that only a person can fill in.

    Parameters
    ----------
    what : str
        What to write there, as a phrase.
    """
    return Field(TODO + what, by_hand=True)


def leaves(tree: Tree, path: str = "") -> Iterator[tuple[str, Field]]:
    """All fields with their places, such as "deployment.product.name", in order."""
    for name, node in tree.items():
        place = f"{path}.{name}" if path else name
        if isinstance(node, Field):
            yield place, node
        else:
            yield from leaves(node, place)


def plain(tree: Tree) -> dict[str, object]:
    """The values alone, as dicts and lists."""
    return {
        name: node.value if isinstance(node, Field) else plain(node) for name, node in tree.items()
    }
