"""Public axes of labels: what all of them have in common, and those whose labels are listed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from sfumato.axis_refusals import no_list_of_labels
from sfumato.calendar_fields import CalendarField
from sfumato.errors import UsageError, shown
from sfumato.explained_struct import ExplainedStruct
from sfumato.label_axes import Label, LabelAxis


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
    """Which labels can occur: a public list.

    Choose them from public knowledge, such as a code book. For labels that are not known
    beforehand, use ``Keys``.

    Parameters
    ----------
    labels : sequence of str, int or bool
        Distinct labels, in the order in which answers list them; integers of 64 bits.
    other : str or None
        The label under which all unlisted values are counted; None drops their rows.
    missing : str or None
        The label under which missing values are counted; None drops their rows.
    column : str or None
        The column of the table; None: the one that is named as the axis is.

    Raises
    ------
    UsageError
        If there is no label, one occurs twice, or one is of another type.

    >>> Categories(["a", "b"], other="else", missing="not known").all_labels
    ('a', 'b', 'else', 'not known')
    """

    labels: Sequence[Label]
    other: str | None = None
    missing: str | None = None
    column: str | None = None

    def __post_init__(self) -> None:
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
