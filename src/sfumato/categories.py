"""Public axes of labels: what all of them have in common, and those whose labels are listed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from sfumato.axis_refusals import no_list_of_labels
from sfumato.calendar_fields import CalendarField
from sfumato.errors import ExplainedStruct, UsageError, shown
from sfumato.label_axes import Label, LabelAxis
from sfumato.label_trees import EXAMPLE, Cut, Tree, cut, depth_of, plain_tree


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

    def _check_labels(self, asked: str) -> None:
        for name, label in (("other", self.other), ("missing", self.missing)):
            if label is not None and not isinstance(label, str):
                raise UsageError(
                    asked, f"{name} must be a text", f'Write {name}="{name}", or leave it out'
                )
        if not all(
            isinstance(label, str | int) and _is_writable(label) for label in self.all_labels
        ):
            obstacle = "labels must be text, integers of 64 bits or booleans"
            raise UsageError(asked, obstacle, "Turn other values into text, or declare an Interval")
        if not self.listed:
            raise UsageError(asked, "it lists no label", 'List them, as in ["a", "b"]')
        seen: set[tuple[type, Label]] = set()
        for each in self.all_labels:
            if (type(each), each) in seen:
                obstacle = f"labels must be distinct, and {shown(each)} is there twice"
                raise UsageError(asked, obstacle, "Name each category once")
            seen.add((type(each), each))


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
            raise no_list_of_labels(labels)
        msgspec.structs.force_setattr(
            self,
            "labels",
            tuple(label.item() if hasattr(label, "item") else label for label in labels),
        )
        asked = f"Categories of {len(self.labels)} labels"
        check_column(asked, self.column)
        self._check_labels(asked)

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
            each: Level(cut(tree, level), column, self.other, self.missing)
            for level, each in enumerate(names, start=1)
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
        if len(names) != number or not all(isinstance(each, str) and each for each in names):
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
        """One cell per label of the level, along the axis of the name given."""
        flat = super().label_axis(name)
        return msgspec.structs.replace(flat, parts=tuple(leaves for _, leaves in self.groups))


def check_column(asked: str, column: object) -> None:
    """Refuse what cannot be the name of a column."""
    if column is not None and not (isinstance(column, str) and column):
        raise UsageError(
            asked,
            "the column is a text that is not empty",
            'Write column="AGE", as the table names it',
        )


def _is_writable(label: Label) -> bool:
    """Whether a file can hold the label: valid Unicode, or an integer of 64 bits."""
    if not isinstance(label, str):
        return -(2**63) <= label < 2**64
    return label.isascii() or not any("\ud800" <= c <= "\udfff" for c in label)
