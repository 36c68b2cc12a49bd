"""What a need asks of an engine that counts by itself, beside cells of the columns as they are."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from sfumato.answers.counts import Needs
from sfumato.data.reader import Ability
from sfumato.lattice import BinsAndMissing, LabelAxis, LatticeAxis
from sfumato.privacy.unit import Unit

WHAT: dict[Ability, str] = {
    "calendar": "axes that are derived from dates or times",
    "column": "axes that are named otherwise than their column",
    "levels": "levels of trees of labels",
    "missing": "cells of missing values beside bins",
    "stacked": "limits on the norm of counts in several tables (norm_per_person)",
    "where": "conditions on rows (where)",
}
"""Abilities as a refusal calls them."""


def abilities(needs: Needs, unit: Unit) -> set[Ability]:
    """What an engine has to know in order to count a need as a scan would."""
    lattice = needs.lattice.axes if needs.counted == "rows of each person" else needs.columns
    found = {ability for axis in lattice for ability in _of_axis(axis)}
    if needs.norm is not None:
        found.add("stacked")
    return found if unit.where is msgspec.UNSET else {*found, "where"}


def _of_axis(axis: LatticeAxis) -> Iterator[Ability]:
    if axis.calendar is not msgspec.UNSET:
        yield "calendar"
    elif axis.column is not None and axis.column != axis.name:
        yield "column"
    if isinstance(axis, LabelAxis) and axis.parts is not msgspec.UNSET:
        yield "levels"
    if isinstance(axis, BinsAndMissing):
        yield "missing"
