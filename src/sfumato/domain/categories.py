"""Public axes of labels: trees of labels, refusals of wrong axes, and axes that list their labels.

A tree of labels, such as regions of districts of municipalities, is read and cut here. The leaves
are what a column holds. Every leaf is equally deep, so each depth is a level: ``Level`` is the axis
of one of them. ``Listed`` is what all axes have in common whose labels are listed.

An axis that is declared wrongly is refused with what to write in its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias, cast

import msgspec

from sfumato.basics import ExplainedStruct
from sfumato.domain.lattice import Label, LabelAxis
from sfumato.domain.times import CalendarField, plain_value
from sfumato.errors import LONGEST_SHOWN, BoundsRequired, UsageError, shown

# --- trees of labels ------------------------------------------------------------------------------

# Pairs of a label and its branch; at the last level, labels.
Tree: TypeAlias = "tuple[tuple[Label, Tree], ...] | tuple[Label, ...]"

# The labels of a level, each with the leaves below it.
Cut: TypeAlias = tuple[tuple[Label, tuple[Label, ...]], ...]

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
    branches = _plain(tree, 1)
    depths = set(_depths(branches, 1))
    if len(depths) > 1:
        raise UsageError(
            "Categories with a tree",
            f"some of its leaves are {min(depths)} levels deep, and others {max(depths)}",
            "Give every leaf the same number of parents: a city may be a region of its own",
        )
    for level in range(1, max(depths) + 1):
        seen: set[tuple[type, Label]] = set()
        for label, _ in cut(branches, level):
            if (type(label), label) in seen:
                raise UsageError(
                    "Categories with a tree",
                    f"{shown(label)} is there twice on one level: a child has one parent",
                    "Name each label of a level once, such as 'Springfield, Ohio'",
                )
            seen.add((type(label), label))
    return branches


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
    levels: list[tuple[int, ...]] = []
    branches: list[Tree] = [tree]
    while True:
        levels.append(tuple(map(len, branches)))
        if not _is_branching(branches[0]):
            return tuple(levels)
        branches = [branch for parent in branches for _, branch in _pairs(parent)]


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
    if _is_branching(tree):
        pairs = tree.items() if isinstance(tree, Mapping) else tree
        return tuple((label, _plain(branch, level + 1)) for label, branch in pairs)
    leaves = tuple(map(plain_value, tree))
    if not all(isinstance(leaf, str | int) for leaf in leaves):
        raise _no_tree("its labels are neither text nor integers nor booleans")
    return cast("tuple[Label, ...]", leaves)


def _no_tree(obstacle: str) -> UsageError:
    return UsageError("Categories with a tree", obstacle, f"Write Categories({EXAMPLE})")


def _pairs(tree: Tree) -> Iterator[tuple[Label, Tree]]:
    for pair in tree:
        assert isinstance(pair, tuple)
        yield pair


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


# --- what is said of a wrong axis -----------------------------------------------------------------

# Obstacle and remedy where the class of an axis is given, by its name.
OF_CLASS = {
    "Interval": ("an Interval needs public bounds", "Interval(lower, upper)"),
    "Categories": ("Categories need public labels", 'Categories(["a", "b"])'),
    "Keys": ("Keys is a class", "Keys()"),
}


def labels_error(labels: object) -> UsageError:
    """The error of what is no list of labels."""
    stated = f"Categories({type(labels).__name__})"
    remedy = 'Write Categories(["a", "b"])'
    if isinstance(labels, str):
        parts = ", ".join(repr(part.strip()) for part in labels[:LONGEST_SHOWN].split(","))
        if len(labels) < LONGEST_SHOWN:
            remedy = f"Write Categories([{parts}])"
        return UsageError(stated, "it is one text, and categories are a list of labels", remedy)
    if isinstance(labels, set | frozenset):
        remedy = "Write Categories(sorted(labels)): answers list labels in this order"
    elif hasattr(labels, "tolist") or hasattr(labels, "to_list"):
        remedy = "Write the labels out in a list, from public knowledge and not from the column"
    return UsageError(stated, "categories are a list of labels", remedy)


def axis_error(name: str, given: object) -> BoundsRequired:
    """The error of what is no axis; where it is clear what was meant, how that is written."""
    stated = f"axis {name!r} as {type(given).__name__}"
    obstacle = "an axis has public bounds or labels, and they are never read off the data"
    remedy = f'{name}=Interval(0, 100), {name}=Categories(["a", "b"]) or {name}=Keys()'
    if isinstance(given, type) and given.__name__ in OF_CLASS:
        stated = f"axis {name!r}"
        obstacle, written = OF_CLASS[given.__name__]
        remedy = f"{name}={written}"
    elif hasattr(given, "needs"):
        obstacle = "it is a question, and an axis has public bounds or labels"
        remedy = f"{remedy}, and ask the question of a publisher"
    elif (
        isinstance(given, tuple | list) and len(given) == 2 and {*map(type, given)} <= {int, float}
    ):
        remedy = f"{name}=Interval({given[0]!r}, {given[1]!r})"
    elif isinstance(given, list) and given and all(isinstance(label, str) for label in given):
        remedy = f"{name}=Categories([...]), with the list in it"
    return BoundsRequired(stated, obstacle, f"Write {remedy}")


def domain_error(given: object) -> UsageError:
    """The error of what is no dict of axes."""
    obstacle = "a domain is a dict of axes by name"
    remedy = "Write Domain(age=Interval(0, 121, step=1))"
    if hasattr(given, "domain"):
        remedy = "Write source.domain"
    elif hasattr(given, "needs"):
        obstacle = f"{obstacle}, and this is a question"
        remedy = f"{remedy}, and ask the question of a publisher"
    return UsageError(f"Domain({type(given).__name__})", obstacle, remedy)


# --- axes -----------------------------------------------------------------------------------------


class Listed(ExplainedStruct, frozen=True):
    """A public axis whose labels are known beforehand, in the order in which answers list them."""

    @property
    def listed(self) -> tuple[Label, ...]:
        """The labels of the values that the axis knows."""
        raise NotImplementedError

    @property
    def calendar(self) -> CalendarField | msgspec.UnsetType:
        """The field of the calendar that it shows, if it shows one."""
        return msgspec.UNSET

    @property
    def all_labels(self) -> tuple[Label, ...]:
        """The labels, then ``other`` and ``missing`` where they are given."""
        further = (self.other, self.missing)
        return (*self.listed, *(label for label in further if label is not None))

    # A kind of axis that has any of these holds it in a field.

    @property
    def other(self) -> str | None:
        """The label of unlisted values; None: their rows are dropped."""
        return None

    @property
    def missing(self) -> str | None:
        """The label of missing values; None: their rows are dropped."""
        return None

    @property
    def column(self) -> str | None:
        """The column of the table; None: the one that is named as the axis is."""
        return None

    def label_axis(self, name: str) -> LabelAxis:
        """One cell per label, along the axis of the name given."""
        return LabelAxis(
            name,
            self.all_labels,
            self.other is not None,
            self.missing is not None,
            self.column,
            self.calendar,
        )

    def on_lattice(self, name: str, binning: object) -> LabelAxis:
        """The cells along this axis, of the name given: its labels."""
        return self.label_axis(name)

    def _check_labels(self, stated: str) -> None:
        for name, label in (("other", self.other), ("missing", self.missing)):
            if label is not None and not isinstance(label, str):
                raise UsageError(
                    stated, f"{name} must be a text", f'Write {name}="{name}", or leave it out'
                )
        if not all(
            isinstance(label, str | int) and _is_writable(label) for label in self.all_labels
        ):
            obstacle = "labels must be text, integers of 64 bits or booleans"
            raise UsageError(
                stated, obstacle, "Turn other values into text, or declare an Interval"
            )
        if not self.listed:
            raise UsageError(stated, "it lists no label", 'List them, as in ["a", "b"]')
        # The type belongs to what is compared, since True equals 1.
        seen: set[tuple[type, Label]] = set()
        for listed_label in self.all_labels:
            if (type(listed_label), listed_label) in seen:
                obstacle = f"labels must be distinct, and {shown(listed_label)} is there twice"
                raise UsageError(stated, obstacle, "Name each category once")
            seen.add((type(listed_label), listed_label))


class Categories(
    Listed, frozen=True, tag="categories", omit_defaults=True, forbid_unknown_fields=True
):
    """Which labels can occur: a public list, or the leaves of a public tree.

    Choose them from public knowledge, such as a code book. For labels that are not known
    beforehand, use ``Keys``.

    Parameters
    ----------
    labels : sequence of str, int or bool
        Distinct labels, in the order in which answers list them; integers of 64 bits. With a tree,
        leave them out.
    other : str or None
        The label under which all unlisted values are counted; None drops their rows.
    missing : str or None
        The label under which missing values are counted; None drops their rows.
    column : str or None
        The column of the table; None: the one that is named as the axis is.
    tree : dict, or None
        From each label, such as a region, to its branch: a list of the labels that the column
        holds, or a dict of smaller regions. All leaves are equally deep. Each level above the
        leaves is an axis of the domain, too: tables may count regions.
    levels : sequence of str, or None
        The names of these axes, from the top. None: the axis "place" has levels "place.1" (the
        top), "place.2", and so on, and its leaves are "place".

    Raises
    ------
    UsageError
        If there is no label, one occurs twice, or one is of another type; if the tree is none, or
        there is not a name for each level above the leaves.

    >>> Categories(["a", "b"], other="else", missing="not known").all_labels
    ('a', 'b', 'else', 'not known')
    >>> regions = {"Bavaria": ["Munich", "Nuremberg"], "Hesse": ["Frankfurt"]}
    >>> Categories(tree=regions, levels=["region"]).all_labels
    ('Munich', 'Nuremberg', 'Frankfurt')
    """

    labels: Sequence[Label] = ()
    other: str | None = None
    missing: str | None = None
    column: str | None = None
    tree: object = None
    levels: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.tree is not None:
            self._take_leaves()
        elif self.levels is not None:
            raise UsageError(
                "Categories with levels", "only a tree has levels", f"Write Categories({EXAMPLE})"
            )
        labels: object = self.labels
        if isinstance(labels, str) or not isinstance(labels, Sequence):
            raise labels_error(labels)
        msgspec.structs.force_setattr(self, "labels", tuple(map(plain_value, labels)))
        stated = f"Categories of {len(self.labels)} labels"
        check_column(stated, self.column)
        self._check_labels(stated)

    @property
    def listed(self) -> tuple[Label, ...]:
        return tuple(self.labels)

    @property
    def branches(self) -> Tree | None:
        """The tree as nested tuples; None without one."""
        return None if self.tree is None else plain_tree(self.tree)

    def above(self, name: str) -> dict[str, Level]:
        """The axes of the levels above the leaves, by name, from the top.

        Parameters
        ----------
        name : str
            The name of this axis.
        """
        tree = self.branches
        if tree is None:
            return {}
        number = depth_of(tree) - 1
        names = self.levels or [f"{name}.{level}" for level in range(1, number + 1)]
        column = self.column or name
        return {
            level_name: Level(cut(tree, level), column, self.other, self.missing)
            for level, level_name in enumerate(names, start=1)
        }

    def _take_leaves(self) -> None:
        """Bring the tree into the form that is stored, and list its leaves."""
        tree = plain_tree(self.tree)
        depth = depth_of(tree)
        leaves = tuple(leaf for leaf, _ in cut(tree, depth))
        if self.labels and tuple(self.labels) != leaves:
            raise UsageError(
                "Categories of labels and a tree",
                "the labels are other ones than the leaves of the tree",
                "Leave the labels out: they are the leaves",
            )
        if depth == 1:
            raise UsageError(
                "Categories with a tree", "it has no level above the leaves", f"Write {EXAMPLE}"
            )
        self._check_levels(depth - 1)
        msgspec.structs.force_setattr(self, "tree", tree)
        msgspec.structs.force_setattr(self, "labels", leaves)

    def _check_levels(self, number: int) -> None:
        if self.levels is None:
            return
        levels: object = self.levels
        is_list = isinstance(levels, Sequence) and not isinstance(levels, str)
        names = tuple(self.levels) if is_list else ()
        if len(names) != number or not all(isinstance(level, str) and level for level in names):
            raise UsageError(
                "Categories with levels",
                f"the tree has {number} above its leaves, and each needs a name",
                f"Give {number} names, from the top; the leaves have the name of the axis",
            )
        if len(set(names)) < number:
            raise UsageError(
                "Categories with levels", "two levels have one name", "Give each another name"
            )
        msgspec.structs.force_setattr(self, "levels", names)


class Level(Listed, frozen=True, tag="level", omit_defaults=True, forbid_unknown_fields=True):
    """A level of a tree of labels above its leaves, such as regions of municipalities.

    ``Categories(tree=...)`` gives a domain such axes; there is no need to write one.

    Parameters
    ----------
    groups : tuple of (label, tuple of labels)
        The labels of the level, each with the leaves below it, which are what the column holds.
    column : str
        The column of the leaves.
    other, missing : str or None
        As for ``Categories``.

    >>> regions = {"Bavaria": ["Munich", "Nuremberg"], "Hesse": ["Frankfurt"]}
    >>> list(Categories(tree=regions).above("place"))
    ['place.1']
    """

    groups: Cut
    column: str | None
    other: str | None = None
    missing: str | None = None

    @property
    def listed(self) -> tuple[Label, ...]:
        return tuple(label for label, _ in self.groups)

    def label_axis(self, name: str) -> LabelAxis:
        flat = super().label_axis(name)
        return msgspec.structs.replace(flat, parts=tuple(leaves for _, leaves in self.groups))


def check_column(stated: str, column: object) -> None:
    """Refuse what cannot be the name of a column."""
    if column is not None and not (isinstance(column, str) and column):
        raise UsageError(
            stated,
            "the column is a text that is not empty",
            'Write column="AGE", as the table names it',
        )


def _is_writable(label: Label) -> bool:
    """Whether a file can hold the label: valid Unicode, or an integer of 64 bits."""
    if not isinstance(label, str):
        return -(2**63) <= label < 2**64
    return label.isascii() or not any("\ud800" <= c <= "\udfff" for c in label)
