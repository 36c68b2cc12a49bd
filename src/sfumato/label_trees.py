"""Trees of labels, such as regions of districts of municipalities: how they are read and cut.

The leaves are what a column holds. Every leaf is equally deep, so each depth is a level.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from sfumato.errors import UsageError, shown
from sfumato.label_axes import Label

Tree: TypeAlias = "tuple[tuple[Label, Tree], ...] | tuple[Label, ...]"
"""Pairs of a label and its branch; at the last level, labels."""

Cut: TypeAlias = tuple[tuple[Label, tuple[Label, ...]], ...]
"""The labels of a level, each with the leaves below it."""

MOST_LEVELS = 20
EXAMPLE = 'tree={"Bavaria": ["Munich", "Nuremberg"], "Hesse": ["Frankfurt"]}'


def plain_tree(tree: object) -> Tree:
    """Bring a tree into the form that is stored: nested tuples.

    Parameters
    ----------
    tree : dict, or list of pairs
        From each label to its branch. A branch is a tree, or a list of leaves.

    Raises
    ------
    UsageError
        If it is no tree: a branch is empty or no branch, leaves are not equally deep, a label
        occurs twice on one level, or there are more than 20 levels.

    >>> plain_tree({"Bavaria": ["Munich", "Nuremberg"], "Hesse": ["Frankfurt"]})
    (('Bavaria', ('Munich', 'Nuremberg')), ('Hesse', ('Frankfurt',)))
    """
    if not _is_branching(tree):
        raise _no_tree("it is no dict of branches")
    found = _plain(tree, 1)
    depths = set(_depths(found, 1))
    if len(depths) > 1:
        raise UsageError(
            "Categories with a tree",
            f"some of its leaves are {min(depths)} levels deep, and others {max(depths)}",
            "Give every leaf the same number of parents: a city may be a region of its own",
        )
    for level in range(1, max(depths) + 1):
        _require_one_parent([label for label, _ in cut(found, level)])
    return found


def depth_of(tree: Tree) -> int:
    """How many levels there are, with that of the leaves."""
    return next(_depths(tree, 1))


def cut(tree: Tree, level: int) -> Cut:
    """The labels of a level, counted from 1 at the top, each with its leaves.

    >>> cut(plain_tree({"Bavaria": ["Munich", "Nuremberg"], "Hesse": ["Frankfurt"]}), 1)
    (('Bavaria', ('Munich', 'Nuremberg')), ('Hesse', ('Frankfurt',)))
    """
    if level == 1:
        if _is_branching(tree):
            return tuple((label, tuple(_leaves(branch))) for label, branch in _pairs(tree))
        return tuple((leaf, (leaf,)) for leaf in _leaves(tree))
    return tuple(part for _, branch in _pairs(tree) for part in cut(branch, level - 1))


def fanouts(tree: Tree) -> tuple[tuple[int, ...], ...]:
    """How many children each label has: those of the whole, of the top level, and so on.

    >>> fanouts(plain_tree({"Bavaria": ["Munich", "Nuremberg"], "Hesse": ["Frankfurt"]}))
    ((2,), (2, 1))
    """
    found: list[tuple[int, ...]] = []
    branches: list[Tree] = [tree]
    while True:
        found.append(tuple(map(len, branches)))
        if not _is_branching(branches[0]):
            return tuple(found)
        branches = [branch for each in branches for _, branch in _pairs(each)]


def _is_branching(tree: object) -> bool:
    if isinstance(tree, Mapping):
        return True
    if isinstance(tree, str) or not isinstance(tree, Sequence) or not tree:
        return False
    return all(
        isinstance(pair, Sequence) and not isinstance(pair, str) and len(pair) == 2 for pair in tree
    )


def _plain(tree: object, level: int) -> Tree:
    if level > MOST_LEVELS:
        raise _no_tree(f"it has more than {MOST_LEVELS} levels")
    if isinstance(tree, str) or not isinstance(tree, Mapping | Sequence):
        raise _no_tree("a branch is neither a dict nor a list of labels")
    if not tree:
        raise _no_tree("a branch of it is empty")
    if isinstance(tree, Mapping):
        return tuple((label, _plain(branch, level + 1)) for label, branch in tree.items())
    if _is_branching(tree):
        return tuple((label, _plain(branch, level + 1)) for label, branch in tree)
    leaves = tuple(label.item() if hasattr(label, "item") else label for label in tree)
    if not all(isinstance(leaf, str | int) for leaf in leaves):
        raise _no_tree("its labels are neither text nor integers nor booleans")
    return leaves


def _no_tree(obstacle: str) -> UsageError:
    return UsageError("Categories with a tree", obstacle, f"Write Categories({EXAMPLE})")


def _require_one_parent(labels: Sequence[Label]) -> None:
    """Refuse a label that occurs twice on a level."""
    seen: set[tuple[type, Label]] = set()
    for label in labels:
        if (type(label), label) in seen:
            raise UsageError(
                "Categories with a tree",
                f"{shown(label)} is there twice on one level: a child has one parent",
                "Name each label of a level once, such as 'Springfield, Ohio'",
            )
        seen.add((type(label), label))


def _pairs(tree: Tree) -> Iterator[tuple[Label, Tree]]:
    for each in tree:
        assert isinstance(each, tuple)
        yield each


def _depths(tree: Tree, level: int) -> Iterator[int]:
    if not _is_branching(tree):
        yield level
        return
    for _, branch in _pairs(tree):
        yield from _depths(branch, level + 1)


def _leaves(tree: Tree) -> Iterator[Label]:
    if _is_branching(tree):
        for _, branch in _pairs(tree):
            yield from _leaves(branch)
        return
    for leaf in tree:
        assert not isinstance(leaf, tuple)
        yield leaf
