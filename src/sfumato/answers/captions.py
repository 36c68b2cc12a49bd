"""Words for people: a heading, units of measure, and names of labels.

A question carries them, and a release shows them in pages, pictures, notebooks and workbooks. They
are public text of the user's. They change neither the cells nor the noise nor the price: a question
with another heading is the same question.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from sfumato.domain import (
    BinsAndMissing,
    Domain,
    EdgesAxis,
    GridAxis,
    KeyAxis,
    Label,
    LabelAxis,
    Lattice,
    LatticeAxis,
)
from sfumato.errors import UsageError, nearest

Bins = TypeVar("Bins", bound=GridAxis | EdgesAxis)

# Characters of a heading or a name.
LONGEST = 200


class Captions(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What people are shown in place of names of columns and labels.

    Attributes
    ----------
    heading : str
        The title; "": the one that follows from the question.
    measured_in : str or mapping
        The unit of measure of the values, such as "minutes"; or units by axis.
    label_names : mapping
        Names of labels, such as {"WN": "Southwest"}.
    """

    heading: str = ""
    measured_in: str | Mapping[str, str] = ""
    label_names: Mapping[str, str] = {}

    def unit_of(self, axis: str) -> str:
        """The unit of measure of an axis; "" where none was given."""
        if isinstance(self.measured_in, str):
            return self.measured_in
        return self.measured_in.get(axis, "")

    def axis_name(self, axis: str, form: str = "{}") -> str:
        """The name of an axis with its unit of measure, such as "delay (minutes)".

        ``form`` says how the numbers' own unit follows from it, such as "{} squared". A name that
        ends with the unit, as the heads of spreadsheets do, does not say it twice.
        """
        unit = self.unit_of(axis)
        if not unit:
            return axis
        return f"{axis.removesuffix(f' ({unit})')} ({form.format(unit)})"

    def lattice(self, lattice: Lattice, *, grouping: bool = False) -> Lattice:
        """A lattice whose axes and labels are named for people.

        Parameters
        ----------
        lattice : Lattice
        grouping : bool
            Whether its axes only divide the rows: then a unit that names no axis is not theirs.
        """
        only_others = grouping and isinstance(self.measured_in, str)
        named = msgspec.structs.replace(self, measured_in="") if only_others else self
        return Lattice(tuple(named.lattice_axis(axis) for axis in lattice.axes))

    def lattice_axis(self, axis: LatticeAxis) -> LatticeAxis:
        """An axis named for people: an axis of labels keeps its name, and its labels get theirs."""
        if isinstance(axis, LabelAxis):
            # Names are no fields of the calendar, whatever the labels were.
            return LabelAxis(axis.name, self.labels(axis)) if self.label_names else axis
        if isinstance(axis, BinsAndMissing):
            return msgspec.structs.replace(axis, bins=self._bins(axis.bins))
        return axis if isinstance(axis, KeyAxis) else self._bins(axis)

    def _bins(self, axis: Bins) -> Bins:
        # Dates and times say themselves what they are, unless their own axis is given a unit.
        is_number = axis.kind == "number" or not isinstance(self.measured_in, str)
        name = self.axis_name(axis.name) if is_number else axis.name
        return msgspec.structs.replace(axis, name=name)

    def labels(self, axis: LabelAxis) -> tuple[Label, ...]:
        """The labels of an axis, named for people; a name that is taken keeps its label beside."""
        shown = _shown_labels(axis)
        names = [self.label_names.get(str(label), label) for label in shown]
        times = Counter(map(str, names))
        return tuple(
            f"{name} ({label})" if name is not label and times[str(name)] > 1 else name
            for name, label in zip(names, shown, strict=True)
        )

    def require(self, title: str, lattice: Lattice, domain: Domain) -> None:
        """Refuse units of axes, and names of labels, that the question does not have.

        Raises
        ------
        UsageError
            Called before the charge.
        """
        for name in () if isinstance(self.measured_in, str) else self.measured_in:
            if name not in domain:
                raise UsageError(
                    f"{title}, measured_in",
                    f"the domain has no axis {name!r}; {nearest(name, domain)}",
                    "Name an axis of it",
                )
        self._require_labels(title, lattice)

    def _require_labels(self, title: str, lattice: Lattice) -> None:
        if any(axis.has_keys for axis in lattice.axes):
            return  # which keys there are is not known beforehand
        axes = [axis for axis in lattice.axes if isinstance(axis, LabelAxis)]
        known = [str(label) for axis in axes for label in _shown_labels(axis)]
        unknown = [label for label in self.label_names if label not in known]
        if unknown and known:
            raise UsageError(
                f"{title}, label_names",
                f"the question has no label {unknown[0]!r}; {nearest(unknown[0], known)}",
                "Name labels of its axes",
            )
        if unknown:
            # Names of bins and of values of the calendar follow from the domain.
            raise UsageError(
                f"{title}, label_names",
                "the question has no axis of labels, and bins have names",
                "Leave the names out, or write the column into labels, declared as in "
                "band=young,old",
            )


def _shown_labels(axis: LabelAxis) -> Sequence[Label]:
    """The labels as answers show them: those of a calendar are "January", "Monday", ..."""
    return axis.labels if axis.calendar is msgspec.UNSET else axis.cell_names()
